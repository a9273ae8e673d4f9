"""Long tables of numbers lie behind a line that opens them: a page is for reading."""

import re

from docutils import nodes
from sphinx.application import Sphinx

#: A table with more rows than the first number, and more cells with a digit than without, is
#: folded; one with more rows than the second in any case.
ROWS, MOST_ROWS = 12, 40
DIGIT = re.compile(r"\d")


def is_long(table: nodes.table) -> bool:
    """Whether a table is one to look things up in, not one to read."""
    rows = [row for body in table.findall(nodes.tbody) for row in body.findall(nodes.row)]
    texts = [entry.astext() for row in rows for entry in row.children[1:]]
    cells = [bool(DIGIT.search(text)) for text in texts if text.strip()]
    return len(rows) > MOST_ROWS or (len(rows) > ROWS and sum(cells) > len(cells) / 2)


def fold(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Put each long table of a page into an element that opens and closes."""
    if app.builder.format != "html":
        return
    for table in list(doctree.findall(nodes.table)):
        if not is_long(table):
            continue
        rows = sum(1 for body in table.findall(nodes.tbody) for _ in body.findall(nodes.row))
        first = next(iter(table.findall(nodes.entry))).astext()
        name = f" by {first}" if first else ""
        before = nodes.raw(
            "", f"<details><summary>The table{name}: {rows} rows</summary>", format="html"
        )
        place = table.parent.index(table)
        table.parent.insert(place, before)
        table.parent.insert(place + 2, nodes.raw("", "</details>", format="html"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Fold once the references of a page are known."""
    app.connect("doctree-resolved", fold)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
