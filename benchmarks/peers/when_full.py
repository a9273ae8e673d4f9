"""When does the push help, at full size? p in straight lines and in trees, positives thinned.

Sets, splits and training rows are those of `full`, ten splits at most. Then the positives of every
set with at least ``MANY_POSITIVES`` are thinned to a share of them, in training and test rows
alike; the negatives stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import toprank

from .cells import measured
from .data import Data, by_size, load
from .full import LIMIT, splits
from .harness import Clock, say
from .rankers import Ranker, standardised
from .store import Store
from .when import FEWEST, MANY_POSITIVES, keep_positives

QUESTION = "full size"
SPLITS, SPLITS_OF_THINNED = 10, 5
#: Shares of the positives that are kept.
SHARES = (1.0, 1 / 4, 1 / 16, 1 / 64)


def _linear(p: float) -> Callable[[], Any]:
    return lambda: standardised(toprank.PNormPush(p))


def _trees(p: float | None) -> Callable[[], Any]:
    # probabilities, which three more fits would serve, are not measured
    return lambda: toprank.PushTrees(
        p, calibration="training", early_stopping=False, random_state=0
    )


def _logistic() -> Any:
    return standardised(LogisticRegression(max_iter=2000))


LOGISTIC, BINARY = "logistic regression", "trees, binary objective"
RANKERS = {
    one.name: one
    for one in (
        Ranker(LOGISTIC, "linear", "sklearn", _logistic),
        *(Ranker(f"linear, p = {p}", "linear", "toprank", _linear(p)) for p in (1, 4, 64)),
        Ranker(BINARY, "trees", "lightgbm", _trees(None)),
        *(Ranker(f"trees, p = {p}", "trees", "lightgbm", _trees(p)) for p in (1, 4, 16)),
    )
}
#: A push, and the same ranker without one.
CONTESTS = (
    ("linear, p = 4", "linear, p = 1"),
    ("linear, p = 64", "linear, p = 1"),
    ("linear, p = 4", LOGISTIC),
    ("trees, p = 4", "trees, p = 1"),
    ("trees, p = 16", "trees, p = 1"),
    ("trees, p = 4", BINARY),
)

Cell = tuple[str, int, float, Data, Any, Any]


def run(store: Store, folder: Path, sets: tuple[str, ...], n_splits: int = SPLITS) -> None:
    """Measure what is not in the store yet, split by split over all sets."""
    missing = {name: ranker.missing for name, ranker in RANKERS.items()}
    tables = [load(name, folder) for name in by_size(sets, folder)]
    jobs = [cell for number in range(n_splits) for cell in _cells(tables, number)]
    clock = Clock(len(jobs) * len(RANKERS))
    for name, number, share, data, train, test in jobs:
        for ranker in RANKERS.values():
            key = (QUESTION, name, ranker.name, number, share)
            if key in store or missing[ranker.name]:
                clock.skip()
                continue
            outcome = measured(ranker, data, train, test, LIMIT)
            facts = {"positives": int(data.y[train].sum()), "train": len(train)}
            store.add(key, {**outcome.values, **facts}, outcome.costs)
            say(f"{clock.tick()} {share:.3g} · {name} · {ranker.name} · split {number}")


def _cells(tables: list[Data], number: int) -> Iterator[Cell]:
    for data in tables:
        train, test = list(splits(data))[number]
        yield data.name, number, 1.0, data, train, test
        if data.positives < MANY_POSITIVES or number >= SPLITS_OF_THINNED:
            continue
        rng = np.random.default_rng([4, number])
        train, test = rng.permutation(train), rng.permutation(test)
        for share in SHARES[1:]:
            few = keep_positives(train, data.y, share)
            if data.y[few].sum() >= FEWEST:
                yield data.name, number, share, data, few, keep_positives(test, data.y, share)
