"""The rows at hand as a sample: how they were drawn, and how far a mean over them may stray.

Two sampling schemes. By default positives and negatives are drawn apart, in fixed numbers, and
rows are independent. With ``groups`` whole groups are drawn, and rows of one group may depend on
each other in any way.

Two meanings of a weight. ``weights="counts"``: a repetition count, so that a row of weight 2
is two independent rows. ``weights="sampling"``: each row is one observation and its weight says
how many rows of the population it stands for (inverse propensities).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._arrays import AnyArray
from toprank._numerics import FloatArray
from toprank.metrics._inputs import check_ranking, inverse_weights
from toprank.metrics.order import RankedList
from toprank.metrics.risk import weight_of_rows
from toprank.pairs import check_groups

WEIGHTS = ("counts", "sampling")
_SMALLEST = 1e-100


@dataclass(frozen=True)
class VarianceEstimate:
    """Variance of an estimate, and the degrees of freedom that variance was estimated with.

    Attributes
    ----------
    variance : float
        The variance.
    freedom : float
        Degrees of freedom, with allowance for long tails.
    normal_freedom : float, optional
        Degrees of freedom if the terms were normal (Satterthwaite).
    alike_freedom : float, optional
        Over groups: degrees of freedom if the rows of a group are alike.
    """

    variance: float
    freedom: float
    normal_freedom: float | None = None
    alike_freedom: float | None = None

    @property
    def plain_freedom(self) -> float:
        """Degrees of freedom without allowance for long tails."""
        return self.freedom if self.normal_freedom is None else self.normal_freedom

    def freedom_over_groups(self, times: float) -> float:
        """Degrees of freedom of a variance so many times as large as that of independent rows.

        The larger it is, the more does it rest on the groups that hold the most rows.
        """
        if self.alike_freedom is None:
            return self.freedom
        fewest = min(self.freedom, self.alike_freedom)
        return fewest + (self.freedom - fewest) / max(1.0, times)


@dataclass(frozen=True)
class GroupSupport:
    """How many groups there are, and how many of them carry information.

    Attributes
    ----------
    count : int
        Number of groups.
    holding : tuple of two ints
        Groups that hold a positive, and groups that hold a negative.
    effective : tuple of two floats
        Kish's number of equal groups that the positives, and the negatives, are spread over.
    of_rows : float
        The same of all rows.
    """

    count: int
    holding: tuple[int, int]
    effective: tuple[float, float]
    of_rows: float

    @property
    def freedom(self) -> float:
        """Degrees of freedom of a variance over groups, of the class that fewer of them hold.

        Between those of the groups that hold it and those of as many equal groups as they are
        worth: by simulation the first are too many, the second too few.
        """
        pairs = zip(self.holding, self.effective, strict=True)
        return max(1.0, min((holding + effective) / 2 for holding, effective in pairs) - 1)

    @property
    def alike_freedom(self) -> float:
        """The same if the rows of a group are alike: those of as many equal groups."""
        return max(1.0, min(self.effective) - 1)


@dataclass(frozen=True)
class Sample:
    """Rows of positive weight, with their classes, scores and groups.

    Attributes
    ----------
    positive : bool ndarray of shape (n,)
        Which rows are positive.
    scores : ndarray of shape (n,)
        Their scores.
    weight : ndarray of shape (n,), optional
        Their weights; None means one each.
    counts : bool
        Whether the weights are repetition counts.
    groups : ndarray of shape (n,), optional
        Numbers of the groups that were drawn whole.
    present : ndarray
        Which of the caller's rows are these.
    rows : int
        How many rows the caller gave.
    """

    positive: NDArray[np.bool_]
    scores: FloatArray
    weight: FloatArray | None
    counts: bool
    groups: NDArray[np.intp] | None
    present: NDArray[np.intp] | slice
    rows: int

    @classmethod
    def of(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        weights: str = "counts",
        label_propensity: ArrayLike | None = None,
        pos_label: object = None,
    ) -> Sample:
        """Check the input and leave out rows of weight zero."""
        if weights not in WEIGHTS:
            raise ValueError(f"Unknown weights {weights!r}: expected one of {list(WEIGHTS)}.")
        positive, scores, weight = check_ranking(
            y_true, y_score, sample_weight, pos_label, label_propensity
        )
        _check_smallest(weight)
        codes = check_groups(groups, len(scores))
        counts = weights == "counts" and label_propensity is None
        rows = len(scores)
        present: NDArray[np.intp] | slice = slice(None)
        if weight is not None and not np.all(weight > 0):
            present = np.flatnonzero(weight > 0)
            positive, scores, weight = positive[present], scores[present], weight[present]
            codes = None if codes is None else codes[present]
        if codes is not None:
            codes = np.unique(codes, return_inverse=True)[1]
            if codes.max() == 0:
                raise ValueError(
                    "groups puts every row into one group, so there is nothing to compare it "
                    "with: expected at least two groups."
                )
        return cls(positive, scores, weight, counts, codes, present, rows)

    @cached_property
    def ranked(self) -> RankedList:
        """The rows in order."""
        ranked = RankedList.rank(self.positive, self.scores, self.weight)
        if self.weight is None or self.counts:
            return ranked
        apart = (kish(self.weight[members]) for members in (self.positive, ~self.positive))
        return replace(ranked, rows=(next(apart), next(apart)))

    def unrolled(self, most: int) -> Sample:
        """Each row as often as it counts, where these are whole numbers, at most so many in all."""
        weight = self.weight
        if weight is None or not self.counts or np.sum(weight) > most:
            return self
        if not np.array_equal(weight, np.rint(weight)):
            return self
        rows = np.repeat(np.arange(len(weight)), weight.astype(np.intp))
        return replace(
            self,
            positive=self.positive[rows],
            scores=self.scores[rows],
            weight=None,
            groups=None if self.groups is None else self.groups[rows],
            present=np.arange(self.rows)[self.present][rows],
        )

    @cached_property
    def ties(self) -> NDArray[np.intp]:
        """Which tie of the ranked list each row belongs to."""
        return np.searchsorted(-self.ranked.scores, -self.scores)

    def table_free_order(self, *columns: AnyArray) -> NDArray[np.intp]:
        """An order of the rows that does not depend on their order in the table.

        Rows that also agree in these columns are the same to everything that asks for them, and
        in any order.
        """
        weight = () if self.weight is None else (self.weight,)
        return np.lexsort((*columns, *weight, self.scores, self.positive))

    @property
    def by_ties(self) -> bool:
        """Whether rows of one class and one score are exchangeable units."""
        return self.groups is None and (self.weight is None or self.counts)

    @property
    def plain(self) -> bool:
        """Whether every row is one independent observation."""
        return self.groups is None and self.weight is None

    @property
    def independent_pairs(self) -> float:
        """Independent pairs of a positive and a negative; of two groups, if groups are drawn."""
        return float(min(self.units) if self.groups is None else (int(self.groups.max()) + 1) // 2)

    @cached_property
    def group_support(self) -> GroupSupport:
        """How many groups carry information; only for samples with groups."""
        assert self.groups is not None
        weight = np.ones(len(self.scores)) if self.weight is None else self.weight
        count = int(self.groups.max()) + 1
        held = [
            sums_by_group(self.groups[members], weight[members], count)
            for members in (self.positive, ~self.positive)
        ]
        holding = int(np.count_nonzero(held[0])), int(np.count_nonzero(held[1]))
        return GroupSupport(count, holding, (kish(held[0]), kish(held[1])), kish(held[0] + held[1]))

    @cached_property
    def units(self) -> tuple[float, float]:
        """How many independent positives and negatives the rows are worth."""
        if self.weight is None:
            high = float(np.count_nonzero(self.positive))
            return high, len(self.positive) - high
        if self.counts:
            return self.ranked.positives, self.ranked.negatives
        assert self.ranked.rows is not None
        return self.ranked.rows

    def worth(self, depth: Any) -> Any:
        """How many independent rows a unit of weight above a cut is worth: Kish's share."""
        if self.counts or self.weight is None:
            return 1.0
        squares = sums_by_group(self.ties, self.weight**2, len(self.ranked.scores))
        summed = np.concatenate(([0.0], np.cumsum(squares)))
        return depth / np.interp(depth, self.ranked.places, summed)

    def on_rows(self, on_positive: FloatArray, on_negative: FloatArray) -> FloatArray:
        """Values given by tie and class, as one value per row."""
        return np.where(self.positive, on_positive[self.ties], on_negative[self.ties])

    def spread(self, on_positive: FloatArray, on_negative: FloatArray) -> VarianceEstimate:
        """Variance of the sum of two class means, of values given by tie."""
        if not self.by_ties:
            return self.spread_of_rows(self.on_rows(on_positive, on_negative))
        ranked = self.ranked
        return combined_variance(
            _class_means(on_positive, ranked.positive), _class_means(on_negative, ranked.negative)
        )

    def spread_of_sum(self, values: FloatArray) -> VarianceEstimate:
        """Variance of the weighted sum of the rows' values; rows are drawn together."""
        weight = np.ones(len(values)) if self.weight is None else self.weight
        centred = values - np.dot(weight, values) / np.sum(weight)
        if self.counts:
            return combined_variance(Pulls(centred, weight))
        return combined_variance(Pulls(weight * centred, None, weight / np.sum(weight)))

    def spread_of_rows(self, values: FloatArray) -> VarianceEstimate:
        """Variance of the mean of the positives' values plus that of the negatives'."""
        weight = np.ones(len(values)) if self.weight is None else self.weight
        if self.groups is None and self.counts:
            high = self.positive
            return combined_variance(
                _class_means(values[high], weight[high]),
                _class_means(values[~high], weight[~high]),
            )
        shares, pulls = np.empty(len(values)), np.empty(len(values))
        for members in (self.positive, ~self.positive):
            shares[members] = weight[members] / np.sum(weight[members])
            centre = np.dot(shares[members], values[members])
            pulls[members] = shares[members] * (values[members] - centre)
        if self.groups is not None:
            found = combined_variance(Pulls(sums_by_group(self.groups, pulls), None))
            support = self.group_support
            few = support.freedom
            return VarianceEstimate(
                found.variance, min(found.freedom, few), few, support.alike_freedom
            )
        return combined_variance(
            *(Pulls(pulls[of], None, shares[of]) for of in (self.positive, ~self.positive))
        )


def _check_smallest(weight: FloatArray | None) -> None:
    """Refuse weights so small that a resample of such rows alone has no finite metric."""
    if weight is None:
        return
    smallest = float(np.min(weight, where=weight > 0, initial=np.inf))
    if smallest < _SMALLEST:
        raise ValueError(
            f"sample_weight goes down to {smallest:g}, expected weights of 0 or at least "
            f"{_SMALLEST:g}: rows of such weights alone have no spread. Scale the weights, or use "
            "0 for rows that are absent."
        )


def rows_and_units(
    n: int,
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None,
    weights: str,
    label_propensity: ArrayLike | None,
) -> tuple[FloatArray, NDArray[np.intp] | None]:
    """Weights of rows whose labels are real numbers, and the units drawn, if not the rows."""
    if weights not in WEIGHTS:
        raise ValueError(f"Unknown weights {weights!r}: expected one of {list(WEIGHTS)}.")
    weight = weight_of_rows(sample_weight, n)
    if label_propensity is not None:
        weight = inverse_weights(weight, label_propensity, n)
    if groups is not None:
        return weight, check_groups(groups, n)
    counts = weights == "counts" and label_propensity is None
    return weight, None if counts else np.arange(n)


def sums_by_group(codes: NDArray[np.intp], values: FloatArray, count: int = 0) -> FloatArray:
    """Sums of the values in each group."""
    return np.bincount(codes, values, count).astype(np.float64, copy=False)


def kish(weight: FloatArray) -> float:
    """Kish's effective number of rows: (sum of weights)^2 / sum of squared weights."""
    return float(np.sum(weight) ** 2 / np.sum(weight**2))


@dataclass(frozen=True)
class Pulls:
    """How far each unit pulls the estimate; `count` units pull alike.

    Units that stand for shares of the rows that add up to 1 are told so.
    """

    pull: FloatArray
    count: FloatArray | None
    shares: FloatArray | None = None

    @property
    def units(self) -> float:
        return float(len(self.pull) if self.count is None else np.sum(self.count))

    @property
    def freedom(self) -> tuple[float, float]:
        """Share of the variance that is left about the units' own mean, and degrees of freedom.

        Of equal shares they are 1 - 1 / n and n - 1. Otherwise a unit pulls the mean towards itself
        by its share, and the squares of heavy ones say more than those of others.
        """
        if self.shares is None:
            return 1 - 1 / self.units, self.units - 1
        second, third, fourth = (float(np.sum(self.shares**power)) for power in (2, 3, 4))
        return 1 + second - 2 * third / second, second**2 / fourth - 1

    @property
    def moments(self) -> tuple[float, float]:
        """Sums of the second and of the fourth powers."""
        squares = self.pull * self.pull
        if self.count is None:
            return float(np.sum(squares)), float(np.dot(squares, squares))
        weighted = self.count * squares
        return float(np.sum(weighted)), float(np.dot(weighted, squares))


def _class_means(values: FloatArray, weight: FloatArray) -> Pulls:
    total = float(np.sum(weight))
    centre = float(np.dot(values, weight)) / total
    return Pulls((values - centre) / total, weight)


def combined_variance(*strata: Pulls) -> VarianceEstimate:
    """Add the variances of independent strata.

    The variance of the variance comes from the fourth moments, but is never taken to be less than
    that of a normal sample; two moments of a chi-squared then give the degrees of freedom. Long
    tails, such as the few misranked positives of a good ranker, so widen the interval.
    """
    variance = doubt = normal_doubt = 0.0
    for stratum in strata:
        units = stratum.units
        if units <= 1:
            return VarianceEstimate(np.inf, 1.0)
        second, fourth = stratum.moments
        left, freedom_there = stratum.freedom
        if freedom_there <= 0:
            return VarianceEstimate(np.inf, 1.0)
        part = second / left
        variance += part
        least = 2 * part**2 / freedom_there
        doubt += max(fourth - second**2 / units, least)
        normal_doubt += least
    most = sum(stratum.freedom[1] for stratum in strata)

    def freedom(of: float) -> float:
        """Degrees of freedom of a chi-squared with this mean and variance."""
        return max(1.0, 2 * variance**2 / of) if of > 0 else most

    return VarianceEstimate(variance, freedom(doubt), freedom(normal_doubt))
