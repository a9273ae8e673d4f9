"""The same numbers as scikit-learn, SciPy and the papers, where they have the metric."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import kendalltau
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

from toprank.metrics import (
    auc,
    average_precision,
    margin_error,
    max_height,
    misranking_error,
    ndcg_at,
    partial_auc,
    pnorm_risk,
    positives_at_top,
    push_risk,
    ranking_risk,
    tpr_at_fpr,
)
from toprank.metrics.retrieval import summed_discount

RNG = np.random.default_rng(7)


def sample(n=500, decimals=None, share=0.2, shift=1.0):
    y = RNG.random(n) < share
    y[:2] = [True, False]
    s = RNG.normal(size=n) + shift * y
    return y.astype(int), s if decimals is None else np.round(s, decimals), RNG.random(n) + 0.1


SAMPLES = [sample(), sample(decimals=1), sample(decimals=0), sample(30, 0), sample(shift=-1.0)]
each_sample = pytest.mark.parametrize(("y", "s", "w"), SAMPLES)


@each_sample
def test_auc_is_sklearns(y, s, w):
    assert auc(y, s) == pytest.approx(roc_auc_score(y, s), rel=1e-13)
    assert auc(y, s, sample_weight=w) == pytest.approx(
        roc_auc_score(y, s, sample_weight=w), rel=1e-12
    )
    assert misranking_error(y, s) == pytest.approx(1 - roc_auc_score(y, s), abs=1e-13)


@pytest.mark.sampled(4)
@each_sample
@pytest.mark.parametrize("max_fpr", [0.001, 0.05, 0.1, 0.5, 0.93, 1.0])
def test_standardised_partial_auc_is_sklearns(y, s, w, max_fpr):
    assert partial_auc(y, s, max_fpr=max_fpr) == pytest.approx(
        roc_auc_score(y, s, max_fpr=max_fpr), rel=1e-12
    )
    assert partial_auc(y, s, max_fpr=max_fpr, sample_weight=w) == pytest.approx(
        roc_auc_score(y, s, max_fpr=max_fpr, sample_weight=w), rel=1e-12
    )


@each_sample
def test_partial_areas_add_up_to_the_whole(y, s, w):
    cuts = [0.0, 0.03, 0.2, 0.5, 1.0]
    parts = [
        partial_auc(y, s, min_fpr=a, max_fpr=b, standardize=False, sample_weight=w)
        for a, b in pairwise(cuts)
    ]
    assert sum(parts) == pytest.approx(auc(y, s, sample_weight=w), rel=1e-12)


@each_sample
def test_area_above_a_tpr_is_the_area_left_of_it_in_the_mirrored_list(y, s, w):
    """Swap the classes and turn the list round: the curve is reflected in the falling diagonal."""
    for t in (0.1, 0.5, 0.9):
        above = partial_auc(y, s, min_tpr=t, standardize=False)
        mirrored = partial_auc(1 - y, -s, max_fpr=1 - t, standardize=False)
        assert above == pytest.approx(mirrored, rel=1e-10, abs=1e-13)


@each_sample
def test_average_precision_is_sklearns(y, s, w):
    assert average_precision(y, s) == pytest.approx(average_precision_score(y, s), rel=1e-12)
    assert average_precision(y, s, sample_weight=w) == pytest.approx(
        average_precision_score(y, s, sample_weight=w), rel=1e-12
    )


@each_sample
@pytest.mark.parametrize("k", [1, 3, 30])
def test_ndcg_is_sklearns(y, s, w, k):
    assert ndcg_at(y, s, k) == pytest.approx(ndcg_score([y], [s], k=k), rel=1e-12)


def test_summed_discounts_are_the_sum_at_any_depth():
    sums = np.cumsum(1 / np.log1p(np.arange(1.0, 2_000_001)))
    depths = np.array([1, 2, 100, 4095, 4096, 4097, 5000, 123_456, 2_000_000])
    np.testing.assert_allclose(summed_discount(depths.astype(float)), sums[depths - 1], rtol=1e-12)
    assert summed_discount(np.array([0.0])) == 0.0
    between = summed_discount(np.array([2.0, 2.25, 3.0]))
    assert between[1] == pytest.approx(0.75 * between[0] + 0.25 * between[2])


def test_ranking_risk_without_ties_is_kendalls_tau():
    y, s = RNG.normal(size=(2, 1000))
    assert ranking_risk(y, s) == pytest.approx((1 - kendalltau(y, s).statistic) / 2, rel=1e-12)


def test_ranking_risk_of_many_rows_takes_no_square_of_them():
    y = RNG.normal(size=200_000).round(2)
    s = (y + RNG.normal(size=200_000)).round(2)
    tau_a_part = ranking_risk(y, s)
    few = RNG.choice(len(y), 2000, replace=False)
    assert tau_a_part == pytest.approx(ranking_risk(y[few], s[few]), abs=0.02)


@each_sample
def test_the_zero_one_risk_of_the_push_is_the_pnorm_risk(y, s, w):
    for p in (1, 3, 7.5):
        wanted = push_risk(y, s, p=p, loss="zero_one", sample_weight=w, log=True)
        assert pnorm_risk(y, s, p, sample_weight=w, log=True) == pytest.approx(wanted, rel=1e-11)


def test_table_1_of_rudin_2009():
    y = [(0, 1, 0, 1, 0, 0, 1, 1), (1, 0, 0, 1, 0, 0, 1, 1), (0, 1, 0, 1, 0, 1, 0, 1)]
    assert [pnorm_risk(labels, range(1, 9), 4) for labels in y] == [33.0, 34.0, 98.0]


def test_power_64_of_a_million_positives_has_a_finite_logarithm():
    n = 10**6
    y, s = np.repeat([1, 0], [n, 10]), np.zeros(n + 10)
    assert pnorm_risk(y, s, 64) == np.inf
    assert pnorm_risk(y, s, 64, log=True) == pytest.approx(np.log(10) + 64 * np.log(n))
    assert pnorm_risk(y, s, 64, normalize=True) == pytest.approx(1.0)


@each_sample
def test_relations_between_the_metrics_hold(y, s, w):
    share = positives_at_top(y, s, sample_weight=w)
    assert share == pytest.approx(1 - max_height(y, s, normalize=True, sample_weight=w))
    assert share == tpr_at_fpr(y, s, 0.0, sample_weight=w)
    first_power = pnorm_risk(y, s, 1, normalize=True, sample_weight=w)
    assert first_power == pytest.approx(misranking_error(y, s, ties="error", sample_weight=w))
    assert first_power == pytest.approx(margin_error(y, s, 0.0, sample_weight=w))
    n, positives = len(y), y.sum()
    pairs = 2 * positives * (n - positives) / (n * (n - 1))
    assert ranking_risk(y, s) == pytest.approx(pairs * misranking_error(y, s))


@pytest.mark.parametrize("percent", [7, 29, 57])
def test_a_rate_within_rounding_error_of_a_vertex_is_that_vertex(percent):
    y = np.repeat([0, 1], 100)
    s = np.concatenate([np.arange(100.0, 0, -1), np.full(100, 100.5 - percent)])
    assert tpr_at_fpr(y, s, percent / 100) == 1.0
    assert tpr_at_fpr(y, s, percent / 100 - 1e-6) == 0.0


def test_auc_of_a_perfect_a_reversed_and_a_silent_ranking():
    y = np.repeat([0, 1], [7, 3])
    weight = RNG.random(10) + 0.1
    for w in (None, weight):
        assert auc(y, y, sample_weight=w) == 1.0
        assert auc(y, -y, sample_weight=w) == 0.0
        assert auc(y, np.zeros(10), sample_weight=w) == pytest.approx(0.5, rel=1e-15)
