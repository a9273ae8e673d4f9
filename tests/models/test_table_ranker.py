"""TableRanker: an estimator like any other, for tables of mixed columns."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import toprank
from toprank import PNormPush, blocks
from toprank.models import TableRanker, fit_table, load


@pytest.mark.sampled(3)
@parametrize_with_checks([TableRanker(p=2.0)])
def test_scikit_learn_finds_nothing_to_say_against_it(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def X(table):
    return table.drop(columns=["customer", "bought"])


@pytest.fixture(scope="module")
def y(table):
    return table["bought"]


@pytest.fixture(scope="module")
def ranker(X, y):
    return TableRanker(p=4.0).fit(X, y)


def test_it_gives_the_scores_of_fit_table(ranker, X, table, fitted):
    np.testing.assert_allclose(
        ranker.decision_function(X), fitted("pnorm").score(table), rtol=1e-8, atol=1e-8
    )
    assert ranker.classes_.tolist() == ["no", "yes"]
    assert set(ranker.predict(X)) == {"no", "yes"}
    assert ranker.feature_names_in_.tolist() == list(X.columns)
    assert ranker.get_feature_names_out()[0] == "age"
    np.testing.assert_allclose(ranker.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("name", ["ir", "proper", "rankboost", "trees"])
@pytest.mark.sampled(2)
def test_every_model_can_be_its_ranker(name, X, y):
    if name == "trees":
        pytest.importorskip("lightgbm")
    scores = TableRanker(p=2.0, model=name).fit(X, y).decision_function(X)
    assert toprank.metrics.auc(y == "yes", scores) > 0.75


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_tables_of_every_library_are_taken(library, ranker, X, y):
    pytest.importorskip(library)
    if library == "polars":
        import polars

        table = polars.from_pandas(X)
    else:
        import pyarrow

        table = pyarrow.Table.from_pandas(X)
    again = TableRanker(p=4.0).fit(table, y)
    np.testing.assert_allclose(again.decision_function(table), ranker.decision_function(X))


def test_it_is_cloned_cross_validated_tuned_and_put_into_pipelines(X, y):
    found = cross_val_score(clone(TableRanker(p=2.0)), X, y == "yes", scoring="roc_auc", cv=3)
    assert found.min() > 0.6
    search = GridSearchCV(TableRanker(), {"p": [1.0, 4.0]}, cv=2, scoring="roc_auc")
    assert search.fit(X, y == "yes").best_params_["p"] in (1.0, 4.0)
    add = FunctionTransformer(lambda frame: frame.assign(root=np.sqrt(frame.spent)))
    pipeline = make_pipeline(add, TableRanker(p=2.0)).fit(X, y)
    assert "root" in pipeline[-1].get_feature_names_out()
    first = toprank.top(pipeline, X, 3)
    assert len(first) == 3 and all(first["reasons"])


def test_weights_are_repetitions(X, y):
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = TableRanker(p=2.0).fit(X, y, sample_weight=weight)
    rows = np.repeat(np.arange(len(X)), weight)
    repeated = TableRanker(p=2.0).fit(X.iloc[rows], y.iloc[rows])
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), rtol=1e-6, atol=1e-6
    )


def test_its_model_travels(ranker, X, tmp_path):
    ranker.save(tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.score(X), ranker.decision_function(X))
    assert again.card["metrics"]["notes"] == ["nothing was held out: measure by cross-validation"]
    assert "SELECT" in ranker.to_sql("t")


def test_it_goes_to_onnx_with_its_words(ranker, X):
    pytest.importorskip("onnxruntime")
    assert ranker.to_onnx(check=X).largest_difference < 1e-9


def test_reasons_are_in_the_words_of_the_table(ranker, X):
    found = ranker.reasons(X.head(3), 2)
    assert found == ranker.model_.reasons(X.head(3), 2) and len(found) == 3
    assert {one.column for reasons in found for one in reasons} <= set(X.columns)


def test_top_keeps_the_index_of_the_frame(ranker, X):
    frame = X.set_axis([f"row {place}" for place in range(len(X))])
    first = toprank.top(ranker, frame, 5)
    best = np.argsort(-ranker.decision_function(X), kind="stable")[:5]
    assert first.index.tolist() == [f"row {place}" for place in best]
    assert first["row"].tolist() == best.tolist() and all(first["reasons"])


def test_a_pipeline_of_known_steps_gives_reasons_in_its_own_columns():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(40, 9, 300), "city": rng.choice(["Rome", "Oslo"], 300)})
    frame["far"] = rng.normal(size=300)
    y = frame.age / 9 + (frame.city == "Rome") + rng.normal(size=300) > 5.5
    steps = make_column_transformer((StandardScaler(), ["age", "far"]), (OneHotEncoder(), ["city"]))
    pipeline = make_pipeline(steps, PNormPush(p=2)).fit(frame, y)
    first = toprank.top(pipeline, frame, 4, n_reasons=2)
    row = frame.loc[first.index[0]]
    assert f"age = {row.age:.6g} (+" in first["reasons"].iloc[0]
    scaled = make_pipeline(StandardScaler(), PNormPush(p=2)).fit(frame[["age", "far"]], y)
    plain = PNormPush(p=2).fit(StandardScaler().fit_transform(frame[["age", "far"]]), y)
    parts = plain.coef_[0] * StandardScaler().fit_transform(frame[["age", "far"]])
    best = int(np.argmax(scaled.decision_function(frame[["age", "far"]])))
    said = toprank.top(scaled, frame, 1, n_reasons=1)["reasons"].iloc[0]
    assert said == f"age = {frame.age[best]:.6g} ({parts[best, 0]:+.3g})"


def test_what_cannot_be_used_is_refused(X, y):
    with pytest.raises(NotFittedError):
        TableRanker().decision_function(X)
    with pytest.raises(ValueError, match="one class only"):
        TableRanker().fit(X, np.ones(len(X)))
    with pytest.raises(ValueError, match="There is no column to rank by"):
        TableRanker().fit(X.assign(age=1.0)[["age"]], y)
    with pytest.raises(ValueError, match="model='forest'"):
        TableRanker(model="forest").fit(X, y)
    fitted = fit_table(X.assign(y=y), "y", p=2)
    assert fitted.schema.names == TableRanker(p=2).fit(X, y).model_.schema.names


def test_long_tails_are_clipped_as_fit_table_clips_them_and_collinear_columns_are_one_reason(X, y):
    X = X.assign(paid=np.arange(len(X)) % 50.0, twin=X.age * 2.0)
    X.loc[X.index[5], "paid"] = 1e9
    ranker = TableRanker(p=2).fit(X, y)
    low, high = ranker.model_.card["tails"]["paid"]
    assert 0 <= low < high < 100
    assert "age + twin" in {reason.column for reason in ranker.reasons(X.head(20), 9)[0]}
    kept = TableRanker(p=2, keep_tails=True).fit(X, y)
    assert kept.model_.card["tails"] == {}
    row = X.head(1).assign(paid=1e9)
    assert ranker.decision_function(row) == ranker.decision_function(row.assign(paid=high))


@pytest.mark.more
def test_an_ensemble_needs_no_p(X, y):
    ranker = TableRanker(model="auto", quality="fast").fit(X, y)
    assert type(ranker.model_.ranker).__name__ == "PushEnsemble"
    assert len(ranker.reasons(X.head(2))) == 2


def test_tables_without_rows_and_complex_numbers_are_refused(X, y):
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        TableRanker(p=2.0).fit(X[:0], y[:0])
    with pytest.raises(ValueError, match="Complex data not supported"):
        TableRanker(p=2.0).fit(np.ones((4, 2)) * 1j, [0, 1, 0, 1])


def test_a_column_called_as_the_labels_stays_a_feature():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["y", "y_"])
    labels = pd.Series(np.where(frame.y + rng.normal(size=60) > 0, "yes", "no"), name="y")
    ranker = TableRanker(p=2.0).fit(frame, labels)
    assert ranker.feature_names_in_.tolist() == ["y", "y_"]
    assert [column.name for column in ranker.model_.schema.columns] == ["y", "y_"]
    # an array of as many columns is read in their order
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn's, of names
        bare = ranker.decision_function(frame.to_numpy())
    np.testing.assert_allclose(bare, ranker.decision_function(frame))


@pytest.mark.more
def test_labels_in_words_are_learned_from_blocks(X, table):
    frame = table.drop(columns="customer")
    source = blocks.from_tables(lambda: (frame[i : i + 80] for i in range(0, 240, 80)))
    ranker = TableRanker(p=2.0).fit_blocks(source, "bought")
    assert ranker.classes_.tolist() == ["no", "yes"] and set(ranker.predict(X)) == {"no", "yes"}
