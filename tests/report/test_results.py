"""The results behind the page: the same folds for all, and figures that can be checked."""

import json
from dataclasses import replace
from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

pytest.importorskip("skops", reason="models are saved with skops")
pd = pytest.importorskip("pandas", reason="the tables are pandas data frames")

from toprank import PNormPush  # noqa: E402
from toprank.inference import interval  # noqa: E402
from toprank.metrics import precision_at  # noqa: E402
from toprank.models.preparation import Preparation  # noqa: E402
from toprank.report import build  # noqa: E402
from toprank.report.held_out import merge, score_held_out  # noqa: E402
from toprank.report.pushes import ALPHA, fit_pushes  # noqa: E402
from toprank.report.table import Table  # noqa: E402


@pytest.fixture(scope="module")
def numbers():
    """A table of numbers, and its report."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(240, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["y"] = (X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=240) > 1).astype(int)
    return frame


@pytest.fixture(scope="module")
def table(numbers):
    return Table.read(numbers, "y", None, None, None, ())


@pytest.fixture(scope="module")
def held(table):
    return score_held_out(table, (1.0, 8.0), table.folds(4, 0), 0, lambda step: None)


@pytest.fixture(scope="module")
def data(numbers):
    return build(numbers, "y", k=40, ps=(8, 1), cv=4).to_dict()


def test_the_results_are_plain_values(data, report):
    for one in (data, report.to_dict()):
        assert json.loads(json.dumps(one, allow_nan=False)) == one


def test_every_row_is_scored_by_a_push_that_has_not_seen_it(table, held, numbers):
    X, y = numbers[["a", "b", "c"]].to_numpy(), numbers["y"].to_numpy()
    splitter = StratifiedKFold(4, shuffle=True, random_state=0)
    fold = np.empty(len(y), dtype=int)
    for j, (_, test) in enumerate(splitter.split(X, y)):
        fold[test] = j
    np.testing.assert_array_equal(held.fold, fold)
    for p, scores in zip((1.0, 8.0), held.pushes, strict=True):
        ranker = make_pipeline(StandardScaler(), PNormPush(p, alpha=ALPHA))
        naive = cross_val_predict(ranker, X, y, cv=splitter, method="decision_function")
        for j in range(4):
            order = np.argsort(naive[fold == j])
            assert np.all(np.diff(scores[fold == j][order]) > 0)


def test_rows_of_some_folds_are_explained_as_all_rows_are(table, held):
    every = np.arange(len(held.rows))
    whole = held.explain(table, [every, every])
    # the highest rows of a p may all be of one fold
    some = [np.flatnonzero(held.fold == 2)[:3], np.flatnonzero(held.fold == 1)[[5, 1]]]
    for found, wanted, places in zip(held.explain(table, some), whole, some, strict=True):
        np.testing.assert_allclose(found, wanted[places])


def test_fits_that_start_from_those_to_all_rows_give_the_same_scores(table, held):
    whole = fit_pushes(table, (1.0, 8.0), table.rows, 0)
    again = score_held_out(table, (1.0, 8.0), held.folds, 0, lambda step: None, whole)
    np.testing.assert_allclose(again.pushes, held.pushes, atol=1e-4)


def test_another_preparation_is_not_started_from(table, held):
    whole = fit_pushes(table, (1.0,), table.rows, 0)
    assert whole.resembles(held.models[0].preparation)
    fewer = Preparation("linear").finish(
        replace(table.schema, columns=table.schema.columns[1:]),
        Preparation("linear").describe(table.schema, table.rows.X),
    )
    assert not whole.resembles(fewer)


@pytest.mark.more
def test_what_the_rows_support_counts_their_weights(numbers):
    weights = np.random.default_rng(0).integers(1, 4, size=len(numbers))
    weighted = build(numbers.assign(w=weights), "y", weight="w", k=40, ps=(4,), cv=3)
    repeated = numbers.loc[np.repeat(numbers.index, weights)]
    lines = [
        one.to_dict()["support"]["lines"][0] for one in (weighted, build(repeated, "y", ps=(4,)))
    ]
    carried = [line["effective_negatives"] for line in lines]
    assert carried[0] == pytest.approx(carried[1], rel=1e-3)


@given(st.integers(0, 10**6))
def test_merged_lists_keep_each_fold_s_order_and_share_of_the_top(seed):
    rng = np.random.default_rng(seed)
    folds, size = int(rng.integers(2, 5)), int(rng.integers(4, 12))
    fold = rng.permutation(np.repeat(np.arange(folds), size))
    scores = np.round(rng.normal(size=len(fold)), int(rng.integers(1, 6)))
    merged = merge(scores, fold)
    for j in range(folds):
        a, b = scores[fold == j], merged[fold == j]
        assert np.array_equal(np.sign(np.subtract.outer(a, a)), np.sign(np.subtract.outer(b, b)))
    # the scale of a fold's fit does not matter
    stretched = np.where(fold == 0, np.exp(3 * scores), scores)
    distinct = len(np.unique(scores)) == len(scores)
    if distinct:
        top = np.argsort(-merge(stretched, fold))[:folds]
        assert sorted(fold[top]) == list(range(folds))


def test_a_merged_score_is_the_mean_of_the_folds_quantiles():
    rng = np.random.default_rng(0)
    fold, scores = np.arange(60) % 3, rng.normal(size=60)
    order = np.argsort(merge(scores, fold))
    middle = (np.arange(60) + 0.5) / 60
    quantiles = [np.quantile(scores[fold == j], middle) for j in range(3)]
    np.testing.assert_allclose(merge(scores, fold)[order], np.mean(quantiles, axis=0), atol=1e-14)


def test_merging_long_lists_takes_as_long_as_sorting_them():
    rng = np.random.default_rng(0)
    fold, scores = np.arange(100_000) % 5, rng.normal(size=100_000)

    def seconds(action):
        start = process_time()
        action()
        return process_time() - start

    sorting = min(seconds(lambda: np.sort(scores + 1j * scores)) for _ in range(3))
    assert seconds(lambda: merge(scores, fold)) < 40 * sorting


def test_the_figures_are_the_metrics_of_the_merged_list(held, data):
    assert data["ps"] == [1.0, 8.0]
    for j, scores in enumerate(held.pushes):
        found = data["pushes"][j]["figures"]["precision"]
        one = interval("precision_at", held.positive, scores, k=40)
        assert [found["value"], found["low"], found["high"]] == pytest.approx(
            [one.estimate, one.low, one.high], rel=1e-5
        )
        # folds are of equal size: the merged list takes ten rows of each
        by_fold = [
            precision_at(held.positive[held.fold == f], scores[held.fold == f], 10)
            for f in range(4)
        ]
        assert found["value"] == pytest.approx(np.mean(by_fold))


def test_the_lists_name_the_rows_in_the_order_of_their_scores(held, data):
    for j, scores in enumerate(held.pushes):
        order = [str(held.rows[place]) for place in np.argsort(-scores, kind="stable")]
        assert data["pushes"][j]["top"] == order[:40]
        assert data["pushes"][j]["near"] == order[34:46]
        for rank, row in enumerate(order[:46], start=1):
            assert data["items"][row]["rank"][j] == rank
        standard = (scores - scores.mean()) / scores.std()
        place = np.searchsorted(held.rows, int(order[0]))
        assert data["items"][order[0]]["score"][j] == pytest.approx(standard[place], rel=1e-5)
        assert all(data["items"][row]["reasons"][j] for row in data["pushes"][j]["top"])
    assert data["items"][order[0]]["id"] == f"row {int(order[0]) + 1}"


def test_the_columns_parts_add_up_to_what_the_top_scores_more(table, held, data):
    for j in range(2):
        found = data["pushes"][j]["features"]
        parts = sum(one["adds"] for one in found["columns"])
        assert parts == pytest.approx(found["total"], rel=1e-5)
        top = np.argsort(-held.pushes[j], kind="stable")[:40]
        apart = []
        for place in top:
            f = held.fold[place]
            model = held.models[f]
            Z = model.preparation.transform(table.rows.take(held.folds[f][1]).X)
            raw = model.rankers[j].decision_function(Z)
            mine = np.searchsorted(held.folds[f][1], held.rows[place])
            apart.append(raw[mine] - raw.mean())
        assert np.mean(apart) / np.std(held.pushes[j]) == pytest.approx(found["total"], rel=1e-4)
        assert found["columns"][0]["column"] == "a"


def test_the_push_is_compared_with_both_baselines_on_the_same_rows(data, held):
    pairs = {tuple(line["names"]) for line in data["comparison"]}
    push, logistic, trees = "push", "logistic regression", "boosted trees"
    assert pairs == {(push, logistic), (push, trees), (logistic, trees)}
    for line in data["comparison"]:
        assert line["low"] <= line["difference"] <= line["high"]
        assert line["p_value"] <= line["adjusted_p_value"] <= 1
        # over the folds the interval also knows that other training rows give other rankers
        assert line["folds_low"] < line["folds_high"]
    for one in data["baselines"]:
        value = precision_at(held.positive, held.baselines[one["name"]], 40)
        assert one["figures"]["precision"]["value"] == pytest.approx(value, rel=1e-5)


def test_p_is_chosen_without_the_fold_that_it_is_measured_on(data, held):
    by_fold = np.array(
        [
            [precision_at(held.positive[held.fold == f], s[held.fold == f], 10) for f in range(4)]
            for s in held.pushes
        ]
    )
    for f, used in enumerate(data["choice"]["by_fold"]):
        means = np.delete(by_fold, f, axis=1).mean(axis=1)
        assert used == data["ps"][int(means[1] > means[0] + 1e-12)]


@pytest.mark.more
def test_the_same_table_and_seed_give_the_same_report(numbers, data):
    again = build(numbers, "y", k=40, ps=(1, 8), cv=4).to_dict()
    assert {k: v for k, v in again.items() if k != "made"} == {
        k: v for k, v in data.items() if k != "made"
    }


def test_columns_are_read_or_left_out_with_a_reason(report, frame):
    table = report.to_dict()["table"]
    assert {one["name"]: one["reason"] for one in table["left_out"]} == {
        "always": "every value is the same",
        "never": "every value is missing",
    }
    kinds = [one["kind"] for one in table["columns"]]
    assert kinds == ["number", "number", "number", "number", "category", "date", "number"]
    assert report.to_dict()["notes"] == []
    assert table["rows"] == table["scored"] == 420
    assert table["positives"] == (frame["label"] == "<i>yes</i>").sum()


def test_progress_is_told_from_the_first_step_to_the_last(numbers):
    told = []
    build(numbers, "y", k=10, ps=(1,), cv=2, progress=lambda *step: told.append(step))
    steps = [done for _, done, _ in told]
    assert steps == sorted(steps) and steps[0] == 0
    assert told[-1] == ("done", told[-1][2], told[-1][2])
    assert "boosted trees" in {step for step, _, _ in told}
