"""How much each row moves the average precision and the p-norm risk, by leaving out one at a time.

The values with one row left out give the bias too (Quenouille); prefix sums find them all in linear
time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlog1py

from toprank._arrays import IntArray
from toprank._numerics import FloatArray, log_of
from toprank.metrics.expansion import LEFT_OUT, Expansion, PairShare, TopRows, disjoint_pairs
from toprank.metrics.order import RankedList
from toprank.metrics.push import pnorm_risk_of

_EDGE = 1e-12


#: Rows of a class of which one at a time can be left out.
_MOST_LEFT_OUT = 1e8


#: Of rows that stand for others no less than this part of an average one is left out at a time.
_LEAST_LEFT_OUT = 1e-4


def quenouille_bias(value: ArrayLike, count: FloatArray, without: FloatArray) -> float:
    """Quenouille's estimate of the bias that one class causes."""
    units = np.sum(count, axis=-1)
    mean = np.sum(np.where(count > 0, count * without, 0.0), axis=-1) / units
    return (units - 1) * (mean - value)


def without_one(
    ranked: RankedList, statistic: Callable[[FloatArray, FloatArray], FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """phi+ and phi- of any statistic of the tie weights, by leaving out one row at a time."""
    high, low = ranked.positive, ranked.negative

    def left_out(taken: FloatArray, takes_high: bool) -> FloatArray:
        holding = np.flatnonzero(taken > 0)
        less = -np.eye(len(taken))[holding]
        kept = 0 * less
        rest = (high + less, low + kept) if takes_high else (high + kept, low + less)
        result = np.zeros(len(taken))
        result[holding] = -(np.sum(taken) - 1) * statistic(*rest)
        return result

    return left_out(high, True), left_out(low, False)


def average_precision_expansion(ranked: RankedList) -> Expansion:
    """Average precision at the sample's share of positives."""
    prevalence = ranked.positives / ranked.total

    def left_out(high: FloatArray, low: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        return average_precision_left_out(high, low, prevalence)

    share, bias, on_positive, on_negative = _jackknife(ranked, left_out)

    def corrected(high: FloatArray, low: FloatArray) -> FloatArray:
        values, without_high, without_low = left_out(high, low)
        return (
            values
            - quenouille_bias(values, high, without_high)
            - quenouille_bias(values, low, without_low)
        )

    return Expansion(
        share,
        on_positive,
        on_negative,
        disjoint_pairs(ranked),
        bias=bias,
        corrected=corrected,
        method=LEFT_OUT,
        pairs=average_precision_pairs(share - bias / 2, prevalence),
        top=_top_rows(ranked, share),
    )


def average_precision_pairs(share: float, prevalence: float) -> PairShare:
    """What a score interval asks of an average precision.

    One positive in the wrong place moves it more than any law of the scores tells. A small variance
    is believed soonest near the share of positives, where scores are random: few positives of a
    ranker that finds some may by chance all lie low, and then show little of the spread that one at
    the top would bring; those of random scores have none to show.
    """
    return PairShare(
        wide=True,
        errors_to_trust=float(np.clip(share / prevalence - 1, 0.125, 4.0)),
        hits_to_trust=None,
        scale=0.7,
        freedom_of_model=0.0,
        freedom_over_groups=None,
        bias_taken=0.5,
        shortfall=3.0,
    )


def _top_rows(ranked: RankedList, share: float) -> TopRows:
    """What one more row above all others would do to the average precision."""
    prevalence = ranked.positives / ranked.total
    high, low = (ranked.positives, ranked.negatives) if ranked.rows is None else ranked.rows
    found, passed = ranked.found[1:] / ranked.positives, ranked.passed[1:] / ranked.negatives
    holding = ranked.positive > 0
    of_each, found, passed = ranked.positive[holding], found[holding], passed[holding]
    lower, upper = (
        float(np.dot(of_each, right / (right + (1 - prevalence) * wrong))) / ranked.positives
        for right, wrong in (
            (prevalence * found, (1 + low * passed) / (1 + low)),
            (prevalence * (1 + high * found) / (1 + high), passed),
        )
    )
    upper = (1 + high * upper) / (1 + high)
    least, least_seen = least_average_precision(prevalence, high)
    first = high * float(of_each[0]) / ranked.positives
    tied = max(0.0, first - 1) / max(1.0, high - 1)
    error = max(0.0, share - lower)
    tied_error = tied * max(error, share * (1 - prevalence) / high)
    return TopRows(error, max(0.0, upper - share), least, least_seen, tied_error)


def least_average_precision(prevalence: float, positives: float) -> tuple[float, float]:
    r"""The average precision of a list in reverse: of an endless one, and of one of so many rows.

    Boyd et al. (2012): :math:`1 + (1 - \pi) \log(1 - \pi) / \pi`, the mean of
    :math:`\pi t / (\pi t + 1 - \pi)` over recalls t from 0 to 1. A finite list has the mean over
    the recalls i / m, which is larger by at most :math:`\pi / 2m`, since the curve is concave.
    """
    if prevalence < 1e-4:  # the series: the two terms above nearly cancel
        least = prevalence / 2 + prevalence**2 / 6 + prevalence**3 / 12
    else:
        least = 1 + float(xlog1py(1 - prevalence, -prevalence)) / prevalence
    return least, least + prevalence / (2 * positives)


def average_precision_left_out(
    high: FloatArray, low: FloatArray, prevalence: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Average precision, and the same without one positive, or one negative, of each tie.

    The share of positives in the population stays `prevalence` whichever row is left out. Ties
    run along the last axis.
    """
    found, passed = np.cumsum(high, axis=-1), np.cumsum(low, axis=-1)
    n_high, n_low = found[..., -1:], passed[..., -1:]
    # of a single row nothing is left, and the spread of such a class is infinite anyway
    fewer_high, fewer_low = (np.where(n > 1, n - 1, 1.0) for n in (n_high, n_low))

    def precision(
        above: FloatArray, of_high: FloatArray, wrong: FloatArray, of_low: FloatArray
    ) -> FloatArray:
        right = prevalence * np.maximum(above, 0.0) / of_high
        noise = (1 - prevalence) * np.maximum(wrong, 0.0) / of_low
        share = np.zeros_like(right + noise)
        return np.asarray(np.divide(right, right + noise, out=share, where=right > 0))

    whole = high * precision(found, n_high, passed, n_low)
    value = np.sum(whole, axis=-1) / n_high[..., 0]
    kept = high * precision(found, fewer_high, passed, n_low)
    moved = precision(found - 1, fewer_high, passed, n_low)
    rest = _before(kept) + _after(high * moved) + np.maximum(high - 1, 0.0) * moved
    without_high = rest / fewer_high
    kept = high * precision(found, n_high, passed, fewer_low)
    moved = high * precision(found, n_high, passed - 1, fewer_low)
    without_low = (_before(kept) + _after(moved) + moved) / n_high
    return value, without_high, without_low


def pnorm_risk_expansion(
    ranked: RankedList,
    p: float,
    normalize: bool = False,
    margin: float = 0.0,
    log: bool = False,
) -> Expansion:
    """The normalised p-norm risk: the p-th root of the mean p-th power of the heights."""
    pnorm_risk_of(ranked, p, normalize, margin, log)  # refuses what is no power and no margin
    units, of_high, of_low = _in_units(ranked)
    heights = units.heights_within(margin)
    reaching = np.searchsorted(-ranked.scores, -(ranked.scores - margin), side="right")
    share, without_high, without_low = _pnorm_left_out(units, heights, reaching, p)
    n_high, n_low = units.positives, units.negatives

    def expanded(
        values: Callable[[FloatArray], Any],
    ) -> tuple[float, FloatArray, FloatArray]:
        whole = float(values(np.array(share)))
        high, low = values(without_high), values(without_low)
        bias = quenouille_bias(whole, units.positive, high) / of_high
        bias += quenouille_bias(whole, units.negative, low) / of_low
        return whole - float(bias), -(n_high - 1) * high, -(n_low - 1) * low

    centre, on_positive, on_negative = expanded(lambda u: u)
    on_logit = expanded(lambda u: _logit(np.clip(u, _EDGE, 1 - _EDGE))) if 0 < share < 1 else None
    return Expansion(
        share,
        on_positive,
        on_negative,
        disjoint_pairs(ranked),
        _pnorm_report(ranked, p, normalize, log),
        share - centre,
        on_logit,
        method=LEFT_OUT,
        share_settings={"normalize": True, "log": False},
        power=p,
        misplaced=_misplaced(units, heights, p),
    )


def _misplaced(ranked: RankedList, heights: FloatArray, p: float) -> float:
    """The mean p-th power of the height of a negative that is put where any of the positives is.

    Among positives without ties that is 1 / (p + 1); ties with them count as errors, and add to it.
    """
    shares = np.maximum(heights - 0.5, 0.0) / ranked.positives  # half of the place of a single one
    tied = float(np.sum(ranked.positive * shares**p)) / ranked.positives
    return max(1 / (p + 1), tied)


def _pnorm_report(
    ranked: RankedList, p: float, normalize: bool, log: bool
) -> Callable[[float], float]:
    """From the normalised root to the form that was asked for."""

    def report(u: float) -> float:
        with np.errstate(divide="ignore", over="ignore"):
            value = np.log(u)
            if not normalize:
                value = np.log(ranked.negatives) + p * (value + np.log(ranked.positives))
            return float(value if log else np.exp(value))

    return report


def _pnorm_left_out(
    ranked: RankedList, heights: FloatArray, reaching: IntArray, p: float
) -> tuple[float, FloatArray, FloatArray]:
    """The normalised risk, and the same without one positive, or one negative, of each tie.

    Sums of powers stay in logarithms, and are added up from both ends, so that no p overflows and
    none of the smaller powers is lost to the largest.
    """
    n_high, n_low = ranked.positives, ranked.negatives
    log_heights = log_of(heights)
    powers = log_of(ranked.negative) + p * log_heights
    lower = log_of(ranked.negative) + p * log_of(np.maximum(heights - 1, 0.0))
    nothing = np.array([-np.inf])
    down_to, lower_to = (
        np.concatenate((nothing, np.logaddexp.accumulate(part))) for part in (powers, lower)
    )
    from_here = np.concatenate((np.logaddexp.accumulate(powers[::-1])[::-1], nothing))

    def root(log_sum: FloatArray, of_low: float, of_high: float) -> FloatArray:
        return np.exp((log_sum - np.log(of_low)) / p) / of_high

    value = float(root(down_to[-1], n_low, n_high))
    # a positive counts in the heights of the first `reaching` ties
    without_high = np.logaddexp(lower_to[reaching], from_here[reaching])
    others = np.logaddexp(down_to[:-1], from_here[1:])
    own = log_of(np.maximum(ranked.negative - 1, 0.0)) + p * log_heights
    return (
        value,
        root(without_high, n_low, max(n_high - 1, _EDGE)),
        root(np.logaddexp(others, own), max(n_low - 1, _EDGE), n_high),
    )


def _jackknife(
    ranked: RankedList, left_out: Callable[..., tuple[FloatArray | float, FloatArray, FloatArray]]
) -> tuple[float, float, FloatArray, FloatArray]:
    """Value, bias, phi+ and phi- from the values with one row left out."""
    units, of_high, of_low = _in_units(ranked)
    value, without_high, without_low = left_out(units.positive, units.negative)
    bias = quenouille_bias(value, units.positive, without_high) / of_high
    bias += quenouille_bias(value, units.negative, without_low) / of_low
    return (
        float(np.clip(value, 0, 1)),
        float(bias),
        -(units.positives - 1) * without_high,
        -(units.negatives - 1) * without_low,
    )


def _in_units(ranked: RankedList) -> tuple[RankedList, float, float]:
    """The list in units that can be left out one by one, and the positives and negatives in a unit.

    A unit is a row, but for classes of more than `_MOST_LEFT_OUT`, where the change by a single
    row is lost to rounding. What a unit adds, times their number, is what a row adds, times theirs;
    the bias falls with the number. Where rows stand for others a unit is the lightest of them: no
    row is lighter than what is left out, and equal weights are no weights.
    """
    rows = (None, None) if ranked.rows is None else ranked.rows
    high, in_high = _rows_in_unit(ranked.positive, ranked.positives, rows[0])
    low, in_low = _rows_in_unit(ranked.negative, ranked.negatives, rows[1])
    if high == low == in_high == in_low == 1.0:
        return ranked, 1.0, 1.0
    positive, found = ranked.positive / high, ranked.found / high
    negative, passed = ranked.negative / low, ranked.passed / low
    return RankedList(ranked.scores, positive, negative, found, passed, False), in_high, in_low


def _rows_in_unit(ties: FloatArray, total: float, rows: float | None) -> tuple[float, float]:
    """Weight of a unit of one class, and how many independent rows it is worth."""
    if rows is None:
        size = max(1.0, total / _MOST_LEFT_OUT)
        return size, size
    lightest = float(np.min(ties, where=ties > 0, initial=np.inf)) * rows / total
    size = max(float(np.clip(lightest, _LEAST_LEFT_OUT, 1.0)), rows / _MOST_LEFT_OUT)
    return size * total / rows, size


def _before(values: FloatArray) -> FloatArray:
    """Sum of the entries before each, along the last axis."""
    return np.cumsum(values, axis=-1) - values


def _after(values: FloatArray) -> FloatArray:
    """Sum of the entries after each, along the last axis."""
    return np.cumsum(values[..., ::-1], axis=-1)[..., ::-1] - values


def _logit(u: FloatArray | float) -> FloatArray | float:
    """log(u / (1 - u))."""
    return np.log(u) - np.log1p(-u)
