"""What the linear rankers share: one door for the data, one fit, scores, probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import compute_class_weight
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from toprank._numerics import FloatArray
from toprank.blocks import BlockSource, RowBlocks, Units, Workers, safe_units
from toprank.blocks.on_device import OnDevice
from toprank.blocks.tensors import tensor_on_device
from toprank.blocks.torch import from_torch
from toprank.objective import (
    LinearProblem,
    ScoredProblem,
    Task,
    has_dual,
    primal_dual_gap,
)
from toprank.objective.blockwise import block_problem
from toprank.pairs import check_span, check_weights
from toprank.rankers.arrays_in import given_back, known_rows, of_the_host, scores_of
from toprank.rankers.block_scoring import BlockScoring
from toprank.rankers.blockwise import Certificate, check_columns, look
from toprank.rankers.links import Link, Probabilities, logistic_curve, vanishing_skew
from toprank.rankers.targets import known_labels, two_classes
from toprank.rankers.whole import fits, warn_caller
from toprank.solvers import SEPARABLE, SOLVERS, Result, duality_gap, minimise

DEFAULT_ROUNDS = {"newton": 1000, "lbfgs": 10_000, "coordinate": 100}
#: Up to this many features auto means Newton where one sweep gives the Hessian. Where it is put
#: together column by column it costs as many evaluations as there are features.
_NEWTON_UP_TO = {"swept": 500, "scored": 100, "peaked": 500}


class LinearRanker(BlockScoring, Probabilities, ClassifierMixin, BaseEstimator):
    """Base of the linear rankers: score = x' coef + intercept, higher is nearer the top.

    A subclass says what to minimise in ``_task``.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions({"auto", *SOLVERS})],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "link": [StrOptions({"logistic", "p_classification"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    alpha: float
    solver: str
    max_iter: int | None
    tol: float
    link: str
    class_weight: Any
    warm_start: bool
    n_jobs: int | None
    verbose: int
    _units: Units

    def _task(self, positive: NDArray[np.bool_] | None, weight: FloatArray | None) -> Task:
        raise TypeError(f"{type(self).__name__} must define _task")

    @fits
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Any:
        """Fit the ranker.

        Parameters
        ----------
        X : array, data frame, sparse matrix or tensor of shape (n, d)
            Numbers of any type; float32, bool and small integers are converted block by
            block, sparse matrices stay sparse, and X is never copied as a whole. A tensor or
            CuPy array on a GPU stays there (see `toprank.blocks.from_torch`); coefficients
            are NumPy arrays all the same.
        y : array-like of shape (n,)
            Labels of two classes; the larger one in sorted order belongs at the top.
        sample_weight : array-like of shape (n,), optional
            Repetition counts; a row of weight zero is absent.

        Returns
        -------
        self
        """
        if tensor_on_device(X) is not None:
            return self.fit_blocks(from_torch(X, y, sample_weight))
        with overflow_is_handled():
            X, y = known_rows(of_the_host(X)), known_labels(of_the_host(y))
            X, y = validate_data(self, X, y, accept_sparse="csr", dtype="numeric")
        X = numeric(X)
        classes, positive = two_classes(y)
        weight = self._weights(classes, y, positive, sample_weight)
        task = self._task(positive, weight)
        self._check_link(task)
        workers = Workers(self.n_jobs)
        with workers.running():
            problem, result = solved(
                X, lambda units: task.problem(RowBlocks(X, workers, units)), self._minimise
            )
            self._keep_fit(classes, problem, result)
        self._warn(result, problem)
        return self

    @fits
    def fit_blocks(self, source: BlockSource) -> Any:
        """Fit the ranker to the rows of a block source, wherever they lie.

        The model is that of ``fit`` on all rows: the same objective, minimised by passes over
        the blocks. The exponential loss takes one pass an evaluation with the price "power"
        (p = inf included) and two with the others; ``ProperRanker`` takes one. The logistic loss
        takes three on 200,000 rows or more, with sums at interpolation nodes that equal those
        over the rows to rounding. Hinges, a loss of your own, ``solver="coordinate"`` and fewer
        rows take two and hold the scores of all rows (8 bytes a row) where ``fit_blocks`` is
        called: exact too, by sorting there.

        Parameters
        ----------
        source : BlockSource
            From `toprank.blocks`: ``from_arrays``, ``from_memmap``, ``from_parquet``, ...

        Returns
        -------
        self
            With ``passes_``: how often the data were passed over, and for what.
        """
        task = self._task(None, None)
        self._check_link(task)
        workers = Workers(self.n_jobs)
        # where no rows come to this process its threads have nothing to do
        idle = getattr(source, "keeps_samples", False)
        with nullcontext() if idle else workers.running(), overflow_is_handled():
            data = look(source, self.class_weight, workers, task.intercepts)
            problem = block_problem(data, task, gather=self.solver == "coordinate")
            result = self._minimise(problem)
            self._keep_fit(data.view.classes, problem, result)
        self._keep_columns(source)
        self._warn(result, problem)
        self.passes_ = dict(data.passes)
        return self

    def _keep_fit(self, classes: NDArray[Any], problem: LinearProblem, result: Result) -> None:
        """Keep what a solver found, with a link fitted to its scores."""
        if self.alpha == 0 and has_dual(problem) and result.message != SEPARABLE:
            with overflow_is_handled():
                result.gap = primal_dual_gap(problem, result.coef)
        link = self._fit_link(problem, result)
        if hasattr(self, "passes_"):  # those of an earlier fit to blocks
            del self.passes_
        self.classes_ = classes
        self._units = problem.source.units
        self._keep(result)
        self._keep_link(link)

    def _keep_columns(self, source: BlockSource) -> None:
        """What scikit-learn's validation keeps of an array."""
        self.n_features_in_ = source.n_features
        if source.feature_names is not None:
            self.feature_names_in_ = np.asarray(source.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _weights(
        self,
        classes: NDArray[Any],
        y: NDArray[Any],
        positive: NDArray[np.bool_],
        sample_weight: ArrayLike | None,
    ) -> FloatArray | None:
        weight = check_weights(positive, sample_weight)
        check_span(weight)
        if self.class_weight is None:
            return weight
        of_class = compute_class_weight(
            self.class_weight, classes=classes, y=y, sample_weight=weight
        )
        by_class = np.where(positive, of_class[1], of_class[0])
        return check_weights(positive, by_class if weight is None else by_class * weight)

    def _minimise(self, problem: LinearProblem) -> Result:
        solver = self._solver_for(problem)
        start, warm = self._start(problem)
        with overflow_is_handled():
            return minimise(
                problem,
                start,
                SOLVERS[solver],
                max_iter=self.max_iter or DEFAULT_ROUNDS[solver],
                tol=self.tol,
                callback=self._report if self.verbose else None,
                warm=warm,
            )

    def _start(self, problem: LinearProblem) -> tuple[FloatArray, bool]:
        """Where the solver starts, and whether that is the last fit's solution."""
        if self.warm_start and self._has_point(problem):
            return self._point(problem), True
        return np.zeros(problem.size), False

    def _has_point(self, problem: LinearProblem) -> bool:
        """Whether there is an earlier fit to as many columns."""
        return getattr(self, "coef_", np.empty(0)).size == problem.source.n_features

    def _point(self, problem: LinearProblem) -> FloatArray:
        """What was fitted, in the coefficients and units of a problem."""
        return problem.source.units.from_raw(self.coef_.reshape(-1).astype(np.float64))

    def _solver_for(self, problem: LinearProblem) -> str:
        if self.solver == "newton" and not problem.has_curvature:
            raise ValueError(
                "solver='newton' needs the curvature of the price and of the loss; give them as "
                "a third callable, or use solver='lbfgs'."
            )
        if self.solver != "auto":
            return self.solver
        if not problem.has_curvature:
            return "lbfgs"
        path = problem if problem.smooth else problem.smoothed(1.0)
        kind = "scored" if isinstance(path, ScoredProblem) else "swept"
        limit = _NEWTON_UP_TO["peaked" if problem.peaked else kind]
        return "newton" if problem.size <= limit else "lbfgs"

    def _report(self, iteration: int, record: dict[str, Any]) -> None:
        facts = "  ".join(
            f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in record.items()
        )
        print(f"[{type(self).__name__}] {iteration:4d}  {facts}", flush=True)

    def _keep(self, result: Result) -> None:
        self.coef_ = self._units.to_raw(result.coef).reshape(1, -1)
        self.n_iter_ = max(1, result.n_iter)
        self.objective_ = result.value
        self.optimality_gap_ = result.gap
        self.history_ = result.history

    def _check_link(self, task: Task) -> None:
        p = getattr(task.price, "p", None)
        if self.link == "p_classification" and not (
            task.loss.factorises and task.end == "top" and p is not None
        ):
            raise ValueError(
                "link='p_classification' belongs to the power price with a finite p, the "
                "exponential loss and end='top'. Use link='logistic' here."
            )

    def _fit_link(self, problem: LinearProblem, result: Result) -> Link:
        if self.link == "p_classification":
            p = float(getattr(problem.task.price, "p", np.nan))
            return vanishing_skew(*problem.log_masses(result.coef), p)
        return logistic_curve(*problem.standard_scores(result.coef))

    def _keep_link(self, link: Link) -> None:
        self._offset, self._slope = link.offset, link.slope
        shift = self._units.shift(self._units.from_raw(self.coef_[0]))
        self.intercept_ = np.array([link.offset - shift])

    def _warn(self, result: Result, problem: LinearProblem) -> None:
        warn_of_dwarfed(self, problem.source.units)
        if problem.undetermined(result.coef):
            cause = (
                "The classes are separable: a linear score puts every positive above every "
                "negative, so with alpha=0 the objective has no finite minimiser, or no unique "
                "one. The ranking found is perfect on the training data, the scale of its scores "
                "is arbitrary. Set alpha > 0, for example 1e-3."
            )
        elif result.converged or self._is_boosting(problem):
            return
        else:
            cause = (
                f"The solver stopped early: {result.message} (largest gradient entry "
                f"{result.gradient_norm:.2g}). Raise max_iter, loosen tol, scale the features, "
                "or raise alpha."
            )
        warn_caller(cause, ConvergenceWarning)

    def _is_boosting(self, problem: LinearProblem) -> bool:
        """A fixed number of rounds is the paper's algorithm, not a failure to converge."""
        return self._solver_for(problem) == "coordinate"

    def decision_function(self, X: Any) -> Any:
        """Return the ranking score of each row; zero is a probability of one half."""
        check_is_fitted(self)
        if tensor_on_device(X) is not None:
            scores = scores_of(X, self.coef_[0], self._units, type(self).__name__)
            return given_back(OnDevice(scores + self._offset), X)
        workers, given = Workers(self.n_jobs), X
        with workers.running(), overflow_is_handled():
            X = known_rows(of_the_host(X))
            X = validate_data(self, X, accept_sparse="csr", dtype="numeric", reset=False)
            X = numeric(X)
            source = RowBlocks(X, workers, self._units)
            scores = source.scores(self._units.from_raw(self.coef_[0]))
        scores += self._offset
        return given_back(scores, given)

    def certify_blocks(self, source: BlockSource) -> Certificate:
        """Tell how far the fitted coefficients are from those of a fit to all rows of a source.

        For a ranker that was fitted to some of the rows, or to a sample of the negatives
        (`toprank.blocks.sample_negatives`): its objective and gradient on all of them. With a
        penalty the gradient bounds what a fit to all rows could still win; one Newton step
        estimates it.

        Parameters
        ----------
        source : BlockSource
            Labelled rows with the columns of the fit.

        Returns
        -------
        Certificate
            The ``objective`` on these rows, and how far it is from its minimum: a bound
            (``gap``) and an estimate (``excess``); ``coef_error`` is the relative distance to the
            coefficients of a fit to all rows, estimated.
        """
        check_is_fitted(self)
        check_columns(self, source)
        task = self._task(None, None)
        with overflow_is_handled():
            data = look(source, self.class_weight, Workers(1), task.intercepts)
            problem = block_problem(data, task)
            if not problem.smooth:
                raise ValueError(
                    "certify_blocks needs an objective with a gradient; the hinge loss and the max "
                    "price have corners. Certify a smooth relative: a squared hinge, a large p."
                )
            result = self._looked_up(problem)
            return Certificate.of(problem, result)

    def _looked_up(self, problem: LinearProblem) -> Result:
        """What is known of the objective at the fitted coefficients."""
        point = self._point(problem)
        value, gradient = problem.value_grad(point)
        gap = duality_gap(problem, gradient)
        return Result(point, value, gradient, 0, True, gap=gap)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags


@contextmanager
def overflow_is_handled() -> Iterator[None]:
    """Steps that go too far overflow, are seen to be infinite, and are taken back."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        yield


def solved(
    X: Any, problem_in: Callable[[Units], Any], minimise: Callable[[Any], Result]
) -> tuple[Any, Result]:
    """Return the problem in units that suit its columns, and its solution.

    The units are judged on some rows first. Should the solver fail, some other row may be huge.
    """
    problem = problem_in(safe_units(X))
    result = minimise(problem)
    if result.converged and is_finite(result):
        return problem, result
    units = safe_units(X, every_row=True)
    if is_finite(result) and units.scale is None:
        return problem, result
    problem = problem_in(units)
    return problem, minimise(problem)


def warn_of_dwarfed(ranker: Any, units: Units) -> None:
    """Say so where entries of a column count for nothing beside others of the same column."""
    if not units.dwarfed:
        return
    names = getattr(ranker, "feature_names_in_", None)
    which = ", ".join(str(j if names is None else names[j]) for j in units.dwarfed[:5])
    warn_caller(
        f"Of {len(units.dwarfed)} column(s) ({which}) some entries are so large (the largest float "
        "is 1.8e308) that the others count for nothing beside them. If they stand for missing "
        "values, replace them; else clip the column, or take its logarithm.",
        ConvergenceWarning,
    )


def is_finite(result: Result) -> bool:
    """Whether the solver ended at finite coefficients."""
    return bool(np.isfinite(result.value) and np.all(np.isfinite(result.coef)))


def numeric(X: Any) -> Any:
    """Columns of mixed numeric types arrive as objects; everything else stays as it is."""
    return X.astype(np.float64) if X.dtype == object else X
