"""How many rounds the held-out rows keep."""

import numpy as np
import pytest

from toprank import PushTrees
from toprank.blocks import from_arrays
from toprank.pairs import Rows
from toprank.rankers.held_out import choose_round, held_out, held_out_if_enough


def test_one_standard_error_keeps_fewer_rounds():
    values = np.array([0.1, 0.5, 0.58, 0.6, 0.59])
    assert choose_round(values, 0.05, "best") == 4
    assert choose_round(values, 0.05, "one_standard_error") == 3
    assert choose_round(values, np.nan, "one_standard_error") == 4


def test_a_floor_of_rounds_is_kept_where_there_are_so_many():
    values = np.array([0.9, 0.5, 0.58, 0.6, 0.59])
    assert choose_round(values, 0.0, "best", 3) == 4
    assert choose_round(values, 0.05, "one_standard_error", 3) == 3
    assert choose_round(values, 0.0, "best", 20) == 5


def test_rows_that_cannot_be_parted_with_both_classes_on_both_sides_are_refused():
    X = np.zeros((30, 1))
    with pytest.raises(ValueError, match="got 29 negatives and 1 positives"):
        held_out(Rows(X, np.arange(30) < 1), 0.2, 0)
    groups = (np.arange(30) < 10).astype(int)
    with pytest.raises(ValueError, match="No split of the rows leaves both classes on both sides"):
        held_out(Rows(X, np.arange(30) < 3, None, groups), 0.5, 0)
    train, test = held_out(Rows(X, np.arange(30) % 3 < 1, None, groups), 0.5, 0)
    assert set(groups[train]).isdisjoint(groups[test])


def test_unasked_ten_rows_of_each_class_are_held_out_or_none():
    X = np.zeros((1000, 1))
    train, test = held_out_if_enough(Rows(X, np.arange(1000) < 100), 0.1, 0)
    assert (len(train), len(test), np.sum(test < 100)) == (900, 100, 10)
    assert held_out_if_enough(Rows(X, np.arange(1000) < 90), 0.1, 0) is None
    assert held_out_if_enough(Rows(X, np.arange(1000) > 0), 0.1, 0) is None
    one_group = Rows(X, np.arange(1000) < 100, None, (np.arange(1000) // 200).astype(int))
    assert held_out_if_enough(one_group, 0.1, 0) is None


@pytest.mark.parametrize("early_stopping", ["auto", True])
@pytest.mark.parametrize(
    ("positives", "how"), [(1, "fit"), (2, "fit"), (5, "fit"), (5, "blocks"), (8, "groups")]
)
def test_many_rows_with_few_positives_are_fitted_unless_some_are_asked_for(
    monkeypatch, early_stopping, positives, how
):
    monkeypatch.setattr("toprank.rankers.trees.estimator._MANY_ROWS", 200)
    X, y = np.random.default_rng(0).normal(size=(250, 2)), np.arange(250) < positives
    trees = PushTrees(4, n_estimators=3, early_stopping=early_stopping, backend="xgboost")
    fit = {
        "fit": lambda: trees.fit(X, y),
        "groups": lambda: trees.fit(X, y, groups=np.arange(250) // 50),
        "blocks": lambda: trees.fit_blocks(from_arrays(X, y)),
    }[how]
    if early_stopping == "auto":
        assert not hasattr(fit(), "validation_scores_") and trees.n_iter_ == 3
    else:
        with pytest.raises(ValueError, match="early_stopping=False"):
            fit()
