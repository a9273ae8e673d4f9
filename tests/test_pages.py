"""The pages of docs/: their Python runs and prints what they say."""

import doctest
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "docs"
PAGES = sorted(page.name for page in FOLDER.glob("*.md"))
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]\d+)?")


@pytest.mark.parametrize("name", PAGES)
def test_the_python_runs_and_prints_what_the_page_says(name, capsys, tmp_path, monkeypatch):
    text = (FOLDER / name).read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    namespace, printed = {}, ""
    for language, body in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if language == "python" and body.startswith(">>>"):
            example = doctest.DocTestParser().get_doctest(body, namespace, name, name, 0)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            assert runner.run(example, clear_globs=False).failed == 0
            namespace = example.globs
        elif language == "python":
            exec(compile(body, name, "exec"), namespace)
            printed = capsys.readouterr().out
        elif language == "text":
            assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", body).split()
            got, said = ([float(x) for x in NUMBER.findall(part)] for part in (printed, body))
            # the last digits may be another machine's
            assert got == pytest.approx(said, rel=0.01, abs=2e-3)


@pytest.mark.parametrize("name", PAGES)
def test_every_local_link_of_a_page_leads_somewhere(name):
    text = (FOLDER / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (FOLDER / target).exists(), f"docs/{name} links to {target}, which is not here"
