"""A histogram of known scores on an NVIDIA GPU, by a kernel that has it in shared memory."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from toprank.blocks import cuda_counts
from toprank.blocks.kernels_chain import kernels_of
from toprank.blocks.kernels_cuda import allow_shared, arguments, shared_memory, start_kernel

if TYPE_CHECKING:
    from torch import Tensor

#: Threads of a block, which has a multiprocessor for itself, and the fewest rows of one.
_THREADS, _ROWS = 1024, 4096


def counted_in_shared_memory(
    scores: Tensor, kind: Tensor, weight: Tensor | None, about: Tensor, bins: int
) -> Tensor | None:
    """Return what `toprank.blocks.kernels_triton.counted_scores` does, from scores.

    ``about`` holds (shift, spread, bins per spread, quanta). None where no such kernel runs.
    """
    torch = importlib.import_module("torch")
    size = 8 * (4 * bins + 1)
    if shared_memory(scores.device) < size:
        return None
    defined = {"BINS": bins, "THREADS": _THREADS, "WEIGHTED": int(weight is not None)}
    kernels = kernels_of(scores.device, cuda_counts.SOURCE, ("count",), defined)
    if kernels is None:
        return None
    processors = torch.cuda.get_device_properties(scores.device).multi_processor_count
    blocks = max(1, min(processors, -(-len(scores) // _ROWS)))
    counts: Tensor = torch.empty((blocks, 4 * bins + 1), dtype=torch.int64, device=scores.device)
    weights = about if weight is None else weight
    pointers = [tensor.data_ptr() for tensor in (scores, kind, weights, about, counts)]
    places, held = arguments(pointers, (len(scores),))
    function, shape = kernels.functions["count"], (blocks, _THREADS, size)
    with torch.cuda.device(scores.device):
        allow_shared(kernels.driver, function, size)
        start_kernel(kernels.driver, function, shape, scores.device.index, places)
    del held  # what the arguments point to is read when a kernel is started
    return counts.sum(0)
