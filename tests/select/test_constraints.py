"""p, rounds and settings chosen by what a list must hold, through the names of the metrics."""

import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from toprank import PNormPush, PNormPushCV, PushTrees
from toprank.metrics import recall_at_precision, scorer

WISH = {"precision": 0.8}


@pytest.fixture(scope="module")
def rows():
    return make_classification(600, weights=[0.8], flip_y=0.1, random_state=0)


@pytest.mark.more
def test_p_is_chosen_by_the_recall_at_a_precision(rows):
    X, y = rows
    chosen = PNormPushCV(
        ps=(1, 8), alphas=(1e-3,), scoring="recall_at_precision", scoring_kwargs=WISH, cv=3
    ).fit(X, y)
    assert chosen.p_ in (None, 1, 8)  # None: the classes' probabilities rank better
    expected = recall_at_precision(y, chosen.decision_function(X), **WISH)
    assert chosen.score(X, y) == pytest.approx(expected)


def test_a_grid_is_searched_by_the_precision_at_a_recall(rows):
    X, y = rows
    search = GridSearchCV(
        PNormPush(), {"p": [1, 8]}, scoring=scorer("precision_at_recall", recall=0.5), cv=3
    )
    assert search.fit(X, y).best_params_["p"] in (1, 8)
    assert 0 < search.best_score_ <= 1
    assert scorer("recall_at_precision", **WISH)(LogisticRegression().fit(X, y), X, y) > 0


def test_trees_stop_by_the_recall_at_a_precision(rows):
    pytest.importorskip("lightgbm", reason="trees are grown by the extra lightgbm")
    X, y = rows
    trees = PushTrees(
        n_estimators=40,
        n_iter_no_change=5,
        early_stopping=True,
        metric="recall_at_precision",
        metric_kwargs=WISH,
        backend="lightgbm",
        random_state=0,
    ).fit(X, y)
    assert len(trees.validation_scores_) < 40  # stopped
    assert 0 <= min(trees.validation_scores_) <= max(trees.validation_scores_) <= 1
