"""Quasi-Newton steps of many settings at once: X is read once per step for all of them.

A step's direction comes from an inverse Hessian of each setting that was taken once, and that the
gradients seen since then put right (BFGS). Folds start from the inverses of the fit to all rows:
the matrices are shared, and only what a fold learns is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from toprank._numerics import FloatArray
from toprank.blocks.shared import share_passes
from toprank.objective import ManySwept

if TYPE_CHECKING:
    from toprank.blocks import BlockSource
    from toprank.objective import TwoClassProblem
    from toprank.objective.pointwise import PointwiseProblem

#: Steps that settings take together, at the most.
STEPS = 30
_SUFFICIENT_DECREASE = 1e-4
#: Up to this many coefficients an inverse is put right in place; a larger one is left as it is,
#: and what was learned is kept beside it.
_IN_PLACE_UP_TO = 128
#: Steps that are kept beside it.
_MEMORY = 40


class InverseHessian:
    """An inverse Hessian, and what the gradients seen since tell of it.

    Parameters
    ----------
    matrix : ndarray of shape (d, d)
        It may be shared: it is never changed where it is large, and copied before where it is not.
    learned : sequence of (step, change of the gradient)
        Oldest first.
    """

    def __init__(self, matrix: FloatArray, learned: Sequence[tuple[FloatArray, FloatArray]] = ()):
        self.matrix = matrix
        self.learned = list(learned)

    @classmethod
    def of(cls, hessian: FloatArray) -> InverseHessian:
        """Invert a Hessian in units of unit diagonal; its small eigenvalues are raised."""
        diagonal = np.diag(hessian)
        scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        units = np.outer(scale, scale)
        scaled = hessian * units
        factor, failed = lapack.dpotrf(scaled, lower=1)
        if not failed and np.min(np.abs(factor.diagonal())) >= 1e-5:
            lower, failed = lapack.dpotri(factor, lower=1)
            if not failed:
                return cls(units * (np.tril(lower) + np.tril(lower, -1).T))
        values, vectors = np.linalg.eigh(scaled)
        floor = np.maximum(values, 1e-9 * max(1.0, float(values[-1])))
        return cls(units * ((vectors / floor) @ vectors.T))

    def copy(self) -> InverseHessian:
        """Return one that learns by itself."""
        small = len(self.matrix) <= _IN_PLACE_UP_TO
        return InverseHessian(self.matrix.copy() if small else self.matrix, self.learned)

    def times(self, gradient: FloatArray) -> FloatArray:
        """Return the inverse Hessian times a vector: the two loops of limited-memory BFGS."""
        v, shares = gradient, []
        for step, change in reversed(self.learned):
            share = float(step @ v) / float(step @ change)
            v = v - share * change
            shares.append(share)
        v = self.matrix @ v
        for (step, change), share in zip(self.learned, reversed(shares), strict=True):
            v = v + (share - float(change @ v) / float(step @ change)) * step
        return v

    def learn(self, step: FloatArray, change: FloatArray) -> None:
        """Explain the change of the gradient that was seen along a step."""
        if not float(step @ change) > 0:
            return
        if len(self.matrix) <= _IN_PLACE_UP_TO:
            _update_inverse(self.matrix, step, change)
        else:
            self.learned = [*self.learned[-_MEMORY + 1 :], (step, change)]


def _update_inverse(inverse: FloatArray, step: FloatArray, change: FloatArray) -> None:
    """Make an inverse Hessian, in place, explain the change of the gradient along a step."""
    curvature = float(step @ change)
    bent = inverse @ change
    scale = (1.0 + float(change @ bent) / curvature) / curvature
    inverse += scale * np.outer(step, step)
    inverse -= (np.outer(step, bent) + np.outer(bent, step)) / curvature


class Together:
    """Quasi-Newton steps of many settings, one read of X per step where they allow it.

    Parameters
    ----------
    problems : sequence of TwoClassProblem
        Of the same rows.
    starts : array of shape (m, d)
        Coefficients to start from, one line per problem.
    tol : float
        The largest entry of a gradient that counts as settled.
    """

    def __init__(self, problems: Sequence[TwoClassProblem], starts: FloatArray, tol: float):
        self.problems = problems
        self.tol = tol
        self.swept = all(map(ManySwept.supports, problems))
        self.coefs = starts.copy()
        self.values, self.grads = self._evaluate(np.arange(len(problems)), self.coefs)

    @property
    def settled(self) -> NDArray[np.bool_]:
        """Which settings need no step (more): their gradients are within the tolerance."""
        return np.asarray(self._residual() <= self.tol)

    @property
    def apart(self) -> NDArray[np.bool_]:
        """Which settings tell the classes apart: no inverse Hessian leads to their minima."""
        bounds = np.array([problem.apart_below for problem in self.problems])
        return np.asarray(self.values < bounds)

    def run(
        self, inverses: Sequence[InverseHessian | None], most: int = STEPS
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return the coefficients after so many steps, and which of them satisfy the tolerance.

        The inverse Hessians, one per problem, learn from the steps. A setting without one, or that
        tells the classes apart, takes no step.
        """
        self.inverses = {i: known for i, known in enumerate(inverses) if known is not None}
        steps = np.zeros_like(self.coefs)
        for i in self._active():
            steps[i] = -self.inverses[i].times(self.grads[i])
        for _ in range(most):
            active = self._active()
            if len(active) == 0:
                break
            trials = self.coefs[active] + steps[active]
            self._accept(active, steps, trials, *self._evaluate(active, trials))
        return self.coefs, self.settled

    def _active(self) -> NDArray[np.intp]:
        """The settings that take a step."""
        open_ = ~(self.settled | self.apart)
        return np.array([i for i in np.flatnonzero(open_) if i in self.inverses], dtype=np.intp)

    def _evaluate(
        self, active: NDArray[np.intp], coefs: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        problems = [self.problems[i] for i in active]
        if self.swept:
            return ManySwept(problems).value_grad(coefs)
        found = _evaluate_each(problems, coefs)
        return np.array([value for value, _ in found]), np.array([grad for _, grad in found])

    def _residual(self) -> FloatArray:
        residual = np.max(np.abs(self.grads), axis=1)
        return np.asarray(np.where(np.isfinite(residual), residual, np.inf))

    def _accept(
        self,
        active: NDArray[np.intp],
        steps: FloatArray,
        trials: FloatArray,
        values: FloatArray,
        grads: FloatArray,
    ) -> None:
        """Move where the objective fell enough; elsewhere try half the step next time."""
        for i, coef, value, grad in zip(active, trials, values, grads, strict=True):
            slope = float(steps[i] @ self.grads[i])
            rounding = 1e-15 * max(1.0, abs(self.values[i]))
            fell = value <= self.values[i] + _SUFFICIENT_DECREASE * slope + rounding
            if not (fell and np.all(np.isfinite(grad))):
                steps[i] *= 0.5
                continue
            self.inverses[i].learn(steps[i].copy(), grad - self.grads[i])
            self.coefs[i], self.values[i], self.grads[i] = coef, value, grad
            steps[i] = -self.inverses[i].times(grad)


def _evaluate_each(
    problems: Sequence[PointwiseProblem], coefs: FloatArray
) -> list[tuple[float, FloatArray]]:
    """Objective and gradient of each problem, in one pass where the rows are read anew for it."""
    pairs = list(zip(problems, coefs, strict=True))
    data = problems[0].data
    if data.source.in_memory or len(pairs) == 1:
        return [problem.value_grad(coef) for problem, coef in pairs]

    def evaluate(
        problem: PointwiseProblem, coef: FloatArray
    ) -> Callable[[BlockSource], tuple[float, FloatArray]]:
        return lambda member: type(problem)(data.through(member), problem.task).value_grad(coef)

    return share_passes(data.source, [evaluate(*pair) for pair in pairs])
