"""The Hessian over bins of scores is that of the double loop where every row has its own bin."""

import numpy as np
import pytest

from toprank.losses import LOSSES, get_loss
from toprank.objective.binned_curvature import BinnedRows, BinnedSums
from toprank.objective.power_root import is_square

POSITIVE = np.arange(40) % 3 == 0
SHARE = np.where(POSITIVE, 1 / np.sum(POSITIVE), 1 / np.sum(~POSITIVE))


def root_of(scores, loss, p):
    """The root of the price over all pairs, by its definition."""
    a, b = scores[POSITIVE], scores[~POSITIVE]
    heights = loss.value(a[None, :] - b[:, None]) @ SHARE[POSITIVE]
    return float(np.sum(SHARE[~POSITIVE] * heights**p) ** (1 / p))


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("p", [1.0, 4.0])
def test_rows_in_bins_of_their_own_have_the_hessian_of_all_pairs(loss, p):
    rng = np.random.default_rng(0)
    X = np.column_stack([0.0487 * rng.permutation(40), rng.normal(size=(40, 2))])
    loss, coef = get_loss(loss), np.array([1.0, 0.0, 0.0])
    binned = BinnedRows.of(X @ coef, POSITIVE, SHARE, loss, p)
    assert len(np.unique(binned.bin)) == 40
    sums = np.zeros((40, 3))
    np.add.at(sums, binned.bin, SHARE[:, None] * X)
    found = binned.pairs.hessian(sums, X.T @ (binned.weight[:, None] * X))
    step = 1e-3 * np.eye(3)
    wanted = [
        [
            sum(
                i * j * root_of(X @ (coef + i * a + j * b), loss, p)
                for i in (-1, 1)
                for j in (-1, 1)
            )
            / 4e-6
            for b in step
        ]
        for a in step
    ]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-3 * np.max(np.abs(wanted)))


def test_sums_of_two_blocks_are_added_kind_by_kind():
    assert BinnedSums(None, 3).merge((1.0, 10.0), (2.0, 20.0)) == (3.0, 30.0)


def test_only_squares_of_a_margin_are_summed_as_squares():
    assert {name for name in LOSSES if is_square(get_loss(name))} == {"squared_hinge"}
