"""Rows of an array or a sparse matrix, block by block, never copied as a whole.

Only this room touches X. A block of a dense matrix is a float64 view where X is float64, and
a small converted copy otherwise (float32, bool, uint8, ...), less the centre when one is set;
a sparse matrix stays sparse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from toprank._numerics import FloatArray
from toprank.blocks.threads import Workers

Partial = TypeVar("Partial")

#: Entries of a dense block: 1 MB of float64, small enough for the cache, large enough for Python.
_BLOCK_ENTRIES = 1 << 17
#: Fixed number of cuts, so that neither the cuts nor the merge order depend on n_jobs.
_CHUNKS = 16
#: Columns whose mean exceeds their spread this many times are centred before use.
OFFSET_LIMIT = 100.0
#: Columns with entries beyond this are divided by a power of two: sums of their squares overflow.
SIZE_LIMIT = 2.0**480
#: A unit that exceeds the least entry of a huge column by more would hide it from a tolerance.
_FINE = 2.0**16


@dataclass(frozen=True)
class Units:
    """In what units columns are read: (x / scale) - centre. Rankings do not notice.

    A column at 1e9 with a spread of 1 would cost nine digits in every score and more in every
    covariance, and the squares of a column at 1e200 overflow. Most data need neither.
    """

    centre: FloatArray | None = None
    scale: FloatArray | None = None
    #: Columns whose least entries cannot be told from zero beside the largest.
    dwarfed: tuple[int, ...] = ()

    @property
    def plain(self) -> bool:
        return self.centre is None and self.scale is None

    def apply(self, block: Any, columns: slice = slice(None)) -> FloatArray:
        """Return dense rows in these units, as float64."""
        if self.scale is not None:
            block = block / self.scale[columns]
        if self.centre is not None:
            block = block - self.centre[columns]
        return block if block.dtype == np.float64 else block.astype(np.float64)

    def to_raw(self, coef: FloatArray) -> FloatArray:
        """From coefficients of columns in these units to coefficients of the raw columns."""
        return coef if self.scale is None else coef / self.scale

    def from_raw(self, coef: FloatArray) -> FloatArray:
        return coef if self.scale is None else coef * self.scale

    def shift(self, coef: FloatArray) -> float:
        """What the centre takes from every score."""
        return 0.0 if self.centre is None else float(self.centre @ coef)


class RowBlocks:
    """The design matrix as a source of row blocks with one map-reduce.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    workers : Workers
        Threads to map with.
    units : Units, optional
        In what units the columns are read.
    """

    def __init__(self, X: Any, workers: Workers, units: Units | None = None):
        self.X = X
        self.workers = workers
        self.units = Units() if units is None else units
        self.n_rows, self.n_features = X.shape
        self.sparse = sparse.issparse(X)
        rows = max(64, min(8192, _BLOCK_ENTRIES // max(1, self.n_features)))
        self.block_rows = self.n_rows if self.sparse else rows
        chunk = -(-self.n_rows // _CHUNKS)
        self.chunk_rows = max(self.block_rows if not self.sparse else 8192, chunk)
        self._sparse_chunks: dict[int, Any] = {}

    def chunks(self) -> list[tuple[int, int]]:
        """The fixed cuts: (start, stop) of each chunk of rows."""
        step = max(1, self.chunk_rows)
        return [(s, min(s + step, self.n_rows)) for s in range(0, self.n_rows, step)]

    def map_reduce(
        self,
        local: Callable[[int, int], Partial],
        merge: Callable[[Partial, Partial], Partial],
    ) -> Partial:
        """Merge local(start, stop) over the chunks, in order."""
        partials = self.workers.map(lambda cut: local(*cut), self.chunks())
        total = next(partials)
        for partial in partials:
            total = merge(total, partial)
        return total

    def blocks(self, start: int, stop: int) -> Iterator[tuple[slice, FloatArray]]:
        """Yield (rows, dense float64 block) over the rows start:stop."""
        for first in range(start, stop, self.block_rows):
            rows = slice(first, min(first + self.block_rows, stop))
            yield rows, self.units.apply(self.X[rows])

    def _sparse_chunk(self, start: int, stop: int) -> Any:
        """A chunk of a CSR matrix in its units, made once: slicing would copy the entries.

        A view of them, unless some column is huge: sums of raw entries near the largest float
        overflow before they can be divided.
        """
        if start not in self._sparse_chunks:
            X = self.X
            first, last = X.indptr[start], X.indptr[stop]
            pointers = X.indptr[start : stop + 1] - first
            data, indices = X.data[first:last], X.indices[first:last]
            if self.units.scale is not None:
                data = np.divide(data, self.units.scale[indices], dtype=np.float64)
            parts = (data, indices, pointers)
            shape = (stop - start, self.n_features)
            self._sparse_chunks[start] = sparse.csr_array(parts, shape=shape, copy=False)
        return self._sparse_chunks[start]

    def _matrices(self, start: int, stop: int) -> Iterator[tuple[slice, Any]]:
        """Yield (rows, matrix) over the rows start:stop: dense or sparse, in units."""
        if self.sparse:
            yield slice(start, stop), self._sparse_chunk(start, stop)
        else:
            yield from self.blocks(start, stop)

    def scores(self, coef: FloatArray) -> FloatArray:
        """Return X @ coef, X in its units."""
        scores = np.empty(self.n_rows)

        def local(start: int, stop: int) -> None:
            if self.sparse:
                scores[start:stop] = self._sparse_chunk(start, stop) @ coef
                return
            for rows, block in self.blocks(start, stop):
                np.dot(block, coef, out=scores[rows])

        self.map_reduce(local, lambda a, b: None)
        return scores

    def adjoint(self, v: FloatArray) -> FloatArray:
        """Return X.T @ v, X in its units, for v of shape (n,) or (n, m)."""

        def local(start: int, stop: int) -> FloatArray:
            if self.sparse:
                return np.asarray(self._sparse_chunk(start, stop).T @ v[start:stop])
            total = np.zeros((self.n_features, *v.shape[1:]))
            for rows, block in self.blocks(start, stop):
                total += block.T @ v[rows]
            return total

        return self.map_reduce(local, np.add)

    def sizes(self, v: FloatArray) -> FloatArray:
        """Return |X|.T @ |v|, X in its units: the size of what is added up in X.T @ v."""

        def local(start: int, stop: int) -> FloatArray:
            total = np.zeros(self.n_features)
            for rows, block in self._matrices(start, stop):
                total += abs(block).T @ np.abs(v[rows])
            return total

        return self.map_reduce(local, np.add)

    def respond(
        self, coef: FloatArray, response: Callable[[slice, FloatArray], tuple[float, FloatArray]]
    ) -> tuple[float, FloatArray, float]:
        """Return the sum of values, X.T @ slopes and the sum of slopes, X read once.

        ``response(rows, scores)`` turns the scores X @ coef of some rows into the sum of their
        values and their slopes.
        """

        def local(start: int, stop: int) -> tuple[float, FloatArray, float]:
            value, grad, total = 0.0, np.zeros(self.n_features), 0.0
            # steps that go too far overflow and are taken back; each thread must be told anew
            with np.errstate(over="ignore", invalid="ignore"):
                for rows, block in self._matrices(start, stop):
                    more, slopes = response(rows, block @ coef)
                    value, total = value + more, total + float(np.sum(slopes))
                    grad += block.T @ slopes
            return value, grad, total

        return self.map_reduce(local, lambda a, b: (a[0] + b[0], a[1] + b[1], a[2] + b[2]))

    def second_moments(self, weight: FloatArray) -> FloatArray:
        """Return X.T @ diag(weight) @ X, X in its units, for weights that are not negative."""
        root = np.sqrt(weight)

        def local(start: int, stop: int) -> FloatArray:
            total = np.zeros((self.n_features, self.n_features))
            with np.errstate(over="ignore", invalid="ignore"):
                for rows, block in self._matrices(start, stop):
                    if self.sparse:
                        weighed = sparse.diags_array(root[rows]) @ block
                        total += (weighed.T @ weighed).toarray()
                    else:
                        weighed = block * root[rows, None]
                        total += weighed.T @ weighed  # half the work of A.T @ B
            return total

        return self.map_reduce(local, np.add)

    def squares(self) -> FloatArray:
        """Return the sum of squares of each column, in its units."""

        def local(start: int, stop: int) -> FloatArray:
            if self.sparse:
                chunk = self._sparse_chunk(start, stop)
                squared = np.square(chunk.data, dtype=np.float64)
                sums = np.bincount(chunk.indices, weights=squared, minlength=self.n_features)
                return sums.astype(np.float64)
            total = np.zeros(self.n_features)
            for _, block in self.blocks(start, stop):
                total += np.einsum("ij,ij->j", block, block)
            return total

        return self.map_reduce(local, np.add)

    def columns(self, first: int, last: int) -> FloatArray:
        """Return the dense columns first:last, in their units."""
        part = self.X[:, first:last]
        dense = part.toarray() if self.sparse else np.asarray(part)
        return self.units.apply(dense, slice(first, last))

    def rows(self, rows: NDArray[np.intp]) -> FloatArray:
        """Return a dense float64 copy of the given rows, in their units."""
        return self.units.apply(self.X[rows])

    def take(self, rows: NDArray[np.intp]) -> RowBlocks:
        """Return a source of copies of the given rows."""
        return RowBlocks(self.X[rows], self.workers, self.units)


def safe_units(X: Any, *, every_row: bool = False, sample_rows: int = 4096) -> Units:
    """Return units in which no column is too far from zero or too large.

    Judged on evenly spaced rows unless ``every_row`` is set. Sparse columns are not centred:
    that would make them dense.
    """
    n, d = X.shape
    if d == 0 or n == 0:
        return Units()
    step = 1 if every_row else max(1, n // sample_rows)
    sample = X[::step]
    largest = (
        np.asarray(abs(sample).max(axis=0).todense()).ravel()
        if sparse.issparse(X)
        else (np.maximum(np.max(sample, axis=0), -np.min(sample, axis=0).astype(np.float64)))
    )
    largest = largest.astype(np.float64)
    huge = np.flatnonzero(largest > SIZE_LIMIT)
    smallest = largest.copy()
    smallest[huge] = [smallest_size(column) for column in _columns(sample, huge)]
    scale, dwarfed = scale_of(largest, smallest)
    if sparse.issparse(X):
        return Units(None, scale, dwarfed)
    sample = Units(None, scale).apply(sample[: sample_rows + 1])
    mean, spread = sample.mean(axis=0), sample.std(axis=0)
    # a column that is constant in the sample may just be rare; near zero it does no harm
    far = (np.abs(mean) > OFFSET_LIMIT * spread) & ((spread > 0) | (np.abs(mean) >= 1.0))
    return Units(np.where(far, sample[0], 0.0) if np.any(far) else None, scale, dwarfed)


def scale_of(
    largest: FloatArray, smallest: FloatArray
) -> tuple[FloatArray | None, tuple[int, ...]]:
    """Return what columns are divided by, and which of them hold too much for any unit.

    A huge column is measured by its largest entry, or, where that is larger by far than the
    others, by its least, lest these vanish. Where the largest would then exceed the limit they
    vanish all the same.
    """
    huge = largest > SIZE_LIMIT
    if not np.any(huge):
        return None, ()
    with np.errstate(over="ignore"):
        wanted = np.minimum(largest, _FINE * smallest)
    dwarfed = huge & (largest / SIZE_LIMIT > wanted)
    unit = np.where(dwarfed, largest, np.where(huge, wanted, 1.0))
    return np.ldexp(1.0, np.frexp(unit)[1] - 1), tuple(np.flatnonzero(dwarfed).tolist())


def smallest_size(values: FloatArray) -> float:
    """The least absolute value other than zero; infinity where there is none."""
    sizes = np.abs(values, dtype=np.float64)
    return float(np.min(sizes, where=sizes > 0, initial=np.inf))


def _columns(sample: Any, which: NDArray[np.intp]) -> Iterator[FloatArray]:
    for column in which:
        part = sample[:, [column]]
        yield part.data if sparse.issparse(part) else np.asarray(part)
