"""The objective of a linear ranker, F(X coef) + (alpha/2) |coef|^2, as solvers see it.

One class per form of the objective, each over rows wherever they lie: what it asks of them are
passes over the blocks of a source. What a solver asks beyond value and gradient comes from the
description of the data or from a sample of the rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from toprank._lazy import cached_property
from toprank._numerics import FloatArray, log_of, log_sum_exp
from toprank.objective.binned_hessian import binned_hessian, drawn_rows
from toprank.objective.data import BlockData, LabelledData
from toprank.objective.risk import AnyTask, PushObjective
from toprank.objective.sums import EXACT_SCORES_UP_TO, Points, Standard, standard_points
from toprank.objective.sweeps import Histogram
from toprank.prices import Power

#: Up to this many features second moments cost less than another read of the data: Hessians
#: are exact, and the first evaluation, whose Hessian a solver asks for next, brings it along.
EXACT_CURVATURE_UP_TO = 64

#: Entries of X from which the Hessian of a loss that does not factorise is estimated from bins.
BINNED_FROM = 1 << 15

#: Up to this many features a Hessian is cheap enough to begin with.
NARROW = 100

Data = TypeVar("Data", bound=BlockData)


class LinearProblem(ABC, Generic[Data]):
    """A convex function of the coefficients, with the data behind it."""

    #: The size of a natural gradient; tolerances are relative to it.
    scale: float = 1.0
    #: Whether one maximum of linear scores is its only corner, but for the loss's own.
    peaked: bool = False
    #: Features up to which a Hessian is worth its price in every iteration.
    newton_up_to: int = 500
    #: Iterations of L-BFGS after which a new Hessian, for better coordinates, repays its price.
    hessian_repaid_by: int = 100
    #: Iterations of L-BFGS to try before the first Hessian.
    gradients_first: int = 0
    #: Whether estimates of the Hessian are about as good as the Hessian.
    close_estimates: bool = False
    #: Whether there is a `hessian_ahead`, and it is better than a Hessian where the solver starts.
    tells_ahead: bool = False
    looks_ahead: bool = False
    #: Whether there are `curved_rows`.
    tells_by_rows: bool = False
    #: Whether the table is dense and all of its rows are few enough for them.
    all_rows_tell: bool = False
    #: Whether these are of all rows, dense, few, and fewer than the columns.
    fewer_rows: bool = False
    #: How smooth the first of the problems is that lead to one with corners.
    first_level: float = 1.0
    #: About the curvature at zero along columns of one spread, in units of ``scale``; zero where it
    #: is not known.
    bend_at_zero: float = 0.0
    #: Values that only points reach which tell the classes apart: there the problem can be `eased`.
    apart_below: float = -np.inf
    #: Whether there is a dual value without a penalty; see `toprank.objective.duality`.
    has_dual: bool = False

    def __init__(self, data: Data, task: Any):
        self.data = data
        self.task = task
        self._last = Last()
        self.alpha: float = task.alpha
        self.size = data.n_features
        #: The penalty on each coefficient.
        self.penalty: FloatArray | float = self.alpha

    @property
    def n_rows(self) -> int:
        return self.data.n_rows

    @property
    def noise(self) -> float:
        """How exactly the problem is worth solving where its rows stand for more of them."""
        return 0.1 / float(np.sqrt(self.n_rows))

    @property
    def smooth(self) -> bool:
        return bool(self._any_task.smooth)

    @property
    def has_curvature(self) -> bool:
        return bool(self._any_task.has_curvature)

    @property
    def _any_task(self) -> AnyTask:
        task: AnyTask = self.task
        return task

    @abstractmethod
    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray]:
        """Return the penalised objective and its gradient."""

    @abstractmethod
    def hessian(self, coef: FloatArray, *, exact: bool = True) -> FloatArray:
        """Return the penalised objective's Hessian, or an estimate from some of the rows."""

    @abstractmethod
    def coarse(self) -> Any:
        """Return the same problem on a fixed sample of the rows; None if there are few."""

    @property
    def has_sample(self) -> bool:
        """Whether there is a coarse problem, which estimates may come from."""
        return self.coarse() is not None

    def release_sample(self) -> None:
        """Let the coarse problem go where it takes memory to speak of; it can be made again."""

    @abstractmethod
    def separates(self, coef: FloatArray) -> bool:
        """Whether the scores put every winner of a pair strictly above its loser."""

    @abstractmethod
    def row_slopes(self, coef: FloatArray) -> FloatArray:
        """Return the gradient of the objective in the scores, one number per row."""

    def value(self, coef: FloatArray) -> float:
        """Return the penalised objective, also where it is not smooth."""
        return self.value_grad(coef)[0]

    def cost(self, coef: FloatArray) -> float:
        """Return the penalty."""
        return 0.5 * float(coef @ (self.penalty * coef))

    def add_penalty(
        self, value: float, grad: FloatArray, coef: FloatArray
    ) -> tuple[float, FloatArray]:
        """Add the penalty to an objective and its gradient."""
        return value + self.cost(coef), grad + self.penalty * coef

    def smoothed(self, level: float) -> Any:
        """Return a smooth problem that lies below this one and meets it as level -> 0."""
        return self.with_task(self._any_task.smoothed(level))

    def gentler(self, p: float) -> Any:
        """Return the problem with a power price of at most p; None if this one is as gentle."""
        task = self._any_task.gentler(p)
        return None if task is None else self.with_task(task)

    def with_task(self, task: Any) -> Any:
        """Return the problem of another task on the same rows."""
        return type(self)(self.data, task)

    def scores(self, coef: FloatArray) -> FloatArray:
        """Return the scores X @ coef (less the centre of the units) of all rows."""
        return self.data.scores(coef)

    def is_undetermined(self, coef: FloatArray) -> bool:
        """Whether no minimiser is finite, or none is unique: separated and unpenalised."""
        return self.alpha == 0 and self.separates(coef)

    def runs_away(self, coef: FloatArray) -> bool:
        """Whether the objective falls for ever along coef: separated, unpenalised, no hinge."""
        return self.alpha == 0 and not self.task.loss.pieces and self.separates(coef)

    def gradient_sizes(self, coef: FloatArray) -> FloatArray | None:
        """Return the size of what is added up in each entry of the gradient, the penalty's too.

        None where the rows are not at hand.
        """
        if not self.data.source.in_memory:
            return None
        slopes = self.row_slopes(coef)
        sizes = self.data.sizes(slopes)
        pulls = np.abs(self.penalty * coef)
        pulls[: len(sizes)] += sizes
        pulls[len(sizes) :] += np.sum(np.abs(slopes))  # an intercept is of a column of ones
        return pulls

    def lighter(self) -> LinearProblem[Data]:
        """Return the same problem on rows that are stored in a form that is faster to read."""
        return self

    def bound_by(self, smooth: Any, coef: FloatArray) -> float:
        """Return a lower bound on the minimum that a smooth problem's coefficients tell.

        Minus infinity where they tell no more than that the smooth problem lies below this one.
        """
        return -np.inf

    def column_scale(self) -> FloatArray:
        """Return a positive scale for each coefficient, from the curvature to expect along it.

        The rows bend the objective by about the column's variance, in units of ``scale``, the
        penalty by its own size: along a column that is seldom there, the penalty alone.
        """
        spread = self.data.column_spread()
        penalty = np.broadcast_to(self.penalty, self.size)[: len(spread)] / self.scale
        return 1.0 / np.hypot(np.where(spread > 0, spread, 1.0), np.sqrt(penalty))


class Last:
    """The answer of the last pass: solvers ask for value and Hessian at the same point."""

    def __init__(self) -> None:
        self.order = 0
        self._coef = b""
        self._answer: Any = None

    def knows(self, coef: FloatArray) -> bool:
        """Whether the last pass was at these coefficients."""
        return self._coef == coef.tobytes()

    def at(self, coef: FloatArray, order: int, make_pass: Callable[[], object]) -> Any:
        """Return the answer at the coefficients, to this order of moments at the least."""
        if not self.knows(coef) or self.order < order:
            self._answer = make_pass()
            self._coef, self.order = coef.tobytes(), order
        return self._answer


class TwoClassProblem(LinearProblem[LabelledData]):
    """An objective of rows of two classes."""

    @property
    def noise(self) -> float:
        # where seen, the gradient of all rows of a GPU was 4 to 20 times as large at the minimum of
        # a sample that was solved so: nearer to that minimum nothing is nearer to theirs
        return (10.0 if self.data.source.on_device else 1.0) * super().noise

    @property
    def labels(self) -> tuple[NDArray[np.bool_], FloatArray | None]:
        """Which rows are positive, and their weights."""
        return self.data.labels

    @cached_property
    def _coarse(self) -> Any:
        data = self.data.coarser
        return None if data is None else self.on_sample(data)

    def coarse(self) -> Any:
        return self._coarse

    def on_sample(self, data: LabelledData) -> Any:
        """Return the problem on rows that stand for all."""
        return type(self)(data, self.task)

    def without_zeros(self) -> TwoClassProblem:
        """Return the problem on wide rows that are mostly zero, stored without their zeros.

        It takes hundreds of gradients: there it pays within the first few.
        """
        if self.size <= NARROW or self.coarse() is not None:
            return self
        data = self.data.without_zeros()
        return self if data is None else type(self)(data, self.task)

    @property
    def power(self) -> float:
        """The p of the price; NaN if it has none."""
        return float(self.task.p)

    def eased(self, alpha: float, p: float) -> TwoClassProblem:
        """Return the problem with another penalty and a price of at most p."""
        task = self.task.gentler(p) or self.task
        eased: TwoClassProblem = self.with_task(replace(task, alpha=alpha))
        return eased

    @property
    def cheap_curvature(self) -> bool:
        """Whether second moments cost less than another read of the data."""
        return self.size <= EXACT_CURVATURE_UP_TO and self.data.source.cheap_curvature(self.n_rows)

    def separates(self, coef: FloatArray) -> bool:
        lowest, highest = self.extremes(coef)
        return lowest > highest

    def extremes(self, coef: FloatArray) -> tuple[float, float]:
        """Return the lowest score of a positive and the highest of a negative."""
        return self.data.extremes(coef[: self.data.n_features])

    def row_slopes(self, coef: FloatArray) -> FloatArray:
        return self.task.objective(*self.data.labels).value_grad(self.scores(coef))[1]

    def standard_scores(self, coef: FloatArray) -> tuple[Standard, Points]:
        """Return where the scores lie, and all of them as weighted points."""
        data = self.data
        if data.n_rows <= EXACT_SCORES_UP_TO:
            return standard_points(self.scores(coef), *data.labels)
        of_columns, shift = coef[: data.n_features], float(np.sum(coef[data.n_features :]))
        standard = self.standard(of_columns, shift)
        counted = data.run(Histogram(data.view, standard), (of_columns, shift))
        return standard, counted.points()

    def standard(self, coef: FloatArray, shift: float = 0.0) -> Standard:
        """Return where the scores lie, from evenly spaced rows."""
        return Standard.of(self.data.spaced_scores(coef) + shift)

    def log_masses(self, coef: FloatArray) -> tuple[float, float]:
        """Return LSE(-f) over the positives and LSE(p f) over the negatives, p the price's."""
        scores, (positive, weight) = self.scores(coef), self.data.labels
        logs = np.zeros(len(scores)) if weight is None else log_of(weight)
        p = self.task.p
        return log_sum_exp((logs - scores)[positive]), log_sum_exp((logs + p * scores)[~positive])


#: Rows from which a Hessian that is put together column by column is not thinned further.
HESSIAN_ROWS_ENOUGH = 50_000
#: Bytes of dense columns held at once while a Hessian is put together, and the fewest columns.
_COLUMN_BYTES = 1 << 22
_FEWEST_COLUMNS = 8


def gradient_in_scores(
    data: BlockData, objective: PushObjective, coef: FloatArray
) -> tuple[float, FloatArray]:
    """Return an objective of the scores X @ coef, and its gradient in the coefficients."""
    value, in_scores = objective.value_grad(data.scores(coef))
    return value, data.adjoint(in_scores)


def hessian_in_scores(data: BlockData, objective: PushObjective, coef: FloatArray) -> FloatArray:
    """Return the Hessian in the coefficients, put together column by column."""
    times = objective.hessian_map(data.scores(coef))
    width = max(_FEWEST_COLUMNS, _COLUMN_BYTES // (8 * data.n_rows))
    size = data.n_features
    hessian = np.empty((size, size))
    for first in range(0, size, width):
        bent = times(data.columns(first, min(first + width, size)))
        hessian[:, first : first + width] = data.adjoint(bent)
    return 0.5 * (hessian + hessian.T)


class ScoredProblem(TwoClassProblem):
    """Any price and loss, exactly, with the scores of all rows on the driver.

    One pass brings the score of every row to the driver (8 bytes per row), where the objective is
    evaluated; a second one takes its gradient in the scores back to the blocks, cut into their
    pieces. For losses whose pair sums do not merge (hinges: exact by sorting), for rows in memory,
    and for coordinate descent.
    """

    # a Hessian costs as many evaluations as there are features
    newton_up_to = 100

    @cached_property
    def objective(self) -> PushObjective:
        """The objective in the scores of all rows."""
        objective: PushObjective = self.task.objective(*self.data.labels)
        return objective

    @property
    def scale(self) -> float:  # type: ignore[override]
        return self.objective.scale

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray]:
        def evaluate() -> tuple[float, FloatArray]:
            return gradient_in_scores(self.data, self.objective, coef)

        value, grad = self._evaluated.at(coef, 1, evaluate)
        return self.add_penalty(value, grad, coef)

    @cached_property
    def _evaluated(self) -> Last:
        """The last value and gradient, without the penalty: a path asks for them once more."""
        return Last()

    def value(self, coef: FloatArray) -> float:
        if self._evaluated.knows(coef):
            return self.value_grad(coef)[0]
        return self.objective.value(self.scores(coef)) + self.cost(coef)

    def hessian(self, coef: FloatArray, *, exact: bool = True) -> FloatArray:
        if not exact and self.close_estimates:
            return self.binned_hessian(coef)
        coarse = None if exact else self.coarse()
        if coarse is not None:
            estimate: FloatArray = coarse.hessian(coef, exact=coarse.n_rows <= HESSIAN_ROWS_ENOUGH)
            return estimate
        hessian = hessian_in_scores(self.data, self.objective, coef)
        hessian[np.diag_indices(self.size)] += self.penalty
        return hessian

    @property
    def close_estimates(self) -> bool:  # type: ignore[override]
        """Whether bins give the estimate; the exact Hessian takes an evaluation per column."""
        task, source = self.task, self.data.source
        many = self.data.entries >= BINNED_FROM
        there = many and source.in_memory and not source.on_device
        is_root = isinstance(task.price, Power) and task.price.root and task.end != "both"
        return bool(there and is_root and self.has_curvature)

    def binned_hessian(self, coef: FloatArray) -> FloatArray:
        """Return an estimate of the Hessian, by bins of the scores of some rows."""
        task, scores = self.task, self.drawn_scores(coef)
        found = binned_hessian(
            self.data, self.drawn, scores, task.loss, task.price.p, self.prices_positives
        )
        found[np.diag_indices(self.size)] += self.penalty
        return found

    @property
    def prices_positives(self) -> bool:
        """Whether the positives are the outer rows, at the one end that is priced."""
        return bool((self.task.end == "top") == (self.task.price.outer == "winners"))

    @cached_property
    def drawn(self) -> NDArray[np.intp]:
        """The rows that `binned_hessian` reads."""
        for_newton = self.size <= self.newton_up_to
        return drawn_rows(*self.data.labels, self.size, for_newton=for_newton)

    def drawn_scores(self, coef: FloatArray) -> FloatArray:
        """Return the scores of these rows."""
        return self.scores(coef)[self.drawn]

    def row_slopes(self, coef: FloatArray) -> FloatArray:
        return self.objective.value_grad(self.scores(coef))[1]

    # What coordinate descent asks: scores that move along one column at a time.

    def in_scores(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and its gradient in the scores."""
        return self.objective.value_grad(scores)

    def pull_back(self, in_scores: FloatArray) -> FloatArray:
        """Return the gradient in the coefficients from that in the scores."""
        return self.data.adjoint(in_scores)

    def column(self, feature: int) -> FloatArray:
        """Return a column of X, dense."""
        return self.data.columns(feature, feature + 1)[:, 0]

    @cached_property
    def present(self) -> NDArray[np.bool_] | slice:
        """The rows of weight above zero."""
        weight = self.data.labels[1]
        return slice(None) if weight is None else weight > 0
