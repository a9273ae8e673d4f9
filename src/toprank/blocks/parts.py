"""Some of the rows of a block source: the folds of a cross-validation, rows kept aside.

A part is chosen row by row where the rows lie, by a hash of the row or of its group, or by time.
Nothing is copied: the rows outside have weight zero, which is to be absent.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Generic, Protocol

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import IntArray
from toprank._numerics import FloatArray
from toprank.blocks.row_keys import hash_rows, hash_values
from toprank.blocks.source import Block, BlockSource, Partial, Scores, State, Sweep

#: The fold of a row that is kept aside.
_ASIDE = -1


class Folds(Protocol):
    """Which rows are chosen on ("inner"), kept aside ("aside"), trained on and tested by fold."""

    @property
    def n_folds(self) -> int: ...

    @property
    def needs_features(self) -> bool: ...

    def holds(self, block: Block, part: str, fold: int = 0) -> NDArray[np.bool_]:
        """Return which rows of a block belong to a part."""
        ...


@dataclass(frozen=True)
class HashFolds:
    """Folds by a hash of the rows, or of their groups, drawn ``repeats`` times.

    ``aside`` is the share of the rows that no fold sees.
    """

    n_splits: int
    seed: int = 0
    aside: float = 0.0
    by_group: bool = False
    repeats: int = 1

    @property
    def n_folds(self) -> int:
        return self.n_splits * self.repeats

    @property
    def needs_features(self) -> bool:
        return not self.by_group

    def holds(self, block: Block, part: str, fold: int = 0) -> NDArray[np.bool_]:
        drawn = self.numbers(block, fold // self.n_splits)
        if part == "aside":
            return np.asarray(drawn == _ASIDE)
        if part == "inner":
            return np.asarray(drawn != _ASIDE)
        tested = np.asarray(drawn == fold % self.n_splits)
        return tested if part == "test" else ~tested & (drawn != _ASIDE)

    def numbers(self, block: Block, repeat: int = 0) -> NDArray[np.int32]:
        """Return the fold of each row of a block, -1 where it is kept aside; found once."""
        key = ("folds", self, repeat)
        if key not in block.facts:
            block.facts[key] = self._draw(block, repeat)
        drawn: NDArray[np.int32] = block.facts[key]
        return drawn

    def _draw(self, block: Block, repeat: int) -> NDArray[np.int32]:
        what = self._of_groups if self.by_group else self._of_rows
        place = what(block, self.seed)
        drawn = (place - self.aside) / (1.0 - self.aside)
        if repeat:  # other folds of the rows that are not kept aside
            drawn = np.where(drawn < 0, drawn, what(block, self.seed + repeat))
        fold = np.minimum(np.floor(drawn * self.n_splits), self.n_splits - 1)
        return np.where(place < self.aside, _ASIDE, fold).astype(np.int32)

    def _of_rows(self, block: Block, seed: int) -> FloatArray:
        X = block.X.cpu().numpy() if hasattr(block.X, "cpu") else block.X
        return _shares(hash_rows(X, seed))

    def _of_groups(self, block: Block, seed: int) -> FloatArray:
        return _shares(hash_values(_groups_of(block), seed))


@dataclass(frozen=True)
class TimeFolds:
    """Folds in the order of time: each trains from one time to another, and tests after it.

    Each fold is (first time trained on, last trained on, first tested, last tested), both ends
    included; ``inner`` is the last time to choose on, ``after`` the first that is kept aside.
    """

    folds: tuple[tuple[Any, Any, Any, Any], ...]
    inner: Any = None
    after: Any = None
    needs_features = False

    @property
    def n_folds(self) -> int:
        return len(self.folds)

    def holds(self, block: Block, part: str, fold: int = 0) -> NDArray[np.bool_]:
        time = np.asarray(_groups_of(block))
        if part == "aside":
            return np.zeros(len(time), dtype=bool) if self.after is None else time >= self.after
        if part == "inner":
            return np.ones(len(time), dtype=bool) if self.inner is None else time <= self.inner
        oldest, known, first, last = self.folds[fold]
        low, high = (first, last) if part == "test" else (oldest, known)
        return np.asarray((time >= low) & (time <= high))


def _shares(keys: NDArray[np.uint64]) -> FloatArray:
    """Numbers in [0, 1) from all bits but the last eleven, which no float64 holds."""
    return (keys >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _groups_of(block: Block) -> IntArray:
    if block.groups is None:
        raise ValueError(
            "The source has no groups to make folds by: pass groups= (arrays) or group= (the name "
            "of a column) when it is made."
        )
    return block.groups


@dataclass(frozen=True)
class Pick:
    """Leaves the rows of one part of a block their weight; the others have none."""

    folds: Folds
    part: str
    fold: int = 0

    def __call__(self, block: Block) -> Block:
        inside = self.folds.holds(block, self.part, self.fold)
        weight = inside.astype(np.float64)
        if block.weight is not None:
            # not a product: a weight that is no number must stay one that is refused
            weight = np.where(inside, np.asarray(block.weight, dtype=np.float64), 0.0)
        return replace(block.for_reader(self), weight=weight)


@dataclass(frozen=True)
class _OnPart(Generic[State, Partial]):
    """A sweep over the rows of one part."""

    sweep: Sweep[State, Partial]
    pick: Pick

    @property
    def needs_features(self) -> bool:
        return self.pick.folds.needs_features or getattr(self.sweep, "needs_features", True)

    def local(self, block: Block, state: State) -> Partial:
        return self.sweep.local(self.pick(block), state)

    def merge(self, left: Partial, right: Partial) -> Partial:
        return self.sweep.merge(left, right)


@dataclass(frozen=True)
class _PickTwice:
    """A sample of the rows of one part."""

    sample: Callable[[Block], Block]
    pick: Pick

    def __call__(self, block: Block) -> Block:
        return self.sample(self.pick(block))


class PartOfRows(BlockSource):
    """The rows of one part of a source; passes go to the source itself."""

    def __init__(self, source: BlockSource, folds: Folds, part: str, fold: int = 0):
        self.source = source
        self.pick = Pick(folds, part, fold)
        for name in ("n_features", "feature_names", "n_jobs", "keeps_samples", "reads_anew"):
            setattr(self, name, getattr(source, name))
        self.checked, self.in_memory = source.checked, source.in_memory
        self.grouped = source.grouped
        whole = {"inner": "beside those kept aside", "aside": "among those kept aside"}
        self.part = whole.get(part, f"in fold {fold} to {part}" + " on" * (part == "train"))

    def map_reduce(self, sweep: Sweep[State, Partial], state: State) -> Partial:
        total: Partial = self.source.map_reduce(_OnPart(sweep, self.pick), state)
        return total

    def read(self, *, features: bool = True) -> Generator[Block, None, None]:
        """Yield the blocks in order, where the source is one that this process reads."""
        source: Any = self.source
        for block in source.read(features=features or self.pick.folds.needs_features):
            yield self.pick(block)

    def start_threads(self, n_jobs: int | None = None) -> AbstractContextManager[object]:
        return self.source.start_threads(n_jobs)

    def expect_passes(self) -> None:
        self.source.expect_passes()

    def name_of(self, index: int) -> str:
        return self.source.name_of(index)

    def identity(self) -> bytes:
        return self.source.identity()

    def thin(self, pick: Callable[[Block], Block]) -> BlockSource:
        return self.source.thin(_PickTwice(pick, self.pick))

    def cheap_curvature(self, n_rows: int) -> bool:
        return self.source.cheap_curvature(n_rows)

    def write_scores(
        self, score: Callable[..., FloatArray], to: str | PathLike[str] | None = None
    ) -> Scores:
        raise TypeError("A part of a source cannot be scored into files; score the source itself.")
