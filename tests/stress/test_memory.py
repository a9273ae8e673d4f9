"""Memory does not grow from fit to fit: neither objects nor bytes are left behind.

Objects are counted by the garbage collector, bytes as the resident set of the process.
"""

import gc
import os
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from toprank import (
    AdaBoostRanker,
    LabelRanker,
    PairRanker,
    PNormPush,
    PNormPushCV,
    ProperRanker,
    PushTrees,
    RankBoost,
    inference,
    metrics,
)
from toprank.blocks import from_arrays

STATM = Path("/proc/self/statm")

RANKERS = {
    "PNormPush": PNormPush(n_jobs=2),
    "coordinate": PNormPush(solver="coordinate", max_iter=5),
    "logistic": PNormPush(loss="logistic", max_iter=5),
    "p = inf": PNormPush(p=np.inf, max_iter=5),
    "ProperRanker": ProperRanker(),
    "PNormPushCV": PNormPushCV(ps=(4,), alphas=(0.1,), cv=2, test_size=None),
    "RankBoost": RankBoost(5, n_jobs=2),
    "AdaBoostRanker": AdaBoostRanker(5),
    "LabelRanker": LabelRanker(5),
    "PairRanker": PairRanker(max_iter=5),
    "PairRanker kernel": PairRanker(kernel="rbf", n_components=9, max_iter=5),
    "LightGBM": PushTrees(n_estimators=2, max_leaves=4),
    "XGBoost": PushTrees(n_estimators=2, max_leaves=4, backend="xgboost"),
}
NEEDS = {"LightGBM": "lightgbm", "XGBoost": "xgboost"}
WARM_UP = 3


def problem(seed, n=60):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X, (X[:, 0] + rng.standard_normal(n) > 0).astype(int)


def action_of(name):
    if name == "fit_blocks":
        return lambda seed: PNormPush().fit_blocks(from_arrays(*problem(seed), block_rows=20))
    if name == "a failed fit":
        return failed_fit
    if name == "metrics and intervals":
        return measured
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"{name} needs {NEEDS[name]}")
    return lambda seed: clone(RANKERS[name]).fit(*problem(seed)).predict(problem(seed)[0])


def failed_fit(seed):
    X, _ = problem(seed)
    with pytest.raises(ValueError):
        PNormPush(n_jobs=2).fit(X, np.ones(len(X)))


def measured(seed):
    X, y = problem(seed)
    metrics.summary(y, X[:, 0])
    inference.interval("bedroc", y, X[:, 0], n_resamples=20, random_state=0, n_jobs=2)


OTHERS = ["fit_blocks", "a failed fit", "metrics and intervals"]
ACTIONS = [*RANKERS, *OTHERS]
#: Those whose ways through the library differ; the slow test takes all.
FEW = ["PNormPush", "RankBoost", "PairRanker", "LightGBM", "XGBoost", *OTHERS]


def repeat(action, times):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for seed in range(times):
            action(seed)
    gc.collect()


def resident_bytes():
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("name", FEW)
def test_fits_leave_no_objects_behind(name, record_property):
    times = 15
    record_property("cases", times)
    action = action_of(name)
    repeat(action, WARM_UP)
    before = len(gc.get_objects())
    repeat(action, times)
    assert len(gc.get_objects()) - before < times


@pytest.mark.slow
@pytest.mark.skipif(not STATM.exists(), reason="the resident set is read from /proc")
@pytest.mark.parametrize("name", ACTIONS)
def test_a_thousand_fits_take_no_more_memory_than_a_hundred(name, record_property):
    times = 1000
    record_property("cases", times)
    action = action_of(name)
    repeat(action, 100)
    resident, objects = resident_bytes(), len(gc.get_objects())
    repeat(action, times)
    grown, left = resident_bytes() - resident, len(gc.get_objects()) - objects
    tracemalloc.start()
    repeat(action, WARM_UP)
    first = tracemalloc.get_traced_memory()[0]
    repeat(action, 100)
    traced = tracemalloc.get_traced_memory()[0] - first
    tracemalloc.stop()
    record_property("bytes_a_fit", grown / times)
    print(
        f"\n{name}: {grown / times:.0f} bytes resident, {left / times:.3f} objects a fit, ", end=""
    )
    print(f"{traced / 100:.0f} bytes traced a fit")
    assert grown < 4_000_000 and left < 100 and traced < 100 * 200
