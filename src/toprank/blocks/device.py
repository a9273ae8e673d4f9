"""Rows of a torch tensor, on whatever device it lies: nothing of them leaves it.

Everything but the entries themselves is float64: scores, exponents and sums, so that float32
rows give the coefficients of a float64 fit to the same rows. Scores, labels and weights are
`OnDevice` vectors, so that losses and prices, written in NumPy's words, run where the rows lie.
What is small comes back as NumPy's float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from toprank._arrays import AnyArray, IntArray, Matrix
from toprank._extras import has_triton, require
from toprank._lazy import cached_property
from toprank._numerics import LARGEST_SIZE, FloatArray
from toprank.blocks.design import Design, Tile
from toprank.blocks.source import Bad, Block
from toprank.blocks.statistics import (
    BlockCounts,
    ColumnStatistics,
    LabelCounts,
    Units,
    describe_entry,
)
from toprank.blocks.tensors import OnDevice, all_finite, count_true, distinct, on_device, on_host

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from toprank.blocks.kernels_triton import Launch
    from toprank.blocks.stored import StoredRows

#: Entries of a tile that is converted to float64: small for a cache, large for a GPU.
_TILE_ENTRIES = {"cpu": 1 << 17}
_TILE_ENTRIES_OF_A_GPU = 1 << 25
#: Columns up to which a tile of the compiled kernel holds whole rows.
_WIDEST = 1024


class TensorTile(Tile):
    """A float64 tensor."""

    def __init__(self, matrix: Tensor):
        self.matrix = matrix

    def _beside(self, v: OnDevice | FloatArray) -> Tensor:
        return v.tensor if isinstance(v, OnDevice) else on_device(v, self.matrix)

    def scores(self, coef: FloatArray) -> OnDevice:
        beta = on_device(np.ascontiguousarray(coef), self.matrix)
        if beta.ndim == 1:
            return OnDevice(self.matrix @ beta)
        return OnDevice(beta @ self.matrix.T)

    def adjoint(self, v: OnDevice | FloatArray) -> FloatArray:
        return to_array(self.matrix.T @ self._beside(v))

    def second_moments(self, weight: OnDevice | FloatArray) -> FloatArray:
        scaled = self.matrix * self._beside(weight).sqrt()[:, None]
        return to_array(scaled.T @ scaled)

    def sizes(self, v: OnDevice | FloatArray) -> FloatArray:
        return to_array(self.matrix.abs().T @ self._beside(v).abs())

    def squares(self) -> FloatArray:
        return to_array((self.matrix**2).sum(0))


class DeviceDesign(Design):
    """A torch tensor of shape (n, d), with passes over it."""

    place = "device"

    def __init__(self, X: Tensor, units: Units):
        super().__init__(X, units)
        self.torch = require("torch", "torch")
        entries = _TILE_ENTRIES.get(X.device.type, _TILE_ENTRIES_OF_A_GPU)
        self.tile_rows = max(64, entries // max(1, self.n_features))

    @cached_property
    def kernel(self) -> str | None:  # type: ignore[override]
        X, torch = self.X, self.torch
        readable = (
            X.is_cuda
            and X.dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16)
            and 1 in X.stride()
            and 0 < self.n_features <= _WIDEST
            and self.n_rows > 0
            and has_triton()
        )
        return "triton" if readable else None

    @staticmethod
    def count_labels(block: Block) -> LabelCounts:
        if block.y is None:
            raise ValueError("The source has no labels; give y to blocks.from_torch.")
        torch = require("torch", "torch")
        if block.weight is None and block.y.dtype == torch.bool and len(block.y):
            true = count_true(block.y)
            rows = np.array([len(block.y) - true, true], dtype=np.int64)
            there = rows > 0
            return _counted(block, np.array([False, True])[there], rows[there])
        labels = distinct(block.y)
        if block.weight is None:
            last = [count_true(block.y == label) for label in labels[1:].tolist()]
            rows = np.array([len(block.y) - sum(last), *last][: len(labels)], dtype=np.int64)
            return _counted(block, labels, rows)
        members = [block.y == label for label in labels.tolist()]
        rows = np.array([int(m.sum()) for m in members], dtype=np.int64)
        weight = block.weight.double()
        held = weight > 0
        present = np.array([int((m & held).sum()) for m in members], dtype=np.int64)
        return LabelCounts(
            labels,
            np.array([float((weight * m).sum()) for m in members]),
            {block.index: BlockCounts(labels, rows, present)},
            weighted=True,
            smallest=float(weight.min()) if len(weight) else np.inf,
            finite=all_finite(weight),
        )

    @staticmethod
    def describe(block: Block, start: int, step: int, check: bool) -> ColumnStatistics:
        X = block.X
        if len(X) == 0:
            return ColumnStatistics.empty(X.shape[1])
        sample = X[start::step].double()
        if len(sample) == 0:
            found = ColumnStatistics.empty(X.shape[1])
        else:
            torch = require("torch", "torch")
            variance, mean = torch.var_mean(sample, 0, correction=0)
            mean, variance, one = to_array(torch.stack([mean, variance, sample[0]]))
            found = ColumnStatistics(len(sample), mean, len(sample) * variance, (block.index, one))
        if not check:
            return found
        found.bad = first_bad(block)
        return found

    def tiles(self) -> Iterator[tuple[slice, Tile]]:
        centre = self.centre
        for first in range(0, self.n_rows, self.tile_rows):
            rows = slice(first, min(first + self.tile_rows, self.n_rows))
            tile = self.X[rows].double()
            yield rows, TensorTile(tile if centre is None else tile - centre)

    @cached_property
    def centre(self) -> Tensor | None:
        """The centre of the units on the device; None if there is none."""
        return None if self.units.centre is None else self.small(self.units.centre)

    def small(self, values: FloatArray) -> Tensor:
        """Bring a small vector of the host to the device, as a tensor."""
        sent = self.torch.from_numpy(np.array(values, dtype=np.float64))
        # memory that is not pinned is read before this returns: nothing need be waited for
        return sent.to(self.X.device, non_blocking=True)

    def vector(self, values: AnyArray | Tensor) -> OnDevice:
        return OnDevice(on_device(values, self.X))

    def floats(self, values: AnyArray | Tensor) -> OnDevice:
        return OnDevice(on_device(values, self.X).double())

    def empty(self) -> OnDevice:
        float64 = self.torch.float64
        return OnDevice(self.torch.empty(self.n_rows, dtype=float64, device=self.X.device))

    def take(self, rows: OnDevice | IntArray) -> Matrix:
        chosen = self.X[on_device(on_host(rows), self.X)]
        return (chosen if chosen.dtype.itemsize >= 4 else chosen.double()).cpu().numpy()

    def thin(self, rows: OnDevice | IntArray) -> Tensor | StoredRows:
        chosen = rows.tensor if isinstance(rows, OnDevice) else on_device(rows, self.X)
        if self.kernel == "triton" and self.X.stride(1) == 1 and chosen.dtype == self.torch.int64:
            from toprank.blocks.kernels_moments import gather_rows

            return gather_rows(self.X, chosen)
        return self.X[chosen]

    def every(self, step: int) -> DeviceDesign:
        """Return the design of every so many rows."""
        return DeviceDesign(self.X[::step], self.units)

    def dense_rows(self, rows: Tensor, kind: torch.dtype) -> Tensor:
        """Return copies of some rows as a dense tensor of a type of floating-point numbers."""
        return self.X[rows].to(kind)

    def columns(self, first: int, last: int) -> FloatArray:
        part = self.X[:, first:last].double().cpu().numpy()
        return self.units.apply(part, slice(first, last))

    def to_host(self, values: OnDevice | AnyArray) -> AnyArray:
        return on_host(values)

    def scores(self, coef: FloatArray, out: OnDevice | None = None) -> OnDevice:
        if self.kernel is None:
            return super().scores(coef, out)
        from toprank.blocks.kernels_triton import score_rows

        scores = self.empty() if out is None else out
        if not np.any(coef):
            scores.tensor.zero_()
            return scores
        score_rows(self._launch, self.small(coef), scores.tensor)
        return scores

    def adjoint(self, v: OnDevice | FloatArray) -> FloatArray:
        weight = v if isinstance(v, OnDevice) else self.vector(v)
        if self.kernel != "triton" or weight.ndim > 1:
            return super().adjoint(weight)
        return to_array(self.weigh(weight.tensor.double()))

    def weigh(self, weight: Tensor) -> Tensor:
        """Return X' times a float64 vector, where it lies, by the compiled kernel."""
        from toprank.blocks.kernels_triton import weigh_rows

        return weigh_rows(self._launch, weight)

    @cached_property
    def _launch(self) -> Launch:
        """What compiled kernels are told of the rows."""
        from toprank.blocks.kernels_triton import Launch

        return Launch(self.X, self.centre)

    def second_moments(self, weight: OnDevice | FloatArray) -> FloatArray:
        return super().second_moments(
            weight if isinstance(weight, OnDevice) else self.vector(weight)
        )

    def sizes(self, v: OnDevice | FloatArray) -> FloatArray:
        return super().sizes(v if isinstance(v, OnDevice) else self.vector(v))


def _counted(block: Block, labels: AnyArray, rows: IntArray) -> LabelCounts:
    """The counts of rows without weights."""
    counts = BlockCounts(labels, rows, rows)
    return LabelCounts(labels, rows.astype(np.float64), {block.index: counts})


def first_bad(block: Block) -> Bad | None:
    """Return (block, column, what) of an entry that no fit can use, of the first such column."""
    lowest, highest = (float(end) for end in block.X.aminmax())
    return None if max(-lowest, highest) <= LARGEST_SIZE else _first_bad(block)


def _first_bad(block: Block) -> Bad | None:
    """Return (block, column, what) of the first column with an entry that no fit can use."""
    for column in range(block.X.shape[1]):
        entries = block.X[:, column].double()
        wrong = ~(entries.abs() <= LARGEST_SIZE)
        if bool(wrong.any()):
            return block.index, column, describe_entry(to_array(entries[wrong]))
    return None


def to_array(part: Tensor) -> np.ndarray:
    """Return a tensor as a NumPy array."""
    return np.asarray(part.cpu().numpy())
