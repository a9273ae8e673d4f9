"""Confidence intervals: what every metric's interval keeps to, and the hard cases."""

import warnings

import numpy as np
import pytest

from toprank.inference import compare, interval, lift_band
from toprank.inference.bootstrap import WeightedMetric, _Runs, resamples
from toprank.inference.sample import Sample
from toprank.metrics import METRICS, f_skew

SETTINGS = {
    "partial_auc": {"max_fpr": 0.2},
    "tpr_at_fpr": {"fpr": 0.1},
    "precision_at_recall": {"recall": 0.5},
    "recall_at_precision": {"precision": 0.4},
    "pnorm_risk": {"p": 4, "normalize": True},
    "precision_at": {"k": 20},
    "recall_at": {"k": 0.1},
    "lift_at": {"k": 20},
    "enrichment_factor": {"k": 0.07},
    "ndcg_at": {"k": 20},
    "margin_error": {"theta": 0.25},
    "value_at": {"k": 20, "benefit": 2.0, "cost": 0.5},
}
NAMES = [name for name in METRICS if name != "ranking_margin"]
BOOTSTRAPPED = (
    *("push_risk", "bedroc", "value_at"),
    *("precision_at_recall", "recall_at_precision"),
)
DECIDED_BY_ONE_ROW = ("max_height", "positives_at_top", "top_is_positive")
SHARES = (
    *("auc", "misranking_error", "tpr_at_fpr", "ranking_risk", "pnorm_risk", "positives_at_top"),
    *("top_is_positive", "precision_at", "recall_at", "ndcg_at", "average_precision", "bedroc"),
    "margin_error",
)


def data(n=300, high=60, separation=1.0, seed=0, ties=True):
    rng = np.random.default_rng(seed)
    y = np.arange(n) < high
    s = rng.normal(size=n) + separation * y
    return y, np.round(s, 1) if ties else s


def call(name, y, s, **options):
    return interval(name, y, s, n_resamples=100, **SETTINGS.get(name, {}), **options)


@pytest.mark.parametrize("name", NAMES)
def test_the_estimate_is_the_metric_and_lies_where_it_can(name):
    y, s = data()
    result = call(name, y, s)
    expected = METRICS[name].function(y, s, **SETTINGS.get(name, {}))
    assert result.estimate == pytest.approx(expected, rel=1e-12)
    assert result.low < result.high
    assert result.low <= result.estimate - result.bias <= result.high
    if name in SHARES:
        assert 0 <= result.low <= result.high <= 1
    assert result.standard_error > 0
    assert name in str(result)
    assert "95% interval" in str(result)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", NAMES)
def test_a_higher_level_is_wider_and_holds_the_lower_one(name):
    y, s = data()
    narrow, wide = (call(name, y, s, level=level) for level in (0.8, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high or (
        wide.low <= narrow.low and narrow.high <= wide.high
    )


@pytest.mark.parametrize("name", [name for name in NAMES if name not in BOOTSTRAPPED])
def test_a_weight_is_so_many_rows(name):
    y, s = data(n=120, high=30)
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = call(name, y, s, sample_weight=weight)
    repeated = call(name, np.repeat(y, weight), np.repeat(s, weight))
    for field in ("estimate", "low", "high", "standard_error", "bias"):
        assert getattr(weighted, field) == pytest.approx(getattr(repeated, field), rel=1e-9), field


@pytest.mark.parametrize("name", ["auc", "partial_auc", "margin_error", "ranking_risk"])
def test_groups_of_one_row_each_change_little(name):
    y, s = data()
    alone = call(name, y, s)
    grouped = call(name, y, s, groups=np.arange(len(y)))
    assert grouped.standard_error == pytest.approx(alone.standard_error, rel=0.02)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in DECIDED_BY_ONE_ROW])
def test_rows_that_copy_each_other_in_groups_widen_the_interval(name):
    y, s = data(n=100, high=30)
    copies = np.repeat(np.arange(100), 9)
    settings = {**SETTINGS.get(name, {})}
    if isinstance(settings.get("k"), int):
        settings["k"] = 9 * settings["k"]
    naive = interval(name, y[copies], s[copies], n_resamples=100, **settings)
    honest = interval(name, y[copies], s[copies], groups=copies, n_resamples=100, **settings)
    assert honest.high - honest.low > 1.8 * (naive.high - naive.low)


@pytest.mark.parametrize("name", ["auc", "average_precision", "precision_at", "pnorm_risk"])
def test_sampling_weights_are_not_counts(name):
    y, s = data()
    weight = np.full(len(y), 7.0)
    settings = {**SETTINGS.get(name, {})}
    if name == "precision_at":
        settings["k"] = 0.1
    counts = interval(name, y, s, sample_weight=weight, n_resamples=300, **settings)
    sampling = interval(
        name, y, s, sample_weight=weight, weights="sampling", n_resamples=300, **settings
    )
    plain = interval(name, y, s, n_resamples=300, **settings)
    assert sampling.standard_error == pytest.approx(plain.standard_error, rel=0.15)
    assert counts.standard_error < 0.6 * sampling.standard_error


def test_the_delong_variance_is_that_of_the_double_loop():
    y, s = data(n=60, high=20)
    kernel = np.sign(s[y][:, None] - s[~y][None, :]) / 2 + 0.5
    expected = kernel.mean(1).var(ddof=1) / 20 + kernel.mean(0).var(ddof=1) / 40
    assert interval("auc", y, s).standard_error == pytest.approx(np.sqrt(expected), rel=1e-12)


def test_clusters_are_summed_in_the_projection():
    y, s = data(n=60, high=20)
    groups = np.arange(60) % 7
    kernel = np.sign(s[y][:, None] - s[~y][None, :]) / 2 + 0.5
    pulls = np.empty(60)
    pulls[y] = (kernel.mean(1) - kernel.mean()) / 20
    pulls[~y] = (kernel.mean(0) - kernel.mean()) / 40
    sums = np.bincount(groups, weights=pulls)
    expected = np.sqrt(7 / 6 * np.sum(sums**2))
    found = interval("auc", y, s, groups=groups, method="projection")
    assert found.standard_error == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "settings"),
    [("auc", {}), ("partial_auc", {"max_fpr": 0.1}), ("average_precision", {}), ("bedroc", {})],
)
def test_a_perfect_ranking_is_not_certain(name, settings):
    y = np.arange(100) < 30
    result = interval(name, y, np.where(y, 2.0, 1.0) + np.arange(100) / 1000, **settings)
    assert result.estimate == 1
    assert result.high == 1
    assert 0.5 < result.low < 0.999
    assert result.note


def test_an_auc_of_one_leaves_what_disjoint_pairs_leave():
    y = np.arange(100) < 30
    result = interval("auc", y, y + np.arange(100) / 1000, method="projection")
    assert result.low == pytest.approx(0.025 ** (1 / 30))
    assert "30 disjoint pairs" in result.note


def test_equal_scores_have_an_auc_of_one_half_with_an_interval_around_it():
    y = np.arange(100) < 30
    result = interval("auc", y, np.zeros(100))
    assert result.estimate == 0.5
    assert result.low < 0.5 < result.high
    assert result.note


def test_three_positives_give_a_wide_interval_and_one_gives_none():
    rng = np.random.default_rng(0)
    y = np.arange(1000) < 3
    s = rng.normal(size=1000) + y
    few = interval("auc", y, s)
    assert 0 <= few.low < few.estimate < few.high <= 1
    assert few.high - few.low > 0.3
    alone = interval("auc", np.arange(1000) < 1, s)
    assert (alone.low, alone.high) == (0, 1)
    assert "One positive row" in alone.note


@pytest.mark.sampled(5)
@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("push_risk", "value_at")])
def test_a_million_rows_are_no_trouble(name):
    y, s = data(n=1_000_000, high=1000, ties=False)
    result = call(name, y, s)
    assert result.low <= result.estimate <= result.high
    assert np.isfinite([result.low, result.high]).all()


def test_extreme_metrics_take_the_negatives_as_given():
    y, s = data(separation=3.0, ties=False)
    result = interval("positives_at_top", y, s)
    above = np.sum(s[y] > s[~y].max())
    from scipy.stats import binomtest

    exact = binomtest(int(above), 60).proportion_ci(0.95, "exact")
    assert (result.low, result.high) == pytest.approx((exact.low, exact.high))
    assert "given the negatives" in result.method
    assert "inconsistent" in result.note
    height = interval("max_height", y, s)
    assert height.low == pytest.approx(60 * (1 - exact.high))
    zero = interval("tpr_at_fpr", y, s, fpr=0.0)
    assert (zero.low, zero.high) == pytest.approx((exact.low, exact.high))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("ranking_margin", {}, "no valid interval"),
        ("push_risk", {"price": "max"}, "no valid interval"),
        ("push_risk", {"p": np.inf}, "no valid interval"),
        ("pnorm_risk", {"p": np.inf, "margin": 0.5}, "no valid"),
        ("max_height", {"method": "bootstrap"}, "has no interval by method='bootstrap'"),
        ("auc", {"method": "exact"}, "projection"),
        ("auc", {"method": "magic"}, "Unknown method"),
        ("auc", {"level": 1.0}, "level"),
        ("auc", {"level": 95}, "level"),
        ("auc", {"n_resamples": 3}, "n_resamples"),
        ("auc", {"weights": "many"}, "Unknown weights"),
        ("auc", {"groups": np.zeros(300)}, "one group"),
        ("auc", {"groups": np.zeros(3)}, "3 entries"),
        ("precision_at", {"k": 0}, "k=0"),
        ("precision_at", {"k": 301}, "k=301"),
        ("partial_auc", {"max_fpr": 0.0}, "max_fpr"),
        ("auc", {"sample_weight": -np.ones(300)}, "negative"),
        ("enrichment_factor", {"k": 0.001}, "holds no row"),
        ("nonsense", {}, "Unknown metric"),
        ("auc", {"lists": np.arange(300) // 10}, "not a mean over lists"),
        ("misranking_error", {"ties": "none"}, "expected 'half' or 'error'"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(name, settings, words):
    y, s = data()
    with pytest.raises(ValueError, match=words):
        interval(name, y, s, **settings)


def test_the_interval_of_the_logarithm_of_the_greatest_height_is_that_of_the_height():
    y, s = data()
    plain, log = (interval("pnorm_risk", y, s, p=np.inf, log=log) for log in (False, True))
    for name in ("estimate", "low", "high"):
        assert getattr(log, name) == pytest.approx(np.log(getattr(plain, name)))
    with pytest.raises(ValueError, match="is -inf with an interval from -inf"):
        interval("pnorm_risk", y, y.astype(float), p=np.inf, log=True)


def test_groups_that_show_no_spread_leave_more_possible_than_their_rows():
    y = np.arange(40) % 4 == 0
    groups = np.arange(40) // 4
    rows, whole = (
        interval("pnorm_risk", y, y.astype(float), p=2.0, groups=one) for one in (None, groups)
    )
    assert rows.estimate == whole.estimate == rows.low == whole.low == 0
    assert 0 < rows.high < whole.high and "5 disjoint pairs" in whole.note


def test_a_function_that_is_not_finite_in_some_resamples_has_no_interval():
    def odd(y, s):  # one of the two halves of the rows may be missing in a resample
        return 1.0 if {0.0, 1.0, 2.0, 3.0} <= set(s.tolist()) else np.inf

    y, s = np.repeat([0, 1], 4), np.arange(8) % 4 + 0.0
    with pytest.raises(ValueError, match=r"odd is not finite in \d+% of the resamples"):
        interval(odd, y, s, n_resamples=100)
    with pytest.raises(ValueError, match="odd is not finite in some resamples"):
        compare(odd, y, s, s[::-1], n_resamples=100)


def test_a_function_without_weights_is_refused_where_rows_stand_for_others():
    y, s = data()
    with pytest.raises(ValueError, match="takes no sample_weight, so rows cannot be weighted"):
        interval(lambda y, s: 1.0, y, s, sample_weight=np.full(300, 2.0), weights="sampling")


def test_parameters_that_are_missing_or_unknown_are_named():
    y, s = data()
    with pytest.raises(TypeError, match="precision_at needs k"):
        interval("precision_at", y, s)
    with pytest.raises(TypeError, match="auc has no parameter 'k'"):
        interval("auc", y, s, k=3)


@pytest.mark.parametrize(
    ("y", "s"),
    [([1, 1, 1], [1, 2, 3]), ([], []), ([0, 1], [np.nan, 1]), ([0, 1, 1], [1.0, 2.0])],
)
def test_unusable_rows_raise_value_errors(y, s):
    with pytest.raises(ValueError):
        interval("auc", y, s)


@pytest.mark.more
def test_the_bootstrap_does_not_depend_on_the_threads():
    y, s = data()
    how = {"method": "bootstrap"}
    one, two = (interval("bedroc", y, s, n_jobs=n_jobs, **how) for n_jobs in (1, 2))
    assert one == two
    assert interval("bedroc", y, s, random_state=1, **how) != one


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "name", ["auc", "partial_auc", "margin_error", "average_precision", "bedroc"]
)
def test_bootstrap_and_projection_agree_in_large_samples(name):
    y, s = data(n=4000, high=800, ties=False)
    settings = SETTINGS.get(name, {})
    by_rows = interval(name, y, s, **settings)
    resampled = interval(name, y, s, method="bootstrap", **settings)
    assert resampled.standard_error == pytest.approx(by_rows.standard_error, rel=0.12)
    assert resampled.low == pytest.approx(by_rows.low, abs=0.012)


def test_a_mean_over_lists_takes_the_lists_as_the_sample():
    rng = np.random.default_rng(0)
    lists = np.repeat(np.arange(40), 25)
    y = rng.random(1000) < 0.3
    s = rng.normal(size=1000) + y
    result = interval("precision_at", y, s, k=5, lists=lists)
    values = []
    for one in range(40):
        rows = lists == one
        values.append(METRICS["precision_at"].function(y[rows], s[rows], 5))
    assert result.estimate == pytest.approx(np.mean(values))
    assert result.standard_error == pytest.approx(np.std(values, ddof=1) / np.sqrt(40))
    assert "40 lists" in result.method
    worth = interval("value_at", y, s, k=5, lists=lists, cost=0.5)
    assert worth.low < worth.estimate < worth.high


def test_a_function_of_ones_own_is_bootstrapped():
    y, s = data()

    def gap(labels, scores):
        return scores[labels].mean() - scores[~labels].mean()

    result = interval(gap, y, s)
    expected = np.sqrt(s[y].var() / 60 + s[~y].var() / 240)
    assert result.standard_error == pytest.approx(expected, rel=0.1)
    skew = interval("f_skew", y, s, n_resamples=50)
    assert skew.estimate == pytest.approx(f_skew(y, s))
    assert interval(f_skew, y, s, n_resamples=50) == skew
    assert interval(METRICS["auc"].function, y, s) == interval("auc", y, s)


def test_labels_may_be_words():
    y, s = data()
    words = np.where(y, "fraud", "honest")
    assert interval("auc", words, s, pos_label="fraud") == interval("auc", y, s)


def test_no_warning_escapes_from_huge_powers_or_tiny_scores():
    y, s = data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for p in (1, 64, 1000):
            result = interval("pnorm_risk", y, 1e-300 * s, p=p, log=True)
            assert np.isfinite([result.low, result.high]).all()


@pytest.mark.more
@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("name", "settings", "limits"),
    [
        ("auc", {}, (0.92, 0.98)),
        ("partial_auc", {"max_fpr": 0.1}, (0.92, 0.985)),
        ("pnorm_risk", {"p": 4, "normalize": True}, (0.92, 0.985)),
        ("average_precision", {}, (0.915, 0.975)),
        ("bedroc", {}, (0.915, 0.985)),
        ("precision_at", {"k": 20}, (0.93, 1.0)),
        ("recall_at", {"k": 20}, (0.93, 1.0)),
        ("tpr_at_fpr", {"fpr": 0.1}, (0.93, 1.0)),
        ("ndcg_at", {"k": 20}, (0.93, 1.0)),
    ],
)
def test_intervals_cover_in_small_samples(name, settings, limits):
    rng = np.random.default_rng(0)
    y = np.arange(200) < 40
    if name in ("precision_at", "recall_at", "ndcg_at"):
        lists = [rng.normal(size=200) + y for _ in range(2000)]
        truth = np.mean([METRICS[name].function(y, s, **settings) for s in lists])
    else:
        big = np.tile(y, 5000)
        truth = METRICS[name].function(big, rng.normal(size=len(big)) + big, **settings)
    results = [interval(name, y, rng.normal(size=200) + y, **settings) for _ in range(500)]
    covered = np.mean([result.low <= truth <= result.high for result in results])
    assert limits[0] <= covered <= limits[1]


def test_a_mean_over_lists_that_all_agree_has_the_interval_of_as_many_trials():
    y, s = np.tile([1, 0, 0], 20), np.tile([3.0, 2.0, 1.0], 20)
    lists = np.arange(60) // 3
    found = interval("precision_at", y, s, lists=lists, k=1)
    assert (found.estimate, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(0.025 ** (1 / 20))  # Clopper and Pearson, 20 of 20
    assert "Every list has the same value" in found.note
    for given, said in (
        ({"groups": lists}, "Give lists= or groups=, not both"),
        ({"method": "bootstrap"}, "no interval by method='bootstrap'; use 'auto'"),
        ({"lists": np.zeros(60)}, "holds 1 list with a positive; an interval over lists needs two"),
    ):
        with pytest.raises(ValueError, match=said):
            interval("precision_at", y, s, **{"lists": lists, "k": 1, **given})


@pytest.mark.parametrize("groups", [None, np.arange(300) % 30])
def test_a_value_of_one_benefit_and_cost_has_the_ends_of_the_precision(groups):
    y, s = data()
    share = interval("precision_at", y, s, k=20, groups=groups, n_resamples=50)
    for benefit, cost in ((5.0, 1.0), (-2.0, 0.0)):
        worth = {"benefit": benefit, "cost": cost}
        found = interval("value_at", y, s, k=20, groups=groups, n_resamples=50, **worth)
        ends = sorted(20 * (benefit * one - cost) for one in (share.low, share.high))
        assert (found.low, found.high) == pytest.approx(tuple(ends))
        assert found.estimate == pytest.approx(METRICS["value_at"].function(y, s, 20, **worth))
        assert found.standard_error == pytest.approx(20 * abs(benefit) * share.standard_error)
    of_rows = interval("value_at", y, s, k=20, benefit=np.full(300, 5.0), groups=groups)
    assert of_rows.method == ("influence of the rows" if groups is None else of_rows.method)


@pytest.mark.parametrize("k", [30, 0.2])
def test_a_value_of_amounts_row_by_row_comes_from_what_each_row_moves(k):
    y, s = data(n=1500, high=300, ties=False)
    benefit, cost = np.random.default_rng(1).exponential(size=(2, 1500))
    how = {"k": k, "benefit": benefit, "cost": cost}
    found, resampled = (
        interval("value_at", y, s, method=method, **how) for method in ("auto", "bootstrap")
    )
    assert found.estimate == resampled.estimate and found.low < found.estimate < found.high
    # rows are drawn together, and resamples have as many positives as the list
    assert 0.9 < found.standard_error / resampled.standard_error < 1.35
    weight = np.random.default_rng(2).integers(1, 4, 1500)
    weighted = interval("value_at", y, s, sample_weight=weight, **how)
    rows = np.repeat(np.arange(1500), weight)
    amounts = {"benefit": benefit[rows], "cost": cost[rows]}
    repeated = interval("value_at", y[rows], s[rows], k=k, **amounts)
    for field in ("estimate", "low", "high", "standard_error"):
        assert getattr(weighted, field) == pytest.approx(getattr(repeated, field))
    sampled = interval("value_at", y, s, sample_weight=weight, weights="sampling", **how)
    assert sampled.standard_error > 1.3 * weighted.standard_error


def test_a_value_of_few_rows_of_a_class_or_of_no_spread_is_resampled():
    y, s = data(n=300, high=9, ties=False)
    found = interval("value_at", y, s, k=20, benefit=np.full(300, 2.0), n_resamples=20)
    assert "bootstrap" in found.method
    y, s = data(n=300, high=60, ties=False)
    found = interval("value_at", y, s, k=20, cost=np.zeros(300), benefit=np.zeros(300))
    assert found.low == found.high == 0 and "Every resample gives the same value" in found.note


def test_values_of_amounts_are_covered():
    rng, covered = np.random.default_rng(4), 0
    y, drawn = np.arange(500) < 25, []
    for _ in range(300):
        how = {"k": 25, "benefit": rng.exponential(size=500), "cost": np.full(500, 0.1)}
        drawn.append(interval("value_at", y, rng.normal(size=500) + 1.5 * y, **how))
    truth = np.mean([one.estimate for one in drawn])
    covered = np.mean([one.low <= truth <= one.high for one in drawn])
    assert 0.92 < covered < 0.995


@pytest.mark.parametrize("name", ["precision_at_recall", "recall_at_precision", "bedroc", "auc"])
def test_resamples_of_what_the_order_decides_are_drawn_from_a_short_list(name):
    y, s = data(n=400, high=40)
    sample, rng = Sample.of(y, s), np.random.default_rng(3)
    statistic = WeightedMetric(sample, METRICS[name], SETTINGS.get(name, {}))
    short = statistic.drawn_from
    assert len(short.scores) < len(sample.ranked.scores)
    passed = np.searchsorted(short.passed, sample.ranked.passed[1:])  # where each tie ends
    found = np.searchsorted(short.found, sample.ranked.found[1:])
    tie = np.maximum(passed, found)[sample.ties] - 1
    for _ in range(20):
        weight = rng.integers(0, 3, 400).astype(float)
        parts = (np.bincount(tie[of], weight[of], len(short.scores)) for of in (y, ~y))
        assert statistic.of_ties(short, *parts) == pytest.approx(statistic(weight))
    by_rows = np.std([statistic(w) for w, _ in zip(draws(sample), range(600), strict=False)])
    assert np.std([statistic.drawn(rng) for _ in range(600)]) == pytest.approx(by_rows, rel=0.15)


def draws(sample):
    return resamples(sample, np.arange(len(sample.scores)), np.random.default_rng(1))


def test_a_value_whose_first_rows_are_all_positive_is_not_certain():
    y = np.repeat([1, 0], [40, 360])
    s = np.random.default_rng(0).normal(size=400) + 4 * y
    found = interval("value_at", y, s, k=0.02, benefit=5.0, cost=1.0)
    assert found.estimate == found.high == 32 and found.low < 25


def test_the_interval_of_delong_for_one_positive_is_any_value():
    found = interval("auc", [1, 0, 0, 0], [3.0, 2.0, 1.0, 0.0], method="delong")
    assert (found.low, found.high) == (0.0, 1.0) and "One positive row" in found.note


@pytest.mark.parametrize("ties", [[0, 0, 1, 3], [0, 1, 3, 4], [1] * 9 + [2] * 20])
def test_a_resample_draws_every_row_as_often_as_every_other(ties):
    rng, runs = np.random.default_rng(0), _Runs.of(np.bincount(ties))
    drawn = np.array([runs.drawn(5, rng) for _ in range(4000)])
    assert np.all(drawn.sum(axis=1) == len(ties))
    # a row comes once on average, give or take 0.87 / sqrt(4000), and twenty of 29 2.5 / sqrt(4000)
    assert drawn.mean(axis=0) == pytest.approx(np.bincount(ties, minlength=5), abs=0.1)


@pytest.mark.parametrize(
    ("metric", "k", "rate", "truth"),
    [
        ("lift_at", 0.1, 0.3, 3.336),
        ("lift_at", 10, 0.1, 10.19),
        ("enrichment_factor", 0.03, 0.1, 10.03),
    ],
)
def test_a_lift_is_covered_where_the_share_of_positives_is_drawn_too(metric, k, rate, truth):
    """The first rows are all positive: what is left of the spread is that of the share."""
    rng = np.random.default_rng(2)
    missed = 0
    for _ in range(200):
        y = rng.random(1000) < rate
        found = interval(metric, y, rng.normal(size=1000) + 3.5 * y, k=k)
        missed += not found.low <= truth <= found.high
        assert found.low <= found.estimate <= found.high
    assert missed < 0.08 * 200


def test_one_hit_in_one_row_bounds_a_lift_as_one_trial_does():
    rng = np.random.default_rng(5)
    y = np.repeat([1, 0], [30, 70])
    s = rng.normal(size=100)
    s[0] = 9.0
    found = interval("lift_at", y, s, k=1)
    assert found.low == pytest.approx(0.025 / 0.3)  # Clopper and Pearson, 1 of 1
    band = lift_band(y, s, top=[0.01])
    assert (band.low[0], band.high[0]) == pytest.approx((found.low, found.high))


def test_a_lift_is_covered_where_the_labels_change_at_the_cut():
    rng, missed = np.random.default_rng(2), 0
    for _ in range(400):
        y = rng.random(80) < 0.5
        found = interval("lift_at", y, rng.normal(size=80) + 4 * y, k=38)
        missed += not found.low <= 1.95 <= found.high
    assert missed < 0.095 * 400  # 10% to 12% of them, with the variance of all rows around


def test_sampling_weights_that_let_few_rows_count_are_named():
    rng = np.random.default_rng(0)
    y = rng.random(2000) < 0.05
    s = rng.normal(size=2000) + 1.5 * y
    chance = np.where(s > 1, 1.0, 0.1)
    kept = rng.random(2000) < chance
    y, s, weight = y[kept], s[kept], 1 / chance[kept]
    assert "count as" in interval("auc", y, s, sample_weight=weight, weights="sampling").note
    even = rng.uniform(0.9, 1.1, len(y))
    assert interval("auc", y, s, sample_weight=even, weights="sampling").note == ""


def test_a_part_of_the_curve_as_wide_as_two_negatives_is_named():
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [20, 20])
    s = rng.normal(size=40) + y
    assert "as wide as 2 negatives" in interval("partial_auc", y, s, max_fpr=0.1).note
    assert interval("partial_auc", y, s, max_fpr=0.3).note == ""


@pytest.mark.parametrize("k", [60, 1.0])
def test_a_list_of_all_rows_has_found_every_positive(k):
    y, s = np.arange(60) % 7 == 0, np.sin(np.arange(60.0))
    for metric in ("recall_at", "lift_at"):
        found = interval(metric, y, s, k=k)
        assert found.low == found.estimate == found.high == 1
    for how in ({"sample_weight": np.linspace(0.5, 2, 60)}, {"groups": np.arange(60) // 3}):
        found = interval("recall_at", y, s, k=1.0, **how)
        assert found.low == found.high == 1
    assert interval("recall_at", y, s, k=59).low < 0.9
