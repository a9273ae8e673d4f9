"""What Newton's method does in every step: solve, and know what rounding hides."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.linalg import blas, lapack

from toprank._lazy import cached_property
from toprank._numerics import FloatArray


def rounding_error(value: float) -> float:
    """Return how much an objective may change by rounding alone."""
    return 8 * sys.float_info.epsilon * max(1.0, abs(value))


class Patience:
    """Ends a walk in circles among points that differ by rounding alone.

    Parameters
    ----------
    value, gradient : float
        Where the walk begins: the objective and the largest gradient entry.
    steps : int
        How many may bring neither a lower value nor a smaller gradient.
    """

    def __init__(self, value: float, gradient: float, steps: int):
        self.best = value, gradient
        self.idle, self.steps = 0, steps

    def ends(self, value: float, gradient: float) -> bool:
        """Whether neither the value nor the gradient has come down for long."""
        enough = rounding_error(self.best[0]) if np.isfinite(self.best[0]) else 0.0
        lower = value < self.best[0] - enough or gradient < self.best[1]
        self.best = min(self.best[0], value), min(self.best[1], gradient)
        self.idle = 0 if lower else self.idle + 1
        return self.idle >= self.steps


def square(v: FloatArray) -> FloatArray:
    """Return the outer product of a vector with itself."""
    return v[:, None] * v


#: A Hessian whose factor, in units of unit diagonal, has no pivot below this is well conditioned.
_STEADY = 1e-3
#: Below this the factor serves for nothing.
_SINGULAR = 1e-7

Solve = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Factor:
    """A Hessian that a device has taken apart, in units of unit diagonal.

    Parameters
    ----------
    both : array of shape (d, d)
        On and below the diagonal, L of L L' = H in those units, NaN where there is none; above it,
        H in those units.
    scale : array of shape (d,)
        H_ij scale_i scale_j are the entries in those units.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.solvers.newton_step import Factor
    >>> factor = Factor(np.array([[1.0, 0.6], [0.6, 0.8]]), np.array([0.5, 1.0]))
    >>> factor.matrix.tolist(), factor.diagonal().tolist()
    ([[4.0, 1.2], [1.2, 1.0]], [4.0, 1.0])
    """

    both: FloatArray
    scale: FloatArray

    def diagonal(self) -> FloatArray:
        """The diagonal of the Hessian."""
        return self.scale**-2.0

    @property
    def least(self) -> float:
        """The smallest pivot; zero where there are none."""
        found = float(self.both.diagonal().min())
        return found if found > 0 else 0.0

    @property
    def matrix(self) -> FloatArray:
        """The Hessian."""
        scaled = np.triu(self.both, 1)
        scaled += scaled.T
        scaled[np.diag_indices(len(scaled))] = 1.0
        scaled /= square(self.scale)
        return scaled


def solve_step(hessian: FloatArray, target: FloatArray) -> FloatArray:
    """Solve H x = target in units of unit diagonal; raise small eigenvalues if H is singular."""
    return _solver_of(hessian)[0](target)


def _solver_of(hessian: FloatArray | Factor) -> tuple[Solve, bool]:
    """Return `solve_step` of one Hessian, taken apart once, and whether it is well conditioned."""
    if isinstance(hessian, Factor):
        if hessian.least >= _SINGULAR:
            return _by_factor(hessian.both.T, hessian.scale), hessian.least >= _STEADY
        hessian = hessian.matrix
    if not np.isfinite(hessian).all():  # LAPACK may search for ever among infinities
        return lambda target: np.full_like(target, np.nan), False
    diagonal = hessian.diagonal()
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = square(scale)
    scaled *= hessian
    # LAPACK itself: SciPy's checks take longer than a small system; of a symmetric matrix, the
    # transpose is what it wants, and nothing is copied
    factor, failed = lapack.dpotrf(scaled.T, clean=False, overwrite_a=True)
    least = 0.0 if failed else float(np.abs(factor.diagonal()).min())
    if least >= _SINGULAR:
        return _by_factor(factor, scale), least >= _STEADY
    values, vectors = linalg.eigh(hessian * square(scale), check_finite=False)
    # a floor, not a cut: along a flat direction an unpenalised objective may still fall
    floor = np.maximum(values, 1e-9 * max(1.0, float(values[-1])))
    return lambda target: scale * (vectors @ ((vectors.T @ (scale * target)) / floor)), False


def _by_factor(upper: FloatArray, scale: FloatArray) -> Solve:
    """Solve by U of U'U = H in units of unit diagonal, which lies by columns.

    By triangular systems of one vector: LAPACK's function for several takes three times as long.
    """

    def solve(target: FloatArray) -> FloatArray:
        half = blas.dtrsv(upper, scale * target, trans=1, overwrite_x=1)
        found: FloatArray = scale * blas.dtrsv(upper, half, overwrite_x=1)
        return found

    return solve


class KeptHessian:
    """A Hessian that learns from every step how the gradient changed (BFGS).

    One that is well conditioned is taken apart once: a later system is solved by that and by the
    steps since, each a few products of vectors. Others are put together, and taken apart, anew.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.solvers.newton_step import KeptHessian
    >>> kept = KeptHessian(np.eye(2))
    >>> kept.learn(np.array([1.0, 0.0]), np.array([4.0, 0.0]))
    >>> kept.solve(np.array([4.0, 4.0])).tolist(), kept.matrix.tolist()
    ([1.0, 4.0], [[4.0, 0.0], [0.0, 1.0]])
    """

    def __init__(self, found: FloatArray | Factor):
        self._found = found
        self._solve, self._steady = _solver_of(found)
        self._steps: list[tuple[FloatArray, FloatArray, float]] = []
        self._in_matrix = 0  # how many of the steps

    @cached_property
    def _matrix(self) -> FloatArray:
        return self._found.matrix if isinstance(self._found, Factor) else self._found

    @property
    def matrix(self) -> FloatArray:
        """The first Hessian, made to agree with the changes of the gradient seen."""
        for step, change, seen in self._steps[self._in_matrix :]:
            foreseen = self._matrix @ step
            expected = float(foreseen @ step)
            if expected > 0:
                self._matrix += square(change) / seen - square(foreseen) / expected
        self._in_matrix = len(self._steps)
        return self._matrix

    def learn(self, step: FloatArray, change: FloatArray) -> None:
        """Take in that the gradient changed by so much along a step."""
        seen = float(change @ step)
        if seen > 0:
            self._steps.append((step, change, seen))

    def shrink(self, step: FloatArray, change: FloatArray) -> None:
        """Take in that the curvature is smaller along a step, and everywhere else as well.

        As Oren and Luenberger (1974) scale a Hessian before it learns from a step.
        """
        expected, seen = float(step @ (self._matrix @ step)), float(change @ step)
        if 0 < seen < expected:
            solve, share = self._solve, seen / expected
            self._matrix *= share
            self._solve = lambda target: solve(target) / share

    def solve(self, target: FloatArray, damping: FloatArray | None = None) -> FloatArray:
        """Return the solution of H x = target, ``damping`` added to the diagonal where given."""
        if damping is not None:
            return solve_step(self.matrix + np.diag(damping), target)
        if self._steps and not self._steady:
            return solve_step(self.matrix, target)
        left = target
        shares: list[float] = []
        for step, change, seen in reversed(self._steps):
            share = float(step @ left) / seen
            shares.append(share)
            left = left - share * change
        found = self._solve(left)
        for (step, change, seen), share in zip(self._steps, reversed(shares), strict=True):
            found = found + (share - float(change @ found) / seen) * step
        return found
