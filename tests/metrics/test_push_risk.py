"""The paper's risk and heights: its tables, its theorem, and the double loop."""

from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from toprank import PushRanker
from toprank.losses import LOSSES, from_callable, get_loss
from toprank.metrics import heights, push_risk, reverse_heights
from toprank.prices import from_callable as price_from_callable

# ---- Tables 1 and 2 of Rudin (2009), as printed ------------------------------------------------
# The 0-1 columns are on the printed scores. The exponential and logistic columns come out to
# every printed digit only with the scores halved: solving for the scale gives 0.50000 in all
# six cells of Table 1.
SCALE = {"zero_one": 1.0, "exponential": 0.5, "logistic": 0.5}

#: R_{4,l} for three labelings of eight examples scored 1, ..., 8.
TABLE_1 = {
    (-1, 1, -1, 1, -1, -1, 1, 1): ("33", "17160.17", "430.79"),  # original order
    (1, -1, -1, 1, -1, -1, 1, 1): ("34", "72289.39", "670.20"),  # swap on the bottom
    (-1, 1, -1, 1, -1, 1, -1, 1): ("98", "130515.09", "1212.23"),  # swap on the top
}

#: R_{p,l}(f1) and R_{p,l}(f2) for p = 1, ..., 10; f1 = (14, ..., 1)/14 and f2 = -f1.
TABLE_2_LABELS = (1, 1, -1, -1, -1, -1, -1, 1, 1, 1, 1, 1, -1, -1)
TABLE_2 = {
    "zero_one": (
        "25 125 625 3.13e3 1.56e4 7.81e4 3.91e5 1.95e6 9.77e6 4.88e7",
        "24 118 726 4.88e3 3.38e4 23.56e4 16.48e5 11.53e6 80.71e6 56.50e7",
    ),
    "exponential": (
        "50.25 367.39 2.73e3 2.056e4 1.56e5 1.20e6 9.34e6 7.29e7 5.72e8 4.50e9",
        "49.80 362.35 2.70e3 2.057e4 1.60e5 1.28e6 10.36e6 8.53e7 7.13e8 6.02e9",
    ),
    "logistic": (
        "34.34 170.18 851.09 4.29e3 2.18e4 1.114e5 5.72e5 2.96e6 1.53e7 7.98e7",
        "34.09 167.90 836.46 4.22e3 2.15e4 1.110e5 5.79e5 3.05e6 1.63e7 8.74e7",
    ),
}
#: The one cell that is not its value rounded: R_{5,exp}(f1) is 156,638, printed 1.56e5.
MISPRINT = ("exponential", 0, 5)
#: The smallest p from which f1, the better one at the top, is preferred.
F1_PREFERRED_FROM = {"zero_one": 3, "exponential": 4, "logistic": 7}


def as_printed(value, printed):
    """The value in the notation, and to the digits, of the printed one; halves round up."""
    mantissa, _, exponent = printed.partition("e")
    last_digit = Decimal(1).scaleb(-len(mantissa.partition(".")[2]))
    scaled = Decimal(value).scaleb(-int(exponent or 0))
    return str(scaled.quantize(last_digit, ROUND_HALF_UP)) + (exponent and f"e{exponent}")


@pytest.mark.parametrize("labels", TABLE_1)
@pytest.mark.parametrize("column", range(3), ids=SCALE)
def test_table_1_comes_out_to_every_printed_digit(labels, column):
    loss, scale = list(SCALE.items())[column]
    printed = TABLE_1[labels][column]
    risk = push_risk(labels, scale * np.arange(1, 9), p=4, loss=loss)
    assert as_printed(risk, printed) == printed


def table_2_risk(loss, which, p):
    f1 = np.arange(14, 0, -1) / 14
    scores = SCALE[loss] * (f1 if which == 0 else -f1)
    return push_risk(TABLE_2_LABELS, scores, p=p, loss=loss)


@pytest.mark.parametrize("loss", TABLE_2)
@pytest.mark.parametrize("which", [0, 1], ids=["f1", "f2"])
@pytest.mark.parametrize("p", range(1, 11))
def test_table_2_comes_out_to_every_printed_digit(loss, which, p):
    printed = TABLE_2[loss][which].split()[p - 1]
    risk = table_2_risk(loss, which, p)
    if (loss, which, p) == MISPRINT:
        assert (as_printed(risk, "156638"), printed) == ("156638", "1.56e5")
    else:
        assert as_printed(risk, printed) == printed


@pytest.mark.parametrize("loss", TABLE_2)
@pytest.mark.parametrize("p", range(1, 11))
def test_table_2_prefers_the_better_top_from_the_printed_p_on(loss, p):
    better_at_the_top, better_overall = (table_2_risk(loss, which, p) for which in (0, 1))
    assert (better_at_the_top < better_overall) == (p >= F1_PREFERRED_FROM[loss])


# ---- the double loop and Theorem 1 -------------------------------------------------------------


@st.composite
def rankings(draw, most=12):
    """Labels of both classes, scores with ties, weights some of which are zero."""
    n = draw(st.integers(2, most))
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n).filter(lambda y: 0 < sum(y) < n))
    level = st.integers(-8, 8).map(lambda j: j / 4)
    scores = draw(arrays(np.float64, n, elements=level | st.floats(-5, 5)))
    weight = draw(arrays(np.float64, n, elements=st.sampled_from([0.0, 0.5, 1.0, 2.0, 10.0])))
    y = np.array(y)
    for label in (0, 1):
        weight[np.flatnonzero(y == label)[0]] += 1.0
    return y, scores, weight


def naive_risk(y, s, w, g, loss, end="top"):
    """The sum of the prices of the heights, pair by pair."""
    value = get_loss(loss).value
    pos, neg = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    outer, inner = (neg, pos) if end == "top" else (pos, neg)
    total = 0.0
    for o in outer:
        sign = 1.0 if end == "top" else -1.0
        total += w[o] * g(sum(w[i] * value(sign * (s[i : i + 1] - s[o]))[0] for i in inner))
    return total


@pytest.mark.parametrize("loss", LOSSES)
@given(rankings(), st.sampled_from([1.0, 2.0, 3.7]), st.sampled_from(["top", "bottom"]))
def test_power_risk_is_the_papers_sum(loss, ranking, p, end):
    y, s, w = ranking
    expected = naive_risk(y, s, w, lambda h: h**p, loss, end)
    got = push_risk(y, s, p=p, loss=loss, end=end, sample_weight=w)
    assert got == pytest.approx(expected, rel=1e-10, abs=1e-12)


PRICES = {
    "identity": lambda h: h,
    "exponential": np.exp,
    "square": np.square,
}
CUSTOM = {"square": price_from_callable(np.square, lambda h: 2 * h)}


@pytest.mark.parametrize("price", PRICES)
@pytest.mark.parametrize("loss", ["zero_one", "logistic", "hinge"])
@given(ranking=rankings(), balance=st.sampled_from([0.0, 0.5, 2.0]))
def test_risk_of_both_ends_is_the_top_plus_balance_times_the_bottom(price, loss, ranking, balance):
    y, s, w = ranking
    top, bottom = (naive_risk(y, s, w, PRICES[price], loss, end) for end in ("top", "bottom"))
    got = push_risk(
        y,
        s,
        price=CUSTOM.get(price, price),
        loss=loss,
        end="both",
        balance=balance,
        balance_of="sums",
        sample_weight=w,
    )
    assert got == pytest.approx(top + balance * bottom, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("p", [1.0, 2.5, 4.0])
def test_both_ends_were_weighed_otherwise_than_by_the_ranker(p):
    """One meaning: the metric of a fitted ranker's scores is its objective, unnormalised."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + rng.normal(size=60) > 1.0).astype(int)
    n_pos, n_neg = y.sum(), (1 - y).sum()
    for balance_of, size in (("means", n_neg * n_pos**p), ("sums", n_neg * n_pos**p)):
        settings = {"p": p, "end": "both", "balance": 0.3, "balance_of": balance_of}
        ranker = PushRanker(**settings, alpha=1e-12).fit(X, y)
        risk = push_risk(y, X @ ranker.coef_[0], **settings, log=True)
        assert (risk - np.log(size)) / p == pytest.approx(ranker.objective_, abs=1e-8)
    top, bottom = (push_risk(y, X[:, 0], p=p, end=end) for end in ("top", "bottom"))
    both = push_risk(y, X[:, 0], p=p, end="both", balance=0.3)
    assert both == pytest.approx(top + 0.3 * (n_pos / n_neg) ** (p - 1) * bottom)


@given(rankings())
def test_ir_push_sums_over_the_positives(ranking):
    """Equation (2): sum_i log(1 + sum_k e^{-(f_i - f_k)})."""
    y, s, w = ranking
    expected = naive_risk(y, s, w, np.log1p, "exponential", end="bottom")
    got = push_risk(y, s, price="log1p", sample_weight=w)
    assert got == pytest.approx(expected, rel=1e-11)


@given(rankings())
def test_first_power_of_the_exponential_loss_is_the_objective_of_rankboost(ranking):
    y, s, _ = ranking
    expected = np.sum(np.exp(-(s[y == 1][:, None] - s[y == 0][None, :])))
    assert push_risk(y, s, p=1) == pytest.approx(expected, rel=1e-12)


LOG2 = np.log(2.0)
UPPER_BOUNDS = {
    "exponential": "exponential",
    "hinge": "hinge",
    "squared_hinge": "squared_hinge",
    # natural logarithm: below the 0-1 loss at a tie unless divided by log 2
    "logistic": from_callable(
        lambda r: np.logaddexp(0, -r) / LOG2, lambda r: get_loss("logistic").slope(r) / LOG2
    ),
}


@pytest.mark.parametrize("bound", UPPER_BOUNDS)
@given(rankings(), st.sampled_from(["exponential", "power"]), st.floats(1.0, 50.0))
def test_theorem_1_holds(bound, ranking, price, p):
    """K g(Rmax / K) <= R_{g,1} <= K g(Rmax) and R_{g,1} <= R_{g,l}, compared as logarithms."""
    y, s, _ = ranking
    n_negative = np.sum(y == 0)
    highest = push_risk(y, s, price="max", loss="zero_one")
    assert highest == np.max(heights(y, s))
    risk = push_risk(y, s, price=price, p=p, loss="zero_one", log=True)
    with np.errstate(divide="ignore"):
        log_g = (lambda h: h) if price == "exponential" else (lambda h: p * np.log(h))
        low, high = log_g(highest / n_negative), log_g(highest)
    rounding = 1e-11 * max(1.0, p)
    assert np.log(n_negative) + low <= risk + rounding
    assert risk <= np.log(n_negative) + high + rounding
    bounded = push_risk(y, s, price=price, p=p, loss=UPPER_BOUNDS[bound], log=True)
    assert risk <= bounded + rounding


@pytest.mark.parametrize("loss", LOSSES)
@given(rankings(), st.floats(1.0, 1e6))
def test_large_powers_approach_the_highest_height_with_the_stated_certificate(loss, ranking, p):
    """0 <= log(R_p)/p - log Rmax <= log(K)/p."""
    y, s, _ = ranking
    highest = push_risk(y, s, price="max", loss=loss, log=True)
    norm = push_risk(y, s, p=p, loss=loss, log=True) / p
    if highest == -np.inf:
        assert norm == -np.inf
        return
    gap = norm - highest
    assert -1e-12 <= gap <= np.log(np.sum(y == 0)) / p + 1e-12


def test_infinite_power_is_the_highest_height():
    y, s = [0, 1, 0, 1], [1, 2, 3, 4]
    assert push_risk(y, s, p=np.inf, loss="zero_one") == 1.0
    assert push_risk(y, s, p=np.inf) == push_risk(y, s, price="max")


def test_highest_height_of_both_ends_is_the_larger_one():
    y, s = [1, 0, 0, 0], [0.0, 1.0, 2.0, 3.0]
    assert push_risk(y, s, price="max", loss="zero_one", end="both", balance_of="sums") == 3.0
    assert push_risk(y, s, price="max", loss="zero_one", end="both") == 1.0  # all of one positive


def test_log_risk_is_finite_where_the_risk_overflows():
    y, s = np.array([1, 1, 0, 0]), np.array([-1e4, 0.0, 1e4, 3.0])
    assert push_risk(y, s, p=1000) == np.inf
    assert push_risk(y, s, p=1000, log=True) == pytest.approx(1000 * 2e4, rel=1e-15)
    assert push_risk(y, -s, p=1000) == 0.0
    assert push_risk(y, -s, p=1000, log=True) == pytest.approx(1000 * -3.0, rel=1e-15)


@given(rankings())
def test_log_risk_is_the_logarithm_of_the_risk(ranking):
    y, s, w = ranking
    for loss in LOSSES:
        risk = push_risk(y, s, p=2, loss=loss, sample_weight=w)
        log_risk = push_risk(y, s, p=2, loss=loss, sample_weight=w, log=True)
        assert np.exp(log_risk) == pytest.approx(risk, rel=1e-12)


@given(rankings())
def test_heights_are_counted_pair_by_pair_and_a_tie_is_a_misrank(ranking):
    y, s, w = ranking
    pos, neg = y == 1, y == 0
    beaten = s[pos][:, None] <= s[neg][None, :]
    assert heights(y, s).tolist() == beaten.sum(axis=0).tolist()
    assert reverse_heights(y, s).tolist() == beaten.sum(axis=1).tolist()
    np.testing.assert_allclose(heights(y, s, sample_weight=w), w[pos] @ beaten, rtol=1e-14)
    np.testing.assert_allclose(reverse_heights(y, s, sample_weight=w), beaten @ w[neg], rtol=1e-14)
    assert push_risk(y, s, loss="zero_one") == heights(y, s).sum() == reverse_heights(y, s).sum()


@given(rankings(), st.randoms(use_true_random=False))
def test_order_of_the_rows_changes_nothing(ranking, random):
    y, s, w = ranking
    order = random.sample(range(len(y)), len(y))
    before = push_risk(y, s, p=3, loss="logistic", sample_weight=w)
    after = push_risk(y[order], s[order], p=3, loss="logistic", sample_weight=w[order])
    assert after == pytest.approx(before, rel=1e-12)


# ---- labels and bad input ----------------------------------------------------------------------

Y, S = [0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0]
each_metric = pytest.mark.parametrize("metric", [push_risk, heights, reverse_heights])


@each_metric
@pytest.mark.parametrize(
    ("labels", "pos_label"),
    [
        (["no", "yes", "no", "yes"], None),
        (["yes", "no", "yes", "no"], "no"),
        (np.array(["a", "b", "a", "b"], dtype=object), "b"),
        ([-1, 1, -1, 1], None),
        ([False, True, False, True], None),
        ([2, 1, 2, 1], 1),
    ],
)
def test_any_two_labels_will_do(metric, labels, pos_label):
    expected = metric(Y, S)
    np.testing.assert_array_equal(metric(labels, S, pos_label=pos_label), expected)


@pytest.mark.sampled(5)
@each_metric
@pytest.mark.parametrize(
    ("y", "s", "keywords", "complaint"),
    [
        ([1, 1, 1, 1], S, {}, "one class only.* expected two"),
        ([0, 1, 2, 1], S, {}, "3 class.* expected two"),
        ([0.0, 1.0, np.nan, 1.0], S, {}, "y_true contains NaN"),
        (Y, [1.0, np.nan, 3.0, 4.0], {}, "y_score contains NaN"),
        (Y, [1.0, np.inf, 3.0, 4.0], {}, "y_score contains infinity"),
        (Y, ["a", "b", "c", "d"], {}, "could not convert string to float"),
        (Y, S[:3], {}, "inconsistent numbers of samples"),
        (Y, np.ones((4, 2)), {}, "should be a 1d array"),
        ([], [], {}, "minimum of 1 is required"),
        (Y, S, {"pos_label": 7}, r"pos_label=7 is not one of the labels \[0, 1\]"),
        (Y, S, {"pos_label": "yes"}, "pos_label='yes' is not one of the labels"),
        (Y, S, {"sample_weight": [1, 1, 1]}, "one weight per row"),
        (Y, S, {"sample_weight": [1, -1, 1, 1]}, "repetition count. Use 0 to leave a row out"),
        (Y, S, {"sample_weight": [1, np.nan, 1, 1]}, "weights must be finite"),
        (Y, S, {"sample_weight": [1, np.inf, 1, 1]}, "weights must be finite"),
        (Y, S, {"sample_weight": [1, 0, 1, 0]}, "Every positive row has sample_weight 0"),
        (Y, S, {"sample_weight": [0, 1, 0, 1]}, "Every negative row has sample_weight 0"),
    ],
)
def test_bad_input_is_refused_with_a_sentence_that_helps(metric, y, s, keywords, complaint):
    with pytest.raises(ValueError, match=complaint):
        metric(y, s, **keywords)


@pytest.mark.parametrize(
    ("keywords", "complaint"),
    [
        ({"p": 0.5}, "expected a number >= 1"),
        ({"p": np.nan}, "expected a number >= 1"),
        ({"p": "four"}, "expected a number >= 1"),
        ({"price": "powr"}, "Unknown price 'powr': expected one of"),
        ({"loss": "hingee"}, "Unknown loss 'hingee': expected one of"),
        ({"end": "middle"}, "Unknown end 'middle': expected one of"),
        ({"end": "both", "balance": -1.0}, "balance=-1.0 .* expected a number >= 0"),
        ({"balance_of": "parts"}, "balance_of='parts': expected one of"),
        ({"end": "both", "balance": np.nan}, "balance=nan .* expected a number >= 0"),
    ],
)
def test_bad_parameters_are_refused_with_what_would_do(keywords, complaint):
    with pytest.raises(ValueError, match=complaint):
        push_risk(Y, S, **keywords)


@pytest.mark.parametrize("weight", [5e-324, 1e-310, 1e-300])
def test_a_weight_near_the_smallest_float_keeps_its_digits(weight):
    # the other positive is beyond the hinge: the height is a quarter of the tiny weight
    y, s = [1, 1, 0], [1000.0, 1.25, 0.5]
    found = push_risk(y, s, p=2, loss="hinge", log=True, sample_weight=[1.0, weight, 1.0])
    assert found == pytest.approx(2 * (np.log(weight) + np.log(0.25)), rel=1e-12)
