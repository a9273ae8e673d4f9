"""SciPy's L-BFGS-B, in coordinates where the objective starts out round.

Up to a thousand features the coordinates come from the Hessian at the start (on a sample of the
rows where there are many), beyond that from the spread of each column. Where the iterations take
longer than another Hessian, the coordinates are taken anew at the point reached. Where a gradient
is so cheap that many cost less than a Hessian (``problem.gradients_first``), the spread of the
columns is tried first, for as long as a Hessian takes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import linalg, optimize

from toprank._numerics import FloatArray
from toprank.solvers.newton_step import Patience
from toprank.solvers.result import (
    LEFT,
    SEPARABLE,
    STUCK,
    Callback,
    Curved,
    Log,
    Problem,
    Result,
    at_rounding,
    duality_gap,
    is_cancelled,
    is_near,
    largest,
)

#: Up to this many features a Hessian is worth its price as a change of coordinates, and up to this
#: many where a few rows tell all of it.
ROUND_UP_TO, _ROUND_FEW_ROWS_UP_TO = 1000, 500
#: Iterations of wider problems before the heaviest rows give them coordinates.
_BEFORE_ROWS = 20
#: Iterations after which those of the point reached repay their price.
_ROWS_REPAID_BY = 30
_MEMORY = 20
#: Legs that may bring neither a lower value nor a smaller gradient.
_PATIENCE = 4
#: Of a first step that is shorter, SciPy's takes the place.
_SHORTEST_STEP = 1e-4


def lbfgs(
    problem: Problem,
    start: FloatArray,
    *,
    max_iter: int = 5000,
    tol: float = 1e-6,
    callback: Callback | None = None,
    warm: bool = False,
    hessian_first: bool = False,
    hessian: FloatArray | Curved | None = None,
    leaves: Callable[[int, float], bool] | None = None,
) -> Result:
    """Minimise until the largest gradient entry is at most tol times the problem's scale.

    ``hessian_first`` takes a Hessian at the start even where the problem would try gradients first;
    ``hessian`` is one that is known already, or the curvature of rows that stands for it.
    ``leaves`` says of an iteration and a value whether another way to the minimum is to be taken
    from there.
    """
    log = Log(callback)
    coef, message = start, f"no convergence in {max_iter} L-BFGS iterations"
    by_rows = is_told_by_rows(problem)
    can_round = by_rows or (problem.size <= ROUND_UP_TO and problem.has_curvature)
    repaid_by = _ROWS_REPAID_BY if by_rows else problem.hessian_repaid_by
    tries = max(problem.gradients_first, _BEFORE_ROWS if by_rows and not warm else 0)
    first = hessian_first or hessian is not None or not tries
    rounded, misled = can_round and first, False
    patience = Patience(np.inf, np.inf, _PATIENCE)
    while True:
        room = max_iter - len(log.history)
        coordinates = _coordinates(problem, coef, rounded, hessian)
        leg = _Leg(problem, coef, coordinates, tol, log, leaves)
        hessian = None
        most = repaid_by if rounded or misled else tries
        if by_rows and rounded:  # what tells less each time is asked more seldom
            repaid_by *= 2
        coef = leg.run(min(most, room) if can_round else room)
        done = largest(leg.grad) <= tol * problem.scale
        if done or len(log.history) >= max_iter:
            break
        if leg.ended:
            message = leg.ended
            break
        # next to the minimum legs may also go in circles, each from where another was
        idle = patience.ends(leg.value, largest(leg.grad))
        if not can_round or idle or (leg.stuck and not rounded and misled):
            message, done = STUCK, is_cancelled(problem, coef, leg.grad, tol)
            break
        # a Hessian that misleads the line search gives way to the columns' spread for a leg
        misled = rounded and leg.stuck
        rounded = not misled
    gap = duality_gap(problem, leg.grad)
    done = done or at_rounding(gap, leg.value) or (message == STUCK and is_near(gap, leg.value))
    message = "" if done else message
    return Result(coef, leg.value, leg.grad, len(log.history), done, message, log.history, gap)


def is_told_by_rows(problem: Problem) -> bool:
    """Whether the heaviest rows give the coordinates, and no Hessian does."""
    if problem.size <= _ROUND_FEW_ROWS_UP_TO or not problem.tells_by_rows:
        return False
    return problem.size > ROUND_UP_TO or problem.all_rows_tell


def gradient_leg(
    problem: Problem, start: FloatArray, max_iter: int, tol: float, log: Log
) -> FloatArray:
    """Return how far L-BFGS comes in ``problem.gradients_first`` iterations without a Hessian."""
    leg = _Leg(problem, start, _coordinates(problem, start, False), tol, log)
    return leg.run(min(problem.gradients_first, max_iter))


class _Leg:
    """One run of SciPy's solver in fixed coordinates, from a given point."""

    def __init__(
        self,
        problem: Problem,
        start: FloatArray,
        coordinates: _Coordinates,
        tol: float,
        log: Log,
        leaves: Callable[[int, float], bool] | None = None,
    ):
        self.problem = problem
        self.coordinates = coordinates
        self.tol = tol
        self.log = log
        self.start = start
        self.leaves = leaves
        self.ended = ""  # why no further leg makes sense
        self.coef = start
        self.value, self.grad = problem.value_grad(start)
        self._at_start = self.value, self.grad
        self._continued = Continued()

    @property
    def stuck(self) -> bool:
        """Whether neither the value nor the gradient has come down since the start."""
        value, gradient = self._at_start
        return not (self.value < value or largest(self.grad) < largest(gradient))

    def run(self, max_iter: int) -> FloatArray:
        if max_iter > 0 and largest(self.grad) > self.tol * self.problem.scale:
            stop = len(self.log.history) + max_iter
            self.coordinates = self.coordinates.at_scale(self._first_step)
            optimize.minimize(
                self._evaluate,
                np.zeros_like(self.start),
                jac=True,
                method="L-BFGS-B",
                callback=self._after_iteration,
                options={
                    "maxiter": max_iter,
                    "maxfun": 20 * max_iter + 100,
                    "maxcor": _MEMORY,
                    "ftol": 0.0,
                    "gtol": 0.0,
                },
            )
            if not self.ended:
                self._step_by_slopes(stop)
        return self.coef

    def _step_by_slopes(self, stop: int) -> None:
        """Go on with steps by the curvature alone, for as long as each halves the gradient.

        Next to the minimum values differ by rounding alone, and SciPy's line search ends;
        gradients have digits left there.
        """
        rounding = 64 * np.finfo(np.float64).eps * max(1.0, abs(self.value))
        bend, target = self.coordinates.bend, self.tol * self.problem.scale
        while bend > 0.0 and len(self.log.history) < stop and largest(self.grad) > target:
            step = self.coordinates.out(self.coordinates.into(self.grad) / bend)
            coef, size = self.coef - step, largest(self.grad)
            value, grad = self.problem.value_grad(coef)
            if not (value <= self.value + rounding and largest(grad) <= size / 2):
                return
            self.coef, self.value, self.grad = coef, value, grad
            self.log.add(coef, objective=value, gradient=largest(grad))

    @property
    def _first_step(self) -> float:
        """The length of the first step: about Newton's, and at most one.

        SciPy's is one whatever the gradient. A longer step than Newton's is taken back, at the
        price of an evaluation. Next to the minimum values differ by rounding alone along a short
        step, and the search needs the slopes of a long one.
        """
        bend = self.coordinates.bend
        length = float(np.linalg.norm(self.coordinates.into(self.grad)))
        newton = length / bend if bend > 0.0 else np.inf
        return min(1.0, newton) if newton > _SHORTEST_STEP else 1.0

    def _evaluate(self, z: FloatArray) -> tuple[float, FloatArray]:
        coef = self.start + self.coordinates.out(z)
        # SciPy begins at the start, which is known
        value, grad = self.problem.value_grad(coef) if np.any(z) else self._at_start
        self._last = (coef, value, grad)
        return self._continued(z, value, self.coordinates.into(grad))

    def _after_iteration(self, intermediate_result: optimize.OptimizeResult) -> None:
        coef, value, grad = self._last
        if value != intermediate_result.fun:  # the line search's last point was not its best
            coef = self.start + self.coordinates.out(intermediate_result.x)
            value, grad = self.problem.value_grad(coef)
        if value <= self.value or largest(grad) < largest(self.grad):
            self.coef, self.value, self.grad = coef, value, grad
        self.log.add(coef, objective=value, gradient=largest(grad))
        if largest(grad) <= self.tol * self.problem.scale:
            raise StopIteration
        if self.problem.runs_away(coef):
            self.ended = SEPARABLE
            raise StopIteration
        if self.leaves is not None and self.leaves(len(self.log.history), value):
            self.ended = LEFT
            raise StopIteration


class Continued:
    """A function that is continued where it is infinite: SciPy's line search wants numbers.

    There it is the parabola that falls at the last finite point as steeply as the function, and
    is lowest a quarter of the way from it to where the line search looked.
    """

    def __init__(self) -> None:
        self._finite: tuple[FloatArray, float, FloatArray] | None = None

    def __call__(self, z: FloatArray, value: float, grad: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient at z, or those of the parabola."""
        if np.isfinite(value):
            self._finite = z.copy(), value, grad
            return value, grad
        if self._finite is None:
            return 1e300, np.zeros_like(z)
        start, height, slope = self._finite
        step = z - start
        fall = abs(float(slope @ step))
        return height + fall, (3.0 * fall / float(step @ step)) * step


class _Coordinates:
    """coef = start + out(z), and the gradient in z.

    ``bend`` is about the curvature along the gradient at the start; zero where it is not known.
    """

    def __init__(
        self,
        out: Callable[[FloatArray], FloatArray],
        into: Callable[[FloatArray], FloatArray],
        bend: float,
    ):
        self.out = out
        self.into = into
        self.bend = bend

    def at_scale(self, unit: float) -> _Coordinates:
        """The same with z in other units. SciPy's first step is one of them long."""
        if unit == 1.0:
            return self
        out, into = self.out, self.into
        return _Coordinates(lambda z: out(unit * z), lambda g: unit * into(g), self.bend * unit**2)


def _coordinates(
    problem: Problem, coef: FloatArray, reshape: bool, hessian: FloatArray | Curved | None = None
) -> _Coordinates:
    if reshape and is_told_by_rows(problem):
        curved = hessian
        if hessian is None:
            curved = problem.curved_rows(coef)  # type: ignore[attr-defined]
        square = curved is None or isinstance(curved, np.ndarray)
        found = None if square else _by_rows(curved, problem.penalty)  # type: ignore[arg-type]
        if found is not None:
            return found
    elif reshape:
        known = hessian if isinstance(hessian, np.ndarray) else problem.hessian(coef, exact=False)
        factor = _round_factor(known)
        if factor is not None:
            # a step that overflows is seen by its value, and taken back
            solve = partial(linalg.blas.dtrsv, factor, lower=1)
            return _Coordinates(lambda z: solve(z, trans=1), solve, 1.0)
    scale = problem.column_scale() / np.sqrt(problem.scale)
    return _Coordinates(lambda z: scale * z, lambda g: scale * g, problem.bend_at_zero)


def _by_rows(curved: Curved, penalty: FloatArray | float) -> _Coordinates | None:
    """Coordinates in which S'S and a diagonal are the identity; None where that is not to be had.

    With D the diagonal, T = S D^(-1/2) and C C' = I + T T', of the size of the rows, these are
    z = M' D^(1/2) coef for M = I - T' C'^(-1) (C + I)^(-1) T, of which M M' = (I + T' T)^(-1)
    (Andrews 1968).
    """
    diagonal = curved.rest + penalty
    if not np.all(diagonal > 0):
        return None
    scale = 1.0 / np.sqrt(diagonal)
    inner = curved.gram(scale)
    inner[np.diag_indices(len(inner))] += 1.0
    factor, info = linalg.lapack.dpotrf(inner.T, lower=1, clean=1, overwrite_a=1)
    if info != 0 or not np.all(np.isfinite(factor.diagonal())):
        return None
    raised = factor.copy(order="F")
    raised[np.diag_indices(len(raised))] += 1.0
    solve, solve_raised = (partial(linalg.blas.dtrsv, part, lower=1) for part in (factor, raised))

    def out(z: FloatArray) -> FloatArray:
        seen = solve(solve_raised(curved.times(scale * z)), trans=1)
        return scale * (z - scale * curved.adjoint(seen))

    def into(grad: FloatArray) -> FloatArray:
        seen = solve_raised(solve(curved.times(scale**2 * grad)), trans=1)
        return scale * (grad - curved.adjoint(seen))

    return _Coordinates(out, into, 1.0)


def _round_factor(hessian: FloatArray) -> FloatArray | None:
    """Cholesky factor of the Hessian with a floor under its small directions; the lower half."""
    diagonal = np.diag(hessian)
    if not np.all(np.isfinite(diagonal)):
        return None
    raised = hessian.T.copy(order="F")  # symmetric, and in the order that LAPACK overwrites
    # a factor is the same, to rounding, in whatever units its columns are
    raised[np.diag_indices(len(raised))] += 1e-10 * np.where(diagonal > 0, diagonal, 1.0)
    factor, info = linalg.lapack.dpotrf(raised, lower=1, clean=0, overwrite_a=1)
    return factor if info == 0 else None
