"""Non-negative least squares, checked.

From SciPy 1.15 on ``scipy.optimize.nnls`` may return, without a word, a point that is not the
minimum (scipy issue 25389). A point is the minimum exactly where the residual stands at right
angles to every column in use and at no acute angle to any other (Karush, Kuhn and Tucker), so
that the answer is checked, and a plain active-set method stands in where it fails.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from toprank._numerics import FloatArray

#: Cosines of angles between residual and columns that count as nothing.
_TOLERANCE = 1e-10


def non_negative_least_squares(columns: FloatArray, target: FloatArray) -> FloatArray:
    """Return the x >= 0 that minimises |columns @ x - target|.

    Raises RuntimeError where floating point does not let the active set come to rest.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.solvers.nonnegative import non_negative_least_squares
    >>> columns = np.array([[1.0, 1.0], [0.0, 1.0]])
    >>> non_negative_least_squares(columns, np.array([1.0, -1.0]))
    array([1., 0.])
    """
    lengths = np.linalg.norm(columns, axis=0)
    lengths[lengths == 0.0] = 1.0
    unit = columns / lengths
    try:
        x, _ = optimize.nnls(unit, target, maxiter=50 * unit.shape[1] + 1000)
    except RuntimeError:  # it ran in circles
        x = np.zeros(unit.shape[1])
    if not is_minimum(unit, target, x):
        x = _active_set(unit, target)
    return x / lengths


def is_minimum(unit: FloatArray, target: FloatArray, x: FloatArray) -> bool:
    """Whether no feasible direction leads closer to the target, for columns of length one."""
    pull = unit.T @ (target - unit @ x)
    nothing = _TOLERANCE * max(float(np.linalg.norm(target)), np.finfo(float).tiny)
    return bool(np.all(pull <= nothing) and np.all(np.abs(pull[x > 0.0]) <= nothing))


def _active_set(unit: FloatArray, target: FloatArray) -> FloatArray:
    """Lawson and Hanson's method: columns enter one by one, and leave at zero."""
    size = unit.shape[1]
    x, used, barred = np.zeros(size), np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
    nothing = _TOLERANCE * float(np.linalg.norm(target))
    for _ in range(10 * size + 100):
        pull = np.where(used | barred, -np.inf, unit.T @ (target - unit @ x))
        enters = int(np.argmax(pull))
        if pull[enters] <= nothing:
            return x
        used[enters] = True
        z = _fitted(unit, target, used)
        if z[enters] <= 0.0:  # rounding alone lets it in: it would leave at once
            used[enters], barred[enters] = False, True
            continue
        barred[:] = False
        while np.any(z[used] <= 0.0):
            falling = used & (z <= 0.0)
            share = float(np.min(x[falling] / (x[falling] - z[falling])))
            x = np.where(used, x + share * (z - x), 0.0)
            used &= x > np.finfo(float).eps * np.max(x)
            x[~used] = 0.0
            z = _fitted(unit, target, used)
        x = z
    raise RuntimeError("Non-negative least squares did not come to rest.")


def _fitted(unit: FloatArray, target: FloatArray, used: NDArray[np.bool_]) -> FloatArray:
    """Plain least squares over the columns in use."""
    z = np.zeros(unit.shape[1])
    z[used] = np.linalg.lstsq(unit[:, used], target, rcond=None)[0]
    return z
