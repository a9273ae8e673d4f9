"""ONNX of rankers against their scores, by ONNX Runtime."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from toprank import (
    AdaBoostRanker,
    IRPush,
    PairRanker,
    PNormPush,
    ProperRanker,
    PushRanker,
    PushTrees,
    RankBoost,
    SmoothMarginRanker,
)

pytest.importorskip("onnx", reason="ONNX export needs onnx")
pytest.importorskip("onnxruntime", reason="the check of ONNX models needs ONNX Runtime")

from toprank.interop.onnx import session_of, to_onnx


def rows_of(seed=0, n=200, d=5, gaps=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(2)
    y = X[:, 0] - X[:, 1] + rng.normal(size=n) > 0.7
    if gaps:
        X[rng.random(X.shape) < 0.2] = np.nan
    return X, y


@pytest.mark.parametrize(
    "ranker",
    [
        PNormPush(),
        IRPush(),
        PushRanker(price="max"),
        ProperRanker(loss="squared"),
        PairRanker(),
        LogisticRegression(),
        RankBoost(20, weak_rankers="features"),
    ],
    ids=str,
)
def test_linear_rankers_score_the_same(ranker):
    X, y = rows_of()
    if isinstance(ranker, RankBoost):
        X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    ranker.fit(X, y)
    score = "predict" if isinstance(ranker, PairRanker) else "decision_function"
    got = session_of(to_onnx(ranker).model)({"X": X})
    np.testing.assert_allclose(got, getattr(ranker, score)(X), rtol=1e-12, atol=1e-12)


def test_columns_far_from_zero_or_huge_keep_their_digits():
    X, y = rows_of()
    X = X * np.array([1.0, 1e-3, 1e98, 1.0, 1.0]) + np.array([1e9, 0.0, 0.0, 0.0, -1e7])
    ranker = PNormPush().fit(X, y)
    assert not ranker._units.plain
    assert to_onnx(ranker, check=X, tolerance=1e-9).largest_difference < 1e-9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("ranker", [RankBoost(60), SmoothMarginRanker(60), AdaBoostRanker(60)])
@pytest.mark.parametrize("gaps", [False, True])
def test_sums_of_stumps_score_the_same_at_thresholds_gaps_and_infinities_too(ranker, gaps):
    X, y = rows_of(gaps=gaps)
    ranker.fit(X, y)
    edges = np.resize(ranker.stumps_["threshold"], (50, X.shape[1]))
    later = np.vstack([X, edges, np.full((1, 5), np.nan), np.full((1, 5), np.inf)])
    assert to_onnx(ranker, check=later).largest_difference < 1e-10


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_booster_that_took_no_step_scores_the_same():
    X = np.ones((6, 2))
    ranker = RankBoost(3).fit(X, [0, 1, 0, 1, 0, 1])
    assert to_onnx(ranker, check=X).largest_difference == 0


def categories(seed=0, n=400):
    """Two columns of numbers, two of categories that matter, one of them with gaps."""
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


@pytest.mark.parametrize("p", [4.0, None])
@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_trees_score_the_same_with_categories_gaps_and_values_never_seen(backend, p):
    pytest.importorskip(backend)
    X, y, later = categories()
    trees = PushTrees(p, backend=backend, n_estimators=20, categorical_features=[2, 3]).fit(X, y)
    if backend == "lightgbm":
        assert "==" in trees.booster_.model_to_string() or "cat_threshold" in (
            trees.booster_.model_to_string()
        )
    allowed = 1e-12 if backend == "lightgbm" else 2e-6  # XGBoost adds up in single precision
    for rows in (X, later):
        assert to_onnx(trees, check=rows).largest_difference < allowed


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_trees_score_the_same_at_their_own_thresholds(backend):
    pytest.importorskip(backend)
    X, y = rows_of(n=300)
    X = X.round(1)
    trees = PushTrees(backend=backend, n_estimators=15).fit(X, y)
    grid = np.unique(np.concatenate([X.ravel(), X.ravel() + 0.05]))
    later = np.resize(grid, (len(grid), 5))
    allowed = 1e-12 if backend == "lightgbm" else 2e-6
    assert to_onnx(trees, check=later).largest_difference < allowed


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_stopped_trees_and_trees_on_a_model_score_the_same(backend):
    pytest.importorskip(backend)
    X, y = rows_of(n=300)
    first = PNormPush().fit(X, y)
    trees = PushTrees(
        2, backend=backend, n_estimators=40, early_stopping=True, n_iter_no_change=5, random_state=0
    ).fit(X, y, init_model=first)
    assert trees.n_iter_ < 40
    assert to_onnx(trees, check=X).largest_difference < 2e-6


def test_a_single_leaf_is_a_tree_too():
    pytest.importorskip("lightgbm")
    X, y = rows_of(n=40)
    trees = PushTrees(n_estimators=2, min_child_weight=1e6).fit(X, y)
    assert to_onnx(trees, check=X).largest_difference < 1e-12


def test_trees_on_scores_of_the_caller_are_refused():
    pytest.importorskip("lightgbm")
    X, y = rows_of()
    trees = PushTrees(n_estimators=2).fit(X, y, init_score=np.zeros(len(y)))
    with pytest.raises(ValueError, match="init_score"):
        to_onnx(trees)


def test_functions_are_refused():
    X, y = rows_of()
    with pytest.raises(ValueError, match="cannot be written as ONNX"):
        to_onnx(RankBoost(2, weak_rankers=[lambda X: X[:, 0] > 0]).fit(X, y))


def test_scores_that_differ_are_an_error_and_nothing_is_written(tmp_path, monkeypatch):
    X, y = rows_of()
    ranker = PNormPush().fit(X, y)
    true = ranker.decision_function
    monkeypatch.setattr(ranker, "decision_function", lambda X: true(X) + 0.01)
    with pytest.raises(ValueError, match=r"differ from the ranker's by up to 0\.01"):
        to_onnx(ranker, tmp_path / "m.onnx", check=X)
    assert not (tmp_path / "m.onnx").exists()


def test_the_file_holds_the_model(tmp_path):
    onnx = pytest.importorskip("onnx")
    X, y = rows_of()
    ranker = PNormPush().fit(X, y)
    to_onnx(ranker, tmp_path / "m.onnx", check=X)
    got = session_of(onnx.load(tmp_path / "m.onnx"))({"X": X})
    np.testing.assert_allclose(got, ranker.decision_function(X), rtol=1e-12, atol=1e-12)


def test_trees_with_words_say_how_to_write_them_as_onnx():
    pytest.importorskip("lightgbm")
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"name": rng.choice(["Müller", "Huber", "Meier"], 200)})
    y = (frame["name"] == "Huber") ^ (rng.random(200) < 0.2)
    frame["name"] = frame["name"].astype("category")
    ranker = PushTrees(2.0, n_estimators=2).fit(frame, y)
    with pytest.raises(ValueError, match=r"words, such as 'Huber'.*fit_table"):
        to_onnx(ranker)


@pytest.mark.parametrize(
    "scalers",
    [
        ["StandardScaler"],
        ["MinMaxScaler", "RobustScaler"],
        ["MaxAbsScaler", "passthrough", "StandardScaler"],
    ],
    ids=", ".join,
)
@pytest.mark.parametrize("ranker", [PNormPush(), RankBoost(10)], ids=lambda r: type(r).__name__)
def test_a_pipeline_of_scalers_is_written_with_its_ranker(scalers, ranker):
    import sqlite3

    from sklearn import preprocessing
    from sklearn.pipeline import make_pipeline

    from toprank.interop.sql import to_sql

    X, y = rows_of()
    X = X[~np.isnan(X).any(axis=1)]
    y = y[: len(X)]
    steps = [s if s == "passthrough" else getattr(preprocessing, s)() for s in scalers]
    pipeline = make_pipeline(*steps, ranker).fit(X, y)
    assert to_onnx(pipeline, check=X).largest_difference < 1e-9
    names = [f"x{j}" for j in range(X.shape[1])]
    with sqlite3.connect(":memory:") as base:
        base.execute(f"CREATE TABLE t ({', '.join(names)})")
        marks = ", ".join("?" * len(names))
        base.executemany(f"INSERT INTO t VALUES ({marks})", X.tolist())
        query = to_sql(pipeline, names, table="t", dialect="sqlite")
        found = [row[-1] for row in base.execute(query)]
    base.close()
    np.testing.assert_allclose(found, pipeline.decision_function(X), atol=1e-9)


def test_a_pipeline_with_another_step_says_which():
    from sklearn.decomposition import PCA
    from sklearn.pipeline import make_pipeline

    X, y = rows_of()
    X = np.nan_to_num(X)
    with pytest.raises(ValueError, match=r"a step PCA, which cannot.*StandardScaler.*TableRanker"):
        to_onnx(make_pipeline(PCA(2), PNormPush()).fit(X, y))


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "laplacian", "cosine"])
def test_rankers_with_a_kernel_score_the_same(kernel):
    X, y = rows_of(n=80)
    X = X + 3.0
    ranker = PairRanker(kernel=kernel, n_components=10, random_state=0).fit(X, y)
    later = np.vstack([X, np.zeros((1, 5)), 2.0 * X[:5]])
    # large coefficients of cubes take digits off each other
    export = to_onnx(ranker, check=later, tolerance=1e-5 if kernel == "poly" else 1e-9)
    assert export.rows_checked == 86


def test_a_kernel_on_pairs_is_the_mean_over_its_landmarks_and_a_function_is_refused():
    X, y = rows_of(n=40)
    ranker = PairRanker(kernel="rbf", kernel_on="pairs", n_components=10).fit(X, y)
    to_onnx(ranker, check=X, tolerance=1e-9)
    own = PairRanker(kernel=lambda a, b: float(a @ b), n_components=5).fit(X, y)
    with pytest.raises(ValueError, match="cannot be written as ONNX: expected one of cosine"):
        to_onnx(own)


def test_forests_score_the_same_with_categories_that_are_no_codes():
    from toprank.rankers.ensemble.converted import ForestRanker

    X, y, later = categories()
    forest = ForestRanker(n_estimators=3, random_state=0, categorical_features=[2, 3]).fit(X, y)
    for rows in (X, later):
        assert to_onnx(forest, check=rows).largest_difference < 1e-9


def test_a_forest_scores_the_same_where_a_column_of_categories_was_all_missing():
    from toprank.rankers.ensemble.converted import ForestRanker

    X, y, later = categories()
    X[:, 3] = np.nan
    forest = ForestRanker(n_estimators=3, random_state=0, categorical_features=[2, 3]).fit(X, y)
    for rows in (X, later):
        assert to_onnx(forest, check=rows).largest_difference < 1e-9


def test_a_linear_member_of_categories_scores_the_same_in_onnx():
    from toprank.rankers.ensemble.prepared import PreparedRanker

    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=300), rng.integers(5, 9, 300) * 10.0])
    y = X[:, 0] + 1.5 * (X[:, 1] == 70) + rng.normal(size=300) > 1
    X[::9, 0] = np.nan
    ranker = PreparedRanker(PNormPush(2), [1]).fit(X, y)
    later = X.copy()
    later[::3, 1] = 99  # never seen
    later[::4, 1] = np.nan
    assert to_onnx(ranker, check=later).largest_difference < 1e-6
    assert len(ranker._made.coded) >= 3
