"""The mergeable sweep: one pass over X gives the value, the gradient and the Hessian.

With the exponential loss and the power price the objective is a sum of log-partition
functions, one for each class:

    F = (1/|s|) log sum_pos w e^{s f} + (1/t) log sum_neg w e^{t f}  -  normalisation

with tilts (s, t) = (-1, p) at the top and (-p, 1) at the bottom. A block of rows contributes
(top, mass, moment, second moment) of e^{tilt f} for each class, and two such contributions
merge by rescaling to the larger top, as in an online softmax. The gradient is the difference of
the classes' tilted means, the Hessian the sum of |tilt| times their tilted covariances.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.blocks import RowBlocks

#: Entries of X from which compiled kernels repay their loading time (see benchmarks/kernels.py).
COMPILED_FROM = 50_000_000


@dataclass
class Tilted:
    """e^{tilt f} over the rows of one class: its top, and mass and moments relative to it."""

    moment: FloatArray
    second: FloatArray | None = None
    top: float = -np.inf
    mass: float = 0.0

    @classmethod
    def empty(cls, n_features: int, order: int) -> Tilted:
        second = np.zeros((n_features, n_features)) if order == 2 else None
        return cls(np.zeros(n_features), second)

    def raise_to(self, top: float) -> None:
        """Express mass and moments relative to a higher top."""
        if top <= self.top:
            return
        keep = float(np.exp(self.top - top)) if self.mass else 0.0
        self.top = top
        self.mass *= keep
        self.moment *= keep
        if self.second is not None:
            self.second *= keep

    def merge(self, other: Tilted) -> Tilted:
        """Absorb another part of the same class."""
        self.raise_to(other.top)
        other.raise_to(self.top)
        self.mass += other.mass
        self.moment += other.moment
        if self.second is not None and other.second is not None:
            self.second += other.second
        return self

    @property
    def log_mass(self) -> float:
        return self.top + float(np.log(self.mass))

    @property
    def mean(self) -> FloatArray:
        return self.moment / self.mass

    @property
    def covariance(self) -> FloatArray:
        if self.second is None:
            raise ValueError("this sweep gathered no second moments")
        mean = self.mean
        return self.second / self.mass - np.outer(mean, mean)


#: One end of the list: what the positives and the negatives contribute.
EndPartial = tuple[Tilted, Tilted]


@dataclass
class TiltedSweep:
    """One pass over the rows of X for given tilts of the two classes at each end."""

    source: RowBlocks
    positive: NDArray[np.bool_]
    log_weight: FloatArray | None
    tilts: tuple[tuple[float, float], ...]
    compiled: bool = field(init=False)

    def __post_init__(self) -> None:
        X = self.source.X
        self.compiled = (
            X.size >= COMPILED_FROM
            and X.flags.c_contiguous
            and X.dtype in (np.float32, np.float64)
            and self.source.centre is None
        )

    def run(self, coef: FloatArray, order: int = 1) -> list[EndPartial]:
        """Return, for each end, the tilted sums of positives and negatives."""
        if order == 1 and self.compiled:
            return self._run_compiled(coef)

        def local(start: int, stop: int) -> list[EndPartial]:
            ends = self._empty(order)
            for rows, block in self.source.blocks(start, stop):
                self._add(ends, rows, block, block @ coef, order)
            return ends

        return self.source.map_reduce(local, _merge)

    def _empty(self, order: int) -> list[EndPartial]:
        d = self.source.n_features
        return [(Tilted.empty(d, order), Tilted.empty(d, order)) for _ in self.tilts]

    def _add(
        self, ends: list[EndPartial], rows: slice, block: FloatArray, f: FloatArray, order: int
    ) -> None:
        positive = self.positive[rows]
        log_weight = 0.0 if self.log_weight is None else self.log_weight[rows]
        for (of_pos, of_neg), (pos, neg) in zip(self.tilts, ends, strict=True):
            t = np.where(positive, of_pos * f, of_neg * f) + log_weight
            pos.raise_to(float(np.max(np.where(positive, t, -np.inf))))
            neg.raise_to(float(np.max(np.where(positive, -np.inf, t))))
            shift = np.where(positive, _finite(pos.top), _finite(neg.top))
            weight = np.exp(t - shift)
            if order == 2:
                _add_second(pos, block, weight, np.flatnonzero(positive))
                _add_second(neg, block, weight, np.flatnonzero(~positive))
            else:
                _add_first(pos, neg, block, weight, positive)

    def _run_compiled(self, coef: FloatArray) -> list[EndPartial]:
        from toprank.objective.kernels import tilted_sums

        X = self.source.X
        log_weight = np.empty(0) if self.log_weight is None else self.log_weight
        kind = self.positive.view(np.uint8)

        def local(start: int, stop: int) -> list[EndPartial]:
            ends = []
            for of_pos, of_neg in self.tilts:
                tilts = np.array([of_neg, of_pos])
                top, mass, moment = tilted_sums(X, kind, log_weight, coef, tilts, start, stop)
                neg, pos = (Tilted(moment[c], None, top[c], mass[c]) for c in (0, 1))
                ends.append((pos, neg))
            return ends

        return self.source.map_reduce(local, _merge)


def _finite(top: float) -> float:
    return top if np.isfinite(top) else 0.0


def _add_first(
    pos: Tilted, neg: Tilted, block: FloatArray, weight: FloatArray, positive: NDArray[np.bool_]
) -> None:
    """Mass and moment of both classes: one product of a two-row matrix with the block."""
    split = np.empty((2, len(weight)))
    np.multiply(weight, positive, out=split[0])
    np.subtract(weight, split[0], out=split[1])
    moments = split @ block
    for tilted, w, moment in zip((pos, neg), split, moments, strict=True):
        tilted.mass += float(np.sum(w))
        tilted.moment += moment


def _add_second(
    tilted: Tilted, block: FloatArray, weight: FloatArray, rows: NDArray[np.intp]
) -> None:
    """Mass, moment and second moment of one class; A.T @ A is half the work of A.T @ B."""
    if tilted.second is None or not len(rows):
        return
    w = weight[rows]
    root = np.sqrt(w)
    scaled = block[rows] * root[:, None]
    tilted.mass += float(np.sum(w))
    tilted.moment += root @ scaled
    tilted.second += scaled.T @ scaled


def _merge(left: list[EndPartial], right: list[EndPartial]) -> list[EndPartial]:
    return [(a.merge(c), b.merge(d)) for (a, b), (c, d) in zip(left, right, strict=True)]
