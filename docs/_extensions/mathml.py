"""Formulas as MathML, which browsers draw by themselves: no script, no font, no network."""

import re
from html import escape

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

#: What the converter does not know, in words that it does.
SPELLED = {
    r"\Big\{": r"\left\{",
    r"\Big\}": r"\right\}",
    r"\arg\max": r"\text{arg max}",
    r"\arg\min": r"\text{arg min}",
}
COMMAND = re.compile(r"\\|&#x0005C;")


def to_mathml(tex: str, display: str) -> str:
    """One formula; a command that the converter does not know is an error of the build."""
    tex = " ".join(tex.split())
    for command, known in SPELLED.items():
        tex = tex.replace(command, known)
    if display == "block" and ("&" in tex or r"\\" in tex) and r"\begin{" not in tex:
        tex = rf"\begin{{aligned}}{tex}\end{{aligned}}"
    found = convert(tex, display=display)
    if COMMAND.search(found):
        raise ExtensionError(f"MathML has no word for a command of this formula: {tex}")
    return found


def visit_inline(self, node: nodes.math) -> None:
    """Write a formula within a line."""
    self.body.append(f'<span class="math">{to_mathml(node.astext(), "inline")}</span>')
    raise nodes.SkipNode


def visit_block(self, node: nodes.math_block) -> None:
    """Write a formula of its own; a wide one scrolls."""
    label = escape(node.astext(), quote=True)
    self.body.append(
        f'<div class="math" tabindex="0" role="group" aria-label="{label}">'
        f"{to_mathml(node.astext(), 'block')}</div>"
    )
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer the renderer; ``html_math_renderer`` in conf.py chooses it."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
