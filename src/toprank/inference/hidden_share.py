"""How many of the unlabelled rows are positive: a share estimated from scores, with its interval.

Above a threshold t stand a share P(t) of the positives and U(t) of the unlabelled rows, and with a
share a of hidden positives U = a P + (1 - a) N. So a is at most U(t) / P(t) for every t (Blanchard,
Lee & Scott 2010), and it is equal where no negative stands that high. The threshold is the one
whose upper confidence bound is least (as in Garg, Wu, Smola, Balakrishnan & Lipton 2021), which
weighs the negatives that still stand above it against how few rows do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from toprank._arrays import IntArray
from toprank._numerics import FloatArray
from toprank.inference.result import Interval
from toprank.inference.shares import check_level
from toprank.metrics.hidden import OpenLabels, count_positives

#: Known positives above the highest threshold that is looked at.
_FEWEST = 10
#: Known positives above the best threshold from which the lower end is more than zero.
_ENOUGH = 60
#: Confidence level of the upper bounds that the threshold is chosen by.
_CHOSEN_AT = 0.95
#: Steps of the search for the ends of a ratio; halves of an interval of 60 on the log scale.
_HALVINGS = 60
ESTIMAND = "the share of positives among the unlabelled rows; labelled positives at random"


def hidden_share(
    y: ArrayLike,
    s: ArrayLike,
    *,
    unlabelled: object = None,
    level: float = 0.95,
    pos_label: object = None,
) -> Interval:
    r"""Estimate the share of hidden positives among unlabelled rows, with its interval.

    The smallest ratio of the shares of unlabelled rows and of labelled positives that score at
    least t, over thresholds t above which 10, 14, 20, ... labelled positives stand:

    .. math:: \hat\alpha = \frac{U(t)}{P(t)}, \qquad \alpha \le \frac{U(t)}{P(t)}
        \text{ for every } t.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels; some rows are known to be positive.
    s : array-like of shape (n,)
        Scores of rows that had no part in the fit: held out or out of fold. A model puts the
        labelled positives that it has learned from too high, and the share would come out too low.
    unlabelled : value or array-like of bool of shape (n,), optional
        The label of rows whose label is not known (NaN for missing labels), or which rows those
        are. By default all rows that are not positive.
    level : float, default=0.95
        Confidence level.
    pos_label : label, optional
        The positive class; by default the larger label.

    Returns
    -------
    Interval
        ``.estimate .low .high``; prints as a sentence.

    Notes
    -----
    Assumes that labelled positives are a random part of all positives. The upper end needs no
    more: score intervals of each ratio (Koopman 1984), corrected for their number, and the
    least of their upper ends. The lower end also needs some rows at the top to be nearly all
    positives; it is zero where the ratio is still falling when labelled positives run out. What no
    scores can tell is whether positives are hidden that resemble negatives.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.inference import hidden_share
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(5000) < 0.2
    >>> s = rng.normal(size=5000) + 2.5 * y
    >>> labelled = y & (rng.random(5000) < 0.4)  # 0.13 of the others are positive
    >>> print(hidden_share(labelled, s))
    hidden share = 0.1331, 95% interval 0.07382 to 0.1769 (smallest ratio of rates above a score)
    """
    check_level(level)
    return share_of_rows(OpenLabels.read(y, s, unlabelled, pos_label), level)


def share_of_rows(rows: OpenLabels, level: float) -> Interval:
    """`hidden_share` of rows that are read."""
    n, m = rows.n_positive, int(np.count_nonzero(rows.unlabelled))
    if n < _FEWEST:
        raise ValueError(
            f"{count_positives(n)}, too few to estimate the share of hidden ones: "
            f"expected at least {_FEWEST}. Give the share itself (hidden), or the least and the "
            "largest that it may be."
        )
    known = np.sort(rows.scores[rows.positive])
    others = np.sort(rows.scores[rows.unlabelled])
    steps = 1 + int(2 * np.log2(n / _FEWEST))
    counts = np.unique(np.round(np.geomspace(_FEWEST, n, steps)).astype(np.intp))
    cuts = np.unique(known[n - counts])
    above = n - np.searchsorted(known, cuts)
    found = m - np.searchsorted(others, cuts)
    usual, z = (float(-ndtri((1 - one) / (2 * len(cuts)))) for one in (_CHOSEN_AT, level))
    best = int(np.argmin(_ratio_ends(found, m, above, n, usual)[1]))  # at any level the same
    lows, highs = _ratio_ends(found, m, above, n, z)
    estimate = min(1.0, float(found[best] / m) / float(above[best] / n))
    high = min(1.0, float(np.min(highs)))
    low, note = 0.0, ""
    if above[best] >= _ENOUGH:
        low = float(np.min(lows[above >= max(_FEWEST, above[best] / 8)]))
    else:
        note = (
            f"The ratio is still falling at the {above[best]} highest labelled positives: the "
            "share may be anything up to the upper end."
        )
    return Interval(
        "hidden share",
        estimate,
        min(low, estimate),
        max(high, estimate),
        float("nan"),
        level,
        "smallest ratio of rates above a score",
        ESTIMAND,
        note=note,
    )


def _ratio_ends(
    hits: IntArray, trials: int, base_hits: IntArray, base_trials: int, z: float
) -> tuple[FloatArray, FloatArray]:
    """Ends of the score interval of (hits / trials) / (base_hits / base_trials) (Koopman 1984).

    The ratios that differ from the one seen by at most z standard errors, with the shares that
    are most likely under the ratio.
    """
    a, b = np.asarray(hits, dtype=np.float64), np.asarray(base_hits, dtype=np.float64)

    def within(log_ratio: FloatArray) -> FloatArray:
        ratio = np.exp(log_ratio)
        slope = trials * ratio + a + base_trials + b * ratio
        both = (trials + base_trials) * ratio
        root = np.sqrt(np.maximum(slope**2 - 4 * both * (a + b), 0.0))
        base = 2 * (a + b) / (slope + root)
        share = np.minimum(ratio * base, 1.0)
        spread = share * (1 - share) / trials + ratio**2 * base * (1 - base) / base_trials
        gap = np.abs(a / trials - ratio * b / base_trials)
        return np.asarray(gap <= z * np.sqrt(np.maximum(spread, 0.0)))

    centre = np.log(np.maximum(a, 0.5) / trials) - np.log(b / base_trials)
    ends = []
    for side in (-1, 1):
        near, far = centre, centre + side * 60.0
        for _ in range(_HALVINGS):
            middle = (near + far) / 2
            inside = within(middle)
            near, far = np.where(inside, middle, near), np.where(inside, far, middle)
        ends.append(np.exp(near))
    return np.where(a > 0, ends[0], 0.0), ends[1]
