"""The end of an interval at more errors, where a few rows that are rarely drawn make most of them.

A negative far above its place, or a row whose score says nothing of its label, adds more to a risk
than many rows that are nearly right, and a sample may hold none or one of the few that there are.
The spread of the sample does not show what it has not met. Fay & Feuer (1997) have an interval for
sums of rare events of unequal weights: a gamma law with the mean and the variance of the sample and
of one more event.
"""

from __future__ import annotations

import numpy as np
from scipy.special import chdtri

#: A risk below this is made by few rows, of which the spread of the sample tells little.
_RARE = 0.2
#: What a row that the sample has missed weighs, over the mean of rows that are put anywhere among
#: the others: of long tails, and among ties. By simulation: t scores; scores of five levels with
#: the classes 1 to 2.5 apart, p from 4 to 8.
_BEYOND, _AMONG_TIES = 2.0, 1.5


def most_errors(mean: float, variance: float, more: float, level: float) -> float:
    """The largest mean of errors that is possible, if one row more would add `more` to it."""
    mean, variance = mean + more, variance + more**2
    if not variance > 0:
        return mean
    scale = variance / (2 * mean)
    return min(1.0, scale * float(chdtri(2 * mean * (mean / variance), (1 - level) / 2)))


def allow_for_rare_rows(
    ends: tuple[float, float],
    share: float,
    error: float,
    power: float,
    rows: float,
    level: float,
    misplaced: float = 0.0,
) -> tuple[float, float]:
    """Ends of an interval for the root of a mean of powers of heights, with rare rows allowed for.

    Parameters
    ----------
    ends : tuple of two floats
        The interval by the spread of the sample.
    share, error : float
        The root, and its standard error.
    power : float
        Of the heights.
    rows : float
        Independent rows that the mean is over.
    level : float
        Confidence level.
    misplaced : float, default=0.0
        The mean power of a row that is put where any of the others is: more than 1 / (power + 1)
        where these are tied.

    Notes
    -----
    A row that is put anywhere among the others has a mean power of 1 / (power + 1); twice that is
    allowed for, since rows with long tails are put beyond them, and more where so many of the
    others are tied that a row among them is beyond most. While the root is small and few
    rows make it, the interval by the spread is by turns too short and without bounds, and is left
    for this one; else the longer of both is taken.
    """
    mean = share**power
    weight = max(_BEYOND / (power + 1), _AMONG_TIES * misplaced)
    more = min(1.0, weight) * (1 - mean) / rows
    variance = (power * share ** (power - 1) * error) ** 2
    rare = most_errors(mean, variance, more, level) ** (1 / power)
    events = (share / (power * error)) ** 2 if error > 0 else 0.0
    trust = float(np.clip(max((events - 1) / 2, share / _RARE), 0.0, 1.0))
    return ends[0], max(share, rare + trust * (max(ends[1], rare) - rare))
