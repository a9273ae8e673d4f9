"""Some of the rows on an NVIDIA GPU, found by kernels that the host does not wait for.

How many rows are drawn by their weight is known on the GPU alone: the host gives room for about as
many as there can be, and goes on.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from toprank.blocks import cuda_chosen
from toprank.blocks.cuda_binaries import Loaded
from toprank.blocks.kernels_chain import kernels_of
from toprank.blocks.kernels_cuda import arguments, start_kernel

if TYPE_CHECKING:
    import torch
    from torch import Tensor

#: Threads of a block, and rows that it looks at.
_THREADS, _ROWS = 256, 4096
_NAMES = ("tally", "spaced", "draw", "draw_by_size", "compact")


def draw_rows(
    scores: Tensor, positive: Tensor, log_weight: Tensor | None, about: Tensor, room: int
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Return rows of both classes that are drawn by their weight, see `kernels_moments`.

    Parameters
    ----------
    scores : float64 tensor of shape (n,)
    positive : bool tensor of shape (n,)
    log_weight : float64 tensor of shape (n,), optional
    about : float64 tensor of shape (7,)
        Of positives and negatives the tilts, the logarithms of the masses, and the rows that are to
        stand for the class; and `toprank.blocks.kernels_moments.GOLDEN`.
    room : int
        The most rows; those after them are left out.

    Returns
    -------
    rows : int64 tensor
    count : float32 tensor
        How much each counts, less than zero for negatives.
    total : int64 tensor of shape (1,)
        How many there are; what lies after them is not set. None in the place of all three where
        no such kernel runs.
    """
    torch = importlib.import_module("torch")
    kernels = _kernels(scores.device, log_weight is not None)
    if kernels is None:
        return None
    given = scores, _bytes(positive), scores if log_weight is None else log_weight, about
    rows = torch.empty(room, dtype=torch.int64, device=scores.device)
    return rows, *_compact(kernels, "draw", given, rows)


def draw_by_size(
    sizes: Tensor, positive: Tensor, kind: bool, weight: Tensor | None, about: Tensor, rows: Tensor
) -> Tensor | None:
    """Draw rows of one class by their size; return how many rows each stands for, as float32.

    Parameters
    ----------
    sizes : float64 tensor of shape (n,)
        Those of the class sum to half of the sum of all, in absolute value.
    positive : bool tensor of shape (n,)
    kind : bool
        Which class.
    weight : float64 tensor of shape (n,), optional
        How often each row counts.
    about : float64 tensor of shape (3,)
        How many rows are drawn by their size, the chance of any row beside that, and
        `toprank.blocks.kernels_moments.GOLDEN`.
    rows : int64 tensor
        The rows drawn are written here, as many as there is room for; where they are fewer, the
        last rows stay as they are, and count zero.

    Returns
    -------
    float32 tensor, or None where no such kernel runs; then ``rows`` stay as they are.
    """
    torch = importlib.import_module("torch")
    kernels = _kernels(sizes.device, weight is not None)
    if kernels is None:
        return None
    total = torch.linalg.vector_norm(sizes, 1)
    given = sizes, _bytes(positive), sizes if weight is None else weight, about, total
    counts, _ = _compact(kernels, "draw_by_size", given, rows, int(kind))
    return counts


def _compact(
    kernels: Loaded, name: str, given: Sequence[Tensor], rows: Tensor, *numbers: int
) -> tuple[Tensor, Tensor]:
    """Write the rows that a kernel draws; return what they count, and how many they are."""
    torch = importlib.import_module("torch")
    n, blocks, on = len(given[0]), -(-len(given[0]) // _ROWS), {"device": rows.device}
    count = torch.empty(n, dtype=torch.float32, **on)
    of_blocks = torch.empty(blocks, dtype=torch.int64, **on)
    _start(kernels, name, blocks, (*given, count, of_blocks), n, *numbers)
    counts = torch.zeros(len(rows), dtype=torch.float32, **on)
    total = torch.empty(1, dtype=torch.int64, **on)
    ends = of_blocks.cumsum(0)
    _start(kernels, "compact", blocks, (count, ends, rows, counts, total), n, len(rows))
    return counts, total


def spaced_rows(
    positive: Tensor, steps: Sequence[int], firsts: Sequence[int], members: Sequence[int]
) -> Tensor | None:
    """Return every so many of the negatives, then of the positives, as an int64 tensor.

    Parameters
    ----------
    positive : bool tensor of shape (n,)
    steps, firsts : two ints each
        Of (negatives, positives): the distance of these rows, and which of the class is the first.
    members : two ints
        How many rows of the class there are.
    """
    torch = importlib.import_module("torch")
    kernels = _kernels(positive.device, False)
    if kernels is None:
        return None
    n, blocks = len(positive), -(-len(positive) // _ROWS)
    of_blocks = torch.empty(blocks, dtype=torch.int64, device=positive.device)
    kind = _bytes(positive)
    _start(kernels, "tally", blocks, (kind, of_blocks), n)
    kept = [len(range(*part)) for part in zip(firsts, members, steps, strict=True)]
    rows = torch.empty(sum(kept), dtype=torch.int64, device=positive.device)
    numbers = n, *steps, *firsts, kept[0], sum(kept)
    _start(kernels, "spaced", blocks, (kind, of_blocks.cumsum(0), rows), *numbers)
    return rows


def _bytes(truths: Tensor) -> Tensor:
    found: Tensor = truths.view(importlib.import_module("torch").uint8)
    return found


def _kernels(device: torch.device, weighted: bool) -> Loaded | None:
    defined = {"THREADS": _THREADS, "ROWS": _ROWS, "WEIGHTED": int(weighted)}
    return kernels_of(device, cuda_chosen.SOURCE, _NAMES, defined)


def _start(
    kernels: Loaded, name: str, blocks: int, tensors: Sequence[Tensor], *numbers: int
) -> None:
    torch = importlib.import_module("torch")
    device = tensors[0].device
    places, held = arguments([tensor.data_ptr() for tensor in tensors], numbers)
    with torch.cuda.device(device):
        shape = blocks, _THREADS, 0
        start_kernel(kernels.driver, kernels.functions[name], shape, device.index, places)
    del held  # what the arguments point to is read when a kernel is started
