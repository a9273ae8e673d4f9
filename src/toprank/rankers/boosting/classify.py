"""AdaBoost's objective F = F+ + F- on the same weak rankers, and the constant one.

F+ = sum_i w_i e^{-f_i} over positives, F- = sum_k w_k e^{f_k} over negatives (Rudin & Schapire
2009, Section 5). A weak ranker h in [0, 1] becomes the weak classifier 2h - 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray, log_sum_exp
from toprank.metrics.margins import exp_difference
from toprank.rankers.boosting.columns import ColumnChoice, ColumnRankers
from toprank.rankers.boosting.rounds import EQUAL, Descent, Ensemble
from toprank.rankers.boosting.stumps import Masses, Stump
from toprank.rankers.boosting.two_class import TwoClassStumps


@dataclass(frozen=True)
class Constant:
    """The weak classifier that is 1 everywhere."""

    gain: float
    column: int = -1
    key: Any = "constant"

    def outputs(self, Z: Any) -> FloatArray:
        """Return one for each row."""
        return np.ones(len(Z))

    def facts(self) -> dict[str, Any]:
        """What the history says about it."""
        return {"feature": None}


def _constant_or(choice: Any, gain: float) -> Any:
    """The constant, where it gains something and the choice no more; else the choice."""
    constant_wins = gain > 0 and (choice is None or gain >= choice.gain - EQUAL)
    return Constant(gain) if constant_wins else choice


class PointwiseWeights:
    """The rows of a classification in the place of pairs: F+ + F- as a loss."""

    p = 1.0

    def __init__(self, positive: NDArray[np.bool_], log_weight: FloatArray):
        self.sign = np.where(positive, 1.0, -1.0)
        self.log_weight = log_weight
        self.order = np.arange(len(positive))
        self.log_pairs = log_sum_exp(log_weight)
        self.log_n_pairs = self.log_pairs - min(0.0, float(np.min(log_weight)))

    def potentials(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return log F and minus its gradient in the scores."""
        terms = self.log_weight - self.sign * scores
        value = log_sum_exp(terms)
        return value, self.sign * np.exp(terms - value)


class Classify(Descent):
    """AdaBoost's rounds: the largest edge, which is also the largest decrease, and its step."""

    def __init__(self) -> None:
        super().__init__("slope")

    def after(self, engine: Any, ensemble: Ensemble) -> dict[str, Any]:
        """F-skew, and the score where every h is zero."""
        return {
            "f_skew": exp_difference(*engine.log_parts),
            "intercept": float(engine.lowest),
        }


class StumpClassifiers:
    """Stumps as weak classifiers, with the constant as one more or reset each round.

    Parameters
    ----------
    stumps : TwoClassStumps
        With p = 1; its scores are those where `lowest` is left out.
    reset : bool
        Whether the constant goes to its minimum after every round.
    """

    def __init__(self, stumps: TwoClassStumps, reset: bool):
        self.stumps, self.reset = stumps, reset
        weights = np.concatenate(stumps.pairs.log_weight)
        self.pairs = PointwiseWeights(np.arange(len(weights)) < stumps.pairs.n_positive, weights)
        self.lowest = 0.0
        self._settle()

    def _settle(self) -> None:
        if self.reset:
            high, low = self.stumps.log_masses
            self.lowest = 0.5 * (high - low)

    @property
    def log_parts(self) -> tuple[float, float]:
        """Ln F+ and ln F-."""
        high, low = self.stumps.log_masses
        if self.reset:  # equal, whatever the rounding
            return 0.5 * (high + low), 0.5 * (high + low)
        return high - self.lowest, low + self.lowest

    @property
    def log_loss(self) -> float:
        """Ln F."""
        return float(np.logaddexp(*self.log_parts))

    @property
    def scores(self) -> FloatArray:
        """Scores without the constant, in the order of the pairs."""
        return self.stumps.scores

    def _shares(self) -> FloatArray:
        return np.exp(np.array(self.log_parts) - self.log_loss)

    def best(self, selection: str) -> Stump | Constant | None:
        """Return the weak classifier of largest edge; the constant first among equals."""
        shares = self._shares()
        gain = 0.0 if self.reset else float(abs(shares[0] - shares[1]))
        return _constant_or(self.stumps.best_classifier(shares), gain)

    def masses(self, choice: Any) -> Masses:
        """Return the weights that the choice classifies rightly and wrongly."""
        high, low = self._shares()
        if isinstance(choice, Constant):
            return Masses(high, low, 0.0)
        (p0, p1), (n0, n1) = self.stumps.side_masses(choice)
        return Masses(high * p1 + low * n0, high * p0 + low * n1, 0.0)

    def move(self, choice: Any, step: float) -> None:
        """Add step · (2h - 1) to the scores, or step to all of them."""
        if isinstance(choice, Constant):
            self.lowest += step
        else:
            self.stumps.move(choice, 2.0 * step)
            self.lowest -= step
        self._settle()


class ColumnClassifiers(ColumnRankers):
    """Columns 2h - 1 with a line search, and the constant as one more or reset each round."""

    def __init__(self, rows: PointwiseWeights, H: FloatArray, reset: bool):
        self.reset, self.constant, self._steps = reset, 0.0, 0.0
        super().__init__(rows, 2.0 * H - 1.0)

    def _refresh(self) -> None:
        rows = self.pairs
        parts = [
            log_sum_exp((rows.log_weight - rows.sign * self.scores)[rows.sign == s])
            for s in (1.0, -1.0)
        ]
        if self.reset:
            self.constant = 0.5 * (parts[0] - parts[1])
        self.log_parts = (parts[0] - self.constant, parts[1] + self.constant)
        if self.reset:
            self.log_parts = (0.5 * sum(parts),) * 2
        self.log_loss, self._potentials = rows.potentials(self.scores + self.constant)

    def best(self, selection: str) -> Any:
        """Return the weak classifier of largest edge; the constant first among equals."""
        gain = 0.0 if self.reset else float(abs(np.sum(self._potentials)))
        return _constant_or(super().best("slope"), gain)

    def masses(self, choice: Any) -> Any:
        """Return the loss along the choice."""
        if isinstance(choice, Constant):
            high, low = np.exp(np.array(self.log_parts) - self.log_loss)
            return Masses(high, low, 0.0)
        return super().masses(choice)

    @property
    def _start(self) -> FloatArray:
        return self.scores + self.constant

    @property
    def lowest(self) -> float:
        """The score where every h is zero."""
        return self.constant - self._steps

    def move(self, choice: Any, step: float) -> None:
        """Add step · (2h - 1) to the scores, or step to all of them."""
        if isinstance(choice, ColumnChoice):
            self.scores = self.scores + step * self.H[:, choice.column]
            self._steps += step
        else:
            self.constant += step
        self._refresh()
