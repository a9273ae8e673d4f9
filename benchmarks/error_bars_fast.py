"""Intervals of the average precision of many samples at once: independent rows, no weights.

What `interval("average_precision", y, s)` finds, in a tenth of the time: the values without each
row are found for all samples together, the ends one by one by `score_interval` itself. The first
samples are checked against `interval`, and a difference is an error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toprank.inference import interval
from toprank.inference.influence import FEW_ERRORS
from toprank.inference.sample import VarianceEstimate
from toprank.inference.score_interval import count_errors, note_on_missed_hits, score_interval
from toprank.metrics.expansion import TopRows
from toprank.metrics.left_out_expansions import (
    average_precision_left_out,
    average_precision_pairs,
    least_average_precision,
)
from toprank.simulate import ScoreSetting

Array = NDArray[np.float64]
#: Entries of the arrays of one step.
_ENTRIES = 1 << 20
_CHECKED = 3


class Samples(NamedTuple):
    """Average precisions of samples, their errors, the ends of their intervals, and notes."""

    value: Array
    error: Array
    low: Array
    high: Array
    noted: Array


def is_fast(metric: str, setting: ScoreSetting) -> bool:
    """Whether the cells of a setting can be measured here."""
    return metric == "average_precision" and setting.groups is None and not setting.weighted


def average_precision_samples(
    setting: ScoreSetting, draws: int, rng: np.random.Generator, level: float = 0.95
) -> Samples:
    """Draw samples from a setting, with the interval of each."""
    step = max(1, _ENTRIES // setting.rows)
    parts = [
        _measure(setting, min(step, draws - done), rng, level, check=done == 0)
        for done in range(0, draws, step)
    ]
    return Samples(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _measure(
    setting: ScoreSetting, draws: int, rng: np.random.Generator, level: float, check: bool
) -> Samples:
    drawn = [setting.draw(rng)[:2] for _ in range(draws)]
    y, scores = drawn[0][0], np.array([s for _, s in drawn])
    high, low = _by_tie(y, scores)
    found = _expand(high, low)
    units = (float(np.sum(high[0])), float(np.sum(low[0])))
    ends = np.array([_ends(found, number, units, level) for number in range(draws)])
    result = Samples(found.value, np.sqrt(found.variance), *ends.T)
    for number in range(min(_CHECKED, draws) if check else 0):
        known = interval("average_precision", y, scores[number], level=level)
        mine = [column[number] for column in (result.low, result.high)]
        assert np.allclose(mine, [known.low, known.high], rtol=1e-9, atol=1e-12), (setting, number)
        assert bool(known.note) == bool(result.noted[number]), (setting, number, known.note)
    return result


def _by_tie(y: NDArray[np.bool_], scores: Array) -> tuple[Array, Array]:
    """Positives and negatives of each score, from the highest: one per place, or per level."""
    levels = np.unique(scores[0])[::-1]
    if len(levels) < scores.shape[1]:
        levels = np.unique(scores)[::-1]
        ties = [scores == level for level in levels]
        high, low = (np.stack([np.sum(t & m, 1) for t in ties], 1) for m in (y, ~y))
        return high.astype(float), low.astype(float)
    high = y[np.argsort(-scores, axis=1)].astype(float)
    return high, 1 - high


class _Expanded(NamedTuple):
    """What each sample shows: see `toprank.metrics.expansion.Expansion`."""

    value: Array
    centre: Array
    variance: Array
    freedom: Array
    error: Array
    hit: Array
    tied_error: Array


def _expand(high: Array, low: Array) -> _Expanded:
    positives, negatives = np.sum(high[0]), np.sum(low[0])
    prevalence = positives / (positives + negatives)
    value, *without = average_precision_left_out(high, low, prevalence)
    bias, variance, doubt = np.zeros((3, len(value)))
    for count, units, left_out in zip((high, low), (positives, negatives), without, strict=True):
        mean = np.sum(count * left_out, axis=1) / units
        apart = np.where(count > 0, left_out - mean[:, None], 0.0) * (units - 1) / units
        part = np.sum(count * apart**2, axis=1) * units / (units - 1)
        bias += (units - 1) * (mean - value)
        variance += part
        doubt += 2 * part**2 / (units - 1)
    variance[variance <= 1e-24] = 0.0  # what rounding leaves is no small spread
    freedom = np.full(len(value), positives + negatives - 2)
    np.divide(2 * variance**2, doubt, out=freedom, where=doubt > 0)
    found, passed = np.cumsum(high, axis=1), np.cumsum(low, axis=1)
    lower, upper = (
        np.sum(high * right / (right + wrong), axis=1) / positives
        for right, wrong in (
            (prevalence * found / positives, (1 - prevalence) * (1 + passed) / (1 + negatives)),
            (prevalence * (1 + found) / (1 + positives), (1 - prevalence) * passed / negatives),
        )
    )
    upper = (1 + positives * upper) / (1 + positives)
    inner = (value > 0) & (value < 1)
    centre = np.where(inner, np.clip(value - bias / 2, value / 2, (1 + value) / 2), value)
    first = np.take_along_axis(high, np.argmax(high > 0, axis=1)[:, None], axis=1)[:, 0]
    tied = (first - 1) / (positives - 1)
    error = value - lower
    tied_error = tied * np.maximum(error, value * (1 - prevalence) / positives)
    freedom = np.maximum(1.0, freedom)
    return _Expanded(value, centre, variance, freedom, error, upper - value, tied_error)


def _ends(
    found: _Expanded, number: int, units: tuple[float, float], level: float
) -> tuple[float, float, float]:
    """Ends of one interval, and whether it has a note."""
    centre, variance = float(found.centre[number]), float(found.variance[number])
    spread = VarianceEstimate(variance, float(found.freedom[number]))
    pairs = average_precision_pairs(centre, units[0] / sum(units))
    least = least_average_precision(units[0] / sum(units), units[0])
    of_rows = (float(column[number]) for column in (found.error, found.hit))
    top = TopRows(*of_rows, *least, float(found.tied_error[number]))
    low, high = score_interval(centre, spread, pairs, units, level, top=top)
    value = float(found.value[number])
    low, high = min(low, value), max(high, value)
    few = 0 < count_errors(centre, variance) < FEW_ERRORS or variance == 0
    return low, high, float(few or bool(note_on_missed_hits(value, high, top, units[0])))
