r"""How often the paired comparison of two AUCs finds their difference, by simulation.

The test divides the difference by DeLong's error and asks Student's law. Near an AUC of one the two
go together, and the normal theory of the difference alone is wrong: of rankers of .99 and .998 with
157 positives and 1,405 negatives the test tells apart 93 in 100, the theory says 80. So rows are
drawn from the binormal model, with a fixed seed, and the test is made of them.

Where all rows would be too many, the difference is drawn by its projection on the rows,

.. math:: \hat d = \bar D + \bar E - d,

with D what a positive and E what a negative adds to the difference, both functions of the row's
scores alone; what is left of a pair is drawn as normal. Where that is much of the variance the
power near one would be up to .03 too small, so that whole samples are drawn up to some thousand
rows.
"""

from __future__ import annotations

from functools import lru_cache
from math import log2

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit

from toprank._numerics import FloatArray
from toprank.inference.auc_models import auc_difference_variance

#: Samples that are drawn: the power has a standard error of .006 to .015.
_DRAWS = 3000
#: Share of the variance that is left of a pair above which whole samples are drawn.
_LEFT = 0.003
#: Rows of a sample up to which whole ones are drawn, and scores that are drawn in all.
_MOST_ROWS, _CELLS = 2500, 1_000_000
#: Rows that are drawn for a projection, between the classes by what they add to the variance.
_PROJECTED, _FEWEST = 512, 32
#: The variance that `compare` takes for none.
_NO_SPREAD = 1e-24
#: So many rows that one more or less is none.
_ENDLESS = 10**30


@lru_cache(maxsize=256)
def area_power(
    value: float,
    difference: float,
    correlation: float,
    positives: int,
    negatives: int,
    spread: float,
    risk: float,
) -> float:
    """Chance that `compare` has a p-value of at most `risk` for two areas of binormal scores.

    Examples
    --------
    >>> from toprank.inference.area_power import area_power
    >>> found = area_power(0.99, 0.008, 0.5, 157, 1405, 1.0, 0.05)
    >>> 0.91 < found < 0.96
    True
    """
    model = _Pair(value, difference, correlation, spread)
    # one row of a class among endless ones of the other, and a single pair
    of_positive, of_negative, pair = (
        auc_difference_variance(value, difference, correlation, m, n, spread)
        for m, n in ((1, _ENDLESS), (_ENDLESS, 1), (1, 1))
    )
    left = max(0.0, pair - of_negative - of_positive)
    rows = positives + negatives
    of_rows = negatives * of_positive + positives * of_negative
    if left > _LEFT * of_rows and rows <= _MOST_ROWS:
        found = model.whole_samples(positives, negatives, min(_DRAWS, _CELLS // rows))
    else:
        parts = of_positive, of_negative, left
        found = model.projections(positives, negatives, parts)
    told = _told_apart(*found, positives, negatives, risk).astype(np.float64)
    # how far the draws are off in the mean, which is known, they are off in what they tell apart
    off = found[0] - difference
    slope = np.mean((told - np.mean(told)) * off) / max(float(np.var(off)), np.finfo(float).tiny)
    return float(np.clip(np.mean(told) - slope * np.mean(off), 0.0, 1.0))


class _Pair:
    """Two rankers of binormal scores, whose differences of two rows vary by one."""

    def __init__(self, value: float, difference: float, correlation: float, spread: float) -> None:
        self.difference, self.correlation = difference, correlation
        self.shifts = float(ndtri(value)), float(ndtri(value + difference))
        width = float(np.hypot(1.0, spread))
        self.of_positives, self.of_negatives = spread / width, 1.0 / width

    def whole_samples(
        self, positives: int, negatives: int, draws: int
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Difference of the areas and DeLong's variances of both classes, in every draw."""
        high, low = (
            _scores(self.correlation, count, draws, seed)
            for seed, count in enumerate((positives, negatives))
        )
        placed = []
        for shift, of_high, of_low in zip(self.shifts, high, low, strict=True):
            scores = (shift + self.of_positives * of_high, self.of_negatives * of_low)
            order = np.argsort(np.concatenate(scores).T, axis=1)
            positive = order < positives
            won = np.cumsum(~positive, axis=1) / negatives
            lost = 1 - np.cumsum(positive, axis=1) / positives
            place = np.empty(order.shape)
            np.put_along_axis(place, order, np.where(positive, won, lost), axis=1)
            placed.append(place)
        apart = placed[1] - placed[0]
        of_high, of_low = apart[:, :positives], apart[:, positives:]
        return (
            np.mean(of_high, axis=1),
            np.var(of_high, axis=1, ddof=1) / positives,
            np.var(of_low, axis=1, ddof=1) / negatives,
        )

    def projections(
        self, positives: int, negatives: int, parts: tuple[float, float, float]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The same from what each row adds, and a normal part for the pairs."""
        of_positive, of_negative, left = parts
        weights = of_positive / positives, of_negative / negatives
        widths = (self.of_positives, self.of_negatives), (self.of_negatives, self.of_positives)
        # a negative is placed among positives as a positive is among negatives, scores turned
        counts = positives, negatives
        classes = zip(counts, (of_positive, of_negative), weights, widths, (0, 1), strict=True)
        total = sum(weights)
        pairs = left / positives / negatives
        apart = np.random.default_rng(2).standard_normal(_DRAWS) * np.sqrt(pairs) - self.difference
        variances = []
        for count, variance, weight, (own, other), seed in classes:
            share = weight / total if total > 0 else 0.5
            # of a few sizes, so that plans of more rows find theirs drawn
            rows = min(count, max(_FEWEST, 2 ** round(log2(max(1.0, _PROJECTED * share)))))
            mean, seen = _adds(self.shifts, self.correlation, rows, own, other, seed)
            if rows < count:  # scaled to as many as there are
                scale = np.sqrt(rows / count)
                mean = self.difference + scale * (mean - self.difference)
                seen = variance + scale * (seen - variance)
            apart = apart + mean
            variances.append(seen / count + pairs)
        return apart, variances[0], variances[1]


def _scores(correlation: float, rows: int, draws: int, seed: int) -> FloatArray:
    """Standard normal scores of both rankers, (2, rows, draws); more rows are only added."""
    drawn = np.random.default_rng(seed).standard_normal((rows, 2, draws))
    first, own = drawn[:, 0], drawn[:, 1]
    return np.stack((first, correlation * first + np.sqrt(1 - correlation**2) * own))


@lru_cache(maxsize=32)
def _adds(
    shifts: tuple[float, float], correlation: float, rows: int, own: float, other: float, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of what the rows of one class add to the difference, in every draw."""
    scores = _scores(correlation, rows, _DRAWS, seed)
    with np.errstate(divide="ignore", over="ignore"):  # a class without a width is a step
        first, second = (
            ndtr((shift + own * one) / np.float64(other))
            for shift, one in zip(shifts, scores, strict=True)
        )
    apart = second - first
    return np.mean(apart, axis=0), np.var(apart, axis=0, ddof=1)


def _told_apart(
    difference: FloatArray,
    of_positives: FloatArray,
    of_negatives: FloatArray,
    positives: int,
    negatives: int,
    risk: float,
) -> NDArray[np.bool_]:
    """Whether the test rejects: Student's, or agreement where the rows show no spread."""
    variance = of_positives + of_negatives
    none = variance <= _NO_SPREAD
    shown = np.where(none, 1.0, variance)
    doubt = of_positives**2 / (positives - 1) + of_negatives**2 / (negatives - 1)
    freedom = np.maximum(1.0, shown**2 / np.where(none, 1.0, doubt))
    reach = -stdtrit(freedom, risk / 2)
    agree = (np.abs(difference) > 1e-12) & (2.0 ** (1.0 - min(positives, negatives)) <= risk)
    return np.where(none, agree, np.abs(difference) >= reach * np.sqrt(shown))
