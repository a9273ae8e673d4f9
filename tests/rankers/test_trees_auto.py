"""p="auto": the candidates of a fold share its bins, and nothing else changes."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from toprank import PushTrees
from toprank.rankers.trees import auto, libraries
from toprank.rankers.trees.libraries import bins_once
from toprank.rankers.trees.plan import TreePlan, TreeRows

BACKENDS = {"lightgbm": "_lightgbm_data", "xgboost": "_xgboost_data"}


def rows(n=240):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    X[::7, 1] = np.nan
    return X, X[:, 0] + rng.logistic(size=n) > 1.0, rng.integers(0, 3, n)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
def test_each_fold_is_binned_once_and_scored_as_if_it_were_not(backend, weighted, monkeypatch):
    pytest.importorskip(backend)
    X, y, weight = rows()
    make, made = getattr(libraries, BACKENDS[backend]), []

    def count(library, given, *rest):
        made.append(len(given.y))
        return make(library, given, *rest)

    monkeypatch.setattr(libraries, BACKENDS[backend], count)
    settings = {"n_estimators": 4, "subsample": 0.7, "random_state": 0, "calibration": "training"}
    trees = PushTrees("auto", backend=backend, ps=(1.0, 8.0), cv=3, **settings)
    once = trees.fit(X, y, weight if weighted else None).choice_.fold_scores
    assert len([n for n in made if n]) == 3 + 1  # the folds, and all rows for the p chosen
    monkeypatch.setattr(auto, "bins_once", nullcontext)
    anew = trees.fit(X, y, weight if weighted else None).choice_.fold_scores
    np.testing.assert_array_equal(once, anew)


def test_other_rows_weights_starts_or_settings_are_binned_anew():
    made = []
    X, y, weight = rows()
    plan = TreePlan(3, 0.1, 15, None, 1, 1.0, 1.0, 1.0, 1.0, 255, 0, 1)
    variants = [
        TreeRows(X, y),
        TreeRows(X[::-1], y),
        TreeRows(X, ~y),
        TreeRows(X, y, weight),
        TreeRows(X, y, start=np.zeros(len(y))),
    ]

    def make(*given):
        made.append(given)
        return given

    with bins_once():
        for given in variants:
            for _ in range(2):
                libraries._binned_once(None, make, given, plan)
        libraries._binned_once(None, make, given, replace(plan, max_bins=63))
    assert len(made) == len(variants) + 1
    libraries._binned_once(None, make, given, plan)
    libraries._binned_once(None, make, given, plan)
    assert len(made) == len(variants) + 3  # nothing is kept outside
