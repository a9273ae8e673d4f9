"""What the linear rankers share: one door for the data, one fit, scores, probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import compute_class_weight
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from toprank._numerics import FloatArray
from toprank.blocks import RowBlocks, Units, Workers, safe_units
from toprank.objective import (
    LinearProblem,
    ScoredProblem,
    Task,
    has_dual,
    primal_dual_gap,
)
from toprank.pairs import check_weights, distinct_labels
from toprank.rankers.links import Link, Probabilities, logistic, p_classification
from toprank.solvers import SEPARABLE, SOLVERS, Result, minimise

DEFAULT_ROUNDS = {"newton": 1000, "lbfgs": 10_000, "coordinate": 100}
#: Up to this many features auto means Newton where one sweep gives the Hessian. Where it is put
#: together column by column it costs as many evaluations as there are features.
_NEWTON_UP_TO = {"swept": 500, "scored": 100}


class LinearRanker(Probabilities, ClassifierMixin, BaseEstimator):
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

    def _task(self, positive: NDArray[np.bool_], weight: FloatArray | None) -> Task:
        raise TypeError(f"{type(self).__name__} must define _task")

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Any:
        """Fit the ranker.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n, d)
            Numbers of any type; float32, bool and small integers are converted block by
            block, sparse matrices stay sparse, and X is never copied as a whole.
        y : array-like of shape (n,)
            Labels of two classes; the larger one in sorted order belongs at the top.
        sample_weight : array-like of shape (n,), optional
            Repetition counts; a row of weight zero is absent.

        Returns
        -------
        self
        """
        with overflow_is_handled():
            X, y = validate_data(self, X, y, accept_sparse="csr", dtype="numeric")
        X = numeric(X)
        classes, positive = two_classes(y)
        weight = self._weights(classes, y, positive, sample_weight)
        task = self._task(positive, weight)
        self._check_link(task)
        workers = Workers(self.n_jobs)
        with workers.running():
            problem = task.problem(RowBlocks(X, workers, safe_units(X)))
            result = self._minimise(problem)
            if not is_finite(result):  # some row the sample missed is huge
                units = safe_units(X, every_row=True)
                problem = task.problem(RowBlocks(X, workers, units))
                result = self._minimise(problem)
            if self.alpha == 0 and has_dual(problem) and result.message != SEPARABLE:
                with overflow_is_handled():
                    result.gap = primal_dual_gap(problem, result.coef)
            link = self._fit_link(problem, result)
        self.classes_ = classes
        self._units = problem.source.units
        self._keep(result)
        self._keep_link(link)
        self._warn(result, problem)
        return self

    def _weights(
        self,
        classes: NDArray[Any],
        y: NDArray[Any],
        positive: NDArray[np.bool_],
        sample_weight: ArrayLike | None,
    ) -> FloatArray | None:
        weight = check_weights(positive, sample_weight)
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
        units = problem.source.units
        if self.warm_start and getattr(self, "coef_", np.empty(0)).size == problem.size:
            return units.from_raw(self.coef_.reshape(-1).astype(np.float64)), True
        return np.zeros(problem.size), False

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
        limit = _NEWTON_UP_TO["scored" if isinstance(path, ScoredProblem) else "swept"]
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
        task, scores = problem.task, problem.scores(result.coef)
        if self.link == "p_classification":
            p = float(getattr(task.price, "p", np.nan))
            return p_classification(scores, task.positive, task.weight, p)
        return logistic(scores, task.positive, task.weight)

    def _keep_link(self, link: Link) -> None:
        self._offset, self._slope = link.offset, link.slope
        shift = self._units.shift(self._units.from_raw(self.coef_[0]))
        self.intercept_ = np.array([link.offset - shift])

    def _warn(self, result: Result, problem: LinearProblem) -> None:
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
        warnings.warn(cause, ConvergenceWarning, stacklevel=3)

    def _is_boosting(self, problem: LinearProblem) -> bool:
        """A fixed number of rounds is the paper's algorithm, not a failure to converge."""
        return self._solver_for(problem) == "coordinate"

    def decision_function(self, X: Any) -> FloatArray:
        """Return the ranking score of each row; zero is a probability of one half."""
        check_is_fitted(self)
        workers = Workers(self.n_jobs)
        with workers.running(), overflow_is_handled():
            X = validate_data(self, X, accept_sparse="csr", dtype="numeric", reset=False)
            X = numeric(X)
            source = RowBlocks(X, workers, self._units)
            scores = source.scores(self._units.from_raw(self.coef_[0]))
        scores += self._offset
        return scores

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


def is_finite(result: Result) -> bool:
    """Whether the solver ended at finite coefficients."""
    return bool(np.isfinite(result.value) and np.all(np.isfinite(result.coef)))


def numeric(X: Any) -> Any:
    """Columns of mixed numeric types arrive as objects; everything else stays as it is."""
    return X.astype(np.float64) if X.dtype == object else X


def two_classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the classes and which rows belong to the second, positive one."""
    if y.dtype.kind not in "biu":  # whole numbers are labels; anything else may be a quantity
        check_classification_targets(y)
    classes = distinct_labels(y)
    if len(classes) == 1:
        raise ValueError(
            f"y has one class only ({classes.tolist()[0]!r}); a ranking needs rows of two classes: "
            "check the label column, or the split that lost the rare class."
        )
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(y)}: {len(classes)} classes. Choose the class that belongs at the "
            "top and pass y == that_class."
        )
    return classes, np.asarray(y == classes[1])
