"""A model goes into a file and comes out the same, here and elsewhere."""

import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

from toprank.models import ModelError, ModelWarning, archive, fit_table, load

MODELS = ("pnorm", "ir", "proper", "rankboost", "smooth-margin", "trees")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_gives_the_same_bits(fitted, table, tmp_path, name):
    model = fitted(name)
    path = tmp_path / "model.toprank"
    model.save(path)
    again = load(path)
    assert np.array_equal(again.score(table), model.score(table))
    assert np.array_equal(again.predict_proba(table), model.predict_proba(table))
    assert again.reasons(table.head(5)) == model.reasons(table.head(5))
    assert again.schema == model.schema
    assert again.target == model.target
    assert again.card == json.loads(json.dumps(again.card))
    assert again.card["metrics"] == model.card["metrics"]


def test_a_loaded_model_with_dates_and_text_gives_the_same_bits(full_model, full_table, tmp_path):
    full_model.save(tmp_path / "m")
    assert np.array_equal(load(tmp_path / "m").score(full_table), full_model.score(full_table))


ELSEWHERE = """
import os, random, signal, sys, time
import numpy as np, pandas as pd
from toprank.models import load, storage

os.chdir(sys.argv[1])
frame = pd.read_pickle("rows")
frame = frame[list(frame.columns)[::-1]].assign(extra=1)
for name in sys.argv[2:]:
    np.save(name, load(name).score(frame))

# most of the time of a save goes into writing, so that it is there that it is interrupted
model, data = load("pnorm"), open("pnorm", "rb").read()
storage.to_bytes = lambda _: data
model.save("there")
random.seed(0)
for _ in range(15):
    child = os.fork()
    if child == 0:
        while True:
            model.save("there")
    time.sleep(random.uniform(0.0, 0.05))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert np.array_equal(load("there").score(frame), np.load("pnorm.npy"))
print("every interrupted save left a whole file")
"""


@pytest.mark.more
@pytest.mark.skipif(not hasattr(os, "fork"), reason="interrupted saves are tried by forking")
def test_another_process_scores_the_same_bits_and_survives_interrupted_saves(
    fitted, table, tmp_path
):
    for name in ("pnorm", "trees"):
        fitted(name).save(tmp_path / name)
    table.to_pickle(tmp_path / "rows")
    command = [sys.executable, "-c", ELSEWHERE, str(tmp_path), "pnorm", "trees"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert "every interrupted save" in done.stdout
    for name in ("pnorm", "trees"):
        scores = np.load(tmp_path / f"{name}.npy")
        assert np.array_equal(scores, fitted(name).score(table))  # columns in another order


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_tables_of_other_libraries_give_the_same_bits(full_model, full_table, library):
    frames = pytest.importorskip(library)
    rows = full_table.astype(object).where(full_table.notna(), None).to_dict("list")
    rows["since"] = [None if t is None else pd.Timestamp(t).to_pydatetime() for t in rows["since"]]
    other = frames.DataFrame(rows) if library == "polars" else frames.table(rows)
    assert np.array_equal(full_model.score(other), full_model.score(full_table))
    assert np.array_equal(full_model.labels(other), full_model.labels(full_table))


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_a_model_can_be_fitted_to_tables_of_other_libraries(table, fitted, library):
    frames = pytest.importorskip(library)
    rows = table.astype(object).where(table.notna(), None).to_dict("list")
    other = frames.DataFrame(rows) if library == "polars" else frames.table(rows)
    model = fit_table(other, "bought", id="customer", p=4)
    np.testing.assert_allclose(model.score(other), fitted("pnorm").score(table), rtol=1e-9)


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_boosters_travel_in_their_own_format_and_never_as_pickle(table, tmp_path, backend):
    pytest.importorskip(backend)
    from dataclasses import replace

    from toprank import PushTrees

    model = fit_table(table, "bought", id="customer", model="trees", p=2)
    Z = model.numbers(table)
    trees = PushTrees(
        2,
        backend=backend,
        n_estimators=12,
        categorical_features=model.preparation.categorical,
        early_stopping=True,
        random_state=0,
    ).fit(Z, model.labels(table))
    on_top = PushTrees(
        2, backend=backend, n_estimators=5, categorical_features=model.preparation.categorical
    ).fit(Z, model.labels(table), init_model=trees)
    for ranker in (trees, on_top):
        replace(model, ranker=ranker).save(tmp_path / "m")
        assert np.array_equal(load(tmp_path / "m").score(table), ranker.decision_function(Z))
    members = zipfile.ZipFile(tmp_path / "m")
    assert {"trees-0", "trees-1"} < set(members.namelist())
    assert members.read("trees-0").startswith(b"tree\n" if backend == "lightgbm" else b"{L")
    assert not any(b"cbuiltins" in members.read(name) for name in members.namelist())


def test_the_card_says_what_the_model_is(fitted):
    card = fitted("pnorm").card
    assert card["versions"]["toprank"] and card["versions"]["scikit-learn"]
    assert card["training"]["rows"] == 240
    assert card["target"] == {"column": "bought", "positive": "yes", "negative": ["no"]}
    assert card["parameters"]["p"] == 4
    names = [entry["metric"] for entry in card["metrics"]["intervals"]]
    assert names[0] == "precision_at(k=0.1)" and "auc" in names
    assert all(e["low"] <= e["estimate"] <= e["high"] for e in card["metrics"]["intervals"])
    assert next(iter(card["importances"])) in ("age", "city")


def test_other_versions_are_named_in_a_warning(fitted, tmp_path):
    from dataclasses import replace

    model = fitted("pnorm")
    card = {**model.card, "versions": {**model.card["versions"], "numpy": "1.0", "odd": "2"}}
    replace(model, card=card).save(tmp_path / "m")
    with pytest.warns(ModelWarning, match=r"numpy 1\.0 .*odd 2 \(here none\)"):
        load(tmp_path / "m")


def test_where_another_version_cannot_read_a_model_the_message_names_it(
    fitted, tmp_path, monkeypatch
):
    from dataclasses import replace

    model = fitted("pnorm")
    card = {**model.card, "versions": {**model.card["versions"], "scikit-learn": "99.0"}}
    replace(model, card=card).save(tmp_path / "m")

    def fails(_):
        raise AttributeError("'SimpleImputer' object has no attribute 'of_tomorrow'")

    monkeypatch.setattr("toprank.models.loader.check_works", fails)
    with pytest.raises(ModelError, match=r"of_tomorrow.*made with scikit-learn 99\.0 \(here"):
        load(tmp_path / "m")


def test_a_newer_format_is_refused_with_the_remedy(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "FORMAT", 2)
    fitted("pnorm").save(tmp_path / "m")
    monkeypatch.setattr(archive, "FORMAT", 1)
    with pytest.raises(ModelError, match=r"version 2.*upgrade toprank"):
        load(tmp_path / "m")


def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(fitted, tmp_path, monkeypatch):
    path = tmp_path / "m"
    fitted("pnorm").save(path)
    before = path.read_bytes()

    def broken(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(ModelError, match="No space left"):
        fitted("ir").save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m"]


def test_a_save_into_a_folder_that_is_none_is_a_model_error(fitted, tmp_path):
    with pytest.raises(ModelError, match="could not be written"):
        fitted("pnorm").save(tmp_path / "no" / "m")
    with pytest.raises(ModelError, match="is a folder"):
        fitted("pnorm").save(tmp_path)
