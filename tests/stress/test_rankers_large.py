"""A million rows with one positive, or one negative, get finite scores that put it in its place."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import toprank

RANKERS = {
    "PNormPush": toprank.PNormPush(),
    "p of a thousand": toprank.PNormPush(1000.0),
    "largest height": toprank.PNormPush(np.inf, loss="squared_hinge"),
    "logistic loss": toprank.PNormPush(loss="logistic"),
    "IRPush": toprank.IRPush(),
    "ProperRanker": toprank.ProperRanker(),
    "PairRanker": toprank.PairRanker(),
    "RankBoost": toprank.RankBoost(10),
    "AdaBoostRanker": toprank.AdaBoostRanker(10),
    "PushTrees": toprank.PushTrees(n_estimators=5, early_stopping=False, n_jobs=2),
}


def rows(n, rare):
    """Rows of which one, of the class named, stands out by six standard deviations."""
    X = np.random.default_rng(0).normal(size=(n, 3))
    y = np.full(n, 1 - rare)
    y[n // 3] = rare
    X[n // 3] = 6.0 if rare else -6.0
    return X, y


@pytest.mark.parametrize(
    "n",
    [
        2,
        3,
        100,
        pytest.param(10**5, marks=pytest.mark.slow),
        pytest.param(10**6, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("rare", [1, 0], ids=["one positive", "one negative"])
@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", RANKERS)
def test_the_one_row_that_stands_out_is_put_in_its_place(name, rare, n):
    X, y = rows(n, rare)
    if name == "PushTrees" and n < 100:
        pytest.skip("a tree does not split a handful of rows")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # separable, and said to be
        ranker = clone(RANKERS[name]).fit(X, y)
    scores = getattr(ranker, "decision_function", ranker.predict)(X)
    assert np.all(np.isfinite(scores))
    others = np.delete(scores, n // 3)
    if rare:
        assert scores[n // 3] >= np.max(others)
    else:
        assert scores[n // 3] <= np.min(others)
