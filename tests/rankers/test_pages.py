"""The pages docs/pairs.md and docs/proper.md: their Python runs and prints what they say."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
NUMBER = re.compile(r"\d+\.\d*(?:e[+-]\d+)?")


def snippets(page):
    """The page's pieces of Python, each with the text printed below it."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r"^```(python|text)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    assert [language for language, _ in found] == ["python", "text"] * (len(found) // 2)
    return [(code, said) for (_, code), (_, said) in zip(found[::2], found[1::2], strict=True)]


@pytest.mark.parametrize(("page", "count"), [("pairs.md", 3), ("proper.md", 3)])
def test_the_python_runs_and_prints_what_the_page_says(page, count, capsys):
    pieces = snippets(page)
    assert len(pieces) == count
    for code, said in pieces:
        exec(compile(code, page, "exec"), {})
        printed = capsys.readouterr().out
        assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", said).split()
        numbers = [[float(x) for x in NUMBER.findall(part)] for part in (printed, said)]
        # the last digits are another machine's
        assert numbers[0] == pytest.approx(numbers[1], rel=0.02, abs=2e-3)
