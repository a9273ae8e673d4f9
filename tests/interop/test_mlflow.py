"""Models in MLflow, by a tracking store of its own in a folder."""

import json

import numpy as np
import pandas as pd
import pytest

from toprank import AdaBoostRanker, LabelRanker, PairRanker, PNormPush, PushEnsemble, PushTrees
from toprank.inference import compare, interval
from toprank.models import ModelError, TableRanker, fit_table

mlflow = pytest.importorskip("mlflow", reason="models in MLflow need MLflow")

from toprank.interop import mlflow as ours  # noqa: E402

# MLflow's own warnings are its users' to read
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store of runs and a registry, in a database of its own."""
    folder = tmp_path_factory.mktemp("store")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{folder / 'runs.db'}")
    mlflow.create_experiment("tests", artifact_location=(folder / "artifacts").as_uri())
    mlflow.set_experiment("tests")
    yield mlflow.MlflowClient()
    mlflow.set_tracking_uri(before)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, 300),
            "city": rng.choice(["Rome", "Oslo"], 300),
            "member": pd.array(rng.random(300) < 0.4, dtype="boolean"),
            "since": np.datetime64("2025-01-01") + rng.integers(0, 300, 300).astype("m8[D]"),
        }
    )
    frame["bought"] = frame.age + 8 * (frame.city == "Oslo") + rng.normal(0, 8, 300) > 55
    frame.loc[::7, "age"] = np.nan
    frame.loc[::5, "member"] = pd.NA
    return frame


@pytest.fixture(scope="module")
def model(table):
    return fit_table(table, "bought", p=2)


def test_a_model_of_a_table_is_logged_registered_loaded_and_served(store, table, model):
    with mlflow.start_run():
        info = ours.log_model(model, "leads", registered_model_name="leads")
    again = ours.load_model("models:/leads/1")
    np.testing.assert_array_equal(again.score(table), model.score(table))
    served = mlflow.pyfunc.load_model(info.model_uri)
    answer = served.predict(table.drop(columns="bought"), params={"reasons": 2})
    np.testing.assert_array_equal(answer["score"], model.score(table))
    np.testing.assert_array_equal(answer["probability"], model.predict_proba(table)[:, 1])
    assert answer["reasons"].str.contains(" = ").all()
    assert [c.name for c in served.metadata.signature.inputs.inputs] == model.schema.names


def test_no_pickle_lies_in_the_folder(tmp_path, model):
    ours.save_model(model, tmp_path / "kept")
    files = [path for path in (tmp_path / "kept").rglob("*") if path.is_file()]
    assert {path.suffix for path in files} <= {"", ".toprank", ".yaml", ".txt"}
    assert any(path.name == "model.toprank" for path in files)


@pytest.mark.parametrize("kind", ["linear", "trees", "stumps", "kernel", "ensemble", "table"])
def test_every_kind_of_ranker_comes_back_with_its_scores(tmp_path, kind, table):
    if kind in ("trees", "ensemble"):
        pytest.importorskip("lightgbm")
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 3))
    y = X[:, 0] + rng.normal(size=120) > 0.8
    trees = PushTrees(2, n_estimators=3)
    ranker = {
        "linear": PNormPush(),
        "trees": trees,
        "stumps": AdaBoostRanker(5),
        "kernel": PairRanker(kernel="rbf", n_components=5, random_state=0),
        "ensemble": PushEnsemble([("a", PNormPush()), ("b", trees)], cv=2, random_state=0),
        "table": TableRanker(2),
    }[kind]
    if kind == "table":
        X, y = table[["age", "city"]], table.bought
    ranker.fit(X, y)
    ours.save_model(ranker, tmp_path / "kept")
    score = getattr(ranker, "decision_function", None) or ranker.predict
    answer = mlflow.pyfunc.load_model(str(tmp_path / "kept")).predict(X)
    np.testing.assert_array_equal(answer["score"], score(X))
    again = ours.load_model(str(tmp_path / "kept"))
    assert type(again).__name__ == ("TableModel" if kind == "table" else type(ranker).__name__)


def test_a_ranker_of_labels_is_served_with_a_score_for_each(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 3))
    Y = X @ rng.normal(size=(3, 4)) + rng.normal(size=(80, 4)) > 0.5
    ranker = LabelRanker(10).fit(X, Y)
    ours.save_model(ranker, tmp_path / "kept")
    answer = mlflow.pyfunc.load_model(str(tmp_path / "kept")).predict(X)
    assert list(answer.columns) == [f"score_{label}" for label in ranker.classes_]
    np.testing.assert_array_equal(answer, ranker.decision_function(X))


def test_numbers_with_signs_are_text_to_mlflow(tmp_path, table):
    priced = table.assign(price=[f"{age:,.2f} €" for age in table.age.fillna(1234.5)])
    model = fit_table(priced, "bought", p=2, as_number=["price"])
    ours.save_model(model, tmp_path / "kept")
    served = mlflow.pyfunc.load_model(str(tmp_path / "kept"))
    (column,) = (c for c in served.metadata.signature.inputs.inputs if c.name == "price")
    assert column.type == mlflow.types.DataType.string
    answer = served.predict(priced.drop(columns="bought"))
    np.testing.assert_array_equal(answer["score"], model.score(priced))


def test_a_model_of_another_library_is_left_to_it(tmp_path):
    theirs = mlflow.models.Model()
    theirs.add_flavor("xgboost", data="model.ubj")
    (tmp_path / "kept").mkdir()
    theirs.save(str(tmp_path / "kept" / "MLmodel"))
    with pytest.raises(ValueError, match=r"has no flavour 'toprank', only xgboost\."):
        ours.load_model(str(tmp_path / "kept"))


def test_a_ranker_with_a_function_is_refused(tmp_path):
    X = np.arange(20.0)[:, None]
    ranker = PairRanker(kernel=lambda a, b: float(a @ b), n_components=3).fit(X, np.arange(20) % 2)
    with pytest.raises(ModelError, match="cannot be saved"):
        ours.save_model(ranker, tmp_path / "kept")


def test_metrics_are_logged_with_their_intervals_and_the_card(store, model):
    rng = np.random.default_rng(2)
    y = rng.random(200) < 0.2
    s = y + rng.normal(size=200)
    found = interval("precision_at", y, s, k=20)
    against = compare("auc", y, s, rng.normal(size=200))
    with mlflow.start_run() as run:
        ours.log_metrics([found, against], prefix="test.")
        ours.log_card(model)
    kept = store.get_run(run.info.run_id).data
    assert kept.metrics["test.precision_at_k_20"] == found.estimate
    assert kept.metrics["test.precision_at_k_20.low"] == found.low
    assert kept.metrics["test.precision_at_k_20.high"] == found.high
    assert kept.metrics["test.auc.a-b.difference"] == against.difference
    assert kept.metrics["test.auc.a-b.p_value"] == against.p_value
    assert "precision_at_k_0.1.low" in kept.metrics
    assert kept.params["p"] == "2.0"
    card = mlflow.artifacts.load_text(f"{run.info.artifact_uri}/card.json")
    assert json.loads(card)["model"] == "pnorm"


def test_the_report_is_an_artefact(store, table, model):
    from toprank.report import describe

    report = describe(model, table, k=20)
    with mlflow.start_run() as run:
        ours.log_report(report)
    assert mlflow.artifacts.load_text(f"{run.info.artifact_uri}/report.html") == report.html
    assert json.loads(mlflow.artifacts.load_text(f"{run.info.artifact_uri}/report.json"))


def test_what_is_no_result_is_refused(store):
    with pytest.raises(TypeError, match="got dict"):
        ours.metric_values({"auc": 1.0})
