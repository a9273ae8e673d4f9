"""Members are fitted to other rows with the weights kept; light ones are left out."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from toprank import PushEnsemble
from toprank.folds import Scoring
from toprank.pairs import Rows
from toprank.rankers.ensemble.weighing import weigh

MEMBERS = [("linear", LogisticRegression()), ("bayes", GaussianNB())]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    return X, (X[:, 0] + rng.normal(size=400) > 1).astype(int)


def test_members_learn_from_the_new_rows_and_keep_their_weights(rows):
    X, y = rows
    ensemble = PushEnsemble(MEMBERS, cv=3).fit(X[:300], y[:300])
    weights, choice, table = ensemble.weights_, ensemble.choice_, ensemble.member_table_
    assert ensemble.refit_members(X, y) is ensemble
    assert ensemble.weights_ is weights
    assert ensemble.choice_ is choice
    assert ensemble.member_table_ is table
    assert len(ensemble.oof_decision_) == 300
    for name, member in ensemble.members_:
        alone = clone(dict(MEMBERS)[name]).fit(X, y)
        np.testing.assert_allclose(member.predict_proba(X), alone.predict_proba(X))


def test_after_a_refit_new_members_are_weighed_on_the_rows_of_the_fit(rows):
    X, y = rows
    ensemble = PushEnsemble(MEMBERS[:1], cv=3).fit(X[:300], y[:300]).refit_members(X, y)
    ensemble.partial_refit(X[:300], y[:300], MEMBERS[1:])
    assert set(ensemble.weights_) == {"linear", "bayes"}


def test_a_refit_to_other_classes_is_refused(rows):
    X, y = rows
    ensemble = PushEnsemble(MEMBERS, cv=3).fit(X, y)
    with pytest.raises(ValueError, match="those of the fit were"):
        ensemble.refit_members(X, y + 1)


def test_members_that_weigh_little_are_left_out_and_the_others_weighed_again():
    rng = np.random.default_rng(3)
    y = rng.random(600) < 0.3
    good = y + rng.normal(size=600)
    scores = np.column_stack([good, 0.2 * y + rng.normal(size=600)])
    folds = [(np.flatnonzero(np.arange(600) % 3 != j), np.arange(j, 600, 3)) for j in range(3)]
    given = (Rows(scores, y), ["strong", "weak"], folds, Scoring("average_precision"), ())
    options = {"p": 4.0, "ordered": False, "level": 0.95}
    both = weigh(*given, **options)
    share = both.weights["weak"] / both.weights["strong"]
    assert 0 < share < 1
    kept = weigh(*given, **options, least=0.5 * share)
    assert kept.weights == both.weights
    pruned = weigh(*given, **options, least=2 * share)
    assert pruned.weights["weak"] == 0
    assert pruned.chosen.columns == (0,)
    assert len(pruned.fitted.coef_.reshape(-1)) == 1
