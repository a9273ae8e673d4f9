"""Thresholds of each column, and the columns as one byte per row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.blocks import Workers

MOST_BINS = 255
#: Rows that thresholds are taken from: evenly spaced ones beyond this.
_SAMPLE_ROWS = 100_000
_BLOCK_ROWS = 4096


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
    X: Any,
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
    X: Any, edges: FloatArray, place: NDArray[np.intp], workers: Workers
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
