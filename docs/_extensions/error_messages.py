"""Every message that the code can raise or warn with, read from the code and put into families.

The page ``reference/errors.md`` says for each family what to do; the directive
``error-messages`` lists the family's messages below it. A test holds the two together: no
message is without a family.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

#: Families by their names on the page, with the parts of the package whose messages they hold.
FAMILIES = {
    "rows": ("pairs",),
    "fits": ("rankers", "objective", "solvers", "losses", "prices", "pair_sums"),
    "metrics": ("metrics",),
    "evidence": ("inference", "folds", "tuning", "choose", "bounds", "simulate", "reproduce"),
    "lists": ("select",),
    "models": ("models",),
    "commands": ("cli", "report", "plots"),
    "places": ("blocks", "interop", "datasets"),
    "package": ("_",),
}
#: The package, in a checkout; beside this folder.
SOURCE = Path(__file__).resolve().parents[2] / "src" / "toprank"


@dataclass(frozen=True, order=True)
class Message:
    """A message of the code, with dots where a value stands."""

    text: str
    kind: str
    module: str


def family_of(module: str) -> str | None:
    """The family of a module, by the first part of its path within the package."""
    first = module.split("/")[0].removesuffix(".py")
    for family, parts in FAMILIES.items():
        if any(first == part or (part == "_" and first.startswith("_")) for part in parts):
            return family
    return None


def collect(source: Path = SOURCE) -> list[Message]:
    """All messages of the package, in order; the same words in one module count once."""
    found = set()
    for path in sorted(source.rglob("*.py")):
        module = path.relative_to(source).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            call = _call_of(node)
            if call is None:
                continue
            kind, argument = call
            text = _text_of(argument)
            # a message that another function put together is found where its words are
            if len(text.replace("…", "").split()) >= 2:
                found.add(Message(text, kind, module))
    return sorted(found)


def _call_of(node: ast.AST) -> tuple[str, ast.expr] | None:
    """The kind and the message of a raise or of a warning."""
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
        name = node.exc.func
        return getattr(name, "attr", getattr(name, "id", "")), node.exc.args[0]
    if isinstance(node, ast.Call) and node.args and getattr(node.func, "attr", "") == "warn":
        return "warning", node.args[0]
    return None


def _text_of(node: ast.expr) -> str:
    """The words of an expression, with dots for what is computed."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else "…"
    if isinstance(node, ast.JoinedStr):
        return "".join(_text_of(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text_of(node.left) + _text_of(node.right)
    return "…"


def setup(app):
    """Offer the directive."""
    from docutils import nodes
    from sphinx.util.docutils import SphinxDirective

    messages: dict[str, list[Message]] = {}

    class ErrorMessages(SphinxDirective):
        """The messages of one family, behind a line that opens them."""

        required_arguments = 1

        def run(self):
            if not messages:
                for one in collect():
                    messages.setdefault(family_of(one.module) or "", []).append(one)
            own = messages[self.arguments[0]]
            # one that was written in two places of a family is shown once
            shown = sorted({(one.text, one.kind) for one in own})
            opening = f"<details><summary>All {len(shown)} messages of this family</summary>"
            items = nodes.bullet_list()
            for text, kind in shown:
                line = nodes.paragraph("", "", nodes.literal(text=text), nodes.Text(f" ({kind})"))
                items += nodes.list_item("", line)
            return [
                nodes.raw("", opening, format="html"),
                items,
                nodes.raw("", "</details>", format="html"),
            ]

    app.add_directive("error-messages", ErrorMessages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
