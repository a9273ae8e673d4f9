"""The largest height over rows that lie elsewhere: a problem of few rows, known here.

Of the negatives the objective of p = inf sees the highest alone. Over all positives and some of the
negatives it is no larger than over all rows, and at a minimum of it where no other negative stands
higher the two agree: that is the minimum over all rows. So the positives are brought here once,
and with every pass the negatives that stand highest by the last coefficients; between two passes
the problem of these rows is solved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from toprank._arrays import Matrix
from toprank._numerics import FloatArray
from toprank.blocks.source import Block, join_pieces
from toprank.objective.data import LabelledData
from toprank.objective.forms import LargestHeight, problem_of
from toprank.objective.labelled import View, open_block
from toprank.prices import Max

#: Bytes of the positives that are brought here, at most.
_MOST_BYTES = 1 << 28
#: The highest negatives that a pass brings: so many, and so many per feature.
_HIGHEST, _HIGHEST_PER_FEATURE = 2_000, 20
#: Passes at most, and how much higher a negative may stand than those known, relative to the value.
_PASSES, _HIGHER = 20, 1e-7

#: Rows of a block, and their weights.
Inner: TypeAlias = "tuple[Matrix, FloatArray | None]"


@dataclass(frozen=True)
class InnerRows:
    """A pass that brings back the positives that are present, with their weights."""

    view: View

    def local(self, block: Block, state: None) -> dict[int, Inner]:
        opened = open_block(block, self.view)
        rows = np.flatnonzero(opened.positive & opened.present)
        weight = None if opened.weight is None else opened.weight[rows]
        return {block.index: (opened.take(rows), weight)}

    def merge(self, left: dict[int, Inner], right: dict[int, Inner]) -> dict[int, Inner]:
        return join_pieces(left, right)


#: Scores of rows, their blocks and places there, the rows themselves.
Highest: TypeAlias = "tuple[FloatArray, NDArray[np.intp], Matrix]"


@dataclass(frozen=True)
class HighestRows:
    """A pass that brings back the negatives of highest score; the state are the coefficients."""

    view: View
    most: int

    def local(self, block: Block, coef: FloatArray) -> Highest:
        opened = open_block(block, self.view)
        rows = np.flatnonzero(~opened.positive & opened.present)
        scores = opened.scores(coef)[rows]
        chosen = _highest(scores, self.most)
        places = np.column_stack([np.full(len(chosen), block.index), rows[chosen]])
        return scores[chosen], places, opened.take(rows[chosen])

    def merge(self, left: Highest, right: Highest) -> Highest:
        scores = np.concatenate([left[0], right[0]])
        chosen = _highest(scores, self.most)
        return (
            scores[chosen],
            np.concatenate([left[1], right[1]])[chosen],
            _stack([left[2], right[2]])[chosen],
        )


def _highest(scores: FloatArray, most: int) -> NDArray[np.intp]:
    """Which scores are the highest, from the highest down; of equal ones the first."""
    return np.argsort(-scores, kind="stable")[:most]


def _stack(parts: list[Matrix]) -> Matrix:
    if any(map(sparse.issparse, parts)):
        return sparse.csr_array(sparse.vstack(parts))
    return np.concatenate(parts)


def suits(problem: object) -> bool:
    """Whether a problem is that of the largest height at the top, of rows that lie elsewhere."""
    if not (isinstance(problem, LargestHeight) and isinstance(problem.task.price, Max)):
        return False
    data, source = problem.data, problem.data.source
    small = 8 * data.thinning.members[1] * data.n_features <= _MOST_BYTES
    on_device = source.keeps_samples or source.samples_on_device
    away = not source.in_memory and not on_device
    return away and small and problem.task.end == "top" and problem.alpha > 0


class KnownRows:
    """All positives and the negatives that passes have brought here."""

    def __init__(self, problem: LargestHeight):
        self.problem, self.data = problem, problem.data
        found = self.data.run(InnerRows(self.data.view), None)
        parts: list[tuple[Matrix, Any]] = [found[index] for index in sorted(found)]
        self.inner = _stack([X for X, _ in parts])
        weights = [weight for _, weight in parts]
        self.weight = None if weights[0] is None else np.concatenate(weights)
        self.outer: list[Matrix] = []
        self.places: set[tuple[int, int]] = set()
        self.most = max(_HIGHEST, _HIGHEST_PER_FEATURE * self.data.n_features)

    def add_highest(self, coef: FloatArray) -> float:
        """Bring the highest negatives here; return how far they stand above those known before."""
        scores, places, rows = self.data.run(HighestRows(self.data.view, self.most), coef)
        known = np.array([tuple(place) in self.places for place in places.tolist()], dtype=bool)
        above = np.inf
        if known.any():
            above = float(scores[0] - scores[known][0])
        new = np.flatnonzero(~known)
        self.outer.append(rows[new])
        self.places.update(map(tuple, places[new].tolist()))
        return above

    def as_problem(self) -> Any:
        """Return the problem over the rows that are known."""
        outer = _stack(self.outer)
        X = _stack([self.inner, outer])
        positive = np.arange(X.shape[0]) < self.inner.shape[0]
        weight = None
        if self.weight is not None:
            weight = np.concatenate([self.weight, np.ones(outer.shape[0])])
        data = LabelledData.of_arrays(
            X, positive, weight, n_jobs=self.data.source.n_jobs, like=self.data
        )
        return problem_of(data, self.problem.task)


def solve_by_highest_rows(
    problem: LargestHeight, start: FloatArray, minimise: Callable[[Any, FloatArray], Any]
) -> Any:
    """Return the minimum over all rows, found on those that matter; None if passes do not suffice.

    Parameters
    ----------
    problem : LargestHeight
        That `suits`.
    start : array of shape (d,)
    minimise : callable
        From a problem in memory and a start to the result of a solver.
    """
    known, coef = KnownRows(problem), start
    coarse = problem.coarse()
    if coarse is not None:  # a sample knows about where the minimum is
        coef = minimise(coarse, start).coef
    history: list[dict[str, object]] = []
    result, above = None, np.inf
    for _ in range(_PASSES):
        above = known.add_highest(coef)
        if result is not None and above <= _HIGHER * max(1.0, abs(result.value)):
            result.gap += max(0.0, above)
            result.value += max(0.0, above)
            result.history, result.n_iter = history, len(history)
            return result
        result = minimise(known.as_problem(), coef)
        coef = result.coef
        history += result.history
    return None
