"""Tensors as a block source: rows that lie on a device and stay there, on one GPU or several.

Every process holds its own rows as one block. With several processes a pass ends with the
partial results of all of them gathered, a few numbers each, and merged in the order of the
ranks: every process ends with the same bits, and so takes the same next step.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from toprank._extras import require
from toprank.blocks.source import Block, BlockSource, Partial, State, Sweep
from toprank.blocks.tensors import on_device, tensor_of, unwrap

if TYPE_CHECKING:
    from torch import Tensor

#: Rows up to which second moments are taken from all of them, and not from a sample.
_CURVED_ROWS = 1 << 22


class TensorSource(BlockSource):
    """The rows of a tensor, and those of the other processes of a group.

    Use `from_torch`, which checks what it is given.
    """

    keeps_samples = True
    on_device = True

    def __init__(self, block: Block, group: _Group | None = None):
        self.block = block
        self.n_features = int(block.X.shape[1])
        self.group = group

    def map_reduce(self, sweep: Sweep[State, Partial], state: State) -> Partial:
        if self.group is None:
            return sweep.local(self.block, state)
        partials = self.group.gather(lambda: sweep.local(self.block, state))
        total = partials[0]
        for partial in partials[1:]:
            total = sweep.merge(total, partial)
        return total

    def thin(self, pick: Callable[[Block], Block]) -> TensorSource:
        return TensorSource(pick(self.block), self.group)

    def start_threads(self, n_jobs: int | None = None) -> AbstractContextManager[object]:
        return nullcontext()  # no rows come to this process, and its threads have nothing to do

    def cheap_curvature(self, n_rows: int) -> bool:
        # one kernel reads X for the gradient; second moments take several passes of torch's
        return n_rows <= _CURVED_ROWS

    def name_of(self, index: int) -> str:
        return "the tensor" if self.group is None else f"the tensor of rank {index}"

    def write_scores(self, score: Callable[[Any], Any], to: object = None) -> Any:
        """Return the scores of this process's rows as a tensor on their device."""
        if to is not None:
            raise ValueError(
                "Scores of a tensor come back as a tensor on its device; leave to= out and save "
                "them with torch.save."
            )
        return unwrap(score(self.block.X))


class _Group:
    """Processes that hold rows of the same data, in the order of their ranks."""

    def __init__(self, group: Any, device: Any):
        self.distributed = require("torch", "torch").distributed
        self.group = group
        self.rank = int(self.distributed.get_rank(group))
        self.size = int(self.distributed.get_world_size(group))
        self.device = device

    def gather(self, local: Callable[[], Partial]) -> list[Partial]:
        """Return what each process found; a process that fails makes all of them fail."""
        try:
            found: tuple[Any, str | None] = (local(), None)
        except Exception as error:
            found = (None, f"{type(error).__name__}: {error}")
            self._exchange(found)
            raise
        answers = self._exchange(found)
        failures = [f"rank {rank}: {why}" for rank, (_, why) in enumerate(answers) if why]
        if failures:
            raise RuntimeError("A pass over the rows failed on " + "; ".join(failures))
        return [answer for answer, _ in answers]

    def _exchange(self, mine: Any) -> list[Any]:
        answers: list[Any] = [None] * self.size
        on_its_device = (
            require("torch", "torch").cuda.device(self.device)
            if self.device.type == "cuda"
            else nullcontext()
        )
        with on_its_device:
            self.distributed.all_gather_object(answers, mine, group=self.group)
        return answers


def from_torch(
    X: Tensor,
    y: Tensor | None = None,
    sample_weight: Tensor | None = None,
    *,
    process_group: object = None,
) -> TensorSource:
    """Take the rows of a tensor where they lie: in memory, on a GPU, or on several.

    The features never leave the device and are never copied as a whole. Sums are float64
    whatever the type of the features, so that float32 tensors give the coefficients of a float64
    fit to the same numbers. Losses other than the exponential one bring one score per row to the
    host, and so does ``solver="coordinate"``.

    Parameters
    ----------
    X : tensor of shape (n, d)
        A torch tensor on any device that has float64, or an array of another library that
        hands over the memory of a GPU by DLPack (CuPy).
    y : tensor or array-like of shape (n,), optional
        Labels that are numbers; not needed to score rows.
    sample_weight : tensor or array-like of shape (n,), optional
        Repetition counts.
    process_group : torch.distributed.ProcessGroup or "world", optional
        The processes that each hold some of the rows and call this with theirs; "world" is
        torch.distributed's default group. A process may have rows of one class only, or none.
        Every process then fits the same coefficients.

    Examples
    --------
    >>> import torch
    >>> from toprank import PNormPush, blocks
    >>> from toprank.datasets import load_wdbc
    >>> X, y = load_wdbc(return_X_y=True)
    >>> source = blocks.from_torch(torch.tensor(X), torch.tensor(y))
    >>> PNormPush(p=4).fit_blocks(source).coef_.shape
    (1, 30)
    """
    tensor = check_tensor(X)
    block = Block(
        0,
        tensor,
        _vector_beside("y", y, tensor),
        _vector_beside("sample_weight", sample_weight, tensor),
    )
    if process_group is None:
        return TensorSource(block)
    torch = require("torch", "torch")
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        raise ValueError(
            "process_group was given, but torch.distributed is not initialised: call "
            "torch.distributed.init_process_group first, or leave process_group out."
        )
    group = _Group(None if process_group == "world" else process_group, tensor.device)
    block.index = group.rank
    widths = group.gather(lambda: (int(tensor.shape[1]), sample_weight is None))
    if len(set(widths)) > 1:
        raise ValueError(
            "The processes do not hold rows of the same table: (columns, without weights) is "
            f"{widths} in the order of the ranks."
        )
    return TensorSource(block, group)


def check_tensor(X: Tensor) -> Tensor:
    """Return X as a tensor that passes can read, or raise saying what is wrong."""
    tensor = tensor_of(X)
    torch = require("torch", "torch")
    if tensor is None:
        if not hasattr(X, "__array__") and not hasattr(X, "__dlpack__"):
            raise TypeError(
                f"X is a {type(X).__name__}; expected a torch tensor, or an array of a GPU that "
                "supports DLPack (CuPy). For anything else use blocks.from_arrays."
            )
        tensor = torch.as_tensor(X)
    if tensor.layout is not torch.strided:
        raise TypeError(
            f"X is a sparse tensor ({tensor.layout}); pass X.to_dense(), or a SciPy CSR matrix on "
            "the host."
        )
    if tensor.ndim != 2:
        raise ValueError(f"X has shape {tuple(tensor.shape)}, expected (n, d): one row per item.")
    if tensor.dtype.is_complex:
        raise ValueError(f"X is of type {tensor.dtype}; expected real numbers.")
    if tensor.device.type == "mps":
        raise ValueError("X lies on mps, which has no float64; move it to the host first: X.cpu().")
    return tensor


def _vector_beside(name: str, values: Tensor | None, X: Tensor) -> Tensor | None:
    """A vector of labels or weights on the device of X, one entry per row."""
    if values is None:
        return None
    vector = _numbers(name, values, X)
    if vector.ndim == 2 and vector.shape[1] == 1:
        vector = vector[:, 0]
    if tuple(vector.shape) != (len(X),):
        raise ValueError(
            f"{name} has shape {tuple(vector.shape)}, but X has {len(X)} rows: expected one "
            "number per row."
        )
    return vector


def _numbers(name: str, values: Tensor | None, X: Tensor) -> Tensor:
    try:
        return on_device(values, X)
    except TypeError as error:
        raise TypeError(
            f"{name} holds no numbers ({error}); a tensor has none but numbers for labels. Encode "
            "them first, for example y == 'the positive label'."
        ) from error
