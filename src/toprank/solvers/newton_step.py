"""What Newton's method does in every step: solve, and know what rounding hides."""

from __future__ import annotations

import sys

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from toprank._numerics import FloatArray


def rounding_error(value: float) -> float:
    """Return how much an objective may change by rounding alone."""
    return 8 * sys.float_info.epsilon * max(1.0, abs(value))


def square(v: FloatArray) -> FloatArray:
    """Return the outer product of a vector with itself."""
    return v[:, None] * v


def solve_step(hessian: FloatArray, target: FloatArray) -> FloatArray:
    """Solve H x = target in units of unit diagonal; raise small eigenvalues if H is singular."""
    if not np.isfinite(hessian).all():  # LAPACK may search for ever among infinities
        return np.full_like(target, np.nan)
    diagonal = hessian.diagonal()
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = hessian * square(scale)
    # LAPACK itself: SciPy's checks take longer than a small system
    factor, failed = lapack.dpotrf(scaled, clean=False)
    if not (failed or np.abs(factor.diagonal()).min() < 1e-7):
        return scale * lapack.dpotrs(factor, scale * target)[0]
    values, vectors = linalg.eigh(scaled, check_finite=False)
    # a floor, not a cut: along a flat direction an unpenalised objective may still fall
    floor = np.maximum(values, 1e-9 * max(1.0, float(values[-1])))
    return scale * (vectors @ ((vectors.T @ (scale * target)) / floor))
