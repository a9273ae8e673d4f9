"""When does the push help? p against the imbalance of the classes and the size of the sample.

(p against the hypothesis space is in the harness's own record.) The sets are chosen by a rule, not
by their outcome: for the imbalance all with at least ``MANY_POSITIVES`` positives, thinned to a
share of them in training and test rows alike; for the sample size all with at least
``MANY_ROWS`` training rows, thinned classes in proportion.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .cells import measured
from .data import Data, by_size, load, splits, thinned
from .harness import Clock, say
from .rankers import BASELINE, RANKERS
from .store import Store

MANY_POSITIVES = 1_000
MANY_ROWS = 6_000
SHARES = (1.0, 0.25, 0.0625)
SIZES = (300, 1_000, 3_000, 10_000)
#: Training rows while the positives are thinned.
ROWS = 3_000
#: Fewer positives than this to train on say nothing.
FEWEST = 10
#: Without a push and with one, in each hypothesis space.
COMPARED = {
    "linear": ("PNormPush(p=1)", ("PNormPush(p=4)", "PNormPush(p=16)", "PNormPush(p=64)")),
    "stumps": ("RankBoost(p=1)", ("RankBoost(p=4)", "RankBoost(p=16)")),
    "trees": ("PushTrees(p=1)", ("PushTrees(p=4)", "PushTrees(p=16)")),
}
USUAL = {"linear": BASELINE, "stumps": "AdaBoost", "trees": "LightGBM binary"}
MEASURED = (
    BASELINE,
    "PNormPush(p=1)",
    "PNormPush(p=4)",
    "PNormPush(p=64)",
    "LightGBM binary",
    "PushTrees(p=1)",
    "PushTrees(p=4)",
)

Cell = tuple[str, str, int, float, Data, Any, Any]


def run(store: Store, folder: Path, sets: tuple[str, ...], n_splits: int, limit: float) -> None:
    """Measure what is not in the store yet, split by split over all sets."""
    tables = [load(name, folder) for name in by_size(sets, folder)]
    missing = {name: RANKERS[name].missing for name in MEASURED}
    cells = [cell for number in range(n_splits) for cell in _cells(tables, number, n_splits)]
    clock = Clock(len(cells) * len(MEASURED))
    for question, name, number, level, data, train, test in cells:
        for ranker in MEASURED:
            key = (question, name, ranker, number, level)
            if key in store or missing[ranker]:
                clock.skip()
                continue
            outcome = measured(RANKERS[ranker], data, train, test, limit)
            store.add(key, outcome.values, outcome.costs)
            say(f"{clock.tick()} {question} {level:g} · {name} · {ranker} · split {number}")


def _cells(tables: list[Data], number: int, n_splits: int) -> Iterator[Cell]:
    for data in tables:
        train, test = list(splits(data, n_splits, train_rows=len(data.y)))[number]
        if data.positives >= MANY_POSITIVES:
            yield from _thinner_positives(data, train, test, number)
        if len(train) >= MANY_ROWS:
            yield from _fewer_rows(data, train, test, number)


def _thinner_positives(data: Data, train: Any, test: Any, number: int) -> Iterator[Cell]:
    rng = np.random.default_rng([1, number])
    train = thinned(train, data.y, ROWS, seed=[2, number])
    order = {part: rng.permutation(rows) for part, rows in (("train", train), ("test", test))}
    for share in SHARES:
        few = {part: keep_positives(rows, data.y, share) for part, rows in order.items()}
        if data.y[few["train"]].sum() >= FEWEST:
            yield "imbalance", data.name, number, share, data, few["train"], few["test"]


def keep_positives(rows: Any, y: Any, share: float) -> Any:
    positive = rows[y[rows] == 1]
    kept = positive[: max(1, round(share * len(positive)))]
    return np.sort(np.concatenate([rows[y[rows] == 0], kept]))


def _fewer_rows(data: Data, train: Any, test: Any, number: int) -> Iterator[Cell]:
    for size in SIZES:
        rows = thinned(train, data.y, size, seed=[3, number, size])
        enough = FEWEST <= data.y[rows].sum() <= len(rows) - FEWEST
        if enough and (len(train) >= size or size == SIZES[-1]):
            yield "sample size", data.name, number, size, data, rows, test
