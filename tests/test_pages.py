"""The pages of docs/: their Python runs and prints what they say."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "docs"
PAGES = sorted(
    str(page.relative_to(FOLDER))
    for pattern in ("*.md", "rankers/*.md")
    for page in FOLDER.glob(pattern)
)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]\d+)?")
#: Their examples take a second or more; what they show has shorter ones in its docstring.
LONG = {
    *("pictures.md", "report.md", "rankers/ada_boost.md", "rankers/pnorm_push_cv.md"),
    *("rankers/push_ensemble.md", "rankers/smooth_margin.md"),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.more] * (name in LONG)) for name in PAGES]
)
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
        place = (FOLDER / name).parent / target
        assert place.exists(), f"docs/{name} links to {target}, which is not here"


def test_every_page_is_in_the_table_of_contents():
    contents = (FOLDER / "index.md").read_text(encoding="utf-8").split()
    assert {page.removesuffix(".md") for page in PAGES} - set(contents) == {"index"}


@pytest.mark.parametrize(
    "room",
    [
        *("", ".metrics", ".inference", ".tuning", ".plots", ".report", ".models", ".bounds"),
        ".select",
    ],
)
def test_the_reference_lists_every_public_name(room):
    listed = (FOLDER / "api.md").read_text(encoding="utf-8").split()
    module = importlib.import_module(f"toprank{room}")
    public = {name for name in module.__all__ if callable(getattr(module, name))}
    assert public <= set(listed), f"docs/api.md lacks {sorted(public - set(listed))}"
