"""Shortlists: what is chosen, what is said of it, and what is refused."""

import importlib
import inspect
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KernelDensity

import toprank
from toprank.select import Shortlist, TooFewLabels, held_out, out_of_fold, select
from toprank.select.prefixes import many_tied

WISHES = [
    {"fdr": 0.1},
    {"precision_at_least": 0.9},
    {"recall_at_least": 0.8},
    {"positives_at_least": 20},
]


def scored(n=2000, m=2000, share=0.3, gap=3.0, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random(n + m) < share
    s = rng.normal(size=n + m) + gap * y
    return (y[:n], s[:n]), s[n:], y[n:]


def table(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + 0.3 * rng.normal(size=n) > 0.8


@pytest.mark.parametrize("wish", WISHES, ids=lambda wish: next(iter(wish)))
def test_a_list_is_a_prefix_in_order_and_holds_what_it_says(wish):
    known, new, labels = scored()
    chosen = select(new, calibration=known, **wish)
    assert isinstance(chosen, Shortlist)
    assert 0 < len(chosen) < len(new)
    np.testing.assert_array_equal(chosen.scores, np.sort(new)[::-1][: len(chosen)])
    np.testing.assert_array_equal(new[chosen.rows], chosen.scores)
    assert chosen.threshold == chosen.scores[-1]
    assert chosen.mask.sum() == len(chosen)
    hits = labels[chosen.rows]
    assert np.mean(hits) >= 0.85
    if "recall_at_least" in wish:
        assert hits.sum() >= 0.8 * labels.sum()
    assert hits.sum() >= 20


@pytest.mark.parametrize("wish", WISHES, ids=lambda wish: next(iter(wish)))
def test_a_count_is_a_repetition(wish):
    known, new, _ = scored(300, 200)
    counts = np.random.default_rng(1).integers(0, 4, 300)
    repeated = tuple(np.repeat(column, counts) for column in known)
    once = select(new, calibration=known, sample_weight=counts, **wish)
    again = select(new, calibration=repeated, **wish)
    np.testing.assert_array_equal(once.rows, again.rows)
    assert once.n_calibration == again.n_calibration == counts.sum()


@pytest.mark.parametrize("wish", WISHES, ids=lambda wish: next(iter(wish)))
def test_only_the_order_of_the_scores_counts(wish):
    known, new, _ = scored()
    chosen = select(new, calibration=known, **wish)
    bent = select(np.exp(new), calibration=(known[0], np.exp(known[1])), **wish)
    np.testing.assert_array_equal(chosen.rows, bent.rows)


def test_the_list_says_what_it_guarantees_assumes_and_rests_on():
    known, new, _ = scored()
    chosen = select(new, calibration=known, positives_at_least=20, confidence=0.9)
    text = str(chosen)
    assert "With probability at least 90%, these rows hold at least 20 positives." in text
    assert "Assumes that calibration rows and new rows are drawn in the same way" in text
    assert "Calibration: 2000 rows" in text
    assert "<table>" in chosen._repr_html_() and "Assumes that" in chosen._repr_html_()
    assert json.loads(json.dumps(chosen.as_dict()))["positives_at_least"] == 20
    assert chosen.p_values is None


def test_p_values_are_in_the_order_of_the_new_rows():
    known, new, _ = scored()
    p = select(new, calibration=known, fdr=0.1).p_values
    assert p.shape == new.shape
    assert np.all(np.diff(p[np.argsort(new)]) <= 0)


def test_an_empty_list_says_why():
    rng = np.random.default_rng(0)
    y, s = rng.random(1000) < 0.1, rng.normal(size=1000)
    for wish in ({"fdr": 0.05}, {"precision_at_least": 0.8}):
        chosen = select(rng.normal(size=2000), calibration=(y, s), **wish)
        assert len(chosen) == 0 and chosen.threshold == np.inf
        assert "can vouch for lists of" in str(chosen)
        assert "No row of 2000" in chosen._repr_html_()


def test_what_the_calibration_rows_cannot_support_is_refused_with_what_would():
    rng = np.random.default_rng(0)
    y = np.arange(20) < 4
    s, new = rng.normal(size=20), rng.normal(size=400)
    for wish in (
        {"fdr": 0.04},
        {"precision_at_least": 0.95},
        {"recall_at_least": 0.9},
        {"positives_at_least": 60},
    ):
        with pytest.raises(TooFewLabels, match="cannot support") as caught:
            select(new, calibration=(y, s), **wish)
        needed = caught.value.needed
        assert needed > 20 and str(needed) in str(caught.value)
        times = -(-needed // 20)
        more = (np.tile(y, times), rng.normal(size=20 * times))
        select(new, calibration=more, **wish)  # is not refused


def test_more_positives_than_there_can_be_are_refused_for_good():
    known, new, _ = scored(1000, 100, share=0.05)
    with pytest.raises(TooFewLabels, match="no number of labelled rows") as caught:
        select(new, calibration=known, positives_at_least=60)
    assert caught.value.needed is None


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({}, "exactly one of"),
        ({"fdr": 0.1, "recall_at_least": 0.5}, "exactly one of"),
        ({"fdr": 1.5}, "between 0 and 1"),
        ({"precision_at_least": 1}, "between 0 and 1"),
        ({"positives_at_least": 2.5}, "whole number"),
        ({"positives_at_least": 3000}, "only 2000 new rows"),
        ({"recall_at_least": 0.5, "confidence": 95}, "probability"),
        ({"recall_at_least": 0.5, "ties": "random"}, "goes with fdr"),
        ({"fdr": 0.1, "ties": "first"}, "expected 'conservative'"),
        ({"fdr": 0.1, "likelihood_ratio": np.ones(3)}, "ratios of calibration rows"),
        ({"fdr": 0.1, "likelihood_ratio": (np.ones(3), np.ones(2000))}, "3 entries"),
        ({"fdr": 0.1, "likelihood_ratio": (np.ones(2000), -np.ones(2000))}, "not negative"),
        ({"fdr": 0.1, "sample_weight": np.full(2000, 0.5)}, "whole numbers"),
        ({"fdr": 0.1, "X_new": np.ones((3, 2))}, "not a fitted model"),
        ({"fdr": 0.1, "model_or_scores": np.empty(0)}, "there are no new rows to choose from"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(given, match):
    known, new, _ = scored()
    with pytest.raises(ValueError, match=match):
        select(**{"model_or_scores": new, "calibration": known, **given})


@pytest.mark.parametrize(
    ("calibration", "match"),
    [
        (np.ones(3), "expected \\(y, s\\)"),
        (([0, 1, 1], [0.1, 0.2]), "3 labels and 2 scores"),
        (([1, 1, 1], [0.1, 0.2, 0.3]), "one class"),
        (([0, 1, 1], [0.1, np.nan, 0.3]), "NaN"),
        (held_out(np.ones((3, 2)), [0, 1, 1]), "scores alone came"),
    ],
)
def test_ugly_calibration_rows_are_refused_in_words(calibration, match):
    with pytest.raises(ValueError, match=match):
        select([0.5, 0.2], calibration=calibration, fdr=0.5)


def test_a_model_takes_rows_only_where_it_is_said_that_they_were_held_out():
    X, y = table()
    model = LogisticRegression().fit(X[:1000], y[:1000])
    with pytest.raises(ValueError, match="held_out"):
        select(model, X[2000:], calibration=(X[1000:2000], y[1000:2000]), fdr=0.1)
    kept = held_out(X[1000:2000], y[1000:2000])
    chosen = select(model, X[2000:], calibration=kept, fdr=0.1)
    scores = model.decision_function(X)
    plain = select(scores[2000:], calibration=(y[1000:2000], scores[1000:2000]), fdr=0.1)
    np.testing.assert_array_equal(chosen.rows, plain.rows)
    with pytest.raises(ValueError, match="X_new is missing"):
        select(model, calibration=kept, fdr=0.1)


def test_a_model_of_probabilities_alone_is_scored_by_them():
    X, y = table(900)
    model = GaussianNB().fit(X[:300], y[:300])
    found = select(model, X[600:], calibration=held_out(X[300:600], y[300:600]), fdr=0.2)
    chance = model.predict_proba(X)[:, 1]
    by_hand = select(chance[600:], calibration=(y[300:600], chance[300:600]), fdr=0.2)
    assert found.rows.tolist() == by_hand.rows.tolist() and len(found) > 10
    with pytest.raises(TypeError, match="KernelDensity has no decision_function"):
        out_of_fold(KernelDensity(), X, y)


@pytest.mark.parametrize("maker", ["held_out", "out_of_fold"])
def test_weights_belong_to_what_made_the_calibration_rows(maker):
    X, y = table(300)
    model = LogisticRegression().fit(X[:150], y[:150])
    given = held_out(X, y) if maker == "held_out" else out_of_fold(model, X, y)
    with pytest.raises(ValueError, match=f"give sample_weight to {maker}"):
        select(model, X, calibration=given, fdr=0.2, sample_weight=np.ones(300))


def test_under_shift_a_list_that_nothing_passes_is_empty():
    known, new, _ = scored(gap=-3.0)  # the negatives are on top
    found = select(
        new, calibration=known, fdr=0.01, likelihood_ratio=(np.ones(2000), np.ones(2000))
    )
    assert len(found) == 0 and np.min(found.p_values) > 1e-4
    # as without ratios: 2,000 / (0.01 * 2,001) rows
    assert "2000 calibration rows can vouch for lists of 100 rows or more out of 2000" in str(found)


def test_under_shift_calibration_rows_that_weigh_too_little_are_said_to():
    known, new, _ = scored()
    found = select(
        new, calibration=known, fdr=0.01, likelihood_ratio=(np.ones(2000), np.full(2000, 100.0))
    )
    assert len(found) == 0
    assert "weigh as much as 20 of the lightest new row: too little for any list" in str(found)


def test_out_of_fold_scores_are_those_of_models_that_have_not_seen_the_row():
    X, y = table(600)
    evidence = out_of_fold(LogisticRegression(), X, y, cv=3)
    scores = np.full(600, np.nan)
    from toprank.tuning import folds_of

    for train, test in folds_of(3, y):
        scores[test] = LogisticRegression().fit(X[train], y[train]).decision_function(X[test])
    np.testing.assert_allclose(evidence.scores, scores)
    chosen = select(LogisticRegression().fit(X, y), X, calibration=evidence, fdr=0.2)
    assert "models of 3 folds" in chosen.assumption


def test_out_of_fold_rows_that_no_fold_tests_are_left_out():
    X, y = table(600)
    evidence = out_of_fold(LogisticRegression(), X, y, cv=3, time=np.arange(600))
    assert evidence.n_rows == 450
    weighted = out_of_fold(LogisticRegression(), X, y, cv=3, sample_weight=np.arange(600) % 3)
    assert weighted.n_rows == np.sum(np.arange(600) % 3)


def test_the_room_is_the_function():
    assert importlib.import_module("toprank.select") is toprank.select
    known, new, _ = scored()
    assert len(toprank.select(new, calibration=known, fdr=0.1)) > 0
    assert list(inspect.signature(toprank.select).parameters)[:3] == [
        "model_or_scores",
        "X_new",
        "calibration",
    ]


def test_a_frame_of_scores_and_labels_in_words_will_do():
    known, new, _ = scored(500, 300)
    words = pd.Series(np.where(known[0], "yes", "no"))
    chosen = select(pd.Series(new), calibration=(words, pd.Series(known[1])), fdr=0.1)
    plain = select(new, calibration=known, fdr=0.1)
    np.testing.assert_array_equal(chosen.rows, plain.rows)
    other = select(-new, calibration=(words, -known[1]), fdr=0.1, pos_label="no")
    assert len(other) > 0


@pytest.mark.more
def test_a_model_of_a_table_refuses_the_rows_it_has_learned_from():
    pytest.importorskip("skops", reason="models are saved with skops")
    from toprank.models import fit_table

    X, y = table(900)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y.astype(int))
    model = fit_table(frame[:400], "y", p=4)
    rows, labels = frame[["a", "b", "c"]], frame.y
    for seen in (frame[:400], (rows[:400], labels[:400]), held_out(rows[:400], labels[:400])):
        with pytest.raises(ValueError, match="has learned from"):
            select(model, rows[600:], calibration=seen, fdr=0.2)
    kept = [frame[400:600], (rows[400:600], labels[400:600])]
    lists = [select(model, rows[600:], calibration=one, fdr=0.2) for one in kept]
    np.testing.assert_array_equal(lists[0].rows, lists[1].rows)
    assert len(lists[0]) > 0 and "card of the model" in lists[0].assumption


@pytest.mark.parametrize(
    ("labels", "scores", "said"),
    [
        ([1, 1, 1], [1.0, 2.0, 3.0], "the column of calibration labels has one class only"),
        ([1, 0, np.nan], [1.0, 2.0, 3.0], "the column of calibration labels contains NaN"),
        ([1, 0, 2], [1.0, 2.0, 3.0], "the column of calibration labels has 3 classes"),
        ([1, 0, 0], [1.0, np.nan, 3.0], "the column of calibration scores contains NaN"),
    ],
)
def test_refusals_are_whole_sentences(labels, scores, said):
    with pytest.raises(ValueError, match=said):
        select([1.0, 2.0], calibration=(labels, scores), fdr=0.1)


def test_many_ties_are_a_matter_of_all_scores_and_not_of_labels():
    scores = np.round(np.random.default_rng(0).normal(size=300), 0)
    ones = np.ones(200)
    assert many_tied(scores[:200], ones, scores[200:]) and many_tied(
        scores[100:], ones, scores[:100]
    )
    assert not many_tied(np.arange(200.0), ones, np.arange(100.0))
