"""Lists whose share of negatives is bounded on average: conformal p-values, Benjamini-Hochberg.

The p-value of a new row j is the share of rows that are negative and score at least as high,

    p_j = (1 + #{calibration rows i : y_i = 0, s_i >= s_j}) / (n + 1),

and the rule of Benjamini & Hochberg at level q takes the longest list whose last p-value is at
most q times its length over m. If calibration and new rows are exchangeable, the false discovery
rate is at most q (Jin & Candes, "Selection by prediction with conformal p-values", JMLR 24, 2023,
with their score that is clipped at the positives). Negatives of equal score count as above.

With likelihood ratios w of the new rows' density to the calibration rows',

    p_j = (w_j + sum of w_i over such rows i) / (w_j + sum of all w_i),

and row j is held against the list R_j that the rule gives when p_j is set to zero and row j joins
the calibration rows as a negative; what remains is pruned so that no row leans on a longer list
than there is (Jin & Candes, "Model-free selective inference under covariate shift via weighted
conformal p-values", 2023, Algorithm 1). Both steps need one sort and a running maximum: the list
R_j ends at the last score t where

    h(t) = (W q N(t) / m - A(t)) / (1 - q N(t) / m)  is at least  w_j,

N(t) being the number of new rows from t upwards and A(t) the weight of the negatives there; row j
passes its own test where that score is not above s_j.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import IntArray
from toprank._numerics import FloatArray
from toprank.select.calibration import Calibration

#: Sums of q N / m, which are compared with whole numbers over n + 1, may be off by rounding.
_ROUNDING = 1 + 1e-12


def select_by_fdr(calibration: Calibration, new: FloatArray, fdr: float) -> NDArray[np.bool_]:
    """Return which new rows the rule of Benjamini & Hochberg chooses.

    The p-values are steps at the scores of the negatives, so the new rows are only counted
    between those: one sort of the new scores, one of the negatives.
    """
    negatives, counts = calibration.of_class(False)
    above = np.concatenate(([0.0], np.cumsum(counts)))
    ordered = np.sort(new)
    # rows above negative i have at most the p-value of those just above it; all rows come last
    lengths = np.empty(len(negatives) + 1)
    lengths[:-1] = len(new) - np.searchsorted(ordered, negatives, side="right")
    lengths[-1] = len(new)
    steps = (1 + above) / (calibration.n_rows + 1)
    passed = np.flatnonzero(steps * len(new) <= fdr * lengths * _ROUNDING)
    passed = passed[lengths[passed] > 0]
    if not len(passed):
        return np.zeros(len(new), dtype=bool)
    last = passed[-1]
    if last == len(negatives):
        return np.ones(len(new), dtype=bool)
    return np.asarray(new > negatives[last])


def select_under_shift(
    calibration: Calibration,
    new: FloatArray,
    fdr: float,
    ratios: tuple[FloatArray, FloatArray],
    draw: np.random.Generator | None = None,
) -> tuple[NDArray[np.bool_], int]:
    """Return which new rows are chosen under known likelihood ratios, and how many before pruning.

    Parameters
    ----------
    calibration : Calibration
    new : array
        Scores of the new rows.
    fdr : float
    ratios : tuple of two arrays
        Likelihood ratios of the calibration rows and of the new rows, up to a common factor.
    draw : Generator, optional
        With it the pruning draws one random number, which keeps most lists whole; without, it is
        deterministic, and where the ratios differ it keeps next to nothing.
    """
    m, of_new = len(new), ratios[1]
    negatives = _Negatives.of(calibration, ratios[0])
    upper = np.flatnonzero(new > negatives.lowest_cut(new, fdr, float(np.min(of_new))))
    order = upper[np.argsort(-new[upper], kind="stable")]
    scores = new[order]
    ends = np.searchsorted(-scores, -scores, side="right")
    room = negatives.room(ends, negatives.above(scores), fdr / m)
    best_below = np.maximum.accumulate(room[::-1])[::-1]
    weight = of_new[order]
    last = np.searchsorted(-best_below, -weight * (1 - 1e-12), side="right") - 1
    passed = np.flatnonzero(last >= np.arange(len(order)))
    sizes = ends[last[passed]].astype(np.float64)
    if draw is not None:
        sizes *= draw.random()
    # the largest r such that at least r rows lean on lists of at most r
    in_order = np.sort(sizes)
    counts = np.arange(1, len(passed) + 1)
    enough = np.flatnonzero(np.searchsorted(in_order, counts, side="right") >= counts)
    kept = passed[sizes <= (counts[enough[-1]] if len(enough) else 0)]
    chosen = np.zeros(m, dtype=bool)
    chosen[order[kept]] = True
    return chosen, len(passed)


def conformal_p_values(
    calibration: Calibration,
    new: FloatArray,
    ratios: tuple[FloatArray, FloatArray] | None = None,
) -> FloatArray:
    """Return the p-value of each new row, ties counted against it."""
    if ratios is None:
        negatives, counts = calibration.of_class(False)
        above = np.concatenate(([0.0], np.cumsum(counts)))
        at_least = above[np.searchsorted(-negatives, -new, side="right")]
        return np.asarray((1 + at_least) / (calibration.n_rows + 1))
    weighted = _Negatives.of(calibration, ratios[0])
    return np.asarray((weighted.above(new) + ratios[1]) / (weighted.total + ratios[1]))


@dataclass(frozen=True)
class _Negatives:
    """The calibration negatives from the top down, and the weight of the first of them.

    Attributes
    ----------
    depths : array
        Their negated scores, ascending.
    sums : array
        Weight of the first j of them, for j = 0, 1, ...
    total : float
        Weight of all calibration rows.
    """

    depths: FloatArray
    sums: FloatArray
    total: float

    @classmethod
    def of(cls, calibration: Calibration, ratios: FloatArray) -> _Negatives:
        weight = calibration.counts * ratios
        negative = ~calibration.positive
        order = np.argsort(-calibration.scores[negative], kind="stable")
        sums = np.concatenate(([0.0], np.cumsum(weight[negative][order])))
        return cls(-calibration.scores[negative][order], sums, float(np.sum(weight)))

    def above(self, scores: FloatArray) -> FloatArray:
        """Weight of the negatives at or above each score."""
        return self.sums[np.searchsorted(self.depths, -scores, side="right")]

    def room(self, lengths: IntArray, above: FloatArray, quota: float) -> FloatArray:
        """h(t) of a list of that length with that weight of negatives; quota is q / m."""
        return np.asarray((self.total * quota * lengths - above) / (1 - quota * lengths))

    def lowest_cut(self, new: FloatArray, fdr: float, lightest: float) -> float:
        """The score that every row which passes is above, whatever its weight.

        Between two negatives h grows as the list does, so only lists that end just above a
        negative, or at the bottom, need be looked at.
        """
        lengths = len(new) - np.searchsorted(np.sort(new), -self.depths, side="right")
        room = self.room(np.append(lengths, len(new)), self.sums, fdr / len(new))
        passed = np.flatnonzero(room >= lightest * (1 - 1e-12))
        if not len(passed):
            return float("inf")
        return float(np.append(-self.depths, -np.inf)[passed[-1]])


def break_ties(
    calibration: Calibration, new: FloatArray, draw: np.random.Generator
) -> tuple[Calibration, FloatArray, NDArray[np.intp]]:
    """Put rows of equal score in a random order; scores become places among distinct scores.

    Rows are then still exchangeable, and no two are tied, so that the list may end inside a tie.
    A calibration row that stands for several becomes several; last come the places of the rows
    that they are copies of.
    """
    copies = np.repeat(np.arange(len(calibration.scores)), calibration.counts.astype(np.intp))
    every = np.concatenate((calibration.scores[copies], new))
    places = np.unique(every, return_inverse=True)[1].reshape(-1) + draw.random(len(every))
    known = len(copies)
    one_each = Calibration(
        calibration.positive[copies], places[:known], np.ones(known), calibration.source
    )
    return one_each, places[known:], copies
