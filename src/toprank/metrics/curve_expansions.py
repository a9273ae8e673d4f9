"""How much each row moves the metrics of pairs and of the ROC curve.

The AUC, the misranking error and the margin error are shares of all pairs, two-sample U-statistics:
phi is the Hoeffding projection, and its variance is DeLong's. Of a partial area only the integral
up to the cut moves, so that phi needs no density at the cut; for a point of the curve it does, and
takes the local precision. BEDROC is smooth in the places of the rows, and phi is its derivative.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammainc

from toprank._numerics import FloatArray
from toprank.metrics.at_cut import fpr_where, kept, slope_of_curve
from toprank.metrics.expansion import INFLUENCE, Expansion, PairShare, disjoint_pairs
from toprank.metrics.margins import check_margin
from toprank.metrics.order import RankedList
from toprank.metrics.retrieval import bedroc_of
from toprank.metrics.roc import part_of_curve, tpr_at_fpr_of
from toprank.metrics.thresholds import precision_at_recall_of


def auc_expansion(ranked: RankedList) -> Expansion:
    """Share of the pairs in order; the projections are the placements of DeLong et al. (1988)."""
    on_positive = 1 - (ranked.passed[:-1] + 0.5 * ranked.negative) / ranked.negatives
    on_negative = (ranked.found[:-1] + 0.5 * ranked.positive) / ranked.positives
    share = float(np.dot(on_positive, ranked.positive)) / ranked.positives
    return _share_of_pairs(ranked, share, on_positive, on_negative)


def misranking_error_expansion(ranked: RankedList, ties: str = "half") -> Expansion:
    """Share of the pairs out of order."""
    if ties == "error":
        return _within_margin(ranked, 0.0)
    if ties != "half":
        raise ValueError(f"Unknown ties {ties!r}: expected 'half' or 'error'.")
    in_order = auc_expansion(ranked)
    return _share_of_pairs(ranked, 1 - in_order.share, -in_order.on_positive, -in_order.on_negative)


def _share_of_pairs(
    ranked: RankedList, share: float, on_positive: FloatArray, on_negative: FloatArray
) -> Expansion:
    share = float(np.clip(share, 0, 1))
    return Expansion(share, on_positive, on_negative, disjoint_pairs(ranked), pairs=PairShare())


def margin_error_expansion(ranked: RankedList, theta: float) -> Expansion:
    """Share of the pairs with a margin of at most theta."""
    check_margin("theta", theta)
    return _within_margin(ranked, theta)


def _within_margin(ranked: RankedList, theta: float) -> Expansion:
    on_negative = ranked.heights_within(theta) / ranked.positives
    depths = -ranked.scores
    with np.errstate(over="ignore"):  # beyond every score, and compared as such
        bar = ranked.scores - theta
    reaching = np.searchsorted(depths, -bar, side="right")
    on_positive = ranked.passed[reaching] / ranked.negatives
    share = float(np.dot(on_negative, ranked.negative)) / ranked.negatives
    return _share_of_pairs(ranked, share, on_positive, on_negative)


#: Metrics that are a share of all pairs, whose projection gives DeLong's variance.
SHARES_OF_PAIRS = (auc_expansion, misranking_error_expansion, margin_error_expansion)


def partial_auc_expansion(
    ranked: RankedList,
    max_fpr: float | None = None,
    min_fpr: float = 0.0,
    min_tpr: float | None = None,
    standardize: bool = True,
) -> Expansion:
    """Area under a part of the curve, as a share of the largest such area.

    A positive adds the area under its own step. A negative moves the curve to the right from its
    place on, as far as the cut: it takes away what the curve still rises, up to ROC(max_fpr).
    """
    part = part_of_curve(max_fpr, min_fpr, min_tpr)
    start, stop, floor, best = part.start, part.stop, part.floor, part.best
    fpr, tpr = ranked.passed / ranked.negatives, ranked.found / ranked.positives
    first = max(start, _reaches(fpr, tpr, floor))
    high = tpr_at_fpr_of(ranked, stop)
    low = min(high, max(floor, tpr_at_fpr_of(ranked, start) if start > 0 else 0.0))
    on_positive = np.zeros(len(ranked.scores))
    on_negative = np.zeros(len(ranked.scores))
    if first < stop:
        on_positive = (_under_step(fpr, stop) - _under_step(fpr, first)) / best
        on_negative = _mean_between(tpr, low, high) / best
    area = float(np.dot(on_positive, ranked.positive)) / ranked.positives
    share = float(np.clip(area - floor * max(0.0, stop - first) / best, 0, 1))

    def report(u: float) -> float:
        return part.standardize(u * best) if standardize else u * best

    trials = min(ranked.positives, max(1.0, (stop - start) * ranked.negatives))
    # its few negatives make the projection's variance too large already
    return Expansion(
        share,
        on_positive,
        on_negative,
        trials,
        report,
        method=INFLUENCE,
        normal=True,
        share_settings={"standardize": False},
        unit=best,
        pairs=PairShare(
            1 - floor,
            stop - start,
            wide=True,
            errors_to_trust=20.0,
            hits_to_trust=0.1,  # of few hits the model's variance is several times too large
            groups_to_trust=10.0,
            freedom_over_groups=0.0,
        ),
    )


def tpr_at_fpr_expansion(ranked: RankedList, fpr: float) -> Expansion:
    """A point of the curve; a negative above it moves it along the slope there."""
    tpr = tpr_at_fpr_of(ranked, fpr)
    slope = slope_of_curve(ranked, fpr, tpr)
    above = kept(ranked, fpr * ranked.negatives + tpr * ranked.positives)
    return Expansion(tpr, above, -slope * above, disjoint_pairs(ranked), method=INFLUENCE)


def precision_at_recall_expansion(ranked: RankedList, recall: float) -> Expansion | None:
    """The precision where the curve reaches a recall: positives move it along the slope there.

    None where few rows say where the threshold lies and what is above it, and where one tie holds
    so many positives that the threshold cannot follow them.
    """
    precision = precision_at_recall_of(ranked, recall)
    fpr = float(fpr_where(ranked, np.array(recall)))
    if _is_coarse_at(ranked, fpr, recall):
        return None
    found, passed = recall * ranked.positives, fpr * ranked.negatives
    above = kept(ranked, found + passed)
    fall = found * ranked.negatives / (found + passed) ** 2  # of the precision, along the FPR
    slope = float(slope_of_curve(ranked, fpr, recall))
    on_positive, on_negative = fall / slope * above, -fall * above
    return Expansion(precision, on_positive, on_negative, disjoint_pairs(ranked), method=INFLUENCE)


def _is_coarse_at(ranked: RankedList, fpr: float, tpr: float) -> bool:
    """Whether rows around a threshold are too few, or too tied, for it to move with each."""
    high, low = (ranked.positives, ranked.negatives) if ranked.rows is None else ranked.rows
    if high * min(tpr, 1 - tpr) < _FEWEST_AROUND or low * fpr < _FEWEST_ABOVE:
        return True
    depth = fpr * ranked.negatives + tpr * ranked.positives
    tie = int(np.searchsorted(ranked.places[1:-1], depth))
    tied = float(ranked.positive[tie]) * high / ranked.positives
    return bool(tied > 1 + _OF_SPREAD * np.sqrt(high * tpr * (1 - tpr)))


#: Positives on either side of a threshold, and negatives above it, from which simulated precisions
#: there stray as far as they do if they are linear in the rows; and how much of the threshold's own
#: spread a tie may be.
_FEWEST_AROUND, _FEWEST_ABOVE, _OF_SPREAD = 100, 10, 0.1


def bedroc_expansion(ranked: RankedList, alpha: float = 20.0) -> Expansion | None:
    """Boltzmann-enhanced discrimination: a sum of exponentials over the places of the positives.

    A positive adds the discount of its place, and every row takes from those behind it what they
    lose by moving on. In a tie both are means over its random orders. None where the discount falls
    by e within ten rows: then it hangs on these few.
    """
    share = bedroc_of(ranked, alpha)
    rows = ranked.total if ranked.rows is None else sum(ranked.rows)
    if rows < _FEWEST_PLACES * alpha:
        return None
    decay = max(float(alpha), _LEAST_DECAY)
    rate = decay / ranked.total
    high, low, above = rate * ranked.positive, rate * ranked.negative, rate * ranked.places[:-1]
    length, discount = high + low, np.exp(-above)
    mean = -np.expm1(-length) / length  # of the discounts over the tie, from its first place
    fall = -gammainc(2.0, length) / length**2  # the derivative of the mean in the length
    summed = discount * high * mean
    # what stands behind is summed from the bottom, so that nothing of it is lost to the top
    behind = np.append(np.cumsum(summed[::-1])[::-1][1:], 0.0)
    taken = discount * high * fall - behind
    most = np.expm1(-rate * ranked.positives) * np.expm1(-rate * ranked.negatives)
    return Expansion(
        share,
        rate * ranked.positives / most * (discount * mean + taken),
        rate * ranked.negatives / most * taken,
        disjoint_pairs(ranked),
        method=INFLUENCE,
    )


#: Rows within which the discount falls by e, at least. By simulation resamples cover more of the
#: true values where five rows decide, and as many or fewer from twelve on.
_FEWEST_PLACES = 10
#: Rates of decay below which it is the AUC, to five digits, and differences would be rounding.
_LEAST_DECAY = 1e-5


def _reaches(fpr: FloatArray, tpr: FloatArray, floor: float) -> float:
    """The first FPR at which the curve reaches `floor`."""
    end = int(np.searchsorted(tpr, floor))
    if end == 0 or tpr[end] == tpr[end - 1]:
        return float(fpr[end])
    part = (floor - tpr[end - 1]) / (tpr[end] - tpr[end - 1])
    return float(fpr[end - 1] + part * (fpr[end] - fpr[end - 1]))


def _under_step(fpr: FloatArray, rate: float) -> FloatArray:
    """Area from 0 to `rate` under the step, or ramp, of a positive in each tie."""
    run = np.diff(fpr)
    into = np.clip(rate - fpr[:-1], 0.0, run)
    ramp = np.divide(into**2, 2 * run, out=np.zeros_like(run), where=run > 0)
    return ramp + np.maximum(rate - fpr[1:], 0.0)


def _mean_between(tpr: FloatArray, low: float, high: float) -> FloatArray:
    """Mean over the segment of each tie of its TPR, clipped to [low, high]."""
    rise = np.diff(tpr)
    inside = np.clip(tpr, low, high)
    # the integral of the clipped line from 0 to tpr
    summed = (
        low * np.minimum(tpr, low) + (inside**2 - low**2) / 2 + high * np.maximum(tpr - high, 0)
    )
    return np.divide(np.diff(summed), rise, out=inside[:-1].copy(), where=rise > 1e-9)
