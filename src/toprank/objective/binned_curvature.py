"""An estimate of the Hessian for any smooth loss under the root of a power price, from bins.

With S_o the height of an outer row, T_o and U_o the same sums of l' and l'', c_o = dF/dS_o and
e_o = (p - 1) F q_o / S_o^2, where q_o are the shares of the rows in F^p, the Hessian of F is

    sum_o c_o sum_i w_i l''(r) (x_i - x_o)(x_i - x_o)'  +  sum_o e_o g_o g_o'  -  (p - 1) F v v',
    g_o = sum_i w_i l'(r) (x_i - x_o),    v = sum_o q_o g_o / S_o.

Rows of about the same score are read as if they had the mean score of their bin. Then all sums over
pairs are sums over pairs of bins, and of X only three things are asked: its sums over the bins of
either class, and X' diag(h) X for one weight per row. The estimate keeps the form above, and
with it the Hessian's sign and its indifference to shifts of the columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from toprank._numerics import FloatArray
from toprank.blocks.design import design_of
from toprank.blocks.source import Block
from toprank.losses import Loss
from toprank.losses.margin import SmoothedHinge
from toprank.objective.labelled import View, open_block

#: Bins of each class, at the most.
BINS = 256
#: Bins that the bend of a hinge is seen over, at the least.
_WIDTHS = 2.0
#: Scores further from the middle than so many spreads share the outermost bins.
SPREADS = 20.0
#: Outer rows whose height is computed, beside evenly spaced ones, and the logarithm of one of none.
_HIGHEST, _NO_HEIGHT = 64, -700.0
#: Rows that are copied at once, dense and sparse ones, whose products take long to begin.
_ROWS, _SPARSE_ROWS = 512, 1 << 16


@dataclass(frozen=True)
class BinnedRows:
    """Some rows of either class by bin: what the sums over pairs of bins say of each row.

    Attributes
    ----------
    bin : the bin of each row, those of the outer rows counted on from the inner ones
    share : the weight of each row within its class
    weight : the weight of each row in X' diag(weight) X
    pairs : what turns sums over bins into the rest of the Hessian
    """

    bin: NDArray[np.intp]
    share: FloatArray
    weight: FloatArray
    pairs: BinPairs

    @classmethod
    def of(
        cls, scores: FloatArray, inner: NDArray[np.bool_], share: FloatArray, loss: Loss, p: float
    ) -> BinnedRows:
        """Put rows of oriented scores into bins; the shares of either class sum to one."""
        depth, width = _depths(scores)
        place = _place(depth)
        seen = _no_sharper(loss, _WIDTHS * width)
        outer = np.flatnonzero(~inner)
        if p > 1.0 and len(outer):
            heights = _heights(scores, inner, place, share, outer, seen)
            # half of the bins by score, half by price: the few rows that pay most have their own
            place[outer] = _place(0.5 * (depth[outer] + _shares_below(heights, share[outer], p)))
        bins = np.where(inner, place, place + BINS)
        held = np.flatnonzero(np.bincount(bins))
        number = np.zeros(2 * BINS, dtype=np.intp)
        number[held] = np.arange(len(held))
        dense = number[bins]
        mass = np.bincount(dense, share).astype(np.float64)
        middle = np.bincount(dense, share * scores) / mass
        split = int(np.searchsorted(held, BINS))
        pairs = BinPairs.of(middle[:split], middle[split:], mass[:split], mass[split:], seen, p)
        return cls(dense, share, share * pairs.per_share[dense], pairs)


def _depths(scores: FloatArray) -> tuple[FloatArray, float]:
    """How far up each score lies, from 0 to 1, and the width of a bin; outliers lie at the ends."""
    middle, spread = float(np.median(scores)), float(np.std(scores))
    low = max(float(np.min(scores)), middle - SPREADS * spread)
    high = min(float(np.max(scores)), middle + SPREADS * spread)
    if not high > low:
        return np.zeros(len(scores)), 0.0
    return np.clip((scores - low) / (high - low), 0.0, 1.0), (high - low) / BINS


def _place(depth: FloatArray) -> NDArray[np.intp]:
    """The bin of each row."""
    return np.minimum(BINS * depth, BINS - 1).astype(np.intp)


def _heights(
    scores: FloatArray,
    inner: NDArray[np.bool_],
    place: NDArray[np.intp],
    share: FloatArray,
    outer: NDArray[np.intp],
    loss: Loss,
) -> tuple[NDArray[np.intp], FloatArray]:
    """The outer rows in order of score, and the logarithms of their heights."""
    mass = np.bincount(place[inner], share[inner], minlength=BINS)
    middle = np.bincount(place[inner], (share * scores)[inner], minlength=BINS)
    held = mass > 0
    a, weight = middle[held] / mass[held], mass[held]
    order = np.argsort(scores[outer])
    b = scores[outer][order]
    spaced = np.linspace(0, len(b) - 1, BINS).astype(np.intp)
    looked_at = np.union1d(spaced, np.arange(max(0, len(b) - _HIGHEST), len(b)))
    height = loss.value(a[None, :] - b[looked_at, None]) @ weight
    with np.errstate(divide="ignore"):
        log_height = np.log(height)
    return order, np.interp(b, b[looked_at], np.maximum(log_height, _NO_HEIGHT))


def _shares_below(
    heights: tuple[NDArray[np.intp], FloatArray], share: FloatArray, p: float
) -> FloatArray:
    """The share of all prices that rows up to each one pay."""
    order, log_height = heights
    paid = share[order] * np.exp(p * (log_height - np.max(log_height)))
    up_to = np.empty(len(order))
    up_to[order] = np.cumsum(paid) / np.sum(paid)
    return up_to


def _no_sharper(loss: Loss, width: float) -> Loss:
    """A hinge whose bend is no narrower than what bins can tell."""
    return SmoothedHinge(width) if loss.bend is not None and loss.bend[1] < width else loss


@dataclass(frozen=True)
class BinPairs:
    """The sums over pairs of bins: inner bins in columns, outer ones in lines."""

    slope: FloatArray  # l'(r)
    bend: FloatArray  # l''(r)
    tilt: FloatArray  # T of each outer bin
    first: FloatArray  # c of each outer bin, summed over its rows
    second: FloatArray  # e, likewise
    mass: FloatArray  # shares of the outer bins
    per_share: FloatArray  # weight of a row in X' diag(weight) X for a share of one
    value: float
    p: float

    @classmethod
    def of(
        cls,
        a: FloatArray,
        b: FloatArray,
        inner: FloatArray,
        outer: FloatArray,
        loss: Loss,
        p: float,
    ) -> BinPairs:
        r = a[None, :] - b[:, None]
        slope, bend = loss.slope(r), loss.curvature(r)
        height, tilt = loss.value(r) @ inner, slope @ inner
        largest = float(np.max(height))
        power = outer * (height / largest) ** p if largest > 0 else np.zeros_like(height)
        total = float(np.sum(power))
        value = largest * total ** (1.0 / p)
        share = power / total if total > 0 else power
        first, second = np.zeros_like(height), np.zeros_like(height)
        some = share > 0
        first[some] = value * share[some] / height[some]
        second[some] = (p - 1.0) * first[some] / height[some]
        of_outer = (first * (bend @ inner) + second * tilt**2) / outer
        per_share = np.concatenate([first @ bend, of_outer])
        return cls(slope, bend, tilt, first, second, outer, per_share, value, p)

    def hessian(self, sums: FloatArray, moments: FloatArray) -> FloatArray:
        """Return the Hessian from the sums of X over the bins and X' diag(weight) X."""
        return moments + self.beside_moments(sums)

    def beside_moments(self, sums: FloatArray) -> FloatArray:
        """Return what the Hessian has beside X' diag(weight) X."""
        split = self.slope.shape[1]
        inner, outer = sums[:split], sums[split:] / self.mass[:, None]
        by_first = self.first[:, None] * outer
        met = self.slope @ inner
        across = inner.T @ (self.bend.T @ by_first)
        across += (met * (self.tilt * self.second)[:, None]).T @ outer
        pull = self.first @ met - self.tilt @ by_first
        beside: FloatArray = (met * self.second[:, None]).T @ met - across - across.T
        if self.value > 0:
            beside -= (self.p - 1.0) / self.value * np.outer(pull, pull)
        return beside


@dataclass(frozen=True)
class BinnedSums:
    """Sums over bins and X' diag(weight) X; the state gives (rows, bins, shares, weights)."""

    view: View
    n_bins: int

    def local(self, block: Block, state: Any) -> tuple[FloatArray, FloatArray]:
        design = open_block(block, self.view).design
        d = design.n_features
        sums, moments = np.zeros((self.n_bins, d)), np.zeros((d, d))
        rows, *rest = state[block.index]
        at_once = _SPARSE_ROWS if sparse.issparse(design.X) else _ROWS
        for start in range(0, len(rows), at_once):
            part = slice(start, start + at_once)
            some = design_of(design.thin(rows[part]), self.view.units)
            for within, tile in some.tiles():
                of_tile = (values[part][within] for values in rest)
                _add_tile(sums, moments, tile, *of_tile)
        return sums, moments

    def merge(
        self, left: tuple[FloatArray, FloatArray], right: tuple[FloatArray, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        return left[0] + right[0], left[1] + right[1]


def _add_tile(
    sums: FloatArray,
    moments: FloatArray,
    tile: Any,
    bins: NDArray[np.intp],
    share: FloatArray,
    weight: FloatArray,
) -> None:
    n = len(bins)
    onto = sparse.csr_array((share, bins, np.arange(n + 1)), shape=(n, len(sums))).T
    found = onto @ tile.matrix
    sums += found.toarray() if sparse.issparse(found) else found
    if sparse.issparse(tile.matrix):
        moments += tile.second_moments(weight)
    else:  # of single precision: for an estimate enough, in half the time
        weighed = (tile.matrix * np.sqrt(weight)[:, None]).astype(np.float32)
        moments += weighed.T @ weighed
