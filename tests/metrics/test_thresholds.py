"""Thresholds that meet a constraint on the rows at hand."""

import numpy as np
import pytest

from toprank.metrics import precision_at_recall, recall_at_precision, threshold_for


def rows(seed=0, n=200):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    return y, np.round(rng.normal(size=n) + y, 1), rng.integers(0, 3, n)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("share", [0.3, 0.5, 0.8, 1.0])
def test_the_threshold_has_the_precision_and_recall_that_the_metrics_say(seed, share):
    y, s, w = rows(seed)
    for constraint in ("precision", "recall"):
        cut = threshold_for(y, s, sample_weight=w, **{constraint: share})
        taken = s >= cut
        found = np.sum(w[taken & y])
        recall = found / np.sum(w[y])
        if constraint == "recall":
            assert recall >= share - 1e-12
            expected = precision_at_recall(y, s, share, sample_weight=w)
            assert found / np.sum(w[taken]) == pytest.approx(expected)
        else:
            assert recall == pytest.approx(recall_at_precision(y, s, share, sample_weight=w))
            assert cut == np.inf or found / np.sum(w[taken]) >= share - 1e-12


def test_where_no_threshold_is_precise_enough_nothing_is_taken():
    y, s = [0, 1, 0, 1], [4.0, 3.0, 2.0, 1.0]
    assert recall_at_precision(y, s, 0.9) == 0.0
    assert threshold_for(y, s, precision=0.9) == np.inf


def test_one_constraint_is_wanted():
    for given in ({}, {"precision": 0.5, "recall": 0.5}):
        with pytest.raises(ValueError, match="one of the two"):
            threshold_for([0, 1], [0.0, 1.0], **given)
    with pytest.raises(ValueError, match="recall=0: expected a share"):
        threshold_for([0, 1], [0.0, 1.0], recall=0)
