"""A smooth problem, solved near by, from gradients alone, or along gentler prices.

Steep prices are approached through gentler ones. Newton's method walks along several of them. For
L-BFGS one may tell the Hessian at the minimum: the weights of the rows there are nearly its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.solvers.bounded import bounded_lbfgs, bounded_newton
from toprank.solvers.coordinate import coordinate
from toprank.solvers.lbfgs import ROUND_UP_TO, gradient_leg, lbfgs
from toprank.solvers.newton import newton
from toprank.solvers.result import LEFT, STUCK, Callback, Log, Result, largest
from toprank.solvers.separated import along_penalties, leaves

if TYPE_CHECKING:
    from toprank.solvers.result import Problem, SteepProblem

Minimiser = Callable[..., Result]

#: Gradients this small are near enough to a minimum for Newton's method.
_NEAR = 1e-2
#: Power prices are first solved at these p, loosely, on the way to a steeper one.
_STEPPING_STONES = tuple(8.0**k for k in range(1, 9))
#: The p, at the most, whose minimum tells the Hessian of a steeper price.
_STONE = 24.0


def solve_smooth(
    problem: Any,
    start: FloatArray,
    minimiser: Minimiser,
    *,
    max_iter: int,
    tol: float,
    callback: Callback | None,
    warm: bool,
    hessian: FloatArray | None = None,
) -> Result:
    """Solve a smooth problem: near by, from gradients alone, or along gentler prices.

    ``hessian`` is what is known of the Hessian at the minimum.
    """
    log = Log(callback)
    way = _Way(minimiser, max_iter, tol, log, not (warm or is_boosting(minimiser)))
    try:
        return way.lead(problem, start, warm, hessian)
    except _FarOut:
        return along_penalties(problem, minimiser, max_iter=max_iter, tol=tol, log=log)


class _FarOut(Exception):
    """A run was left: it tells the classes apart."""


@dataclass(frozen=True)
class _Way:
    """How a problem is solved; ``far`` says that the start may be far from the minimum."""

    minimiser: Minimiser
    max_iter: int
    tol: float
    log: Log
    far: bool

    def lead(
        self, problem: Any, start: FloatArray, warm: bool, hessian: FloatArray | None
    ) -> Result:
        minimiser, far = self.minimiser, self.far
        known: dict[str, object] = {}
        if hessian is not None:
            known["hessian"] = hessian
        elif far and looks_ahead(problem, minimiser):
            start, known["hessian"] = self._look_from_stone(problem, start)
        if far and problem.gradients_first and minimiser is newton:
            start, warm = self._by_gradients(problem, start), True
        elif far and not (problem.gradients_first and minimiser is lbfgs):
            start = self._walk(problem, start)
        result = self._run(problem, start, self.tol, {"warm": warm, **known})
        result.history = self.log.history
        result.n_iter = len(result.history)
        return result

    def _run(
        self,
        problem: Problem,
        start: FloatArray,
        tol: float,
        settings: dict[str, object] | None = None,
        *,
        logged: bool = True,
    ) -> Result:
        """Run the solver; leave with what it has reached where the classes are told apart.

        That is also where rounding stops it below the values that only such classes have.
        """
        log = self.log if logged else Log()
        watched = logged and self._may_leave(problem)
        result = self.minimiser(
            problem,
            start,
            max_iter=max(1, self.max_iter - len(log.history)),
            tol=tol,
            callback=log.callback,
            **(settings or {}),
            **(leaves(problem, self.minimiser, warm=not self.far) if watched else {}),
        )
        log.history += result.history
        far_out = watched and result.message == STUCK and result.value < problem.apart_below
        if result.message == LEFT or far_out:
            raise _FarOut
        return result

    def _may_leave(self, problem: Problem) -> bool:
        """Whether the solver can leave a problem: a warm start only under bounds."""
        solver = getattr(self.minimiser, "func", self.minimiser)
        bounded = problem.fewer_rows and solver in (bounded_lbfgs, bounded_newton)
        return bounded or (self.far and solver in (newton, lbfgs))

    def _look_from_stone(
        self, problem: SteepProblem, start: FloatArray
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return about where a gentler price has its minimum, and the Hessian to expect there."""
        gentler = problem.gentler(_STONE)
        if gentler is None:
            return start, None
        result = self._run(gentler, start, max(self.tol, _NEAR))
        ahead = problem.hessian_ahead(gentler, result.coef)
        problem.value_grad(result.coef)  # where the solver starts, most often: it is remembered
        return shortened(problem, result.coef), ahead

    def _by_gradients(self, problem: Problem, start: FloatArray) -> FloatArray:
        """Return where gradients alone lead, or gentler prices where those fall short."""
        reached = gradient_leg(problem, start, self.max_iter, self.tol, self.log)
        if largest(problem.value_grad(reached)[1]) <= max(self.tol, _NEAR) * problem.scale:
            return reached
        return min(reached, self._walk(problem, start), key=lambda coef: float(problem.value(coef)))

    def _walk(self, problem: Problem, coef: FloatArray) -> FloatArray:
        """Come near the minimum of a steep price along gentler ones, on as few rows as there are.

        Iterations on a sample of the rows are not logged.
        """
        whole = problem
        while (coarse := problem.coarse()) is not None:
            problem = coarse
        for p in _STEPPING_STONES:
            gentler = problem.gentler(p)
            if gentler is None:
                break
            start = shortened(gentler, coef)
            coef = self._run(gentler, start, max(self.tol, _NEAR), logged=problem is whole).coef
        return shortened(problem, coef)


def looks_ahead(problem: Problem, minimiser: Minimiser) -> bool:
    """Whether the Hessian at the minimum is to be told from the minimum of a gentler price."""
    return takes_hessians(problem, minimiser) and problem.looks_ahead


def takes_hessians(problem: Problem, minimiser: Minimiser) -> bool:
    """Whether L-BFGS has a use for a Hessian, which can be told ahead."""
    return minimiser is lbfgs and problem.size <= ROUND_UP_TO and problem.tells_ahead


def shortened(problem: Problem, coef: FloatArray) -> FloatArray:
    """Halve the coefficients for as long as the value falls.

    Where a push leaves little to learn, the minima shrink in proportion to 1/p: that of a gentler
    price lies far beyond the next one, where the weights rest on a handful of rows.
    """
    value = problem.value(coef) if np.any(coef) else 0.0
    while np.any(coef) and (lower := problem.value(0.5 * coef)) < value:
        coef, value = 0.5 * coef, lower
    return coef


def is_boosting(minimiser: Minimiser) -> bool:
    """Whether the solver takes a fixed number of rounds, one coordinate at a time."""
    return getattr(minimiser, "func", minimiser) is coordinate
