"""Count the cases behind each promise of docs/promises.md, and write the counts into it.

    python benchmarks/promises.py      runs every test file that the page names, but for slow tests

A case is one parametrised test, one example of hypothesis, one program of a state machine, or,
where a test tries many in a loop, what it reports by ``record_property("cases", n)``. A test that
fails stops the count: the page is left as it was.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis.stateful import RuleBasedStateMachine

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "promises.md"
#: A row of a table: what stands before the count, the tests named there, the count.
ROW = re.compile(r"^(\|.*`(tests/[\w/]+(?:\.py)?)`.*\|)[^|]*\|$")


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


def counted(paths: list[str]) -> Counter[str]:
    """The cases of each file; the first failure ends the program."""
    cases = Cases()
    options = ["-q", "-x", "-n0", "--import-mode=importlib", "-o", "addopts=", "-m", "not slow"]
    # this program has imported hypothesis before pytest could rewrite it
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    if pytest.main([*options, *paths], plugins=[cases]) != pytest.ExitCode.OK:
        sys.exit("A test failed: nothing was counted.")
    return cases.of


def filled(page: str, found: Counter[str]) -> str:
    """The page with the counts that were taken."""

    def row(line: str) -> str:
        match = ROW.match(line)
        if not match:
            return line
        before, path = match.groups()
        total = sum(n for file, n in found.items() if file == path or file.startswith(f"{path}/"))
        return f"{before} {total:,} |"

    return "\n".join(row(line) for line in page.split("\n"))


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    paths = sorted({match[2] for line in page.split("\n") if (match := ROW.match(line))})
    PAGE.write_text(filled(page, counted(paths)), encoding="utf-8")


if __name__ == "__main__":
    main()
