"""What tasks on the workers of Dask do: make blocks, look at them, join what was found."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, Never

import numpy as np
from scipy import sparse

from toprank._arrays import AnyArray, Frame, Matrix
from toprank._numerics import FloatArray
from toprank.blocks.source import Block, Partial, State, Sweep

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client, Future


def size_of(thing: object) -> int:
    """Bytes of the arrays in an outcome of a pass."""
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    if isinstance(thing, dict):
        return sum(map(size_of, thing.values()))
    if isinstance(thing, (tuple, list)):
        return sum(map(size_of, thing))
    return size_of(vars(thing)) if hasattr(thing, "__dict__") else 0


def make_block(
    index: int, n_features: int, X: object, y: object, weight: object, groups: object = None
) -> Block:
    """One chunk as a block: contiguous numbers, their labels and weights."""
    if hasattr(X, "to_numpy"):
        X = _frame_numbers(X)
    X = sparse.csr_array(X) if sparse.issparse(X) else np.ascontiguousarray(X)
    if X.dtype.kind not in "biuf":
        raise ValueError(f"A chunk of X has dtype {X.dtype}, expected numbers.")
    if X.shape[1] != n_features:
        raise ValueError(f"A chunk of X has {X.shape[1]} columns, expected {n_features}.")
    n = X.shape[0]
    return Block(
        index,
        X,
        _column("y", y, n),
        _column("sample_weight", weight, n),
        _column("groups", groups, n),
    )


def _frame_numbers(frame: Frame) -> AnyArray:
    """The matrix of a data frame of numbers and truth values, nullable ones included."""
    kinds = list(frame.dtypes)
    if not kinds or not all(getattr(kind, "kind", "O") in "biuf" for kind in kinds):
        return frame.to_numpy()
    if all(isinstance(kind, np.dtype) for kind in kinds):
        return frame.to_numpy(dtype=np.result_type(*kinds))
    return frame.to_numpy(dtype=np.float64, na_value=np.nan)


def _column(name: str, values: AnyArray | pd.Series | None, n: int) -> AnyArray | None:
    if values is None:
        return None
    array = np.asarray(values)
    if len(array) != n:
        raise ValueError(f"A chunk of {name} has {len(array)} rows, that of X {n}.")
    return array


class _Task(Generic[State, Partial]):
    """A task carries the sweep and the state, which are small."""

    def __init__(self, sweep: Sweep[State, Partial], state: State):
        self.sweep = sweep
        self.state = state


class LocalTask(_Task[State, Partial]):
    """The task of one block."""

    def __call__(self, block: Block) -> Partial:
        return self.sweep.local(block, self.state)


class LocalGroup(_Task[State, Partial]):
    """The task of several blocks of one worker; what each contributes stays apart."""

    def __call__(self, *blocks: Block) -> list[tuple[int, Partial]]:
        return [(block.index, self.sweep.local(block, self.state)) for block in blocks]


def groups_by_worker(client: Client, futures: Sequence[Future]) -> list[tuple[str, list[int]]]:
    """Numbers of the blocks that lie together, as many groups as a worker has threads.

    A block that no worker holds, because one was lost, is a group of its own.
    """
    holders = client.who_has(futures)
    of_worker: dict[str, list[int]] = {}
    groups: list[tuple[str, list[int]]] = []
    for number, future in enumerate(futures):
        places = sorted(holders.get(future.key) or ())
        if places:
            of_worker.setdefault(places[0], []).append(number)
        else:
            groups.append(("", [number]))
    threads = client.nthreads(list(of_worker))
    for worker, numbers in of_worker.items():
        count = max(1, threads.get(worker, 1))
        groups += [(worker, numbers[k::count]) for k in range(min(count, len(numbers)))]
    return groups


class Merge(Generic[Partial]):
    """The task that joins neighbouring partial results, in their order."""

    def __init__(self, sweep: Sweep[Never, Partial]):
        self.sweep = sweep

    def __call__(self, *partials: Partial) -> Partial:
        # a merge may overwrite, and a task may run again: only copies are overwritten
        total = copy.deepcopy(partials[0])
        for partial in partials[1:]:
            total = self.sweep.merge(total, copy.deepcopy(partial))
        return total


def score_block(block: Block, score: Callable[[Matrix], FloatArray]) -> FloatArray:
    """Return the scores of the rows of one block."""
    if block.n_rows == 0:
        return np.zeros(0)
    return np.asarray(score(block.X), dtype=np.float64)
