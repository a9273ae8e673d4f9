"""Positives among unlabelled rows: their share, and metrics corrected for it."""

import numpy as np
import pytest

from toprank.inference import hidden_positives, hidden_share, interval, unlabelled_interval
from toprank.metrics import METRICS, auc, pnorm_risk, push_risk, unlabelled_value
from toprank.prices import from_callable


def scar(rng, n=5000, share=0.2, labels=0.4, gap=2.5):
    y = rng.random(n) < share
    s = rng.normal(size=n) + gap * y
    return y, s, y & (rng.random(n) < labels), share * (1 - labels) / (1 - share * labels)


def test_the_share_of_hidden_positives_is_found_from_scores():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(20):
        _, s, labelled, truth = scar(rng)
        one = hidden_share(labelled, s)
        assert one.low <= one.estimate <= one.high
        found.append((one.estimate, one.low <= truth <= one.high))
    assert np.mean([estimate for estimate, _ in found]) == pytest.approx(truth, rel=0.1)
    assert sum(hit for _, hit in found) >= 18


def test_a_top_that_is_not_pure_leaves_the_lower_end_open():
    rng = np.random.default_rng(1)
    _, s, labelled, truth = scar(rng, n=20_000, share=0.02, labels=0.5, gap=1.0)
    found = hidden_share(labelled, s)
    assert found.low == 0 and found.high > truth
    assert "still falling" in found.note


def test_no_hidden_positive_gives_a_share_near_zero():
    rng = np.random.default_rng(2)
    y, s, _, _ = scar(rng, gap=4.0)
    assert hidden_share(y, s).estimate < 0.005
    apart = np.where(y, 10.0, 0.0)
    assert hidden_share(y, apart).high < 0.01
    found = unlabelled_interval("pnorm_risk", y, apart, 0.0, p=2, n_resamples=20)
    assert found.estimate == 0 < found.high < 0.1


PRICED = {
    "identity": {"price": "identity", "loss": "logistic"},
    "power": {"price": "power", "p": 3, "loss": "zero_one"},
    "squared hinge": {"price": "power", "p": 2, "loss": "squared_hinge"},
    "own": {"price": from_callable(lambda s: s**1.5, lambda s: 1.5 * s**0.5), "loss": "hinge"},
}


@pytest.mark.parametrize("name", PRICED)
def test_push_risks_are_those_of_known_hidden_positives(name):
    rng = np.random.default_rng(3)
    errors, naive = [], []
    for _ in range(15):
        y, s, labelled, _ = scar(rng, 2000, 0.2, 0.5, 1.5)
        truth = push_risk(y, s, **PRICED[name])
        for hidden, list_of in ((np.mean(y[~labelled]), errors), (0.0, naive)):
            value = unlabelled_value("push_risk", labelled, s, hidden, **PRICED[name])
            list_of.append(value / truth - 1)
    assert abs(np.mean(errors)) < max(4 * np.std(errors) / np.sqrt(15), 0.05)
    assert abs(np.mean(naive)) > 5 * np.std(naive) / np.sqrt(15)


def test_the_heights_of_positives_among_each_other_have_one_law_in_every_order():
    # so that for the 0-1 loss the best order against unlabelled rows is best against negatives
    rng = np.random.default_rng(4)
    y, _, labelled, hidden = scar(rng, 400)
    values = [
        unlabelled_value("pnorm_risk", labelled, s, hidden, p=4) ** 4 * (1 - hidden)
        - pnorm_risk(labelled, s, 4, normalize=True) ** 4
        for s in (rng.normal(size=400) + gap * y for gap in (0.0, 1.0, 3.0))
    ]
    assert values[0] == pytest.approx(values[1]) == pytest.approx(values[2])


def test_known_negatives_are_told_from_unlabelled_rows():
    rng = np.random.default_rng(5)
    y, s, labelled, _ = scar(rng)
    known = ~y & (rng.random(len(y)) < 0.5)
    labels = np.select([labelled, known], [1.0, 0.0], np.nan)
    hidden = np.mean(y[~labelled & ~known])
    of_nan = interval("auc", labels, s, unlabelled=np.nan, hidden=hidden)
    of_mask = interval("auc", labelled, s, unlabelled=~labelled & ~known, hidden=hidden)
    of_value = unlabelled_interval("auc", np.nan_to_num(labels, nan=-1), s, hidden, unlabelled=-1)
    assert of_nan.estimate == of_mask.estimate == of_value.estimate
    assert of_nan.estimate == pytest.approx(auc(y, s), abs=0.01)
    words = np.where(labelled, "fraud", "unknown")
    assert unlabelled_value("auc", words, s, 0.0, unlabelled="unknown") == auc(labelled, s)
    estimated = interval("precision_at", labels, s, k=100, unlabelled=np.nan)
    assert "estimated" in estimated.note and estimated.low <= estimated.estimate <= 1


def test_an_estimated_share_makes_the_interval_wider():
    _, s, labelled, truth = scar(np.random.default_rng(6))
    given, estimated = (unlabelled_interval("auc", labelled, s, one) for one in (truth, None))
    assert estimated.low < given.low and given.high < estimated.high and estimated.level == 0.95


@pytest.mark.parametrize(
    ("labels", "unlabelled", "words"),
    [
        ([1, 1, 0, 0], 7, "no row of y is without a label"),
        ([np.nan] * 4, np.nan, "All 4 rows of y are without a label"),
        ([0, 0, np.nan, np.nan], np.nan, "known to be positive"),
        ([0, 0, 0, 0], None, "one class only"),
        ([1, 1, 0, 0], [True, False], "one truth value per row"),
        ([1, 2, 3, np.nan], np.nan, "expected two"),
    ],
)
def test_labels_that_say_nothing_are_refused(labels, unlabelled, words):
    with pytest.raises(ValueError, match=words):
        unlabelled_interval("auc", labels, np.arange(4.0), 0.1, unlabelled=unlabelled)


@pytest.mark.more
def test_a_long_list_is_resampled_two_hundred_times_at_most(monkeypatch):
    _, s, labelled, _ = scar(np.random.default_rng(7), 200)
    few, many = (
        unlabelled_interval("pnorm_risk", labelled, s, 0.1, p=2, n_resamples=n) for n in (200, 300)
    )
    monkeypatch.setattr(hidden_positives, "_LONG", 100)
    long = unlabelled_interval("pnorm_risk", labelled, s, 0.1, p=2, n_resamples=300)
    assert (long.low, long.high) == (few.low, few.high) != (many.low, many.high)


def test_what_cannot_be_corrected_is_refused():
    _, s, labelled, _ = scar(np.random.default_rng(7), 200)
    for price in ("max", "log1p", "exponential"):
        with pytest.raises(ValueError, match="no correction of push_risk with the price"):
            unlabelled_value("push_risk", labelled, s, 0.1, price=price)
    with pytest.raises(ValueError, match="for the top of the list"):
        unlabelled_value("push_risk", labelled, s, 0.1, end="bottom")
    with pytest.raises(ValueError, match="pnorm_risk of unlabelled rows takes p, and is norm"):
        unlabelled_value("pnorm_risk", labelled, s, 0.1, p=2, normalize=False)
    with pytest.raises(ValueError, match="p=inf: expected a finite number >= 1"):
        unlabelled_value("pnorm_risk", labelled, s, 0.1, p=np.inf)
    with pytest.raises(ValueError, match="There are 2 labelled positives; expected at least 3"):
        unlabelled_value("pnorm_risk", [1, 1, *[0] * 50], np.arange(52.0), 0.1, p=2)
    with pytest.raises(ValueError, match="exceeds the largest float"):
        unlabelled_interval("push_risk", labelled, 1e3 * s, 0.1, n_resamples=20)
    with pytest.raises(ValueError, match="There are 3 labelled positives, too few to estimate"):
        hidden_share([1, 1, 1, *[0] * 50], np.arange(53.0))
    with pytest.raises(ValueError, match="There is 1 labelled positive, too few to estimate"):
        hidden_share([1, *[0] * 50], np.arange(51.0))
    with pytest.raises(ValueError, match="leave out groups"):
        interval("auc", labelled, s, hidden=0.1, sample_weight=np.ones(200))
    with pytest.raises(ValueError, match="NaN"):
        hidden_share(labelled, np.where(labelled, np.nan, s))
    for wrong in (1.0, -0.1, (0.1, 0.2)):
        with pytest.raises(ValueError, match="expected"):
            unlabelled_value("auc", labelled, s, wrong)


def test_every_metric_with_a_correction_has_an_interval():
    _, s, labelled, _ = scar(np.random.default_rng(8), 300)
    for name, metric in METRICS.items():
        if metric.hidden is not None:
            found = interval(
                name, labelled, s, hidden=(0.0, 0.2), n_resamples=20, **metric.settings
            )
            assert found.low <= found.estimate <= found.high
