"""A process killed at any moment while it writes leaves the old file or the whole new one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="writers are forked and killed")


@pytest.fixture
def attack(tmp_path):
    """The program fuzz.killing, in a process of its own: a large one forks too slowly."""
    for module in ("skops", "typer", "pyarrow", "matplotlib"):
        pytest.importorskip(module, reason="models, tables and pages are among what is written")

    def run(*numbers):
        command = [sys.executable, "-m", "fuzz.killing", str(tmp_path), *map(str, numbers)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def check(found, kills, crashes):
    assert found["torn"] == []
    assert found["kills"] == kills
    # the attack must hit: writers that died with a file half written, and at the very byte
    assert sum(found["in_the_middle"].values()) >= kills // 20
    assert found["crashes"] >= 0.9 * crashes


def test_writers_killed_at_random_leave_whole_files(attack, record_property):
    found = attack(19, 20, 1, "lists")  # so few that none need die in the middle
    record_property("cases", found["kills"] + found["crashes"])
    check(found, 19, 20)


@pytest.mark.more
def test_two_hundred_writers_killed_at_random_leave_whole_files(attack, record_property):
    found = attack(200, 60, 0)
    record_property("cases", found["kills"] + found["crashes"])
    check(found, 200, 60)
