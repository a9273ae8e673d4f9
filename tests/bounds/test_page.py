"""The page docs/bounds.md: its Python runs and prints what it says."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "bounds.md"
NUMBER = re.compile(r"\d+\.\d+(?:e[+-]\d+)?")


def test_the_python_runs_and_prints_what_the_page_says(capsys):
    text = PAGE.read_text(encoding="utf-8")
    found = re.findall(r"^```(python|text)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    assert [language for language, _ in found] == ["python", "text"] * 3
    for (_, code), (_, said) in zip(found[::2], found[1::2], strict=True):
        exec(compile(code, str(PAGE), "exec"), {})
        printed = capsys.readouterr().out
        assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", said).split()
        numbers = [[float(x) for x in NUMBER.findall(part)] for part in (printed, said)]
        assert numbers[0] == pytest.approx(numbers[1], rel=1e-3)
