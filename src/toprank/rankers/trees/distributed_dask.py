"""Trees on a Dask cluster: every worker grows them on the chunks it holds.

The workers speak through XGBoost's communicator, whose meeting point is on the first of them.
Chunks are computed once and stay where they are. One fit at a time uses a worker; if a worker is
lost the fit fails, and says so. A fit that fails or is interrupted is stopped on all workers.

A thread cannot be ended from outside. A fit asks before every round whether it is still wanted; one
that waits for other workers hears of it when their meeting point closes.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import validate_data

from toprank._arrays import TableLike
from toprank._extras import require
from toprank.blocks.dask import aligned_parts
from toprank.blocks.threads import Stopped, go_on, stop_where
from toprank.interop.team import xgboost_team
from toprank.rankers.trees.distributed import (
    Learned,
    Part,
    grow_together,
    ready_to_ship,
    with_start,
)

if TYPE_CHECKING:
    from distributed import Client, Future
    from xgboost.tracker import RabitTracker

#: Seconds between two looks at whether all workers are still there.
_LOOK = 0.5
#: Seconds that the other workers have to end after one has failed or all were stopped.
_GRACE = 10.0
#: Seconds that workers have to end a round before their meeting point is closed.
_PATIENCE = 3.0


class Runs:
    """What goes on in this process, by the name of the fit."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._busy: list[str] = []  # a name for each thread: workers may share a process
        self._trackers: dict[str, RabitTracker] = {}
        self._stopped: set[str] = set()

    @contextmanager
    def part_of(self, run: str) -> Iterator[None]:
        """Work for a fit; `go_on` raises where it was stopped."""
        with self._lock:
            self._busy.append(run)
        try:
            with stop_where(lambda: run in self._stopped):
                yield
        finally:
            with self._lock:
                self._busy.remove(run)

    def meet(self, run: str, tracker: RabitTracker) -> None:
        """Keep a meeting point until the workers part."""
        with self._lock:
            self._trackers[run] = tracker
        Thread(target=self._wait, args=(run, tracker), daemon=True, name="toprank-tracker").start()

    def _wait(self, run: str, tracker: RabitTracker) -> None:
        with suppress(Exception):  # it was closed, or a worker was lost: the workers say so
            tracker.wait_for()
        with self._lock:
            self._trackers.pop(run, None)

    def stop(self, run: str, close: bool) -> bool:
        """Stop a fit, and return whether any of its threads is still busy.

        Threads that are busy stop at their next round, together. ``close`` closes the meeting
        point too, for those that wait there for somebody who will not come.
        """
        self._stopped.add(run)
        with self._lock:
            tracker = self._trackers.pop(run, None) if close else None
        if tracker is not None:
            # in a thread: it waits for the meeting point to close
            Thread(target=self._close, args=(tracker,), daemon=True, name="toprank-close").start()
        with self._lock:
            return run in self._busy

    @staticmethod
    def _close(tracker: RabitTracker) -> None:
        with suppress(Exception):  # it complains of the workers that never came
            tracker.free()


RUNS = Runs()


def stop(run: str, close: bool) -> bool:
    """Stop a fit on this worker, and return whether any of its threads is still busy."""
    return RUNS.stop(run, close)


def fit_dask(
    trees: object,
    client: Client,
    X: TableLike,
    y: ArrayLike,
    rows: Mapping[str, object],
    eval_set: Sequence[Any] | None,
) -> Any:
    """Fit a `PushTrees` that is prepared to Dask collections; see `PushTrees.fit_dask`."""
    require("distributed", "dask")
    require("xgboost", "xgboost")
    _name_columns(trees, X)
    parts, empty = _submit_parts(client, X, y, rows), [_empty(X, rows)]
    held: list[Future] = []
    none_held = None
    try:
        if eval_set is not None:
            held_X, held_y, *groups = eval_set
            columns = {"groups": groups[0] if groups else None}
            held = _submit_parts(client, held_X, held_y, columns)
            none_held = [_empty(held_X, columns)]
        mine, theirs = _by_worker(client, parts), _by_worker(client, held)
        tasks = {
            worker: (mine.get(worker, empty), theirs.get(worker, none_held))
            for worker in sorted({*mine, *theirs})
        }
        with _exclusive(client, list(tasks)):
            return _run_tasks(client, trees, tasks).hand_to(trees)
    except BaseException:
        with suppress(Exception):  # the cluster may be gone
            client.cancel([*parts, *held], force=True)  # a traceback would keep them
        raise


@contextmanager
def _exclusive(client: Client, workers: list[str]) -> Iterator[None]:
    """Wait until no other fit uses the workers, and keep them until this one ends."""
    lock = require("distributed", "dask").MultiLock(names=workers, client=client)
    try:
        lock.acquire()
        yield
    finally:
        # by its name: one that was interrupted while it waited does not know what it holds
        with suppress(Exception):
            client.sync(client.scheduler.multi_lock_release, id=lock.id)


def _name_columns(trees: Any, X: Any) -> None:
    """Keep the number and the names of the columns, as any estimator does."""
    if hasattr(X, "_meta_nonempty"):
        validate_data(trees, X._meta_nonempty, skip_check_array=True)
        return
    if hasattr(trees, "feature_names_in_"):
        del trees.feature_names_in_
    trees.n_features_in_ = int(X.shape[1])


def _submit_parts(
    client: Client, X: TableLike, y: ArrayLike, rows: Mapping[str, object]
) -> list[Future]:
    """The chunks on their workers, as futures of `Part`."""
    dask = require("dask", "dask")
    names = ("sample_weight", "groups", "init_score")
    columns = {name: rows.get(name) for name in names}
    make = dask.delayed(Part.of, pure=False)
    token = f"toprank-part-{uuid4().hex[:12]}"
    delayed = [
        make(index, *part, dask_key_name=(token, index))
        for index, part in enumerate(aligned_parts(X, y=y, **columns))
    ]
    return list(client.compute(delayed))


def _empty(X: Any, rows: Mapping[str, object]) -> Part:
    """What a worker without a chunk has: no rows, of the same columns."""
    meta = X._meta if hasattr(X, "_meta_nonempty") else np.empty((0, int(X.shape[1])))
    none = {name: None if column is None else np.zeros(0) for name, column in rows.items()}
    return Part.of(
        -1, meta, np.zeros(0), *(none.get(n) for n in ("sample_weight", "groups", "init_score"))
    )


def _by_worker(client: Client, parts: Sequence[Future]) -> dict[str, list[Future]]:
    """Which parts lie on which worker; one that lies on several goes to the least busy."""
    if not parts:
        return {}
    holders: Mapping[str, Sequence[str]] = {}
    while not all(holders.get(part.key) for part in parts):  # a worker may be lost meanwhile
        require("distributed", "dask").wait(parts)
        failed = [part for part in parts if part.status == "error"]
        if failed:
            failed[0].result()  # raises what went wrong there
        holders = client.who_has(parts)
    chosen: dict[str, list[Future]] = defaultdict(list)
    for part in parts:
        lying = sorted(holders[part.key], key=lambda worker: (len(chosen[worker]), worker))
        chosen[lying[0]].append(part)
    return {worker: own for worker, own in chosen.items() if own}


def _run_tasks(
    client: Client, trees: object, tasks: Mapping[str, tuple[object, object]]
) -> Learned:
    """Grow the trees on all workers at once; whatever ends that early ends it everywhere."""
    run = uuid4().hex[:12]
    futures: list[Future] = []
    try:
        futures += _start(client, trees, tasks, run)
        _wait(client, futures, list(tasks))
        return futures[0].result()
    except BaseException:
        with suppress(Exception):  # the cluster may be gone
            client.cancel(futures, force=True)
        with suppress(Exception):
            _stop(client, tasks, run)
        raise


def _start(
    client: Client, trees: Any, tasks: Mapping[str, tuple[object, object]], run: str
) -> list[Future]:
    """Start one task per worker; the first returns what it has learned."""
    workers = list(tasks)
    host = workers[0].split("://")[-1].rsplit(":", 1)[0]
    try:
        found = client.run(start_tracker, len(workers), host, run, workers=workers[:1])
        tracker = found[workers[0]]
    except (KeyError, OSError, ValueError) as problem:
        raise RuntimeError(_went_away(workers[:1])) from problem
    shipped, threads = ready_to_ship(trees), client.nthreads()
    return [
        client.submit(
            _grow,
            shipped,
            threads[worker],
            *tasks[worker],
            {**tracker, "dmlc_task_id": f"{rank:06d}"},
            run,
            workers=[worker],
            allow_other_workers=False,
            pure=False,
            key=f"toprank-trees-{run}-{rank}",
        )
        for rank, worker in enumerate(workers)
    ]


def _stop(client: Client, workers: Iterable[str], run: str) -> None:
    """Tell the workers that the trees are not wanted any more, and see that they hear it."""
    begun, busy, close = time.monotonic(), True, False
    while (busy or not close) and time.monotonic() < begun + _GRACE:
        close = not busy or time.monotonic() > begun + _PATIENCE
        here = sorted(set(workers) & set(client.nthreads()))
        found = client.run(stop, run, close, workers=here, on_error="ignore") if here else {}
        busy = any(found.values())
        time.sleep(0.05 if busy else 0.0)


def _wait(client: Client, futures: list[Future], workers: list[str]) -> None:
    """Wait for all tasks, but not for a worker that is gone nor after one has failed."""
    distributed = require("distributed", "dask")
    failed_at = np.inf
    while not all(future.done() for future in futures) and time.monotonic() < failed_at + _GRACE:
        missing = sorted(set(workers) - set(client.nthreads()))
        if missing:
            raise RuntimeError(_went_away(missing))
        if any(future.status == "error" for future in futures):
            failed_at = min(failed_at, time.monotonic())
        try:
            distributed.wait(futures, timeout=_LOOK)
        except TimeoutError:
            continue
    problems = [future.exception() for future in futures if future.status == "error"]
    # a worker that fails breaks the line to the others: theirs is not the cause
    causes = [error for error in problems if type(error).__name__ != "XGBoostError"]
    if problems:
        raise (causes or problems)[0]


def _went_away(workers: Sequence[str]) -> str:
    return (
        f"The worker{'s' * (len(workers) > 1)} {', '.join(workers)} went away while the trees were "
        "grown: a round needs all of them. Nothing was fitted; fit again, on the workers that are "
        "left."
    )


def start_tracker(n_workers: int, host: str, run: str) -> dict[str, str | int]:
    """Start what brings the workers together; it ends when they part, or are stopped."""
    from xgboost.tracker import RabitTracker

    tracker = RabitTracker(n_workers=n_workers, host_ip=host, sortby="task")
    tracker.start()
    RUNS.meet(run, tracker)
    return dict(tracker.worker_args())


def _grow(
    trees: Any,
    n_threads: int,
    parts: list[Part],
    held: list[Part] | None,
    communicator: dict[str, str | int],
    run: str,
) -> Learned | None:
    """What one worker does; the first returns what was learned."""
    from xgboost.collective import CommunicatorContext

    trees = copy(trees)  # workers in one process share what they are sent
    trees.n_jobs = n_threads if trees.n_jobs is None else trees.n_jobs
    try:
        with RUNS.part_of(run):
            parts = with_start(trees, parts)
            held = None if held is None else with_start(trees, held)
            go_on()
            with CommunicatorContext(**communicator):
                team = xgboost_team()
                learned = grow_together(trees, parts, held, team)
                return learned if team.rank == 0 else None
    except Stopped:  # nobody waits for an answer
        return None
