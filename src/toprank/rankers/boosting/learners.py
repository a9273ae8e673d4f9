"""A weak learner that is fitted anew every round (Rudin 2009, Figure 2, Step 3a).

The pairs' weights d make one signed weight per row, v(x) = the sum of d over the pairs that x
should win minus those it should lose, and the edge of a weak ranker h is a sum over rows,

    r = sum_{ik} d_ik (h(x_i) - h(x_k)) = sum_x v(x) h(x).

So to find an h of large edge is to classify the sign of v with weights |v|, which any learner that
takes sample weights can do: a classifier answers in {0, 1}, and the steps have their closed form
where the weak rankers' have; a regressor is fitted to the signs, and its steps are searched for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from toprank._arrays import JsonObject
from toprank._numerics import FloatArray
from toprank.blocks import Workers
from toprank.interop.pipelines import is_pipeline
from toprank.rankers.boosting.line_search import ColumnMasses, LineMasses, line_masses, loss_along
from toprank.rankers.boosting.stumps import Masses
from toprank.rankers.boosting.weak import WeakSum, check_values

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from toprank.rankers.boosting.pair_weights import PairWeights


def is_learner(weak_rankers: object) -> bool:
    """Whether weak_rankers is an estimator to be fitted every round."""
    return hasattr(weak_rankers, "fit") and not isinstance(weak_rankers, type)


def weight_parameter(learner: BaseEstimator) -> str:
    """Return the name under which ``fit`` takes weights; ValueError if it takes none."""
    name, last = "sample_weight", learner
    while is_pipeline(last):
        step, last = last.steps[-1]
        name = f"{step}__{name}"
    if not has_fit_parameter(last, "sample_weight"):
        raise ValueError(
            f"weak_rankers={type(last).__name__} takes no sample_weight in fit; boosting weighs "
            "the rows anew every round. Use a learner that does, such as DecisionTreeClassifier."
        )
    return name


@dataclass(frozen=True)
class LearnedChoice:
    """What the learner found in one round."""

    column: int
    estimator: BaseEstimator = field(repr=False)
    gain: float

    @property
    def key(self) -> int:
        """Each round has a weak ranker of its own."""
        return self.column

    def outputs(self, Z: FloatArray) -> FloatArray:
        """Return h of each row."""
        name = f"{type(self.estimator).__name__}, fitted in round {self.column + 1},"
        return check_values(self.estimator.predict(Z), name, len(Z))

    def facts(self) -> JsonObject:
        """What the history says about it."""
        return {"estimator": self.column}


class LearnedRankers:
    """Scores that move along what a learner finds, one fit per round.

    Parameters
    ----------
    pairs : PairWeights
    X : array or data frame of shape (n, d)
    learner : estimator
        Cloned for every fit.
    rng : RandomState
        Seeds every ``random_state`` that the learner has.
    """

    def __init__(
        self, pairs: PairWeights, X: object, learner: BaseEstimator, rng: np.random.RandomState
    ):
        self.pairs, self.learner, self._rng = pairs, learner, rng
        self._weight_name = weight_parameter(learner)
        self._is_classifier = is_classifier(learner)
        self.X = _safe_indexing(X, pairs.order)
        self.scores = np.zeros(len(pairs.order))
        self._round = 0
        self._refresh()

    def _refresh(self) -> None:
        self.log_loss, self._potentials = self.pairs.potentials(self.scores)

    def _fit_next(self) -> Self:
        """Fit a clone to the signs of the rows' weights."""
        estimator = clone(self.learner)
        seeds = [name for name in sorted(estimator.get_params()) if name.endswith("random_state")]
        estimator.set_params(**{name: self._rng.randint(2**31 - 1) for name in seeds})
        v, rows = self._potentials, np.flatnonzero(self._potentials)
        X = self.X if len(rows) == len(v) else _safe_indexing(self.X, rows)
        weight = np.abs(v[rows])
        up = v[rows] > 0
        target = up.astype(np.intp) if self._is_classifier else np.where(up, 1.0, -1.0)
        return estimator.fit(X, target, **{self._weight_name: weight / np.mean(weight)})

    def best(self, selection: str) -> LearnedChoice | None:
        """Return what the learner finds under the weights of this round, however it is judged."""
        if not np.isfinite(self.log_loss) or not np.any(self._potentials):
            return None
        choice = LearnedChoice(self._round, self._fit_next(), 0.0)
        self._values = choice.outputs(self.X)
        self._edge = float(self._potentials @ self._values)
        spread = float(np.ptp(self._values))
        gain = abs(self._edge) / spread if spread > 0 else 0.0
        return LearnedChoice(choice.column, choice.estimator, gain)

    def masses(self, choice: LearnedChoice) -> Masses | ColumnMasses | LineMasses:
        """Return the weights of the pairs it ranks rightly and wrongly, or the loss along it."""
        h = self._values
        if not np.all((h == 0) | (h == 1)):
            loss = loss_along(self.pairs, self.scores, h)
            return ColumnMasses(loss, self._edge, float(np.ptp(h)))
        split = self.pairs.split(self.scores, h == 1)
        if self.pairs.p == 1.0:
            return Masses(*split)
        return line_masses(self.pairs, self.scores, h, split)

    def move(self, choice: LearnedChoice, step: float) -> None:
        """Add step · h to the scores."""
        self.scores += step * self._values
        self._round += 1
        self._refresh()


class LearnedSum(WeakSum):
    """A sum of fitted estimators."""

    def scores(self, Z: np.ndarray, workers: Workers) -> FloatArray:
        """Return f of each row."""
        total = np.zeros(len(Z))
        for choice, step in zip(self.choices, self.steps, strict=True):
            total += step * choice.outputs(Z)
        return total


def mean_importances(estimators: Sequence[object], steps: FloatArray) -> FloatArray | None:
    """Return the estimators' own importances, averaged with the sizes of their steps; or None."""
    found = [getattr(estimator, "feature_importances_", None) for estimator in estimators]
    size = float(np.sum(np.abs(steps)))
    if not found or size == 0 or any(one is None for one in found):
        return None
    mean: FloatArray = np.abs(steps) @ np.array(found, dtype=np.float64) / size
    return mean
