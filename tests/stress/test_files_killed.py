"""A process killed at any moment while it writes leaves the old file or the whole new one."""

import importlib
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="writers are forked and killed")


@pytest.fixture(scope="module")
def killing():
    """The program fuzz.killing, which lies in the checkout and is not installed."""
    for module in ("skops", "skrub", "typer", "pyarrow", "matplotlib"):
        pytest.importorskip(module, reason="models, tables and pages are among what is written")
    sys.path.insert(0, str(ROOT))
    try:
        yield importlib.import_module("fuzz.killing")
    finally:
        sys.path.remove(str(ROOT))


def check(found, kills, crashes):
    assert found["torn"] == []
    assert found["kills"] == kills
    # the attack must hit: writers that died with a file half written, and at the very byte
    assert sum(found["in_the_middle"].values()) >= kills // 20
    assert found["crashes"] >= 0.9 * crashes
    assert found["parts_after_the_next_write"] == 0


def test_two_hundred_writers_killed_at_random_leave_whole_files(killing, tmp_path, record_property):
    found = killing.attack(tmp_path, 200, 60, seed=0)
    record_property("cases", found["kills"] + found["crashes"])
    check(found, 200, 60)
