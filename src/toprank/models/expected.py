"""The precision to expect of alerts whose labels are not there yet, and how far off it was.

A model's card knows how many positives there were among rows that the model had not seen, between
the quantiles of their scores. These shares are calibrated probabilities: today's alerts are counted
into the same bins. As long as a score means what it meant in training, their mean is the precision
that today's labels will show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from toprank._arrays import BoolArray
from toprank._numerics import FloatArray
from toprank.inference.shares import clopper_pearson


@dataclass(frozen=True)
class LabelShares:
    """Rows and positives between the quantiles of the scores of unseen rows.

    Attributes
    ----------
    edges : array
        Upper ends of all bins but the last, ascending; a bin holds its upper end.
    rows, positives : array
        Of each bin, by weight where rows have weights.
    """

    edges: FloatArray
    rows: FloatArray
    positives: FloatArray

    @classmethod
    def of(
        cls,
        scores: FloatArray,
        positive: BoolArray,
        quantiles: ArrayLike,
        weight: FloatArray | None = None,
    ) -> LabelShares:
        """Count labelled rows that the model has not seen."""
        edges = np.unique(np.asarray(quantiles, dtype=np.float64)[1:-1])
        bins = np.searchsorted(edges, scores)
        counts = np.ones(len(bins)) if weight is None else weight
        size = len(edges) + 1
        rows = np.bincount(bins, counts, size).astype(np.float64)
        return cls(edges, rows, np.bincount(bins, counts * positive, size).astype(np.float64))

    @classmethod
    def from_card(cls, scores: Mapping[str, object]) -> LabelShares | None:
        """Read what a card remembers of the scores; None where it has no labels, or odd ones."""
        known = scores.get("labels")
        if not isinstance(known, Mapping):
            return None
        try:
            edges = np.unique(np.asarray(scores["quantiles"], dtype=np.float64)[1:-1])
            rows, positives = (
                np.asarray(known[name], dtype=np.float64) for name in ("rows", "positives")
            )
        except (TypeError, ValueError, KeyError, OverflowError):
            return None
        right = rows.shape == positives.shape == (len(edges) + 1,)
        if not right or not np.all((positives >= 0) & (positives <= rows) & (rows < 1e15)):
            return None
        return cls(edges, rows, positives)

    def as_dict(self) -> dict[str, list[float]]:
        """Return the counts as the card holds them."""
        return {"rows": self.rows.tolist(), "positives": self.positives.tolist()}

    def expect(self, scores: FloatArray, level: float) -> ExpectedPrecision:
        """The precision to expect of rows with these scores."""
        bins = np.searchsorted(self.edges, scores)
        alerts = np.bincount(bins, minlength=len(self.rows)).astype(np.float64)
        # half a positive and half a negative more: no share of few rows is taken for certain
        share = (self.positives + 0.5) / (self.rows + 1)
        own = np.divide(self.positives, self.rows, out=share.copy(), where=self.rows > 0)
        part = alerts / len(scores)
        known_to = np.sum(part**2 * share * (1 - share) / (self.rows + 1))
        return ExpectedPrecision.of(
            float(part @ own), float(known_to), share[alerts > 0], alerts[alerts > 0], level
        )


@dataclass(frozen=True)
class ExpectedPrecision:
    """The share of positives that alerts should have, before their labels are there.

    Attributes
    ----------
    estimate, low, high : float
        The interval is for the share that the labels of these very alerts will show.
    rows : int
        How many alerts.
    standard_error : float
        Of how far the share that labels show may be from the estimate.
    """

    estimate: float
    low: float
    high: float
    rows: int
    standard_error: float

    @classmethod
    def of(
        cls, estimate: float, known_to: float, share: FloatArray, count: FloatArray, level: float
    ) -> ExpectedPrecision:
        """The interval from what the estimate is known to, and the chance in the labels."""
        rows = int(np.sum(count))
        variance = known_to + float(np.sum(count * share * (1 - share))) / rows**2
        inner = min(max(estimate, 0.5 / rows), 1 - 0.5 / rows)
        trials = inner * (1 - inner) / variance if variance > 0 else float(rows)
        low, high = clopper_pearson(estimate, trials, level)
        return cls(estimate, float(low), float(high), rows, float(np.sqrt(variance)))

    @classmethod
    def of_probabilities(
        cls, probability: FloatArray, training_alerts: float, level: float
    ) -> ExpectedPrecision:
        """The same from a model's own probabilities, as well known as from so many alerts."""
        mean = float(np.mean(probability))
        known_to = mean * (1 - mean) / max(training_alerts, 1.0)
        return cls.of(mean, known_to, probability, np.ones(len(probability)), level)

    def chance_of_fewer(self, found: float) -> float:
        """Chance that labels show no more than this share, had the estimate been right."""
        if self.standard_error == 0:
            return 1.0 if found >= self.estimate else 0.0
        half = 0.5 / self.rows  # a share of whole rows
        return float(ndtr((found + half - self.estimate) / self.standard_error))


@dataclass(frozen=True)
class PrecisionError:
    """How far off the expected precision was, on the alerts that have labels by now.

    Attributes
    ----------
    expected, found : float
        Shares of positives among them.
    rows : int
    low, high : float
        The shares that would have been in keeping with what was expected.
    chance : float
        Chance of so few positives, had the expectation been right.
    """

    expected: float
    found: float
    rows: int
    low: float
    high: float
    chance: float

    @classmethod
    def of(cls, expected: ExpectedPrecision, positive: BoolArray) -> PrecisionError:
        """Compare with the labels of the same alerts."""
        found = float(np.mean(positive))
        chance = expected.chance_of_fewer(found)
        return cls(expected.estimate, found, expected.rows, expected.low, expected.high, chance)
