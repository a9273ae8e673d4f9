"""Every cell that is asked for and not yet in the store, with progress."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from .cells import failure, measured
from .data import TRAIN_ROWS, Cut, Data, by_size, load, splits
from .rankers import NOT_INSTALLED, RANKERS, Ranker
from .store import Key, Store


@dataclass(frozen=True)
class Plan:
    """What to run."""

    sets: tuple[str, ...]
    rankers: tuple[str, ...]
    n_splits: int = 5
    train_rows: int = TRAIN_ROWS
    limit: float = 60.0  # seconds of processor time a cell may take


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run(plan: Plan, folder: Path, store: Store) -> None:
    """Split by split over all sets, so that a run cut short has something of each."""
    missing = {name: RANKERS[name].missing for name in plan.rankers}
    compile_ours(plan.rankers)
    cuts: dict[str, list[Cut]] = {}
    clock = Clock(plan.n_splits * len(plan.sets) * len(plan.rankers))
    for number in range(plan.n_splits):
        for name in by_size(plan.sets, folder):
            data = load(name, folder)
            if name not in cuts:
                cuts[name] = list(splits(data, plan.n_splits, train_rows=plan.train_rows))
                describe(store, data, cuts[name][0], plan)
            for ranker in plan.rankers:
                key = ("cell", name, ranker, number, plan.train_rows)
                if done(store, key, missing[ranker]):
                    clock.skip()
                elif why := missing[ranker]:
                    clock.skip()
                    store.add(key, failure(why).values, {})
                else:
                    one(key, RANKERS[ranker], data, cuts[name][number], plan, store, clock)


def done(store: Store, key: Key, missing: str | None) -> bool:
    """Whether a cell needs no run: its library has not come to be installed since."""
    if key not in store:
        return False
    failed = store.cells[key]["values"].get("failed", "")
    return missing is not None or not failed.startswith(NOT_INSTALLED)


def compile_ours(names: Iterable[str]) -> None:
    """Load compiled code once, before the cells' processes are forked from this one."""
    rng = np.random.default_rng(0)
    few = Data("few", rng.normal(size=(40, 3)), np.arange(40) % 2)
    for name in names:
        if RANKERS[name].compiled:
            RANKERS[name].make().fit(few.X, few.y)


def describe(store: Store, data: Data, cut: Cut, plan: Plan) -> None:
    """Keep what the page says of a set beside its results."""
    key = ("set", data.name, plan.train_rows)
    if key not in store:
        facts = {"positives": data.positives, "negatives": data.negatives}
        facts |= {"features": data.X.shape[1], "groups": data.groups is not None}
        store.add(key, {**facts, "train": len(cut[0]), "test": len(cut[1])}, {})


def one(
    key: Key, ranker: Ranker, data: Data, cut: Cut, plan: Plan, store: Store, clock: Clock
) -> None:
    outcome = measured(ranker, data, *cut, plan.limit)
    store.add(key, outcome.values, outcome.costs, settings=outcome.settings)
    found = outcome.values.get("failed") or f"{outcome.costs['fit_s']:.2f} s"
    say(f"{clock.tick()} {data.name} · {ranker.name} · split {key[3]}: {found}")


class Clock:
    """How many of the cells are done, and how long the rest may take."""

    def __init__(self, total: int):
        self.total, self.done, self.measured = total, 0, 0
        self.start = perf_counter()

    def skip(self) -> None:
        self.done += 1

    def tick(self) -> str:
        self.done += 1
        self.measured += 1
        left = (perf_counter() - self.start) / self.measured * (self.total - self.done)
        return f"[{self.done}/{self.total}, about {left / 60:.0f} min left]"


def chosen(names: Iterable[str] | None, known: Iterable[str], what: str) -> tuple[str, ...]:
    """The names asked for, all by default; unknown ones are an error that lists the known."""
    known = tuple(known)
    if names is None:
        return known
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise SystemExit(f"Unknown {what} {unknown}: expected some of {list(known)}.")
    return tuple(names)
