"""The rows that probabilities are fitted to: scored by trees that have not seen them, or some."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.rankers.trees.plan import TreeRows
from toprank.rankers.trees.row_folds import fold_of_rows, have_pairs

_FOLDS = 3
#: Rows of each class that probabilities are fitted to at least.
_FEWEST = 10

#: Rows of each class at most that probabilities are fitted to where they are those trained on: a
#: link has two numbers, and scoring 1,000,000 rows takes a quarter as long as growing the trees.
_MOST_PER_CLASS = 50_000

#: Grows trees on some rows, and returns the scores of others.
Score = Callable[[TreeRows, TreeRows], FloatArray]


def score_out_of_fold(rows: TreeRows, score: Score) -> FloatArray | None:
    """Return the score of each row by trees grown on other rows; None where there are too few.

    Equal rows stay together, so that a weight is a repetition, and the order does not matter.
    """
    if min(np.count_nonzero(rows.y), np.count_nonzero(~rows.y)) < _FEWEST:
        return None
    fold = fold_of_rows(rows, _FOLDS)
    scores = np.empty(len(rows))
    for j in range(_FOLDS):
        test = np.flatnonzero(fold == j)
        train = np.flatnonzero(fold != j)
        seen, unseen = rows.take(train), rows.take(test)
        if not (have_pairs(seen) and have_pairs(unseen)):
            return None
        scores[test] = score(seen, unseen)
    return scores


def thin_classes(rows: TreeRows, most: int = _MOST_PER_CLASS) -> TreeRows:
    """Return at most so many rows of each class, evenly spaced, that weigh as much as all."""
    keep: list[NDArray[np.intp]] = []
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight.copy()
    for positive in (False, True):
        mine = np.flatnonzero(rows.y == positive)
        kept = mine[:: -(-len(mine) // most)] if len(mine) else mine
        weight[kept] *= np.sum(weight[mine]) / np.sum(weight[kept]) if len(kept) else 1.0
        keep.append(kept)
    chosen = np.sort(np.concatenate(keep))
    if len(chosen) == len(rows):
        return rows
    return replace(rows, weight=weight).take(chosen)
