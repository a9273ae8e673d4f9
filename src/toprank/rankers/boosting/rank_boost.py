"""Boosting over any crucial pairs: RankBoost, the P-Norm Push over weak rankers, smooth margins."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from toprank._arrays import TableLike
from toprank._columns import to_numpy
from toprank._numerics import FloatArray, log_of, log_sum_exp
from toprank.metrics.margins import exp_difference
from toprank.objective import RelatedDual, related_dual_at
from toprank.objective.pairwise import PairTask
from toprank.pairs import Pairs, RelatedRows, check_related_rows
from toprank.rankers.boosting.base import Booster
from toprank.rankers.boosting.pair_weights import PairWeights
from toprank.rankers.boosting.rounds import Descent, Ensemble, SmoothAscent
from toprank.rankers.common import Link, fits, p_classification, warn_caller


class PairBooster(Booster):
    """Base of the boosters over any pairs: two classes, grades, groups or pairs listed."""

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **Booster._parameter_constraints,
        "weak_rankers": [
            *Booster._parameter_constraints["weak_rankers"],
            HasMethods(["fit", "predict"]),
        ],
        "target": [StrOptions({"binary", "graded"})],
    }

    @fits
    def fit(
        self,
        X: TableLike,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        pairs: ArrayLike | Pairs | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the ranker.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Numbers; for stumps NaN is a missing value and infinities are values.
        y : array-like of shape (n,)
            Labels of two classes, the larger one at the top; numbers for target="graded", where
            None will do if pairs are listed.
        groups : array-like of shape (n,), optional
            Pairs are then those within a group.
        pairs : array-like of shape (m, 2) or `toprank.Pairs`, optional
            Rows (winner, loser); they replace the pairs that y implies.
        sample_weight : array-like of shape (n,), optional
            Repetition counts; a row of weight zero is absent, a pair weighs the product.

        Returns
        -------
        self
        """
        return self._fit(X, y, groups, pairs, sample_weight)

    def dual(
        self,
        X: TableLike,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        pairs: ArrayLike | Pairs | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> RelatedDual:
        """Return how much each crucial pair counts after the last round: the weights d.

        A fitted ranker does not keep its rows, so they are given again, as in ``fit``.

        Returns
        -------
        RelatedDual
            ``row_weight`` and ``pair_weights()``, of total one.

        Examples
        --------
        >>> from toprank import RankBoost
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
        >>> rows, weight = RankBoost(1).fit(X, y).dual(X, y).pair_weights()
        >>> rows.tolist(), weight.round(3).tolist()
        ([[1, 0], [3, 0], [1, 2], [3, 2]], [0.155, 0.155, 0.345, 0.345])
        """
        scores = self.decision_function(X)
        labels = y
        if hasattr(self, "classes_") and y is not None:
            labels = np.asarray(to_numpy(y)) == self.classes_[1]
        rows = check_related_rows(self, scores, labels, groups, pairs, sample_weight)
        task = PairTask.build(
            rows.relation(), rows.counts, price="power", p=self._power(), loss="exponential"
        )
        return related_dual_at(task.objective(), scores, np.nan)


class RankBoost(PairBooster):
    r"""RankBoost (Freund et al. 2003; Rudin & Schapire 2009, Section 4.1), with a push if wanted.

    Minimises the exponential loss over crucial pairs, i above k,

    .. math::
        \tilde F(\lambda) = \sum_{(i, k)} e^{-(f_i - f_k)},
        \qquad f = \sum_j \lambda_j h_j,

    one weak ranker :math:`h_j` per round; with ``p > 1``
    :math:`R_p = \sum_k (\sum_i e^{-(f_i - f_k)})^p`, the P-Norm Push (Rudin 2006), the inner sum
    over the rows i that belong above k: those of the other class, of a higher grade, of k's group,
    or of the pairs listed (Rudin 2009, Section 7). A step may be negative: h and its reverse are
    one weak ranker.

    Parameters
    ----------
    n_estimators : int, default=100
        Rounds.
    selection : {"loss", "slope"}, default="loss"
        "loss" takes the weak ranker that lowers the loss most (equation 5), "slope" the steepest
        (Figure 1, coordinate descent RankBoost). Equally good ones go to the lowest column, then
        the lowest threshold.
    weak_rankers : {"stumps", "features", "binary"}, list or estimator, default="stumps"
        "stumps": h = 1 where a column exceeds a threshold, missing values on the better side (on
        that of more training rows if the column had none).
        "features": columns in [0, 1] as they are, with a line search. "binary": columns in
        {0, 1}. A list holds functions of X or fitted estimators with ``predict``. Where the ranker
        is cloned, as in cross-validation, pass the method ``estimator.predict`` instead of the
        estimator.
        An estimator is a weak learner: a clone of it is fitted every round (Rudin 2009, Figure 2,
        Step 3a), with weights, to the sign of what each row's pairs weigh. A classifier answers in
        {0, 1}; a regressor with any numbers, and its steps are searched for.
    p : float, default=1.0
        The power of the push.
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
        For the rows set apart, and for a weak learner.
    n_jobs : int, optional
        Threads. The answer does not depend on it.
    verbose : int, default=0
        Print one line per round.

    Attributes
    ----------
    coef_ : array of shape (1, m)
        Coefficient of each column, of each stump in ``stumps_``, or of each estimator in
        ``estimators_``.
    estimators_ : list
        What the weak learner found, one per round.
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
        Share of each column in the sum of the absolute coefficients; for a weak learner the mean
        of its own, where it has any.
    history_ : list of dict
        Per round: feature and threshold (or the number of the estimator), step, criterion, edge,
        objective (log of the mean loss) and, for binary weak rankers, d_plus, d_minus and d_zero
        before the step.
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
    pairs; with listed pairs, O(pairs · d). There ``p > 1`` has no closed step: every round searches
    along a line, with ``selection="loss"`` along that of every stump that may be the best, so that
    ``selection="slope"`` is much faster.

    Examples
    --------
    >>> from toprank import RankBoost
    >>> from toprank.datasets import load_wdbc
    >>> X, y = load_wdbc(return_X_y=True)
    >>> ranker = RankBoost(50, n_thresholds=9).fit(X, y)
    >>> ranker.n_iter_, ranker.decision_function(X).shape
    (50, (569,))

    Small trees as weak rankers, fitted anew every round:

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> tree = DecisionTreeClassifier(max_depth=2)
    >>> ranker = RankBoost(5, weak_rankers=tree, random_state=0).fit(X, y)
    >>> len(ranker.estimators_), ranker.coef_.shape
    (5, (1, 5))
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **PairBooster._parameter_constraints,
        "selection": [StrOptions({"loss", "slope"})],
        "p": [Interval(Real, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        selection: str = "loss",
        weak_rankers: object = "stumps",
        p: float = 1.0,
        target: str = "binary",
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
        return float(self.p)

    def _natural_link(self, scores: FloatArray, rows: RelatedRows) -> Link:
        return p_classification(scores, rows.y, rows.weight, self._power())

    def _keep_scores(self, scores: FloatArray, rows: RelatedRows, pairs: PairWeights) -> None:
        super()._keep_scores(scores, rows, pairs)
        if rows.y is not None and rows.y.dtype == bool:
            logs = np.zeros(len(scores)) if rows.weight is None else log_of(rows.weight)
            high = log_sum_exp((logs - scores)[rows.y])
            self.f_skew_ = exp_difference(high, log_sum_exp((logs + scores)[~rows.y]))


class SmoothMarginRanker(PairBooster):
    r"""Smooth margin ranking (Rudin & Schapire 2009, Section 4.2).

    Coordinate ascent on the smooth margin

    .. math::
        \tilde G(\lambda) = \frac{-\ln \tilde F(\lambda)}{|\lambda|_1} < \mu(\lambda) \le \rho

    which lies below the margin. If d0, the weight of the pairs that the round's weak ranker leaves
    alone, is below (2/3)(1 - r)(1 - r^2) in every round, r its edge, the margin goes to the
    largest one, rho (Theorem 8; RankBoost may stop short of it). Where the condition fails, as it
    does in many rounds on real data, the theorem is silent; ``theorem_7_`` says per round whether
    it held, and ``rho_`` how far the margin can still be from the largest.

    It begins with coordinate descent RankBoost until the smooth margin is positive, then takes the
    steps of equation (12), or of equation (10) for real-valued weak rankers and step="exact". On
    pairs that are not separated within the rounds it is RankBoost, and warns.

    Parameters
    ----------
    n_estimators : int, default=1000
        Rounds.
    step : {"closed", "exact"}, default="closed"
        "closed" is the paper's step (equation 12), which takes the smooth margin in the slope to be
        what it was before the step. "exact" goes to the maximum along the weak ranker (equation
        10) by a line search: smooth margin coordinate ascent, which the paper names and avoids.
    weak_rankers, target, n_thresholds, max_bins, link, n_iter_no_change, validation_fraction
        As in :class:`RankBoost`.
    scoring, random_state, n_jobs, verbose
        As in :class:`RankBoost`.

    Attributes
    ----------
    smooth_margin_ : array
        The smooth margin after each round.
    margin_ : float
        The margin of the ranking on the training pairs.
    rho_ : float
        The smallest edge of any round: no combination of the weak rankers has a larger margin. A
        weak learner need not find the largest edge, and then this bounds nothing.
    theorem_7_ : bool array
        Per round, whether the condition on d0 held, under which the smooth margin has to grow
        (Theorem 7) and, if it holds in all rounds, reaches the largest margin (Theorem 8).
    separated_ : bool
        Whether the smooth margin became positive.
    coef_, stumps_, estimators_, intercept_, classes_, feature_importances_, history_, n_iter_
        As in :class:`RankBoost`, and so is ``stop_reason_``; the history also has rho, ascent
        (whether the round was one of smooth margin ranking), theorem_7 and smooth_margin.

    Notes
    -----
    The inequality needs a loss that is not normalised, at least two pairs, and no pair lighter than
    one: with smaller sample weights the lightest pair is the unit.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank import SmoothMarginRanker
    >>> from toprank.datasets import load_wdbc
    >>> X, y = load_wdbc(return_X_y=True)
    >>> ranker = SmoothMarginRanker(2000).fit(X, y)
    >>> bool(0 < ranker.smooth_margin_[-1] < ranker.margin_ <= ranker.rho_)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **PairBooster._parameter_constraints,
        "step": [StrOptions({"closed", "exact"})],
    }

    def __init__(
        self,
        n_estimators: int = 1000,
        *,
        step: str = "closed",
        weak_rankers: object = "stumps",
        target: str = "binary",
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
        self.step = step
        self.weak_rankers = weak_rankers
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
        return SmoothAscent(exact=self.step == "exact")

    def _natural_link(self, scores: FloatArray, rows: RelatedRows) -> Link:
        return p_classification(scores, rows.y, rows.weight, 1.0)

    def _after(self, ensemble: Ensemble) -> None:
        rounds = ensemble.history
        self.smooth_margin_ = np.array([r["smooth_margin"] for r in rounds])
        self.theorem_7_ = np.array([r["theorem_7"] for r in rounds], dtype=bool)
        self.rho_ = min((r["rho"] for r in rounds), default=np.inf)
        self.separated_ = bool(len(rounds) and self.smooth_margin_[-1] > 0)

    def _warn(self, ensemble: Ensemble) -> None:
        super()._warn(ensemble)
        if ensemble.history and not self.separated_:
            warn_caller(
                f"The pairs were not separated in {len(ensemble.history)} rounds, so the margin is "
                "not positive and there is none to enlarge: this is the solution of coordinate "
                "descent RankBoost. Raise n_estimators or allow more thresholds; if the pairs "
                "contradict each other, use RankBoost.",
                ConvergenceWarning,
            )
