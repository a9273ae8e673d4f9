"""SQL of trees and ensembles, run in SQLite and DuckDB against their scores."""

import sqlite3

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import PNormPush, PushEnsemble, PushTrees
from toprank.interop import sql_rankers
from toprank.interop.sql import to_sql
from toprank.interop.sql_rankers import double_edge

#: the last two are names that the query's own steps would have
NAMES = ['a"b', "select", "x0", "XS1"]
#: the largest number of single precision
MOST = float(np.finfo(np.float32).max)


def table(seed=0, n=300):
    """Two columns of numbers, two of categories that matter, with gaps; and later rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[:, 2] = rng.integers(0, 20, n)
    X[:, 3] = rng.integers(5, 9, n) * 10.0
    odd = np.isin(X[:, 2], [1, 4, 7, 13, 19])
    y = X[:, 0] + 2.0 * odd + 1.5 * (X[:, 3] == 70) + rng.normal(size=n) > 1.5
    X[rng.random(n) < 0.1, 3] = np.nan
    X[rng.random(n) < 0.1, 0] = np.nan
    later = X.copy()
    later[::3, 2] = 99  # never seen
    later[::4, 3] = np.nan
    later[::5, 1] = np.nan  # never missing in training
    later[::7, 2] = np.nan
    return X, y, later


def by_sqlite(query, frame):
    connection = sqlite3.connect(":memory:")
    quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in frame.columns)
    connection.execute(f'CREATE TABLE "my rows" ({quoted})')
    holes = ", ".join("?" * frame.shape[1])
    rows = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
    connection.executemany(f'INSERT INTO "my rows" VALUES ({holes})', rows)
    return np.array([row[-1] for row in connection.execute(query)], dtype=np.float64)


def by_duckdb(query, frame):
    duckdb = pytest.importorskip("duckdb", reason="the SQL of DuckDB is run by DuckDB")
    connection = duckdb.connect()
    connection.register("given", frame)
    connection.execute('CREATE TABLE "my rows" AS SELECT * FROM given')
    return np.array([row[-1] for row in connection.execute(query).fetchall()], dtype=np.float64)


DATABASES = pytest.mark.parametrize(
    ("dialect", "run"), [("sqlite", by_sqlite), ("duckdb", by_duckdb)], ids=["sqlite", "duckdb"]
)


def check_scores(ranker, dialect, run, *tables, names=NAMES, within=1e-12):
    query = to_sql(ranker, names, table="my rows", dialect=dialect)
    for rows in tables:
        frame = rows if hasattr(rows, "columns") else pd.DataFrame(rows, columns=names)
        np.testing.assert_allclose(
            run(query, frame), ranker.decision_function(rows), rtol=within, atol=within
        )
    return query


@pytest.mark.sampled(5)
@DATABASES
@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_trees_score_the_same_with_categories_gaps_and_values_never_seen(backend, dialect, run):
    pytest.importorskip(backend)
    X, y, later = table()
    trees = PushTrees(4, backend=backend, n_estimators=8, categorical_features=[2, 3]).fit(X, y)
    within = 1e-12 if backend == "lightgbm" else 1e-6  # XGBoost adds up in single precision
    query = check_scores(trees, dialect, run, X, later, within=within)
    assert "CASE WHEN" in query


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_trees_score_the_same_at_their_own_thresholds_and_the_numbers_beside_them(backend):
    pytest.importorskip(backend)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2)).round(1)
    trees = PushTrees(4, backend=backend, n_estimators=15).fit(X, X[:, 0] + X[:, 1] > 1)
    edges = np.unique(np.concatenate([X.ravel(), X.ravel() + 0.05, X.ravel() - 0.05]))
    single = edges.astype(np.float32).astype(np.float64)
    near = [np.nextafter(e, s * np.inf) for e in (edges, single) for s in (-1, 0, 1)]
    values = np.concatenate([edges, single, *near])
    later = np.column_stack([values, values[::-1]])
    within = 1e-12 if backend == "lightgbm" else 1e-6
    check_scores(trees, "sqlite", by_sqlite, X, later, names=["u", "v"], within=within)


@pytest.mark.parametrize("threshold", [1.0, -1.0, 0.1, 3.0, 1e-40, -2.5e30, 0.0, MOST, -MOST])
def test_the_double_edge_asks_what_single_precision_asks(threshold):
    at_most, edge = double_edge(threshold)
    near = [edge]
    for _ in range(3):
        near += [np.nextafter(near[0], -np.inf), np.nextafter(near[-1], np.inf)]
        near.sort()
    for x in (*near, float(np.float32(threshold)), 0.0, -1e300, 1e300):
        with np.errstate(over="ignore"):
            single = bool(np.float32(x) < np.float32(threshold))
        assert (x <= edge if at_most else x < edge) == single


def test_a_deep_tree_fits_into_the_parser_of_sqlite():
    pytest.importorskip("lightgbm")
    # positives at every power of two: each split takes one off
    X = np.repeat(2.0 ** np.arange(40), 5)[:, None]
    y = np.repeat(np.arange(40) % 2, 5)
    trees = PushTrees(
        2, n_estimators=1, num_leaves=40, min_child_samples=1, min_child_weight=0.0
    ).fit(X, y)
    query = check_scores(trees, "sqlite", by_sqlite, X, np.array([[np.nan]]), names=["u"])
    assert query.count(" THEN ") > 20


@DATABASES
def test_categories_that_are_words_are_read_as_words(dialect, run):
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(2)
    words = np.array(["o'brien", "back\\slash", "two\nlines", "é;--"])
    frame = pd.DataFrame({"word": rng.choice(words, 300), "x": rng.normal(size=300)})
    y = (frame.word == words[0]) + frame.x + rng.normal(size=300) > 1
    frame["word"] = frame.word.astype("category")
    trees = PushTrees(4, n_estimators=5, categorical_features=["word"]).fit(frame, y)
    query = to_sql(trees, ["word", "x"], table="my rows", dialect=dialect)
    plain = frame.astype({"word": object})
    np.testing.assert_allclose(run(query, plain), trees.decision_function(frame), atol=1e-12)


@DATABASES
def test_an_ensemble_of_every_kind_of_member_scores_the_same(dialect, run):
    pytest.importorskip("lightgbm")
    from toprank.rankers.ensemble.converted import ForestRanker
    from toprank.rankers.ensemble.prepared import PreparedRanker

    X, y, later = table()
    coded = {"categorical_features": [2, 3]}
    ensemble = PushEnsemble(
        [
            ("linear", PreparedRanker(PNormPush(2), [2, 3])),
            ("trees", PushTrees(2, n_estimators=4, **coded)),
            ("forest", ForestRanker(n_estimators=3, min_samples_leaf=20, random_state=0, **coded)),
        ],
        p=2,
        cv=2,
        random_state=0,
    ).fit(X, y)
    check_scores(ensemble, dialect, run, X, later)


@DATABASES
def test_trees_on_a_model_and_behind_scalers_score_the_same(dialect, run):
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 2))
    y = X.sum(axis=1) + rng.normal(size=200) > 1
    on_linear = PushTrees(2, n_estimators=4).fit(X, y, init_model=PNormPush().fit(X, y))
    scaled = make_pipeline(StandardScaler(), PushTrees(2, n_estimators=4)).fit(X, y)
    for ranker in (on_linear, scaled):
        check_scores(ranker, dialect, run, X, names=["u", "v"])


def test_trees_without_a_split_are_a_number():
    pytest.importorskip("lightgbm")
    X = np.arange(20.0)[:, None]
    trees = PushTrees(n_estimators=2, min_child_weight=1e6).fit(X, np.arange(20) % 2)
    check_scores(trees, "sqlite", by_sqlite, X, names=["u"])


def test_infinite_numbers_and_nan_count_as_missing():
    duckdb = pytest.importorskip("duckdb", reason="SQLite has no NaN")
    pytest.importorskip("lightgbm")
    X, y, _ = table()
    trees = PushTrees(4, n_estimators=4).fit(X, y)
    score = to_sql(trees, list("abcd"), dialect="duckdb")
    odd = "('nan'::DOUBLE), (NULL), ('inf'::DOUBLE), ('-inf'::DOUBLE)"
    rows = duckdb.sql(
        f"SELECT {score} FROM (VALUES {odd}) AS t(a), (VALUES (1, 2, 50)) AS u(b, c, d)"
    )
    expected = trees.decision_function([[np.nan, 1, 2, 50]])[0]
    np.testing.assert_allclose([row[0] for row in rows.fetchall()], expected, atol=1e-12)


def test_trees_on_scores_of_the_caller_and_too_many_splits_are_refused_with_a_way_out(monkeypatch):
    pytest.importorskip("lightgbm")
    X, y, _ = table()
    trees = PushTrees(n_estimators=2).fit(X, y, init_score=np.zeros(len(y)))
    with pytest.raises(ValueError, match="init_model="):
        to_sql(trees, NAMES)
    monkeypatch.setattr(sql_rankers, "MOST_SPLITS", 10)
    with pytest.raises(ValueError, match=r"more than 10 questions.*ONNX"):
        to_sql(PushTrees(n_estimators=2).fit(X, y), NAMES)


@DATABASES
@pytest.mark.parametrize("kind", ["random", "extra"])
def test_a_forest_scores_the_same_by_itself(kind, dialect, run):
    from toprank.rankers.ensemble.converted import ForestRanker

    X, y, later = table()
    given = {"n_estimators": 3, "min_samples_leaf": 20, "random_state": 0}
    forest = ForestRanker(kind, categorical_features=[2, 3], **given).fit(X, y)
    check_scores(forest, dialect, run, X, later)


@DATABASES
def test_columns_that_a_prepared_ranker_gives_no_weight_are_not_asked_for(dialect, run):
    from toprank.rankers.ensemble.prepared import PreparedRanker

    X, y, later = table()
    ranker = PreparedRanker(PNormPush(2), [2, 3]).fit(X, y)
    ranker.ranker_.coef_ = np.where(np.arange(ranker.ranker_.coef_.size) == 1, 0.0, 1.0)[None, :]
    query = check_scores(ranker, dialect, run, X, later)
    assert query.count('"select"') == 0 < query.count('"x0"')


def test_an_edge_beyond_single_precision_is_refused():
    for beyond in (np.inf, -np.inf, np.nan, 1e300):
        with pytest.raises(ValueError, match="asks whether a column is below"):
            double_edge(beyond)


def test_a_question_with_no_category_sends_every_value_one_way():
    """A split whose categories were all unknown in training, as files of LightGBM may hold."""
    from toprank.interop.sql_dialects import DIALECTS
    from toprank.interop.sql_rankers import _TreeWriter
    from toprank.interop.sql_steps import SqlColumns, SqlSteps
    from toprank.interop.tree_forms import MEMBER, Leaf, Split

    steps = SqlSteps(["c"], DIALECTS["sqlite"])
    writer = _TreeWriter({}, SqlColumns(['"c"'], ['"c"']), steps, False)
    for if_missing, expected in ((False, [2.0, 2.0]), (True, [2.0, 1.0])):
        split = Split(0, MEMBER, 0.0, (), if_missing, Leaf(1.0), Leaf(2.0))
        score = steps.finish(writer.tree(split))
        rows = pd.DataFrame({"c": [3.0, np.nan]})
        assert by_sqlite(f'SELECT {score} FROM "my rows"', rows).tolist() == expected


def test_what_sql_cannot_write_is_refused():
    ranker = PNormPush().fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    with pytest.raises(ValueError, match="zero byte"):
        to_sql(ranker, ["a\0b"])
    ranker.coef_ = np.array([[np.inf]])
    with pytest.raises(ValueError, match="SQL has no literal for inf"):
        to_sql(ranker, ["a"])
