"""The pages of docs/: their Python runs and prints what they say."""

import ast
import doctest
import importlib
import importlib.util
import os
import re
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "docs"
#: What a build of the site writes among its sources.
BUILT = {"_build", "gallery", "generated", "by_job"}
PAGES = sorted(
    page.relative_to(FOLDER).as_posix()
    for page in FOLDER.rglob("*.md")
    if BUILT.isdisjoint(page.relative_to(FOLDER).parts)
)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]\d+)?")
#: Their examples take a second or more; what they show has shorter ones in its docstring.
LONG = {
    *(
        "reference/pictures.md",
        "how_to/report.md",
        "reference/rankers/ada_boost.md",
        "reference/rankers/pnorm_push_cv.md",
    ),
    *("reference/rankers/push_ensemble.md", "reference/rankers/smooth_margin.md"),
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
    listed = {"index"}
    for index in (name for name in PAGES if name.endswith("index.md")):
        text = (FOLDER / index).read_text(encoding="utf-8")
        for body in re.findall(r"^```{toctree}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            entries = [line for line in body.split("\n") if line and not line.startswith(":")]
            folder = os.path.dirname(index)
            listed |= {os.path.normpath(os.path.join(folder, entry)) for entry in entries}
    assert {page.removesuffix(".md") for page in PAGES} <= listed


@pytest.mark.parametrize(
    "room",
    [
        *("", ".metrics", ".inference", ".tuning", ".plots", ".report", ".models", ".bounds"),
        ".select",
    ],
)
def test_the_reference_lists_every_public_name(room):
    listed = (FOLDER / "reference" / "api.md").read_text(encoding="utf-8").split()
    module = importlib.import_module(f"toprank{room}")
    public = {name for name in module.__all__ if callable(getattr(module, name))}
    assert public <= set(listed), f"docs/reference/api.md lacks {sorted(public - set(listed))}"


def test_a_page_that_moved_is_reached_from_its_old_address():
    pytest.importorskip("sphinx", reason="the redirects are written by the docs' extension")
    module = load_extension("moved_pages")
    for old, new in module.moved().items():
        assert not (FOLDER / f"{old}.md").exists(), f"docs/{old}.md is a page again"
        assert (FOLDER / f"{new}.md").exists(), f"docs/{new}.md is not here"


def load_extension(name):
    """A module of docs/_extensions."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / "_extensions" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_every_message_of_the_code_is_on_the_page_of_errors():
    extension = load_extension("error_messages")
    messages = extension.collect()
    assert len(messages) > 800
    lost = {one.module for one in messages if extension.family_of(one.module) is None}
    assert not lost, f"no family has the messages of {sorted(lost)}"
    page = (FOLDER / "reference" / "errors.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```{error-messages} (\w+)$", page, re.MULTILINE)
    assert sorted(shown) == sorted(extension.FAMILIES)
    for family in shown[:-1]:  # the last is the package's own
        before = page.split(f"```{{error-messages}} {family}\n")[0].rpartition("\n## ")[2]
        assert "| what to do |" in before or "what to do" in before, f"{family} has no remedy"


@pytest.mark.parametrize("folder", ["tutorials", "examples"])
def test_every_example_begins_with_a_title(folder):
    scripts = sorted((FOLDER.parent / folder).glob("*.py"))
    assert scripts
    for script in scripts:
        lines = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))).splitlines()
        assert set(lines[1]) == {"="}, f"{folder}/{script.name}: the site needs a title, underlined"
