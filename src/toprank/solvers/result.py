"""What a solver is given and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from toprank._numerics import FloatArray

#: Called with (iteration, record) after every iteration.
Callback = Callable[[int, dict[str, object], FloatArray], None]

SEPARABLE = "separable"
STUCK = "no further decrease is possible in floating point"
LEFT = "the minimum lies far out"

#: Share of its terms that a gradient may keep where an objective has stopped falling: values have
#: sixteen digits, and a gradient that changes none of them has half as many.
_CANCELLED = 1e-9


class SmoothProblem(Protocol):
    """A smooth convex function of a vector: all that Newton's method asks."""

    size: int
    alpha: float
    penalty: Any
    scale: float

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray]: ...

    def hessian(self, coef: FloatArray, *, exact: bool = True) -> FloatArray: ...

    def coarse(self) -> Any:
        """Return the same problem on a sample of the rows; None if there are few."""

    @property
    def has_sample(self) -> bool: ...

    @property
    def close_estimates(self) -> bool:
        """Whether estimates of the Hessian are about as good as the Hessian."""

    def release_sample(self) -> None:
        """Let the sample go where it takes memory to speak of; it can be drawn again."""

    def runs_away(self, coef: FloatArray) -> bool: ...

    def gradient_sizes(self, coef: FloatArray) -> FloatArray | None: ...


class Problem(SmoothProblem, Protocol):
    """A convex function of a vector, perhaps with corners, that a solver can minimise."""

    #: Values that only points reach which tell the classes apart; minus infinity where none are
    #: known to. Otherwise it is an `EasedProblem`.
    apart_below: float
    peaked: bool
    #: Iterations that take as long as a Hessian from some of the rows and what it saves.
    hessian_repaid_by: int
    #: Iterations of L-BFGS to try before the first Hessian, where gradients are cheap.
    gradients_first: int
    #: About the curvature at zero, in units of the scale and of `column_scale`; zero if not known.
    bend_at_zero: float
    #: Whether there are `curved_rows` of all rows, and these are fewer than the columns.
    fewer_rows: bool
    #: The level of the first smooth problem, where this one has corners.
    first_level: float

    @property
    def n_rows(self) -> int: ...

    @property
    def smooth(self) -> bool: ...

    @property
    def has_curvature(self) -> bool: ...

    def value(self, coef: FloatArray) -> float: ...

    def gentler(self, p: float) -> Problem | None:
        """Return a problem that is less steep; None if this one is as gentle."""

    def smoothed(self, level: float) -> Problem:
        """Return a smooth problem that lies below and meets this one as level -> 0."""

    @property
    def tells_ahead(self) -> bool:
        """Whether there is a `hessian_ahead`: whether it is a `SteepProblem`."""

    @property
    def looks_ahead(self) -> bool:
        """Whether it is better than a Hessian where the solver starts."""

    @property
    def tells_by_rows(self) -> bool:
        """Whether there are `curved_rows`: whether it is a `WideProblem`."""

    @property
    def all_rows_tell(self) -> bool:
        """Whether the table is dense and all of its rows are few enough for `curved_rows`."""

    def bound_by(self, smooth: Any, coef: FloatArray) -> float:
        """Return a lower bound on the minimum, from where a smooth problem was solved."""

    def column_scale(self) -> FloatArray: ...


class SteepProblem(Problem, Protocol):
    """A problem whose Hessian at the minimum a gentler one tells."""

    def hessian_ahead(self, gentler: object, coef: FloatArray) -> FloatArray:
        """Return about what the Hessian is at the minimum, from the minimum of a gentler price."""


class EasedProblem(Problem, Protocol):
    """A problem whose classes may be told apart."""

    @property
    def power(self) -> float:
        """The p of the price."""

    def scores(self, coef: FloatArray) -> FloatArray: ...

    def eased(self, alpha: float, p: float) -> EasedProblem:
        """Return the problem with another penalty and a price of at most p."""


class Curved(Protocol):
    """S'S of a few rows, and a diagonal for what it leaves out of a Hessian."""

    root: FloatArray
    rest: FloatArray

    def times(self, v: FloatArray) -> FloatArray: ...

    def adjoint(self, u: FloatArray) -> FloatArray: ...

    def gram(self, scale: FloatArray) -> FloatArray:
        """Return S diag(scale)^2 S'."""


class WideProblem(Problem, Protocol):
    """A problem that tells the curvature of its heaviest rows."""

    def curved_rows(
        self, coef: FloatArray, of: WideProblem | None = None, *, exact: bool = False
    ) -> Curved | None:
        """Return the curvature at a point, by the weights that the problem ``of`` has there.

        ``exact`` asks for that of next to all rows.
        """


@dataclass
class Result:
    """Where a solver stopped, and why."""

    coef: FloatArray
    value: float
    gradient: FloatArray
    n_iter: int
    converged: bool
    message: str = ""
    history: list[dict[str, object]] = field(default_factory=list)
    gap: float = np.nan
    above: float = 0.0  # how far the objective lies above the smooth one that was solved

    @property
    def gradient_norm(self) -> float:
        return largest(self.gradient)


def largest(gradient: FloatArray) -> float:
    """The largest absolute entry: the residual that every tolerance is about."""
    return float(np.abs(gradient).max(initial=0.0))


@dataclass
class Log:
    """Keeps the history and tells the caller about each iteration, with its coefficients."""

    callback: Callback | None = None
    history: list[dict[str, object]] = field(default_factory=list)

    def add(self, coef: FloatArray, **record: object) -> None:
        self.history.append(record)
        if self.callback is not None:
            self.callback(len(self.history), record, coef)


def duality_gap(
    problem: SmoothProblem, gradient: FloatArray, room: FloatArray | float = np.inf
) -> float:
    """Bound on F(coef) - min F from the gradient: sum of gradient^2 / (2 penalty).

    The gap between the penalised problem and its dual at the dual point that the scores
    define (the normalised pair weights of Theorem 4): F + F* = v'f there, so that only the
    penalty's part of the gap is left. Infinite without a penalty. ``room`` is how far each
    coefficient may come down; see `penalty_gap`.
    """
    return penalty_gap(gradient, problem.penalty, room)


def penalty_gap(
    gradient: FloatArray, penalty: FloatArray | float, room: FloatArray | float = np.inf
) -> float:
    """Return the sum over coefficients of max (g t - penalty t^2 / 2) over steps t <= room down."""
    penalty, room = (np.broadcast_to(part, gradient.shape) for part in (penalty, room))
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.where(gradient == 0, 0.0, np.minimum(gradient / penalty, room))
    if np.any(np.isinf(best)):
        return np.inf
    return float(np.sum(best * (gradient - 0.5 * penalty * best)))


def at_rounding(gap: float, value: float) -> bool:
    """Whether a certified gap is so small that floating point can tell nothing more."""
    return gap <= 1e-12 * max(1.0, abs(value))


def is_near(gap: float, value: float) -> bool:
    """Whether a certified gap is small enough where no step lowers the objective any more."""
    return gap <= 1e-9 * max(1.0, abs(value))


def is_cancelled(
    problem: SmoothProblem, coef: FloatArray, gradient: FloatArray, tol: float
) -> bool:
    """Whether the gradient is small beside what cancels in it, where tol is out of reach.

    A gradient is a sum over rows. In a column of entries near 1e12 it cannot come down to 1e-6,
    and a solver that finds no lower point there is at the minimum all the same.
    """
    sizes = problem.gradient_sizes(coef)
    if sizes is None or not np.all(np.isfinite(sizes)):
        return False
    return bool(np.all(np.abs(gradient) <= np.maximum(tol * problem.scale, _CANCELLED * sizes)))
