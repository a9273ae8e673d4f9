"""AdaBoost as a ranker: its objective F = F+ + F- on the same weak rankers, and the constant one.

F+ = sum_i w_i e^{-f_i} over positives, F- = sum_k w_k e^{f_k} over negatives (Rudin & Schapire
2009, Section 5). A weak ranker h in [0, 1] becomes the weak classifier 2h - 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import StrOptions

from toprank._arrays import JsonObject, TableLike
from toprank._numerics import FloatArray, log_of, log_sum_exp
from toprank.blocks import Workers
from toprank.metrics.margins import exp_difference
from toprank.pairs import RelatedRows
from toprank.rankers.boosting.base import Booster
from toprank.rankers.boosting.pair_stumps import TwoClassStumps
from toprank.rankers.boosting.pair_weights import PairWeights
from toprank.rankers.boosting.rounds import EQUAL, Descent, Ensemble
from toprank.rankers.boosting.stumps import Masses, Stump
from toprank.rankers.boosting.weak import ColumnChoice, ColumnRankers, WeakSum
from toprank.rankers.common import Link, fits


@dataclass(frozen=True)
class Constant:
    """The weak classifier that is 1 everywhere."""

    gain: float
    column: int = -1
    key: str = "constant"

    def outputs(self, Z: FloatArray) -> FloatArray:
        """Return one for each row."""
        return np.ones(len(Z))

    def facts(self) -> JsonObject:
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

    def after(self, engine: Any, ensemble: Ensemble) -> JsonObject:
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

    def _shares(self) -> FloatArray:
        return np.exp(np.array(self.log_parts) - self.log_loss)

    def best(self, selection: str) -> Stump | Constant | None:
        """Return the weak classifier of largest edge; the constant first among equals."""
        shares = self._shares()
        gain = 0.0 if self.reset else float(abs(shares[0] - shares[1]))
        return _constant_or(self.stumps.best_classifier(shares), gain)

    def masses(self, choice: Constant | Stump) -> Masses:
        """Return the weights that the choice classifies rightly and wrongly."""
        high, low = self._shares()
        if isinstance(choice, Constant):
            return Masses(high, low, 0.0)
        (p0, p1), (n0, n1) = self.stumps.side_masses(choice)
        return Masses(high * p1 + low * n0, high * p0 + low * n1, 0.0)

    def move(self, choice: Constant | Stump, step: float) -> None:
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

    def masses(self, choice: Constant | ColumnChoice) -> Any:
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

    def move(self, choice: Constant | ColumnChoice, step: float) -> None:
        """Add step · (2h - 1) to the scores, or step to all of them."""
        if isinstance(choice, ColumnChoice):
            self.scores = self.scores + step * self.H[:, choice.column]
            self._steps += step
        else:
            self.constant += step
        self._refresh()


class AdaBoostRanker(Booster):
    r"""AdaBoost with the constant weak classifier, which makes it a ranker.

    Minimises

    .. math::
        F(\lambda) = F_+ + F_- = \sum_i e^{-f_i} + \sum_k e^{f_k},
        \qquad f = \lambda_0 + \sum_j \lambda_j (2 h_j - 1)

    over positives i and negatives k. With the constant among the weak classifiers the F-skew
    :math:`F_+ - F_-` vanishes (Rudin & Schapire 2009, Corollary 11), and then AdaBoost minimises
    RankBoost's objective :math:`F_+ F_-` too (Theorem 10) and reaches its AUC (Theorem 12).

    Parameters
    ----------
    n_estimators : int, default=100
        Rounds.
    constant : {"weak", "reset"}, default="weak"
        "weak": the constant is one more weak classifier, chosen when its edge is the largest.
        "reset": it goes to its minimum after every round, and the F-skew is always zero.
    weak_rankers, n_thresholds, max_bins, n_iter_no_change, validation_fraction
        As in :class:`RankBoost`; h in [0, 1] becomes the weak classifier 2h - 1.
    link : {"p_classification", "logistic"}, default="p_classification"
        The probability is sigmoid(2 f), or a curve fitted to the training scores.
    scoring, random_state, n_jobs, verbose
        As in :class:`RankBoost`.

    Attributes
    ----------
    f_skew_ : array
        F+ - F- after each round.
    constant_ : float
        The coefficient of the constant weak classifier.
    coef_ : array of shape (1, m)
        Coefficients of h in {0, 1}: twice those of 2h - 1.
    intercept_ : array of shape (1,)
        What the score is where every h is zero.
    stumps_, classes_, margin_, feature_importances_, history_, n_iter_, stop_reason_
        As in :class:`RankBoost`; the objective in the history is the log of the mean loss of a
        row, and a round with feature None moved the constant.

    Examples
    --------
    >>> from toprank import AdaBoostRanker
    >>> from toprank.datasets import load_wdbc
    >>> X, y = load_wdbc(return_X_y=True)
    >>> ranker = AdaBoostRanker(50, constant="reset").fit(X, y)
    >>> float(abs(ranker.f_skew_).max())
    0.0
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **Booster._parameter_constraints,
        "constant": [StrOptions({"weak", "reset"})],
    }

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        constant: str = "weak",
        weak_rankers: object = "stumps",
        n_thresholds: int | None = None,
        max_bins: int = 255,
        link: str = "p_classification",
        n_iter_no_change: int | None = None,
        validation_fraction: float = 0.1,
        scoring: str | Callable[..., float] | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.n_estimators = n_estimators
        self.constant = constant
        self.weak_rankers = weak_rankers
        self.n_thresholds = n_thresholds
        self.max_bins = max_bins
        self.link = link
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fits
    def fit(
        self, X: TableLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None
    ) -> AdaBoostRanker:
        """Fit the ranker.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Numbers; for stumps NaN is a missing value and infinities are values.
        y : array-like of shape (n,)
            Labels of two classes, the larger one at the top.
        sample_weight : array-like of shape (n,), optional
            Repetition counts; a row of weight zero is absent.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight=sample_weight)

    def _rule(self) -> Descent:
        return Classify()

    def _outputs_on(self, rows: RelatedRows) -> Callable[[Any], FloatArray]:
        return lambda choice: (
            choice.outputs(rows.X)
            if isinstance(choice, Constant)
            else 2.0 * choice.outputs(rows.X) - 1.0
        )

    def _engine(
        self, rows: RelatedRows, pairs: PairWeights, workers: Workers
    ) -> ColumnClassifiers | StumpClassifiers:
        reset = self.constant == "reset"
        if not self._binary_weak:
            logs = np.zeros(len(rows.X)) if rows.weight is None else log_of(rows.weight)
            H = np.asarray(rows.X, dtype=np.float64)
            return ColumnClassifiers(PointwiseWeights(rows.y, logs), H, reset)
        return StumpClassifiers(super()._engine(rows, pairs, workers), reset)

    def _additive(self, ensemble: Ensemble) -> WeakSum:
        """In {0, 1} form: twice the steps, and the rest in the intercept."""
        return super()._additive(self._in_steps_of_h(ensemble))

    @staticmethod
    def _in_steps_of_h(ensemble: Ensemble) -> Ensemble:
        moved = Ensemble(message=ensemble.message)
        for choice, step, record in zip(
            ensemble.choices, ensemble.steps, ensemble.history, strict=True
        ):
            if not isinstance(choice, Constant):
                moved.add(choice, 2.0 * step, record)
        return moved

    def _keep_coef(self, ensemble: Ensemble) -> None:
        super()._keep_coef(self._in_steps_of_h(ensemble))
        self._lowest = ensemble.history[-1]["intercept"] if ensemble.history else 0.0
        self.constant_ = self._lowest + 0.5 * float(np.sum(self._sum.steps))

    def _natural_link(self, scores: FloatArray, rows: RelatedRows) -> Link:
        return Link(2.0, self._lowest)

    def _after(self, ensemble: Ensemble) -> None:
        self.f_skew_ = np.array([record["f_skew"] for record in ensemble.history])
