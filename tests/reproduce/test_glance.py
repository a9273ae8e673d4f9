"""The papers at a glance: every name on the page leads somewhere, and the page is current."""

import importlib
import re
import runpy
from pathlib import Path

import pytest

from toprank.reproduce.glance import PAPERS, papers_page

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "evidence" / "papers.md"
ENTRIES = [entry for paper in PAPERS for entry in paper.entries]


def found(name):
    """The object of a dotted name below toprank; AttributeError or ImportError if there is none."""
    parts = name.split(".")
    for cut in range(len(parts), -1, -1):
        try:
            thing = importlib.import_module(".".join(["toprank", *parts[:cut]]))
        except ImportError:
            continue
        for part in parts[cut:]:
            thing = getattr(thing, part)
        return thing
    raise ImportError(name)


def test_every_name_in_the_code_exists():
    for name in sorted({n for entry in ENTRIES for n in entry.code.split()}):
        assert found(name) is not None, name


def test_every_test_exists():
    for test in sorted({t for entry in ENTRIES for t in entry.tests.split()}):
        file, name = test.split("::")
        text = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert re.search(rf"^\s*def {name}\(", text, re.MULTILINE), test


def test_what_is_in_the_code_is_checked_and_what_is_not_says_why():
    for entry in ENTRIES:
        assert entry.tests if entry.code else entry.found, entry.item
        assert "|" not in f"{entry.item}{entry.says}{entry.found}"


def test_no_item_stands_twice_and_every_paper_is_there():
    assert len(PAPERS) == 5
    for paper in PAPERS:
        items = [entry.item for entry in paper.entries]
        assert len(items) == len(set(items))


#: The numbered items of each paper; those that it only quotes from others are left out.
NUMBERED = {
    "C. Rudin (2009)": {"Theorem": [1, 2, 3, 4], "Table": range(1, 6), "Figure": range(1, 9)},
    "C. Rudin (2006)": {"Theorem": [1, 2, 3, 4], "Figure": range(1, 6)},
    "C. Rudin and R.": {
        "Theorem": [2, 6, 7, 8, 10, 12, 14],
        "Corollary": [4, 5, 11, 13],
        "Lemma": [3, 9, *range(15, 18), *range(19, 25)],
        "Figure": [1, 2],
    },
    "S. Agarwal": {
        "Theorem": [3, 4, 5, 6, 10, 11, 13, 14, 15],
        "Lemma": [1, 2, 8, 9],
        "Corollary": [12],
        "Definition": [7],
        "Table": [1],
    },
    "S. Clémençon": {
        "Theorem": [5, 11],
        "Proposition": [1, 2, 7, 9, 12, 15, 16],
        "Corollary": [3, 6, 8, 10, 13],
        "Lemma": [14],
        "Remark": [2, 3, 4, 5, 6, 7],
    },
}


def numbers(text, kind):
    """The numbers after "Theorem", "Theorems", with lists and ranges spelled out."""
    for listed in re.findall(rf"{kind}s? ((?:\d+(?:, | and | to )?)+)", text):
        words = re.findall(r"\d+|to", listed)
        for i, word in enumerate(words):
            if word == "to":
                yield from range(int(words[i - 1]), int(words[i + 1]) + 1)
            else:
                yield int(word)


@pytest.mark.parametrize("start", sorted(NUMBERED))
def test_every_numbered_item_is_listed(start):
    (paper,) = [paper for paper in PAPERS if paper.title.startswith(start)]
    text = "; ".join(entry.item for entry in paper.entries)
    for kind, wanted in NUMBERED[start].items():
        missing = set(wanted) - set(numbers(text, kind))
        assert not missing, f"{kind} {sorted(missing)}"


def test_the_page_is_current_and_printed_where_the_package_is_run(capsys):
    committed = PAGE.read_text(encoding="utf-8")
    assert committed == papers_page(), f"run: python -m toprank.reproduce.glance > {PAGE}"
    runpy.run_module("toprank.reproduce.glance", run_name="__main__")
    assert capsys.readouterr().out == committed
