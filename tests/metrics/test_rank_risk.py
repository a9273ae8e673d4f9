"""Sums over the positives of any function of their ranks (Rudin 2009, Section 7)."""

import numpy as np
import pytest

from toprank.metrics import aver, dcg, push_risk, rank_risk, ranks, reverse_heights

RNG = np.random.default_rng(0)
Y = RNG.random(60) < 0.4
S = np.round(RNG.normal(size=60) + Y, 1)  # with ties
W = RNG.integers(0, 3, size=60).astype(float) + (np.arange(60) < 3)


@pytest.mark.parametrize("weight", [None, W], ids=["plain", "weighted"])
def test_named_discounts_are_the_named_metrics(weight):
    given = {"sample_weight": weight}
    assert rank_risk(Y, S, lambda r: 1 / r, **given) == pytest.approx(aver(Y, S, **given))
    gain = rank_risk(Y, S, lambda r: 1 / np.log1p(r), **given)
    assert gain == pytest.approx(dcg(Y, S, **given))
    ir = push_risk(Y, S, price="log1p", loss="zero_one", **given)
    assert rank_risk(Y, S, of="reverse_height", **given) == pytest.approx(ir)
    smooth = push_risk(Y, S, price="log1p", **given)
    both = {"of": "reverse_height", "loss": "exponential"}
    assert rank_risk(Y, S, **both, **given) == pytest.approx(smooth)


def test_ranks_and_reverse_heights_are_what_is_priced():
    assert rank_risk(Y, S, np.square) == np.sum(ranks(Y, S) ** 2)
    assert rank_risk(Y, S, np.square, of="reverse_height") == np.sum(reverse_heights(Y, S) ** 2)


def test_with_a_loss_it_is_the_double_loop():
    expected = sum(np.log1p(sum(np.exp(S[x] - S[i]) for x in range(60))) for i in np.flatnonzero(Y))
    assert rank_risk(Y, S, loss="exponential") == pytest.approx(expected)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="'rank' or 'reverse_height'"):
        rank_risk(Y, S, of="height")
    with pytest.raises(ValueError, match="one number per rank"):
        rank_risk(Y, S, lambda r: 1.0)
