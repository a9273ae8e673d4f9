"""How much each row moves a metric: the first-order expansion behind an interval.

A metric of the order of the rows, brought to a share u from 0 to 1, is expanded as

    u(sample) - u(population)  =  mean over positives of phi+  +  mean over negatives of phi-  + ...

For the AUC and metrics like it, which are two-sample U-statistics, phi is the Hoeffding projection,
and its variance is DeLong's. For a partial area only the integral up to the cut moves, so that phi
needs no density at the cut; for a point of the curve it does, and takes the local precision. The
p-norm risk and the average precision are expanded by leaving out one row at a time, which also
gives their bias; prefix sums do it in linear time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from toprank._arrays import IntArray
from toprank._numerics import FloatArray, log_of
from toprank.metrics.at_cut import kept, slope_of_curve
from toprank.metrics.margins import check_margin
from toprank.metrics.order import RankedList
from toprank.metrics.push import pnorm_risk_of
from toprank.metrics.roc import part_of_curve, tpr_at_fpr_of

PROJECTION = "Hoeffding projection (DeLong)"
INFLUENCE = "influence function"
LEFT_OUT = "leave-one-out"
_EDGE = 1e-12
#: How much of a negative above all rows is allowed for: with long tails there is one, now and then.
_UNSEEN = 0.25
#: Rows of a class of which one at a time can be left out.
_MOST_LEFT_OUT = 1e8
#: Of rows that stand for others no less than this part of an average one is left out at a time.
_LEAST_LEFT_OUT = 1e-4


def identity(share: float) -> float:
    """The metric of a share that is the metric itself."""
    return share


def disjoint_pairs(ranked: RankedList) -> float:
    """How many pairs of a positive and a negative share no row."""
    return min(ranked.positives, ranked.negatives)


@dataclass(frozen=True)
class PairShare:
    """A share of pairs of a positive and a negative: what a score interval asks of it.

    Attributes
    ----------
    of_positives, of_negatives : float
        The share of each class that the pairs are taken from.
    wide : bool
        Whether one class may carry all of the noise, as it does in a part of the curve.
    errors_to_trust : float
        How many errors must be seen until a variance below the model's is half believed.
    scale : float
        What the model's variance is multiplied by.
    freedom_of_model : float
        Degrees of freedom that the model adds to those of the variance that was seen.
    freedom_over_groups : float, optional
        The same where the variance is one over groups; None: the model has no say in it.
    bias_taken : float
        Share of the estimated bias that is taken off; the rest would cost more than it mends.
    shortfall : float
        Over the rows of the smaller class: the share by which the variance seen is too small.
    """

    of_positives: float = 1.0
    of_negatives: float = 1.0
    wide: bool = False
    errors_to_trust: float = 80.0
    scale: float = 1.0
    freedom_of_model: float = 8.0
    freedom_over_groups: float | None = 4.0
    bias_taken: float = 1.0
    shortfall: float = 0.0

    def rows(self, units: tuple[float, float]) -> tuple[float, float]:
        """Positives and negatives that the pairs are taken from."""
        return units[0] * self.of_positives, units[1] * self.of_negatives

    def narrowest(self, units: tuple[float, float]) -> tuple[float, str]:
        """How many rows a part of the curve is as wide as, and of which class; all: no end."""
        of = zip(self.rows(units), (self.of_positives, self.of_negatives), strict=True)
        named = zip(of, ("positives", "negatives"), strict=True)
        return min(((rows, kind) for (rows, part), kind in named if part < 1), default=(np.inf, ""))

    def bound_from_below(self, units: tuple[float, float]) -> float:
        """How far the rows bound a part of the curve from below: 0 not at all, 1 as all others.

        Where a part is as narrow as the place of one row, no row need lie in it, and what rows
        beyond it show is not the curve there.
        """
        return float(np.clip(self.narrowest(units)[0] - 1, 0.0, 1.0))


@dataclass(frozen=True)
class Expansion:
    """A share u, and what a positive and a negative in each tie add to it.

    Attributes
    ----------
    share : float
        The metric as a share from 0 to 1.
    on_positive, on_negative : ndarray of shape (m,)
        phi+ and phi-, by tie, up to a constant.
    trials : float
        How many independent pairs the sample holds, for shares that no row contradicts.
    report : callable
        From the share to the metric.
    bias : float
        Estimated bias of the share.
    on_logit : tuple, optional
        Centre, phi+ and phi- on the logit scale, where they are known better than by the slope.
    corrected : callable, optional
        The share with its bias taken off, for weights of the ties given as rows of two matrices.
    method : str
        How phi was found.
    normal : bool
        Whether the interval needs no allowance for the doubt in its variance.
    share_settings : mapping
        Settings with which the metric is `unit` times the share.
    unit : float
        See `share_settings`.
    pairs : PairShare, optional
        Which pairs the share is of; it then has a score interval.
    power : float, optional
        The share is the root of a mean over negatives of this power of their heights.
    unseen : float
        How much a negative above all rows could take from the share, as far as it is allowed for.
    """

    share: float
    on_positive: FloatArray
    on_negative: FloatArray
    trials: float
    report: Callable[[float], float] = identity
    bias: float = 0.0
    on_logit: tuple[float, FloatArray, FloatArray] | None = None
    corrected: Callable[[FloatArray, FloatArray], FloatArray] | None = None
    method: str = PROJECTION
    normal: bool = False
    share_settings: Mapping[str, object] = field(default_factory=dict)
    unit: float = 1.0
    pairs: PairShare | None = None
    power: float | None = None
    unseen: float = 0.0

    @property
    def needs_copies(self) -> bool:
        """Whether phi is known only where rows of one class and score are copies of each other."""
        return self.method == LEFT_OUT

    @property
    def centre(self) -> float:
        """The share with its bias taken off, but within (0, 1)."""
        centre = self.share - self.bias
        if not 0 < self.share < 1:
            return self.share
        return float(np.clip(centre, self.share / 2, (1 + self.share) / 2))


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
            freedom_over_groups=0.0,
        ),
    )


def tpr_at_fpr_expansion(ranked: RankedList, fpr: float) -> Expansion:
    """A point of the curve; a negative above it moves it along the slope there."""
    tpr = tpr_at_fpr_of(ranked, fpr)
    slope = slope_of_curve(ranked, fpr, tpr)
    above = kept(ranked, fpr * ranked.negatives + tpr * ranked.positives)
    return Expansion(tpr, above, -slope * above, disjoint_pairs(ranked), method=INFLUENCE)


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
        # one positive in the wrong place moves it more than any law of the scores tells
        pairs=PairShare(
            wide=True,
            errors_to_trust=4.0,
            scale=0.7,
            freedom_of_model=0.0,
            freedom_over_groups=None,
            bias_taken=0.5,
            shortfall=3.0,
        ),
        unseen=max(0.0, share - _with_negative_on_top(ranked, prevalence)),
    )


def _with_negative_on_top(ranked: RankedList, prevalence: float) -> float:
    """Average precision if a part of one more negative lay above all rows.

    The more negatives there are per positive, the more likely the sample holds such a one.
    """
    rows = ranked.negatives if ranked.rows is None else ranked.rows[1]
    part = _UNSEEN * float(np.sqrt(min(1.0, ranked.positives / ranked.negatives)))
    more = part * ranked.negatives / rows
    right = prevalence * ranked.found[1:] / ranked.positives
    noise = (1 - prevalence) * (more + ranked.passed[1:]) / (more + ranked.negatives)
    return float(np.dot(ranked.positive, right / (right + noise))) / ranked.positives


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
