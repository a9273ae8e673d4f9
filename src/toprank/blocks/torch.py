"""Tensors as block sources: rows that lie on a device and stay there, or that pass through it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from toprank._arrays import TableLike
from toprank._extras import require
from toprank.blocks.columns import check_block_rows
from toprank.blocks.source import Block
from toprank.blocks.stored import StoredRows
from toprank.blocks.streamed import StreamedSource
from toprank.blocks.tensor_source import ProcessGroup, TensorSource
from toprank.blocks.tensors import on_device, tensor_of

if TYPE_CHECKING:
    import torch
    from torch import Tensor

#: On a GPU: entries from which a sample to start on saves time, and the most that it holds.
_SAMPLE_ENTRIES = 1 << 28, 1 << 27


def from_torch(
    X: Tensor | TableLike,
    y: Tensor | ArrayLike | None = None,
    sample_weight: Tensor | ArrayLike | None = None,
    *,
    process_group: torch.distributed.ProcessGroup | None = None,
    device: torch.device | str | None = None,
    block_rows: int | None = None,
) -> TensorSource | StreamedSource:
    """Take the rows of a tensor where they lie: in memory, on a GPU, or on several.

    With ``device``, rows of the host that are more than the device holds pass through it block by
    block: while one block is summed there, the next is on its way.

    The features never leave the device and are never copied as a whole. Sums are float64
    whatever the type of the features, so that float32 tensors give the coefficients of a float64
    fit to the same numbers. The logistic loss and the squared hinge with a power price are summed
    on the device too; other pair losses bring one score per row to the host, and so does
    ``solver="coordinate"``.

    Parameters
    ----------
    X : tensor of shape (n, d)
        A torch tensor on any device that has float64, dense or of the layout ``sparse_csr``, or
        an array of another library that hands over the memory of a GPU by DLPack (CuPy). The
        zeros of a sparse tensor are never filled in; a second copy of its entries, by columns,
        is kept beside it during the fit.
    y : tensor or array-like of shape (n,), optional
        Labels that are numbers; not needed to score rows.
    sample_weight : tensor or array-like of shape (n,), optional
        Repetition counts.
    process_group : torch.distributed.ProcessGroup or "world", optional
        The processes that each hold some of the rows and call this with theirs; "world" is
        torch.distributed's default group. A process may have rows of one class only, or none.
        Every process then fits the same coefficients.
    device : torch.device or str, optional
        Where the sums are taken, for rows that stay in the host's memory: a tensor, an array, or
        one mapped from a file. A dense tensor in pinned memory (``X.pin_memory()``) is copied as
        fast as the bus allows; others go through two pinned blocks. Labels and weights lie on
        the device as a whole.
    block_rows : int, optional
        With ``device``: rows of a block, two of which lie on the device; 256 MB by default.

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
    if device is not None:
        if process_group is not None:
            raise ValueError("Give device= or process_group=, not both.")
        return _streamed(X, y, sample_weight, device, block_rows)
    if block_rows is not None:
        raise ValueError("block_rows= goes with device=: rows that lie on a device are not cut.")
    tensor = check_tensor(X)
    block = Block(
        0,
        tensor,
        _vector_beside("y", y, tensor),
        _vector_beside("sample_weight", sample_weight, tensor),
    )
    if process_group is None:
        return _sampled(TensorSource(block))
    torch = require("torch", "torch")
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        raise ValueError(
            "process_group was given, but torch.distributed is not initialised: call "
            "torch.distributed.init_process_group first, or leave process_group out."
        )
    group = ProcessGroup(None if process_group == "world" else process_group, tensor.device)
    block.index = group.rank
    widths = group.gather(lambda: (int(tensor.shape[1]), sample_weight is None))
    if len(set(widths)) > 1:
        raise ValueError(
            "The processes do not hold rows of the same table: (columns, without weights) is "
            f"{widths} in the order of the ranks."
        )
    return _sampled(TensorSource(block, group))


def _sampled(source: TensorSource) -> TensorSource:
    """The source, with what is known of samples of its device."""
    if source.block.X.device.type == "cuda":
        source.sample_entries = _SAMPLE_ENTRIES
    return source


def _streamed(
    X: Tensor | TableLike,
    y: Tensor | ArrayLike | None,
    sample_weight: Tensor | ArrayLike | None,
    device: torch.device | str,
    block_rows: int | None,
) -> StreamedSource:
    torch = require("torch", "torch")
    if isinstance(X, np.ndarray):
        with warnings.catch_warnings():  # rows that nobody may write to are only read here
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            X = torch.from_numpy(X)
    tensor = check_tensor(X)
    if isinstance(tensor, StoredRows):
        raise TypeError(
            "X is sparse; device= is for dense rows that exceed the device. Move a sparse tensor "
            "there as a whole: X.to(device)."
        )
    if tensor.device.type != "cpu":
        raise ValueError(
            f"X lies on {tensor.device} already: leave device= out, or pass rows of the host."
        )
    check_block_rows(block_rows)
    labels = _vector_beside("y", y, tensor)
    weight = _vector_beside("sample_weight", sample_weight, tensor)
    return StreamedSource(tensor, labels, weight, torch.device(device), block_rows)


def check_tensor(X: Tensor | TableLike) -> Tensor | StoredRows:
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
    if tensor.layout not in (torch.strided, torch.sparse_csr):
        raise TypeError(
            f"X is a sparse tensor of the layout {tensor.layout}; expected rows one after the "
            "other: pass X.to_sparse_csr()."
        )
    if tensor.ndim != 2:
        raise ValueError(f"X has shape {tuple(tensor.shape)}, expected (n, d): one row per item.")
    if tensor.dtype.is_complex:
        raise ValueError(f"X is of type {tensor.dtype}; expected real numbers.")
    if tensor.device.type == "mps":
        raise ValueError("X lies on mps, which has no float64; move it to the host first: X.cpu().")
    return StoredRows.of(tensor) if tensor.layout is torch.sparse_csr else tensor


def _vector_beside(
    name: str, values: Tensor | ArrayLike | None, X: Tensor | StoredRows
) -> Tensor | None:
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
    return vector.contiguous()  # as kernels read it


def _numbers(name: str, values: Tensor | ArrayLike, X: Tensor | StoredRows) -> Tensor:
    try:
        return on_device(values, X)
    except TypeError as error:
        raise TypeError(
            f"{name} holds no numbers ({error}); a tensor has none but numbers for labels. Encode "
            "them first, for example y == 'the positive label'."
        ) from error
