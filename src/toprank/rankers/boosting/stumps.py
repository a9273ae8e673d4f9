"""Binned columns and stumps: thresholds, the weights of the pairs a stump ranks, closed steps."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import JsonObject, Matrix
from toprank._numerics import FloatArray
from toprank.blocks import Workers
from toprank.solvers.coordinate import zero_of

MOST_BINS = 255
#: Rows that thresholds are taken from: evenly spaced ones beyond this.
_SAMPLE_ROWS = 100_000
_BLOCK_ROWS = 4096
#: A weight this small beside its opposite is zero to rounding.
_NOTHING = 1e-12
#: No step moves a score by more than this: beyond it the loss has vanished.
_FARTHEST = 200.0
#: Log of the most pairs a step is made for: a longer one would overflow the weights.
_MOST_PAIRS = 600.0


@dataclass(frozen=True)
class Binned:
    """Columns in bins.

    Attributes
    ----------
    codes : uint8 array of shape (d, n)
        How many of the column's thresholds lie below the value; 255 where it is missing.
    edges : array of shape (d, 256)
        The thresholds of each column in order, padded with infinity.
    n_edges : int array of shape (d,)
        How many thresholds each column has.
    has_missing : bool array of shape (d,)
        Which columns have missing values.
    """

    codes: NDArray[np.uint8]
    edges: FloatArray
    n_edges: NDArray[np.intp]
    has_missing: NDArray[np.bool_]

    @cached_property
    def counts(self) -> NDArray[np.intp]:
        """Rows in each bin of each column."""
        return np.stack([np.bincount(column, minlength=256) for column in self.codes])

    def empty_gains(self) -> FloatArray:
        """Room for the gain of every stump: shape (columns, sides of missing values, thresholds).

        A gain of -1 belongs to no stump.
        """
        return np.full((len(self.n_edges), 2, int(self.n_edges.max(initial=0)) + 1), -1.0)


def bin_columns(
    X: Matrix,
    weight: FloatArray | None,
    place: NDArray[np.intp],
    workers: Workers,
    n_thresholds: int,
) -> Binned:
    """Cut every column at so many quantiles, or between all its values if they are fewer.

    Parameters
    ----------
    X : array of shape (n, d)
        NaN is a missing value; infinities are values like others.
    weight : array of shape (n,) or None
        Repetition counts: the quantiles are those of the repeated rows.
    place : int array of shape (n,)
        Where each row's codes go.
    workers : Workers
    n_thresholds : int
        At most 254.
    """
    n, d = X.shape
    edges = np.full((d, 256), np.inf)
    n_edges = np.zeros(d, dtype=np.intp)
    sample = slice(None, None, max(1, -(-n // _SAMPLE_ROWS)))
    of_sample = None if weight is None else weight[sample]

    def cut(j: int) -> FloatArray:
        return _thresholds(X[sample, j].astype(np.float64), of_sample, n_thresholds)

    for j, found in enumerate(workers.map(cut, range(d))):
        n_edges[j] = len(found)
        edges[j, : len(found)] = found
    codes = codes_of(X, edges, place, workers)
    has_missing = np.array([bool(np.any(column == MOST_BINS)) for column in codes], dtype=bool)
    return Binned(codes, edges, n_edges, has_missing)


def codes_of(
    X: Matrix, edges: FloatArray, place: NDArray[np.intp], workers: Workers
) -> NDArray[np.uint8]:
    """Return the codes of all rows for given thresholds."""
    from toprank.rankers.boosting.kernels import digitise

    n, d = X.shape
    codes = np.empty((d, n), dtype=np.uint8)

    def fill(start: int) -> None:
        rows = slice(start, start + _BLOCK_ROWS)
        block = np.ascontiguousarray(X[rows], dtype=np.float64)
        digitise(block, edges, place[rows], codes)

    list(workers.map(fill, range(0, n, _BLOCK_ROWS)))
    return codes


def _thresholds(values: FloatArray, weight: FloatArray | None, most: int) -> FloatArray:
    """Points between neighbouring values: all of them, or those at `most` evenly spaced ranks."""
    known = ~np.isnan(values)
    if weight is None:
        distinct, mass = np.unique(values[known], return_counts=True)
    else:
        distinct, inverse = np.unique(values[known], return_inverse=True)
        mass = np.bincount(inverse, weight[known], minlength=len(distinct))
    if len(distinct) - 1 <= most:
        lower = np.arange(max(0, len(distinct) - 1))
    else:
        reached = np.cumsum(mass)
        targets = reached[-1] * (np.arange(1, most + 1) / (most + 1))
        lower = np.unique(np.searchsorted(reached, targets * (1 - 1e-12)))
        lower = lower[lower < len(distinct) - 1]
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = distinct[lower], distinct[lower + 1]
        middle = low + (high - low) / 2
    return np.where((low <= middle) & (middle < high), middle, low)


@dataclass(frozen=True)
class Stump:
    """h(x) = 1 where x[column] > threshold, 0 elsewhere, `missing` where x[column] is NaN.

    Attributes
    ----------
    column, threshold, missing
    place : int
        Number of the threshold among the column's.
    count : int
        Training rows with h = 1.
    gain : float
        By which it was chosen.
    """

    column: int
    threshold: float
    missing: int
    place: int
    count: int
    gain: float

    @property
    def key(self) -> Hashable:
        """What makes two stumps the same weak ranker."""
        return self.column, self.place, self.missing

    @property
    def table(self) -> NDArray[np.uint8]:
        """H for each code of a binned column."""
        values = (np.arange(256) > self.place).astype(np.uint8)
        values[255] = self.missing
        return values

    def outputs(self, Z: FloatArray) -> FloatArray:
        """Return h of each row."""
        x = np.asarray(Z[:, self.column], dtype=np.float64)
        return np.where(np.isnan(x), self.missing, x > self.threshold).astype(np.float64)

    def facts(self) -> JsonObject:
        """What the history says about it."""
        return {
            "feature": self.column,
            "threshold": self.threshold,
            "missing": self.missing,
        }


def best_stump(gains: FloatArray, binned: Binned) -> Stump | None:
    """Return the stump of the largest gain, the first among equals; None if there is none.

    A column without missing values sends later ones to the side of more training rows.
    """
    from toprank.rankers.boosting.kernels import first_best

    column, place, side, gain = first_best(gains, binned.n_edges)
    if column < 0:
        return None
    counts = binned.counts[column]
    above = int(counts[place + 1 : 255].sum())
    if binned.has_missing[column]:
        above += side * int(counts[255])
    else:
        side = int(2 * above > binned.codes.shape[1])
    threshold = float(binned.edges[column, place])
    return Stump(int(column), threshold, int(side), int(place), above, float(gain))


@dataclass(frozen=True)
class Masses:
    """Weights d+, d-, d0 of the pairs a {0, 1} weak ranker ranks rightly, wrongly, not at all."""

    plus: float
    minus: float
    zero: float
    p: float = 1.0
    push_factor: float | None = None

    @property
    def edge(self) -> float:
        """d+ - d-, the slope of the log loss."""
        return self.plus - self.minus

    @property
    def one_sided(self) -> bool:
        """Whether d+ or d- is nothing beside the other, so that the minimum is at infinity."""
        return min(self.plus, self.minus) <= _NOTHING * max(self.plus, self.minus)

    @property
    def factor(self) -> float:
        """What the best step multiplies R^(1/p) by; for p = 1, 2 sqrt(d+ d-) + d0 (equation 5)."""
        if self.push_factor is not None:
            return self.push_factor
        return 1.0 - (np.sqrt(self.plus) - np.sqrt(self.minus)) ** 2

    def descent(self, log_n_pairs: float) -> float:
        """Return the step to the minimum, ln(d+/d-)/(1 + p) (equation 4).

        Where one of the two vanishes the minimum is at infinity, and half a pair stands in for it
        (Schapire & Singer 1999, Section 4.2).
        """
        floor = 0.5 * np.exp(-np.clip(log_n_pairs, 0.0, _MOST_PAIRS))
        plus, minus = self.plus, self.minus
        if self.one_sided:
            plus, minus = plus + floor, minus + floor
        return float(np.log(plus / minus) / (1.0 + self.p))

    def ascent(self, smooth_margin: float, log_n_pairs: float, norm: float) -> float:
        """Return the step of smooth margin ranking (equation 12), stable where d- = 0.

        The approximation behind it does without the norm.
        """
        g, sign = min(smooth_margin, 1.0 - _NOTHING), np.sign(self.edge)
        right, wrong = max(self.plus, self.minus), min(self.plus, self.minus)
        root = np.sqrt((g * self.zero) ** 2 + 4.0 * (1.0 - g * g) * right * wrong)
        below = g * self.zero + root
        if below <= _NOTHING:  # every pair is ranked rightly: the margin is 1 already
            return self.descent(log_n_pairs)
        return float(sign * np.log(2.0 * (1.0 - g) * right / below))

    def loss_at(self, alpha: float) -> tuple[float, float]:
        """Return ln tau (equation 7), what a step adds to the log loss, and minus its slope."""
        right, wrong = self.plus * np.exp(-alpha), self.minus * np.exp(alpha)
        tau = right + wrong + self.zero
        return float(np.log(tau)), float((right - wrong) / tau)

    def exact_ascent(self, smooth_margin: float, log_n_pairs: float, norm: float) -> float:
        """Return the step to the maximum of the smooth margin along the weak ranker (equation 10).

        There the smooth margin is -tau'/tau (equation 8). Where it is that already, but for
        rounding, no step raises it.
        """
        sign = float(np.sign(self.edge))
        if abs(smooth_margin - abs(self.edge)) <= _NOTHING:
            return 0.0

        def falling(alpha: float) -> float:
            log_tau, edge = self.loss_at(sign * alpha)
            return smooth_margin * norm - log_tau - (norm + alpha) * sign * edge

        step = zero_of(falling, falling(0.0), 0.25, _FARTHEST)
        return self.descent(log_n_pairs) if abs(step) >= _FARTHEST else sign * step

    def facts(self) -> JsonObject:
        """What the history says."""
        return {
            "d_plus": float(self.plus),
            "d_minus": float(self.minus),
            "d_zero": float(self.zero),
        }

    def theorem_7_holds(self) -> bool:
        """Whether d0 < (2/3)(1 - r)(1 - r^2), under which the smooth margin must grow."""
        r = abs(self.edge)
        return bool(self.zero < 2.0 / 3.0 * (1.0 - r) * (1.0 - r * r))
