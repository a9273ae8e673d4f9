"""Of many rows some are drawn to weigh the members by; the members learn from all."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from toprank import PushEnsemble
from toprank.rankers.ensemble import fit_steps
from toprank.rankers.ensemble.plan import EFFORTS

MEMBERS = [("linear", LogisticRegression()), ("bayes", GaussianNB())]
N, DRAWN = 1200, 300


@pytest.fixture
def rows(monkeypatch):
    fast = replace(EFFORTS["fast"], weighed=DRAWN)
    monkeypatch.setattr(fit_steps, "EFFORTS", {**EFFORTS, "fast": fast})
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    return X, (X[:, 0] + rng.normal(size=N) > 1).astype(int)


def fit(rows, **settings):
    given = {"quality": "fast", "random_state": 0, **settings}
    return PushEnsemble(MEMBERS, **given)


@pytest.mark.more
def test_the_folds_are_of_the_rows_drawn_and_the_members_of_all(rows):
    X, y = rows
    ensemble = fit(rows).fit(X, y)
    known = np.isfinite(ensemble.oof_decision_)
    assert np.count_nonzero(known) == DRAWN
    assert np.mean(y[known]) == pytest.approx(np.mean(y), abs=0.01)
    assert ensemble.score_interval_ is not None
    for name, member in ensemble.members_:
        alone = dict(MEMBERS)[name]
        np.testing.assert_allclose(
            member.predict_proba(X), type(alone)(**alone.get_params()).fit(X, y).predict_proba(X)
        )
    again = fit(rows).fit(X, y)
    np.testing.assert_array_equal(ensemble.decision_function(X), again.decision_function(X))


def test_folds_that_are_asked_for_take_all_rows(rows):
    ensemble = fit(rows, cv=3).fit(*rows)
    assert np.all(np.isfinite(ensemble.oof_decision_))


@pytest.mark.more
def test_groups_stay_whole_and_times_in_order_among_the_rows_drawn(rows):
    groups = np.arange(N) // 4
    ensemble = fit(rows).fit(*rows, groups=groups)
    for train, test in ensemble._folds:
        assert not set(groups[train]) & set(groups[test])
    ordered = fit(rows).fit(*rows, time=np.arange(N))
    for train, test in ordered._folds:
        assert np.max(train) < np.min(test)
