"""The README: its two commands are there, and its Python runs and prints what it says."""

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = ("pip install '.[cli]' && toprank demo", "pip install '.[test]' && pytest")
NUMBER = re.compile(r"\d+\.\d+")


@pytest.fixture(scope="module")
def readme():
    return (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(text, *languages):
    """The code blocks of these languages, in order: pairs of language and content."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [(language, body) for language, body in found if language in languages]


def test_the_two_commands_are_the_only_shell_commands(readme):
    assert [body.strip() for _, body in blocks(readme, "sh")] == list(COMMANDS)


def test_the_python_runs_and_prints_what_the_readme_says(readme, capsys, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    namespace, printed, snippets = {}, "", 0
    for language, body in blocks(readme, "python", "text"):
        if language == "python":
            exec(compile(body, "README.md", "exec"), namespace)
            printed, snippets = capsys.readouterr().out, snippets + 1
        else:
            assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", body).split()
            # The last row of the top 1% may change with the machine's rounding.
            got, said = ([float(x) for x in NUMBER.findall(text)] for text in (printed, body))
            np.testing.assert_allclose(got, said, atol=0.02)
    assert snippets > 0


def test_every_local_link_leads_somewhere(readme):
    targets = re.findall(r"\]\(([^)#:]+)\)", readme)
    assert targets
    for target in targets:
        assert (ROOT / target).exists(), f"README.md links to {target}, which is not here"


def test_the_picture_is_small_enough_to_keep(readme):
    assert (ROOT / "docs/images/demo.png").stat().st_size < 150_000
