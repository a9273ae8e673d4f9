"""The design matrix of one block, wherever it lies: all that a sweep may ask of X.

`design_of` looks at the type of X: NumPy arrays and CSR matrices become a `HostDesign`; another
library's arrays the class that `KINDS` names for it, rows of our own making the class that their
attribute ``design_class`` names. A new kind of array is one subclass of `Design` and one of `Tile`;
nothing else knows what X is made of.

Rows in this process's memory are never copied as a whole. A tile of a dense matrix is a float64
view where X is float64, and a small converted copy otherwise (float32, bool, uint8, ...), less the
centre when one is set; a sparse matrix stays sparse.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.linalg import blas

from toprank._arrays import IntArray, Matrix, TableLike
from toprank._lazy import cached_property
from toprank._numerics import FloatArray
from toprank.blocks.source import Block
from toprank.blocks.statistics import ColumnStatistics, LabelCounts, Units, bad_entry

#: Where the class for arrays of another library is found: the library's top-level module, and
#: "module:class" of a subclass of `Design`, imported when the first such block is opened.
KINDS: dict[str, str] = {"torch": "toprank.blocks.device:DeviceDesign"}


class Tile(ABC):
    """Rows few enough to be read several times while they are at hand, in their units.

    Coefficients and sums are float64 arrays of the host; what there is one of per row lies
    beside the rows.
    """

    #: Whether rows of one class are worth gathering before they are summed.
    gathers: bool = False
    #: Whether gathered rows stay where they are, so that those of both classes may be gathered.
    shares_rows: bool = False

    @abstractmethod
    def scores(self, coef: FloatArray) -> Any:
        """Return X @ coef; for coefficients of shape (m, d), one line for each of the m."""

    def score_into(self, coef: FloatArray, scores: Any, rows: slice) -> Any:
        """Write X @ coef into some rows of a vector, and return them."""
        scores[rows] = self.scores(coef)
        return scores[rows]

    @abstractmethod
    def adjoint(self, v: Any) -> FloatArray:
        """Return X.T @ v, for v of shape (n,) or (n, m)."""

    @abstractmethod
    def second_moments(self, weight: Any) -> FloatArray:
        """Return X.T @ diag(weight) @ X, for weights that are not negative."""

    def add_second_moments(self, weight: FloatArray, total: FloatArray) -> None:
        """Add them to a matrix whose upper half alone need be right, see `mirrored`."""
        total += self.second_moments(weight)

    @abstractmethod
    def sizes(self, v: Any) -> FloatArray:
        """Return |X|.T @ |v|: the size of what is added up in X.T @ v."""

    @abstractmethod
    def squares(self) -> FloatArray:
        """Return the sum of squares of each column."""

    def take(self, rows: NDArray[np.intp]) -> Tile:
        """Return some rows."""
        raise TypeError(f"{type(self).__name__} does not gather rows")


class Design(ABC):
    """The rows of one block, read tile by tile."""

    #: The code that sums such a matrix at once: "numba", "triton", "stored" (sparse) or None.
    kernel: str | None = None
    #: Where vectors lie that have one number per row: "host" or "device".
    place: str = "host"

    def __init__(self, X: Any, units: Units):
        self.X = X
        self.units = units
        self.n_rows, self.n_features = (int(size) for size in X.shape)

    @staticmethod
    @abstractmethod
    def count_labels(block: Block) -> LabelCounts:
        """Count the labels and weights of a block; asked first, before there are units."""

    @staticmethod
    @abstractmethod
    def describe(block: Block, start: int, step: int, check: bool) -> ColumnStatistics:
        """Describe the columns of the rows start, start + step, ...; check every entry if asked."""

    @abstractmethod
    def tiles(self) -> Iterator[tuple[slice, Tile]]:
        """Yield (rows, tile) over all rows."""

    @abstractmethod
    def vector(self, values: object) -> Any:
        """Return labels or numbers, one per row, beside the rows."""

    @abstractmethod
    def floats(self, values: Any) -> Any:
        """Return numbers, one per row, as float64 beside the rows."""

    @abstractmethod
    def empty(self) -> Any:
        """Return a vector of as many float64 numbers as there are rows, beside them."""

    @abstractmethod
    def take(self, rows: Any) -> Any:
        """Return some rows as a NumPy array or CSR matrix, raw and in the dtype they have."""

    @abstractmethod
    def thin(self, rows: Any) -> Any:
        """Return some rows where they lie, as a matrix of the same library."""

    @abstractmethod
    def columns(self, first: int, last: int) -> FloatArray:
        """Return the dense columns first:last on the host, in their units."""

    @abstractmethod
    def to_host(self, values: Any) -> Any:
        """Return a vector as NumPy's array."""

    def scores(self, coef: FloatArray, out: Any = None) -> Any:
        """Return X @ coef beside the rows, in ``out`` where it is given."""
        scores = self.empty() if out is None else out
        for rows, tile in self.tiles():
            tile.score_into(coef, scores, rows)
        return scores

    def adjoint(self, v: Any) -> FloatArray:
        """Return X.T @ v, for v of shape (n,) or (n, m)."""
        total = np.zeros((self.n_features, *v.shape[1:]))
        for rows, tile in self.tiles():
            total += tile.adjoint(v[rows])
        return total

    def second_moments(self, weight: Any) -> FloatArray:
        """Return X.T @ diag(weight) @ X, for weights that are not negative."""
        total = np.zeros((self.n_features, self.n_features))
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, tile in self.tiles():
                tile.add_second_moments(weight[rows], total)
        return mirrored(total)

    def sizes(self, v: Any) -> FloatArray:
        """Return |X|.T @ |v|: the size of what is added up in X.T @ v."""
        total = np.zeros(self.n_features)
        for rows, tile in self.tiles():
            total += tile.sizes(v[rows])
        return total

    def squares(self) -> FloatArray:
        """Return the sum of squares of each column."""
        total = np.zeros(self.n_features)
        for _, tile in self.tiles():
            total += tile.squares()
        return total


#: Share of stored entries from which products of dense rows are faster than sparse ones.
DENSE_SHARE = 0.07
#: Entries of a dense tile: 2 MB of float64, small enough for the cache, large enough for Python.
_TILE_ENTRIES = 1 << 18
_TILE_ROWS = 64, 8192


#: Second moments leave out rows whose weight, beside the largest, is nothing to any curvature;
#: and only where that saves more than gathering the others costs.
_NEGLIGIBLE = 1e-26
_WORTH_GATHERING = 0.7


def heavy_rows(weight: FloatArray, largest: float) -> NDArray[np.intp] | None:
    """Return the rows that count in a weighted sum of squares; None where nearly all do.

    A steep push weighs the rows e^{p f}: beyond the top of the list hardly any counts, unless its
    entries, of which ``largest`` is the largest, make up for its weight.
    """
    top = float(weight.max(initial=0.0))
    if not (0.0 < top < np.inf and largest < np.inf):
        return None
    rows = np.flatnonzero(weight > _NEGLIGIBLE * top / max(1.0, largest) ** 2)
    return rows if len(rows) < _WORTH_GATHERING * len(weight) else None


def mirrored(upper: FloatArray) -> FloatArray:
    """Return a symmetric matrix of which the upper half is given."""
    found = np.triu(upper)
    found += np.triu(upper, 1).T
    return found


def largest_entry(entries: FloatArray) -> float:
    """Return the largest absolute value, zero of none."""
    return max(float(entries.max(initial=0)), -float(entries.min(initial=0)))


class DenseTile(Tile):
    """A small float64 matrix."""

    gathers = True

    def __init__(self, matrix: FloatArray):
        self.matrix = matrix
        self._largest: float | None = None

    def scores(self, coef: FloatArray) -> FloatArray:
        return self.matrix @ coef if coef.ndim == 1 else coef @ self.matrix.T

    def score_into(self, coef: FloatArray, scores: FloatArray, rows: slice) -> FloatArray:
        return np.dot(self.matrix, coef, out=scores[rows])

    def adjoint(self, v: FloatArray) -> FloatArray:
        return v @ self.matrix if v.ndim == 1 else self.matrix.T @ v

    @property
    def largest(self) -> float:
        """The largest absolute entry.

        No cached_property: until Python 3.12 that holds a lock of its class while it computes,
        which a process that is forked meanwhile finds held for ever.
        """
        if self._largest is None:
            self._largest = largest_entry(self.matrix)
        return self._largest

    def second_moments(self, weight: FloatArray) -> FloatArray:
        rows = heavy_rows(weight, self.largest)
        if rows is not None:
            return self.take(rows).second_moments(weight[rows])
        weighed = self.matrix * np.sqrt(weight)[:, None]
        return weighed.T @ weighed  # half the work of A.T @ B

    def add_second_moments(self, weight: FloatArray, total: FloatArray) -> None:
        rows = heavy_rows(weight, self.largest)
        if rows is not None:
            self.take(rows).add_second_moments(weight[rows], total)
        elif self.matrix.size:
            weighed = self.matrix * np.sqrt(weight)[:, None]
            by_row = weighed.flags.c_contiguous
            # for BLAS, whose matrices lie by columns, our upper half is the lower
            blas.dsyrk(
                1.0, weighed.T if by_row else weighed, beta=1.0, c=total.T,
                trans=int(not by_row), lower=1, overwrite_c=1,
            )  # fmt: skip

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

    gathers = True
    shares_rows = True

    def __init__(self, matrix: sparse.csr_array):
        self.matrix = matrix
        self._transposed: sparse.csc_array | None = None
        self._largest: float | None = None

    @property
    def transposed(self) -> sparse.csc_array:
        """The same entries by column of the transpose; SciPy takes long to make even a view."""
        if self._transposed is None:
            self._transposed = self.matrix.T
        return self._transposed

    def scores(self, coef: FloatArray) -> FloatArray:
        return np.asarray(self.matrix @ coef.T).T

    def adjoint(self, v: FloatArray) -> FloatArray:
        return np.asarray(self.transposed @ v)

    @property
    def largest(self) -> float:
        """The largest absolute entry."""
        if self._largest is None:
            self._largest = largest_entry(self.matrix.data)
        return self._largest

    def second_moments(self, weight: FloatArray) -> FloatArray:
        rows = heavy_rows(weight, self.largest)
        if rows is not None:
            return SparseTile(self.matrix[rows]).moments_of_all(weight[rows])
        return self.moments_of_all(weight)

    def moments_of_all(self, weight: FloatArray) -> FloatArray:
        """Return `second_moments` without looking for rows that count for nothing."""
        weighed = sparse.diags_array(np.sqrt(weight)) @ self.matrix
        return np.asarray((weighed.T @ weighed).toarray())

    def sizes(self, v: FloatArray) -> FloatArray:
        return np.asarray(abs(self.matrix).T @ np.abs(v))

    def squares(self) -> FloatArray:
        squared = np.square(self.matrix.data, dtype=np.float64)
        sums = np.bincount(self.matrix.indices, weights=squared, minlength=self.matrix.shape[1])
        return sums.astype(np.float64)

    def take(self, rows: NDArray[np.intp]) -> SparseRows:
        return SparseRows(self, rows)


class SparseRows(Tile):
    """Some rows of a CSR matrix, left among the others: sums give those the weight zero."""

    def __init__(self, tile: SparseTile, rows: NDArray[np.intp]):
        self.tile = tile
        self.rows = rows

    def scores(self, coef: FloatArray) -> FloatArray:
        return self.tile.scores(coef)[..., self.rows]

    def adjoint(self, v: FloatArray) -> FloatArray:
        return self.tile.adjoint(self._spread(v))

    def second_moments(self, weight: FloatArray) -> FloatArray:
        heavy = heavy_rows(weight, self.tile.largest)
        rows, weight = (self.rows, weight) if heavy is None else (self.rows[heavy], weight[heavy])
        return SparseTile(self.tile.matrix[rows]).moments_of_all(weight)

    def sizes(self, v: FloatArray) -> FloatArray:
        return self.tile.sizes(self._spread(v))

    def squares(self) -> FloatArray:
        return SparseTile(self.tile.matrix[self.rows]).squares()

    def _spread(self, v: FloatArray) -> FloatArray:
        spread = np.zeros((self.tile.matrix.shape[0], *v.shape[1:]))
        spread[self.rows] = v
        return spread


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

    def raw_tiles(self) -> Iterator[np.ndarray]:
        """Yield the rows of a dense matrix as they are, whole where they lie in memory."""
        if isinstance(self.X, np.ndarray) and self.X.flags.forc:
            yield self.X
            return
        for first in range(0, self.n_rows, self.tile_rows):
            yield self.X[first : first + self.tile_rows]

    def tiles(self) -> Iterator[tuple[slice, Tile]]:
        if self.sparse:
            if self.n_rows:
                yield slice(0, self.n_rows), self._whole
            return
        yield from self._views if self._views is not None else self._read()

    @cached_property
    def _whole(self) -> SparseTile:
        return SparseTile(self.X)

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

    def rough_moments(
        self, rows: NDArray[np.intp], weight: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return X.T @ weight and X.T @ diag(weight) @ X of some sparse rows, in single precision.

        With many entries per row this takes a fraction of the time of the sparse product, a few
        rows at a time made dense. With few, the sparse product is taken.
        """
        if self.X.nnz < DENSE_SHARE * self.n_rows * self.n_features:
            stored = sparse.csr_array(self.take(rows))
            return stored.T @ weight, SparseTile(stored).moments_of_all(weight)
        first, second = np.zeros(self.n_features), None
        for start in range(0, max(1, len(rows)), self.rough_rows):
            part = slice(start, start + self.rough_rows)
            stored, root = sparse.csr_array(self.take(rows[part])), np.sqrt(weight[part])
            first += stored.T @ weight[part]
            # weighed before the zeros are filled in
            entries = stored.data * np.repeat(root, np.diff(stored.indptr))
            places = stored.indices, stored.indptr
            roots = sparse.csr_array((entries.astype(np.float32), *places), stored.shape)
            weighed = roots.toarray()
            product = (weighed.T @ weighed).astype(np.float64)
            second = product if second is None else np.add(second, product, out=second)
        assert second is not None  # there is a part, though it may have no rows
        return first, second

    def scaled_moments(
        self, rows: NDArray[np.intp], weight: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the same of dense rows, whatever the size of the columns."""
        first, second = np.zeros(self.n_features), np.zeros((self.n_features, self.n_features))
        for start in range(0, len(rows), self.rough_rows):
            part = slice(start, start + self.rough_rows)
            dense = self.units.apply(self.take(rows[part]))
            first += weight[part] @ dense
            dense = dense * np.sqrt(weight[part])[:, None]
            size = np.maximum(dense.max(axis=0), -dense.min(axis=0))
            size[size == 0] = 1.0
            scaled = (dense / size).astype(np.float32)
            second += (scaled.T @ scaled) * (size[:, None] * size)
        return first, second

    @property
    def rough_rows(self) -> int:
        """Rows that are made dense at a time."""
        return max(_TILE_ROWS[0], 2 * _TILE_ENTRIES // max(1, self.n_features))

    def vector(self, values: object) -> np.ndarray:
        return np.asarray(values)

    def floats(self, values: ArrayLike) -> FloatArray:
        return np.asarray(values, dtype=np.float64)

    def empty(self) -> FloatArray:
        return np.empty(self.n_rows)

    def take(self, rows: IntArray) -> Any:
        X = self.X
        if type(X) is np.ndarray and X.flags.c_contiguous:
            return X.take(rows, axis=0)  # half the time of X[rows]
        return X[rows]

    def thin(self, rows: IntArray) -> Matrix:
        return self.take(rows)

    def columns(self, first: int, last: int) -> FloatArray:
        part = self.X[:, first:last]
        dense = part.toarray() if self.sparse else np.asarray(part)
        return self.units.apply(dense, slice(first, last))

    def to_host(self, values: np.ndarray) -> np.ndarray:
        return values


def design_kind(X: TableLike) -> type[Design]:
    """Return the class that can read such a matrix."""
    place = getattr(X, "design_class", None) or KINDS.get(type(X).__module__.partition(".")[0])
    if place is None:
        return HostDesign
    module, _, name = place.partition(":")
    kind: type[Design] = getattr(import_module(module), name)
    return kind


def design_of(X: Matrix, units: Units) -> Design:
    """Return the design of a block's matrix."""
    return design_kind(X)(X, units)
