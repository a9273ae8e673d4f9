r"""Are two shares equal? An exact unconditional test for two samples of the same size.

Fisher's test holds its level for every total of hits, and so rejects equal shares far less often
than it may. Boschloo's test (1970) takes Fisher's p-value as its statistic, and asks how often it
would be as small over all outcomes of two binomial numbers with a common probability pi:

.. math:: \max_\pi P_\pi(p_{Fisher}(X, Y) \le p_{Fisher}(x, y))

which is never larger than Fisher's p-value itself, and still exact.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, ndtr, ndtri
from scipy.stats import binom, hypergeom

#: Up to so many trials in each sample the test is Boschloo's; for more, Fisher's mid-p-value, which
#: hardly differs.
MOST_TRIALS = 300
#: Common probabilities over which the maximum is taken; one half and less, by symmetry.
_PROBABILITIES = np.concatenate([np.linspace(0.0005, 0.02, 20), np.linspace(0.025, 0.5, 60)])


def equal_shares_p_value(hits_a: int, hits_b: int, trials: int) -> float:
    """Two-sided p-value of equal shares, for hits among `trials` each.

    Parameters
    ----------
    hits_a, hits_b : int
        Hits of each sample.
    trials : int
        Size of each sample.

    Examples
    --------
    >>> from toprank.inference.equal_shares import equal_shares_p_value
    >>> round(equal_shares_p_value(8, 2, 12), 4)  # Fisher's is 0.0361
    0.0169
    """
    if hits_a == hits_b:
        return 1.0
    total, low = hits_a + hits_b, min(hits_a, hits_b)
    law = hypergeom(2 * trials, total, trials)
    tail = float(law.cdf(low))
    if trials > MOST_TRIALS:
        return min(1.0, 2 * (tail - float(law.pmf(low)) / 2))
    fisher = min(1.0, 2 * tail)
    if fisher >= 1:
        return 1.0
    return min(fisher, _largest_chance(trials, fisher))


def equal_shares_power(share_a: float, share_b: float, trials: int, risk: float) -> float:
    """Chance that `equal_shares_p_value` is at most `risk`, for samples with these shares.

    Exact where the test is Boschloo's; beyond, that of the normal limit.

    Examples
    --------
    >>> from toprank.inference.equal_shares import equal_shares_power
    >>> round(equal_shares_power(0.7, 0.4, 50, 0.05), 3)
    0.855
    >>> bool(equal_shares_power(0.5, 0.5, 50, 0.05) <= 0.05)
    True
    """
    if trials > MOST_TRIALS:
        return _limiting_power(share_a, share_b, trials, risk)
    limit = _critical_value(trials, risk)
    first = _first_as_extreme(trials, limit)
    a, b = (binom.pmf(np.arange(trials + 1), trials, share) for share in (share_a, share_b))
    return float(sum(np.dot(low, _and_more(high)[first]) for low, high in ((a, b), (b, a))))


def _limiting_power(share_a: float, share_b: float, trials: int, risk: float) -> float:
    """The test knows the variance of equal shares; the difference varies by that of its own."""
    middle, gap = (share_a + share_b) / 2, abs(share_a - share_b)
    supposed = np.sqrt(2 * middle * (1 - middle))
    own = np.sqrt(share_a * (1 - share_a) + share_b * (1 - share_b))
    if own == 0:
        return float(gap > 0)
    reach, effect = -float(ndtri(risk / 2)) * supposed / own, gap * np.sqrt(trials) / own
    return float(ndtr(effect - reach) + ndtr(-effect - reach))


def _largest_chance(trials: int, fisher: float) -> float:
    """The chance of a Fisher p-value as small, for the common probability that makes it largest."""
    chance, reached = _binomial_table(trials)
    # outcomes with i hits on one side and at least first[i] on the other, and the same exchanged
    found = 2 * np.sum(chance * reached[:, _first_as_extreme(trials, fisher)], axis=1)
    return float(np.max(found))


def _first_as_extreme(trials: int, fisher: float) -> NDArray[np.intp]:
    """For each number i of hits: the smallest j > i whose Fisher p-value is at most this one."""
    extreme = _fisher_table(trials) <= fisher * (1 + 1e-9)
    return np.where(extreme.any(axis=1), extreme.argmax(axis=1), trials + 1)


@lru_cache(maxsize=256)
def _critical_value(trials: int, risk: float) -> float:
    """The largest Fisher p-value at which the test rejects; -1 if there is none."""
    values = np.unique(_fisher_table(trials)).tolist()
    kept = bisect_right(values, risk, key=lambda value: _largest_chance(trials, value))
    return float(values[kept - 1]) if kept else -1.0


def _and_more(chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The chance of i hits and more, from that of i hits; none beyond all trials."""
    reached = np.cumsum(chance[..., ::-1], axis=-1)[..., ::-1]
    return np.concatenate([reached, np.zeros((*chance.shape[:-1], 1))], axis=-1)


@lru_cache(maxsize=16)
def _binomial_table(trials: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For each common probability: the chance of i hits, and of i hits and more."""
    chance = binom.pmf(np.arange(trials + 1), trials, _PROBABILITIES[:, None])
    return chance, _and_more(chance)


@lru_cache(maxsize=16)
def _fisher_table(trials: int) -> NDArray[np.float64]:
    """Fisher's two-sided p-value of i and j > i hits among so many trials each; otherwise 2."""
    counts = np.arange(trials + 1)
    logs = -betaln(counts + 1, trials - counts + 1)  # log of the binomial coefficients, plus a term
    table = np.full((trials + 1, trials + 1), 2.0)
    for total in range(1, 2 * trials):
        i = np.arange(max(0, total - trials), min(trials, total) + 1)
        weight = logs[i] + logs[total - i]
        chance = np.exp(weight - np.max(weight))
        tail = np.cumsum(chance) / np.sum(chance)
        lower = i[2 * i < total]
        table[lower, total - lower] = np.minimum(1.0, 2 * tail[: len(lower)])
    return table
