"""How the documentation site is built: ``sphinx-build -W docs docs/_build``.

The tutorials and the gallery run while it is built, and are not run again until their scripts
change: what they wrote lies in folders that git ignores.
"""

import sys
from pathlib import Path

import matplotlib

import toprank

matplotlib.use("Agg")
sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "toprank"
author = "The toprank developers"
copyright = f"2026, {author}"
version = release = toprank.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    # of this folder
    "error_messages",
    "folded_tables",
    "mathml",
    "moved_pages",
    "short_sidebar",
]
GALLERIES = ("gallery", "tutorials/by_job")
exclude_patterns = [
    "_build",
    *(f"{folder}/*.{end}" for folder in GALLERIES for end in ("ipynb", "py", "zip", "md5", "json")),
]

html_theme = "furo"
html_title = "toprank"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_math_renderer = "mathml"

myst_heading_anchors = 3
templates_path = ["_templates"]
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say what is expected, in words
napoleon_google_docstring = False
napoleon_use_param = False  # types are words, not links
napoleon_use_rtype = False

sphinx_gallery_conf = {
    "examples_dirs": ["../tutorials", "../examples"],
    "gallery_dirs": [GALLERIES[1], GALLERIES[0]],
    # the network's data do not ship, and the rates take minutes: shown, and not run
    "filename_pattern": r"/plot_(?!torch)",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,  # that page asks for scripts of other machines
    "show_signature": False,
    "remove_config_comments": True,  # such as the thumbnail of an example that draws nothing
    # the examples that use a name stand on its page, and names in examples lead to their pages
    "backreferences_dir": "reference/generated/backreferences",
    "doc_module": ("toprank",),
    "reference_url": {"toprank": None},
    "matplotlib_animations": False,
    "image_srcset": [],
    "first_notebook_cell": "# once: pip install 'toprank[plots,lightgbm]'\n%matplotlib inline",
}


def skip(app, what, name, obj, skip, options):
    """Leave out the methods that scikit-learn generates for metadata routing."""
    return True if name.startswith("set_") and name.endswith("_request") else skip


def setup(app):
    """Connect the hook above."""
    app.connect("autodoc-skip-member", skip)
