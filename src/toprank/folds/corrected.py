"""Differences between two settings over the same folds, with an honest standard error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from toprank._numerics import FloatArray, is_number


@dataclass(frozen=True)
class Difference:
    """A mean difference of scores over folds.

    Attributes
    ----------
    mean : float
        Mean over the folds.
    standard_error : float
        Corrected for the rows that the training sets share.
    low, high : float
        Ends of the confidence interval.
    p_value : float
        Two-sided p-value of the hypothesis that the mean is zero.
    level : float
        Confidence level.
    """

    mean: float
    standard_error: float
    low: float
    high: float
    p_value: float
    level: float

    def __str__(self) -> str:
        return (
            f"{self.mean:+.4g}, {100 * self.level:g}% interval {self.low:+.4g} to "
            f"{self.high:+.4g}, p = {self.p_value:.2g}"
        )


def corrected_difference(
    differences: ArrayLike, test_to_train: float, *, level: float = 0.95
) -> Difference:
    r"""Corrected resampled t-test of Nadeau and Bengio (2003).

    The scores of J folds are not independent, because their training sets overlap. Their plain
    variance s²/J is too small; with n₂ rows tested and n₁ trained on in each fold,

    .. math::
        t = \bar d \Big/ \sqrt{\Big(\frac1J + \frac{n_2}{n_1}\Big) s^2}

    is compared with Student's distribution of J - 1 degrees of freedom.

    Parameters
    ----------
    differences : array-like of shape (J,)
        Score of one setting less the score of the other, on each fold.
    test_to_train : float
        n₂/n₁, rows tested over rows trained on.
    level : float, default=0.95
        Confidence level of the interval.

    Returns
    -------
    Difference
        ``.mean .standard_error .low .high .p_value``.

    Examples
    --------
    >>> from toprank.tuning import corrected_difference
    >>> print(corrected_difference([0.02, 0.01, 0.03, 0.02, 0.02], 0.25))
    +0.02, 95% interval +0.00683 to +0.03317, p = 0.014
    """
    d = np.asarray(differences, dtype=np.float64)
    if d.ndim != 1 or len(d) < 2 or not np.all(np.isfinite(d)):
        raise ValueError(
            f"differences has shape {d.shape}: expected at least two finite numbers, one a fold."
        )
    if not (is_number(level) and 0 < level < 1):
        raise ValueError(f"level={level!r}: expected a number between 0 and 1.")
    if not (is_number(test_to_train) and 0 < test_to_train < np.inf):
        raise ValueError(f"test_to_train={test_to_train!r}: expected a positive number.")
    d, exponent = near_one(d)
    apart = d - d[0]  # exactly zero where every fold says the same
    mean = float(d[0] + np.mean(apart))
    error = float(np.sqrt(1 / len(d) + test_to_train) * np.std(apart, ddof=1))
    freedom = len(d) - 1
    # the median of older SciPy's t is not quite zero
    half = max(0.0, float(stats.t.isf((1 - level) / 2, freedom))) * error
    if error > 0:
        p_value = float(2 * stats.t.sf(abs(mean) / error, freedom))
    else:
        p_value = 1.0 if mean == 0 else 0.0
    ends = np.array([mean, error, mean - half, mean + half])
    middle, spread, low, high = map(float, scaled_back(ends, exponent))
    return Difference(middle, spread, low, high, p_value, float(level))


def near_one(values: FloatArray) -> tuple[FloatArray, int]:
    """Values over a power of two, and its exponent: their squares neither overflow nor vanish."""
    exponent = int(np.frexp(np.max(np.abs(values)))[1])
    return np.ldexp(values, -exponent), exponent


def scaled_back(value: FloatArray | float, exponent: int) -> FloatArray:
    """Undo `near_one`; what is beyond the range of floats is infinite."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.ldexp(value, exponent))
