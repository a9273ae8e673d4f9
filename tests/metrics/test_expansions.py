"""The influence of a row is what a little more of its weight does to the metric."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.inference.sample import Sample
from toprank.metrics import METRICS
from toprank.metrics.at_cut import discounted_cut, precision_cut, recall_cut, tpr_cut
from toprank.metrics.expansion import Expansion
from toprank.metrics.left_out_expansions import (
    average_precision_expansion,
    average_precision_left_out,
    pnorm_risk_expansion,
)
from toprank.metrics.order import RankedList

SMOOTH = [
    ("auc", {}),
    ("misranking_error", {}),
    ("misranking_error", {"ties": "error"}),
    ("margin_error", {"theta": 0.5}),
    ("margin_error", {"theta": -0.5}),
    ("partial_auc", {"max_fpr": 0.31}),
    ("partial_auc", {"max_fpr": 0.83, "min_fpr": 0.13}),
    ("partial_auc", {"min_tpr": 0.37}),
    ("partial_auc", {"max_fpr": 0.71, "min_tpr": 0.23, "standardize": False}),
]


def samples(smallest=2):
    """Labels with both classes, scores with ties, and weights."""

    def build(n):
        scores = st.lists(st.integers(0, 6), min_size=n, max_size=n)
        labels = st.lists(st.booleans(), min_size=n, max_size=n).filter(
            lambda y: smallest <= sum(y) <= n - smallest
        )
        weights = st.lists(st.floats(0.5, 3), min_size=n, max_size=n)
        return st.tuples(labels, scores, weights)

    return (
        st.integers(2 * smallest, 12)
        .flatmap(build)
        .map(
            lambda drawn: tuple(
                np.array(part, dtype=kind)
                for part, kind in zip(drawn, (bool, float, float), strict=True)
            )
        )
    )


@pytest.mark.parametrize(("name", "options"), SMOOTH)
@given(samples())
def test_influences_are_derivatives_in_the_weights(name, options, drawn):
    positive, scores, weight = drawn
    scores = scores / 2

    def share(w):
        return METRICS[name].expansion(RankedList.rank(positive, scores, w), **options).share

    sample = Sample.of(positive, scores, weight)
    expansion = METRICS[name].expansion(sample.ranked, **options)
    influence = sample.on_rows(expansion.on_positive, expansion.on_negative)
    for row in range(len(scores)):
        step = np.zeros(len(scores))
        step[row] = 1e-6
        up, down = share(weight + step), share(weight - step)
        here = share(weight)
        # a cut that falls exactly on a corner of the curve has two slopes
        if abs((up - here) - (here - down)) > 1e-9:
            continue
        members = positive == positive[row]
        total = weight[members].sum()
        centred = influence[row] - np.dot(weight[members], influence[members]) / total
        assert (up - down) / 2e-6 == pytest.approx(centred / total, abs=2e-5)


@pytest.mark.parametrize(("name", "options"), SMOOTH)
@given(samples())
def test_the_share_reported_is_the_metric(name, options, drawn):
    positive, scores, weight = drawn
    expansion = METRICS[name].expansion(RankedList.rank(positive, scores / 2, weight), **options)
    expected = METRICS[name].function(positive, scores / 2, sample_weight=weight, **options)
    assert expansion.report(expansion.share) == pytest.approx(expected, abs=1e-12)


def average_precision_at(prevalence, high, low):
    """Average precision of tie weights, for a population with this share of positives."""
    right = prevalence * np.cumsum(high) / high.sum()
    noise = (1 - prevalence) * np.cumsum(low) / low.sum()
    with np.errstate(invalid="ignore"):
        precision = np.where(high > 0, right / (right + noise), 0.0)
    return float(np.dot(high, precision) / high.sum())


@given(samples(smallest=2))
def test_average_precision_without_a_row_is_that_of_the_other_rows(drawn):
    positive, scores, _ = drawn
    ranked = RankedList.rank(positive, scores)
    prevalence = float(np.mean(positive))
    value, without_high, without_low = average_precision_left_out(
        ranked.positive, ranked.negative, prevalence
    )
    assert value == pytest.approx(
        average_precision_at(prevalence, ranked.positive, ranked.negative)
    )
    for tie in range(len(ranked.scores)):
        less = np.zeros(len(ranked.scores))
        less[tie] = 1
        if ranked.positive[tie]:
            expected = average_precision_at(prevalence, ranked.positive - less, ranked.negative)
            assert without_high[tie] == pytest.approx(expected, abs=1e-12)
        if ranked.negative[tie]:
            expected = average_precision_at(prevalence, ranked.positive, ranked.negative - less)
            assert without_low[tie] == pytest.approx(expected, abs=1e-12)


@given(samples(smallest=2), st.sampled_from([1.0, 2.0, 4.0, 64.0]), st.sampled_from([0.0, 1.0]))
def test_the_pnorm_risk_is_expanded_by_leaving_out_each_row(drawn, p, margin):
    from toprank.metrics import pnorm_risk as risk

    positive, scores, _ = drawn
    sample = Sample.of(positive, scores)
    expansion = pnorm_risk_expansion(sample.ranked, p, normalize=True, margin=margin)
    influence = sample.on_rows(expansion.on_positive, expansion.on_negative)
    for row in range(len(scores)):
        rest = np.arange(len(scores)) != row
        left = risk(positive[rest], scores[rest], p, normalize=True, margin=margin)
        units = np.sum(positive == positive[row])
        assert influence[row] == pytest.approx(-(units - 1) * left, abs=1e-9)


@pytest.mark.more
def test_taking_the_bias_off_brings_small_samples_to_the_value_of_an_endless_list():
    rng = np.random.default_rng(0)
    y = np.arange(200) < 40
    big = np.arange(1_000_000) < 200_000
    for expand, settings_ in (
        (average_precision_expansion, {}),
        (pnorm_risk_expansion, {"p": 4.0, "normalize": True}),
    ):
        truth = expand(RankedList.rank(big, rng.normal(size=len(big)) + big), **settings_).share
        plain, corrected = [], []
        for _ in range(600):
            expansion = expand(RankedList.rank(y, rng.normal(size=200) + y), **settings_)
            plain.append(expansion.share)
            corrected.append(expansion.share - expansion.bias)
        error = np.std(plain) / np.sqrt(600)
        assert abs(np.mean(corrected) - truth) < 3.5 * error
        if expand is average_precision_expansion:
            assert np.mean(plain) - truth > 3.5 * error


@pytest.mark.parametrize(
    "share, bias, centre",
    [(0.6, 0.1, 0.5), (0.6, 0.5, 0.3), (0.6, -0.5, 0.8), (0.0, 0.1, 0.0), (1.0, -0.1, 1.0)],
)
def test_a_bias_is_taken_off_but_moves_the_centre_at_most_half_way_to_an_end(share, bias, centre):
    none = np.zeros(0)
    assert Expansion(share, none, none, 1.0, bias=bias).centre == pytest.approx(centre)


@pytest.mark.parametrize(
    ("share_at", "depth"),
    [(precision_cut, 60.0), (discounted_cut, 60.0), (recall_cut, 60.0), (tpr_cut, 0.05)],
)
def test_the_variance_at_a_cut_is_that_over_samples(share_at, depth):
    rng = np.random.default_rng(2)
    scores = rng.standard_normal((800, 600))
    labels = rng.random(scores.shape) < 1 / (1 + np.exp(3 - 2 * scores))
    cuts = [share_at(Sample.of(y, f), depth) for y, f in zip(labels, scores, strict=True)]
    seen = np.var([cut.share for cut in cuts])
    # a variance of 800 shares is known to a twentieth
    assert np.mean([cut.variance for cut in cuts]) == pytest.approx(seen, rel=0.15)
