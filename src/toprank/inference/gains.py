"""Metrics at k as sums of gains: what each row adds by standing where a ranker put it.

Two rankers share the labels and differ in the gains they give to rows. If they are equally good,
the labels say nothing about which of two rows stands higher with which ranker, so that over the
rows that they treat differently labels and gains pair up at random: that is the null distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import hypergeom
from scipy.stats import t as student

from toprank._numerics import FloatArray
from toprank.inference.cuts import kept
from toprank.inference.sample import Sample, sums_in
from toprank.inference.shares import newcombe
from toprank.metrics._inputs import check_amounts
from toprank.metrics.cuts import Lists
from toprank.metrics.discount import summed_discount
from toprank.metrics.order import RankedList

#: Up to so many moved rows their signs are flipped.
_FLIPPED = 2000
SUMS_OF_GAINS = (
    *("precision_at", "recall_at", "lift_at", "enrichment_factor"),
    *("top_is_positive", "ndcg_at", "value_at"),
)


@dataclass(frozen=True)
class Gains:
    """A metric as the sum over rows of worth times the difference of gains.

    Attributes
    ----------
    worth : ndarray of shape (n,)
        What a row is worth: 1 if positive, or its amount.
    shift : ndarray of shape (n,)
        Gain of the row with ranker a less its gain with ranker b, times its weight.
    scale : float
        What the sum is multiplied by.
    counted : bool
        Whether the worths are 0 and 1 and the shifts -1, 0 and 1, as many up as down.
    largest : float
        The largest difference there could be.
    trials : int
        Number of rows that gain anything.
    """

    worth: FloatArray
    shift: FloatArray
    scale: float
    counted: bool
    largest: float
    trials: int

    @classmethod
    def of(cls, name: str, a: Sample, b: Sample, settings: dict[str, Any]) -> Gains:
        """Gains of a metric under the scores of two samples of the same rows."""
        gain_a, scale = _gain(name, a, settings)
        gain_b, _ = _gain(name, b, settings)
        weight = np.ones(len(a.scores)) if a.weight is None else a.weight
        worth = _amount(a, settings) if name == "value_at" else a.positive.astype(np.float64)
        shift = weight * (gain_a - gain_b)
        whole = bool(np.all(np.isin(shift, (-1.0, 0.0, 1.0))) and np.sum(shift) == 0)
        counted = whole and a.groups is None and name not in ("value_at", "ndcg_at")
        largest = _largest(name, scale, float(np.dot(weight, gain_a)), worth, a)
        return cls(worth, shift, scale, counted, largest, int(np.count_nonzero(gain_a)))

    @property
    def difference(self) -> float:
        """Metric of a less metric of b."""
        return self.scale * float(np.dot(self.worth, self.shift))

    @property
    def moved(self) -> int:
        """Number of rows that the rankers treat differently."""
        return int(np.count_nonzero(self.shift))

    def newcombe(self, level: float) -> tuple[float, float]:
        """Interval of the difference, from the shares of positives among the rows that moved."""
        up, down = self.shift > 0, self.shift < 0
        trials = int(np.sum(up)), int(np.sum(down))
        hits = int(np.sum(self.worth[up])), int(np.sum(self.worth[down]))
        low, high = newcombe(hits, trials, level)
        return self.scale * trials[0] * low, self.scale * trials[0] * high

    def error(self, sample: Sample) -> float:
        """Standard error of the difference, if worths meet shifts at random."""
        pulls = self._pulls()
        if sample.groups is not None:
            pulls = sums_in(sample.groups, pulls)
        return self.scale * float(np.sqrt(np.sum(pulls**2)))

    def chance(self, sample: Sample, n_resamples: int, random_state: Any) -> float:
        """Two-sided p-value of equally good rankers, over the rows that moved.

        Counts take Fisher's exact test, other gains random signs; many rows, or groups, take the
        normal limit.
        """
        error = self.error(sample)
        if self.moved == 0 or error == 0:
            return 1.0
        if self.counted:
            hits_a = int(np.sum(self.worth[self.shift > 0]))
            hits = hits_a + int(np.sum(self.worth[self.shift < 0]))
            return _exact(hits_a, self.moved, hits, int(np.sum(self.shift > 0)))
        if sample.groups is None and self.moved <= _FLIPPED:
            return self._flipped(n_resamples, np.random.default_rng(random_state))
        freedom = max(1.0, self.moved - 1.0)
        return float(2 * student.sf(abs(self.difference) / error, freedom))

    def _flipped(self, n_resamples: int, rng: np.random.Generator) -> float:
        """p-value from random signs of the shifts: alike rankers may trade any row.

        Shifts sum to zero, so that any constant may be taken off the worths; with the median most
        rows drop out, and those that are left are few and far from it.
        """
        rows = np.flatnonzero(self.shift)
        pulls = self.shift[rows] * (self.worth[rows] - np.median(self.worth[rows]))
        pulls = pulls[pulls != 0]
        signs = rng.integers(0, 2, (n_resamples, len(pulls)), dtype=np.int8) * 2.0 - 1.0
        seen = abs(float(np.sum(pulls)))
        reached = np.count_nonzero(np.abs(signs @ pulls) >= seen * (1 - 1e-9))
        return (1 + int(reached)) / (1 + n_resamples)

    def _pulls(self) -> FloatArray:
        """What each row adds to the difference, with the worths centred over the moved rows."""
        squares = self.shift**2
        total = float(np.sum(squares))
        if total == 0:
            return np.zeros(len(self.shift))
        return self.shift * (self.worth - float(np.dot(squares, self.worth)) / total)


def _largest(name: str, scale: float, gained: float, worth: FloatArray, sample: Sample) -> float:
    """The largest difference: all gain on rows of the largest worth, or all on the smallest."""
    if name == "ndcg_at":
        return 1.0
    if name != "value_at":
        gained = min(gained, sample.ranked.positives)
    return scale * float(np.ptp(worth)) * gained


def _exact(seen: int, rows: int, hits: int, drawn: int) -> float:
    """Two-sided p-value of a hypergeometric count: Fisher's exact test."""
    law = hypergeom(rows, hits, drawn)
    return min(1.0, 2 * min(float(law.cdf(seen)), float(law.sf(seen - 1))))


def _gain(name: str, sample: Sample, settings: dict[str, Any]) -> tuple[FloatArray, float]:
    """Gain of each row, and the factor from their sum to the metric."""
    ranked = sample.ranked
    if name == "ndcg_at":
        return _discounts(sample, settings["k"])
    rounding = "down" if name == "enrichment_factor" else "up"
    k = settings.get("k", 1)
    depth = float(Lists.of_one(ranked).sizes(k, rounding)[0])
    gain = kept(ranked, depth)[sample.ties]
    if name == "value_at":
        return gain, 1.0
    asked = float(k) * ranked.total if isinstance(k, float) else depth
    of_positives = 1 / ranked.positives
    factors = {
        "recall_at": of_positives,
        "lift_at": ranked.total / depth * of_positives if depth else 0.0,
        "enrichment_factor": ranked.total / asked * of_positives,
    }
    return gain, factors.get(name, 1 / depth if depth else 0.0)


def _discounts(sample: Sample, k: int | float) -> tuple[FloatArray, float]:
    """Mean discount of a row within the first k, for a row of each tie."""
    ranked: RankedList = sample.ranked
    depth = float(Lists.of_one(ranked).sizes(k)[0])
    summed = summed_discount(np.minimum(ranked.places, depth))
    by_tie = np.diff(summed) / (ranked.positive + ranked.negative)
    ideal = summed_discount(np.array([min(depth, ranked.positives)]))
    return by_tie[sample.ties], 1 / float(ideal[0])


def _amount(sample: Sample, settings: dict[str, Any]) -> FloatArray:
    """What acting on each row is worth."""

    def amounts(name: str, default: float) -> FloatArray:
        return check_amounts(name, settings.get(name, default), sample.rows)[sample.present]

    return np.where(sample.positive, amounts("benefit", 1.0), 0.0) - amounts("cost", 0.0)
