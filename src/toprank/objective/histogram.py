"""Scores of two classes in narrow bins: all that a curve through the scores has to know.

A bin becomes one point of each class, at its mean. The bins are 1/256 of a standard deviation
wide, so that a logistic curve notices at the seventh digit; scores beyond the bins are kept
one by one. Histograms of different rows add up.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray

BIN = 1 / 256
BINS = 4096
#: Rows up to which every score is kept; beyond, they are gathered in bins.
EXACT_UP_TO = 20_000
#: Rows that tell where the scores lie, at the least.
LOCATION_ROWS = 10_000
#: Rows per block, so that the temporaries stay small.
_ROWS = 1 << 16

#: Standardised scores, which of them are positive, their weights.
Points = tuple[FloatArray, NDArray[np.bool_], FloatArray]


@dataclass(frozen=True)
class Standard:
    """Scores are read as u = (score - centre) / spread."""

    centre: float
    spread: float

    @classmethod
    def of(cls, sample: FloatArray) -> Standard:
        """Return a centre and a spread of the scores, from evenly spaced ones."""
        size = _size(sample)
        centre = float(np.median(sample))
        spread = float(np.sqrt(np.mean(((sample - centre) / size) ** 2))) * size
        return cls(centre, spread if spread > 0 else size)

    def apply(self, scores: FloatArray) -> FloatArray:
        """Return the scores, standardised."""
        return (scores - self.centre) / self.spread


def _size(values: FloatArray) -> float:
    return float(np.max(np.abs(values), initial=0.0)) or 1.0


@dataclass
class ScoreHistogram:
    """Weight and weighted sum of u in each bin, the negatives' bins before the positives'."""

    mass: FloatArray = field(default_factory=lambda: np.zeros(2 * BINS))
    moment: FloatArray = field(default_factory=lambda: np.zeros(2 * BINS))
    outside: list[Points] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        scores: FloatArray,
        positive: NDArray[np.bool_],
        weight: FloatArray | None,
        standard: Standard,
    ) -> ScoreHistogram:
        """Return the histogram of some rows."""
        total = cls()
        for start in range(0, len(scores), _ROWS):
            rows = slice(start, start + _ROWS)
            u = standard.apply(scores[rows])
            total._add(u, positive[rows], None if weight is None else weight[rows])
        return total

    def _add(self, u: FloatArray, label: NDArray[np.bool_], w: FloatArray | None) -> None:
        far = np.abs(u) >= BIN * BINS / 2
        if np.any(far):
            ones = np.ones(len(u)) if w is None else w
            self.outside.append((u[far], label[far], ones[far]))
            u, label = u[~far], label[~far]
            w = None if w is None else w[~far]
        place = (u / BIN + BINS / 2).astype(np.intp)
        place += BINS * label
        self.mass += np.bincount(place, weights=w, minlength=2 * BINS)
        self.moment += np.bincount(place, weights=u if w is None else w * u, minlength=2 * BINS)

    def merge(self, other: ScoreHistogram) -> ScoreHistogram:
        """Add the histogram of other rows."""
        return ScoreHistogram(
            self.mass + other.mass, self.moment + other.moment, self.outside + other.outside
        )

    def points(self) -> Points:
        """Return one point a bin and class, and the scores beyond the bins."""
        used = np.flatnonzero(self.mass > 0)
        binned = (self.moment[used] / self.mass[used], used >= BINS, self.mass[used])
        u, label, w = (np.concatenate(parts) for parts in zip(*self.outside, binned, strict=True))
        return u, label, w


def standard_points(
    scores: FloatArray, positive: NDArray[np.bool_], weight: FloatArray | None
) -> tuple[Standard, Points]:
    """Return where the scores lie, and all of them as weighted points, standardised."""
    present = scores if weight is None else scores[weight > 0]
    standard = Standard.of(present[:: max(1, len(present) // LOCATION_ROWS)])
    if len(scores) > EXACT_UP_TO:
        return standard, ScoreHistogram.of(scores, positive, weight, standard).points()
    ones = np.ones(len(scores)) if weight is None else weight
    return standard, (standard.apply(scores), positive, ones)
