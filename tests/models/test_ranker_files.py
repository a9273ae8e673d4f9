"""Rankers of arrays in files: the same scores, and nothing that runs."""

import io
import zipfile

import numpy as np
import pytest
from saved_models import RANKERS, scores_of
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from toprank import (
    LabelRanker,
    PairRanker,
    PNormPush,
    RankBoost,
)
from toprank.models import ModelError, archive, load_ranker, save_ranker


def rows(n=100):
    rng = np.random.default_rng(0)
    X = rng.random((n, 3))
    return X, X[:, 0] + 0.3 * rng.normal(size=n) > 0.6


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("ranker", RANKERS.values(), ids=RANKERS)
def test_every_ranker_comes_back_with_its_scores(ranker, tmp_path):
    for name in ("lightgbm", "xgboost"):
        if "PushTrees" in str(ranker) and (name in str(ranker) or "xgboost" not in str(ranker)):
            pytest.importorskip(name if name in str(ranker) else "lightgbm")
    X, y = rows()
    if isinstance(ranker, LabelRanker):
        y = (X > 0.5).astype(int)
    ranker.fit(X, y)
    save_ranker(ranker, tmp_path / "kept")
    again = load_ranker(tmp_path / "kept")
    np.testing.assert_array_equal(scores_of(again, X), scores_of(ranker, X))


@pytest.mark.parametrize(
    "ranker",
    [
        PairRanker(kernel=lambda a, b: float(a @ b), n_components=3),
        RankBoost(2, weak_rankers=[lambda X: X[:, 0] > 0.5]),
        make_pipeline(FunctionTransformer(np.sqrt), PNormPush()),
    ],
    ids=["kernel", "weak rankers", "step"],
)
def test_a_ranker_that_holds_a_function_is_refused_and_nothing_is_written(ranker, tmp_path):
    X, y = rows()
    with pytest.raises(ModelError, match="cannot be saved"):
        save_ranker(ranker.fit(X, y), tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_a_ranker_that_holds_what_cannot_be_copied_is_refused(tmp_path):
    ranker = PNormPush().fit(*rows())
    with open(tmp_path / "log", "w") as ranker.log_:
        with pytest.raises(ModelError, match="The ranker cannot be saved: cannot pickle"):
            save_ranker(ranker, tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_a_file_with_other_objects_is_not_opened(tmp_path):
    sio = pytest.importorskip("skops.io")
    X, y = rows()
    save_ranker(PNormPush().fit(X, y), tmp_path / "kept")
    with zipfile.ZipFile(io.BytesIO((tmp_path / "kept").read_bytes())) as file:
        members = {name: file.read(name) for name in file.namelist()}
    hostile = make_pipeline(FunctionTransformer(np.sqrt), PNormPush()).fit(X, y)
    members["payload.skops"] = sio.dumps(hostile)
    (tmp_path / "bad").write_bytes(archive.write_archive(members))
    with pytest.raises(ModelError, match="objects that no ranker needs"):
        load_ranker(tmp_path / "bad")


@pytest.mark.parametrize("cut", [0, 10, -1, -100])
def test_a_damaged_file_is_refused(cut, tmp_path):
    X, y = rows()
    save_ranker(PNormPush().fit(X, y), tmp_path / "kept")
    data = (tmp_path / "kept").read_bytes()
    (tmp_path / "kept").write_bytes(data[:cut])
    with pytest.raises(ModelError):
        load_ranker(tmp_path / "kept")


def test_a_model_of_a_table_is_no_ranker(tmp_path):
    data = archive.write_archive({"toprank.json": b"{}"})
    (tmp_path / "kept").write_bytes(data)
    with pytest.raises(ModelError, match="damaged, or not a toprank model"):
        load_ranker(tmp_path / "kept")


def test_a_file_of_another_format_or_without_scores_is_refused(tmp_path):
    X, y = rows()
    ranker = PNormPush().fit(X, y)
    save_ranker(ranker, tmp_path / "kept")
    with zipfile.ZipFile(io.BytesIO((tmp_path / "kept").read_bytes())) as file:
        members = {name: file.read(name) for name in file.namelist()}
    members["ranker.json"] = b'{"format": 99}'
    (tmp_path / "later").write_bytes(archive.write_archive(members))
    with pytest.raises(ModelError, match="has the format 99; this version reads"):
        load_ranker(tmp_path / "later")
    ranker.coef_ = np.full_like(ranker.coef_, np.nan)
    save_ranker(ranker, tmp_path / "kept")
    with pytest.raises(ModelError, match="gives scores that are not numbers"):
        load_ranker(tmp_path / "kept")
