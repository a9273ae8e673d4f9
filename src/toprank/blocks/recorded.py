"""Small kernels that a GPU runs in a row, recorded once and started together."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from toprank._numerics import FloatArray

if TYPE_CHECKING:
    from torch import Tensor


class Recording:
    """A function of a few numbers, computed on a GPU by what was recorded when this was made.

    Parameters
    ----------
    compute : callable
        From a float64 tensor to a tensor; it waits for nothing and asks the host for nothing.
    given : tensor of shape (m,)
        Numbers that it can be tried with.
    """

    def __init__(self, compute: Callable[[Tensor], Tensor], given: Tensor):
        torch = importlib.import_module("torch")
        self._given = given
        self._sent = torch.empty(given.shape, dtype=given.dtype, pin_memory=True)
        self._numbers: FloatArray = self._sent.numpy()
        with torch.cuda.device(given.device):
            beside = torch.cuda.Stream()
            beside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(beside):  # compiled and laid out before it is recorded
                compute(given)
            torch.cuda.current_stream().wait_stream(beside)
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._found = compute(given)

    def __call__(self, numbers: FloatArray) -> Tensor:
        """Return what the function returns; it is overwritten by the next call."""
        self._numbers[:] = numbers
        self._given.copy_(self._sent, non_blocking=True)
        self._graph.replay()
        return self._found
