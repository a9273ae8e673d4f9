"""The page docs/evidence/papers.md, written from the registry."""

from __future__ import annotations

from collections.abc import Iterable

from toprank.reproduce.glance import agarwal, clemencon, rudin, rudin_schapire
from toprank.reproduce.glance.entry import Entry, Paper

#: The papers in the order of the page.
PAPERS: tuple[Paper, ...] = (
    rudin.JOURNAL,
    rudin.COLT,
    rudin_schapire.PAPER,
    agarwal.PAPER,
    clemencon.PAPER,
)

_OPENING = """# The papers at a glance

Every theorem, algorithm, table and figure of the five papers: where it is in the code, which test
checks it, and what we found. `python -m toprank.reproduce.glance` writes this page from a registry;
a test fails where a name on it leads nowhere. [The numbers](reproduce.md) have their own page.
"""


def papers_page() -> str:
    """Return the page as Markdown."""
    parts = [_OPENING, _counts(), _findings()]
    for paper in PAPERS:
        parts.append(f"## {paper.title}\n\n{_table(paper.entries)}")
    return "\n".join(parts)


def _counts() -> str:
    entries = [entry for paper in PAPERS for entry in paper.entries]
    coded = sum(bool(entry.code) for entry in entries)
    tests = {test for entry in entries for test in entry.tests.split()}
    return (
        f"{len(entries)} items, {coded} of them in the code and checked by {len(tests)} tests; the "
        "others are steps of proofs.\n"
    )


def _findings() -> str:
    wrong = [
        f"- {paper.title.split(',')[0]}, {entry.item}: {entry.found}"
        for paper in PAPERS
        for entry in paper.entries
        if entry.found.startswith("False as printed")
    ]
    return "False as printed, and corrected here:\n\n" + "\n".join(wrong) + "\n"


def _table(entries: Iterable[Entry]) -> str:
    rows = ["| item | what | in the code | checked by | found |", "|---|---|---|---|---|"]
    rows += [
        f"| {entry.item} | {entry.says} | {_names(entry.code)} | {_tests(entry.tests)} | "
        f"{entry.found} |"
        for entry in entries
    ]
    return "\n".join(rows) + "\n"


def _names(code: str) -> str:
    return ", ".join(f"`{name}`" for name in code.split())


def _tests(tests: str) -> str:
    """The sentence that each test is, after its file."""
    return "; ".join(
        f"`{test.split('::')[0]}`: {test.split('::')[1].removeprefix('test_').replace('_', ' ')}"
        for test in tests.split()
    )
