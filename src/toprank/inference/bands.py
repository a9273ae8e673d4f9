"""Bands around curves: ROC, lift and precision-recall, point by point or all points at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import kstwo

from toprank._numerics import FloatArray
from toprank.inference.curve_points import BOTH_CLASSES, precision_ends, tpr_ends
from toprank.inference.sample import Sample
from toprank.inference.shares import check_level, clopper_pearson, ends_at_cut
from toprank.metrics.at_cut import Cut, fpr_where, lift_cut, tpr_cut
from toprank.metrics.order import RankedList

KINDS = ("pointwise", "simultaneous")
_POINTS = 201


@dataclass(frozen=True)
class Band:
    """A curve with a band around it.

    Attributes
    ----------
    x : ndarray of shape (m,)
        Where the curve is read.
    estimate, low, high : ndarray of shape (m,)
        The curve, and the ends of the band.
    names : tuple of str
        What x and the curve are.
    level : float
        Confidence level.
    kind : str
        "pointwise": each point is covered with this confidence. "simultaneous": the
        whole curve is.
    method : str
        How the band was made.
    """

    x: FloatArray
    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    names: tuple[str, str]
    level: float
    kind: str
    method: str

    def __str__(self) -> str:
        return (
            f"{self.names[1]} against {self.names[0]} at {len(self.x)} points, "
            f"{100 * self.level:g}% {self.kind} band ({self.method})"
        )


def roc_band(
    y: ArrayLike,
    s: ArrayLike,
    level: float = 0.95,
    kind: str = "pointwise",
    *,
    fpr: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    weights: str = "counts",
    pos_label: object = None,
) -> Band:
    """Band around the ROC curve.

    Parameters
    ----------
    y, s : array-like of shape (n,)
        Labels of two classes and scores.
    level : float, default=0.95
        Confidence level.
    kind : {"pointwise", "simultaneous"}, default="pointwise"
        "pointwise": at each FPR an interval for the TPR there, from the binomial reaches of the
        positives and of the negatives above it. "simultaneous": the true curve is inside
        everywhere at once. The distribution functions of both classes lie within their
        Kolmogorov-Smirnov bands with the given confidence together, and the curve between the
        extremes these allow (Campbell 1994); valid for any sample size and continuous scores,
        and wide.
    fpr : array-like, optional
        Where to read the curve; by default 201 points, denser towards 0.
    sample_weight, weights, pos_label
        As in `interval`.

    Returns
    -------
    Band
        ``.x`` (FPR) ``.estimate`` (TPR) ``.low .high``.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.inference import roc_band
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], [900, 100])
    >>> band = roc_band(y, rng.normal(size=1000) + y, kind="simultaneous")
    >>> bool(np.all((band.low <= band.estimate) & (band.estimate <= band.high)))
    True
    """
    sample = _band_sample(y, s, level, kind, sample_weight, weights, pos_label)
    x = _rates("fpr", fpr, np.linspace(0, 1, _POINTS) ** 2)
    cut = tpr_cut(sample, x)
    names = ("false positive rate", "true positive rate")
    if kind == "pointwise":
        ends = _rising(x, *tpr_ends(sample, x, cut.share, level))
        return Band(x, cut.share, *ends, names, level, kind, BOTH_CLASSES)
    low, high = _roc_box(sample, level)
    return Band(x, cut.share, low(x), high(x), names, level, kind, _BOX)


def lift_band(
    y: ArrayLike,
    s: ArrayLike,
    level: float = 0.95,
    kind: str = "pointwise",
    *,
    top: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    weights: str = "counts",
    pos_label: object = None,
) -> Band:
    """Band around the lift of the top of lists like this one, their share of positives drawn too.

    Parameters
    ----------
    y, s, level, kind, sample_weight, weights, pos_label
        As in `roc_band`.
    top : array-like, optional
        Fractions of the list at which to read the lift, in (0, 1]; by default 201 points from one
        row to the whole list, evenly spaced in their logarithm.

    Returns
    -------
    Band
        ``.x`` (fraction of the list) ``.estimate`` (lift) ``.low .high``.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.inference import lift_band
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], [900, 100])
    >>> band = lift_band(y, rng.normal(size=1000) + y, top=[0.01, 0.1, 1.0])
    >>> float(band.estimate[-1])
    1.0
    """
    sample = _band_sample(y, s, level, kind, sample_weight, weights, pos_label)
    ranked = sample.ranked
    first = min(1.0, 1 / ranked.total)
    x = _rates("top", top, np.geomspace(first, 1, _POINTS))
    if np.any(x <= 0):
        raise ValueError("top contains 0, where there is no row: expected fractions in (0, 1].")
    names = ("fraction of the list", "lift")
    prevalence = ranked.positives / ranked.total
    cut = lift_cut(sample, x * ranked.total)
    if kind == "pointwise":
        return _pointwise(x, cut, names, level, lambda share: share / x)
    # both classes and the share of positives: each is inside with the third root of the level
    few, many = clopper_pearson(prevalence, sum(sample.units), level ** (1 / 3))
    low, high = _roc_box(sample, level ** (2 / 3))
    # the more positives there are, the fewer of them are among so many rows
    below, above = (
        _found_within(curve, float(share), x) / x for curve, share in ((low, many), (high, few))
    )
    return Band(x, cut.share / x, below, above, names, level, kind, _BOX)


def precision_recall_band(
    y: ArrayLike,
    s: ArrayLike,
    level: float = 0.95,
    kind: str = "pointwise",
    *,
    recall: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    weights: str = "counts",
    pos_label: object = None,
) -> Band:
    """Band around the precision at each recall, for the sample's share of positives.

    Parameters
    ----------
    y, s, level, kind, sample_weight, weights, pos_label
        As in `roc_band`.
    recall : array-like, optional
        Where to read the precision, in (0, 1]; by default 200 points.

    Returns
    -------
    Band
        ``.x`` (recall) ``.estimate`` (precision) ``.low .high``.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.inference import precision_recall_band
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], [900, 100])
    >>> band = precision_recall_band(y, rng.normal(size=1000) + y, recall=[0.1, 1.0])
    >>> bool(band.low[0] < band.estimate[0] < band.high[0])
    True
    """
    sample = _band_sample(y, s, level, kind, sample_weight, weights, pos_label)
    x = _rates("recall", recall, np.linspace(0, 1, _POINTS)[1:])
    if np.any(x <= 0):
        raise ValueError("recall contains 0, where there is no precision: expected (0, 1].")
    names = ("recall", "precision")
    prevalence = sample.ranked.positives / sample.ranked.total

    def precision(fpr: FloatArray) -> FloatArray:
        return prevalence * x / (prevalence * x + (1 - prevalence) * fpr)

    fpr = fpr_where(sample.ranked, x)
    if kind == "pointwise":
        ends = precision_ends(sample, x, level)
        return Band(x, precision(fpr), *ends, names, level, kind, BOTH_CLASSES)
    low, high = _roc_box(sample, level)
    grid = _grid(sample.ranked)
    worst = np.interp(x, *_increasing_part(low(grid), grid), right=1.0)
    best = np.interp(x, *_increasing_part(high(grid), grid), left=0.0)
    return Band(x, precision(fpr), precision(worst), precision(best), names, level, kind, _BOX)


_BOX = "Kolmogorov-Smirnov bands of both classes"


def _rising(x: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The ends of a curve that rises, none above one further on, or below one before."""
    order = np.argsort(x, kind="stable")
    back = np.argsort(order, kind="stable")
    lowest = np.minimum.accumulate(low[order][::-1])[::-1]
    return lowest[back], np.maximum.accumulate(high[order])[back]


def _band_sample(
    y: ArrayLike,
    s: ArrayLike,
    level: float,
    kind: str,
    sample_weight: ArrayLike | None,
    weights: str,
    pos_label: object,
) -> Sample:
    check_level(level)
    if kind not in KINDS:
        raise ValueError(f"Unknown kind {kind!r}: expected one of {list(KINDS)}.")
    return Sample.of(y, s, sample_weight, None, weights, None, pos_label)


def _rates(name: str, given: ArrayLike | None, default: FloatArray) -> FloatArray:
    if given is None:
        return default
    rates = np.atleast_1d(np.asarray(given, dtype=np.float64))
    if rates.ndim != 1 or rates.size == 0 or not np.all((rates >= 0) & (rates <= 1)):
        raise ValueError(f"{name} must hold numbers from 0 to 1, in one dimension.")
    return rates


def _pointwise(
    x: FloatArray,
    cut: Cut,
    names: tuple[str, str],
    level: float,
    report: Callable[[FloatArray], FloatArray] = np.asarray,
) -> Band:
    low, high = ends_at_cut(cut, level)
    # every curve ends where the whole list is taken, whatever the sample
    low, high = (np.where(x < 1, end, cut.share) for end in (low, high))
    ends = np.sort([report(low), report(high)], axis=0)
    return Band(
        x,
        report(cut.share),
        ends[0],
        ends[1],
        names,
        level,
        "pointwise",
        "Clopper-Pearson, effective trials",
    )


def _roc_box(
    sample: Sample, level: float
) -> tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]]:
    """The lowest and the highest curve that both distribution functions allow."""
    ranked = sample.ranked
    # the classes are independent: each is inside with the square root of the level
    reach_high, reach_low = (
        _kolmogorov_reach(float(np.sqrt(level)), max(1, int(units))) for units in sample.units
    )
    fpr, tpr = ranked.passed / ranked.negatives, ranked.found / ranked.positives

    def below(rate: FloatArray) -> FloatArray:
        # the lower end of each rise of the curve
        last = np.searchsorted(fpr, rate - reach_low, side="left")
        value = np.where(rate < reach_low, 0.0, tpr[np.maximum(last - 1, 0)])
        return np.clip(np.where(rate >= 1, 1.0, value - reach_high), 0.0, 1.0)

    def above(rate: FloatArray) -> FloatArray:
        next_point = np.searchsorted(fpr, rate + reach_low, side="right")
        return np.clip(tpr[np.minimum(next_point, len(tpr) - 1)] + reach_high, 0.0, 1.0)

    return below, above


@lru_cache
def _kolmogorov_reach(level: float, units: int) -> float:
    """Half-width of the Kolmogorov-Smirnov band of a distribution function."""
    return float(kstwo.ppf(level, units))


def _grid(ranked: RankedList) -> FloatArray:
    return np.unique(np.concatenate((ranked.passed / ranked.negatives, np.linspace(0, 1, 2001))))


def _increasing_part(values: FloatArray, grid: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Values and grid where the values grow, for reading the curve from the side."""
    grows = np.append(True, np.diff(np.maximum.accumulate(values)) > 0)
    return values[grows], grid[grows]


def _found_within(
    curve: Callable[[FloatArray], FloatArray], prevalence: float, top: FloatArray
) -> FloatArray:
    """TPR where the share of all rows above the cut is `top`, along a curve."""
    fpr = np.linspace(0, 1, 20_001) ** 2
    tpr = curve(fpr)
    rows = prevalence * tpr + (1 - prevalence) * fpr
    # above the first point every row is positive
    return np.where(top < rows[0], top / prevalence, np.interp(top, rows, tpr))
