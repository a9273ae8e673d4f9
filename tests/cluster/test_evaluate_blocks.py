"""Metrics of rows on a cluster: those of the scores in memory, or within their bound."""

import numpy as np
import pandas as pd
import pytest

from toprank import PNormPush, blocks
from toprank.metrics import auc, block_list, precision_at


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2000, 3))
    y = (X @ [1.0, -0.5, 0.3] + rng.logistic(size=2000) > 1).astype(int)
    return X, y, rng.integers(0, 3, size=2000).astype(float)


def check(source, rows, monkeypatch):
    X, y, weight = rows
    model = PNormPush().fit(X, y, weight)
    scores = model.decision_function(X)
    truth = auc(y, scores, sample_weight=weight)
    top = precision_at(y, scores, 50, sample_weight=weight)
    found = model.evaluate_blocks(source)
    assert found.exact
    assert float(found.metric("auc")) == pytest.approx(truth, rel=1e-12)
    monkeypatch.setattr(block_list, "EXACT_UP_TO", 100)
    found = model.evaluate_blocks(source, keep_top=90, bins=20)
    assert abs(float(found.metric("auc")) - truth) <= found.bound < 0.03
    assert found.metric("precision_at", k=50).exact
    assert float(found.metric("precision_at", k=50)) == pytest.approx(top, rel=1e-12)


@pytest.mark.more
def test_dask_gives_the_metrics_of_the_scores_in_memory(client, rows, monkeypatch):
    da = pytest.importorskip("dask.array", reason="needs pip install 'toprank[dask]'")
    X, y, weight = rows
    chunks = ((1500, 1, 0, 499), (3,))
    with blocks.from_dask(da.from_array(X, chunks=chunks), y, weight) as source:
        check(source, rows, monkeypatch)


@pytest.mark.more
def test_spark_gives_the_metrics_of_the_scores_in_memory(spark, rows, monkeypatch):
    X, y, weight = rows
    table = pd.DataFrame(X, columns=list("abc")).assign(y=y, weight=weight)
    frame = spark.createDataFrame(table).repartition(3)
    features = list("abc")
    with blocks.from_spark(frame, features=features, target="y", weight="weight") as source:
        check(source, rows, monkeypatch)
