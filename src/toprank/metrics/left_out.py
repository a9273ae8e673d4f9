"""Expansions by leaving out one row at a time: of the average precision and the p-norm risk.

Leaving out also gives the bias of these metrics, and prefix sums do it in linear time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toprank._numerics import FloatArray, log_of
from toprank.metrics.expansion import LEFT_OUT, Expansion, disjoint_pairs, quenouille_bias
from toprank.metrics.order import RankedList
from toprank.metrics.push import pnorm_risk_of

_EDGE = 1e-12


def average_precision_expansion(ranked: RankedList) -> Expansion:
    """Average precision at the sample's share of positives."""
    prevalence = ranked.positives / ranked.total

    def left_out(high: FloatArray, low: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        return _average_precision_left_out(high, low, prevalence)

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
    )


def _average_precision_left_out(
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
    heights = ranked.heights_within(margin)
    reaching = np.searchsorted(-ranked.scores, -(ranked.scores - margin), side="right")
    share, without_high, without_low = _pnorm_left_out(ranked, heights, reaching, p)
    n_high, n_low = ranked.positives, ranked.negatives

    def expanded(values: Callable[[Any], Any]) -> tuple[float, FloatArray, FloatArray]:
        whole = float(values(np.array(share)))
        high, low = values(without_high), values(without_low)
        bias = quenouille_bias(whole, ranked.positive, high) + quenouille_bias(
            whole, ranked.negative, low
        )
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
    )


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
    ranked: RankedList, heights: FloatArray, reaching: Any, p: float
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

    def root(log_sum: Any, of_low: float, of_high: float) -> Any:
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
    ranked: RankedList, left_out: Callable[..., tuple[Any, FloatArray, FloatArray]]
) -> tuple[float, float, FloatArray, FloatArray]:
    """Value, bias, phi+ and phi- from the values with one row left out."""
    value, without_high, without_low = left_out(ranked.positive, ranked.negative)
    bias = quenouille_bias(value, ranked.positive, without_high) + quenouille_bias(
        value, ranked.negative, without_low
    )
    return (
        float(np.clip(value, 0, 1)),
        float(bias),
        -(ranked.positives - 1) * without_high,
        -(ranked.negatives - 1) * without_low,
    )


def _before(values: FloatArray) -> FloatArray:
    """Sum of the entries before each, along the last axis."""
    return np.cumsum(values, axis=-1) - values


def _after(values: FloatArray) -> FloatArray:
    """Sum of the entries after each, along the last axis."""
    return np.cumsum(values[..., ::-1], axis=-1)[..., ::-1] - values


def _logit(u: Any) -> Any:
    """log(u / (1 - u))."""
    return np.log(u) - np.log1p(-u)
