r"""How often the paired comparison of two AUCs finds their difference, by simulation.

The test divides the difference by DeLong's error and asks Student's law. Near an AUC of one the two
go together, and the normal theory of the difference alone is wrong: of rankers of .99 and .998 with
157 positives and 1,405 negatives the test tells apart 93 in 100, the theory says 80. So rows are
drawn from the binormal model, with a fixed seed, and the test is made of them.

Where all rows would be too many, the difference is drawn by its projection on the rows,

.. math:: \hat d = \bar D + \bar E - d,

with D what a positive and E what a negative adds to the difference, both functions of the row's
scores alone; what is left of a pair is drawn as normal. Where that is much of the variance the
power near one would be up to .03 too small, and up to some thousand rows whole samples are drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from math import log2

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit

from toprank._numerics import FloatArray
from toprank.inference.auc_models import auc_difference_variance

#: Samples that are drawn: the power has a standard error of .005 to .015.
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
    model = _Model(value, difference, correlation, positives, negatives, spread)
    told = partial(_told_apart, positives=positives, negatives=negatives, risk=risk)
    rows = positives + negatives
    if model.left <= _LEFT or rows > _MOST_ROWS:
        return model.share(model.projections(), told)
    draws = min(_DRAWS, _CELLS // rows)
    scores = model.scores(positives, draws, 3), model.scores(negatives, draws, 4)
    whole = model.whole_samples(*scores)
    if 2 * draws > _DRAWS:
        return model.share(whole, told)
    # whole samples of many rows are few: they say how far projections, which are many, are off
    projected = model.projections((scores[0], -scores[1]))
    off = float(np.mean(told(*whole)) - np.mean(told(*projected)))
    return float(np.clip(model.share(model.projections(), told) + off, 0.0, 1.0))


#: Difference of the areas and the variances of both classes in it, in every draw.
Draws = tuple[FloatArray, FloatArray, FloatArray]


class _Model:
    """Samples of two rankers of binormal scores, whose differences of two rows vary by one."""

    def __init__(
        self,
        value: float,
        difference: float,
        correlation: float,
        positives: int,
        negatives: int,
        spread: float,
    ) -> None:
        self.difference, self.correlation = difference, correlation
        self.counts = positives, negatives
        self.shifts = float(ndtri(value)), float(ndtri(value + difference))
        width = float(np.hypot(1.0, spread))
        self.widths = spread / width, 1.0 / width
        # one row of a class among endless ones of the other, and a single pair
        of_positive, of_negative, pair = (
            auc_difference_variance(value, difference, correlation, m, n, spread)
            for m, n in ((1, _ENDLESS), (_ENDLESS, 1), (1, 1))
        )
        self.of_rows = of_positive, of_negative
        self.of_pairs = max(0.0, pair - of_positive - of_negative) / positives / negatives
        self.weights = of_positive / positives, of_negative / negatives

    @property
    def left(self) -> float:
        """What pairs add to the variance, over what rows add."""
        return self.of_pairs / max(sum(self.weights), np.finfo(float).tiny)

    def share(self, draws: Draws, told: Callable[..., NDArray[np.bool_]]) -> float:
        """The share of the draws that is told apart, less what their mean is off by chance."""
        found, off = told(*draws).astype(np.float64), draws[0] - self.difference
        around = np.mean((found - np.mean(found)) * off)
        slope = around / max(float(np.var(off)), np.finfo(float).tiny)
        return float(np.clip(np.mean(found) - slope * np.mean(off), 0.0, 1.0))

    def scores(self, rows: int, draws: int, seed: int) -> FloatArray:
        """Standard normal scores of both rankers, (2, rows, draws)."""
        return _scores(self.correlation, rows, draws, seed)

    def whole_samples(self, high: FloatArray, low: FloatArray) -> Draws:
        """From all rows, with DeLong's variances."""
        positives, negatives = self.counts
        placed = []
        for shift, of_high, of_low in zip(self.shifts, high, low, strict=True):
            scores = (shift + self.widths[0] * of_high, self.widths[1] * of_low)
            order = np.argsort(np.concatenate(scores).T, axis=1)
            positive = order < positives
            won = np.cumsum(~positive, axis=1) / negatives
            lost = 1 - np.cumsum(positive, axis=1) / positives
            place = np.empty(order.shape)
            np.put_along_axis(place, order, np.where(positive, won, lost), axis=1)
            placed.append(place)
        apart = placed[1] - placed[0]
        parts = apart[:, :positives], apart[:, positives:]
        of_high, of_low = (np.var(part, axis=1, ddof=1) / part.shape[1] for part in parts)
        return np.mean(parts[0], axis=1), of_high, of_low

    def projections(self, drawn: tuple[FloatArray, FloatArray] | None = None) -> Draws:
        """From what each row adds, and a normal part for the pairs.

        A negative is placed among positives as a positive is among negatives, with its score
        turned. Where `drawn` is not given, the scores are those of fixed seeds.
        """
        means, variances = [], []
        for seed, count in enumerate(self.counts):
            widths = self.widths[seed], self.widths[1 - seed]
            share = self.weights[seed] / sum(self.weights) if sum(self.weights) > 0 else 0.5
            # of a few sizes, so that plans of more rows find theirs drawn
            rows = min(count, max(_FEWEST, 2 ** round(log2(max(1.0, _PROJECTED * share)))))
            if drawn is None:
                mean, seen = _drawn_adds(self.correlation, rows, seed, self.shifts, *widths)
            else:
                mean, seen = _adds(drawn[seed][:, :rows], self.shifts, *widths)
            if rows < count:  # scaled to as many as there are
                scale = np.sqrt(rows / count)
                mean = self.difference + scale * (mean - self.difference)
                seen = self.of_rows[seed] + scale * (seen - self.of_rows[seed])
            means.append(mean)
            variances.append(seen / count + self.of_pairs)
        pairs = np.random.default_rng(2).standard_normal(len(means[0])) * np.sqrt(self.of_pairs)
        return sum(means) - self.difference + pairs, variances[0], variances[1]


def _scores(correlation: float, rows: int, draws: int, seed: int) -> FloatArray:
    drawn = np.random.default_rng(seed).standard_normal((rows, 2, draws))
    first, own = drawn[:, 0], drawn[:, 1]
    return np.stack((first, correlation * first + np.sqrt(1 - correlation**2) * own))


def _adds(
    scores: FloatArray, shifts: tuple[float, float], own: float, other: float
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of what the rows of one class add to the difference, in every draw."""
    with np.errstate(divide="ignore", over="ignore"):  # a class without a width is a step
        first, second = (
            ndtr((shift + own * one) / np.float64(other))
            for shift, one in zip(shifts, scores, strict=True)
        )
    apart = second - first
    return np.mean(apart, axis=0), np.var(apart, axis=0, ddof=1)


@lru_cache(maxsize=32)
def _drawn_adds(
    correlation: float, rows: int, seed: int, shifts: tuple[float, float], own: float, other: float
) -> tuple[FloatArray, FloatArray]:
    """The same of scores of this seed; more rows are only added to fewer."""
    return _adds(_scores(correlation, rows, _DRAWS, seed), shifts, own, other)


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
