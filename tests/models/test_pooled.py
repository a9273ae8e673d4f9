"""Columns of many words as categories: the commonest each, all rare ones as one."""

import sqlite3

import numpy as np
import pandas as pd
import pytest

from toprank import blocks
from toprank.models import ModelError, TableRanker, fit_table, fit_table_blocks, load
from toprank.models.columns import MOST_CATEGORIES, OTHERS

GIVEN = {"p": 2, "model": "pnorm", "pool": ("shop", "zip")}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(5)
    n = 900
    shop = (60 * rng.random(n) ** 3).astype(int)
    x = rng.normal(size=n)
    table = pd.DataFrame({"x": x, "shop": [f"s{one:02d}" for one in shop], "zip": 1000 + shop})
    table.loc[::50, "shop"] = None
    table["bought"] = np.where(x + (shop == 3) + rng.normal(size=n) > 1, "yes", "no")
    return table


@pytest.fixture(scope="module")
def model(frame):
    return fit_table(frame, "bought", **GIVEN)


def test_the_commonest_words_are_categories_and_all_others_one(frame, model):
    shop = next(c for c in model.schema.columns if c.name == "shop")
    assert shop.kind == "category" and shop.pooled
    assert len(shop.categories) == MOST_CATEGORIES and shop.categories[-1] == OTHERS
    counts = frame.shop.value_counts()
    kept = counts[list(shop.categories[:-1])]
    assert kept.min() >= counts.drop(kept.index).max()
    words = shop.read(frame.shop.to_numpy(dtype=object))
    assert set(words) == {*shop.categories, ""}
    assert "shop = (others)" in model.preparation.names.tolist()
    assert next(c for c in model.schema.columns if c.name == "zip").pooled  # names in figures


def test_blocks_give_the_bits_of_memory(frame, model):
    pieces = blocks.from_tables(lambda: (frame[i : i + 130] for i in range(0, 900, 130)))
    there = fit_table_blocks(pieces, "bought", **GIVEN)
    assert there.schema == model.schema
    assert np.array_equal(there.ranker.coef_, model.ranker.coef_)


@pytest.mark.more
def test_a_word_never_seen_is_one_of_the_others_and_files_keep_that(frame, model, tmp_path):
    rare = [word for word in frame.shop.dropna().unique() if word not in _kept(model)]
    rows = frame.head(2).assign(shop=[rare[0], "never seen"], x=0.0, zip=1000)
    model.save(tmp_path / "m")
    scores = load(tmp_path / "m").score(rows)
    assert scores[0] == scores[1]
    assert not model.check(rows).new_categories


def _kept(model):
    return next(c for c in model.schema.columns if c.name == "shop").categories


def test_few_words_are_not_pooled_and_too_many_are_refused(frame):
    few = frame.assign(shop=frame.shop.where(frame.shop < "s20", "s00"))
    schema = fit_table(few, "bought", p=2, model="pnorm", pool=["shop"]).schema
    assert not next(c for c in schema.columns if c.name == "shop").pooled
    assert "pooled" not in schema.as_dict()["columns"][0]
    many = pd.concat([frame] * 12, ignore_index=True)
    many["shop"] = [f"w{i}" for i in range(len(many))]
    with pytest.raises(ModelError, match="pool='shop': the column has more than 10,000"):
        fit_table(many, "bought", p=2, model="pnorm", pool=["shop"])
    with pytest.raises(ModelError, match="pool='shops': the table has no such column"):
        fit_table(frame, "bought", p=2, pool=["shops"])


@pytest.fixture(scope="module")
def later(frame):
    """Rows with words that are common, rare, never seen, missing and empty."""
    rows = frame.head(12).copy()
    rows["shop"] = [*["s00", "s01", "s57", "s58", "never seen", None, "", "(others)"], *["s59"] * 4]
    rows["zip"] = [*[1000] * 6, 1058, 1059, 9, -1, 1000, 1001]
    return rows


@pytest.mark.parametrize("kind", ["pnorm", pytest.param("trees", marks=pytest.mark.more)])
def test_sqlite_and_duckdb_pool_the_words_that_the_model_pools(frame, model, later, kind):
    if kind == "trees":
        pytest.importorskip("lightgbm")
        model = fit_table(frame, "bought", **{**GIVEN, "model": "trees"})
    expected = model.score(later)
    connection = sqlite3.connect(":memory:")
    later.to_sql("leads", connection, index=False)
    found = pd.read_sql(model.to_sql("leads", dialect="sqlite"), connection).score
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as database:
        database.register("leads", later)
        scores = database.sql(model.to_sql("leads", dialect="duckdb")).fetchnumpy()["score"]
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["pnorm", pytest.param("trees", marks=pytest.mark.more)])
def test_onnx_pools_the_words_that_the_model_pools(frame, model, later, kind):
    pytest.importorskip("onnx", reason="ONNX export needs onnx")
    runtime = pytest.importorskip("onnxruntime", reason="the check of ONNX models needs it")
    if kind == "trees":
        pytest.importorskip("lightgbm")
        model = fit_table(frame, "bought", **{**GIVEN, "model": "trees"})
    export = model.to_onnx(check=later)
    # the words as they come, not as the schema reads them
    raw = {"x": later.x.to_numpy().reshape(-1, 1)}
    raw |= {
        c: later[c].fillna("").astype(str).to_numpy(object).reshape(-1, 1) for c in GIVEN["pool"]
    }
    session = runtime.InferenceSession(export.model.SerializeToString())
    (scores,) = session.run(None, raw)[:1]
    np.testing.assert_allclose(np.ravel(scores), model.score(later), rtol=1e-9, atol=1e-9)


def test_numbers_read_as_words_are_numbers_in_sql(frame):
    few = frame.assign(zip=frame.zip % 5 + 1000)
    model = fit_table(few, "bought", p=2, model="pnorm", as_text=["zip"], drop=["shop"])
    duckdb = pytest.importorskip("duckdb")
    for table in (few.head(50), few.head(50).assign(zip=few.zip.astype(float))):
        with duckdb.connect() as database:
            database.register("leads", table)
            scores = database.sql(model.to_sql("leads", dialect="duckdb")).fetchnumpy()["score"]
        np.testing.assert_allclose(scores, model.score(table), rtol=1e-9, atol=1e-9)


def test_the_estimator_pools_too(frame, model):
    features = frame.drop(columns="bought")
    ranker = TableRanker(p=2, pool=["shop", "zip"]).fit(features, frame.bought)
    scores = ranker.decision_function(features)
    assert np.array_equal(np.argsort(scores), np.argsort(model.score(frame)))
