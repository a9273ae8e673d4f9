"""The logistic loss on a cluster, by sums at nodes: no score comes to the driver."""

import numpy as np
import pytest

from toprank import PNormPush, blocks
from toprank.objective import node_sums


@pytest.mark.more
def test_dask_gives_the_logistic_fit_in_memory_without_gathering(client, monkeypatch):
    da = pytest.importorskip("dask.array", reason="needs pip install 'toprank[dask]'")
    monkeypatch.setattr(node_sums, "NODES_FROM", 20_000)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(25_000, 3))
    y = (X @ [1.0, -0.5, 0.3] + rng.logistic(size=25_000) > 1).astype(int)
    ranker = PNormPush(p=2, loss="logistic", tol=1e-12)
    chunks = ((20_000, 1, 0, 4_999), (3,))
    with blocks.from_dask(da.from_array(X, chunks=chunks), y) as source:
        fitted = ranker.fit_blocks(source)
    assert "gather" not in fitted.passes_ and fitted.passes_["pull"] > 0
    in_memory = PNormPush(p=2, loss="logistic", tol=1e-12).fit(X, y)
    np.testing.assert_allclose(fitted.coef_, in_memory.coef_, rtol=1e-10)
