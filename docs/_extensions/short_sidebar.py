"""The sidebar without the pages of single names.

They are several hundred. On every page the sidebar would name each of them, and putting it together
would take most of the time in which the site is built. Their own page lists them, the search finds
them, and the links to the one before and after stay.
"""

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

#: The folder of pages that autosummary writes.
GENERATED = "reference/generated/"


def shorten(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Leave out of the tables of contents what leads to generated pages; no page is read again."""
    for toc in env.tocs.values():
        for tree in list(toc.findall(addnodes.toctree)):
            if all(page.startswith(GENERATED) for page in tree["includefiles"]):
                _remove(tree)
    return []


def _remove(tree: addnodes.toctree) -> None:
    parent = tree.parent
    parent.remove(tree)
    if isinstance(parent, nodes.bullet_list) and not parent.children:
        parent.parent.remove(parent)


def setup(app: Sphinx) -> dict[str, bool]:
    """Shorten once all pages are read, before the first is written."""
    app.connect("env-updated", shorten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
