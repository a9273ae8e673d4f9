"""Columns for linear members: standardised numbers, gaps filled and marked, one-hot categories."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import AnyArray
from toprank._numerics import LARGEST_SIZE, FloatArray, find_long_tail


@dataclass(frozen=True)
class LinearColumns:
    """How numbers and codes of categories become columns of a linear model.

    A number is standardised; where it is missing it is the mean, and a column of its own says so
    if training had gaps. A category becomes a column of 0 and 1 per code, all of them zero where
    it is missing or was never seen. Long tails are clipped, and no number counts as farther out
    than the range of the training rows once more: one row would head every list otherwise.

    Attributes
    ----------
    plain : array of int
        The places of the numbers.
    centre, spread : array of float
        Their means and standard deviations.
    gaps : array of int
        Which of them were missing somewhere in training.
    coded : array of int
        The places of the categories, once for each code.
    codes : array of float
        Those codes.
    low, high : array of float or None
        What numbers count as at least and at most; None where nothing is clipped.
    """

    plain: NDArray[np.intp]
    centre: FloatArray
    spread: FloatArray
    gaps: NDArray[np.intp]
    coded: NDArray[np.intp]
    codes: FloatArray
    low: FloatArray | None = None
    high: FloatArray | None = None

    @classmethod
    def learn(
        cls,
        numbers: FloatArray,
        categories: dict[int, AnyArray],
        weight: FloatArray | None,
        clip_tails: bool = False,
    ) -> LinearColumns:
        """Learn means, spreads, gaps and tails of the columns that hold no category."""
        places = [j for j in range(numbers.shape[1]) if j not in categories]
        table = numbers[:, places]
        low, high = _limits(table, weight) if clip_tails and len(table) else (None, None)
        if low is not None:
            table = np.clip(table, low, high)
        known = ~np.isnan(table)
        counts = known * (np.ones(len(table)) if weight is None else weight)[:, None]
        total = np.maximum(counts.sum(axis=0), np.finfo(float).tiny)
        filled = np.where(known, table, 0.0)
        centre = np.sum(counts * filled, axis=0) / total
        with np.errstate(over="ignore"):
            apart = np.where(known, table - centre, 0.0)
            size = np.max(np.abs(apart), axis=0, initial=0.0)
            unit = np.where(size > 0, size, 1.0)  # squares of huge numbers overflow
            spread = unit * np.sqrt(np.sum(counts * (apart / unit) ** 2, axis=0) / total)
        pairs = [(j, code) for j, levels in categories.items() for code in range(len(levels))]
        return cls(
            np.array(places, dtype=np.intp),
            centre,
            np.where(spread > 0, spread, 1.0),
            np.flatnonzero(~np.all(known, axis=0)),
            np.array([j for j, _ in pairs], dtype=np.intp),
            np.array([code for _, code in pairs], dtype=np.float64),
            low,
            high,
        )

    @property
    def owner(self) -> NDArray[np.intp]:
        """The place of the column that each made column came from."""
        return np.concatenate([self.plain, self.plain[self.gaps], self.coded])

    def make(self, numbers: FloatArray) -> FloatArray:
        """Return the columns of some rows."""
        table = numbers[:, self.plain]
        if self.low is not None:
            table = np.clip(table, self.low, self.high)
        missing = np.isnan(table)
        with np.errstate(over="ignore"):  # numbers far beyond any of training
            scaled = np.clip((table - self.centre) / self.spread, -LARGEST_SIZE, LARGEST_SIZE)
        parts = [np.where(missing, 0.0, scaled), missing[:, self.gaps]]
        parts.append(numbers[:, self.coded] == self.codes)
        return np.hstack(parts, dtype=np.float64)


def _limits(table: FloatArray, weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Where long tails begin; of other columns, one range of the training rows beyond them."""
    present = table if weight is None else table[weight > 0]
    low, high = np.fmin.reduce(present, axis=0), np.fmax.reduce(present, axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = low - (high - low), high + (high - low)
    low, high = np.where(np.isfinite(low), low, -np.inf), np.where(np.isfinite(high), high, np.inf)
    for j in range(table.shape[1]):
        tail = find_long_tail(table[:, j], weight)
        if tail is not None:
            low[j], high[j] = tail.low, tail.high
    return low, high
