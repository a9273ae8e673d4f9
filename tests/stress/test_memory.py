"""Memory does not grow from fit to fit: neither objects nor bytes are left behind.

The program fuzz.leaks counts them, in a process in which nothing else runs.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.leaks import ACTIONS, STATM

ROOT = Path(__file__).resolve().parents[2]
NEEDS = {"LightGBM": "lightgbm", "XGBoost": "xgboost"}
#: Those whose ways through the library differ; the slow test takes all.
FEW = ["PNormPush", "RankBoost", "PairRanker", *NEEDS, "fit_blocks", "a failed fit"]
FEW += ["metrics and intervals"]


def is_here(name):
    return name not in NEEDS or importlib.util.find_spec(NEEDS[name]) is not None


def left_by(what, times, *names):
    # what measures the coverage of a process leaves objects of its own
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.leaks", what, str(times), *names],
        cwd=ROOT,
        env=plain,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("times", "few"),
    [(4, ["PNormPush", "fit_blocks"]), pytest.param(15, FEW, marks=pytest.mark.more)],
    ids=["two ways", "every way"],
)
def test_fits_leave_no_objects_behind(times, few, record_property):
    names = list(filter(is_here, few))
    record_property("cases", times * len(names))
    left = left_by("objects", times, *names)
    assert {name: left[name] for name in names if left[name] >= times} == {}


@pytest.mark.slow
@pytest.mark.skipif(not STATM.exists(), reason="the resident set is read from /proc")
@pytest.mark.parametrize("name", ACTIONS)
def test_a_thousand_fits_take_no_more_memory_than_a_hundred(name, record_property):
    if not is_here(name):
        pytest.skip(f"{name} needs {NEEDS[name]}")
    times = 1000
    record_property("cases", times)
    left = left_by("memory", times, name)[name]
    record_property("bytes_a_fit", left["resident"])
    print(f"\n{name}: " + ", ".join(f"{value:.3g} {what}" for what, value in left.items()))
    assert left["resident"] < 4_000 and left["objects"] < 0.1 and left["traced"] < 200
