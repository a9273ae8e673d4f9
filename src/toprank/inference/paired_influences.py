"""Comparisons of two rankers from what each row adds to a metric.

Small samples are compared by swaps. If two rankers are equally good and alike, their ranks of any
row can be swapped without changing the law of the data. The difference of the metric over many
random swaps is its null distribution, whatever the sample size; a normal limit is not needed. To
swap ranks is nearly but not quite to swap scores, as a row that moves up moves others down. A mean
over the positives is therefore compared in standard errors, which makes up for it (Janssen 1997, of
studentised permutation tests).

Groups that were drawn whole are left out in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from toprank._numerics import FloatArray
from toprank.inference.bootstrap import statistic_of
from toprank.inference.by_groups import note_on_groups, note_on_weights, spread_over_groups
from toprank.inference.result import Comparison, MetricRequest, Verdict, check_size
from toprank.inference.sample import Sample, VarianceEstimate
from toprank.inference.score_interval import count_errors
from toprank.inference.shares import slope_of
from toprank.metrics.expansion import Expansion
from toprank.metrics.metric import Swaps
from toprank.metrics.place_sums import variance_of_moves

_CELLS = 2**20
#: A variance that is this part of another one is rounding.
_NOTHING = 1e-24


def compare_influences(verdict: Verdict, a: MetricRequest, b: MetricRequest) -> Comparison:
    """Difference of a smooth metric, from the difference of each row's influence."""
    (value_a, rows_a, largest, of_a), (value_b, rows_b, _, of_b) = map(_influences, (a, b))
    values = (value_a, value_b)
    apart = rows_a - rows_b
    size = max(1.0, float(np.max(np.abs(apart))))  # fourth powers of a large metric overflow
    check_size(verdict.label, max(size, *map(abs, values)))
    spread = a.sample.spread_of_rows(apart / size)
    spread = replace(spread, variance=spread.variance * size**2)
    method = "paired influences of the rows"
    if not np.isfinite(spread.variance):
        raise ValueError(
            "One class has a single row, which does not show how far such rows spread: a "
            "comparison needs at least two positives and two negatives."
        )
    if spread.variance <= 1e-24 * max(1.0, value_a**2, value_b**2):
        return verdict.without_spread(values, a.sample.independent_pairs, method, largest)
    if a.sample.groups is not None:
        return _compare_over_groups(verdict, a, b, values, spread)
    if a.method == "delong":
        law = VarianceEstimate(spread.variance, np.inf)
        return verdict.from_variance(values, law, "DeLong's variance, normal law")
    notes = note_on_weights(a.sample), _note_on_rare_errors((a.sample, of_a), (b.sample, of_b))
    result = verdict.from_variance(values, spread, method, " ".join(filter(None, notes)))
    return with_swaps(result, a, b)


def can_compare_moves(a: MetricRequest, b: MetricRequest) -> bool:
    """Whether two sums over places can be compared by the moves of independent rows.

    In ties at the top of a list, most of all in small ones, a sum over places is not linear: by
    simulation of scores of few levels the moves show three quarters of its spread.
    """
    if a.metric.moves is None or a.sample.groups is not None:
        return False
    return all(np.all(np.bincount(each.sample.ties)[:_APART] == 1) for each in (a, b))


#: So many first rows of each list must be told apart.
_APART = 30


def compare_moves(verdict: Verdict, a: MetricRequest, b: MetricRequest) -> Comparison:
    """Difference of a sum over places, from the difference of what each row moves."""
    values, method = (a.estimate, b.estimate), "paired influences of the rows"
    check_size(verdict.label, max(values))
    spread = VarianceEstimate(_variance_of_moves(a, b), a.freedom())
    if spread.variance <= _NOTHING * max(values) ** 2:
        return verdict.without_spread(values, a.sample.independent_pairs, method)
    return verdict.from_variance(values, spread, method, note_on_weights(a.sample))


def _variance_of_moves(a: MetricRequest, b: MetricRequest) -> float:
    """Variance of the difference of two sums over places, of the same rows.

    A row is positive with the chance that the rows around it have in either list: those that
    happen to stand first show too little of the spread that others there would have. The list in
    which its place counts for more says more.
    """
    expand, sample = a.metric.moves, a.sample
    assert expand is not None
    one, other = (expand(each.sample.ranked, **each.settings) for each in (a, b))
    rows_a, rows_b = sample.ties, b.sample.ties
    own_a, own_b = one.own[rows_a], other.own[rows_b]
    counts_for_a = own_a**2 / (own_a**2 + own_b**2)
    near = counts_for_a * one.near[rows_a] + (1 - counts_for_a) * other.near[rows_b]
    weight = np.ones(len(near)) if sample.weight is None else sample.weight
    units = weight if sample.counts else weight**2
    return variance_of_moves(
        own_a - own_b, one.moved[rows_a] - other.moved[rows_b], near, weight, units
    )


def with_swaps(result: Comparison, a: MetricRequest, b: MetricRequest) -> Comparison:
    """The comparison, its p-value from swaps where the metric has them and the sample is small."""
    swaps = a.metric.swaps
    if swaps is None or len(a.sample.scores) > swaps.up_to or not a.sample.plain:
        return result
    # to trade the rankers turns the sign, and nothing else
    first, second = (a, b) if result.difference >= 0 else (b, a)
    chance = swap_p_value(first, second, swaps)
    method = f"{result.method}; p-value from swaps of the rankers"
    return replace(result, p_value=chance, adjusted_p_value=chance, method=method)


def _note_on_rare_errors(*rankers: tuple[Sample, Expansion]) -> str:
    """Where a ranker is near perfect by so few errors that others of its kind may be missing."""
    fewest = np.inf
    for sample, found in rankers:
        if found.pairs is not None and found.top is None and found.share > _NEAR_PERFECT:
            spread = sample.spread(found.on_positive, found.on_negative)
            fewest = min(fewest, count_errors(found.share, spread.variance))
    if fewest >= _FEW_ERRORS:
        return ""
    return (
        f"A ranker's errors count as about {fewest:.2g} independent ones, and rare ones that the "
        "sample has missed are not allowed for: equally good rankers of which one misses positives "
        "and the other ranks negatives too high were told apart in up to 15% of simulated samples."
    )


#: The share of pairs in order from which a ranker is near perfect, and errors that are few.
_NEAR_PERFECT, _FEW_ERRORS = 0.9, 5.0


def _compare_over_groups(
    verdict: Verdict,
    a: MetricRequest,
    b: MetricRequest,
    values: tuple[float, float],
    linear: VarianceEstimate,
) -> Comparison:
    """Difference with each group left out in turn; its influences, where groups are too many."""
    (of_a, _), (of_b, _) = statistic_of(a), statistic_of(b)
    spread = spread_over_groups(a.sample, lambda weight: of_a(weight) - of_b(weight))
    method = "each group left out in turn"
    if spread is None or spread.variance <= _NOTHING * linear.variance:  # no group changes a step
        spread, method = linear, "paired influences of the groups"
    return verdict.from_variance(values, spread, method, note_on_groups(a.sample))


def _influences(request: MetricRequest) -> tuple[float, FloatArray, float, Expansion]:
    """Value, influence of each row, the largest difference there could be, and the expansion."""
    sample, value, expansion = request.sample, request.estimate, request.expansion
    assert expansion is not None
    check_size(request.label, value)
    slope = slope_of(expansion.report, expansion.share)
    check_size(request.label, slope)
    influence = slope * sample.on_rows(expansion.on_positive, expansion.on_negative)
    return value, influence, abs(slope), expansion


def swap_p_value(a: MetricRequest, b: MetricRequest, swaps: Swaps) -> float:
    """Two-sided p-value of a difference, from random swaps of the rankers' ranks.

    Ties are broken at random, once for all swaps, and once more the other way round. Each half of
    the pairs in a tie then counts as ranked rightly, and the order of the rows has no part in it.
    """
    rng = np.random.default_rng(a.random_state)
    order = a.sample.table_free_order(b.sample.scores)
    positive, n = a.sample.positive[order], len(order)
    ranks = [rankdata(one.sample.scores[order]) for one in (a, b)]
    # swapped ranks must not tie either: one row keeps its jitter with either ranker
    jitter = rng.permutation(n) / (4 * n)
    tied = any(len(one.sample.ranked.scores) < n for one in (a, b))
    jitters = (jitter, -jitter) if tied else (jitter,)

    def measure(shown: FloatArray) -> FloatArray:
        if swaps.of_places is not None:
            return _by_positive(positive, shown, partial(swaps.of_places, **a.settings))
        assert swaps.of_orders is not None
        return swaps.of_orders(positive[np.argsort(-shown, axis=1)], **a.settings)[:, None]

    def compared(first: FloatArray, second: FloatArray) -> FloatArray:
        parts = [measure(first + moved) - measure(second + moved) for moved in jitters]
        apart = np.sum(parts, axis=0)
        return np.array([np.abs(np.mean(apart, axis=1)), np.var(apart, axis=1)])

    found = [compared(*(one[None, :] for one in ranks))]
    done = 0
    while done < a.n_resamples:
        count = min(a.n_resamples - done, max(1, _CELLS // n))
        swap = rng.random((count, n)) < 0.5
        pair = np.where(swap, ranks[1], ranks[0]), np.where(swap, ranks[0], ranks[1])
        found.append(compared(*pair))
        done += count
    seen, *swapped = _in_errors(*np.concatenate(found, axis=1))
    return (1 + int(np.sum(np.array(swapped) >= seen * (1 - 1e-9)))) / (1 + a.n_resamples)


def _in_errors(gaps: FloatArray, variances: FloatArray) -> FloatArray:
    """Differences in standard errors: of their own variance, and some of the mean of all of them.

    The mean keeps a difference that happens to show hardly any variance from being the largest. By
    simulation of equal rankers and of unequal ones, 5 to 20 positives: with a quarter of it levels
    are held, and with less fewer of the unequal ones are told apart.
    """
    variances = variances + _OF_MEAN * np.mean(variances)
    return np.divide(gaps, np.sqrt(variances), out=gaps.copy(), where=variances > 0)


#: How much of the mean variance of all swaps is added to that of each.
_OF_MEAN = 0.25


def _by_positive(
    positive: NDArray[np.bool_], ranks: FloatArray, of_places: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """What each positive adds to the metric of each list, one list per row."""
    order = np.argsort(-ranks, axis=1)
    held = positive[order]
    places = (1 + np.nonzero(held)[1].reshape(len(ranks), -1)).astype(np.float64)
    number = (np.cumsum(positive) - 1)[order[held]].reshape(places.shape)
    found = np.empty_like(places)
    np.put_along_axis(found, number, of_places(places), axis=1)
    return found
