"""Models in ONNX and SQL, preparation included, give the same scores."""

import sqlite3
import warnings

import numpy as np
import pandas as pd
import pytest

from toprank import PushTrees
from toprank.interop.onnx import to_onnx
from toprank.models import ModelError, fit_table

ODD = "odd \"name\" `of` [a] 'column'; --"
WORDS = ["o'brien", "back\\slash", "two\nlines", "é;--", '"quoted"']


@pytest.fixture(scope="module")
def odd_table(table):
    rng = np.random.default_rng(3)
    frame = table.drop(columns="customer").assign(**{ODD: rng.choice(WORDS, len(table))})
    frame["flag"] = pd.array(rng.random(len(table)) > 0.4, dtype="boolean")
    frame.loc[::6, "flag"] = pd.NA
    return frame


@pytest.fixture(scope="module")
def later(odd_table):
    """New rows: gaps, infinities and categories never seen, everywhere."""
    rng = np.random.default_rng(4)
    frame = odd_table.copy()
    for column, values in {
        "age": [np.nan, np.inf, -np.inf, 0.0, 40.0],
        "spent": [np.nan, 1e99, -5.0],
        "city": [None, "Paris", "Rome", ""],
        "flag": [pd.NA, True, False],
        "member": [True, False],
        ODD: [*WORDS, None, "never'seen"],
    }.items():
        rows = rng.random(len(frame)) < 0.6
        chosen = [values[j] for j in rng.integers(0, len(values), len(frame))]
        frame[column] = frame[column].astype(object).where(~rows, pd.Series(chosen, dtype=object))
    return frame


@pytest.fixture(scope="module")
def odd_models(odd_table):
    kept = {}

    def model(name):
        if name not in kept:
            p = {"p": 4} if name in ("pnorm", "rankboost", "trees") else {}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                kept[name] = fit_table(odd_table, "bought", model=name, **p)
        return kept[name]

    return model


def run(query, frame):
    """Run a query over the rows of a frame in SQLite and return its last column."""
    connection = sqlite3.connect(":memory:")
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in frame.columns)
    connection.execute(f"CREATE TABLE rows ({names})")
    rows = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
    holes = ", ".join("?" * frame.shape[1])
    connection.executemany(f"INSERT INTO rows VALUES ({holes})", rows)
    return np.array([row[-1] for row in connection.execute(query)], dtype=np.float64)


@pytest.mark.sampled(5)
@pytest.mark.filterwarnings("ignore::toprank.models.ModelWarning")
@pytest.mark.parametrize("name", ["pnorm", "ir", "proper", "rankboost", "smooth-margin", "trees"])
def test_sqlite_gives_the_scores_of_the_model(odd_models, odd_table, later, name):
    if name == "trees":
        pytest.importorskip("lightgbm")
    model = odd_models(name)
    query = model.to_sql("rows", dialect="sqlite")
    for frame in (odd_table, later):
        np.testing.assert_allclose(run(query, frame), model.score(frame), rtol=1e-9, atol=1e-9)


@pytest.mark.sampled(4)
@pytest.mark.filterwarnings("ignore::toprank.models.ModelWarning")
@pytest.mark.parametrize("name", ["pnorm", "ir", "proper", "rankboost", "smooth-margin", "trees"])
def test_onnx_runtime_gives_the_scores_of_the_model(odd_models, odd_table, later, tmp_path, name):
    pytest.importorskip("onnx", reason="ONNX export needs onnx")
    pytest.importorskip("onnxruntime", reason="the check of ONNX models needs ONNX Runtime")
    if name == "trees":
        pytest.importorskip("lightgbm")
    model = odd_models(name)
    for frame in (odd_table, later):
        export = model.to_onnx(tmp_path / "m.onnx", check=frame)
        assert export.rows_checked == len(frame)
        assert export.largest_difference <= 1e-9 * max(1.0, np.abs(model.score(frame)).max())
    assert (tmp_path / "m.onnx").read_bytes() == export.model.SerializeToString()


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_a_missing_category_of_many_is_no_category_in_onnx(backend):
    pytest.importorskip("onnx", reason="ONNX export needs onnx")
    runtime = pytest.importorskip("onnxruntime", reason="the check of ONNX models needs it")
    pytest.importorskip(backend)
    rng = np.random.default_rng(0)
    code = rng.integers(0, 36, 2000).astype(float)
    code[::9] = np.nan
    X = np.column_stack([rng.normal(size=2000), code])
    effect = np.where(np.isnan(code), 2.0, np.isin(code, [0, 3, 7, 35]) * 3.0)
    y = X[:, 0] + effect + rng.logistic(size=2000) > 3
    how = {"backend": backend, "n_estimators": 20, "categorical_features": [1]}
    trees = PushTrees(p=2, early_stopping=False, **how).fit(X, y)
    session = runtime.InferenceSession(to_onnx(trees).model.SerializeToString())
    later = X[:400].copy()
    later[300:320, 1] = 77.0  # never seen
    (scores,) = session.run(None, {session.get_inputs()[0].name: later})[:1]
    np.testing.assert_allclose(scores.ravel(), trees.decision_function(later), atol=1e-5)


def test_onnx_that_differs_is_an_error_and_is_not_written(odd_models, odd_table, tmp_path):
    pytest.importorskip("onnxruntime", reason="the check of ONNX models needs ONNX Runtime")
    from toprank.interop.onnx import check_export
    from toprank.models.export import onnx_inputs

    model = odd_models("pnorm")
    export = model.to_onnx()
    wrong = model.score(odd_table) + 1e-3
    with pytest.raises(ValueError, match=r"differ from the ranker's by up to 0\.001"):
        check_export(export.model, onnx_inputs(model, odd_table), wrong, 1e-5)
    with pytest.raises(ModelError, match="differ from the ranker's"):
        model.to_onnx(tmp_path / "m", check=odd_table, tolerance=-1.0)
    assert not (tmp_path / "m").exists()


def test_dates_and_text_are_refused_by_name(full_model):
    with pytest.raises(ModelError, match=r"'since' \(date\), 'note' \(text\).*drop="):
        full_model.to_sql()
    pytest.importorskip("onnx", reason="ONNX export needs onnx")
    with pytest.raises(ModelError, match=r"'since' \(date\), 'note' \(text\).*ONNX"):
        full_model.to_onnx()


def test_an_unknown_dialect_is_a_model_error(odd_models):
    with pytest.raises(ModelError, match="expected one of ansi"):
        odd_models("pnorm").to_sql(dialect="cobol")
