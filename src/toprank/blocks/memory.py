"""Arrays as block sources: in memory, or mapped from a file that is larger than memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from os import PathLike
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import _get_feature_names

from toprank._arrays import AnyArray, Frame, Matrix
from toprank._files import Stamp, path_on_disk, replace_file
from toprank._lazy import cached_property
from toprank._numerics import FloatArray
from toprank.blocks.columns import check_block_rows
from toprank.blocks.source import Block, LocalSource, Partial, State, Sweep
from toprank.blocks.threads import Workers, go_on, lent_workers
from toprank.pairs import check_counts, check_labels, check_table, group_labels, refuse_huge

#: A matrix is cut into so many blocks, unless they would be shorter than the second number.
_BLOCKS = 16
_LEAST_ROWS = 8192
#: Stored entries of a block of a sparse matrix, at the least: each block costs a little.
_LEAST_STORED = 1 << 18


class ArraySource(LocalSource):
    """Rows of a matrix that this process can index, cut at fixed places.

    The blocks stay, and so does what sweeps keep with them.
    """

    keeps_samples = True
    in_memory = True

    def __init__(
        self,
        X: Any,
        y: np.ndarray | None,
        weight: FloatArray | None,
        block_rows: int | None,
        n_jobs: int | None,
        feature_names: NDArray[np.object_] | None = None,
        *,
        checked: bool = False,
        groups: AnyArray | None = None,
    ):
        self.checked = checked
        self.grouped = groups is not None
        self._groups = groups
        n, self.n_features = X.shape
        self.feature_names = feature_names
        self.n_jobs = n_jobs
        self.n_rows = n
        self.block_rows = block_rows or max(_least_rows(X), -(-n // _BLOCKS))
        self._arrays = X, y, weight
        self.stamps: list[Stamp] = []  #: of the files that the arrays are mapped from

    @property
    def stored(self) -> int:
        """Entries of the matrix that take memory: of a sparse one those that are stored."""
        X = self._arrays[0]
        return int(X.nnz if sparse.issparse(X) else X.shape[0] * X.shape[1])

    @cached_property
    def blocks(self) -> list[Block]:
        """The blocks: views of the rows, and what sweeps keep with them."""
        X, y, weight = self._arrays
        cuts = range(0, max(1, self.n_rows), self.block_rows)
        return [
            Block(
                index,
                _row_view(X, start, min(start + self.block_rows, self.n_rows)),
                None if y is None else y[start : start + self.block_rows],
                None if weight is None else weight[start : start + self.block_rows],
                None if self._groups is None else self._groups[start : start + self.block_rows],
            )
            for index, start in enumerate(cuts)
        ]

    def read(self, *, features: bool = True) -> Generator[Block, None, None]:
        for block in self.blocks:
            self._check_files()
            yield block

    def _check_files(self) -> None:
        for stamp in self.stamps:
            # a file that was removed is there for those who have mapped it; of one that became
            # shorter, reading would end the process
            with suppress(FileNotFoundError):
                stamp.check()

    def map_reduce(self, sweep: Sweep[State, Partial], state: State) -> Partial:
        workers = lent_workers()
        if workers is None:
            with Workers(self.n_jobs).start_threads():
                return self.map_reduce(sweep, state)
        if len(self.blocks) == 1 and not self.stamps:  # a small fit makes many passes
            go_on()
            return sweep.local(self.blocks[0], state)
        partials = workers.map_few(
            self._check_files_first(lambda b: sweep.local(b, state)), self.blocks
        )
        total = next(partials)
        for partial in partials:
            total = sweep.merge(total, partial)
        return total

    def map(
        self, function: Callable[[Block], Partial], *, features: bool = True
    ) -> Generator[Partial, None, None]:
        # there is nothing to read ahead
        with Workers(self.n_jobs).start_threads() as workers:
            yield from workers.map_few(self._check_files_first(function), self.blocks)

    def _check_files_first(
        self, function: Callable[[Block], Partial]
    ) -> Callable[[Block], Partial]:
        if not self.stamps:
            return function

        def check_then_call(block: Block) -> Partial:
            self._check_files()
            return function(block)

        return check_then_call

    def cheap_curvature(self, n_rows: int) -> bool:
        return False  # reading costs so little that moments of fewer rows are worth it

    def thin(self, pick: Callable[[Block], Block]) -> ArraySource:
        X = self._arrays[0]
        if sparse.issparse(X) or len(self.blocks) == 1:
            picked = [pick(block) for block in self.blocks]
            return gather_blocks(picked, self.n_jobs, self.feature_names)
        return self._thin_dense(pick)

    def _thin_dense(self, pick: Callable[[Block], Block]) -> ArraySource:
        """`thin` with the rows in memory once: each block's are copied in before the next."""
        table, filled = np.empty((0, self.n_features)), 0
        labels, weights = [], []
        for place, block in enumerate(self.blocks):
            part = pick(block)
            rows = part.X
            if filled + len(rows) > len(table):  # about as many from every block to come
                left = (len(self.blocks) - place) * (len(rows) + len(rows) // 10 + 16)
                grown = np.empty((filled + left, self.n_features), rows.dtype)
                grown[:filled] = table[:filled]
                table = grown
            table[filled : filled + len(rows)] = rows
            filled += len(rows)
            labels.append(part.y)
            weights.append(part.weight)
            del part, rows
        y, weight = _stack_parts(labels), _stack_parts(weights)
        return ArraySource(table[:filled], y, weight, None, self.n_jobs, self.feature_names)

    def name_of(self, index: int) -> str:
        start = index * self.block_rows
        return f"rows {start} to {min(start + self.block_rows, self.n_rows) - 1}"

    @overload
    def write_scores(self, score: Callable[..., FloatArray], to: None = None) -> FloatArray: ...

    @overload
    def write_scores(self, score: Callable[..., FloatArray], to: str | PathLike[str]) -> Path: ...

    @overload
    def write_scores(
        self, score: Callable[..., FloatArray], to: str | PathLike[str] | None = None
    ) -> FloatArray | Path: ...

    def write_scores(
        self, score: Callable[..., FloatArray], to: str | PathLike[str] | None = None
    ) -> FloatArray | Path:
        """Return the scores as an array; with ``to``, write them to that .npy file instead.

        ``score(X, out=)`` writes the scores of rows into a part of the array.
        """
        if to is None:
            return self._scores(score)
        path = path_on_disk(to, "to")
        header = {"descr": "<f8", "fortran_order": False, "shape": (self.n_rows,)}
        with replace_file(path) as file, closing(self.map(lambda block: score(block.X))) as parts:
            np.lib.format.write_array_header_1_0(file, header)
            for scores in parts:
                file.write(scores.astype("<f8", copy=False).tobytes())
        return path

    def _scores(self, score: Callable[..., FloatArray]) -> FloatArray:
        scores = np.empty(self.n_rows)
        if self.n_rows <= self.block_rows and not self.stamps:
            with Workers(1).start_threads():
                return score(self._arrays[0], out=scores)

        def fill(block: Block) -> None:
            first = block.index * self.block_rows
            score(block.X, out=scores[first : first + block.n_rows])

        for _ in self.map(fill):
            pass
        return scores


def _least_rows(X: Any) -> int:
    """Rows of a block, at the least."""
    if not sparse.issparse(X):
        return _LEAST_ROWS
    return max(_LEAST_ROWS, _LEAST_STORED * X.shape[0] // max(1, X.nnz))


def _row_view(X: Any, first: int, last: int) -> Any:
    """Rows first:last without a copy; SciPy would copy those of a sparse matrix."""
    if not sparse.issparse(X):
        return X[first:last]
    if first == 0 and last == X.shape[0]:
        return X
    start, end = X.indptr[first], X.indptr[last]
    stored = X.data[start:end], X.indices[start:end], X.indptr[first : last + 1] - start
    return type(X)(stored, shape=(last - first, X.shape[1]), copy=False)


def gather_blocks(
    blocks: Sequence[Block],
    n_jobs: int | None = None,
    feature_names: NDArray[np.object_] | None = None,
) -> ArraySource:
    """Put blocks together in memory, and cut them anew."""
    blocks = [block for block in blocks if block.n_rows] or list(blocks[:1])
    X, y, weight = (
        _stack_parts([getattr(block, name) for block in blocks]) for name in ("X", "y", "weight")
    )
    return ArraySource(X, y, weight, None, n_jobs, feature_names)


def _stack_parts(parts: list[Any]) -> Any:
    if parts[0] is None or len(parts) == 1:
        return parts[0]
    if sparse.issparse(parts[0]):
        return sparse.csr_array(sparse.vstack(parts))
    return np.concatenate(parts)


def from_arrays(
    X: object,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    groups: ArrayLike | None = None,
    block_rows: int | None = None,
    n_jobs: int | None = None,
) -> ArraySource:
    """Cut a matrix in memory into blocks of rows.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n, d)
        Numbers of any type; not copied unless it is a frame.
    y : array-like of shape (n,), optional
        Labels; not needed to score rows.
    sample_weight : array-like of shape (n,), optional
        Repetition counts.
    groups : array-like of shape (n,), optional
        Which rows belong together, or when they were seen; see `from_parquet`.
    block_rows : int, optional
        Rows of a block; by default one block in 16, of 8,192 rows at the least.
    n_jobs : int, optional
        Threads that work on blocks, as in joblib. The answer does not depend on it.

    Examples
    --------
    >>> from toprank import PNormPush, blocks
    >>> from toprank.datasets import load_wdbc
    >>> X, y = load_wdbc(return_X_y=True)
    >>> ranker = PNormPush(p=4).fit_blocks(blocks.from_arrays(X, y, block_rows=100))
    >>> ranker.coef_.shape
    (1, 30)
    """
    names = _get_feature_names(X)
    # NaN and infinity are found by the first pass, which names their column and rows
    X = check_table(X, sparse=True, missing=True, infinite=True)
    refuse_huge(X)
    return _source(X, y, sample_weight, block_rows, n_jobs, names, groups)


def from_memmap(
    X: np.ndarray | str | PathLike[str],
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    groups: ArrayLike | None = None,
    shape: tuple[int, int] | None = None,
    dtype: DTypeLike | None = None,
    block_rows: int | None = None,
    n_jobs: int | None = None,
) -> ArraySource:
    """Cut a matrix in a file into blocks of rows; the file may be larger than memory.

    Parameters
    ----------
    X : path or memory-mapped array
        A .npy file; or a file of bare numbers, row after row, with ``shape`` and ``dtype``.
    y : array-like of shape (n,) or path of a .npy file, optional
        Labels.
    sample_weight : array-like of shape (n,) or path of a .npy file, optional
        Repetition counts.
    groups : array-like of shape (n,), optional
        As in `from_arrays`.
    shape, dtype
        Of a file of bare numbers.
    block_rows, n_jobs
        As in `from_arrays`.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from toprank import PNormPush, blocks
    >>> from toprank.datasets import load_wdbc
    >>> X, y = load_wdbc(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/X.npy", X)
    ...     ranker = PNormPush(p=4).fit_blocks(blocks.from_memmap(f"{folder}/X.npy", y))
    >>> bool(np.allclose(ranker.coef_, PNormPush(p=4).fit(X, y).coef_))
    True
    """
    X = _map_file(X, shape, dtype)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(
            f"The file holds an array of shape {X.shape} and type {X.dtype}; expected a matrix of "
            "numbers, one row per item."
        )
    y = _map_file(y) if isinstance(y, str | os.PathLike) else y
    if isinstance(sample_weight, str | os.PathLike):
        sample_weight = _map_file(sample_weight)
    source = _source(X, y, sample_weight, block_rows, n_jobs, None, groups)
    source.stamps = [
        Stamp.of(Path(array.filename))
        for array in (X, y, sample_weight)
        if isinstance(array, np.memmap) and array.filename is not None
    ]
    return source


def _map_file(
    array: np.ndarray | str | PathLike[str],
    shape: tuple[int, int] | None = None,
    dtype: DTypeLike | None = None,
) -> AnyArray:
    if not isinstance(array, str | os.PathLike):
        return np.asanyarray(array)
    if shape is None and dtype is None:
        return _map_npy(Path(array))
    if shape is None or dtype is None:
        raise ValueError("A file of bare numbers needs both shape=(n, d) and dtype=.")
    size = os.path.getsize(array)
    wanted = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if size != wanted:
        raise ValueError(
            f"{os.fspath(array)} has {size} bytes; shape {tuple(shape)} of {np.dtype(dtype)} "
            f"takes {wanted}."
        )
    return np.memmap(array, dtype=dtype, mode="r", shape=tuple(shape))


def _map_npy(path: Path) -> AnyArray:
    try:
        with np.errstate(over="raise"):  # a shape that only pretends to fit into the file
            return np.lib.format.open_memmap(path, mode="r")
    except OSError:  # it is not there, or may not be read
        raise
    except Exception as error:  # whatever a damaged header brings its readers to raise
        raise ValueError(
            f"{path} is not a whole .npy file of numbers ({error}). Write it again with "
            "numpy.save; for a file of bare numbers pass shape= and dtype=."
        ) from error


def _source(
    X: Matrix | Frame,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    block_rows: int | None,
    n_jobs: int | None,
    names: np.ndarray | None,
    groups: ArrayLike | None = None,
) -> ArraySource:
    check_block_rows(block_rows)
    if y is not None:
        y = check_labels(y)
        check_consistent_length(X, y)
    if sample_weight is not None:
        sample_weight = check_counts(sample_weight, X.shape[0])
    X = sparse.csr_array(X) if sparse.issparse(X) else X
    groups = group_labels(groups, X.shape[0])
    return ArraySource(X, y, sample_weight, block_rows, n_jobs, names, groups=groups)
