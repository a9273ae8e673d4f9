"""What tasks on the workers of Dask do: make blocks, look at them, join what was found."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, Never

import numpy as np
from scipy import sparse

from toprank._arrays import AnyArray, Frame, Matrix
from toprank._numerics import FloatArray
from toprank.blocks.source import Block, Partial, State, Sweep

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client, Future, Worker

#: Seconds of a pass from which it does not matter what its tasks cost.
_SHORT = 1.0
#: Seconds after which a pass is made of tasks again: a scheduler that has seen none for some time
#: may end its cluster, and the blocks may have been moved.
_TRUSTED = 30.0


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


class KnownPlaces:
    """Where the blocks lie, by the last pass of tasks; short passes ask there directly.

    Dask takes some 25 ms of the processors to see tasks through its scheduler, and waits for each
    message; a call of the workers that hold the blocks takes a third of that.
    """

    def __init__(self) -> None:
        self._groups: dict[str, list[list[object]]] = {}
        self._since = 0.0

    def note(
        self, groups: Sequence[tuple[str, list[int]]], futures: Sequence[Future], seconds: float
    ) -> None:
        """Remember the groups of a pass, and that it took so long."""
        self._groups, self._since = {}, time.monotonic()
        if seconds <= _SHORT and all(worker for worker, _ in groups):
            for worker, numbers in groups:
                keys = [futures[number].key for number in numbers]
                self._groups.setdefault(worker, []).append(keys)

    def ask(
        self, client: Client, sweep: Sweep[State, Partial], state: State
    ) -> list[tuple[int, Partial]] | None:
        """Return what each block contributes; None where tasks have to find that out.

        They do so where a worker or a block is gone, and where a sum fails: a task says why.
        """
        if not self._groups or time.monotonic() - self._since > _TRUSTED:
            return None
        begun, found = time.monotonic(), {}
        try:
            workers, task = list(self._groups), LocalGroup(sweep, state)
            if len(client.nthreads(workers)) == len(workers):  # a lost one is called for long
                found = client.run(sum_here, task, self._groups, workers=workers)
        except Exception:  # whatever became of the workers
            found = {}
        if len(found) < len(self._groups) or any(one is None for one in found.values()):
            self._groups = {}
            return None
        if time.monotonic() - begun > _SHORT:
            self._groups = {}
        return [one for part in found.values() for one in part]


async def sum_here(
    task: LocalGroup[State, Partial], groups: Mapping[str, list[list[object]]], dask_worker: Worker
) -> list[tuple[int, Partial]] | None:
    """Run a task on the groups of blocks of a worker, in its threads; None where that fails."""
    loop, pool = asyncio.get_running_loop(), dask_worker.executors["default"]
    try:
        blocks = [[dask_worker.data[key] for key in keys] for keys in groups[dask_worker.address]]
        sums = [loop.run_in_executor(pool, task, *group) for group in blocks]
        return [one for part in await asyncio.gather(*sums) for one in part]
    except Exception:  # a task will say what it is
        return None


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
