"""Rows of the host that pass through a device: more of them than it holds.

The device holds two blocks. While one is summed there, the next comes over the bus on a stream of
its own, so that a pass takes as long as a plain copy of the rows. Rows in pinned memory are copied
from where they lie; others go through two pinned blocks of the host, filled by a thread.

A sample of the rows is drawn in the first pass and stays on the device, where the fit begins.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from os import PathLike
from typing import TYPE_CHECKING

from toprank._extras import require
from toprank._lazy import cached_property
from toprank.blocks.source import Block, BlockSource, Partial, State, Sweep
from toprank.blocks.tensor_source import TensorSource
from toprank.blocks.tensors import unwrap
from toprank.blocks.threads import thread_pool

if TYPE_CHECKING:
    import torch
    from torch import Tensor

#: Bytes of a block: enough for the bus, a small part of any card.
_BLOCK_BYTES = 1 << 28


class StreamedSource(BlockSource):
    """Dense rows of the host, summed on a device block by block.

    Use `toprank.blocks.from_torch` with ``device=``, which checks what it is given.
    """

    reads_anew = True
    samples_on_device = True

    def __init__(
        self,
        X: Tensor,
        y: Tensor | None,
        weight: Tensor | None,
        device: torch.device,
        block_rows: int | None,
    ):
        self.X = X
        self.device = device
        self.n_rows, self.n_features = (int(size) for size in X.shape)
        row_bytes = max(1, self.n_features * X.dtype.itemsize)
        self.block_rows = min(block_rows or max(1024, _BLOCK_BYTES // row_bytes), self.n_rows or 1)
        self._vectors = [None if part is None else part.to(device) for part in (y, weight)]

    def map_reduce(self, sweep: Sweep[State, Partial], state: State) -> Partial:
        features = getattr(sweep, "needs_features", True)
        with closing(self._arrive() if features else self._stay()) as blocks:
            total = sweep.local(next(blocks), state)
            for block in blocks:
                total = sweep.merge(total, sweep.local(block, state))
        return total

    @property
    def _cuts(self) -> list[slice]:
        starts = range(0, max(1, self.n_rows), self.block_rows)
        return [slice(start, min(start + self.block_rows, self.n_rows)) for start in starts]

    def _block(self, index: int, rows: slice, X: Tensor) -> Block:
        y, weight = (None if part is None else part[rows] for part in self._vectors)
        return Block(index, X, y, weight)

    def _stay(self) -> Generator[Block, None, None]:
        """Yield the blocks with labels on the device, their rows left on the host."""
        for index, rows in enumerate(self._cuts):
            yield self._block(index, rows, self.X[rows])

    def _arrive(self) -> Generator[Block, None, None]:
        """Yield the blocks on the device; each is there until the next one is asked for."""
        cuts, places = self._cuts, self._places
        with thread_pool(1, "toprank-reader") as reader:
            ahead = reader.submit(places.send, 0, self.X[cuts[0]])
            for index, rows in enumerate(cuts):
                ahead.result()
                if index + 1 < len(cuts):
                    ahead = reader.submit(places.send, index + 1, self.X[cuts[index + 1]])
                yield self._block(index, rows, places.receive(index, rows.stop - rows.start))
                places.free(index)

    @cached_property
    def _places(self) -> _Places:
        shape = (self.block_rows, self.n_features)
        on_gpu = self.device.type == "cuda"
        return (_PlacesOnGpu if on_gpu else _Places)(shape, self.X, self.device)

    def gather(self, blocks: Sequence[Block]) -> TensorSource:
        """Put samples of the rows together on the device."""
        torch = require("torch", "torch")
        parts = zip(*((block.X, block.y, block.weight) for block in blocks), strict=True)
        X, y, weight = (None if part[0] is None else torch.cat(part) for part in parts)
        return TensorSource(Block(0, X, y, weight))

    def start_threads(self, n_jobs: int | None = None) -> AbstractContextManager[object]:
        return nullcontext()  # the device adds up; a thread of its own copies

    def cheap_curvature(self, n_rows: int) -> bool:
        return False  # the sample on the device knows the curvature, and costs no copy

    def name_of(self, index: int) -> str:
        rows = self._cuts[index]
        return f"rows {rows.start} to {rows.stop - 1}"

    def write_scores(
        self, score: Callable[..., object], to: str | PathLike[str] | None = None
    ) -> Tensor:
        """Return the scores of the rows as a tensor of the host."""
        if to is not None:
            raise ValueError(
                "Scores of a tensor come back as a tensor; leave to= out and save them with "
                "torch.save."
            )
        torch = require("torch", "torch")
        with closing(self._arrive()) as blocks:
            return torch.cat([unwrap(score(block.X)).cpu() for block in blocks])


class _Places:
    """Two places for blocks, used in turn."""

    def __init__(self, shape: tuple[int, int], X: Tensor, device: torch.device):
        torch = require("torch", "torch")
        self.torch = torch
        self.held = [torch.empty(shape, dtype=X.dtype, device=device) for _ in range(2)]

    def send(self, index: int, rows: Tensor) -> None:
        """Copy rows to their place, as soon as it is free."""
        self.held[index % 2][: len(rows)].copy_(rows)

    def receive(self, index: int, n_rows: int) -> Tensor:
        """Return the rows of a block that was sent, once they are there."""
        return self.held[index % 2][:n_rows]

    def free(self, index: int) -> None:
        """Hear that a block has been read."""


class _PlacesOnGpu(_Places):
    """The same on a GPU: copies go on a stream of their own, and wait for nothing but a place."""

    def __init__(self, shape: tuple[int, int], X: Tensor, device: torch.device):
        super().__init__(shape, X, device)
        torch = self.torch
        self.device = device
        self.stream = torch.cuda.Stream(device)
        self.sent, self.read = ([torch.cuda.Event() for _ in range(2)] for _ in range(2))
        self.pinned: list[Tensor] | None = None
        if not (X.is_contiguous() and X.is_pinned()):
            self.pinned = [torch.empty(shape, dtype=X.dtype, pin_memory=True) for _ in range(2)]

    def send(self, index: int, rows: Tensor) -> None:
        place, torch = index % 2, self.torch
        with torch.cuda.device(self.device), torch.cuda.stream(self.stream):
            if self.pinned is not None:
                self.sent[place].synchronize()  # the copy out of this block two turns ago
                rows = self.pinned[place][: len(rows)].copy_(rows)
            self.stream.wait_event(self.read[place])
            self.held[place][: len(rows)].copy_(rows, non_blocking=True)
            self.sent[place].record(self.stream)

    def receive(self, index: int, n_rows: int) -> Tensor:
        self.torch.cuda.current_stream(self.device).wait_event(self.sent[index % 2])
        return super().receive(index, n_rows)

    def free(self, index: int) -> None:
        self.read[index % 2].record(self.torch.cuda.current_stream(self.device))
