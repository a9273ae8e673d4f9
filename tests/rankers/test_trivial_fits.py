"""Fits that score all rows alike say so, and why."""

import warnings

import numpy as np
import pytest

from toprank import PNormPush, PushRanker


def overlapping(shift, n=600):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3 == 0
    return rng.normal(size=(n, 3)) + shift * y[:, None], y


@pytest.mark.parametrize("loss", ["exponential", "logistic", "squared_hinge", "hinge"])
def test_the_highest_negative_alone_ranks_overlapping_classes_not_at_all(loss):
    X, y = overlapping(0.3)
    with pytest.warns(UserWarning, match="list of ties: to push down the highest negative"):
        ranker = PushRanker(price="max", loss=loss).fit(X, y)
    assert np.ptp(ranker.decision_function(X)) < 1e-3


def test_with_a_finite_push_the_same_classes_are_ranked():
    X, y = overlapping(0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ranker = PNormPush(p=64).fit(X, y)
    assert np.ptp(ranker.decision_function(X)) > 1e-3


def test_a_largest_height_that_ranks_says_nothing():
    X, y = overlapping(4.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PNormPush(p=np.inf).fit(X, y)
