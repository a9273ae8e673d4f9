"""Row blocks of Dask: arrays or data frames, their chunks pinned where they were computed.

Each chunk becomes one block, made once and kept by the worker that made it. A pass is one task per
block, which returns a small partial result, and a tree of merges in the order of the chunks: the
same bits for any scheduler and any number of workers. If a worker dies, Dask makes its blocks
again from the graph of the collection, and the answer is the same.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from operator import itemgetter
from os import PathLike
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from toprank._arrays import AnyArray
from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.blocks.dask_tasks import (
    KnownPlaces,
    LocalGroup,
    LocalTask,
    Merge,
    groups_by_worker,
    make_block,
    score_block,
    size_of,
)
from toprank.blocks.source import (
    BlockSource,
    Partial,
    Progress,
    State,
    Sweep,
    not_numbers,
)

if TYPE_CHECKING:
    import dask.array as da
    import dask.dataframe as dd
    from dask.delayed import Delayed
    from distributed import Client

#: Partial results merged by one task.
_FAN_IN = 16
#: Blocks up to which each worker has one task per thread and the driver merges, and the numbers
#: that it may be sent then, about.
_FEW_BLOCKS, _FEW_NUMBERS = 64, 1_000_000
#: Bytes of outcomes that the passes leave which every fit begins with.
_KEPT_BYTES = 1 << 26
#: Columns up to which second moments cost less than the passes that they save, and the products of
#: entries that those of more columns may take.
_CURVED_COLUMNS, _CURVED_PRODUCTS = 48, 2e8


def from_dask(
    X: da.Array | dd.DataFrame,
    y: object = None,
    sample_weight: object = None,
    *,
    target: str | None = None,
    weight: str | None = None,
    columns: Sequence[str] | None = None,
    groups: object = None,
    client: Client | None = None,
    persist: bool = True,
    verbose: int = 0,
) -> DaskBlocks:
    """Rows of a Dask array or data frame as a source of blocks, one for each chunk of rows.

    Parameters
    ----------
    X : dask array or data frame of shape (n, d)
        Numbers and truth values. An array cut along its columns is rechunked; chunk sizes may be
        unknown.
    y : dask array or series of shape (n,), optional
        Labels. Also an array in memory, where the chunk sizes of X are known.
    sample_weight : dask array or series of shape (n,), optional
        Repetition counts.
    target : str, optional
        The column of X that holds the labels, in place of y.
    weight : str, optional
        The column of X that holds repetition counts, in place of sample_weight.
    columns : sequence of str, optional
        The features; by default every column of X but the target and the weight.
    groups : dask array or series of shape (n,), or name of a column, optional
        Which rows belong together, or when they were seen; see `from_parquet`.
    client : distributed.Client, optional
        Where to compute. By default the client that is active, else the scheduler of
        ``dask.config`` (threads, processes or synchronous).
    persist : bool, default=True
        Keep the blocks in the memory of the workers. Otherwise every pass computes them anew.
    verbose : int, default=0
        1 prints a line per pass, 2 Dask's progress bar too.

    Returns
    -------
    DaskBlocks

    Examples
    --------
    >>> import dask.array as da
    >>> from toprank import PNormPush
    >>> from toprank.blocks import from_dask
    >>> from toprank.datasets import load_wdbc
    >>> X, y = load_wdbc(return_X_y=True)
    >>> with from_dask(da.from_array(X, chunks=(200, -1)), y) as blocks:
    ...     ranker = PNormPush(p=4).fit_blocks(blocks)

    A data frame that holds the labels too:

    >>> import dask.dataframe as dd
    >>> frame = dd.from_dict({"age": [30, 40, 50, 60], "bought": [0, 1, 0, 1]}, npartitions=2)
    >>> with from_dask(frame, target="bought") as blocks:
    ...     ranker = PNormPush(p=4).fit_blocks(blocks)
    >>> ranker.feature_names_in_
    array(['age'], dtype=object)
    """
    frame = X
    if isinstance(y, str):
        raise ValueError(f"y={y!r} is the name of a column: give it as target={y!r}.")
    if (target, weight, columns) != (None, None, None):
        X, y, sample_weight = _split_frame(X, y, sample_weight, target, weight, columns)
    if isinstance(groups, str):
        if not _is_frame(frame) or groups not in frame.columns:
            raise ValueError(f"groups={groups!r} is no column of X; give a dask array or series.")
        if columns is None:
            X = X[[name for name in X.columns if name != groups]]
        groups = frame[groups]
    return DaskBlocks(X, y, sample_weight, groups, client=client, persist=persist, verbose=verbose)


def _split_frame(
    frame: dd.DataFrame,
    y: object,
    sample_weight: object,
    target: str | None,
    weight: str | None,
    columns: Sequence[str] | None,
) -> tuple[dd.DataFrame, object, object]:
    """The features, labels and weights of one data frame."""
    if not _is_frame(frame) or frame.ndim != 2:
        raise TypeError(
            f"target=, weight= and columns= name columns of a dask data frame; X is a "
            f"{type(frame).__name__}. Give y and sample_weight instead."
        )
    for role, name, given in (("target", target, y), ("weight", weight, sample_weight)):
        if name is not None and given is not None:
            other = "y" if role == "target" else "sample_weight"
            raise ValueError(f"Give {other} or {role}={name!r}, not both.")
    if isinstance(columns, str):
        raise ValueError(f"columns={columns!r}: expected a list of names.")
    names = list(frame.columns)
    features = [n for n in names if n not in (target, weight)] if columns is None else list(columns)
    unknown = [name for name in (*features, target, weight) if name not in (*names, None)]
    if unknown:
        shown = ", ".join(map(repr, names[:12])) + (", ..." if len(names) > 12 else "")
        raise ValueError(f"The data frame has no column {unknown[0]!r}; it has {shown}.")
    twice = [name for name in (target, weight) if name in features]
    if twice:
        raise ValueError(f"Column {twice[0]!r} cannot be a feature and the target or weight.")
    labels = y if target is None else frame[target]
    counts = sample_weight if weight is None else frame[weight]
    return frame[features], labels, counts


class DaskBlocks(BlockSource):
    """The source that `from_dask` returns; a context manager that lets the blocks go."""

    def __init__(
        self,
        X: da.Array | dd.DataFrame,
        y: object,
        sample_weight: object,
        groups: object = None,
        *,
        client: Client | None,
        persist: bool,
        verbose: int,
    ):
        self.grouped = groups is not None
        self._dask = require("dask", "dask")
        self._client = client
        self._progress = Progress(verbose)
        self.feature_names = _names(X)
        check_frame_columns(X)
        parts = aligned_parts(X, y=y, sample_weight=sample_weight, groups=groups)
        self.n_features = int(X.shape[1])
        self._rows = _chunk_rows(X)
        make = self._dask.delayed(make_block, pure=False)
        token = f"toprank-block-{_token()}"
        self._blocks = [
            make(index, self.n_features, *columns, dask_key_name=(token, index))
            for index, columns in enumerate(parts)
        ]
        self._persists = persist
        self._answers: dict[str, tuple[str, Any]] = {}
        self._places = KnownPlaces()
        if persist:
            self._blocks = list(self._persist(self._blocks))
        self._graph = {
            key: task for block in self._blocks for key, task in dict(block.dask).items()
        }

    @property
    def n_blocks(self) -> int:
        return len(self._blocks)

    def name_of(self, index: int) -> str:
        return f"chunk {index}"

    def cheap_curvature(self, n_rows: int) -> bool:
        few = self.n_features <= _CURVED_COLUMNS
        return few or n_rows * self.n_features**2 <= _CURVED_PRODUCTS

    def _persist(self, blocks: Sequence[Delayed]) -> Sequence[Delayed]:
        if self._client is not None:
            return self._client.persist(list(blocks))
        return self._dask.persist(*blocks)

    def _compute(self, result: Delayed) -> Any:
        if self._client is not None:
            future = self._client.compute(result)
            try:
                if self._progress.verbose > 1:
                    require("distributed", "dask").progress(future, notebook=False)
                return future.result()
            except BaseException:
                future.cancel()  # a traceback would keep it, and the cluster at work
                raise
        if self._progress.verbose > 1:
            with require("dask.diagnostics", "dask").ProgressBar():
                return result.compute()
        return result.compute()

    def map_reduce(self, sweep: Sweep[State, Partial], state: State) -> Partial:
        self._check_open()
        if not (self._persists and getattr(sweep, "opens_fits", False)):
            return self._make_pass(sweep, state)
        # blocks that stay as they are answer the passes that every fit begins with once
        asked, kind = self._dask.base.tokenize(sweep, state), type(sweep).__name__
        if self._answers.get(kind, ("", None))[0] != asked:
            found = self._make_pass(sweep, state)
            if size_of(found) > _KEPT_BYTES:
                return found
            self._answers[kind] = asked, found
        answer: Partial = copy.deepcopy(self._answers[kind][1])  # a merge may overwrite it
        return answer

    def _make_pass(self, sweep: Sweep[State, Partial], state: State) -> Partial:
        name = type(sweep).__name__
        with self._progress.one_pass(name, self.n_blocks):
            try:
                client = self._grouping_client()
                if client is not None:
                    return self._grouped_pass(client, sweep, state, name)
                return self._compute(self._pass(sweep, state, name))
            except CancelledError as error:  # Dask has forgotten how to make a block
                raise RuntimeError(
                    f"Dask gave up a pass over the blocks ({error}): some rows are gone, and "
                    "nothing says how to make them again. What client.scatter sends lies on one "
                    "worker and is lost with it. Scatter with broadcast=True, or let the workers "
                    "read the rows from files; then make the blocks anew."
                ) from error

    def _grouping_client(self) -> Client | None:
        """The client of workers that hold the blocks, where there are few enough to group."""
        sums = self.n_blocks * self.n_features**2
        if not self._persists or self.n_blocks > _FEW_BLOCKS or sums > _FEW_NUMBERS:
            return None
        if self._client is not None:
            return self._client
        used = self._dask.base.get_scheduler()
        client = getattr(used, "__self__", None)
        return client if hasattr(client, "who_has") else None

    def _grouped_pass(
        self, client: Client, sweep: Sweep[State, Partial], state: State, name: str
    ) -> Partial:
        """One pass with a task per thread of the workers, or short ones without any.

        A task costs Dask milliseconds. The partial results are merged here, in the order in which
        the tree of tasks merges them.
        """
        found = None
        if self._progress.verbose <= 1 and not getattr(sweep, "opens_fits", False):
            found = self._places.ask(client, sweep, state)
        if found is None:
            found = self._group_tasks(client, sweep, state, name)
        found.sort(key=itemgetter(0))
        level, merge = [partial for _, partial in found], Merge(sweep)
        while len(level) > 1:
            level = [merge(*level[i : i + _FAN_IN]) for i in range(0, len(level), _FAN_IN)]
        return level[0]

    def _group_tasks(
        self, client: Client, sweep: Sweep[State, Partial], state: State, name: str
    ) -> list[tuple[int, Partial]]:
        """What each block contributes, from a task per thread of the workers."""
        distributed = require("distributed", "dask")
        futures = [distributed.futures_of(block)[0] for block in self._blocks]
        token, local = _token(), LocalGroup(sweep, state)
        begun, groups = time.monotonic(), groups_by_worker(client, futures)
        tasks = [
            client.submit(
                local,
                *(futures[index] for index in group),
                key=f"{name}-local-{token}-{number}",
                workers=worker or None,
                allow_other_workers=bool(worker),
            )
            for number, (worker, group) in enumerate(groups)
        ]
        try:
            if self._progress.verbose > 1:
                distributed.progress(tasks, notebook=False)
            parts = [task.result() for task in tasks]
        except BaseException:
            client.cancel(tasks)  # a traceback would keep them, and the cluster at work
            raise
        self._places.note(groups, futures, time.monotonic() - begun)
        return [one for part in parts for one in part]

    def _pass(self, sweep: Sweep[State, Partial], state: State, name: str) -> Delayed:
        """One pass as a graph, written out by hand: one task per block, and a tree of merges."""
        token = _token()
        local, merge = LocalTask(sweep, state), Merge(sweep)
        graph: dict[object, object] = dict(self._graph)
        level: list[tuple[object, ...]] = [
            (f"{name}-local-{token}", j) for j in range(self.n_blocks)
        ]
        blocks = [block.key for block in self._blocks]
        graph.update({key: (local, block) for key, block in zip(level, blocks, strict=True)})
        height = 0
        while len(level) > 1:
            groups = [level[i : i + _FAN_IN] for i in range(0, len(level), _FAN_IN)]
            level = [(f"{name}-merge-{token}", height, index) for index in range(len(groups))]
            graph.update({key: (merge, *group) for key, group in zip(level, groups, strict=True)})
            height += 1
        return require("dask.delayed", "dask").Delayed(level[0], graph)

    def write_scores(
        self, score: Callable[..., FloatArray], to: str | PathLike[str] | None = None
    ) -> da.Array:
        """Return the scores as a lazy Dask array, cut into chunks as X is.

        Parameters
        ----------
        score : callable
            From the X of a block to its scores.
        to : None
            Store the array with ``to_zarr``, ``to_npy_stack`` or a data frame's ``to_parquet``.
        """
        self._check_open()
        if to is not None:
            raise ValueError(
                f"to={to!r}: the scores of Dask blocks come back as a Dask array; store it with "
                "its own methods, such as to_npy_stack or to_zarr."
            )
        array = require("dask.array", "dask")
        scored = self._dask.delayed(score_block, pure=False)
        token = f"toprank-score-{_token()}"
        chunks = [
            array.from_delayed(
                scored(block, score, dask_key_name=(token, index)), shape=(rows,), dtype=np.float64
            )
            for index, (block, rows) in enumerate(zip(self._blocks, self._rows, strict=True))
        ]
        return array.concatenate(chunks, allow_unknown_chunksizes=True)

    def close(self) -> None:
        """Let the workers forget the blocks."""
        self._blocks, self._graph, self._answers = [], {}, {}

    def _check_open(self) -> None:
        if not self._blocks:
            raise ValueError("These blocks were closed; make them again with blocks.from_dask.")

    def __enter__(self) -> DaskBlocks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def aligned_parts(X: da.Array | dd.DataFrame, **columns: object) -> list[tuple[object, ...]]:
    """Return, for each chunk of rows of X, itself and its part of each column, not yet computed.

    Parameters
    ----------
    X : dask array or data frame
    **columns : dask arrays or series, arrays in memory, or None
        One value per row of X.
    """
    if not _is_array(X) and not _is_frame(X):
        raise TypeError(
            f"X is a {type(X).__module__}.{type(X).__name__}, expected a dask array or a dask data "
            "frame. Rows in memory need no cluster: use fit, or blocks.from_arrays."
        )
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimension(s), expected 2: rows and columns.")
    if _is_array(X) and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    rows = _chunk_rows(X)
    parts: list[Sequence[object]] = [_chunks(X)]
    parts += [_cut(name, column, rows) for name, column in columns.items()]
    return list(zip(*parts, strict=True))


def _cut(name: str, column: Any, rows: Sequence[float]) -> Sequence[object]:
    if column is None:
        return [None] * len(rows)
    if not _is_array(column) and not _is_frame(column):
        return _cut_in_memory(name, column, rows)
    if column.ndim == 2 and _is_array(column) and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise ValueError(f"{name} has {column.ndim} dimensions, expected 1: one value per row.")
    own = _chunk_rows(column)
    known = not np.any(np.isnan(rows)) and not np.any(np.isnan(own))
    if known and sum(own) != sum(rows):
        raise ValueError(f"{name} has {sum(own):g} rows, X has {sum(rows):g}.")
    if known and list(own) != list(rows):
        column = column.rechunk((tuple(int(n) for n in rows),))
    elif len(own) != len(rows):
        raise ValueError(
            f"{name} has {len(own)} chunks of rows, X has {len(rows)}, and their sizes are not "
            "known: which rows belong together cannot be told. Call compute_chunk_sizes() on "
            "arrays, to_dask_array(lengths=True) on series, or repartition one like the other."
        )
    return _chunks(column)


def _chunks(collection: da.Array | dd.DataFrame | dd.Series) -> list[Delayed]:
    """The chunks of rows, not yet computed.

    Optimised in full, a frame that reads few columns would read several files as one partition:
    its parts would no longer be those of the frame that it was taken from.
    """
    if _is_array(collection):
        return list(collection.to_delayed().ravel())
    if hasattr(collection, "simplify"):
        collection = collection.simplify()  # only the columns that are needed are read
    return list(collection.to_delayed(optimize_graph=False))


def _cut_in_memory(name: str, column: AnyArray, rows: Sequence[float]) -> list[AnyArray]:
    values = np.asarray(column)
    if np.any(np.isnan(rows)):
        raise ValueError(
            f"{name} is in memory, and the sizes of the chunks of X are not known: which rows "
            f"belong together cannot be told. Give {name} as a dask array or series cut like X."
        )
    if len(values) != sum(rows):
        raise ValueError(f"{name} has {len(values)} rows, X has {sum(rows):g}.")
    ends = np.cumsum(np.asarray(rows, dtype=np.intp))
    return np.split(values, ends[:-1])


def check_frame_columns(X: da.Array | dd.DataFrame) -> None:
    """Refuse the columns of a data frame that hold something else than numbers."""
    if not _is_frame(X):
        return
    wrong = [
        f"{name!r} ({kind})"
        for name, kind in X.dtypes.items()
        if getattr(kind, "kind", "O") not in "biuf"
    ]
    if wrong:
        advice = "X.categorize() and dask.dataframe.get_dummies, or choose columns of numbers"
        raise not_numbers(wrong, advice)


def _is_array(collection: object) -> bool:
    return hasattr(collection, "to_delayed") and hasattr(collection, "numblocks")


def _is_frame(collection: object) -> bool:
    return (
        hasattr(collection, "to_delayed")
        and hasattr(collection, "npartitions")
        and hasattr(collection, "divisions")
    )


def _chunk_rows(collection: da.Array | dd.DataFrame | dd.Series) -> list[float]:
    """The rows of each chunk; NaN where they are not known."""
    if _is_array(collection):
        return list(collection.chunks[0])
    return [np.nan] * collection.npartitions


def _names(X: da.Array | dd.DataFrame) -> np.ndarray | None:
    if not _is_frame(X):
        return None
    names = list(X.columns)
    return np.array(names, dtype=object) if all(isinstance(n, str) for n in names) else None


def _token() -> str:
    return uuid4().hex[:12]
