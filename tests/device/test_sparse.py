"""Sparse CSR tensors: the sums and coefficients of SciPy's matrices, and no zero filled in."""

import numpy as np
import pytest
from scipy import sparse

torch = pytest.importorskip("torch", reason="torch is not installed")

from toprank import PNormPush, PushRanker, blocks  # noqa: E402
from toprank.blocks import Block, Units  # noqa: E402
from toprank.blocks.design import mirrored  # noqa: E402
from toprank.blocks.device_sparse import StoredDesign  # noqa: E402
from toprank.blocks.stored import StoredRows  # noqa: E402
from toprank.objective.labelled import OpenBlock, View  # noqa: E402
from toprank.rankers import base, common  # noqa: E402

#: What torch says of every sparse tensor that is made, once.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning"),
    pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning"),
]
TILTS = ((-1.0, 3.3), (-2.0, 1.0))


def rows(n=900, d=40, density=0.1, seed=0, dtype=np.float64):
    """A sparse matrix with an empty row, an empty column and a full one; labels and weights."""
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    dense[:, 0] = rng.normal(size=n)
    dense[:, d - 2] = 0.0
    dense[n // 2] = 0.0
    y = (dense @ rng.normal(size=d) + rng.logistic(size=n) > 1).astype(int)
    y[:2] = 0, 1
    return sparse.csr_array(dense.astype(dtype)), y, rng.integers(0, 3, n).astype(float)


def tensor_of(X, device):
    """The same entries as a sparse tensor."""
    parts = (X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data)
    tensors = (torch.as_tensor(part, device=device) for part in parts)
    return torch.sparse_csr_tensor(*tensors, size=X.shape, check_invariants=True)


def opened(X, y, weight, device):
    view = View(np.array([0, 1]))
    tensors = [torch.as_tensor(part, device=device) for part in (y, weight)]
    stored = StoredRows.of(tensor_of(X, device))
    return OpenBlock(Block(0, X, y, weight), view), OpenBlock(Block(0, stored, *tensors), view)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", [1, 2])
def test_the_sums_are_those_of_a_scipy_matrix(dtype, order, device):
    # 2,300 rows: the full column has three pieces
    X, y, weight = rows(2300, 12, dtype=dtype)
    host, there = opened(X, y, weight, device)
    coef = np.random.default_rng(1).normal(size=12)
    for got, want in zip(
        there.sum_tilted(coef, TILTS, order), host.sum_tilted(coef, TILTS, order), strict=True
    ):
        for part, whole in zip(got, want, strict=True):
            assert part.log_mass == pytest.approx(whole.log_mass, rel=1e-12)
            np.testing.assert_allclose(part.mean, whole.mean, atol=1e-12)
            if order == 2:
                np.testing.assert_allclose(
                    mirrored(part.second) / part.mass,
                    mirrored(whole.second) / whole.mass,
                    atol=1e-12,
                )


def test_products_and_rows_are_those_of_a_scipy_matrix(device):
    X, _, _ = rows(1100, 9)
    design = StoredDesign(StoredRows.of(tensor_of(X, device)), Units())
    rng = np.random.default_rng(2)
    v, many, coef = rng.normal(size=1100), rng.normal(size=(1100, 3)), rng.normal(size=9)
    np.testing.assert_allclose(design.to_host(design.scores(coef)), X @ coef, atol=1e-12)
    np.testing.assert_allclose(design.adjoint(v), X.T @ v, atol=1e-12)
    np.testing.assert_allclose(design.adjoint(many), X.T @ many, atol=1e-12)
    np.testing.assert_allclose(design.sizes(v), abs(X).T @ abs(v), atol=1e-12)
    np.testing.assert_allclose(design.squares(), (X * X).sum(0), atol=1e-12)
    want = (X.T * v**2) @ X
    np.testing.assert_allclose(design.second_moments(v**2), want.toarray(), atol=1e-11)
    np.testing.assert_array_equal(design.columns(2, 8), X[:, 2:8].toarray())
    chosen = np.array([7, 7, 550, 0])
    np.testing.assert_array_equal(design.take(chosen).toarray(), X[chosen].toarray())
    np.testing.assert_array_equal(design.every(100).take([3]).toarray(), X[[300]].toarray())


@pytest.mark.parametrize("kind", ["float16", "int8", "bool"])
def test_entries_of_other_types_are_read_as_they_are(kind, device):
    X, _, _ = rows(300, 9)
    X.data = np.round(3 * X.data)
    stored = StoredRows.of(tensor_of(X, device))
    stored.values = stored.values.to(getattr(torch, kind))
    design = StoredDesign(stored, Units())
    want = sparse.csr_array((stored.values.double().cpu().numpy(), X.indices, X.indptr), X.shape)
    coef = np.arange(9.0)
    np.testing.assert_allclose(design.to_host(design.scores(coef)), want @ coef, atol=1e-12)
    np.testing.assert_allclose(design.adjoint(np.ones(300)), want.sum(0), atol=1e-12)
    np.testing.assert_allclose(design.columns(0, 9), want.toarray())


RANKERS = {
    "push": PNormPush(p=3.3, tol=1e-11),
    "hard push": PNormPush(p=64, tol=1e-9),
    "both ends": PushRanker(end="both", p=2, balance=0.5, tol=1e-11),
    "logistic pairs": PNormPush(loss="logistic", tol=1e-10),
    "coordinate": PNormPush(solver="coordinate", max_iter=20),
}


@pytest.mark.parametrize("name", RANKERS)
def test_a_sparse_tensor_gives_the_coefficients_of_a_scipy_matrix(name, device):
    X, y, w = rows(400, 8)
    ranker = RANKERS[name]
    want = ranker.fit(X, y, w).coef_
    source = blocks.from_torch(tensor_of(X, device), y, w)
    got = ranker.fit_blocks(source).coef_
    np.testing.assert_allclose(got, want, atol=1e-8 * np.max(np.abs(want)))


@pytest.mark.more
def test_wide_and_long_sparse_tensors_take_the_same_minimum(device):
    # more than 100 columns: gradients first, then a Hessian; 70,000 rows: a sample to start on
    for n, d in ((3000, 150), (70_000, 6)):
        X, y, _ = rows(n, d, density=0.05)
        want = PNormPush(tol=1e-9).fit(X, y).coef_
        there = PNormPush(tol=1e-9).fit_blocks(blocks.from_torch(tensor_of(X, device), y))
        np.testing.assert_allclose(there.coef_, want, atol=1e-6 * np.max(np.abs(want)))


@pytest.mark.parametrize("where", ["host", "as if on a device", "gpu"])
def test_fit_and_scores_take_sparse_tensors(where, monkeypatch):
    if where == "gpu" and not torch.cuda.is_available():
        pytest.skip("there is no GPU here")
    if where == "as if on a device":
        monkeypatch.setattr(base, "tensor_on_device", common.tensor_of)
    X, y, _ = rows(300, 6)
    want = PNormPush(tol=1e-11).fit(X, y)
    tensor = tensor_of(X, "cuda" if where == "gpu" else "cpu")
    there = PNormPush(tol=1e-11).fit(tensor, torch.as_tensor(y, device=tensor.device))
    np.testing.assert_allclose(there.coef_, want.coef_, rtol=1e-7)
    scores = there.decision_function(tensor)
    assert isinstance(scores, torch.Tensor) and scores.device == tensor.device
    np.testing.assert_allclose(scores.cpu().numpy(), want.decision_function(X), rtol=1e-6)


def test_the_same_entries_give_the_same_bits_again(device):
    X, y, w = rows(2300, 12)
    first, second = (
        PNormPush().fit_blocks(blocks.from_torch(tensor_of(X, device), y, w)) for _ in range(2)
    )
    np.testing.assert_array_equal(first.coef_, second.coef_)


def test_unusable_entries_and_layouts_are_refused(device):
    X, y, _ = rows(60, 5)
    for bad, message in ((np.nan, "contains NaN: column 0"), (1e200, "in column 0.*at most")):
        X.data[0] = bad
        with pytest.raises(ValueError, match=message):
            PNormPush().fit_blocks(blocks.from_torch(tensor_of(X, device), y))
    starts, columns = torch.tensor([0, 1, 2]), torch.tensor([0, 2])
    outside = torch.sparse_csr_tensor(
        starts, columns, torch.ones(2), size=(2, 2), check_invariants=False
    )
    with pytest.raises(ValueError, match="columns 0 to 2, expected 0 to 1"):
        blocks.from_torch(outside.to(device), [0, 1])
    with pytest.raises(TypeError, match="to_sparse_csr"):
        blocks.from_torch(torch.ones(3, 2, device=device).to_sparse_csc(), [0, 1, 1])
