"""The night runs every slow test, every paper and enough problems; no promise waits for it."""

import ast
import json
import re
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

from toprank.reproduce import NAMES

ROOT = Path(__file__).resolve().parents[1]
if not (ROOT / ".ci" / "nightly").is_file():
    pytest.skip("the scripts are not in this copy of the tests", allow_module_level=True)


@pytest.fixture(scope="module")
def nightly():
    loader = SourceFileLoader("nightly", str(ROOT / ".ci" / "nightly"))
    module = module_from_spec(spec_from_loader("nightly", loader))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "nightly", module)
        loader.exec_module(module)
        yield module


def marks_of(path):
    """The tests of a file, each with its decorators and those of its class."""
    found = {}
    stack = [(node, []) for node in ast.parse(path.read_text(encoding="utf-8")).body]
    while stack:
        node, marks = stack.pop()
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            marks = [*marks, *map(ast.unparse, node.decorator_list)]
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                found[node.name] = marks
            elif isinstance(node, ast.ClassDef):
                is_machine = "TestCase" in "".join(map(ast.unparse, node.bases))
                if is_machine and node.name.startswith("Test"):
                    found[node.name] = marks
                stack += [(inner, marks) for inner in node.body]
    return found


def test_every_file_with_slow_tests_has_a_stage(nightly):
    commands = " ".join(" ".join(stage.command) for stage in nightly.stages(0))
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if "mark.slow" not in path.read_text(encoding="utf-8"):
            continue
        if any("mark.slow" in "".join(marks) for marks in marks_of(path).values()):
            assert str(path.relative_to(ROOT)) in commands


def test_every_paper_is_computed_again_by_a_stage_or_by_level_1(nightly):
    quick = re.search(r"^QUICK = (.*)$", (ROOT / nightly.REPRODUCE).read_text(), re.MULTILINE)
    assert set(nightly.PAPERS) | set(ast.literal_eval(quick[1])) == set(NAMES)


def test_a_night_draws_a_hundred_thousand_problems(nightly):
    text = (ROOT / "tests/stress/test_fuzzed_problems.py").read_text()
    promises = {"OF_ANY": 7, "OF_CONVEX": 3, "REFUSALS": 2}
    each = re.findall(r"promise\", (\w+)\)\n@given.*\n@settings\(max_examples=(\d+) \* T", text)
    drawn = sum(promises[name] * int(count) * nightly.FUZZ_TIMES for name, count in each)
    assert len(each) == 4 and drawn >= 100_000


def test_a_seed_that_is_given_reaches_every_stage_that_draws(nightly):
    drawing = [s for s in nightly.stages(7) if "--hypothesis-profile=night" in s.command]
    assert len(drawing) > 10
    assert all("--hypothesis-seed=7" in stage.command for stage in drawing)


def test_stages_have_different_names_and_known_environments(nightly):
    for small in (False, True):
        stages = nightly.stages(0, small)
        assert len({stage.name for stage in stages}) == len(stages)
        assert {stage.environment for stage in stages} == set(nightly.ENVIRONMENTS)


def test_a_page_is_read_as_it_was_written(nightly, monkeypatch, tmp_path):
    monkeypatch.setattr(nightly, "PAGE", tmp_path / "nightly.md")
    monkeypatch.setattr(nightly, "KEPT", tmp_path)
    nightly.PAGE.write_text("## Coverage\n\nof another night\n")
    every = nightly.stages(11)
    found = {
        stage.name: {"title": stage.title, "commit": "0123456789ab", "day": "2026-11-17",
                     "status": number % 3, "seconds": 4.0, "says": f"a | b {number}"}
        for number, stage in enumerate(every[:-1])
    }  # fmt: skip
    nightly.write_page(11, every, found, tmp_path / "coverage")
    page = nightly.PAGE.read_text()
    assert nightly.read_page(page) == {"seed": 11, "found": found}
    assert page.endswith("## Coverage\n\nof another night\n")
    assert f"Not run:\n\n- {every[-1].title}\n" in page


def test_the_table_of_coverage_has_columns_for_what_was_measured(nightly, monkeypatch, tmp_path):
    monkeypatch.setattr(nightly, "commit_of", lambda what: "0123456789ab")

    def report(column, **lines):
        summary = {"num_statements": 10, "covered_branches": 1, "num_branches": 4}
        files = {
            f"src/toprank/{room}/{file}.py": {"summary": {**summary, "covered_lines": covered}}
            for room in ("metrics", "report")
            for file, covered in {**lines, "seen_by_numba_kernels": 0}.items()
        }
        (tmp_path / f"{column}.json").write_text(json.dumps({"files": files}))

    report("the rooms' own tests", curves=5, tables=6)
    report("every level", curves=9, tables=10)
    for name in ("rooms", "cluster-dask", "rooms.host.123"):
        (tmp_path / name).touch()
    head, told, *rows = [line for line in nightly.coverage_by_room(tmp_path) if line]
    assert head == "## Coverage" and "`0123456789ab`" in told
    assert told.endswith("Every level: also the stages `cluster-dask`.")
    assert rows[0].count("lines, ") == rows[0].count("branches, ") == 2
    assert "| metrics | 55.0% | 25.0% | 95.0% | 25.0% |" in rows
    assert "| report |  |  | 95.0% | 25.0% |" in rows  # of its own tests nothing is said


def test_every_promise_has_a_test_that_each_change_waits_for():
    page = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
    files = re.findall(r"\| `(tests/\S+\.py)` \|", page)
    assert len(files) > 20
    for name in files:
        later = {"pytest.mark.more", "pytest.mark.slow"}
        assert any(later.isdisjoint(marks) for marks in marks_of(ROOT / name).values()), name
