"""Passes that several fits make together: the rows are read once for all of them.

Each fit runs in a thread of its own and asks its source for one pass after another. A pass is made
when every fit that has not ended waits for one: all their sweeps go over the blocks at once. What a
fit is answered does not depend on the company, so that its answer is the one that it would have
come to alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from os import PathLike
from threading import Condition
from typing import Any, TypeVar

import numpy as np

from toprank._numerics import FloatArray
from toprank.blocks.columns import Columns
from toprank.blocks.source import Block, BlockSource, Partial, Scores, State, Sweep
from toprank.blocks.threads import Stopped, thread_pool

Result = TypeVar("Result")


@dataclass(frozen=True)
class Several:
    """Several sweeps in one pass; the state and what they gather are lists, in their order."""

    sweeps: tuple[Sweep[Any, Any], ...]
    readers: tuple[int, ...]  #: whose they are: a reader finds again what it kept with a block

    @property
    def needs_features(self) -> bool:
        return any(getattr(sweep, "needs_features", True) for sweep in self.sweeps)

    def local(self, block: Block, states: Sequence[object]) -> list[object]:
        if len(self.sweeps) > 1 and isinstance(block.X, Columns) and block.X.shape[1]:
            # columns of a file become rows once, not once for every sweep
            block = replace(block, X=np.ascontiguousarray(block.X[:]))
        return [
            sweep.local(block.for_reader(reader), state)
            for reader, sweep, state in zip(self.readers, self.sweeps, states, strict=True)
        ]

    def merge(self, left: Sequence[object], right: Sequence[object]) -> list[object]:
        return [sweep.merge(a, b) for sweep, a, b in zip(self.sweeps, left, right, strict=True)]


class _Meeting:
    """What the fits ask for, and what they are answered."""

    def __init__(self, n_fits: int) -> None:
        self._changed = Condition()
        self._active = n_fits
        self._asked: dict[int, tuple[Sweep[Any, Any], object]] = {}
        self._answers: dict[int, object] = {}
        self._failure: BaseException | None = None
        self._closed = False

    def ask(self, place: int, sweep: Sweep[State, Partial], state: State) -> Any:
        """Wait for the answer to a pass; called by the fits."""
        with self._changed:
            self._asked[place] = (sweep, state)
            self._changed.notify_all()
            self._changed.wait_for(lambda: place in self._answers or self._closed)
            if place not in self._answers:
                raise Stopped
            return self._answers.pop(place)

    def end(self, failure: BaseException | None = None) -> None:
        """Say that a fit has ended; called by the fits."""
        with self._changed:
            self._active -= 1
            self._failure = self._failure or failure
            self._changed.notify_all()

    def next_pass(self) -> dict[int, tuple[Sweep[Any, Any], object]]:
        """Wait until everybody waits; what they ask for, in their order, or nothing at the end."""
        with self._changed:
            while self._failure is None and len(self._asked) < self._active:
                self._changed.wait(0.1)  # an interrupt is heard between two waits
            if self._failure is not None:
                raise self._failure
            asked = dict(sorted(self._asked.items()))
            self._asked = {}
            return asked

    def answer(self, answers: dict[int, object]) -> None:
        with self._changed:
            self._answers.update(answers)
            self._changed.notify_all()

    def close(self) -> None:
        """Send home whoever still waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class _Member(BlockSource):
    """The source as one of the fits sees it."""

    def __init__(self, source: BlockSource, meeting: _Meeting, place: int):
        self.source = source
        self._meeting = meeting
        self._place = place
        for name in ("n_features", "feature_names", "n_jobs", "keeps_samples", "reads_anew"):
            setattr(self, name, getattr(source, name))
        self.checked, self.in_memory = source.checked, source.in_memory
        self.grouped = source.grouped

    def map_reduce(self, sweep: Sweep[State, Partial], state: State) -> Partial:
        answer: Partial = self._meeting.ask(self._place, sweep, state)
        return answer

    def start_threads(self, n_jobs: int | None = None) -> AbstractContextManager[object]:
        return nullcontext()  # those of the passes are started around all of them

    def expect_passes(self) -> None:
        self.source.expect_passes()

    def name_of(self, index: int) -> str:
        return self.source.name_of(index)

    def thin(self, pick: Callable[[Block], Block]) -> BlockSource:
        return self.source.thin(pick)

    def cheap_curvature(self, n_rows: int) -> bool:
        return self.source.cheap_curvature(n_rows)

    def write_scores(
        self, score: Callable[..., FloatArray], to: str | PathLike[str] | None = None
    ) -> Scores:
        raise TypeError("Scores are written after the fits that share their passes.")


def share_passes(
    source: BlockSource,
    fits: Sequence[Callable[[BlockSource], Result]],
    passes: Counter[str] | None = None,
) -> list[Result]:
    """Run several fits over one source, and read it once for each pass that they make.

    Parameters
    ----------
    source : BlockSource
    fits : sequence of callables
        Each takes a source and passes over it as often as it likes.
    passes : Counter, optional
        Counts the passes that were made over the source, by what the first fit asked for.

    Returns
    -------
    list
        What the fits return, in their order.

    Examples
    --------
    >>> from collections import Counter
    >>> from toprank import PNormPush, blocks
    >>> from toprank.blocks.shared import share_passes
    >>> from toprank.datasets import load_wdbc
    >>> X, y = load_wdbc(return_X_y=True)
    >>> source, passes = blocks.from_arrays(X, y), Counter()
    >>> rankers = share_passes(
    ...     source, [lambda rows, p=p: PNormPush(p).fit_blocks(rows) for p in (2, 4, 8)], passes
    ... )
    >>> bool((rankers[1].coef_ == PNormPush(4).fit_blocks(source).coef_).all())
    True
    >>> passes["labels"]
    1
    """
    meeting = _Meeting(len(fits))
    members = [_Member(source, meeting, place) for place in range(len(fits))]

    def fit_one(fit: Callable[[BlockSource], Result], member: _Member) -> Result:
        failure: BaseException | None = None
        try:
            return fit(member)
        except BaseException as problem:
            failure = problem
            raise
        finally:
            meeting.end(failure)

    with thread_pool(max(1, len(fits)), "toprank-fit") as pool:
        try:
            running = [
                pool.submit(fit_one, fit, member) for fit, member in zip(fits, members, strict=True)
            ]
            while asked := meeting.next_pass():
                sweep = Several(tuple(sweep for sweep, _ in asked.values()), tuple(asked))
                if passes is not None:
                    passes[_name_of(sweep.sweeps[0])] += 1
                found = source.map_reduce(sweep, [state for _, state in asked.values()])
                meeting.answer(dict(zip(asked, found, strict=True)))
            return [one.result() for one in running]
        finally:
            meeting.close()


def _name_of(sweep: Any) -> str:
    """What a pass is counted as: the sweep behind parts of rows and company."""
    while hasattr(sweep, "sweep") or hasattr(sweep, "sweeps"):
        sweep = sweep.sweep if hasattr(sweep, "sweep") else sweep.sweeps[0]
    return type(sweep).__name__.lower()
