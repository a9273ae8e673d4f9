"""Sums over rows of a value, of its slope and of its curvature in the score, with moments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toprank._numerics import FloatArray
from toprank.objective.blockwise.rows import OpenBlock


@dataclass
class RowSums:
    """Sums over rows, relative to e^top: zero for plain sums, the largest exponent otherwise.

    ``slope`` and ``bend`` hold the first moments, with the plain sum last; ``bend`` and
    ``second`` are there where a Hessian was asked for.
    """

    value: float
    slope: FloatArray
    bend: FloatArray | None = None
    second: FloatArray | None = None
    top: float = 0.0

    @classmethod
    def of(
        cls,
        rows: OpenBlock,
        value: float,
        slope: FloatArray,
        bend: FloatArray | None = None,
        top: float = 0.0,
    ) -> RowSums:
        """Sum slopes and curvatures, one a row of the block, over its features."""
        sums = cls(value, np.append(rows.adjoint(slope), np.sum(slope)), top=top)
        if bend is not None:
            sums.bend = np.append(rows.adjoint(bend), np.sum(bend))
            sums.second = rows.second_moments(np.maximum(bend, 0.0))
        return sums

    def raise_to(self, top: float) -> None:
        """Express the sums relative to a higher top."""
        if top <= self.top:
            return
        keep = float(np.exp(self.top - top))
        self.top = top
        self.value *= keep
        self.slope *= keep
        if self.bend is not None and self.second is not None:
            self.bend *= keep
            self.second *= keep

    def merge(self, other: RowSums) -> RowSums:
        """Absorb the sums of other rows."""
        self.raise_to(other.top)
        other.raise_to(self.top)
        self.value += other.value
        self.slope += other.slope
        if self.bend is not None and other.bend is not None:
            self.bend += other.bend
        if self.second is not None and other.second is not None:
            self.second += other.second
        return self
