"""RankBoost, coordinate descent RankBoost and the P-Norm Push over weak rankers."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from toprank._numerics import FloatArray, log_of, log_sum_exp
from toprank.metrics.margins import exp_difference
from toprank.pairs import RelatedRows
from toprank.rankers.boosting.base import PairBooster
from toprank.rankers.boosting.pair_weights import PairWeights
from toprank.rankers.boosting.rounds import Descent
from toprank.rankers.common import Link, p_classification


class RankBoost(PairBooster):
    r"""RankBoost (Freund et al. 2003; Rudin & Schapire 2009, Section 4.1), with a push if wanted.

    Minimises the exponential loss over crucial pairs, i above k,

    .. math::
        \tilde F(\lambda) = \sum_{(i, k)} e^{-(f_i - f_k)},
        \qquad f = \sum_j \lambda_j h_j,

    one weak ranker :math:`h_j` per round; with ``p > 1``
    :math:`R_p = \sum_k (\sum_i e^{-(f_i - f_k)})^p`, the P-Norm Push (Rudin 2006). A step may be
    negative: h and its reverse are one weak ranker.

    Parameters
    ----------
    n_estimators : int, default=100
        Rounds.
    selection : {"loss", "slope"}, default="loss"
        "loss" takes the weak ranker that lowers the loss most (equation 5), "slope" the steepest
        (Figure 1, coordinate descent RankBoost). Equally good ones go to the lowest column, then
        the lowest threshold.
    weak_rankers : {"stumps", "features", "binary"} or list, default="stumps"
        "stumps": h = 1 where a column exceeds a threshold, missing values on the better side (on
        that of more training rows if the column had none).
        "features": columns in [0, 1] as they are, with a line search. "binary": columns in
        {0, 1}. A list holds functions of X or fitted estimators with ``predict``. Where the ranker
        is cloned, as in cross-validation, pass the method ``estimator.predict`` instead of the
        estimator.
    p : float, default=1.0
        The power of the push, for two classes.
    target : {"binary", "graded"}, default="binary"
        "binary" is a classifier to scikit-learn. "graded" takes any numbers as y, pairs being the
        rows with y_i > y_k; it has no classes or probabilities, and ``predict`` is the score.
    n_thresholds : int, optional
        Thresholds per column, at evenly spaced quantiles; by default all, up to ``max_bins - 1``.
    max_bins : int, default=255
        Bins per column, at most 255.
    link : {"p_classification", "logistic"}, default="p_classification"
        "p_classification": the intercept at which the F-skew vanishes (Corollary 13), which also
        minimises AdaBoost's objective, and probability sigmoid((1 + p)(f + b)). "logistic": a
        curve fitted to the training scores.
    n_iter_no_change : int, optional
        Stop when the rows set apart have not improved for so many rounds, and keep the rounds up
        to the best.
    validation_fraction : float, default=0.1
        Share of the rows (whole groups, where there are groups) set apart for that.
    scoring : str or callable, optional
        Name of a metric of `toprank.metrics` (at k: of the first tenth), or a function of (labels,
        scores), larger when better, such as ``functools.partial(precision_at, k=50)``. By
        default the share of the crucial pairs in order.
    random_state : int, RandomState or None
        For the rows set apart.
    n_jobs : int, optional
        Threads. The answer does not depend on it.
    verbose : int, default=0
        Print one line per round.

    Attributes
    ----------
    coef_ : array of shape (1, m)
        Coefficient of each column, or of each stump in ``stumps_``.
    stumps_ : structured array of shape (m,)
        The distinct stumps: feature, threshold, missing (the side of missing values).
    intercept_ : array of shape (1,)
    classes_ : array of shape (2,)
        For target="binary".
    margin_ : float
        Smallest f_i - f_k over the training pairs, divided by the sum of the absolute coefficients.
    f_skew_ : float
        F+ - F- of the scores without the intercept; for target="binary".
    feature_importances_ : array of shape (d,)
        Share of each column in the sum of the absolute coefficients.
    history_ : list of dict
        Per round: feature, threshold, step, criterion, edge, objective (log of the mean loss) and,
        for binary weak rankers, d_plus, d_minus and d_zero before the step.
    n_iter_ : int
    objective_ : float
    stop_reason_ : str
        Why the rounds ended early; empty if they did not.
    validation_scores_ : array
        Per round, with ``n_iter_no_change``; larger is better.

    Notes
    -----
    For two classes every threshold of every column is judged from two histograms; a round costs
    O(n d) at most. With groups or grades it costs O(n d log bins), exactly and without listing
    pairs; with listed pairs, O(pairs · d).

    Examples
    --------
    >>> from toprank import RankBoost
    >>> from toprank.datasets import load_wdbc
    >>> X, y = load_wdbc(return_X_y=True)
    >>> ranker = RankBoost(50, n_thresholds=9).fit(X, y)
    >>> ranker.n_iter_, ranker.decision_function(X).shape
    (50, (569,))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PairBooster._parameter_constraints,
        "selection": [StrOptions({"loss", "slope"})],
        "p": [Interval(Real, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        selection: str = "loss",
        weak_rankers: Any = "stumps",
        p: float = 1.0,
        target: str = "binary",
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
        self.selection = selection
        self.weak_rankers = weak_rankers
        self.p = p
        self.target = target
        self.n_thresholds = n_thresholds
        self.max_bins = max_bins
        self.link = link
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _rule(self) -> Descent:
        return Descent(self.selection)

    def _power(self) -> float:
        if not np.isfinite(self.p):
            raise ValueError("p must be finite: boosting has no step for p=inf. Use a large p.")
        return float(self.p)

    def _natural_link(self, scores: FloatArray, rows: RelatedRows) -> Link:
        return p_classification(scores, rows.y, rows.weight, self._power())

    def _keep_scores(self, scores: FloatArray, rows: RelatedRows, pairs: PairWeights) -> None:
        super()._keep_scores(scores, rows, pairs)
        if rows.y is not None and rows.y.dtype == bool:
            logs = np.zeros(len(scores)) if rows.weight is None else log_of(rows.weight)
            high = log_sum_exp((logs - scores)[rows.y])
            self.f_skew_ = exp_difference(high, log_sum_exp((logs + scores)[~rows.y]))
