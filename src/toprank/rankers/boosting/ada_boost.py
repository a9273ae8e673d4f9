"""AdaBoost as a ranker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import StrOptions

from toprank._numerics import FloatArray, log_of
from toprank.blocks import Workers
from toprank.pairs import RelatedRows
from toprank.rankers.boosting.base import Booster
from toprank.rankers.boosting.classify import (
    Classify,
    ColumnClassifiers,
    Constant,
    PointwiseWeights,
    StumpClassifiers,
)
from toprank.rankers.boosting.model import WeakSum
from toprank.rankers.boosting.pair_weights import PairWeights
from toprank.rankers.boosting.rounds import Descent, Ensemble
from toprank.rankers.common import Link, fits


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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Booster._parameter_constraints,
        "constant": [StrOptions({"weak", "reset"})],
    }

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        constant: str = "weak",
        weak_rankers: Any = "stumps",
        n_thresholds: int | None = None,
        max_bins: int = 255,
        link: str = "p_classification",
        n_iter_no_change: int | None = None,
        validation_fraction: float = 0.1,
        scoring: Any = None,
        random_state: Any = None,
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
    def fit(self, X: Any, y: Any, *, sample_weight: ArrayLike | None = None) -> AdaBoostRanker:
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

    def _engine(self, rows: RelatedRows, pairs: PairWeights, workers: Workers) -> Any:
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
