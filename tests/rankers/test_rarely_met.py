"""What rankers meet rarely, each in a small case."""

import numpy as np
import pytest

from toprank import PNormPush, PushRanker, PushTrees


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, (X[:, 0] + rng.logistic(size=120) > 1).astype(int)


@pytest.mark.parametrize("p", [2.0, 4.0])
def test_a_weight_of_the_bottoms_sum_is_one_of_its_mean_times_the_power_of_the_classes(rows, p):
    X, y = rows
    both = {"p": p, "end": "both", "alpha": 1e-2, "tol": 1e-9}
    sums = PushRanker(**both, balance=0.5, balance_of="sums").fit(X, y)
    more = (np.sum(y == 0) / np.sum(y == 1)) ** (p - 1)
    means = PushRanker(**both, balance=0.5 * more).fit(X, y)
    np.testing.assert_allclose(sums.coef_, means.coef_, rtol=1e-6)


def test_the_largest_height_has_no_sums_to_balance(rows):
    with pytest.raises(ValueError, match=r"balance_of='sums' has no meaning with price='max'"):
        PushRanker(price="max", end="both", balance_of="sums").fit(*rows)


def test_labels_of_other_rows_are_refused(rows):
    X, y = rows
    ranker = PNormPush().fit(X, y)
    with pytest.raises(ValueError, match="y has 119 labels, expected one per row of X: 120"):
        ranker._positives(y[:-1], 120)


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("binary_logloss", "measures probabilities"),
        ("rank of rows", "expected one of auc|expected"),
    ],
)
def test_a_metric_that_orders_no_rows_is_refused_by_name(rows, metric, said):
    pytest.importorskip("lightgbm", reason="trees need LightGBM")
    X, y = rows
    with pytest.raises(ValueError, match=said):
        PushTrees(2).fit(X, y, eval_set=(X, y), eval_metric=metric)
