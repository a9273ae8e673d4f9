"""What the linear rankers share: one door for the data, one fit, scores, probabilities."""

from __future__ import annotations

from contextlib import nullcontext
from copy import copy
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Never, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from toprank._arrays import AnyArray, TableLike
from toprank._numerics import FloatArray
from toprank.blocks import BlockSource, Units
from toprank.blocks.checkpoint import keep_passes
from toprank.blocks.memory import ArraySource
from toprank.blocks.tensors import OnDevice, tensor_on_device
from toprank.blocks.torch import from_torch
from toprank.objective import (
    LabelledData,
    PointwiseTask,
    Task,
    TwoClassProblem,
    primal_dual_gap,
    problem_of,
)
from toprank.pairs.door import check_rows, check_table
from toprank.pairs.propensity import keep_label_weights
from toprank.rankers.blockwise import (
    BlockScore,
    BlockScoring,
    Certificate,
    check_columns,
    look,
)
from toprank.rankers.callbacks import STOPPED, TakesCallbacks
from toprank.rankers.common import (
    Link,
    Probabilities,
    device_scores,
    fits,
    logistic_curve,
    to_library_of,
    vanishing_skew,
    warn_caller,
)
from toprank.rankers.minimiser import Minimiser, overflow_is_handled, stopped_at, stopped_early
from toprank.rankers.starts import bend_of, bend_warning, lowest_of_starts
from toprank.solvers import SEPARABLE, SOLVERS, Result, duality_gap, free_gradient

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from sklearn.utils import Tags
    from torch import Tensor

    from toprank.pairs import Rows


#: Rows per block where rows are only scored.
_SCORED_AT_ONCE = 1 << 16


#: Scores closer together than this are all alike: losses measure margins of one.
_NO_SPREAD = 1e-4
_TRIVIAL = (
    "All rows got the same score, so every list of this ranker is a list of ties: to push down the "
    "highest negative alone (p = inf, price='max') has this minimum wherever the positives' mean "
    "is a mixture of negatives (Menon 2019, doi 10.1007/s10994-018-5759-4). Use a finite p, such "
    "as 64 or 16."
)


class _NoPartialFit:
    """In the place of ``partial_fit``: there is none, and asked for it a ranker says why."""

    def __get__(self, ranker: object | None, kind: type) -> Never:
        raise AttributeError(
            f"{kind.__name__} has no partial_fit: the minimum over old and new rows together is no "
            "function of the old minimum and the new rows, since how much an old row counts "
            "depends on the coefficients. Fit old and new rows together from where the old fit "
            "stood, in fewer passes: "
            "ranker.set_params(warm_start=True).fit_blocks(old and new files)."
        )


class LinearRanker(
    TakesCallbacks, Minimiser, BlockScoring, Probabilities, ClassifierMixin, BaseEstimator
):
    """Base of the linear rankers: score = x' coef + intercept, higher is nearer the top.

    A subclass says what to minimise in ``_task``.
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions({"auto", *SOLVERS})],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "positive": ["boolean"],
        "link": [StrOptions({"logistic", "p_classification"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    alpha: float
    link: str
    class_weight: object
    n_jobs: int | None
    _units: Units

    def _task(self) -> Task | PointwiseTask:
        raise TypeError(f"{type(self).__name__} must define _task")

    def _task_on(self, data: LabelledData, task: Any) -> Any:
        """Return the task where it depends on how many rows there are of each class."""
        return task

    @fits
    def fit(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        label_propensity: ArrayLike | None = None,
    ) -> BaseEstimator:
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
        label_propensity : float or array-like of shape (n,), optional
            Probability that the row's label was seen; rows are weighted by its inverse, clipped
            (`toprank.select.label_weights`). ``effective_rows_`` says how many rows they count as.

        Returns
        -------
        self
        """
        sample_weight = keep_label_weights(self, y, sample_weight, label_propensity)
        if tensor_on_device(X) is not None:
            return self.fit_blocks(from_torch(X, y, sample_weight))
        rows, classes = check_rows(self, X, y, sample_weight, sparse=True)
        source = ArraySource(rows.X, rows.y, rows.weight, None, self.n_jobs, checked=True)
        self._fit_source(source, classes)
        return self

    @fits
    def fit_blocks(
        self,
        source: BlockSource,
        *,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Fit the ranker to the rows of a block source, wherever they lie.

        The model is that of ``fit`` on all rows: the same objective, minimised by passes over
        the blocks. The exponential loss takes one pass per evaluation with the price "power"
        (p = inf included) and two with the others; ``ProperRanker`` takes one. The logistic loss
        takes three on 200,000 rows or more, with sums at interpolation nodes that equal those
        over the rows to rounding. Hinges, a loss of your own, ``solver="coordinate"`` and fewer
        rows take two and hold the scores of all rows (8 bytes per row) where ``fit_blocks`` is
        called: exact too, by sorting there.

        Parameters
        ----------
        source : BlockSource
            From `toprank.blocks`: ``from_arrays``, ``from_memmap``, ``from_parquet``, ...
        checkpoint : str or path, optional
            A folder that keeps the outcome of every pass (`toprank.blocks.with_checkpoint`).
        resume : bool, default=False
            Go on with the passes that are there, to the same bits as without a break.

        Returns
        -------
        self
            With ``passes_``: how often the data were passed over, and for what.
        """
        with keep_passes(source, checkpoint, resume) as source:
            passes = self._fit_source(source)
        self._keep_columns(source)
        self.passes_ = passes
        return self

    partial_fit = _NoPartialFit()

    def _fit_source(self, source: BlockSource, classes: np.ndarray | None = None) -> dict[str, int]:
        """Fit the ranker to a source, and say how often it was passed over, and for what.

        ``classes`` are the user's labels where those of the source are truth values.
        """
        task = self._task()
        self._check_link(task)
        with self._start_threads(source), overflow_is_handled():
            problem = self.problem_on(source, task, classes)
            data = problem.data
            self.classes_ = data.classes if classes is None else classes
            result = self._minimise(problem)
            bend = bend_of(problem, result.coef)
            if bend is not None:
                result = lowest_of_starts(problem, result, self._minimise_from)
            self._keep_fit(self.classes_, problem, result)
            self._warn(result, problem, bend)
        return dict(data.passes)

    def problem_on(
        self, source: BlockSource, task: Task | PointwiseTask, classes: np.ndarray | None = None
    ) -> TwoClassProblem:
        """What the ranker minimises on the rows of a source."""
        data = look(source, self.class_weight, task.intercepts, classes)
        task = self._task_on(data, task)
        return problem_of(data, task, gather=self.solver == "coordinate")

    def _start_threads(self, source: object) -> AbstractContextManager[object]:
        """The threads of the source; what is no source is refused when it is looked at."""
        return (
            source.start_threads(self.n_jobs) if isinstance(source, BlockSource) else nullcontext()
        )

    def _keep_fit(self, classes: AnyArray, problem: TwoClassProblem, result: Result) -> None:
        """Keep what a solver found, with a link fitted to its scores."""
        free = not self.positive
        if self.alpha == 0 and free and problem.has_dual and result.message != SEPARABLE:
            result.gap = primal_dual_gap(problem, result.coef)  # type: ignore[arg-type]
        link = self._fit_link(problem, result)
        if hasattr(self, "passes_"):  # those of an earlier fit to blocks
            del self.passes_
        self.classes_ = classes
        self._units = problem.data.units
        self._keep(result)
        self._keep_link(link)

    def _keep_columns(self, source: BlockSource) -> None:
        """What scikit-learn's validation keeps of an array."""
        self.n_features_in_ = source.n_features
        if source.feature_names is not None:
            self.feature_names_in_ = np.asarray(source.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _at(self, problem: Any, coef: FloatArray) -> dict[str, object]:
        fitted = copy(self)
        fitted._keep_fit(self.classes_, problem, stopped_at(problem, coef, 1))
        return dict(vars(fitted))

    def moved_to(self, coef: FloatArray, rows: Rows) -> Self:
        """Return a copy with other coefficients, and what rows say of them: bound and link."""
        moved = copy(self)
        moved.coef_ = coef.reshape(1, -1)
        source = ArraySource(rows.X, rows.y, rows.weight, None, self.n_jobs, checked=True)
        with overflow_is_handled():
            problem = self.problem_on(source, self._task(), self.classes_)
            moved._keep_fit(self.classes_, problem, moved._known_result(problem))
        return moved

    def _keep(self, result: Result) -> None:
        self.coef_ = result.coef.reshape(1, -1)
        self.n_iter_ = max(1, result.n_iter)
        self.objective_ = result.value
        self.optimality_gap_ = result.gap
        self.history_ = result.history

    def _check_link(self, task: Any) -> None:
        if self.link == "p_classification" and not (
            task.loss.factorises and task.end == "top" and np.isfinite(task.p)
        ):
            raise ValueError(
                "link='p_classification' belongs to the power price with a finite p, the "
                "exponential loss and end='top'. Use link='logistic' here."
            )

    def _fit_link(self, problem: TwoClassProblem, result: Result) -> Link:
        if self.link == "p_classification":
            return vanishing_skew(*problem.log_masses(result.coef), problem.task.p)
        return logistic_curve(*problem.standard_scores(result.coef))

    def _keep_link(self, link: Link) -> None:
        self._offset, self._slope = link.offset, link.slope
        shift = self._units.shift(self.coef_[0])
        self.intercept_ = np.array([link.offset - shift])

    def _warn(self, result: Result, problem: TwoClassProblem, bend: str | None = None) -> None:
        if bend is not None:
            cause = bend_warning(bend)
        elif problem.is_undetermined(result.coef):
            cause = (
                "The classes are separable: a linear score puts every positive above every "
                "negative, so with alpha=0 the objective has no finite minimiser, or no unique "
                "one. The ranking found is perfect on the training data, the scale of its scores "
                "is arbitrary. Set alpha > 0, for example 1e-3."
            )
        elif self._is_boosting(problem) or result.message == STOPPED:
            return
        elif result.converged:
            if self._is_trivial(problem, result.coef):
                warn_caller(_TRIVIAL, UserWarning)
            return
        else:
            cause = stopped_early(result)
        warn_caller(cause, ConvergenceWarning)

    def _is_trivial(self, problem: TwoClassProblem, coef: FloatArray) -> bool:
        """Whether the highest negative alone counted, and the fit put all rows on one score."""
        price = getattr(problem.task, "price", None)
        if price is None or price.name != "max":
            return False
        of_columns = coef[: problem.data.n_features]
        return not of_columns.any() or problem.standard(of_columns).spread < _NO_SPREAD

    def _is_boosting(self, problem: TwoClassProblem) -> bool:
        """A fixed number of rounds is the paper's algorithm, not a failure to converge."""
        return self._solver_for(problem) == "coordinate"

    def decision_function(self, X: TableLike) -> FloatArray | Tensor:
        """Return the ranking score of each row; zero is a probability of one half."""
        check_is_fitted(self)
        if tensor_on_device(X) is not None:
            scores = device_scores(X, self.coef_[0], self._units, type(self).__name__)
            return to_library_of(OnDevice(scores + self._offset), X)
        table = check_table(X, estimator=self, reset=False, sparse=True)
        return to_library_of(self._score_table(table), X)

    def _score_table(self, table: object) -> FloatArray:
        # few and large blocks: scores are cheap, and each block costs a little
        source = ArraySource(table, None, None, _SCORED_AT_ONCE, self.n_jobs)
        score = BlockScore(self._units, self.coef_[0], self._offset)
        scores: FloatArray = source.write_scores(score)
        return scores

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
        task = self._task()
        with self._start_threads(source), overflow_is_handled():
            data = look(source, self.class_weight, task.intercepts)
            problem = problem_of(data, self._task_on(data, task))
            if not problem.smooth:
                raise ValueError(
                    "certify_blocks needs an objective with a gradient; the hinge loss and the max "
                    "price have corners. Certify a smooth relative: a squared hinge, a large p."
                )
            result = self._known_result(problem)
            return Certificate.of(problem, result)

    def _known_result(self, problem: TwoClassProblem) -> Result:
        """What is known of the objective at the fitted coefficients."""
        point = self._point(problem)
        value, gradient = problem.value_grad(point)
        lower = self._lower(problem)
        if lower is None:
            return Result(point, value, gradient, 0, True, gap=duality_gap(problem, gradient))
        gap = duality_gap(problem, gradient, point - lower)
        return Result(point, value, free_gradient(point, gradient, lower), 0, True, gap=gap)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags
