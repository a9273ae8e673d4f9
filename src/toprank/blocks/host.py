"""Rows of an array or a sparse matrix in this process's memory, never copied as a whole.

A tile of a dense matrix is a float64 view where X is float64, and a small converted copy
otherwise (float32, bool, uint8, ...), less the centre when one is set; a sparse matrix stays
sparse.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from toprank._numerics import FloatArray
from toprank.blocks.design import Design, Tile
from toprank.blocks.source import Block
from toprank.blocks.statistics import ColumnStatistics, LabelCounts, Units, bad_entry

#: Entries of a dense tile: 1 MB of float64, small enough for the cache, large enough for Python.
_TILE_ENTRIES = 1 << 17
_TILE_ROWS = 64, 8192


class DenseTile(Tile):
    """A small float64 matrix."""

    gathers = True

    def __init__(self, matrix: FloatArray):
        self.matrix = matrix

    def scores(self, coef: FloatArray) -> FloatArray:
        return self.matrix @ coef if coef.ndim == 1 else coef @ self.matrix.T

    def score_into(self, coef: FloatArray, scores: FloatArray, rows: slice) -> FloatArray:
        return np.dot(self.matrix, coef, out=scores[rows])

    def adjoint(self, v: FloatArray) -> FloatArray:
        return v @ self.matrix if v.ndim == 1 else self.matrix.T @ v

    def second_moments(self, weight: FloatArray) -> FloatArray:
        weighed = self.matrix * np.sqrt(weight)[:, None]
        return weighed.T @ weighed  # half the work of A.T @ B

    def sizes(self, v: FloatArray) -> FloatArray:
        return np.abs(v) @ np.abs(self.matrix)

    def squares(self) -> FloatArray:
        return np.einsum("ij,ij->j", self.matrix, self.matrix)

    def take(self, rows: NDArray[np.intp]) -> DenseTile:
        matrix = self.matrix
        if matrix.flags.c_contiguous:
            return DenseTile(matrix.take(rows, axis=0))
        return DenseTile(matrix.T.take(rows, axis=1).T)  # or take would copy it all first


class SparseTile(Tile):
    """A CSR matrix."""

    def __init__(self, matrix: Any):
        self.matrix = matrix

    def scores(self, coef: FloatArray) -> FloatArray:
        return np.asarray(self.matrix @ coef.T).T

    def adjoint(self, v: FloatArray) -> FloatArray:
        return np.asarray(self.matrix.T @ v)

    def second_moments(self, weight: FloatArray) -> FloatArray:
        weighed = sparse.diags_array(np.sqrt(weight)) @ self.matrix
        return np.asarray((weighed.T @ weighed).toarray())

    def sizes(self, v: FloatArray) -> FloatArray:
        return np.asarray(abs(self.matrix).T @ np.abs(v))

    def squares(self) -> FloatArray:
        squared = np.square(self.matrix.data, dtype=np.float64)
        sums = np.bincount(self.matrix.indices, weights=squared, minlength=self.matrix.shape[1])
        return sums.astype(np.float64)

    def take(self, rows: NDArray[np.intp]) -> SparseTile:
        return SparseTile(self.matrix[rows])


class HostDesign(Design):
    """A NumPy array, perhaps mapped from a file, the columns of a file, or a CSR matrix."""

    def __init__(self, X: Any, units: Units):
        super().__init__(X, units)
        self.sparse = sparse.issparse(X)
        fewest, most = _TILE_ROWS
        self.tile_rows = max(fewest, min(most, _TILE_ENTRIES // max(1, self.n_features)))

    @cached_property
    def kernel(self) -> str | None:  # type: ignore[override]
        X = self.X
        readable = (
            isinstance(X, np.ndarray)
            and X.flags.c_contiguous
            and X.dtype in (np.float32, np.float64)
            and self.units.plain
        )
        return "numba" if readable else None

    @staticmethod
    def count_labels(block: Block) -> LabelCounts:
        return LabelCounts.of(block.index, block.y, block.weight)

    @staticmethod
    def describe(block: Block, start: int, step: int, check: bool) -> ColumnStatistics:
        X = block.X
        if sparse.issparse(X):
            found = ColumnStatistics.empty(X.shape[1])
            found.sparse = True
        else:
            sample = np.ascontiguousarray(X[start::step], dtype=np.float64)
            found = ColumnStatistics.of(block.index, sample)
        if check:
            tiles = [X] if found.sparse else HostDesign(X, Units()).raw_tiles()
            wrong = min(filter(None, map(bad_entry, tiles)), default=None)
            found.bad = None if wrong is None else (block.index, *wrong)
        return found

    def raw_tiles(self) -> Iterator[NDArray[Any]]:
        """Yield the rows of a dense matrix as they are, whole where they lie in memory."""
        if isinstance(self.X, np.ndarray) and self.X.flags.forc:
            yield self.X
            return
        for first in range(0, self.n_rows, self.tile_rows):
            yield self.X[first : first + self.tile_rows]

    def tiles(self) -> Iterator[tuple[slice, Tile]]:
        if self.sparse:
            if self.n_rows:
                yield slice(0, self.n_rows), SparseTile(self.X)
            return
        yield from self._views if self._views is not None else self._read()

    @cached_property
    def _views(self) -> list[tuple[slice, Tile]] | None:
        """The tiles, where they are mere views of a matrix in memory."""
        X = self.X
        is_view = type(X) is np.ndarray and X.dtype == np.float64 and self.units.plain
        return list(self._read()) if is_view else None

    def _read(self) -> Iterator[tuple[slice, Tile]]:
        for first in range(0, self.n_rows, self.tile_rows):
            rows = slice(first, min(first + self.tile_rows, self.n_rows))
            yield rows, DenseTile(self.units.apply(self.X[rows]))

    def vector(self, values: Any) -> NDArray[Any]:
        return np.asarray(values)

    def floats(self, values: Any) -> FloatArray:
        return np.asarray(values, dtype=np.float64)

    def empty(self) -> FloatArray:
        return np.empty(self.n_rows)

    def take(self, rows: Any) -> Any:
        return self.X[rows]

    def thinned(self, rows: Any) -> Any:
        return self.X[rows]

    def columns(self, first: int, last: int) -> FloatArray:
        part = self.X[:, first:last]
        dense = part.toarray() if self.sparse else np.asarray(part)
        return self.units.apply(dense, slice(first, last))

    def to_host(self, values: Any) -> Any:
        return values
