"""The simulator of intervals: its draws are what they say, and its verdicts are right."""

import numpy as np
import pytest
from scipy.special import ndtr

from toprank.metrics import auc
from toprank.simulate import ScoreSetting, coverage
from toprank.simulate.error_bars import LAWS, nearest_coverage


@pytest.mark.parametrize("law", LAWS)
def test_samples_have_the_positives_and_the_rows_they_say(law):
    setting = ScoreSetting(12, 0.05, law)
    y, s, how = setting.draw(np.random.default_rng(0))
    assert (np.sum(y), len(y), how) == (12, 240, {})
    assert len(np.unique(s)) <= 5 if law == "ties" else len(np.unique(s)) == 240


def test_groups_are_equal_or_not_and_rows_of_one_are_alike():
    rng = np.random.default_rng(0)
    even, uneven = (
        ScoreSetting(400, 0.1, groups=40, unequal=unequal).draw(rng) for unequal in (False, True)
    )
    assert np.ptp(np.bincount(even[2]["groups"])) == 0
    assert np.ptp(np.bincount(uneven[2]["groups"])) > 100
    means = [np.mean(even[1][even[2]["groups"] == group]) for group in range(40)]
    assert np.std(means) > 0.25  # 0.1 if rows were independent


def test_weights_are_of_rows_that_stand_for_others():
    _, _, how = ScoreSetting(weighted=True).draw(np.random.default_rng(0))
    assert how["weights"] == "sampling"
    assert set(how["sample_weight"]) == {1, 2, 3, 4}


def test_the_true_value_is_that_of_the_law(monkeypatch):
    monkeypatch.setattr("toprank.simulate.error_bars._ENDLESS", 100_000)
    found = coverage("auc", ScoreSetting(separation=1.3), draws=5)
    assert found.true_value == pytest.approx(ndtr(1.3 / np.sqrt(2)), abs=0.004)
    at_k = coverage("precision_at", ScoreSetting(20, 0.2, "random"), draws=5, k=10)
    assert at_k.true_value == pytest.approx(0.2, abs=0.02)


def test_a_method_that_is_too_narrow_is_found_out(monkeypatch):
    monkeypatch.setattr("toprank.simulate.error_bars._ENDLESS", 100_000)
    setting = ScoreSetting(10, 0.05, "near-perfect")
    honest, narrow = (coverage("auc", setting, draws=100, method=m) for m in ("auto", "delong"))
    assert honest.covered > 0.93
    assert narrow.covered < 0.85
    assert narrow.above == pytest.approx(1 - narrow.covered - narrow.below)
    assert "near" not in str(narrow)
    assert "100 samples" in str(narrow)
    share = narrow.covered
    assert narrow.standard_error == pytest.approx(np.sqrt(share * (1 - share) / 100))
    assert narrow.as_dict()["covered"] == share


def test_refusals_are_counted_with_their_reason(monkeypatch):
    monkeypatch.setattr("toprank.simulate.error_bars._ENDLESS", 10_000)
    found = coverage("auc", ScoreSetting(4, 0.02, groups=5), draws=30)
    assert 0 < found.refused <= 1
    assert "groups hold a positive" in str(found)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"positives": 1}, "from 2"),
        ({"prevalence": 1.0}, "between 0 and 1"),
        ({"law": "cauchy"}, "Unknown law"),
        ({"groups": 2}, "from 3"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        ScoreSetting(**settings)
    assert ScoreSetting(40, 0.99).rows == 42  # there are two negatives at least


def test_an_extreme_has_no_coverage():
    with pytest.raises(ValueError, match="extreme row"):
        coverage("max_height")
    assert auc(*ScoreSetting(law="near-perfect").draw(np.random.default_rng(0))[:2]) > 0.97


#: Metric, parameters, setting: corners of the table of docs/evidence/error_bars_table.md.
CORNERS = [
    ("auc", {}, ScoreSetting(5, 0.05)),
    ("auc", {}, ScoreSetting(10, 0.05, "t3")),
    ("auc", {}, ScoreSetting(40, 0.1, "t3", 4.0)),
    ("auc", {}, ScoreSetting(20, 0.1, "ties")),
    ("auc", {}, ScoreSetting(40, 0.1, groups=15, unequal=True)),
    ("partial_auc", {"max_fpr": 0.1}, ScoreSetting(20, 0.1)),
    ("partial_auc", {"max_fpr": 0.1}, ScoreSetting(40, 0.1, groups=15, unequal=True)),
    ("average_precision", {}, ScoreSetting(10, 0.02)),
    ("average_precision", {}, ScoreSetting(40, 0.1, groups=15, unequal=True)),
    ("pnorm_risk", {"p": 4, "normalize": True}, ScoreSetting(40, 0.1, groups=15, unequal=True)),
    ("precision_at", {"k": 20}, ScoreSetting(20, 0.05, "ties")),
    ("recall_at", {"k": 0.1}, ScoreSetting(10, 0.1)),
]


@pytest.mark.more
@pytest.mark.parametrize(("metric", "settings", "setting"), CORNERS)
def test_corners_of_the_table_are_covered(metric, settings, setting):
    found = coverage(metric, setting, draws=300, n_resamples=100, **settings)
    assert found.covered >= 0.935 - 3 * 0.0126, found  # three standard errors of 300 draws


def test_groups_that_hardly_ever_hold_two_of_each_class_are_refused():
    with pytest.raises(ValueError, match="hardly ever has two positives"):
        ScoreSetting(2, 0.9, groups=3).draw(np.random.default_rng(0))  # three rows


def test_a_truth_that_is_given_is_what_intervals_are_held_to():
    setting, exact = ScoreSetting(100, 0.2, separation=1.3), float(ndtr(1.3 / np.sqrt(2)))
    right, wrong = (coverage("auc", setting, draws=20, truth=truth) for truth in (exact, 0.5))
    assert right.true_value == exact and right.covered > 0.7
    assert wrong.covered == 0.0 and wrong.above == 1.0
    # nothing was refused and nothing noted: the line ends with the samples
    assert str(right).endswith("20 samples") and right.noted == right.refused == 0.0


def test_the_nearest_coverage_is_a_sum_of_chances_of_neighbours():
    # values with the chances 0.02, 0.08 and 0.9: intervals cover 0.9, 0.98 or 1
    few = np.repeat([0.2, 0.6, 1.0], [2, 8, 90])
    assert nearest_coverage(few) == pytest.approx((0.98, 0.98))
    # an extreme value in 58 of 100 samples: one end cannot miss, the other may in half of the risk
    often_perfect = np.r_[np.ones(5800), np.arange(4200) / 1e4]
    assert nearest_coverage(often_perfect) == pytest.approx((0.935, 0.975))
    assert nearest_coverage(np.arange(2000.0), 0.9) == pytest.approx((0.87, 0.9))
    assert nearest_coverage(np.zeros(7)) == (1.0, 1.0)
    assert np.all(np.isnan(nearest_coverage(np.array([]))))


def test_the_nearest_coverage_is_the_least_of_all_ranges_of_values():
    values = np.random.default_rng(0).binomial(12, 0.8, 500) / 12
    known = np.unique(values)
    shares = [np.mean((a <= values) & (values <= b)) for a in known for b in known]
    assert nearest_coverage(values)[0] == pytest.approx(min(s for s in shares if s >= 0.935))


def test_few_values_are_named_where_a_coverage_is_printed():
    few = ScoreSetting(5, 0.5, "near-perfect")
    found = coverage("tpr_at_fpr", few, draws=60, fpr=0.3, truth=0.99)
    assert found.nearest > 0.975 and f"covers less than {found.nearest:.1%}" in str(found)
    assert "covers less" not in str(coverage("auc", ScoreSetting(10, 0.1), draws=60, truth=0.7))
