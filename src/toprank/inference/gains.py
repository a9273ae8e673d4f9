"""Comparisons of metrics that are sums of gains, such as those at k.

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
from toprank.inference.request import Request, check_size
from toprank.inference.resampled import statistic_of
from toprank.inference.result import Comparison
from toprank.inference.sample import Sample, sums_in
from toprank.inference.shares import newcombe
from toprank.inference.verdict import Verdict

#: Up to so many moved rows their signs are flipped.
_FLIPPED = 2000


def compare_gains(verdict: Verdict, a: Request, b: Request) -> Comparison:
    """Difference of a metric that is a sum of gains, from the rows that stand differently."""
    shifts = Shifts.between(a, b)
    values = [statistic_of(one)[1] for one in (a, b)]
    check_size(verdict.label, max(map(abs, values)))
    trick = "labels permuted" if shifts.counted else "signs flipped"
    method = f"{trick} over the rows that stand differently"
    error = shifts.error(a.sample)
    if shifts.moved == 0 or (error == 0 and not shifts.counted):
        return verdict.without_spread(values, shifts.trials, method, shifts.largest)
    if shifts.counted:
        ends = shifts.newcombe(verdict.level)
    else:
        reach = float(student.ppf((1 + verdict.level) / 2, max(1, shifts.moved - 1))) * error
        ends = (shifts.difference - reach, shifts.difference + reach)
    most = shifts.largest
    ends = (max(-most, ends[0]), min(most, ends[1]))
    chance = shifts.chance(a.sample, a.n_resamples, a.random_state)
    return verdict.result(values, ends, error, chance, method)


@dataclass(frozen=True)
class Shifts:
    """A difference of two rankers as the sum over rows of worth times the shift of its gain.

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
    def between(cls, a: Request, b: Request) -> Shifts:
        """Shifts of the gains of one metric under the scores of two samples of the same rows."""
        gains = a.metric.gains
        assert gains is not None
        of_a, of_b = (gains(one.sample.ranked, **one.settings) for one in (a, b))
        sample = a.sample
        gain_a, gain_b = of_a.by_tie[sample.ties], of_b.by_tie[b.sample.ties]
        weight = np.ones(len(sample.scores)) if sample.weight is None else sample.weight
        worth = a.metric.worth_of(sample.positive, a.row_settings)
        shift = weight * (gain_a - gain_b)
        whole = bool(np.all(np.isin(shift, (-1.0, 0.0, 1.0))) and np.sum(shift) == 0)
        counted = whole and sample.groups is None and of_a.counted
        largest = of_a.largest
        if largest is None:
            gained = float(np.dot(weight, gain_a))
            if a.metric.worth is None:
                gained = min(gained, sample.ranked.positives)
            largest = of_a.scale * float(np.ptp(worth)) * gained
        return cls(worth, shift, of_a.scale, counted, largest, int(np.count_nonzero(gain_a)))

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


def _exact(seen: int, rows: int, hits: int, drawn: int) -> float:
    """Two-sided p-value of a hypergeometric count: Fisher's exact test."""
    law = hypergeom(rows, hits, drawn)
    return min(1.0, 2 * min(float(law.cdf(seen)), float(law.sf(seen - 1))))
