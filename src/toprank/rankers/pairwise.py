"""The ranker for any pairs: graded or real labels, groups, crucial pairs; linear or kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import check_is_fitted

from toprank._arrays import Frame, IntArray, Matrix, TableLike
from toprank._numerics import FloatArray
from toprank.blocks import Units, Workers
from toprank.blocks.memory import ArraySource
from toprank.losses import TRAINABLE_LOSSES, Loss
from toprank.objective import BlockData, RelatedDual, related_dual_at
from toprank.objective.pairwise import PairProblem, PairTask
from toprank.pair_sums import concordance
from toprank.pairs import Pairs, RelatedRows, Relation, check_related_rows, check_table
from toprank.prices import PRICES, Price, get_price
from toprank.rankers.base import LinearRanker
from toprank.rankers.blockwise import BlockScore
from toprank.rankers.callbacks import STOPPED, TakesCallbacks
from toprank.rankers.common import fits, warn_caller
from toprank.rankers.kernel import KERNELS, Kernel, PairFeatures, PairRule, expansion, landmarks
from toprank.rankers.minimiser import stopped_early
from toprank.rankers.starts import bend_of, bend_warning, lowest_of_starts
from toprank.solvers import Result
from toprank.solvers.result import penalty_gap

if TYPE_CHECKING:
    from sklearn.utils import Tags


class PairRanker(TakesCallbacks, BaseEstimator):
    r"""Ranking by the convex risk of any pairs: grades, real labels, groups, crucial pairs.

    Minimises, over linear scores or a ball of a kernel's space, the empirical convex risk of
    Clémençon, Lugosi & Vayatis (a U-statistic),

    .. math::
        A_n(f) = \frac{\sum w_i w_k\, \ell(f_i - f_k)}{\sum w_i w_k}

    over the pairs (i, k) where i belongs above k, plus ``alpha/2 * |f|^2``. With a price it
    is the crucial-pairs push of Rudin 2009 (Section 7), the sum over k of
    :math:`g(\sum_i \ell(f_i - f_k))`. The exponential loss is minimised through the logarithm
    of the risk and a power price through its root: the same ranking for a ball of a given
    radius, without overflow. No list of pairs is made: with labels an evaluation costs
    O(n log n).

    Parameters
    ----------
    price : {"identity", "power", "exponential", "log1p", "max"}, Price or callables
        The price g of a height; "identity" weighs all pairs alike.
    loss : {"squared_hinge", "hinge", "logistic", "exponential"}, Loss or callables
        The loss of a pair; a loss of one's own is summed pair by pair.
    alpha : float, default=1e-3
        L2 penalty on the normalised objective.
    kernel : {"rbf", "poly", "linear", "laplacian", "cosine"}, callable or None, default=None
        None ranks by a linear score. A callable takes two rows and returns a number, as in
        scikit-learn's ``pairwise_kernels``.
    kernel_on : {"items", "pairs"}, default="items"
        "items": f(x) is in the kernel's space. "pairs": f(x, x') is, in that of a kernel on
        pairs, with preferences that need not be those of any score; an item's score is the mean
        of f(x, x_j) over the training rows. For at most 200,000 pairs.
    p : float, default=4.0
        The power of the price "power".
    end : {"top", "bottom"}, default="top"
        Whose heights are priced: at the top those of the losers, the rows that belong above k; at
        the bottom the reverse heights of the winners, the sum over i of g of the sum over k. The
        price "log1p" is one of the winners' at the top.
    gamma, degree, coef0 : kernel parameters
        gamma is a number, "scale" for 1 / (d * variance of X), or "auto" for 1 / d.
    n_components : int, optional
        Landmarks of the kernel. With no more rows (pairs, for a kernel on pairs) than this the
        solution is exact; with more, Nyström features are used and the memory is rows times
        ``n_components``. Default: exact up to 1,000 rows, 300 landmarks beyond.
    solver : {"auto", "lbfgs", "newton"}, default="auto"
        "auto" is Newton up to a hundred features and L-BFGS beyond.
    max_iter : int, optional
        Iterations; by default 1,000 (newton) or 10,000 (lbfgs).
    tol : float, default=1e-6
        Stop when the largest entry of the normalised objective's gradient is this small.
    warm_start : bool, default=False
        Start from the coefficients of the last fit (linear scores only).
    random_state : int, RandomState or None
        For the choice of landmarks.
    n_jobs : int, optional
        Threads over the rows of X.
    verbose : int, default=0
        Print every iteration.

    Attributes
    ----------
    coef_ : array of shape (d,)
        Coefficients, for linear scores only.
    intercept_ : float
        ``predict(X)`` is ``X @ coef_ + intercept_``, for linear scores; it does not matter to
        the ranking.
    dual_coef_, landmarks_ : arrays
        For a kernel: the score is ``K(x, landmarks_) @ dual_coef_ + intercept_``.
    n_pairs_ : int
        Pairs that were compared.
    n_iter_, objective_, optimality_gap_, history_
        Iterations, the minimum, a bound on how far above the true minimum it is (infinite for a
        price that is not convex on the heights met), and what happened at each iteration.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank import PairRanker
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 3))
    >>> grades = np.digitize(X @ [1.0, -2.0, 0.0] + rng.standard_normal(500), [-1.0, 1.0])
    >>> ranker = PairRanker().fit(X, grades)
    >>> bool(ranker.score(X, grades) > 0.85)
    True

    Preferences between rows need no labels:

    >>> winners_and_losers = [[0, 1], [2, 1], [2, 3]]
    >>> PairRanker().fit(X[:4], pairs=winners_and_losers).predict(X[:4]).shape
    (4,)
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **{
            name: LinearRanker._parameter_constraints[name]
            for name in ("alpha", "max_iter", "tol", "warm_start", "n_jobs", "verbose")
        },
        "price": [StrOptions(PRICES.keys()), Price, tuple],
        "loss": [StrOptions(TRAINABLE_LOSSES), Loss, tuple],
        "kernel": [StrOptions(set(KERNELS)), callable, None],
        "kernel_on": [StrOptions({"items", "pairs"})],
        "p": [Interval(Real, 1, None, closed="left"), Options(Real, {np.inf})],
        "end": [StrOptions({"top", "bottom"})],
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"scale", "auto"})],
        "degree": [Interval(Real, 1, None, closed="left")],
        "coef0": [Interval(Real, 0, None, closed="left")],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "solver": [StrOptions({"auto", "lbfgs", "newton"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        price: str | Price | tuple[object, ...] = "identity",
        loss: str | Loss | tuple[object, ...] = "squared_hinge",
        alpha: float = 1e-3,
        kernel: str | Callable[..., float] | None = None,
        *,
        kernel_on: str = "items",
        p: float = 4.0,
        end: str = "top",
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 1.0,
        n_components: int | None = None,
        solver: str = "auto",
        max_iter: int | None = None,
        tol: float = 1e-6,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.price = price
        self.loss = loss
        self.alpha = alpha
        self.kernel = kernel
        self.kernel_on = kernel_on
        self.p = p
        self.end = end
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # the way from a problem to its minimum is that of the linear rankers
    positive = False
    _minimise = LinearRanker._minimise
    _minimise_from = LinearRanker._minimise_from
    _turned = LinearRanker._turned
    _after_iteration = LinearRanker._after_iteration
    _lower = LinearRanker._lower
    _start = LinearRanker._start
    _has_point = LinearRanker._has_point
    _point = LinearRanker._point
    _solver_for = LinearRanker._solver_for
    _report = LinearRanker._report

    @fits
    def fit(
        self,
        X: TableLike,
        y: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        pairs: ArrayLike | Pairs | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the ranker.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n, d)
            Numbers of any type.
        y : array-like of shape (n,), optional
            Grades or real labels; a larger one belongs above a smaller one, equal ones are not
            compared. May be left out where ``pairs`` are given.
        groups : array-like of shape (n,), optional
            The query, user or race of each row; only rows of one group are compared.
        pairs : array-like of shape (m, 2) or toprank.Pairs, optional
            Rows (winner, loser). They replace the pairs that y implies; repeated and
            contradictory ones count as often as they come. `toprank.Pairs` may give each a weight,
            the pi of Rudin 2009 (Section 7), by which its loss is multiplied inside the height.
        sample_weight : array-like of shape (n,), optional
            Repetition counts; a row of weight zero is absent, a pair weighs the product.

        Returns
        -------
        self
        """
        X = self._check_X(X, reset=True)
        rows = self._check_rows(X, y, groups, pairs, sample_weight)
        relation, weight = rows.relation(), rows.counts
        self.n_pairs_ = relation.n_pairs
        for name in ("_rule", "_landmarks", "dual_coef_", "landmarks_"):
            self.__dict__.pop(name, None)
        if self.kernel is None:
            self._fit_linear(X, relation, weight)
            return self
        self.__dict__.pop("coef_", None)
        present = slice(None) if np.all(weight > 0) else np.flatnonzero(weight)
        kernel = Kernel.resolve(
            self.kernel, X[present], weight[present], self.gamma, self.degree, self.coef0
        )
        if self.kernel_on == "items":
            self._fit_items(X, relation, weight, kernel, present)
        else:
            self._fit_pairs(X, relation, weight, kernel)
        return self

    def _check_X(self, X: TableLike, *, reset: bool) -> Matrix:
        table = check_table(X, estimator=self, sparse=True, reset=reset)
        if self.kernel is not None and sparse.issparse(table) and not table.has_canonical_format:
            table = table.copy()
            table.sum_duplicates()  # squares of parts are not the square of an entry
        return table

    def _check_rows(
        self,
        table: Matrix,
        y: ArrayLike | None,
        groups: ArrayLike | None,
        pairs: ArrayLike | Pairs | None,
        sample_weight: ArrayLike | None,
    ) -> RelatedRows:
        """Labels beside pairs are not read: pairs say by themselves which rows are compared."""
        labels = y if pairs is None else None
        return check_related_rows(self, table, labels, groups, pairs, sample_weight)

    def _task(self, relation: Relation, weight: FloatArray) -> PairTask:
        return PairTask.build(
            relation,
            weight,
            price=self.price,
            p=self.p,
            loss=self.loss,
            end=self.end,
            alpha=self.alpha,
        )

    def _solve(
        self, X: Matrix | Frame, relation: Relation, weight: FloatArray
    ) -> tuple[Result, Units]:
        """Minimise over the columns of X; say so where the minimum was not reached."""
        task = self._task(relation, weight)
        workers = Workers(self.n_jobs)
        with workers.start_threads():
            problem = PairProblem(BlockData.of(X, self.n_jobs), task, workers)
            result = self._minimise(problem)
            bend = bend_of(problem, result.coef)
            if bend is not None:
                result = lowest_of_starts(problem, result, self._minimise_from)
            separable = self.alpha == 0 and problem.separates(result.coef)
        self.n_iter_ = max(1, result.n_iter)
        self.objective_ = result.value
        self.optimality_gap_ = result.gap
        self.history_ = result.history
        _warn(result, separable, bend)
        return result, problem.data.units

    def _at(self, problem: PairProblem, coef: FloatArray) -> dict[str, object] | None:
        """What makes a copy of this ranker one that was fitted up to here; None for kernels."""
        units = problem.data.units
        at = {"coef_": coef, "intercept_": -units.shift(coef), "_units": units}
        return at if self.kernel is None else None

    def _fit_linear(self, X: object, relation: Relation, weight: FloatArray) -> None:
        result, self._units = self._solve(X, relation, weight)
        self.coef_: FloatArray = result.coef
        self.intercept_ = -self._units.shift(result.coef)

    def _fit_items(
        self,
        X: Matrix,
        relation: Relation,
        weight: FloatArray,
        kernel: Kernel,
        present: IntArray | slice,
    ) -> None:
        chosen = landmarks(kernel, X[present], self.n_components, self.random_state)
        features = np.zeros((X.shape[0], chosen.basis.shape[1]))
        features[present] = chosen.features(X[present])
        result, _ = self._solve(features, relation, weight)
        self._keep_expansion(kernel, chosen.points, chosen.dual(result.coef), 0.0)

    def _fit_pairs(
        self, X: TableLike, relation: Relation, weight: FloatArray, kernel: Kernel
    ) -> None:
        price = get_price(self.price, self.p)
        if (price.outer != "losers") != (self.end == "bottom"):
            raise ValueError(
                f"kernel_on='pairs' prices the losers' heights; the {price.name} price with "
                f"end={self.end!r} is one of the winners'. Use kernel_on='items', or price='power' "
                "with end='top'."
            )
        features = PairFeatures(kernel, X, relation, self.n_components, self.random_state)
        task_weight = features.weight(weight)
        result, _ = self._solve(features.design(), features.relation(), task_weight)
        rule = features.rule(result.coef, weight)
        self._rule: PairRule = rule
        self._keep_expansion(kernel, rule.items, rule.dual, float(np.sum(rule.dual)))

    def _keep_expansion(
        self, kernel: Kernel, points: Matrix, dual: FloatArray, shift: float
    ) -> None:
        self._kernel = kernel
        self.landmarks_ = points
        self.dual_coef_ = dual
        self.intercept_ = shift

    def dual(
        self,
        X: TableLike,
        y: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        pairs: ArrayLike | Pairs | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> RelatedDual:
        """Return the dual point of the fit: how much each crucial pair counts.

        The weights of Rudin 2009 (Theorem 4), for the push over crucial pairs. A fitted ranker does
        not keep its rows, so they are given again, as in ``fit``. Not for a kernel on pairs, which
        has no score.

        Returns
        -------
        RelatedDual
            ``row_weight``, ``pair_weights()`` and, for linear scores, the ``gap``.

        Examples
        --------
        >>> from toprank import PairRanker
        >>> X, pairs = [[0.0], [1.0], [0.5]], [[1, 0], [1, 2], [0, 2]]
        >>> dual = PairRanker(loss="logistic").fit(X, pairs=pairs).dual(X, pairs=pairs)
        >>> rows, weight = dual.pair_weights()
        >>> rows.tolist(), bool(weight[2] > weight[0])  # the one that is out of order
        ([[1, 0], [1, 2], [0, 2]], True)
        """
        check_is_fitted(self)
        if hasattr(self, "_rule"):
            raise ValueError("kernel_on='pairs' has no score per row, and so no weights of pairs.")
        table = self._check_X(X, reset=False)
        rows = self._check_rows(table, y, groups, pairs, sample_weight)
        objective = self._task(rows.relation(), rows.counts).objective()
        point = related_dual_at(objective, self.predict(X), np.nan)
        if hasattr(self, "dual_coef_"):
            return point
        gradient = self.alpha * self.coef_ - np.asarray(table.T @ point.row_weight).reshape(-1)
        return replace(point, gap=penalty_gap(gradient, self.alpha))

    def predict(self, X: TableLike) -> FloatArray:
        """Return the score of each row; higher belongs nearer the top."""
        check_is_fitted(self)
        X = self._check_X(X, reset=False)
        if hasattr(self, "dual_coef_"):
            return expansion(self._kernel, X, self.landmarks_, self.dual_coef_) + self.intercept_
        source = ArraySource(X, None, None, None, self.n_jobs)
        scores: FloatArray = source.write_scores(BlockScore(self._units, self.coef_, 0.0))
        return scores

    def compare(self, first: TableLike, second: TableLike) -> FloatArray:
        """Return f(x, x') for each row x of ``first`` and the row x' of ``second`` beside it.

        Positive where x belongs above x'. For all but a kernel on pairs it is the difference of
        the scores.
        """
        check_is_fitted(self)
        first, second = (self._check_X(rows, reset=False) for rows in (first, second))
        if first.shape[0] != second.shape[0]:
            raise ValueError(
                f"first has {first.shape[0]} rows and second {second.shape[0]}; they are compared "
                "row by row, so they must be as many."
            )
        if hasattr(self, "_rule"):
            return self._rule.compare(first, second)
        return self.predict(first) - self.predict(second)

    def score(
        self,
        X: TableLike,
        y: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        pairs: ArrayLike | Pairs | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the concordance: the share of the pairs that are in order, ties one half.

        The pairs are those that ``fit`` would compare, each with the product of its weights.
        """
        scores = self.predict(X)
        rows = self._check_rows(scores, y, groups, pairs, sample_weight)
        return concordance(rows.relation(), scores, rows.weight)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = not callable(self.kernel)
        return tags


def _warn(result: Result, separable: bool, bend: str | None) -> None:
    if bend is not None:
        cause = bend_warning(bend)
    elif separable:
        cause = (
            "The pairs are separable: a score puts every one of them in order, so with alpha=0 "
            "the objective has no finite minimiser, or no unique one. The ranking found is "
            "perfect on the training pairs, the scale of its scores is arbitrary. Set alpha > 0, "
            "for example 1e-3."
        )
    elif result.converged or result.message == STOPPED:
        return
    else:
        cause = stopped_early(result)
    warn_caller(cause, ConvergenceWarning)
