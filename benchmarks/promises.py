"""Count the cases behind each promise of docs/promises.md, and write the counts into it.

    python benchmarks/promises.py             runs every test file that the page names
    python benchmarks/promises.py --slow      and the tests marked slow as well

The page's tables end in two columns of counts, of the default run and of the slow tests. A case
is one parametrised test, one example of hypothesis, one program of a state machine, or, where a
test tries many in a loop, what it reports by ``record_property("cases", n)``. A test that fails
stops the count: the page is left as it was.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis.stateful import RuleBasedStateMachine

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "promises.md"
#: A row of a table: what stands before the counts, the test files named there, the counts.
ROW = re.compile(r"^(\|.*`(tests/[\w/]+(?:\.py)?)`.*\|)([^|]*)\|([^|]*)\|$")


class Cases:
    """A pytest plugin that counts what each test file tried."""

    def __init__(self) -> None:
        self.of: Counter[str] = Counter()
        self.examples = 0

    def count(self) -> None:
        self.examples += 1

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        self.examples = 0
        handle = getattr(getattr(item, "obj", None), "hypothesis", None)
        original = RuleBasedStateMachine.__init__
        RuleBasedStateMachine.__init__ = _counted(original, self.count)
        if handle is not None:
            inner, handle.inner_test = handle.inner_test, _counted(handle.inner_test, self.count)
        try:
            return (yield)
        finally:
            RuleBasedStateMachine.__init__ = original
            if handle is not None:
                handle.inner_test = inner

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            told = sum(int(value) for name, value in report.user_properties if name == "cases")
            path = report.nodeid.split("::")[0]
            self.of[path] += told or self.examples or 1


def _counted(function: Any, count: Any) -> Any:
    def counting(*args: Any, **kwargs: Any) -> Any:
        count()
        return function(*args, **kwargs)

    return counting


def counted(paths: list[str], marker: str) -> Counter[str]:
    """The cases of each file; the first failure ends the program."""
    cases = Cases()
    options = ["-q", "-x", "-n0", "--import-mode=importlib", "-o", "addopts=", "-m", marker]
    code = pytest.main([*options, *paths], plugins=[cases])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        sys.exit("A test failed: nothing was counted.")
    return cases.of


def filled(page: str, counts: list[Counter[str] | None]) -> str:
    """The page with the counts that were taken; a column that was not stays as it is."""

    def row(line: str) -> str:
        match = ROW.match(line)
        if not match:
            return line
        before, path, *old = match.groups()
        cells = [
            old[column] if found is None else f" {_total(found, path)} "
            for column, found in enumerate(counts)
        ]
        return before + "|".join(cells) + "|"

    return "\n".join(row(line) for line in page.split("\n"))


def _total(found: Counter[str], path: str) -> str:
    total = sum(n for file, n in found.items() if file == path or file.startswith(f"{path}/"))
    return f"{total:,}" if total else "–"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--slow", action="store_true", help="run the tests marked slow as well")
    options = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    paths = sorted({match[2] for line in page.split("\n") if (match := ROW.match(line))})
    default = counted(paths, "not slow")
    slow = counted(paths, "slow") if options.slow else None
    PAGE.write_text(filled(page, [default, slow]), encoding="utf-8")


if __name__ == "__main__":
    main()
