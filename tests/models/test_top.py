"""The top of the list: kinds of tables, ties, ids, reasons, and what notebooks show."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

import toprank
from toprank import PNormPush, PushEnsemble, PushTrees, RankBoost
from toprank.models import ModelError, fit_table

COLUMNS = ["customer", "score", "rank", "reasons", "tied_at_the_cut"]


def test_the_top_is_the_highest_scores_in_order(fitted, table):
    model = fitted("pnorm")
    first = toprank.top(model, table, 12)
    assert isinstance(first, pd.DataFrame)
    assert list(first.columns) == COLUMNS
    scores = pd.Series(model.score(table), index=table.customer).sort_values(ascending=False)
    assert first.score.tolist() == scores.head(12).tolist()
    assert first["rank"].tolist() == list(range(1, 13))
    np.testing.assert_array_equal(scores[first.customer].to_numpy(), first.score.to_numpy())


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_the_answer_is_the_callers_kind_of_table(fitted, table, library):
    frames = pytest.importorskip(library)
    rows = table.astype(object).where(table.notna(), None).to_dict("list")
    given = frames.DataFrame(rows) if library == "polars" else frames.table(rows)
    first = toprank.top(fitted("pnorm"), given, 5)
    assert type(first) is type(given)
    expected = toprank.top(fitted("pnorm"), table, 5)
    for name in COLUMNS:
        column = first[name] if library == "polars" else first.column(name)
        assert (
            list(column.to_pylist() if library == "pyarrow" else column) == expected[name].tolist()
        )


def test_ties_at_the_cut_are_flagged_and_only_they():
    frame = pd.DataFrame({"x": [3.0, 2.0, 2.0, 2.0, 1.0]})
    ranker = PNormPush(p=1).fit(frame, [1, 1, 0, 0, 0])
    flags = {k: toprank.top(ranker, frame, k).tied_at_the_cut.tolist() for k in range(1, 6)}
    assert flags == {
        1: [False],
        2: [False, True],
        3: [False, True, True],
        4: [False] * 4,
        5: [False] * 5,
    }
    assert toprank.top(ranker, frame, 3).row.tolist() == [0, 1, 2]


@pytest.mark.parametrize(("k", "size"), [(5, 5), (0.05, 12), (1.0, 240), (10_000, 240)])
def test_k_is_a_count_or_a_share(fitted, table, k, size):
    assert len(toprank.top(fitted("pnorm"), table, k)) == size


@pytest.mark.parametrize("k", [0, -1, 1.5, 0.0, "ten", True, None, np.nan])
def test_a_k_that_is_neither_is_refused(fitted, table, k):
    with pytest.raises(ModelError, match="k="):
        toprank.top(fitted("pnorm"), table, k)


def test_the_top_of_nothing_is_empty(fitted, table):
    assert len(toprank.top(fitted("pnorm"), table.head(0), 5)) == 0


def test_ids_may_be_named_and_must_be_there(fitted, table):
    assert toprank.top(fitted("pnorm"), table, 2, id="age").columns[0] == "age"
    with pytest.raises(ModelError, match="id='nobody'"):
        toprank.top(fitted("pnorm"), table, 2, id="nobody")
    clash = table.rename(columns={"customer": "rank"})
    assert toprank.top(fitted("pnorm"), clash, 2, id="rank").columns[0] == "rank (id)"


@pytest.mark.parametrize(
    "ranker",
    [
        PNormPush(p=2),
        RankBoost(10),
        PushTrees(2, n_estimators=5),
        LogisticRegression(),
        make_pipeline(StandardScaler(), PNormPush()),
    ],
    ids=lambda ranker: type(ranker).__name__,
)
@pytest.mark.parametrize("as_array", [False, True])
def test_any_fitted_ranker_has_a_top(ranker, as_array):
    if isinstance(ranker, PushTrees):
        pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(100, 2)), columns=["a", "b"])
    y = frame.a + 0.3 * rng.normal(size=100) > 0.5
    X = frame.to_numpy() if as_array else frame
    first = toprank.top(ranker.fit(X, y), X, 4)
    assert isinstance(first, pd.DataFrame) and len(first) == 4
    name = "column 0 =" if as_array else "a ="
    assert all(text.startswith(name) for text in first.reasons)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_an_estimator_is_given_its_own_columns_and_the_list_has_the_id(library):
    frames = pytest.importorskip(library)
    rng = np.random.default_rng(0)
    rows = {"who": [f"r{i}" for i in range(50)], "b": rng.normal(size=50), "a": rng.normal(size=50)}
    frame = frames.table(rows) if library == "pyarrow" else frames.DataFrame(rows)
    ranker = PNormPush().fit(pd.DataFrame(rows)[["a", "b"]], rows["a"] > 0.4)
    first = toprank.top(ranker, frame, 3, id="who")
    best = np.argsort(-ranker.decision_function(pd.DataFrame(rows)[["a", "b"]]))[:3]
    column = first.column("who").to_pylist() if library == "pyarrow" else list(first["who"])
    assert type(first) is type(frame) and column == [f"r{i}" for i in best]
    short = frame.select(["who", "b"]) if library != "pandas" else frame[["who", "b"]]
    with pytest.raises(ModelError, match="'a'"):
        toprank.top(ranker, short, 3)


def test_what_does_not_rank_is_refused(table):
    with pytest.raises(ModelError, match="decision_function"):
        toprank.top(StandardScaler(), table, 3)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["pnorm", "ir", "proper", "rankboost", "smooth-margin", "trees"])
def test_contributions_add_up_to_the_score_less_its_mean(fitted, table, name):
    model = fitted(name)
    parts = model.column_contributions(model.numbers(table))
    scores = model.score(table)
    gap = scores - parts.sum(axis=1)
    np.testing.assert_allclose(gap, gap[0], atol=1e-9)
    if name != "trees":  # whose expected score is the library's own
        np.testing.assert_allclose(gap[0], scores.mean(), atol=1e-9)


def test_reasons_are_the_largest_contributions_with_the_values_of_the_row(fitted, table):
    model = fitted("proper")
    parts = model.column_contributions(model.numbers(table))
    for i, reasons in enumerate(model.reasons(table, n=2)):
        order = np.argsort(-np.abs(parts[i]))[:2]
        assert [reason.column for reason in reasons] == [model.schema.names[j] for j in order]
        for reason in reasons:
            value = table.iloc[i][reason.column]
            told = f"{value:.6g}" if isinstance(value, float) else str(value)
            assert reason.value == ("" if pd.isna(value) else told)
    missing = model.reasons(table[table.age.isna()].head(1), n=4)[0]
    assert any(str(reason).startswith("age missing (") for reason in missing)


def test_contributions_of_trees_on_trees_count_both(fitted, table):
    new = fit_table(table, "bought", from_model=fitted("trees"))
    parts = new.column_contributions(new.numbers(table))
    gap = new.score(table) - parts.sum(axis=1)
    np.testing.assert_allclose(gap, gap[0], atol=1e-9)


def test_notebooks_show_hostile_names_and_values_as_text(table):
    evil = "<script>alert('x')</script>"
    frame = table.rename(columns={"age": evil}).assign(
        bought=np.where(table.bought == "yes", evil, "no"),
        city=table.city.where(table.city != "Rome", evil),
    )
    model = fit_table(frame, "bought", positive=evil, id="customer", p=2)
    shown = model._repr_html_()
    assert "<script" not in shown and "&lt;script&gt;" in shown
    first = toprank.top(model, frame, 5, id="city")
    assert first.reasons.str.contains("<script>", regex=False).any()
    assert "<script" not in first._repr_html_()
    assert evil in repr(model)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_top_carries_long_ids_digit_by_digit(library):
    ids = [10**17 + number for number in range(5)] + [None]
    x = [float(number) for number in range(6)]
    plain = pd.DataFrame({"id": pd.array(ids, dtype="Int64"), "x": x})
    if library == "polars":
        frame = pytest.importorskip("polars").DataFrame({"id": ids, "x": x})
    elif library == "pyarrow":
        frame = pytest.importorskip("pyarrow").table({"id": ids, "x": x})
    else:
        frame = plain
    ranker = PNormPush().fit(plain[["x"]], [0, 0, 1, 0, 1, 1])
    first = toprank.top(ranker, frame, 6, id="id")
    listed = first["id"].to_pylist() if library == "pyarrow" else list(first["id"])
    assert sorted(value for value in listed if not pd.isna(value)) == ids[:5]
    assert sum(pd.isna(value) for value in listed) == 1


def test_trees_explain_some_of_many_rows_for_their_mean(monkeypatch):
    class Walks:
        seen: ClassVar[list[int]] = []

        def decision_function(self, X):
            return X[:, 0]

        def explain(self, X):
            self.seen.append(len(X))
            return np.column_stack([X, np.zeros(len(X))])

    monkeypatch.setattr("toprank.models.model._MOST_EXPLAINED", 50)
    X = np.random.default_rng(0).normal(size=(400, 2))
    listed = toprank.top(Walks(), X, 5)
    assert Walks.seen == [50, 5] and all(listed.reasons)


class _Half:
    """An estimator that knows probabilities only."""

    def predict_proba(self, X):
        up = 1 / (1 + np.exp(-np.asarray(X, dtype=float)[:, 0]))
        return np.column_stack([1 - up, up])


class _Pairs(_Half):
    def decision_function(self, X):
        return np.zeros((len(X), 2))


def test_probabilities_are_scores_and_two_numbers_per_row_are_none():
    X = np.array([[0.0], [3.0], [-1.0]])
    first = toprank.top(_Half(), X, 2)
    assert first["score"].tolist() == _Half().predict_proba(X)[[1, 0], 1].tolist()
    assert set(first.get("reasons", [""])) == {""}
    with pytest.raises(ModelError, match="not one number per row"):
        toprank.top(_Pairs(), X, 2)


def test_reasons_of_a_pipeline_are_its_own_numbers_or_nothing():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    y = X.a + X.b + 0.1 * rng.normal(size=60) > 0
    mixed = make_pipeline(PCA(2, random_state=0), PNormPush()).fit(X, y)
    assert toprank.top(mixed, X, 3).reasons.str.contains("pca").all()
    nameless = make_pipeline(FunctionTransformer(np.tanh), PNormPush()).fit(X, y)
    silent = make_pipeline(StandardScaler(), KNeighborsClassifier()).fit(X, y)
    assert set(toprank.top(nameless, X, 3).reasons) == {""}
    assert set(toprank.top(silent, X, 3).reasons) == {""}


def test_an_ensemble_with_a_member_that_cannot_explain_has_a_top_without_reasons():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 3)), columns=["a", "b", "c"])
    y = X.a**2 - X.b > 0.5
    mute = PushEnsemble([("svc", SVC()), ("push", PNormPush())], cv=3).fit(X, y)
    assert not hasattr(dict(mute.members_)["svc"], "explain")
    scores = np.sort(mute.decision_function(X))[::-1]
    for ranker in (mute, make_pipeline(StandardScaler(), clone(mute)).fit(X, y)):
        assert set(toprank.top(ranker, X, 3).reasons) == {""}
    np.testing.assert_array_equal(toprank.top(mute, X, 3).score, scores[:3])
