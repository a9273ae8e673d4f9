"""Plug-in ranking: estimate probabilities by a strongly proper loss, and rank by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_consistent_length

from toprank._arrays import ArrayOrTensor, TableLike
from toprank._numerics import FloatArray
from toprank.losses.proper import PROPER_LOSSES, ProperLoss, canonical, get_proper_loss
from toprank.objective import PointwiseProblem, PointwiseTask, TwoClassProblem
from toprank.pairs import check_counts, check_labels, to_numpy
from toprank.rankers.base import LinearRanker
from toprank.rankers.calibration import CalibrationReport, calibration_report
from toprank.rankers.common import Link, numpy_like, to_library_of
from toprank.rankers.minimiser import overflow_is_handled
from toprank.solvers import Result, free_gradient, penalty_gap
from toprank.solvers.result import at_rounding

if TYPE_CHECKING:
    from torch import Tensor

#: The slope in the intercept below which it counts as the best one.
_SETTLED = 1e-9
_CUTS = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0)


class ProperRanker(LinearRanker):
    r"""Linear plug-in ranking by a strongly proper composite loss (Agarwal 2012).

    Minimises, over coefficients and a free intercept b,

    .. math::
        \frac{1}{W} \sum_i w_i\, \ell(y_i, x_i'\beta + b) + \tfrac{\alpha}{2} |\beta|^2

    with W the total weight. No pairs are needed: the score estimates the class probability
    through the loss's own link, the class probability ranks best, and the ranking regret is at
    most sqrt(2) / (p(1-p) sqrt(lambda)) times the root of the loss's regret (Theorem 13,
    `toprank.bounds.ranking_regret`).

    Parameters
    ----------
    loss : str or ProperLoss, default="logistic"
        One of "exponential", "logistic", "squared", "squared_hinge", "spherical",
        "canonical_exponential", "canonical_squared", "canonical_spherical"; or a loss of
        `toprank.losses.proper`, your own included. A loss that is not convex in the score
        ("spherical", whose link is the identity, and anything straight from ``from_bayes_risk``)
        is fitted with its canonical link instead; ``loss_`` is the loss that was fitted.
    alpha : float, default=1e-3
        L2 penalty on the coefficients; the loss is a mean, so scikit-learn's C is 1/(alpha W).
    solver : {"auto", "lbfgs", "newton"}, default="auto"
        "auto" is Newton up to a few hundred features and L-BFGS beyond.
    max_iter : int, optional
        Iterations; by default 1,000 (newton) or 10,000 (lbfgs).
    tol : float, default=1e-6
        Stop when the largest entry of the gradient is this small.
    positive : bool, default=False
        Whether no coefficient may be negative; the intercept may.
    class_weight : "balanced", dict or None
        Multiplies the sample weights. Ranking and probabilities are then those of the
        reweighted classes.
    warm_start, n_jobs, verbose
        As in :class:`PNormPush`.

    Attributes
    ----------
    coef_ : array of shape (1, d)
    intercept_ : array of shape (1,)
    classes_ : array of shape (2,)
    loss_ : ProperLoss
        The composite loss that was minimised; its ``inverse_link`` gives the probabilities.
    n_iter_ : int
    objective_ : float
        The minimised objective, penalty included.
    optimality_gap_ : float
        Certified bound on ``objective_`` minus the minimum; infinite if alpha=0.
    history_ : list of dict
        Per iteration: objective and gradient.

    Notes
    -----
    Losses with a bounded prediction space (the squared and spherical ones) are fitted by their
    convex extension to the whole line, and scores beyond it stand for a probability of 0 or 1
    (Example 3). Only ``predict_proba`` truncates them: ``decision_function`` still tells such rows
    apart, which is what a list needs, and Theorem 13 holds for it too, because the proof of
    Corollary 12 counts the ties that truncation makes as errors.

    Examples
    --------
    >>> from toprank import ProperRanker
    >>> from toprank.datasets import load_wdbc
    >>> X, y = load_wdbc(return_X_y=True)
    >>> ranker = ProperRanker(loss="squared").fit(X, y)
    >>> ranker.predict_proba(X).shape
    (569, 2)
    >>> ProperRanker(loss="spherical").fit(X, y).loss_
    CanonicalSpherical()
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **LinearRanker._parameter_constraints,
        "loss": [StrOptions(set(PROPER_LOSSES)), ProperLoss],
        "solver": [StrOptions({"auto", "lbfgs", "newton"})],
    }
    del _parameter_constraints["link"]

    def __init__(
        self,
        loss: str | ProperLoss = "logistic",
        *,
        alpha: float = 1e-3,
        solver: str = "auto",
        max_iter: int | None = None,
        tol: float = 1e-6,
        positive: bool = False,
        class_weight: object = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.loss = loss
        self.alpha = alpha
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.positive = positive
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _task(self) -> PointwiseTask:
        loss = get_proper_loss(self.loss)
        self.loss_ = loss if loss.convex else canonical(loss)
        if self.verbose and self.loss_ is not loss:
            print(f"[ProperRanker] {loss!r} is not convex in the score; fitting {self.loss_!r}")
        return PointwiseTask(self.loss_, self.alpha)

    def _start(self, problem: TwoClassProblem) -> tuple[FloatArray, bool]:
        share = problem.positive_share  # type: ignore[attr-defined]
        best = self.loss_.link(share)
        if self.warm_start and self._has_point(problem):
            point = self._point(problem)
            alike = share * self.loss_.loss(True, best) + (1 - share) * self.loss_.loss(False, best)
            with overflow_is_handled():
                # rows far from those of the last fit may lie where the loss is flat or infinite
                if problem.value(point) <= alike:
                    return point, True
        return np.append(np.zeros(problem.size - 1), best), False

    def _point(self, problem: TwoClassProblem) -> FloatArray:
        coef = super()._point(problem)
        shift = float(self.intercept_[0]) + self._half + problem.data.units.shift(coef)
        return np.append(coef, shift)

    def _known_result(self, problem: TwoClassProblem) -> Result:
        result = super()._known_result(problem)
        _settle(problem, result, self._lower(problem))  # type: ignore[arg-type]
        return result

    def _minimise(self, problem: TwoClassProblem) -> Result:
        result = super()._minimise(problem)
        if isinstance(problem, PointwiseProblem) and np.isfinite(result.value):
            with overflow_is_handled():
                _settle(problem, result, self._lower(problem))
        return result

    @property
    def _half(self) -> float:
        """The score that stands for one half: zero for every convex loss of Table 1."""
        return float(self.loss_.link(0.5))

    def _check_link(self, task: object) -> None:
        """Every loss brings its own link."""

    def _fit_link(self, problem: TwoClassProblem, result: Result) -> Link:
        return Link(1.0, float(result.coef[-1]) - self._half)

    def _keep(self, result: Result) -> None:
        super()._keep(replace(result, coef=result.coef[:-1]))

    def predict_proba(self, X: TableLike) -> FloatArray | Tensor:
        """Return the probabilities of the two classes, by the inverse link of the loss."""
        scores = self.decision_function(X)
        return to_library_of(self.loss_.probabilities(numpy_like(scores) + self._half), scores)

    def predict_log_proba(self, X: TableLike) -> ArrayOrTensor:
        """Return the logarithms of the probabilities; minus infinity where one is zero."""
        scores = self.decision_function(X)
        return to_library_of(self.loss_.log_probabilities(numpy_like(scores) + self._half), scores)

    def calibration_report(
        self,
        X: TableLike,
        y: ArrayLike,
        *,
        cuts: Sequence[int | float] = _CUTS,
        level: float = 0.95,
        sample_weight: ArrayLike | None = None,
    ) -> CalibrationReport:
        """Compare probabilities with labels at the top of the list, on rows kept aside.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n, d)
            Rows that were not used to fit.
        y : array-like of shape (n,)
            Their labels.
        cuts : sequence of int or float
            Where the bands of the list end: counts (int) or fractions (float) of it.
        level : float, default=0.95
            Confidence level of the intervals for the observed shares.
        sample_weight : array-like of shape (n,), optional
            Repetition counts.

        Returns
        -------
        CalibrationReport
            Prints as a table; ``bands`` holds its lines.

        Examples
        --------
        >>> from toprank import ProperRanker
        >>> from toprank.simulate import linear_bipartite
        >>> model = linear_bipartite(prevalence=0.2)
        >>> ranker = ProperRanker().fit(*model.sample(5000, random_state=0))
        >>> report = ranker.calibration_report(*model.sample(5000, random_state=1), cuts=(50, 500))
        >>> [int(band.rows) for band in report.bands], report.whole.reliable
        ([50, 450], True)
        """
        scores = to_numpy(self.decision_function(X))
        labels = check_labels(y)
        check_consistent_length(scores, labels)
        if not np.all(np.isin(labels, self.classes_)):
            raise ValueError(f"y has labels other than the classes fitted: {self.classes_}.")
        weight = check_counts(sample_weight, len(scores))
        probability = self.loss_.inverse_link(scores + self._half)
        positive = np.asarray(labels == self.classes_[1])
        return calibration_report(positive, scores, probability, weight, cuts=cuts, level=level)


def _settle(problem: PointwiseProblem, result: Result, lower: FloatArray | None) -> None:
    """Give the coefficients their best intercept, and certify them."""
    settled = problem.settle_intercept(result.coef)
    value, gradient = problem.value_grad(settled)
    if not at_rounding(value - result.value, value):
        return  # from where the loss is flat a step leads too far
    result.coef, result.value, result.gradient = settled, value, gradient
    penalty = problem.penalty[:-1]
    if np.all(penalty > 0) and abs(result.gradient[-1]) <= _SETTLED:
        room = np.inf if lower is None else (result.coef - lower)[:-1]
        result.gap = penalty_gap(result.gradient[:-1], penalty, room)
        result.converged = result.converged or at_rounding(result.gap, result.value)
    if lower is not None:
        result.gradient = free_gradient(result.coef, result.gradient, lower)
