"""Can the probabilities at the top of the list be believed? A table, band by band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.metrics.lists import Lists


@dataclass(frozen=True)
class CalibrationBand:
    """Consecutive places of a ranked list: what was predicted there and what was seen.

    Attributes
    ----------
    start, stop : float
        The places above the band, and the last one in it, in units of weight.
    positives : float
        Weight of the positives in the band; within a tie at its edge, the expected one.
    predicted : float
        Mean predicted probability.
    observed : float
        Share of positives.
    low, high : float
        Interval for that share (Clopper and Pearson).
    """

    start: float
    stop: float
    positives: float
    predicted: float
    observed: float
    low: float
    high: float

    @property
    def rows(self) -> float:
        """Weight of the rows in the band."""
        return self.stop - self.start

    @property
    def reliable(self) -> bool:
        """Whether the mean prediction lies within the interval for the observed share."""
        return self.low <= self.predicted <= self.high


@dataclass(frozen=True)
class CalibrationReport:
    """Predicted against observed shares of positives, from the top of the list downwards.

    Attributes
    ----------
    bands : tuple of CalibrationBand
        Bands of the list that do not overlap, the top one first.
    whole : CalibrationBand
        All rows as one band.
    brier_score : float
        Mean squared difference of probability and label, over all rows.
    level : float
        Confidence level of the intervals.
    """

    bands: tuple[CalibrationBand, ...]
    whole: CalibrationBand
    brier_score: float
    level: float

    @property
    def reliable(self) -> bool:
        """Whether every band's mean prediction lies within its interval."""
        return all(band.reliable for band in self.bands)

    def __str__(self) -> str:
        interval = f"{100 * self.level:g}% interval"
        lines = [f"{'places':>17} {'rows':>9} {'predicted':>10} {'observed':>9} {interval:>18}"]
        lines += [_table_line(band, f"{band.start + 1:g}-{band.stop:g}") for band in self.bands]
        lines.append(_table_line(self.whole, "whole list"))
        lines.append(f"Brier score {self.brier_score:.4f}")
        return "\n".join(lines)


def calibration_report(
    positive: NDArray[np.bool_],
    scores: FloatArray,
    probability: FloatArray,
    weight: FloatArray | None,
    *,
    cuts: Sequence[int | float],
    level: float,
) -> CalibrationReport:
    """Compare probabilities with labels in the bands between cuts of the ranked list.

    Rows of equal score stand in random order, so a cut within a tie shares it out.
    """
    if not 0 < level < 1:
        raise ValueError(f"level={level!r} is not between 0 and 1.")
    alone = np.zeros(len(scores), dtype=np.intp)
    ranked = Lists.by_rows(positive, scores, weight, alone, probability)
    sizes = np.unique(np.concatenate([ranked.sizes(k) for k in cuts])) if len(cuts) else cuts
    if len(sizes) == 0:
        raise ValueError("cuts is empty; expected counts (int) or fractions (float) of the list.")
    edges = np.concatenate([[0.0], sizes])
    bands = tuple(_calibration_band(ranked, a, b, level) for a, b in pairwise(edges))
    return CalibrationReport(
        bands,
        _calibration_band(ranked, 0.0, float(ranked.totals[0]), level),
        float(np.average((probability - positive) ** 2, weights=weight)),
        level,
    )


def _calibration_band(ranked: Lists, start: float, stop: float, level: float) -> CalibrationBand:
    from toprank.inference.shares import clopper_pearson

    kept = ranked.kept(np.array([stop])) - ranked.kept(np.array([start]))
    rows = stop - start
    positives = float(kept @ ranked.positive)
    observed = min(1.0, max(0.0, positives / rows))
    low, high = (float(end) for end in clopper_pearson(observed, rows, level))
    predicted = float(kept @ ranked.amount) / rows
    return CalibrationBand(float(start), float(stop), positives, predicted, observed, low, high)


def _table_line(band: CalibrationBand, places: str) -> str:
    verdict = "" if band.reliable else "  too high" if band.predicted > band.high else "  too low"
    interval = f"[{band.low:.4f}, {band.high:.4f}]"
    return (
        f"{places:>17} {band.rows:>9g} {band.predicted:>10.4f} {band.observed:>9.4f} "
        f"{interval:>18}{verdict}"
    )
