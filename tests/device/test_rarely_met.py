"""What tensors meet rarely: the host's tensors stand for those of any device."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from toprank import blocks  # noqa: E402
from toprank.blocks import Block, Units  # noqa: E402
from toprank.blocks.design import DenseTile  # noqa: E402
from toprank.blocks.device import DeviceDesign, TensorTile, _first_bad  # noqa: E402
from toprank.blocks.device_sparse import StoredDesign, StoredTile  # noqa: E402
from toprank.blocks.stored import StoredRows  # noqa: E402
from toprank.blocks.tensors import OnDevice, distinct, tensor_of  # noqa: E402
from toprank.blocks.torch import _vector_beside, check_tensor  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning"),
    pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning"),
]


@pytest.fixture
def matrix():
    rng = np.random.default_rng(0)
    return rng.normal(size=(9, 4)) * (rng.random((9, 4)) < 0.6)


def stored(X):
    return StoredRows.of(torch.as_tensor(X).to_sparse_csr())


def test_a_tile_of_a_tensor_computes_what_one_of_numpy_does(matrix):
    ours, theirs = TensorTile(torch.as_tensor(matrix)), DenseTile(matrix)
    coef, v = np.arange(8.0).reshape(2, 4), np.linspace(-1, 1, 9)
    np.testing.assert_allclose(ours.scores(coef).tensor.numpy(), theirs.scores(coef))
    np.testing.assert_allclose(ours.sizes(v), np.abs(matrix).T @ np.abs(v))
    np.testing.assert_allclose(ours.squares(), np.sum(matrix**2, axis=0))


def test_several_lines_of_coefficients_score_stored_rows(matrix):
    design = StoredDesign(stored(matrix), Units())
    coef = np.arange(8.0).reshape(2, 4)
    found = StoredTile(design).scores(coef)
    np.testing.assert_allclose(found.tensor.numpy(), coef @ matrix.T)


def test_stored_rows_are_scored_into_a_given_place_in_any_units(matrix):
    centre = np.array([0.5, 0.0, -1.0, 2.0])
    design = StoredDesign(stored(matrix), Units(centre))
    out = OnDevice(torch.empty(9, dtype=torch.float64))
    coef = np.array([1.0, -2.0, 0.5, 3.0])
    found = design.scores(coef, out)
    assert found is out
    np.testing.assert_allclose(out.tensor.numpy(), (matrix - centre) @ coef)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_rows_that_are_taken_are_numbers_of_the_host(matrix, dtype):
    X = torch.as_tensor(matrix).to(getattr(torch, dtype))
    taken = DeviceDesign(X, Units()).take(np.array([1, 3]))
    np.testing.assert_array_equal(taken, X[[1, 3]].double().numpy())


def test_a_source_without_labels_cannot_be_fitted(matrix):
    with pytest.raises(ValueError, match=r"no labels; give y to blocks\.from_torch"):
        DeviceDesign.count_labels(Block(0, torch.as_tensor(matrix)))


def test_a_block_of_which_no_row_is_sampled_is_checked_all_the_same(matrix):
    found = DeviceDesign.describe(Block(3, torch.as_tensor(matrix)), 20, 100, True)
    assert found.n_rows == 0 and found.bad is None
    matrix[5, 2] = np.inf
    found = DeviceDesign.describe(Block(3, torch.as_tensor(matrix)), 20, 100, True)
    assert found.bad == (3, 2, "infinity")
    assert _first_bad(Block(0, torch.ones(2, 2))) is None


def test_labels_of_half_precision_are_told_apart():
    assert distinct(torch.tensor([1.0, 0.0, 1.0], dtype=torch.bfloat16)).tolist() == [0.0, 1.0]
    assert distinct(torch.tensor([3, 1, 2], dtype=torch.int8)).tolist() == [1, 2, 3]


def test_reductions_by_numpy_are_refused_by_name():
    with pytest.raises(TypeError, match=r"add\.reduce"):
        np.add.reduce(OnDevice(torch.ones(3)))


class OnHost:
    """An array of another library in the host's memory."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **how):
        return self.array.__dlpack__(**how)

    def __array__(self, *_, **__):
        return self.array


def test_arrays_of_the_host_are_no_tensors_unless_they_are_asked_to_be(matrix):
    assert tensor_of(OnHost(matrix)) is None
    assert np.array_equal(check_tensor(OnHost(matrix)).numpy(), matrix)
    with pytest.raises(TypeError, match="X is a list; expected a torch tensor"):
        check_tensor([[1.0]])


def test_a_column_of_labels_is_a_vector(matrix):
    X = torch.as_tensor(matrix)
    assert _vector_beside("y", torch.ones(9, 1), X).shape == (9,)
    with pytest.raises(ValueError, match=r"y has shape \(9, 2\), but X has 9 rows"):
        _vector_beside("y", torch.ones(9, 2), X)


def test_rows_that_pass_through_a_device_are_dense_and_their_scores_a_tensor(matrix):
    with pytest.raises(TypeError, match="X is sparse; device= is for dense rows"):
        blocks.from_torch(torch.as_tensor(matrix).to_sparse_csr(), np.arange(9) % 2, device="cpu")
    elsewhere = torch.empty((9, 4), device="meta")
    with pytest.raises(ValueError, match="X lies on meta already: leave device= out"):
        blocks.from_torch(elsewhere, np.arange(9) % 2, device="cpu")
    source = blocks.from_torch(matrix, np.arange(9) % 2, device="cpu", block_rows=4)
    with pytest.raises(ValueError, match=r"leave to= out and save them with torch\.save"):
        source.write_scores(lambda X: X[:, 0], to="scores")
    assert source.name_of(2) == "rows 8 to 8"


class Pinned:
    """Memory of the host that a device reads too; DLPack does not count it as the host's own."""

    def __init__(self, rows):
        self.rows = torch.as_tensor(rows)

    def __dlpack_device__(self):
        return 3, 0

    def __dlpack__(self, **how):
        return self.rows.__dlpack__()


def test_arrays_of_a_device_come_as_tensors_of_the_same_memory(matrix):
    found = tensor_of(Pinned(matrix))
    assert isinstance(found, torch.Tensor)
    np.testing.assert_array_equal(found.numpy(), matrix)


def test_rows_of_a_device_without_doubles_are_refused(matrix, monkeypatch):
    rows = torch.as_tensor(matrix)
    monkeypatch.setattr(torch.Tensor, "device", property(lambda self: torch.device("mps")))
    with pytest.raises(ValueError, match=r"X lies on mps, which has no float64.* X\.cpu\(\)"):
        blocks.from_torch(rows, np.arange(9) % 2)


def test_starts_of_rows_that_do_not_rise_are_refused():
    starts, columns = torch.tensor([0, 3, 2, 4]), torch.tensor([0, 1, 2, 0])
    wrong = torch.sparse_csr_tensor(starts, columns, torch.ones(4), (3, 3), check_invariants=False)
    with pytest.raises(ValueError, match=r"crow_indices\) do not rise from 0 to 4"):
        StoredRows.of(wrong)
