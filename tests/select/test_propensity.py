"""Labels only where someone looked: weights, corrected metrics, the loop of rank and retrain."""

import numpy as np
import pandas as pd
import pytest

from toprank import PNormPush, PNormPushCV, ProperRanker, PushEnsemble, PushTrees
from toprank.inference import interval, unlabelled_interval
from toprank.metrics import auc, pnorm_risk, precision_at, recall_at
from toprank.models import ModelError, TableRanker, fit_table, load
from toprank.select import cut, label_weights
from toprank.select.refits import Refits


def test_weights_are_one_over_the_propensity_within_the_rule():
    seen = np.array([1.0, 0.5, 0.25, 0.001])
    plain = label_weights(seen, clip=False)
    assert plain.weight == pytest.approx(4 / seen / np.sum(1 / seen))
    clipped = label_weights(seen)
    most = 2 * np.mean(1 / seen)
    expected = np.minimum(1 / seen, most)
    assert clipped.weight == pytest.approx(4 * expected / expected.sum()) and clipped.clipped == 1
    assert clipped.effective_rows == pytest.approx(expected.sum() ** 2 / (expected**2).sum())
    assert "4 rows count as" in str(clipped) and "1 weights clipped" in str(clipped)
    twice = label_weights(np.repeat(seen, 2), clip=False)
    counted = label_weights(seen, np.full(4, 2.0), clip=False)
    assert counted.weight == pytest.approx(2 * twice.weight[::2])
    assert label_weights(0.3, n=5).weight.tolist() == [1.0] * 5


@pytest.mark.parametrize("seen", [0.0, 1.5, np.nan, [0.5, 0.5]])
def test_what_is_no_propensity_is_refused(seen):
    with pytest.raises(ValueError, match="label_propensity"):
        label_weights(seen, n=3)


RANKERS = [
    PNormPush(),
    ProperRanker(),
    pytest.param(PNormPushCV(ps=(1, 4), cv=3), marks=pytest.mark.more),
    pytest.param(PushTrees(n_estimators=10), marks=pytest.mark.more),
    pytest.param(
        PushEnsemble(estimators=[("line", PNormPush()), ("odds", ProperRanker())], cv=3),
        marks=pytest.mark.more,
    ),
]


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda one: type(one).__name__)
def test_a_fit_by_propensities_is_the_fit_with_their_weights(ranker):
    if isinstance(ranker, PushTrees):
        pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + rng.logistic(size=300) > 1
    seen = rng.uniform(0.05, 1, 300)
    weights = label_weights(seen)
    scores = ranker.fit(X, y, label_propensity=seen).decision_function(X)
    assert ranker.effective_rows_ == pytest.approx(weights.effective_rows)
    expected = ranker.fit(X, y, weights.weight).decision_function(X)
    assert not hasattr(ranker, "effective_rows_")
    assert scores == pytest.approx(expected)
    with pytest.raises(ValueError, match="label_propensity"):
        ranker.fit(X, y, label_propensity=np.zeros(300))


def test_an_interval_by_propensities_says_how_many_rows_they_count_as():
    rng = np.random.default_rng(1)
    y = rng.random(400) < 0.3
    s, seen = rng.normal(size=400) + y, rng.uniform(0.1, 1, 400)
    found = interval("auc", y, s, label_propensity=seen)
    rows = np.sum(1 / seen) ** 2 / np.sum(1 / seen**2)
    assert found.note == f"By their propensities 400 rows count as {rows:.4g}."


def scar(rng, n=3000, share=0.25, labels=0.4):
    y = rng.random(n) < share
    s = rng.normal(size=n) + 1.2 * y
    labelled = y & (rng.random(n) < labels)
    return y, s, labelled, share * (1 - labels) / (1 - share * labels)


SETTINGS = {
    "auc": ({}, auc),
    "precision_at": ({"k": 300}, lambda y, s: precision_at(y, s, 300)),
    "recall_at": ({"k": 300}, lambda y, s: recall_at(y, s, 300)),
    "pnorm_risk": (
        {"p": 4, "n_resamples": 60},
        lambda y, s: pnorm_risk(y, s, 4, normalize=True),
    ),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", SETTINGS)
def test_metrics_of_unlabelled_rows_are_corrected_for_hidden_positives(name):
    settings, metric = SETTINGS[name]
    rng = np.random.default_rng(2)
    naive, corrected = [], []
    for _ in range(25):
        y, s, labelled, hidden = scar(rng)
        found = unlabelled_interval(name, labelled, s, hidden, **settings)
        corrected.append(found.estimate - metric(y, s))
        naive.append(metric(labelled, s) - metric(y, s))
        assert found.low <= found.estimate <= found.high
    error = np.std(corrected, ddof=1) / 5
    assert abs(np.mean(corrected)) < 4 * error
    if name != "recall_at":
        assert abs(np.mean(naive)) > 5 * np.std(naive, ddof=1) / 5


@pytest.mark.more
@pytest.mark.parametrize("name", SETTINGS)
def test_their_intervals_cover_the_truth(name):
    settings, metric = SETTINGS[name]
    rng = np.random.default_rng(3)
    y, s, _, _ = scar(rng, 400_000)
    if name in ("auc", "pnorm_risk"):
        truth = metric(y, s)
    else:
        whole = {"precision_at": precision_at, "recall_at": recall_at}[name]
        truth = whole(y, s, 0.1)
    hits = 0
    for _ in range(200):
        _, s, labelled, hidden = scar(rng)
        found = unlabelled_interval(name, labelled, s, hidden, **settings)
        hits += found.low <= truth <= found.high
    assert hits / 200 > 0.9


def test_a_range_of_hidden_shares_is_covered_by_one_interval():
    _, s, labelled, hidden = scar(np.random.default_rng(4))
    ends = [unlabelled_interval("auc", labelled, s, share) for share in (0.1, 0.3)]
    both = unlabelled_interval("auc", labelled, s, (0.3, 0.1))
    assert both.low == min(one.low for one in ends)
    assert both.high == max(one.high for one in ends)
    assert unlabelled_interval("auc", labelled, s, 0.0).estimate == auc(labelled, s)
    for wrong in (1.0, -0.1, (0.1, 0.2, 0.3)):
        with pytest.raises(ValueError, match="expected a share of positives"):
            unlabelled_interval("auc", labelled, s, wrong)
    with pytest.raises(ValueError, match="There is no correction of 'bedroc'"):
        unlabelled_interval("bedroc", labelled, s, hidden)


@pytest.mark.more
def test_in_a_loop_of_rank_look_and_retrain_only_weighted_metrics_stay_true():
    """Each day the first 60 and 40 rows drawn below are looked at; the ranker learns from those."""
    rng = np.random.default_rng(5)
    slope = np.array([1.2, -0.8, 0.5, 0.0])
    naive, weighted = [], []
    for _ in range(15):
        past: list[tuple[np.ndarray, ...]] = []
        ranker = None
        for day in range(6):
            X = rng.normal(size=(1500, 4))
            y = rng.random(1500) < 1 / (1 + np.exp(3.0 - X @ slope))
            scores = X[:, 0] if ranker is None else ranker.decision_function(X)
            found = cut(scores, 100, explore=0.4, random_state=int(rng.integers(2**31)))
            seen = found.rows
            if day >= 3:
                truth = precision_at(y, scores, 0.2)
                listed = (y[seen], scores[seen], 0.2)
                naive.append(precision_at(*listed) - truth)
                corrected = precision_at(*listed, label_propensity=found.propensity)
                weighted.append(corrected - truth)
            past.append((X[seen], y[seen], found.propensity))
            rows, labels, chance = (np.concatenate(column) for column in zip(*past, strict=True))
            ranker = ProperRanker().fit(rows, labels, label_propensity=chance)
    count = np.sqrt(len(naive))
    assert abs(np.mean(naive)) > 5 * np.std(naive, ddof=1) / count
    assert abs(np.mean(weighted)) < 3 * np.std(weighted, ddof=1) / count


def looked_at_table(n=400):
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"age": rng.normal(40, 10, n), "city": rng.choice(["Rome", "Oslo"], n)})
    frame["bought"] = (frame.age + rng.normal(0, 8, n) > 48).astype(int)
    return frame.assign(propensity=rng.uniform(0.05, 1, n).round(3))


def test_a_table_is_fitted_by_the_propensities_that_it_brings():
    frame = looked_at_table()
    seen = frame.propensity.to_numpy()
    model = fit_table(frame, "bought", p=4, propensity="propensity")
    assert model.schema.names == ["age", "city"] and model.schema.propensity == "propensity"
    weights = label_weights(seen)
    assert model.card["training"]["effective_rows"] == pytest.approx(weights.effective_rows)
    notes = [one["note"] for one in model.card["metrics"]["intervals"]]
    assert all("By their propensities 80 rows count as" in note for note in notes)
    rows = frame.drop(columns="propensity").assign(w=weights.weight)
    weighted = fit_table(rows, "bought", p=4, weight="w")
    features = frame[["age", "city"]]
    assert model.score(features) == pytest.approx(weighted.score(features), rel=1e-5)
    again = fit_table(frame, "bought", from_model=model)  # the role is remembered
    assert again.schema.propensity == "propensity" and "effective_rows" in again.card["training"]


def test_a_schema_without_propensities_is_written_as_before(tmp_path):
    frame = looked_at_table()
    plain = fit_table(frame.drop(columns="propensity"), "bought", p=4)
    assert "propensity" not in plain.schema.as_dict()
    model = fit_table(frame, "bought", p=4, propensity="propensity")
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").schema.propensity == "propensity"


@pytest.mark.parametrize("wrong", [0.0, 1.5, np.nan])
def test_a_column_that_holds_no_propensities_is_refused(wrong):
    frame = looked_at_table()
    frame.loc[3, "propensity"] = wrong
    with pytest.raises(ModelError, match="propensity='propensity': expected probabilities above 0"):
        fit_table(frame, "bought", p=4, propensity="propensity")


def test_a_table_ranker_is_fitted_by_propensities():
    frame = looked_at_table()
    X, y, seen = frame[["age", "city"]], frame.bought, frame.propensity
    ranker = TableRanker().fit(X, y, label_propensity=seen)
    weights = label_weights(seen)
    assert ranker.effective_rows_ == pytest.approx(weights.effective_rows)
    expected = TableRanker().fit(X, y, weights.weight).decision_function(X)
    assert ranker.decision_function(X) == pytest.approx(expected)


@pytest.mark.parametrize("method", ["jackknife", pytest.param("bootstrap", marks=pytest.mark.more)])
def test_a_row_of_small_propensity_is_one_row_in_refits(method):
    # ten rows of weight 20 move the coefficients more than two hundred rows of weight 1 do
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 3))
    y = X[:, 0] + rng.logistic(size=600) > 1
    seen = np.where(rng.random(600) < 0.1, 0.05, 1.0)
    options = {"method": method, "n_refits": 60, "random_state": 0}
    weights = label_weights(seen).weight
    ranker = PNormPush(p=1).fit(X, y, label_propensity=seen)
    ours = Refits.of(ranker, X, y, label_propensity=seen, **options).scores(np.eye(3)).std(axis=0)
    as_counts = Refits.of(ranker, X, y, sample_weight=weights, **options)
    assert np.mean(ours) > 1.2 * np.mean(as_counts.scores(np.eye(3)).std(axis=0))
