"""Rows of an array or a sparse matrix, block by block, never copied as a whole.

Only this room touches X. A block of a dense matrix is a float64 view where X is float64, and
a small converted copy otherwise (float32, bool, uint8, ...), less the centre when one is set;
a sparse matrix stays sparse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from toprank._numerics import FloatArray
from toprank.blocks.threads import Workers

Partial = TypeVar("Partial")

#: Entries of a dense block: 2 MB of float64, small enough for the cache, large enough for Python.
_BLOCK_ENTRIES = 1 << 18
#: Fixed number of cuts, so that neither the cuts nor the merge order depend on n_jobs.
_CHUNKS = 16
#: Columns whose mean exceeds their spread this many times are centred before use.
_OFFSET_LIMIT = 100.0


class RowBlocks:
    """The design matrix as a source of row blocks with one map-reduce.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    workers : Workers
        Threads to map with.
    centre : array of shape (d,), optional
        Subtracted from every row. Rankings do not notice; rounding errors do.
    """

    def __init__(self, X: Any, workers: Workers, centre: FloatArray | None = None):
        self.X = X
        self.workers = workers
        self.centre = centre
        self.n_rows, self.n_features = X.shape
        self.sparse = sparse.issparse(X)
        rows = max(64, min(8192, _BLOCK_ENTRIES // max(1, self.n_features)))
        self.block_rows = self.n_rows if self.sparse else rows
        chunk = -(-self.n_rows // _CHUNKS)
        self.chunk_rows = max(self.block_rows if not self.sparse else 8192, chunk)

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
            yield rows, self._block(rows)

    def _block(self, rows: slice) -> FloatArray:
        block = self.X[rows]
        if self.centre is not None:
            return block - self.centre
        return block if block.dtype == np.float64 else block.astype(np.float64)

    def scores(self, coef: FloatArray) -> FloatArray:
        """Return (X - centre) @ coef."""
        scores = np.empty(self.n_rows)

        def local(start: int, stop: int) -> None:
            if self.sparse:
                scores[start:stop] = _csr_rows(self.X, start, stop) @ coef
                return
            for rows, block in self.blocks(start, stop):
                np.dot(block, coef, out=scores[rows])

        self.map_reduce(local, lambda a, b: None)
        if self.sparse and self.centre is not None:
            scores -= float(self.centre @ coef)
        return scores

    def adjoint(self, v: FloatArray) -> FloatArray:
        """Return (X - centre).T @ v for v of shape (n,) or (n, m)."""

        def local(start: int, stop: int) -> FloatArray:
            if self.sparse:
                return np.asarray(_csr_rows(self.X, start, stop).T @ v[start:stop])
            total = np.zeros((self.n_features, *v.shape[1:]))
            for rows, block in self.blocks(start, stop):
                total += block.T @ v[rows]
            return total

        total = self.map_reduce(local, np.add)
        if self.sparse and self.centre is not None:
            total = total - np.multiply.outer(self.centre, np.sum(v, axis=0))
        return total

    def columns(self, first: int, last: int) -> FloatArray:
        """Return the dense columns first:last, centred."""
        part = self.X[:, first:last]
        dense = part.toarray() if self.sparse else np.asarray(part)
        dense = dense.astype(np.float64)
        return dense if self.centre is None else dense - self.centre[first:last]

    def rows(self, rows: NDArray[np.intp]) -> FloatArray:
        """Return a dense float64 copy of the given rows, centred."""
        block = self.X[rows].astype(np.float64, copy=False)
        return block if self.centre is None else block - self.centre

    def take(self, rows: NDArray[np.intp]) -> RowBlocks:
        """Return a source of copies of the given rows."""
        return RowBlocks(self.X[rows], self.workers, self.centre)


def _csr_rows(X: Any, start: int, stop: int) -> Any:
    """Rows start:stop of a CSR matrix as a view: slicing would copy the entries."""
    if start == 0 and stop == X.shape[0]:
        return X
    first, last = X.indptr[start], X.indptr[stop]
    parts = (X.data[first:last], X.indices[first:last], X.indptr[start : stop + 1] - first)
    return sparse.csr_array(parts, shape=(stop - start, X.shape[1]), copy=False)


def safe_centre(X: Any, sample_rows: int = 4096) -> FloatArray | None:
    """Return a centre for columns that lie far from zero compared with their spread.

    A column at 1e9 with a spread of 1 would cost nine digits in every score and more in every
    covariance. Judged on evenly spaced rows; None when no dense column needs it.
    """
    n, d = X.shape
    if sparse.issparse(X) or d == 0:
        return None
    step = max(1, n // sample_rows)
    sample = np.asarray(X[::step][: sample_rows + 1], dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = sample.mean(axis=0)
        spread = sample.std(axis=0)
        far = np.abs(mean) > _OFFSET_LIMIT * spread
    far &= np.isfinite(mean)
    if not np.any(far):
        return None
    return np.where(far, sample[0], 0.0)
