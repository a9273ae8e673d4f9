"""Passes over the stored entries of a sparse CSR tensor, on whatever device it lies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from toprank._arrays import IntArray
from toprank._numerics import LARGEST_SIZE, FloatArray
from toprank.blocks.design import Tile
from toprank.blocks.device import DeviceDesign, to_array
from toprank.blocks.source import Block
from toprank.blocks.statistics import ColumnStatistics, describe_entry
from toprank.blocks.stored import StoredRows
from toprank.blocks.tensors import OnDevice, on_device, on_host

if TYPE_CHECKING:
    import torch
    from torch import Tensor

#: Entries of rows that are made dense at once.
_DENSE_ENTRIES = 1 << 24


class StoredTile(Tile):
    """All rows of a sparse tensor."""

    def __init__(self, design: StoredDesign):
        self.design = design
        self.X: StoredRows = design.X

    def _beside(self, v: OnDevice | FloatArray) -> Tensor:
        return v.tensor if isinstance(v, OnDevice) else on_device(v, self.X)

    def scores(self, coef: FloatArray) -> OnDevice:
        if coef.ndim == 1:
            return self.design.scores(coef)
        lines = [self.design.scores(line).tensor for line in coef]
        return OnDevice(self.design.torch.stack(lines))

    def adjoint(self, v: OnDevice | FloatArray) -> FloatArray:
        weight = self._beside(v).double()
        if weight.ndim == 1:
            return to_array(self.X.by_column.sums(weight))
        columns = [self.X.by_column.sums(part.contiguous()) for part in weight.T]
        return to_array(self.design.torch.stack(columns, 1))

    def second_moments(self, weight: OnDevice | FloatArray) -> FloatArray:
        root, d = self._beside(weight).sqrt(), self.design.n_features
        torch = self.design.torch
        total = torch.zeros((d, d), dtype=torch.float64, device=self.X.device)
        rows = torch.arange(len(self.X), device=self.X.device)
        for some in rows.split(max(1, _DENSE_ENTRIES // max(1, d))):
            part = self.X.take(some).dense(torch.float64) * root[some][:, None]
            total += part.T @ part
        return to_array(total)

    def sizes(self, v: OnDevice | FloatArray) -> FloatArray:
        columns = self.X.by_column
        return to_array(columns.sums(self._beside(v).double().abs(), values=columns.values.abs()))

    def squares(self) -> FloatArray:
        columns = self.X.by_column
        ones = self.design.torch.ones(len(self.X), dtype=self.design.torch.float64)
        return to_array(columns.sums(ones.to(self.X.device), values=columns.values.double() ** 2))


class StoredDesign(DeviceDesign):
    """`StoredRows` with passes over their entries: zeros are neither read nor filled in."""

    kernel = "stored"

    @staticmethod
    def describe(block: Block, start: int, step: int, check: bool) -> ColumnStatistics:
        X: StoredRows = block.X
        found = ColumnStatistics.empty(X.shape[1])
        found.sparse = True
        if check and len(X.values):
            lowest, highest = (float(end) for end in X.values.aminmax())
            if not max(-lowest, highest) <= LARGEST_SIZE:
                wrong = ~(X.values.double().abs() <= LARGEST_SIZE)
                column = int(X.columns[wrong].min())
                worst = X.values[wrong & (X.columns == column)].double()
                found.bad = block.index, column, describe_entry(to_array(worst))
        return found

    def tiles(self) -> Iterator[tuple[slice, Tile]]:
        if self.n_rows:
            yield slice(0, self.n_rows), StoredTile(self)

    def scores(self, coef: FloatArray, out: OnDevice | None = None) -> OnDevice:
        scores = self.X.scores(self.small(coef))
        shift = self.units.shift(coef)
        if shift:  # of a model that was fitted to dense rows
            scores -= shift
        if out is None:
            return OnDevice(scores)
        out.tensor.copy_(scores)
        found: OnDevice = out
        return found

    def take(self, rows: OnDevice | IntArray) -> sparse.csr_array:
        some = self.X.take(on_device(on_host(rows), self.X))
        values = some.values if some.dtype.itemsize >= 4 else some.values.double()
        stored = (to_array(part) for part in (values, some.columns, some.starts))
        return sparse.csr_array(tuple(stored), shape=some.shape)

    def thin(self, rows: OnDevice | IntArray) -> StoredRows:
        return self.X.take(rows.tensor if isinstance(rows, OnDevice) else on_device(rows, self.X))

    def every(self, step: int) -> StoredDesign:
        if step == 1:
            return self
        rows = self.torch.arange(0, self.n_rows, step, device=self.X.device)
        return StoredDesign(self.X.take(rows), self.units)

    def dense_rows(self, rows: Tensor, kind: torch.dtype) -> Tensor:
        return self.X.take(rows).dense(kind)

    def columns(self, first: int, last: int) -> FloatArray:
        by_column = self.X.by_column
        ends = by_column.starts[first : last + 1].tolist()
        stored = slice(ends[0], ends[-1])
        rows, values = to_array(by_column.rows[stored]), to_array(by_column.values[stored].double())
        dense = np.zeros((self.n_rows, last - first))
        np.add.at(dense, (rows, np.repeat(np.arange(last - first), np.diff(ends))), values)
        return self.units.apply(dense, slice(first, last))
