"""A power price of the logistic loss or the squared hinge on many rows in memory.

The scores of all rows and one more vector are all that is held per row; a sample of the rows, on
which the solver starts, is let go when it has served. Hessians are estimated from some rows
(`toprank.objective.binned_curvature`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._lazy import cached_property
from toprank._numerics import FloatArray
from toprank.objective.binned_curvature import BinnedRows, BinnedSums
from toprank.objective.data import LabelledData
from toprank.objective.labelled import COMPILED_FROM
from toprank.objective.power_root import PowerRoot
from toprank.objective.problem import ScoredProblem
from toprank.objective.risk import Task
from toprank.objective.sweeps import ScoresInto

#: Rows of each class that a Hessian is estimated from, at the least.
_ROWS = 5_000
_ROWS_PER_FEATURE = 150
#: Features for which a sample to start on is drawn, as a share of those there are.
_SAMPLED_FEATURES = 0.5


class RootProblem(ScoredProblem):
    """The root of a power price at one end of the list, with little memory per row."""

    newton_up_to = 300
    scale = 1.0

    @staticmethod
    def suits(data: LabelledData, task: Task) -> bool:
        """Whether there are compiled loops for the task, and rows enough to load them for."""
        return (
            data.source.in_memory
            and data.entries >= COMPILED_FROM
            and task.end != "both"
            and PowerRoot.suits(task.price, task.loss)
        )

    def with_task(self, task: Any) -> Any:
        suits = self.suits(self.data, task)
        return (RootProblem if suits else ScoredProblem)(self.data, task)

    @property
    def _prices_positives(self) -> bool:
        return (self.task.end == "top") == (self.task.price.outer == "winners")

    @cached_property
    def _root(self) -> PowerRoot:
        task = self.task
        return PowerRoot(*self.data.labels, task.price, task.loss, self._prices_positives)

    def scores(self, coef: FloatArray) -> FloatArray:
        scores = np.empty(self.n_rows)
        self.data.run(ScoresInto(self.data.view), (coef, self.data.cut(scores)))
        return scores

    def _in_scores(self, scores: FloatArray) -> tuple[float, FloatArray]:
        found = self._root.value_grad(scores)
        return self.objective.value_grad(scores) if found is None else found

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray]:
        scores = self.scores(coef)
        value, slopes = self._in_scores(scores)
        self._drawn_scores = coef.tobytes(), scores[self._drawn]
        del scores
        return self.add_penalty(value, self.data.adjoint(slopes), coef)

    def value(self, coef: FloatArray) -> float:
        return self._in_scores(self.scores(coef))[0] + self.cost(coef)

    def row_slopes(self, coef: FloatArray) -> FloatArray:
        return self._in_scores(self.scores(coef))[1]

    @cached_property
    def _coarse(self) -> Any:
        data = self.data.sample(int(_SAMPLED_FEATURES * self.data.size))
        return None if data is None else RootProblem(data, self.task)

    @property
    def has_sample(self) -> bool:
        return self.data.thinning.keeps_rows

    def release_sample(self) -> None:
        vars(self).pop("_coarse", None)

    def hessian(self, coef: FloatArray, *, exact: bool = True) -> FloatArray:
        if exact:
            return super().hessian(coef)
        data, rows = self.data, self._drawn
        known, scores = self._drawn_scores
        if known != coef.tobytes():
            scores = self.scores(coef)[rows]
        sign = -1.0 if self._prices_positives else 1.0
        positive, weight = data.labels
        inner = positive[rows] != self._prices_positives
        share = np.ones(len(rows)) if weight is None else weight[rows]
        for side in (inner, ~inner):
            share[side] /= np.sum(share[side])
        binned = BinnedRows.of(sign * scores, inner, share, self.task.loss, self.task.p)
        starts = [*data.starts.values(), data.n_rows]
        cuts = np.searchsorted(rows, starts)
        state = {
            index: (
                rows[first:last] - start,
                *(part[first:last] for part in (binned.bin, binned.share, binned.weight)),
            )
            for index, start, first, last in zip(
                data.starts, starts[:-1], cuts[:-1], cuts[1:], strict=True
            )
        }
        n_bins = len(binned.pairs.per_share)
        hessian = binned.pairs.hessian(*data.run(BinnedSums(data.view, n_bins), state))
        hessian[np.diag_indices(self.size)] += self.penalty
        return hessian

    _drawn_scores: tuple[bytes, FloatArray] = b"", np.empty(0)

    @cached_property
    def _drawn(self) -> NDArray[np.intp]:
        """Evenly spaced rows of each class that are present, in order."""
        positive, weight = self.data.labels
        most = max(_ROWS, _ROWS_PER_FEATURE * self.size)
        drawn = []
        for members in (positive, ~positive):
            rows = np.flatnonzero(members if weight is None else members & (weight > 0))
            drawn.append(rows[:: -(-len(rows) // most)])
        return np.sort(np.concatenate(drawn))
