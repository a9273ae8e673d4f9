"""Precision at k and positives at the top, against every order of the tied rows."""

from itertools import permutations
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.metrics import positives_at_top, precision_at


@st.composite
def rankings(draw, max_rows=6, levels=3):
    """Labels of both classes and scores with many ties."""
    n = draw(st.integers(2, max_rows))
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n).filter(lambda y: 0 < sum(y) < n))
    scores = draw(st.lists(st.integers(1, levels), min_size=n, max_size=n))
    return np.array(y), np.array(scores, dtype=float)


def precision_over_all_orders(y, scores, k):
    """The mean over every order of the rows that sorts the scores downwards."""
    orders = [
        order for order in permutations(range(len(y))) if np.all(np.diff(scores[list(order)]) <= 0)
    ]
    return np.mean([y[list(order[:k])].mean() for order in orders])


@given(rankings(), st.data())
def test_precision_is_the_mean_over_every_order_of_the_ties(ranking, data):
    y, scores = ranking
    k = data.draw(st.integers(1, len(y)))
    assert precision_at(y, scores, k) == pytest.approx(
        precision_over_all_orders(y, scores, k), abs=1e-12
    )


@given(rankings(max_rows=8), st.data())
def test_a_weight_is_a_repetition_count(ranking, data):
    y, scores = ranking
    n = len(y)
    weight = np.array(data.draw(st.lists(st.integers(1, 4), min_size=n, max_size=n)))
    count = data.draw(st.integers(1, int(weight.sum())))
    fraction = data.draw(st.floats(0.01, 1.0))
    repeated = np.repeat(y, weight), np.repeat(scores, weight)
    for k in (count, fraction):
        assert precision_at(y, scores, k, sample_weight=weight) == pytest.approx(
            precision_at(*repeated, k), abs=1e-12
        )
    for normalize in (True, False):
        assert positives_at_top(
            y, scores, normalize=normalize, sample_weight=weight
        ) == pytest.approx(positives_at_top(*repeated, normalize=normalize))


@given(rankings(max_rows=8), st.data())
def test_a_row_of_weight_zero_is_absent(ranking, data):
    y, scores = ranking
    extra = data.draw(st.integers(0, 1)), data.draw(st.integers(0, 4))
    y_more, scores_more = np.append(y, extra[0]), np.append(scores, extra[1])
    weight = np.append(np.ones(len(y)), 0)
    for metric in (lambda *a, **kw: precision_at(*a, 0.5, **kw), positives_at_top):
        assert metric(y_more, scores_more, sample_weight=weight) == pytest.approx(metric(y, scores))


@given(rankings(max_rows=10, levels=4))
def test_positives_at_top_counts_those_strictly_above_every_negative(ranking):
    y, scores = ranking
    count = sum(s > max(scores[y == 0]) for s in scores[y == 1])
    assert positives_at_top(y, scores, normalize=False) == count
    assert positives_at_top(y, scores) == pytest.approx(count / y.sum())


@given(rankings(max_rows=10, levels=4), st.integers(1, 6), st.data())
def test_positives_at_top_is_a_mean_over_the_highest_negatives(ranking, negatives, data):
    y, scores = ranking
    n = len(y)
    weight = np.array(data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)))
    positives, others = (np.repeat(scores[y == k], weight[y == k]) for k in (1, 0))
    highest = np.sort(others)[::-1][:negatives]
    wanted = np.mean([np.mean(positives > one) for one in highest])
    found = positives_at_top(y, scores, negatives=negatives, sample_weight=weight)
    assert found == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("negatives", [0, -1, 2.5, "two"])
def test_a_number_of_negatives_that_is_none_is_refused(negatives):
    with pytest.raises(ValueError, match="whole number from 1 up"):
        positives_at_top([0, 1], [1.0, 2.0], negatives=negatives)


@given(rankings(max_rows=8), st.data())
def test_only_the_order_of_the_scores_matters(ranking, data):
    y, scores = ranking
    order = np.array(data.draw(st.permutations(range(len(y)))))
    same = y[order], np.exp(5 * scores[order])
    for k in range(1, len(y) + 1):
        assert precision_at(*same, k) == pytest.approx(precision_at(y, scores, k))
    assert positives_at_top(*same) == positives_at_top(y, scores)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("n", [3, 7, 100, 129, 1000])
@pytest.mark.parametrize("percent", [1, 7, 29, 50, 57, 100])
def test_a_fraction_is_rounded_up_to_whole_rows_but_for_rounding_error(n, percent):
    rng = np.random.default_rng(n)
    y, scores = np.arange(n) % 3 == 0, rng.normal(size=n)
    rows = -(-percent * n // 100)  # ceil in whole numbers
    assert rows == max(1, ceil(percent * n / 100 - 1e-9))
    assert precision_at(y, scores, percent / 100) == precision_at(y, scores, rows)


def test_the_whole_list_has_the_precision_of_chance():
    y, scores = [1, 0, 0, 1, 0], [5.0, 4.0, 3.0, 2.0, 1.0]
    assert precision_at(y, scores, 5) == precision_at(y, scores, 1.0) == 0.4


def test_one_is_a_row_and_one_point_zero_is_the_whole_list():
    y, scores = [1, 0, 0, 0], [4.0, 3.0, 2.0, 1.0]
    assert precision_at(y, scores, 1) == 1.0
    assert precision_at(y, scores, 1.0) == 0.25


def test_a_fraction_of_weights_that_are_not_whole_is_not_rounded():
    y, scores = [1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0]
    weight = np.array([0.1, 0.2, 0.3, 0.4])
    expected = (0.1 + 0.2) / 0.5  # 0.1 of the first row, 0.2 of the second, 0.2 of the third
    for scale in (1.0, 0.37, 1e6 + 0.1):
        got = precision_at(y, scores, 0.5, sample_weight=scale * weight)
        assert got == pytest.approx(expected)


def test_any_two_labels_and_either_positive_class():
    y, scores = ["spam", "ham", "spam"], [3.0, 2.0, 1.0]
    assert precision_at(y, scores, 1) == 1.0
    assert precision_at(y, scores, 2, pos_label="ham") == 0.5
    assert positives_at_top(y, scores) == 0.5
    assert positives_at_top(y, scores, pos_label="ham") == 0.0


@pytest.mark.parametrize("k", [0, -1, 5, np.int64(9)])
def test_a_count_outside_the_list_is_refused(k):
    with pytest.raises(ValueError, match=f"k={k} .* from 1 to 4"):
        precision_at([0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0], k)


@pytest.mark.parametrize("k", [0.0, -0.1, 1.5, 10.0, float("nan"), float("inf")])
def test_a_fraction_outside_the_unit_interval_is_refused_and_told_from_a_count(k):
    with pytest.raises(ValueError, match=r"a fraction of the list.*For a count, pass an int"):
        precision_at([0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0], k)


@pytest.mark.parametrize("k", [True, np.True_, "3", None, [1]])
def test_a_k_that_is_not_a_number_is_refused(k):
    with pytest.raises(ValueError, match="expected an int or a float"):
        precision_at([0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0], k)


@pytest.mark.parametrize("metric", [lambda *a, **kw: precision_at(*a, 1, **kw), positives_at_top])
@pytest.mark.parametrize(
    ("y", "scores", "weight", "message"),
    [
        ([1, 1], [1.0, 2.0], None, "one class only"),
        ([0, 1], [1.0, np.nan], None, "NaN"),
        ([0, 1], [1.0, np.inf], None, "infinity"),
        ([0, 1], [1.0], None, "inconsistent"),
        ([0, 1], [1.0, 2.0], [1.0, -1.0], "negative"),
        ([0, 1], [1.0, 2.0], [0.0, 1.0], "Every negative row"),
        ([0, 1], [1.0, 2.0], [1.0], "one weight per row"),
    ],
)
def test_unusable_input_is_refused_with_a_sentence(metric, y, scores, weight, message):
    with pytest.raises(ValueError, match=message):
        metric(y, scores, sample_weight=weight)
