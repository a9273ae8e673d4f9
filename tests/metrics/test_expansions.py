"""The influence of a row is what a little more of its weight does to the metric."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.inference.sample import Sample
from toprank.metrics import METRICS, place_sums
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


@pytest.mark.parametrize("alpha", [0.001, 5.0, 50.0])
@pytest.mark.parametrize("digits", [0, 9])  # in ties and without
def test_the_influences_of_bedroc_are_sums_over_the_places_of_all_pairs(alpha, digits):
    rng = np.random.default_rng(7)
    y = np.arange(500) < 60
    s = np.round(rng.normal(size=500) + y, digits)
    sample = Sample.of(y, s)
    found = METRICS["bedroc"].expansion(sample.ranked, alpha)
    on_rows, rate = sample.on_rows(found.on_positive, found.on_negative), alpha / 500
    above, level = np.sum(s > s[:, None], axis=1), np.sum(s == s[:, None], axis=1)
    discount = np.exp(-rate * above) * -np.expm1(-rate * level) / (rate * level)
    most = -np.expm1(-rate * 60) * -np.expm1(-rate * 440) / rate
    for row in range(0, 500, 7):
        grown = above + 1e-4 * (s[row] > s), level + 1e-4 * (s[row] == s)
        moved = np.exp(-rate * grown[0]) * -np.expm1(-rate * grown[1]) / (rate * grown[1])
        change = (y[row] * 1e-4 * discount[row] + np.sum(y * (moved - discount))) / 1e-4
        total = 60 if y[row] else 440
        # all rows of a class may be moved alike: the constant of each has no part in the spread
        constant = on_rows[0 if y[row] else -1]
        first = 0 if y[row] else 499
        grown = above + 1e-4 * (s[first] > s), level + 1e-4 * (s[first] == s)
        moved = np.exp(-rate * grown[0]) * -np.expm1(-rate * grown[1]) / (rate * grown[1])
        base = (y[first] * 1e-4 * discount[first] + np.sum(y * (moved - discount))) / 1e-4
        wanted = total * (change - base) / most
        assert on_rows[row] - constant == pytest.approx(wanted, abs=2e-3 * np.ptp(on_rows))


def test_bedroc_without_decay_is_moved_as_the_auc_is():
    rng = np.random.default_rng(8)
    y = np.arange(300) < 40
    ranked = Sample.of(y, np.round(rng.normal(size=300) + y, 1)).ranked
    found, auc = METRICS["bedroc"].expansion(ranked, 1e-12), METRICS["auc"].expansion(ranked)
    assert found.share == pytest.approx(auc.share)
    for one, other in (
        (found.on_positive, auc.on_positive),
        (found.on_negative, auc.on_negative),
    ):
        assert one - one[0] == pytest.approx(other - other[0], abs=1e-4)


def test_bedroc_of_few_rows_where_the_discount_falls_has_no_expansion():
    ranked = Sample.of(np.arange(100) < 20, np.arange(100.0)).ranked
    assert METRICS["bedroc"].expansion(ranked, 10.1) is None
    assert METRICS["bedroc"].expansion(ranked, 10.0) is not None


@pytest.mark.parametrize("name", ["dcg", "aver"])
def test_moves_are_what_a_copy_of_a_row_adds_where_the_labels_are_known(name, monkeypatch):
    rng = np.random.default_rng(3)
    y, s = rng.random(40) < 0.4, rng.normal(size=40)
    order = np.argsort(-s)
    monkeypatch.setattr(place_sums, "steady_precision", lambda *_: y[order].astype(float))
    sample = Sample.of(y, s)
    moves, ties = METRICS[name].moves(sample.ranked), sample.ties
    for row in range(40):
        copied = np.append(y, y[row]), np.append(s, np.nextafter(s[row], -np.inf))
        added = METRICS[name].function(*copied) - METRICS[name].function(y, s)
        found = y[row] * moves.own[ties[row]] - moves.moved[ties[row]]
        assert found == pytest.approx(added, abs=1e-12)


@pytest.mark.parametrize("name", ["dcg", "aver"])
@pytest.mark.parametrize("digits", [1, 9])
def test_rows_move_the_positives_expected_at_and_behind_them(name, digits):
    rng = np.random.default_rng(4)
    y = rng.random(120) < 0.3
    s = np.round(rng.normal(size=120) + y, digits)
    ranked = Sample.of(y, s).ranked
    moves = METRICS[name].moves(ranked)
    discount = (lambda place: 1 / np.log1p(place)) if name == "dcg" else (lambda place: 1 / place)
    last, in_tie = ranked.places[1:], ranked.positive + ranked.negative
    for tie in range(len(last)):
        expected = sum(
            in_tie[other] * moves.near[other] * (discount(last[other]) - discount(last[other] + 1))
            for other in range(tie, len(last))
        )
        assert moves.moved[tie] == pytest.approx(expected)
        assert moves.own[tie] == pytest.approx(discount(last[tie]))


def test_the_variance_of_moves_is_the_mean_over_all_labels_of_the_squares():
    rng = np.random.default_rng(5)
    own, moved, near = rng.normal(size=(3, 6)) + np.array([[0.0], [0.0], [9.0]])
    near = near / 20
    rows, units = np.array([1.0, 1, 2, 1, 3, 1]), np.array([1.0, 1, 4, 1, 9, 1])
    centres = [
        np.dot(rows * chance, pull) / np.dot(rows, chance)
        for chance, pull in ((near, own - moved), (1 - near, -moved))
    ]
    wanted = 0.0
    for row in range(6):
        for label, chance in ((1, near[row]), (0, 1 - near[row])):
            pull = label * own[row] - moved[row] - centres[1 - label]
            wanted += units[row] * chance * pull**2
    found = place_sums.variance_of_moves(own, moved, near, rows, units)
    assert found == pytest.approx(wanted)


def test_a_value_is_moved_by_the_worth_of_a_row_less_that_of_the_rows_at_the_cut():
    rng = np.random.default_rng(6)
    n, tied = 1000, np.arange(1000) % 2 == 1  # half of the rows are one tie, which the cut parts
    s = np.where(tied, 0.0, rng.normal(size=n))
    y, weight = rng.random(n) < 0.3, rng.uniform(0.5, 2, n)
    benefit, cost = rng.exponential(size=(2, n)) * np.array([[5.0], [1.0]])
    k = float(np.sum(weight[s > 0]) + 0.5 * np.sum(weight[tied])) / np.sum(weight)
    how = {"k": k, "benefit": benefit, "cost": cost}

    def value(w):
        # so many units of weight, however many there are in all
        given = how | {"k": k * np.sum(weight) / np.sum(w)}
        return METRICS["value_at"].function(y, s, sample_weight=w, **given)

    sample = Sample.of(y, s, weight)
    worth = METRICS["value_at"].worth_of(y, how)
    pulls = METRICS["value_at"].pulls(sample.ranked, sample.ties, weight, worth, **how)
    for row in range(0, n, 20):
        step = np.zeros(n)
        step[row] = 1e-5
        slope = (value(weight + step) - value(weight - step)) / 2e-5
        assert pulls[row] == pytest.approx(slope, abs=0.01 * np.ptp(worth))


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
