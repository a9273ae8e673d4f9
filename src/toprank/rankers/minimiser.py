"""From a problem to coefficients: which solver, where it starts, and what callbacks hear of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.objective import TwoClassProblem
from toprank.objective.highest import solve_by_highest_rows, suits
from toprank.objective.turned import Turned
from toprank.rankers.callbacks import STOPPED, has_callbacks, tell_step
from toprank.solvers import SOLVERS, Result, minimise

if TYPE_CHECKING:
    from toprank.objective.pairwise import PairProblem
    from toprank.solvers.result import Callback, Problem


DEFAULT_ROUNDS = {"newton": 1000, "lbfgs": 10_000, "coordinate": 100}


class _StoppedByCallback(Exception):
    """Ends a minimisation where a callback asks for it, with the result up to there."""

    def __init__(self, result: Result):
        super().__init__(STOPPED)
        self.result = result


def stopped_at(problem: Problem, coef: FloatArray, iteration: int) -> Result:
    """What is known of coefficients that a callback stopped at."""
    if problem.smooth:
        value, gradient = problem.value_grad(coef)
    else:
        value, gradient = float(problem.value(coef)), np.full_like(coef, np.nan)
    return Result(coef, value, gradient, iteration, False, STOPPED)


def stopped_early(result: Result) -> str:
    """What to say of a solver that did not converge, and what to do."""
    return (
        f"The solver stopped early: {result.message} (largest gradient entry "
        f"{result.gradient_norm:.2g}). Raise max_iter, loosen tol, scale the features, or raise "
        "alpha."
    )


@contextmanager
def overflow_is_handled() -> Iterator[None]:
    """Steps that go too far overflow, are seen to be infinite, and are taken back."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        yield


class Minimiser(ABC):
    """How a linear ranker minimises: its solver, its start, a word after every iteration."""

    solver: str
    max_iter: int | None
    tol: float
    positive: bool = False
    warm_start: bool
    verbose: int
    coef_: FloatArray

    def _minimise(self, problem: Any) -> Result:
        start, warm = self._start(problem)
        turned = self._turned(problem)
        if turned is not None:
            return self._minimise_turned(problem, turned, start, warm)
        if self.solver == "auto":
            problem = problem.lighter()
        solver = self._solver_for(problem)
        if suits(problem):
            found = solve_by_highest_rows(
                problem, start, lambda part, coef: self._minimise_from(part, coef, solver)
            )
            if found is not None:
                return found
        return self._minimise_from(problem, start, solver, warm)

    @property
    def _single_columns(self) -> bool:
        """Whether something is asked of each column by itself: its sign, or a round of its own."""
        return self.positive or self.solver == "coordinate"

    def _turned(self, problem: TwoClassProblem | PairProblem) -> Turned | None:
        """The rows in fewer columns; None where they are fitted as they are.

        Without a penalty nothing holds back what rounding makes of columns that depend on others.
        """
        if not isinstance(problem, TwoClassProblem) or self._single_columns or problem.alpha == 0:
            return None
        return Turned.of(problem.data)

    def _minimise_turned(
        self, problem: TwoClassProblem, turned: Turned, start: FloatArray, warm: bool
    ) -> Result:
        def told(iteration: int, record: Mapping[str, object], coef: FloatArray) -> None:
            self._after_iteration(problem, iteration, record, turned.back(coef))

        few = turned.problem(problem)
        found = self._minimise_from(few, turned.into(start), self._solver_for(few), warm, told=told)
        if found.message == STOPPED:  # by a callback, which was told of all columns
            return found
        gradient = turned.gradient_back(found.gradient)
        return replace(found, coef=turned.back(found.coef), gradient=gradient)

    def _minimise_from(
        self,
        problem: Any,
        start: FloatArray,
        solver: str = "lbfgs",
        warm: bool = False,
        told: Callback | None = None,
    ) -> Result:
        """``told`` is called after every iteration instead of `_after_iteration`."""
        told = told or partial(self._after_iteration, problem)
        with overflow_is_handled():
            try:
                return minimise(
                    problem,
                    start,
                    SOLVERS[solver],
                    max_iter=self.max_iter or DEFAULT_ROUNDS[solver],
                    tol=self.tol,
                    callback=told if self.verbose or has_callbacks(self) else None,
                    warm=warm,
                    lower=self._lower(problem),
                )
            except _StoppedByCallback as stopped:
                return stopped.result

    def _after_iteration(
        self,
        problem: Any,
        iteration: int,
        record: Mapping[str, object],
        coef: FloatArray,
    ) -> None:
        if self.verbose:
            self._report(iteration, record)
        if has_callbacks(self) and tell_step(self, "iteration", partial(self._at, problem, coef)):
            raise _StoppedByCallback(stopped_at(problem, coef, iteration))

    @abstractmethod
    def _at(self, problem: Any, coef: FloatArray) -> dict[str, object]:
        """What makes a copy of this ranker one that was fitted up to these coefficients."""

    def _lower(self, problem: TwoClassProblem | PairProblem) -> FloatArray | None:
        """Bounds on what the solver moves: on the coefficients, never on an intercept."""
        if not self.positive:
            return None
        bounds = np.full(problem.size, -np.inf)
        bounds[: problem.data.n_features] = 0.0
        return bounds

    def _start(self, problem: Any) -> tuple[FloatArray, bool]:
        """Where the solver starts, and whether that is the last fit's solution."""
        if self.warm_start and self._has_point(problem):
            return self._point(problem), True
        return np.zeros(problem.size), False

    def _has_point(self, problem: TwoClassProblem | PairProblem) -> bool:
        """Whether there is an earlier fit to as many columns."""
        return getattr(self, "coef_", np.empty(0)).size == problem.data.n_features

    def _point(self, problem: Any) -> FloatArray:
        """What was fitted, in the coefficients and units of a problem."""
        return self.coef_.reshape(-1).astype(np.float64)

    def _solver_for(self, problem: TwoClassProblem | PairProblem) -> str:
        if self.solver == "newton" and not problem.has_curvature:
            raise ValueError(
                "solver='newton' needs the curvature of the price and of the loss; give them as "
                "a third callable, or use solver='lbfgs'."
            )
        if self.solver != "auto":
            return self.solver
        if not problem.has_curvature:
            return "lbfgs"
        path = problem if problem.smooth or problem.peaked else problem.smoothed(1.0)
        return "newton" if problem.size <= path.newton_up_to else "lbfgs"

    def _report(self, iteration: int, record: Mapping[str, object]) -> None:
        facts = "  ".join(
            f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in record.items()
        )
        print(f"[{type(self).__name__}] {iteration:4d}  {facts}", flush=True)
