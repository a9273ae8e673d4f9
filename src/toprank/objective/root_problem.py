"""A power price of the logistic loss or the squared hinge on many rows in memory.

The scores of all rows and one more vector are all that is held per row; a sample of the rows, on
which the solver starts, is let go when it has served. Hessians are estimated from some rows
(`toprank.objective.binned_curvature`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank._lazy import cached_property
from toprank._numerics import FloatArray
from toprank.objective.data import LabelledData
from toprank.objective.labelled import COMPILED_FROM
from toprank.objective.power_root import PowerRoot
from toprank.objective.problem import ScoredProblem
from toprank.objective.risk import Task
from toprank.objective.sweeps import ScoresInto

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

    @cached_property
    def _root(self) -> PowerRoot:
        task = self.task
        return PowerRoot(*self.data.labels, task.price, task.loss, self.prices_positives)

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
        self._drawn_scores = coef.tobytes(), scores[self.drawn]
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
        return super().hessian(coef) if exact else self.binned_hessian(coef)

    def drawn_scores(self, coef: FloatArray) -> FloatArray:
        known, scores = self._drawn_scores
        return scores if known == coef.tobytes() else super().drawn_scores(coef)

    _drawn_scores: tuple[bytes, FloatArray] = b"", np.empty(0)
