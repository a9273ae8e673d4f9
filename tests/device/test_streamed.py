"""Rows of the host that pass through a device: the coefficients of rows in memory."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from toprank import IRPush, PNormPush, ProperRanker, blocks  # noqa: E402

RANKERS = {
    "push": PNormPush(p=3.3, tol=1e-11),
    "highest": PNormPush(p=np.inf),
    "information retrieval": IRPush(tol=1e-11),
    "logistic pairs": PNormPush(loss="logistic", tol=1e-10),
    "proper": ProperRanker(tol=1e-11),
}


def rows(n=1100, d=5, dtype=np.float64):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(dtype)
    y = (X @ np.arange(d) / d + rng.logistic(size=n) > 2).astype(int)
    return X, y, rng.integers(0, 3, n).astype(float)


@pytest.mark.parametrize("name", RANKERS)
def test_rows_that_pass_through_a_device_give_the_same_coefficients(name, device):
    X, y, w = rows()
    ranker = RANKERS[name]
    want = ranker.fit(X, y, w).coef_
    source = blocks.from_torch(X, y, w, device=device, block_rows=300)  # four blocks, two places
    got = ranker.fit_blocks(source).coef_
    close = 1e-3 if name == "highest" else 1e-8
    np.testing.assert_allclose(got, want, atol=close * np.max(np.abs(want)))


@pytest.mark.parametrize("kind", ["pinned", "by columns", "read only", "bfloat16"])
def test_rows_of_any_memory_are_copied(kind, device):
    X, y, _ = rows()
    if kind == "read only":
        X.flags.writeable = False
    given = X if kind == "read only" else torch.as_tensor(X)
    if kind == "pinned":
        if device.type != "cuda":
            pytest.skip("only a GPU needs pinned memory")
        given = given.pin_memory()
    if kind == "by columns":
        given = given.T.contiguous().T
    if kind == "bfloat16":
        given = given.bfloat16()
        X = given.double().numpy()
    source = blocks.from_torch(given, y, device=device, block_rows=256)
    want = PNormPush(tol=1e-11).fit(X, y)
    got = PNormPush(tol=1e-11).fit_blocks(source)
    np.testing.assert_allclose(got.coef_, want.coef_, rtol=1e-7)
    scores = got.score_blocks(source)
    assert scores.device.type == "cpu"
    np.testing.assert_allclose(scores.numpy(), want.decision_function(X), rtol=1e-6, atol=1e-9)


def test_long_tables_start_on_a_sample_that_lies_on_the_device(device):
    X, y, w = rows(70_000, 4)
    source = blocks.from_torch(X, y, w, device=device, block_rows=20_000)
    there = PNormPush(tol=1e-11).fit_blocks(source)
    here = PNormPush(tol=1e-11).fit(X, y, w)
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-9)
    np.testing.assert_allclose(there.intercept_, here.intercept_, rtol=1e-6)
    # one pass looks at the rows and draws the sample, one gives each evaluation and its scores
    assert there.passes_["describe"] == 1 and there.passes_["evaluate"] <= 8
    assert "located" not in there.passes_ and "histogram" not in there.passes_


def test_what_cannot_pass_through_is_refused(device):
    X, y, _ = rows(60)
    bad = X.copy()
    bad[40, 2] = np.nan
    with pytest.raises(ValueError, match="contains NaN: column 2, in rows 32 to 47"):
        PNormPush().fit_blocks(blocks.from_torch(bad, y, device=device, block_rows=16))
    with pytest.raises(ValueError, match="not both"):
        blocks.from_torch(X, y, device=device, process_group="world")
    with pytest.raises(ValueError, match="block_rows=0"):
        blocks.from_torch(X, y, device=device, block_rows=0)
    with pytest.raises(ValueError, match="goes with device="):
        blocks.from_torch(torch.as_tensor(X), y, block_rows=5)
    if device.type == "cuda":
        with pytest.raises(ValueError, match="already"):
            blocks.from_torch(torch.as_tensor(X, device=device), y, device=device)
