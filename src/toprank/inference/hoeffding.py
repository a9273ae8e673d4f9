"""Moments of a kernel over the pairs of a sample, and the variances they estimate.

The pairs are those of different rows, and a weight is a repetition count: the pair (i, j) counts
w_i w_j times, and row i meets a copy of itself w_i (w_i - 1) times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import AnyArray
from toprank._numerics import FloatArray
from toprank.inference.sample import Pulls, VarianceEstimate, combined_variance
from toprank.metrics.risk import misranked_by_row

Kernel = Callable[[np.ndarray, np.ndarray], np.ndarray]

#: Elements of a block of pairs, columns included; a block then takes some tens of megabytes.
_ELEMENTS = 2**21
_LARGEST = 1e140


class Moments(NamedTuple):
    """Moments of a kernel over ordered pairs of different rows.

    Attributes
    ----------
    mean : float
        Mean over all pairs: the U-statistic.
    by_row : ndarray of shape (n,)
        Mean over the pairs of each row.
    square : float
        Sum over all pairs of the squared distance from the mean.
    lowest : float
        Smallest value over the pairs.
    """

    mean: float
    by_row: FloatArray
    square: float
    lowest: float = 0.0


def moments_of_ranking(
    labels: FloatArray, scores: FloatArray, weight: FloatArray, total: float
) -> Moments:
    """Moments of `ranking_kernel`, by sorting, in O(n log n)."""
    wrong, tied = misranked_by_row(labels, scores, weight)
    pairs = total * (total - 1)
    mean = min(1.0, float(np.dot(weight, wrong + tied / 2)) / pairs)
    # a tie counts one half, so its square one quarter
    square = float(np.dot(weight, wrong + tied / 4)) - pairs * mean**2
    return Moments(mean, (wrong + tied / 2) / (total - 1), max(square, 0.0))


def moments_of(kernel: Kernel, data: AnyArray, weight: FloatArray, total: float) -> Moments:
    """Moments of any symmetric kernel, from the blocks of pairs on and above the diagonal."""
    columns = int(np.prod(data.shape[1:], dtype=np.intp))
    size = max(16, int(np.sqrt(_ELEMENTS / max(1, columns))))
    blocks = [slice(start, start + size) for start in range(0, len(data), size)]
    sums, square, least = np.zeros(len(data)), 0.0, np.inf
    shift = _near_mean(kernel, data[:64], weight[:64])
    for number, rows in enumerate(blocks):
        here = _within(kernel, data[rows], weight[rows], shift)
        least = min(least, float(np.min(here)))
        sums[rows] += here @ weight[rows] - np.diagonal(here)
        square += float(weight[rows] @ here**2 @ weight[rows])
        square -= float(weight[rows] @ np.diagonal(here) ** 2)
        for others in blocks[number + 1 :]:
            there = _kernel_between(kernel, data[rows], data[others]) - shift
            least = min(least, float(np.min(there)))
            sums[rows] += there @ weight[others]
            sums[others] += weight[rows] @ there
            square += 2 * float(weight[rows] @ there**2 @ weight[others])
    pairs = total * (total - 1)
    excess = float(weight @ sums) / pairs
    square = max(square - pairs * excess**2, 0.0)
    return Moments(shift + excess, shift + sums / (total - 1), square, shift + least)


def _near_mean(kernel: Kernel, data: AnyArray, weight: FloatArray) -> float:
    """A value near the mean: sums of distances from it lose no digits to a large mean."""
    values = _within(kernel, data, weight)
    above_diagonal = values[np.triu_indices(len(data), 1)]
    return float(np.median(above_diagonal if above_diagonal.size else values))


def _within(kernel: Kernel, data: AnyArray, weight: FloatArray, shift: float = 0.0) -> FloatArray:
    """Kernel less shift at the pairs of one block, checked for symmetry.

    A row meets itself only where it has copies; elsewhere the diagonal is never read, so the
    kernel need not be defined on it.
    """
    values = _kernel_values(kernel, data, data)
    alone = np.flatnonzero(weight == 1)
    values[alone, alone] = shift
    _check_finite(values)
    gap = np.max(np.abs(values - values.T))
    if gap > 1e-9 * np.max(np.abs(values)):
        raise ValueError(
            f"kernel is not symmetric: q(a, b) and q(b, a) differ by up to {gap:g}. Pass "
            "symmetrize=True to average the two."
        )
    return values - shift


def _kernel_between(kernel: Kernel, rows: AnyArray, others: AnyArray) -> FloatArray:
    values = _kernel_values(kernel, rows, others)
    _check_finite(values)
    return values


def _kernel_values(kernel: Kernel, rows: AnyArray, others: AnyArray) -> FloatArray:
    # what is not finite is refused, except on the diagonal, which is not always read
    with np.errstate(all="ignore"):
        values = np.array(kernel(rows[:, None], others[None, :]), dtype=np.float64)
    if values.shape != (len(rows), len(others)):
        raise ValueError(
            f"kernel returned shape {values.shape} for {len(rows)} by {len(others)} pairs of rows, "
            f"expected ({len(rows)}, {len(others)}). It is given arrays of shapes "
            f"{rows[:, None].shape} and {others[None, :].shape}, and must broadcast them; columns "
            "are on the last axis."
        )
    return values


def _check_finite(values: FloatArray) -> None:
    # sums of squares must stay within the range of floats
    if not np.all(np.abs(values) < _LARGEST):
        raise ValueError(
            "kernel returned NaN or infinity for some pair of rows, or a value larger than "
            f"{_LARGEST:g}."
        )


def effects_of_rows(projection: FloatArray, value: float, total: float) -> FloatArray:
    """Least-squares effects of the rows on the kernel of their pairs; they sum to zero."""
    return (projection - value) * ((total - 1) / (total - 2))


def variance_components(
    moments: Moments, weight: FloatArray, total: float
) -> tuple[float, float, VarianceEstimate]:
    """zeta_1, zeta_2 and the spread of the statistic, by an analysis of variance of the pairs.

    The squares about the mean are 2 (n - 2) times those of the rows' effects plus those of the
    remainder, which has n (n - 3) / 2 degrees of freedom.
    """
    effects = effects_of_rows(moments.by_row, moments.mean, total)
    between = float(np.dot(weight, effects**2))
    left = max(moments.square - 2 * (total - 2) * between, 0.0)
    rest = left / (total * (total - 3))
    zeta_1 = between / (total - 1) - rest / (total - 2)
    variance = 4 * max(zeta_1, 0.0) / total + 2 * rest / (total * (total - 1))
    freedom = combined_variance(Pulls(2 * effects / total, weight)).freedom
    return zeta_1, rest + 2 * zeta_1, VarianceEstimate(variance, freedom)


def spread_between_groups(
    moments: Moments, weight: FloatArray, codes: NDArray[np.intp], total: float
) -> tuple[int, VarianceEstimate]:
    """The number of groups, and the spread of the influences summed in each."""
    effects = weight * effects_of_rows(moments.by_row, moments.mean, total)
    present = np.bincount(codes, weights=weight) > 0
    sums = np.bincount(codes, weights=effects)[present]
    if len(sums) < 2:
        raise ValueError("groups holds one group only; a variance needs at least two.")
    return len(sums), combined_variance(Pulls(2 * sums / total, None))
