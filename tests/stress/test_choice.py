"""A choice of p rests on finite numbers, whatever the rows and scores are, or it is refused."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import PNormPush, PNormPushCV
from toprank.folds.splits import folds_of
from toprank.tuning import (
    Candidate,
    PChoice,
    capacity_threshold,
    choose_p,
    corrected_difference,
    supported_p,
)

# ---- the corrected t-test ----------------------------------------------------------------------

UNITS = st.sampled_from([5e-324, 1e-310, 1e-200, 1.0, 1e16, 1e200, 1e307])


def exact(differences, test_to_train):
    """Mean and squared error, in fractions."""
    d = [Fraction(x) for x in differences]
    mean = sum(d) / len(d)
    variance = sum((x - mean) ** 2 for x in d) / (len(d) - 1)
    return mean, (Fraction(1, len(d)) + Fraction(test_to_train)) * variance


@given(
    counts=st.lists(st.integers(-8, 8), min_size=2, max_size=8),
    unit=UNITS,
    test_to_train=st.sampled_from([5e-324, 1e-9, 0.25, 1.0, 1e6]),
    level=st.sampled_from([1e-300, 0.5, 0.95, 1 - 2.0**-53]),
)
def test_the_corrected_difference_is_exact_on_any_scale(counts, unit, test_to_train, level):
    d = np.array(counts) * unit
    found = corrected_difference(d, test_to_train, level=level)
    mean, squared = exact(d.tolist(), test_to_train)
    freedom = len(d) - 1
    # rounding of a subnormal result is a unit of its own
    slack = Fraction(1, 10**13) * max(map(abs, d.tolist())) + 5e-324
    assert abs(Fraction(found.mean) - mean) <= slack
    assert found.low <= found.mean <= found.high
    if squared == 0:
        assert found.p_value == (1.0 if mean == 0 else 0.0)
        return
    ratio = float(mean**2 / squared) ** 0.5
    assert found.p_value == pytest.approx(2 * stats.t.sf(ratio, freedom), rel=1e-9)
    if unit in (1.0, 1e16):
        error = float(squared) ** 0.5
        assert found.standard_error == pytest.approx(error, rel=1e-12)
        reach = stats.t.isf((1 - level) / 2, freedom) * error
        assert found.high - found.low == pytest.approx(2 * reach, rel=1e-6, abs=1e-9 * unit)


def test_tiny_differences_that_vary_are_not_called_certain():
    large, tiny = (corrected_difference(np.array([1, -1, 2]) * u, 0.25) for u in (1.0, 1e-200))
    assert tiny.p_value == pytest.approx(large.p_value) and tiny.standard_error > 0


def test_a_level_next_to_one_has_a_finite_interval():
    found = corrected_difference([0.2, 0.2, 0.2], 0.25, level=1 - 2.0**-53)
    assert found.low == found.high == found.mean
    assert np.isfinite(corrected_difference([0.1, 0.2, 0.4], 0.25, level=1 - 2.0**-53).high)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, np.nan, "a quarter", None, True])
def test_a_ratio_of_rows_that_is_no_positive_number_is_refused(bad):
    with pytest.raises(ValueError, match="test_to_train="):
        corrected_difference([0.1, 0.2], bad)


# ---- choices -----------------------------------------------------------------------------------

CANDIDATES = (Candidate("none", None, pushes=False), Candidate("p = 2", 2.0))


@pytest.mark.parametrize("unit", [1e150, 1e200, 1e307])
def test_scores_of_any_size_are_compared_without_overflow(unit):
    counts = np.array([[1.0, 2.0, 1.0], [3.0, 4.0, 2.0]])
    large, plain = (PChoice(CANDIDATES, counts * u, "value_at") for u in (unit, 1.0))
    assert large.p == plain.p == 2.0
    np.testing.assert_allclose(large.mean / unit, plain.mean, rtol=1e-12)
    np.testing.assert_allclose(large.standard_error / unit, plain.standard_error, rtol=1e-12)
    assert large.difference(1, 0).p_value == pytest.approx(plain.difference(1, 0).p_value)
    assert "p = 2" in str(large)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_a_fold_without_a_finite_score_is_named(bad):
    scores = np.array([[1.0, 2.0, 1.0], [3.0, bad, 2.0]])
    with pytest.raises(ValueError, match=r"auc of p = 2 is .* on fold 1: expected finite scores"):
        PChoice(CANDIDATES, scores, "auc")


def rows_of(kind, n=40):
    """Features, labels and weights of a degenerate problem."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    weight = None
    if kind == "four rows":
        X, y = X[:4], np.array([0, 1, 0, 1])
    elif kind == "two positives":
        y = (np.arange(n) < 2).astype(int)
    elif kind == "all ties":
        X = np.ones_like(X)
    elif kind == "contradictory":
        X, y = np.repeat(X[: n // 2], 2, axis=0), np.tile([0, 1], n // 2)
    elif kind == "separable":
        X[:, 0] = np.where(y == 1, 1, -1) * (1 + rng.random(n))
    elif kind == "weights over 24 orders":
        weight = 10.0 ** rng.uniform(-12, 12, n)
    elif kind == "light":
        weight = np.full(n, 1e-12)
    elif kind == "heavy":
        weight = np.full(n, 1e12)
    elif kind == "absent positives":
        weight = np.where((y == 1) & (np.arange(n) > 9), 0.0, 1.0)
    else:
        X = X * float(kind)
    return X, y, weight


KINDS = (
    *("four rows", "two positives", "all ties", "contradictory", "separable"),
    *("weights over 24 orders", "light", "heavy", "absent positives", "1e-150", "1e99"),
)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", KINDS)
def test_p_is_chosen_of_degenerate_rows(kind):
    X, y, weight = rows_of(kind)
    chosen = PNormPushCV((1, 1000, np.inf), alphas=(1e-2,), rule="one_standard_error", cv=3)
    chosen.set_params(test_size=None).fit(X, y, weight)
    assert np.all(np.isfinite(chosen.coef_)) and np.all(np.isfinite(chosen.choice_.fold_scores))
    assert 0 <= chosen.best_score_ <= 1
    assert chosen.p_ is None or chosen.p_ in (1, 1000, np.inf)
    assert chosen.choice_.chosen.name in str(chosen.choice_)
    if kind in ("all ties", "contradictory"):  # nothing to learn: the weakest push is as good
        assert not chosen.pushes_


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", KINDS)
def test_the_support_of_degenerate_rows_is_known_or_infinitely_uncertain(kind):
    X, y, weight = rows_of(kind)
    support = supported_p(X, y, ps=(1, 1e300), cv=3, sample_weight=weight)
    there = y == 0 if weight is None else (y == 0) & (weight > 0)
    count = np.sum(there) if weight is None else np.sum(weight[there])
    for line in support.lines:
        assert 0 < line.effective_negatives <= count * (1 + 1e-9)
        assert 0 <= line.train_risk <= 1 and 0 <= line.test_risk <= 1
        assert np.isfinite(line.gap) and np.isfinite(line.gap_error)
        assert line.standard_error >= 0  # infinite, not NaN, where a fold cannot tell
        assert line.supported == (line.reason == "")
    assert f"{count:g} negatives" in support.verdict and "nan" not in str(support)


def test_weights_of_zero_are_rows_that_are_not_there():
    X, y, weight = rows_of("absent positives")
    there = np.flatnonzero(weight)
    settings_ = {"ps": (1, 4), "cv": StratifiedKFold(2)}
    whole = choose_p(PNormPush(), X, y, sample_weight=weight, **settings_)
    part = choose_p(PNormPush(), X[there], y[there], sample_weight=weight[there], **settings_)
    np.testing.assert_allclose(whole.fold_scores, part.fold_scores, rtol=1e-9)
    support, alone = (
        supported_p(X[rows], y[rows], ps=(1, 4), cv=2, sample_weight=weight[rows])
        for rows in (np.arange(len(y)), there)
    )
    assert [line.test_risk for line in support.lines] == pytest.approx(
        [line.test_risk for line in alone.lines], rel=1e-6
    )


@pytest.mark.parametrize("shape", ["list", "predefined", "time", "groups"])
def test_folds_hold_only_rows_that_are_there(shape):
    y, weight = np.tile([0, 1], 12), np.tile([1.0, 1.0, 0.0, 1.0, 2.0, 0.0], 4)
    number = np.arange(24) % 4 // 2
    cv = {
        "list": [(np.flatnonzero(number != j), np.flatnonzero(number == j)) for j in (0, 1)],
        "predefined": PredefinedSplit(number),
    }.get(shape, 2)
    extra = {shape: np.arange(24) // 2} if shape in ("time", "groups") else {}
    folds = folds_of(cv, y, weight=weight, **extra)
    for train, test in folds:
        assert np.all(weight[train] > 0) and np.all(weight[test] > 0)
        assert not set(train.tolist()) & set(test.tolist())
    if shape != "time":
        tested = np.sort(np.concatenate([test for _, test in folds]))
        np.testing.assert_array_equal(tested, np.flatnonzero(weight))


def test_the_baseline_is_logistic_regression_on_scaled_features():
    X, y, _ = rows_of("1")
    near = choose_p(PNormPush(), X, y, ps=(1,), scoring="auc", cv=3)
    plain = make_pipeline(StandardScaler(with_mean=False), LogisticRegression())
    same = choose_p(PNormPush(), X, y, ps=(1,), scoring="auc", cv=3, baseline=plain)
    np.testing.assert_allclose(near.fold_scores[0], same.fold_scores[0], rtol=1e-9)


@pytest.mark.parametrize("entry", [choose_p, supported_p])
def test_features_beyond_1e100_are_refused(entry):
    X, y, _ = rows_of("1")
    first = (PNormPush(),) if entry is choose_p else ()
    with pytest.raises(ValueError, match=r"in size, expected at most 1e\+100"):
        entry(*first, X * 1e300, y)


@pytest.mark.parametrize(
    ("scoring", "settings_"), [("pnorm_risk", {"p": 4, "log": True}), ("push_risk", {"p": 64})]
)
def test_a_score_that_is_infinite_on_a_fold_is_refused_by_name(scoring, settings_):
    X, y, _ = rows_of("separable")
    if scoring == "push_risk":
        X[:3, 0] *= -1e3  # in the first fold, none of which is trained on
    settings_ = {"scoring_kwargs": settings_, "alphas": (1e-4,), "cv": StratifiedKFold(5)}
    with pytest.raises(ValueError, match=f"{scoring}.* on fold .: expected finite scores"):
        PNormPushCV((1, 4), scoring=scoring, **settings_).fit(X, y)


# ---- the cut-off for a capacity ----------------------------------------------------------------

HUGE = float(np.finfo(np.float64).max)


@given(
    scores=st.lists(st.sampled_from([-HUGE, -1.0, 0.0, 5e-324, 1.0, HUGE]), min_size=1, max_size=9),
    per_period=st.sampled_from([1e-12, 0.5, 1, 2.5, 7, 1e12]),
    period=st.sampled_from([1e-12, 1, 3, 1e12]),
    unit=st.sampled_from([5e-324, 1e-12, 1.0, 1e12]),
    level=st.sampled_from([1e-300, 0.5, 0.95, 1 - 2.0**-53]),
)
def test_the_cut_is_the_lowest_that_fits_and_its_interval_has_ends(
    scores, per_period, period, unit, level
):
    weight = np.full(len(scores), unit)
    found = capacity_threshold(scores, per_period, period, sample_weight=weight, level=level)
    capacity = Fraction(per_period) * Fraction(period) * (1 + Fraction(1, 10**11))
    fitting = [cut for cut in scores if sum(Fraction(unit) for s in scores if s >= cut) <= capacity]
    assert found.threshold == min(fitting, default=np.inf)
    alerts = sum(Fraction(unit) for s in scores if s >= found.threshold)
    assert found.expected == pytest.approx(float(alerts / Fraction(period)), rel=1e-12, abs=1e-320)
    assert 0 <= found.low <= found.high < np.inf
    assert "nan" not in str(found)


@pytest.mark.parametrize(("name", "bad"), [("per_period", 1e300), ("period", 1e-300)])
def test_a_capacity_in_mistaken_units_is_refused(name, bad):
    with pytest.raises(ValueError, match=f"{name}=.* expected a positive number, from 1e-12"):
        capacity_threshold([1.0, 2.0], **{name: bad})
    with pytest.raises(ValueError, match=r"sums to 2e\+300: expected counts of items"):
        capacity_threshold([1.0, 2.0], sample_weight=[1e300, 1e300])
