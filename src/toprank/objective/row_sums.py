"""Sums over rows of a value, of its slope and of its curvature in the score, with moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.blocks.design import Tile
from toprank.objective.tilted import RelativeSums


@dataclass
class RowSums(RelativeSums):
    """Sums over rows, relative to e^top: zero for plain sums, the largest exponent otherwise.

    ``slope`` and ``bend`` hold the first moments, with the plain sum last; ``bend`` and
    ``second`` are there where a Hessian was asked for.
    """

    _sums = ("value", "slope", "bend", "second")

    value: float
    slope: FloatArray
    bend: FloatArray | None = None
    second: FloatArray | None = None
    top: float = 0.0

    @classmethod
    def empty(cls, n_features: int, order: int) -> RowSums:
        """Return the plain sums over no rows."""
        sums = cls(0.0, np.zeros(n_features + 1))
        if order == 2:
            sums.bend = np.zeros(n_features + 1)
            sums.second = np.zeros((n_features, n_features))
        return sums

    @classmethod
    def of(
        cls, tile: Tile, value: float, slope: Any, bend: Any = None, top: float = 0.0
    ) -> RowSums:
        """Sum slopes and curvatures, one per row of the tile, over its features."""
        sums = cls(value, np.append(tile.adjoint(slope), np.sum(slope)), top=top)
        if bend is not None:
            sums.bend = np.append(tile.adjoint(bend), np.sum(bend))
            sums.second = tile.second_moments(np.maximum(bend, 0.0))
        return sums
