"""Sums over rows that add up block by block: tilted sums, plain ones, histograms of scores.

With the exponential loss and the power price the objective is a sum of log-partition
functions, one for each class:

    F = (1/|s|) log sum_pos w e^{s f} + (1/t) log sum_neg w e^{t f}  -  normalisation

with tilts (s, t) = (-1, p) at the top and (-p, 1) at the bottom. Some rows contribute (top,
mass, moment, second moment) of e^{tilt f} for each class, and two such contributions merge by
rescaling to the larger top, as in an online softmax. The gradient is the difference of the
classes' tilted means, the Hessian the sum of |tilt| times their tilted covariances.

Many settings of p and alpha at once are an axis before the others: their scores are one product
of matrices, and so are their sums.

A histogram counts the scores of two classes in narrow bins, which is all that a curve through
the scores has to know. A bin becomes one point of each class, at its mean. The bins are 1/256 of
a standard deviation wide, so that a logistic curve notices at the seventh digit; scores beyond
the bins are kept one by one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._arrays import BoolArray
from toprank._numerics import FloatArray
from toprank.blocks.design import Tile, mirrored

if TYPE_CHECKING:
    from toprank.blocks.tensors import OnDevice

#: e to this is nothing beside one, and far from the subnormal numbers, which are slow.
_NOTHING = -600.0

#: (tilt of the positives, tilt of the negatives) at each end; numbers, or columns of them.
Tilts = tuple[tuple[Any, Any], ...]


def rescale_factor(top: FloatArray | float, higher: FloatArray | float) -> Any:
    """Return what sums relative to e^top are multiplied by to be relative to e^higher."""
    if isinstance(higher, float):
        return 1.0 if top == higher else math.exp(top - higher) if top < higher else np.nan
    apart = np.zeros(np.shape(higher))
    np.subtract(top, higher, out=apart, where=top != higher)
    return np.exp(apart)


class RelativeSums:
    """Sums relative to e^top: two of them join at the higher top, so that none overflows."""

    #: Names of the sums; one that is None was not asked for.
    _sums: ClassVar[tuple[str, ...]]

    top: Any

    def raise_to(self, top: float) -> None:
        """Express the sums relative to a higher top."""
        if isinstance(top, float):
            if top <= self.top:
                return
            before, self.top = self.top, top
            if before == -np.inf:  # there are no terms yet
                return
            keep, here = rescale_factor(before, top), vars(self)
            for name in self._sums:
                if here[name] is not None:
                    here[name] *= keep
        elif not np.all(top <= self.top):
            higher = np.maximum(self.top, top)
            keep = rescale_factor(self.top, higher)
            self.top = higher
            here = vars(self)
            for name in self._sums:
                if here[name] is not None:
                    here[name] *= keep.reshape(-1, *(1,) * (here[name].ndim - 1))

    def merge(self, other: Any) -> Any:
        """Absorb the sums of other rows."""
        self.raise_to(other.top)
        other.raise_to(self.top)
        here, there = vars(self), vars(other)
        for name in self._sums:
            if here[name] is not None:
                here[name] += there[name]
        return self


@dataclass
class Tilted(RelativeSums):
    """e^{tilt f} over the rows of one class: its top, and mass and moments relative to it.

    Each may have an axis of settings before its own. Of the second moments the upper half is right.
    """

    _sums = ("mass", "moment", "second")

    moment: FloatArray
    second: FloatArray | None = None
    top: Any = -np.inf
    mass: Any = 0.0

    @classmethod
    def empty(cls, n_features: int, order: int = 1, settings: int | None = None) -> Tilted:
        second = np.zeros((n_features, n_features)) if order == 2 else None
        if settings is None:
            return cls(np.zeros(n_features), second)
        top = np.full(settings, -np.inf)
        return cls(np.zeros((settings, n_features)), None, top, np.zeros(settings))

    def add(self, tile: Tile, exponents: FloatArray) -> None:
        """Add the rows of a tile, each with the weight e^exponent; exponents are overwritten."""
        if exponents.ndim == 2:
            self._add_settings(tile, exponents)
            return
        top = float(np.max(exponents, initial=-np.inf))
        if top == -np.inf:  # no row of this class, or only absent ones
            return
        self.raise_to(top)
        weight = tilted_weights(exponents, self.top)
        self.mass += float(np.sum(weight))
        self.moment += tile.adjoint(weight)
        if self.second is not None:
            tile.add_second_moments(weight, self.second)

    def _add_settings(self, tile: Tile, exponents: FloatArray) -> None:
        self.raise_to(np.max(exponents, axis=1, initial=-np.inf))
        finite = np.where(np.isfinite(self.top), self.top, 0.0)
        weight = tilted_weights(exponents, finite[:, None])
        self.mass += np.sum(weight, axis=1)
        self.moment += tile.adjoint(weight.T).T

    @property
    def log_mass(self) -> float:
        return self.top + np.log(self.mass)

    @property
    def mean(self) -> FloatArray:
        return self.moment / (self.mass if self.moment.ndim == 1 else self.mass[:, None])

    @property
    def covariance(self) -> FloatArray:
        assert self.second is not None  # the sweep gathered second moments
        mean, found = self.mean, mirrored(self.second)
        found /= self.mass
        found -= np.outer(mean, mean)
        return found

    def take_covariance(self, factor: float) -> FloatArray:
        """Return a multiple of the covariance, in the place of the second moments."""
        assert self.second is not None
        mean, found = self.mean, mirrored(self.second)
        found *= factor / self.mass
        found -= np.outer(factor * mean, mean)
        self.second = None
        return found


def tilted_weights(exponents: Any, top: Any) -> Any:
    """Turn exponents, in place, into weights relative to e^top."""
    exponents -= top
    np.maximum(exponents, _NOTHING, out=exponents)
    return np.exp(exponents, out=exponents)


@dataclass
class Mass(RelativeSums):
    """The sum of e^{tilt f} over the rows of one class, relative to e^top."""

    _sums = ("mass",)

    top: float = -np.inf
    mass: float = 0.0

    @property
    def log_mass(self) -> float:
        return self.top + math.log(self.mass)


#: One end of the list: what the positives and the negatives contribute.
EndPartial = tuple[Tilted, Tilted]


def empty_ends(
    n_features: int, tilts: Tilts, order: int = 1, settings: int | None = None
) -> list[EndPartial]:
    """Return the sums over no rows."""
    return [
        (Tilted.empty(n_features, order, settings), Tilted.empty(n_features, order, settings))
        for _ in tilts
    ]


def merge_ends(left: list[EndPartial], right: list[EndPartial]) -> list[EndPartial]:
    """Join what two sets of rows contribute to each end; both may be overwritten."""
    return [(a.merge(c), b.merge(d)) for (a, b), (c, d) in zip(left, right, strict=True)]


class Classes:
    """The rows of a tile by class, with their log weights.

    The rows of the rarer class are gathered where that is cheap; the commoner class then takes
    the whole tile, with weight zero for the others.
    """

    def __init__(self, positive: OnDevice | BoolArray, log_weight: FloatArray | None, rarer: int):
        members = (positive, ~positive)
        self.rows = (np.flatnonzero(members[0]), np.flatnonzero(members[1]))
        self.log_weight = log_weight
        self.rarer = rarer

    def parts(self, tile: Tile, gather_both: bool) -> Any:
        """Yield (class, tile, its rows or all, rows that count for nothing)."""
        for c in (0, 1):
            if tile.gathers and (gather_both or tile.shares_rows or c == self.rarer):
                whole = len(self.rows[1 - c]) == 0
                yield c, tile if whole else tile.take(self.rows[c]), self.rows[c], None
            else:
                yield c, tile, None, self.rows[1 - c]

    def add(self, ends: list[EndPartial], tile: Tile, scores: FloatArray, tilts: Tilts) -> None:
        """Add the rows of the tile, whose scores are known, to the sums of each end."""
        for c, part, rows, others in self.parts(tile, gather_both=scores.ndim == 2):
            here = scores if rows is None else scores.take(rows, axis=-1)
            logs = self.log_weight
            if logs is not None and rows is not None:
                logs = logs[rows]
            for of_end, end in zip(tilts, ends, strict=True):
                exponents = of_end[c] * here
                if logs is not None:
                    exponents += logs
                if others is not None:
                    exponents[others if exponents.ndim == 1 else (..., others)] = -np.inf
                end[c].add(part, exponents)


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
        sums = cls(value, _moments(tile, slope), top=top)
        if bend is not None:
            sums.bend = _moments(tile, bend)
            sums.second = tile.second_moments(np.maximum(bend, 0.0))
        return sums


def _moments(tile: Tile, weight: ArrayLike) -> FloatArray:
    """The weighted sum of each column, and that of the weights last."""
    columns = tile.adjoint(weight)
    moments = np.empty(len(columns) + 1)
    moments[:-1], moments[-1] = columns, np.sum(weight)
    return moments


BIN = 1 / 256
BINS = 4096
#: Rows up to which every score is kept; beyond, they are gathered in bins.
EXACT_SCORES_UP_TO = 20_000
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
        """Return one point per bin and class, and the scores beyond the bins."""
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
    if len(scores) > EXACT_SCORES_UP_TO:
        return standard, ScoreHistogram.of(scores, positive, weight, standard).points()
    ones = np.ones(len(scores)) if weight is None else weight
    return standard, (standard.apply(scores), positive, ones)
