"""What Newton's method does in every step: solve, and know what rounding hides."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from toprank._numerics import FloatArray


def rounding_error(value: float) -> float:
    """Return how much an objective may change by rounding alone."""
    return float(8 * np.finfo(np.float64).eps * max(1.0, abs(value)))


def solve_step(hessian: FloatArray, target: FloatArray) -> FloatArray:
    """Solve H x = target in units of unit diagonal; raise small eigenvalues if H is singular."""
    if not np.all(np.isfinite(hessian)):  # LAPACK may search for ever among infinities
        return np.full_like(target, np.nan)
    diagonal = np.diag(hessian)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = hessian * np.outer(scale, scale)
    try:
        factor = linalg.cho_factor(scaled, check_finite=False)
        if np.min(np.abs(np.diag(factor[0]))) < 1e-7:
            raise linalg.LinAlgError("nearly singular")
        return scale * linalg.cho_solve(factor, scale * target, check_finite=False)
    except linalg.LinAlgError:
        values, vectors = linalg.eigh(scaled, check_finite=False)
        # a floor, not a cut: along a flat direction an unpenalised objective may still fall
        floor = np.maximum(values, 1e-9 * max(1.0, float(values[-1])))
        return scale * (vectors @ ((vectors.T @ (scale * target)) / floor))
