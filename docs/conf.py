"""How the documentation site is built: ``sphinx-build -W docs docs/_build``."""

import sys
from pathlib import Path

import toprank

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "toprank"
author = "The toprank developers"
copyright = f"2026, {author}"
version = release = toprank.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "moved_pages",
]
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py", "gallery/*.zip", "gallery/*.md5"]

html_theme = "furo"
html_title = "toprank"

myst_heading_anchors = 3
templates_path = ["_templates"]
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say what is expected, in words
napoleon_google_docstring = False
napoleon_use_param = False  # types are words, not links
napoleon_use_rtype = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    # the examples take minutes and two need data that do not ship: run them on request,
    # with ``sphinx-build -D plot_gallery=1``
    "plot_gallery": False,
    "filename_pattern": "/plot_",
    "download_all_examples": False,
    "show_memory": False,
}


def skip(app, what, name, obj, skip, options):
    """Leave out the methods that scikit-learn generates for metadata routing."""
    return True if name.startswith("set_") and name.endswith("_request") else skip


def setup(app):
    """Connect the hook above."""
    app.connect("autodoc-skip-member", skip)
