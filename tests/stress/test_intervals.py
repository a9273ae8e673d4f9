"""Every interval, comparison and band of ugly rows is finite and in order, or refuses in words."""

import numpy as np
import pytest

from toprank.inference import (
    compare,
    interval,
    lift_band,
    precision_recall_band,
    roc_band,
)
from toprank.metrics import METRICS, ndcg_at

SHARES = (
    *("auc", "misranking_error", "tpr_at_fpr", "ranking_risk", "top_is_positive", "precision_at"),
    *("recall_at", "ndcg_at", "average_precision", "bedroc", "margin_error"),
)
SETTINGS = {
    "partial_auc": ({"max_fpr": 0.2}, {"min_tpr": 0.7}),
    "tpr_at_fpr": ({"fpr": 0.1}, {"fpr": 0.0}, {"fpr": 1.0}),
    "precision_at_recall": ({"recall": 0.1}, {"recall": 1.0}),
    "recall_at_precision": ({"precision": 0.3}, {"precision": 1.0}),
    "pnorm_risk": (
        {"p": 4.0},
        {"p": 64.0, "normalize": True},
        {"p": 2.0, "log": True},
        {"p": 3.0, "margin": 0.5},
    ),
    "misranking_error": ({}, {"ties": "error"}),
    "push_risk": ({}, {"p": 4.0, "loss": "logistic"}, {"price": "log1p"}, {"log": True}),
    "max_height": ({}, {"normalize": True}),
    "positives_at_top": ({}, {"normalize": False}),
    "value_at": ({"k": 0.3, "benefit": 2.0, "cost": 0.5}, {"k": 1}),
    "bedroc": ({}, {"alpha": 1e-3}),
    "margin_error": ({"theta": 0.0}, {"theta": 0.5}),
}
#: The refusals that are documented; any other ValueError is a defect.
REFUSALS = (
    "has no interval by method",
    "depends on one extreme row",
    "has no valid interval",
    "too far from a repetition count",
    "expected weights of 0 or at least",
    "single row",
    "pairs of pairs without a common row",
    "does not show how far",
    "fewer do not show how far groups differ",
    "is not a count of the list's rows",
    "not a pair of rows",
    "too large for its spread",
    "minus infinity",
    "these rows do not bound it",
    "not finite in",
    "every row into one group",
    "one group only",
    "expected scores up to",
    "so there is no pair to rank",
    "holds no row",
    "at least one non-zero",
    "one value only",
    "adds up to more than any float",
)


def problems(rng, count):
    """Rows with one thing wrong with them: labels, scores, weights or groups."""
    for _ in range(count):
        n = int(rng.choice([2, 3, 4, 8, 25]))
        y = rng.integers(0, 2, n)
        y[:] = {0: 0, 1: 1}.get(int(rng.integers(0, 6)), y)
        y[rng.permutation(n)[:2]] = [0, 1]
        normal = rng.normal(size=n) + y
        scores = (
            *(normal, np.zeros(n), y * 1.0, -1.0 * y, np.round(normal), normal * 1e90),
            *(rng.choice([-1.7e308, 1e308, 1.7e308], n), rng.choice([5e-324, 0.0, -0.0], n)),
            1 + normal * 1e-16,
        )[rng.integers(0, 9)]
        weights = (
            *(None, None, rng.integers(0, 4, n) * 1.0, 10.0 ** rng.uniform(-12, 12, n)),
            *(np.full(n, 1e-12), np.full(n, 1e12), rng.choice([5e-324, 1.0], n), rng.random(n)),
            rng.choice([1.0, 1e98], n),
        )[rng.integers(0, 9)]
        groups = (None, None, np.arange(n), np.arange(n) % 2, np.arange(n) // 2)[rng.integers(0, 5)]
        yield y, scores, {"sample_weight": weights, "groups": groups}


def settings_of(name):
    at_k = ({"k": 1}, {"k": 0.3}, {"k": 1.0})
    return SETTINGS.get(name, at_k if METRICS[name].takes_k else ({},))


def refused(error):
    assert any(words in str(error) for words in REFUSALS), error


def check_interval(name, found):
    numbers = (found.estimate, found.low, found.high, found.bias)
    assert np.all(np.isfinite(numbers)), found
    centre, slack = found.estimate - found.bias, 1e-9 * max(1.0, abs(found.low), abs(found.high))
    assert found.low - slack <= centre <= found.high + slack, found
    assert found.low - slack <= found.estimate <= found.high + slack, found
    if name in SHARES:
        assert 0 <= found.low <= found.high <= 1, found
    if np.isnan(found.standard_error):
        assert found.method.startswith("no interval: fewer than two") or found.method.startswith(
            "Clopper"
        )
    else:
        assert 0 <= found.standard_error < np.inf, found
    assert found.metric in str(found)


def attack(name, rng, count):
    """Ask for intervals and comparisons; return how many were tried, and how many answered."""
    tried = answered = 0
    for y, s, rows in problems(rng, count):
        common = {**rows, "weights": str(rng.choice(["counts", "sampling"])), "n_resamples": 20}
        level = float(rng.choice([0.95, 0.5, 0.05, 0.999, 1 - 1e-12]))
        method = str(rng.choice(["auto", "auto", "projection", "bootstrap", "exact"]))
        for settings in settings_of(name):
            tried += 2
            try:
                found = interval(name, y, s, level=level, method=method, **common, **settings)
            except ValueError as error:
                refused(error)
            else:
                check_interval(name, found)
                answered += 1
            other = rng.permutation(s)
            try:
                apart = compare(name, y, s, other, level=level, **common, **settings)
            except ValueError as error:
                refused(error)
            else:
                ends = (apart.low, apart.difference, apart.high)
                slack = 1e-9 * max(1.0, *map(abs, ends))
                assert np.all(np.isfinite(ends)), apart
                assert ends[0] - slack <= ends[1] <= ends[2] + slack, apart
                assert 0 <= apart.p_value <= 1, apart
                answered += 1
    return tried, answered


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", METRICS)
def test_the_interval_of_ugly_rows_is_finite_and_in_order_or_refused(name, record_property):
    tried, answered = attack(name, np.random.default_rng(0), 8)
    record_property("cases", tried)
    assert answered or name == "ranking_margin"


@pytest.mark.slow
@pytest.mark.parametrize("name", METRICS)
def test_intervals_of_many_ugly_rows_are_finite_and_in_order_or_refused(name, record_property):
    tried, _ = attack(name, np.random.default_rng(1), 150)
    record_property("cases", tried)


@pytest.mark.parametrize("band", [roc_band, lift_band, precision_recall_band])
def test_bands_of_ugly_rows_are_finite_and_in_order_or_refused(band, record_property):
    tried, answered = 0, 0
    for y, s, rows in problems(np.random.default_rng(2), 30):
        tried += 1
        try:
            found = band(y, s, sample_weight=rows["sample_weight"])
        except ValueError as error:
            refused(error)
            continue
        answered += 1
        assert np.all(np.isfinite(found.low)) and np.all(np.isfinite(found.high))
        assert np.all(found.low <= found.high)
    record_property("cases", tried)
    assert answered


# ---- what went wrong ---------------------------------------------------------------------------

Y = np.array([0, 1, 0, 1, 1, 0, 0, 1])
S = np.array([1.0, 2.0, 3.0, 4.0, 2.5, 0.5, 2.2, 1.1])


def test_ndcg_of_a_trillion_rows_takes_no_table_of_all_places():
    found = interval("ndcg_at", Y, S, k=0.3, sample_weight=np.full(8, 1e12))
    assert found.estimate == pytest.approx(ndcg_at(Y, S, 0.3, sample_weight=np.full(8, 1e12)))
    assert 0 <= found.low <= found.estimate <= found.high <= 1


def test_runs_of_places_change_nothing_that_matters(monkeypatch):
    weight = np.full(8, 1000.0)
    exact = interval("ndcg_at", Y, S, k=0.5, sample_weight=weight)
    monkeypatch.setattr("toprank.metrics.at_cut._SINGLE", 64)
    in_runs = interval("ndcg_at", Y, S, k=0.5, sample_weight=weight)
    assert in_runs.low == pytest.approx(exact.low, rel=1e-3)
    assert in_runs.high == pytest.approx(exact.high, rel=1e-3)


def test_ndcg_to_a_depth_between_two_rows_lies_in_its_interval():
    y, s = [1, 0, 0, 0, 1], [0.44, 0.09, -0.74, -1.16, 0.47]
    weight = [38.0, 1.57, 1.5e-9, 0.05, 2.0]
    found = interval("ndcg_at", y, s, k=0.3, sample_weight=weight)
    assert found.estimate == pytest.approx(1.0)
    assert found.low <= found.estimate <= found.high + 1e-12


def test_a_difference_of_values_may_be_as_large_as_benefits_and_costs_allow():
    y = np.repeat([0, 1], 20)
    found = compare("value_at", y, -1.0 * y, 1.0 * y, k=20, benefit=2.0, cost=0.5)
    assert found.difference == -40.0
    assert found.low <= found.difference <= found.high


def test_the_logarithm_of_no_misrank_has_no_interval():
    y = np.repeat([0, 1], 5)
    with pytest.raises(ValueError, match="minus infinity: no pair is misranked"):
        interval("pnorm_risk", y, y, p=2.0, log=True)
    with pytest.raises(ValueError, match="minus infinity: no pair is misranked"):
        compare("pnorm_risk", y, y, y, p=2.0, log=True)


def test_a_risk_near_zero_has_a_finite_error_on_the_log_scale():
    y = np.repeat([0, 1], 400)
    s = y + np.linspace(0, 1e-3, 800)
    s[0] = s[401]  # one negative beats two of the positives
    found = interval("pnorm_risk", y, s, p=8.0, log=True)
    assert np.isfinite(found.standard_error) and found.low <= found.estimate - found.bias


def test_amounts_of_more_rows_than_there_are_are_refused():
    weight = np.array([0.0, *np.ones(7)])
    for ask in (
        lambda **k: interval("value_at", Y, S, k=2, sample_weight=weight, **k),
        lambda **k: compare("value_at", Y, S, -S, k=2, sample_weight=weight, **k),
    ):
        with pytest.raises(ValueError, match="expected one number or one number per row"):
            ask(benefit=np.ones(9))


def own(y, s):
    return float(np.mean(s[y == 1]) - np.mean(s[y == 0]))


def test_weights_are_not_rounded_away_for_a_function_that_takes_none():
    with pytest.raises(ValueError, match="expected whole weights"):
        interval(own, Y, S, sample_weight=np.full(8, 0.4))
    with pytest.raises(ValueError, match="expected whole weights of at most 1e"):
        interval(own, Y, S, sample_weight=np.full(8, 1e12))


def test_shares_of_more_trials_than_the_beta_law_can_count_are_no_nan():
    y, s = Y, S
    for weight in (1e12, 1e20, 1e98):
        band = roc_band(y, s, sample_weight=np.full(8, weight))
        assert np.all(np.isfinite(band.low)) and np.all(np.isfinite(band.high))
        found = interval("precision_at", y, s, k=0.5, sample_weight=np.full(8, weight))
        assert found.low <= found.estimate <= found.high < found.low + 1e-4


def test_one_group_says_nothing_of_a_difference_of_ranking_risks():
    with pytest.raises(ValueError, match="a comparison needs at least two"):
        compare("ranking_risk", Y, S, -S, groups=np.zeros(8), sample_weight=np.full(8, 1e12))


@pytest.mark.more
def test_risks_too_large_for_a_spread_ask_for_their_logarithm():
    weight = np.array([1.0, 1e98, 1e98, 1e98, 1.0, 1.0, 1e98, 1.0])
    for ask in (
        lambda: interval("push_risk", Y, S, sample_weight=weight, weights="sampling"),
        lambda: compare("push_risk", Y, S, -S, sample_weight=weight, weights="sampling"),
    ):
        with pytest.raises(ValueError, match="too large for its spread"):
            ask()


def test_subnormal_weights_are_refused_before_a_resample_is_made_of_them_alone():
    with pytest.raises(ValueError, match=r"goes down to 4\.94066e-324, expected weights of 0 or"):
        interval("bedroc", Y, S, sample_weight=np.array([5e-324, *np.ones(7)]))


@pytest.mark.parametrize(
    ("name", "settings"), [("pnorm_risk", {"p": 4.0, "log": True}), ("average_precision", {})]
)
def test_the_change_by_one_row_of_very_many_was_all_rounding(name, settings):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3 == 0
    s = rng.normal(size=60) + y
    for weight in (1e9, 1e14, 1e98):
        few, many = (
            interval(name, y, s, sample_weight=np.full(60, each), **settings)
            for each in (1e4, weight)
        )
        wanted = few.standard_error / np.sqrt(weight / 1e4)
        assert many.standard_error == pytest.approx(wanted, rel=1e-3, abs=1e-12)
        assert abs(many.bias) < 1e-6
        assert many.low - 1e-12 <= many.estimate <= many.high + 1e-12
