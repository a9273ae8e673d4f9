"""Pages that have moved: their old addresses lead to the new ones."""

from pathlib import Path

from sphinx.application import Sphinx

#: A folder, and the pages that lay above it before.
FOLDERS = {
    "tutorials": ["quick_start"],
    "how_to": [
        *("choosing_p", "select", "lists_within_limits", "lists_through_time", "partial_labels"),
        *("groups_at_top", "report", "command_line", "models", "scaling", "coming_from"),
        "which_method",
    ],
    "explanation": ["bounds", "limits", "error_bars", "proper", "pairs", "trees"],
    "reference": [
        *("api", "metrics", "pictures", "rankers/pnorm_push", "rankers/pnorm_push_cv"),
        *("rankers/ir_push", "rankers/push_ranker", "rankers/push_ensemble", "rankers/rank_boost"),
        *("rankers/smooth_margin", "rankers/ada_boost", "rankers/label_ranker"),
    ],
    "evidence": ["papers", "reproduce", "peers", "full_size", "when_it_helps"],
}
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>This page has moved</title>
<meta http-equiv="refresh" content="0; url={target}"><link rel="canonical" href="{target}"></head>
<body><p>This page has moved: <a href="{target}">{target}</a></p></body></html>
"""


def moved() -> dict[str, str]:
    """Old page: new page, both without a suffix."""
    return {page: f"{folder}/{page}" for folder, pages in FOLDERS.items() for page in pages}


def write_redirects(app: Sphinx, error: Exception | None) -> None:
    """Write a small page at each old address, once the site is there."""
    if error is not None or app.builder.format != "html":
        return
    for old, new in moved().items():
        page = Path(app.outdir, f"{old}.html")
        page.parent.mkdir(parents=True, exist_ok=True)
        target = "../" * old.count("/") + f"{new}.html"
        page.write_text(PAGE.format(target=target), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the redirects at the end of a build."""
    app.connect("build-finished", write_redirects)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
