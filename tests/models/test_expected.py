"""The precision of alerts before labels are there, its error once they are, when to retrain."""

import numpy as np
import pandas as pd
import pytest

from toprank.models import fit_table
from toprank.models.expected import ExpectedPrecision, LabelShares, PrecisionError
from toprank.models.monitor import Limits, monitor_model

LIMITS = Limits(0.25, 2.0, None)


def table(rng, n, means=1.0):
    """Rows of which a score says something; `means` is how much."""
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    frame["y"] = means * (frame.a + 0.7 * frame.b) + rng.logistic(size=n) > 2
    return frame


@pytest.fixture(scope="module")
def model():
    return fit_table(table(np.random.default_rng(0), 3_000), "y", p=2)


def monitored(model, frame, labels=True, limits=LIMITS):
    arrow = pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)
    rows = arrow.select(list("abc"))
    parts = [(rows, model.score(rows))]
    return monitor_model(model, parts, lambda: arrow if labels else None, limits, top=0.1)


def test_counts_of_labels_travel_on_the_card(model):
    shares = LabelShares.from_card(model.card["reference"]["scores"])
    assert shares.rows.sum() == 3_000
    assert shares.positives.sum() == model.card["training"]["positives"]
    assert np.all(np.diff(shares.positives / shares.rows)[-6:] > -0.35)  # positives are at the top


@pytest.mark.parametrize(
    "known",
    [None, 3, {}, {"rows": [1]}, {"rows": "x", "positives": "y"}, {"rows": [], "positives": []}],
)
def test_a_card_without_usable_counts_has_none(known):
    assert LabelShares.from_card({"quantiles": [0.0, 1.0, 2.0], "labels": known}) is None


def test_the_precision_is_expected_before_labels_and_its_error_is_shown_after(model):
    frame = table(np.random.default_rng(1), 2_000)
    before = monitored(model, frame, labels=False)
    after = monitored(model, frame)
    assert before.precision is None and before.off_by is None and not before.retrain
    assert before.expected == after.expected
    off = after.off_by
    assert off.found == after.precision.estimate and off.expected == before.expected.estimate
    assert before.expected.low <= after.precision.estimate <= before.expected.high
    assert not after.retrain


def test_scores_that_no_longer_mean_what_they_did_are_a_reason_to_retrain(model):
    found = monitored(model, table(np.random.default_rng(2), 3_000, means=0.2))
    assert not found.alarms  # the rows look as they did: only labels can tell
    assert len(found.retrain) == 1 and "no longer means what it did" in found.retrain[0]


def test_a_precision_that_is_asked_for_and_not_expected_is_a_reason_to_retrain(model):
    frame = table(np.random.default_rng(3), 1_000)
    found = monitored(model, frame, labels=False, limits=Limits(0.25, 2.0, 0.99))
    assert len(found.retrain) == 1 and "without labels" in found.retrain[0]
    shifted = monitored(model, frame.assign(a=frame.a + 2), labels=False)
    assert any("the scores have drifted" in one for one in shifted.retrain)


def test_a_model_that_remembers_no_labels_answers_by_its_probabilities(model):
    card = {**model.card, "reference": {**model.card["reference"]}}
    card["reference"]["scores"] = {**card["reference"]["scores"], "labels": None}
    old = model.with_card(card)
    frame = table(np.random.default_rng(4), 2_000)
    found, newer = monitored(old, frame), monitored(model, frame)
    assert found.expected.estimate == pytest.approx(newer.expected.estimate, abs=0.06)
    assert any("own probabilities" in note for note in found.notes)


def test_no_alerts_have_no_precision(model):
    frame = table(np.random.default_rng(5), 50)
    found = monitored(model, frame.assign(a=-9.0, b=-9.0))
    assert found.expected is None and found.off_by is None


@pytest.mark.more
def test_expected_precisions_hold_in_their_intervals():
    inside, early = [], []
    for draw in range(60):
        rng = np.random.default_rng((9, draw))
        frame = table(rng, 1_500)
        scores = (frame.a + 0.7 * frame.b).to_numpy()
        known, new = slice(0, 1_000), slice(1_000, None)
        cuts = np.quantile(scores[known], np.linspace(0, 1, 20))
        shares = LabelShares.of(scores[known], frame.y.to_numpy()[known], cuts)
        alerts = scores[new] > cuts[-3]
        hits = frame.y.to_numpy()[new][alerts]
        expected = shares.expect(scores[new][alerts], 0.95)
        inside.append(expected.low <= np.mean(hits) <= expected.high)
        early.append(PrecisionError.of(expected, hits).chance < 0.01)
    assert np.mean(inside) >= 0.88 and np.mean(early) <= 0.05


def test_certain_probabilities_allow_no_other_share():
    sure = ExpectedPrecision.of_probabilities(np.ones(5), 100, 0.95)
    assert sure.estimate == 1 and sure.chance_of_fewer(1.0) == 1
