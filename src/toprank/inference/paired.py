"""Is one ranker better than another? Paired differences on the same rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from toprank._numerics import FloatArray
from toprank.inference.by_lists import check_lists, is_share, per_list, resolved_weight
from toprank.inference.cuts import tpr_rows
from toprank.inference.extremes import is_extreme
from toprank.inference.gains import SUMS_OF_GAINS, Gains
from toprank.inference.influence import EXPANSIONS
from toprank.inference.request import (
    Request,
    call_label,
    check_resamples,
    check_settings,
    check_size,
    named,
    without_lists,
)
from toprank.inference.resampled import callable_statistic, own_labels, statistic_of
from toprank.inference.result import Comparison, Comparisons
from toprank.inference.sample import Pulls, Sample, Spread, combined, rows_and_units, sums_in
from toprank.inference.shares import slope_of
from toprank.inference.swaps import swap_p_value, swappable
from toprank.inference.u_statistics import check_level, ranking_projection
from toprank.inference.verdict import Verdict
from toprank.metrics._inputs import check_scores
from toprank.metrics.registry import METRICS, get_metric

Scores = ArrayLike | Mapping[str, ArrayLike] | Sequence[ArrayLike]


def compare(
    metric: str | Callable[..., float],
    y: ArrayLike,
    s_a: Scores,
    s_b: ArrayLike | None = None,
    *,
    level: float = 0.95,
    groups: ArrayLike | None = None,
    lists: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    weights: str = "counts",
    label_propensity: ArrayLike | None = None,
    pos_label: Any = None,
    n_resamples: int = 1000,
    random_state: Any = 0,
    n_jobs: int | None = None,
    **metric_kwargs: Any,
) -> Any:
    """Compare rankers on the same rows by one metric: difference, interval and p-value.

    Parameters
    ----------
    metric : str or callable
        A name of `toprank.metrics`, or a function ``metric(y, s, ...)``.
    y : array-like of shape (n,)
        Labels.
    s_a : array-like of shape (n,), or mapping of names to such arrays
        Scores of ranker a; or scores of two and more rankers by name, and no `s_b`: every pair is
        then compared, with Holm's correction of the p-values.
    s_b : array-like of shape (n,), optional
        Scores of ranker b.
    level : float, default=0.95
        Confidence level of each interval.
    groups, lists, sample_weight, weights, label_propensity, pos_label
        As in `interval`.
    n_resamples, random_state, n_jobs
        As in `interval`, for metrics compared by the bootstrap.
    **metric_kwargs
        Parameters of the metric, such as ``k=100``.

    Returns
    -------
    Comparison or Comparisons
        ``.difference .low .high .p_value`` of a minus b; for several rankers, one for each pair.

    Raises
    ------
    ValueError
        If the input is not usable, or the metric hangs on one extreme row, so that no valid
        comparison exists.

    Notes
    -----
    The AUC and its kin, partial areas, average precision and the p-norm risk are compared by the
    difference of each row's influence, in O(n log n) time and O(n) memory (for the AUC this is
    DeLong's test). In small samples the p-values of partial areas (up to 1,000 rows) and of the
    average precision (up to 4,000) come from random swaps of the two rankers' ranks, row by row.
    Metrics at k are compared over the rows that stand differently: if the rankers are equally good,
    labels fall on those rows at random. The rest is compared by a paired bootstrap.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.inference import compare
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], [900, 100])
    >>> good, poor = rng.normal(size=(2, 1000)) + np.outer([2.0, 1.0], y)
    >>> result = compare("auc", y, good, poor)
    >>> result.difference > 0, result.p_value < 0.001
    (True, True)
    >>> pairs = compare("auc", y, {"good": good, "poor": poor, "same": poor + 1})
    >>> pairs["poor", "same"].adjusted_p_value
    1.0
    """
    check_level(level)
    check_resamples(n_resamples)
    scores = _by_name(s_a, s_b)
    common = {
        "groups": groups,
        "lists": lists,
        "sample_weight": sample_weight,
        "weights": weights,
        "label_propensity": label_propensity,
        "pos_label": pos_label,
        "options": {"n_resamples": n_resamples, "random_state": random_state, "n_jobs": n_jobs},
    }
    metric, name = named(metric)
    if isinstance(metric, str):
        check_settings(get_metric(name), metric_kwargs)
    label = call_label(name, metric_kwargs)
    results = [
        _pair(
            metric,
            Verdict((a, b), label, level),
            y,
            (scores[a], scores[b]),
            metric_kwargs,
            **common,
        )
        for a, b in combinations(scores, 2)
    ]
    if s_b is not None:
        return results[0]
    return Comparisons(tuple(_holm(results)))


def _by_name(s_a: Scores, s_b: ArrayLike | None) -> dict[str, Any]:
    if s_b is not None:
        return {"a": s_a, "b": s_b}
    if not isinstance(s_a, Mapping):
        raise ValueError(
            "There is nothing to compare with: give the scores of a second ranker as s_b, or all "
            "scores as a mapping {name: scores}."
        )
    if len(s_a) < 2:
        raise ValueError(f"There are scores of {len(s_a)} ranker(s), expected at least two.")
    return {str(name): scores for name, scores in s_a.items()}


def _holm(results: list[Comparison]) -> list[Comparison]:
    """Holm's step-down correction: the smallest of m p-values times m, the next times m - 1, ..."""
    order = np.argsort([result.p_value for result in results], kind="stable")
    adjusted, largest = list(results), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(results) - rank) * results[place].p_value))
        adjusted[place] = replace(results[place], adjusted_p_value=largest)
    return adjusted


def _pair(
    metric: str | Callable[..., float],
    verdict: Verdict,
    y: ArrayLike,
    scores: tuple[Any, Any],
    settings: dict[str, Any],
    *,
    groups: ArrayLike | None,
    lists: ArrayLike | None,
    sample_weight: ArrayLike | None,
    weights: str,
    label_propensity: ArrayLike | None,
    pos_label: Any,
    options: dict[str, Any],
) -> Comparison:
    if metric == "ranking_risk":
        rows = rows_and_units(
            len(check_scores(scores[0])), groups, sample_weight, weights, label_propensity
        )
        return _ranking_risks(verdict, y, scores, *rows)
    if lists is not None:
        check_lists(verdict.label if callable(metric) else metric, groups, "auto")
        weight = resolved_weight(y, scores[0], sample_weight, label_propensity, pos_label)
        values = [per_list(str(metric), y, s, lists, weight, pos_label, settings) for s in scores]
        return _of_lists(verdict, values, str(metric))
    samples = [
        Sample.of(y, s, sample_weight, groups, weights, label_propensity, pos_label) for s in scores
    ]
    name = str(metric) if isinstance(metric, str) else verdict.label
    requests = [Request(name, settings, one, verdict.level, "auto", **options) for one in samples]
    if not isinstance(metric, str):
        labels = own_labels(y, pos_label)
        statistics = [callable_statistic(one, metric, labels) for one in requests]
        return _bootstrapped(verdict, requests[0], statistics)
    return _planned(verdict, requests)


def _planned(verdict: Verdict, requests: list[Request]) -> Comparison:
    name, settings = requests[0].name, requests[0].settings
    maximum = settings.get("p") == np.inf or settings.get("price") == "max"
    if name == "ranking_margin" or maximum or is_extreme(name, settings):
        raise ValueError(
            f"{verdict.label} hangs on one extreme row of each ranking, so that neither the "
            "bootstrap nor a normal limit is valid for a difference. Compare pnorm_risk with a "
            "large p, partial_auc with a small max_fpr, or precision_at instead."
        )
    if name in SUMS_OF_GAINS:
        return _by_gains(verdict, requests)
    if name in EXPANSIONS or name == "tpr_at_fpr":
        return _by_influence(verdict, requests)
    return _bootstrapped(verdict, requests[0], [statistic_of(one) for one in requests])


def _by_influence(verdict: Verdict, requests: list[Request]) -> Comparison:
    """Differences of smooth metrics, from the difference of each row's influence."""
    (a, rows_a, largest), (b, rows_b, _) = (_rows(request) for request in requests)
    if not (np.isfinite(a) and np.isfinite(b)):
        raise ValueError(f"{verdict.label} is {a:g} and {b:g}; a difference needs finite values.")
    apart = rows_a - rows_b
    size = max(1.0, float(np.max(np.abs(apart))))  # fourth powers of a large metric overflow
    spread = requests[0].sample.spread_of_rows(apart / size)
    spread = replace(spread, variance=spread.variance * size**2)
    method = "paired influences of the rows"
    if not np.isfinite(spread.variance):
        raise ValueError(
            "One class has a single row, which says nothing of how far such rows spread: a "
            "comparison needs at least two positives and two negatives."
        )
    if spread.variance <= 1e-24 * max(1.0, a**2, b**2):
        return verdict.without_spread((a, b), _trials(requests[0]), method, largest)
    result = verdict.decided((a, b), spread, method)
    request, other = requests
    if not swappable(request.name, request.sample):
        return result
    how = (request.n_resamples, request.random_state)
    chance = swap_p_value(request.name, request.settings, request.sample, other.sample, a - b, *how)
    method += "; p-value from swaps of the rankers"
    return replace(result, p_value=chance, adjusted_p_value=chance, method=method)


def _rows(request: Request) -> tuple[float, FloatArray, float]:
    """Value, influence of each row, and the largest difference there could be."""
    sample, settings = request.sample, request.settings
    value = METRICS[request.name].of(sample.ranked, without_lists(), **settings)
    check_size(request.label, value)
    if request.name == "tpr_at_fpr":
        return value, tpr_rows(sample, settings["fpr"]), 1.0
    expansion = EXPANSIONS[request.name](sample.ranked, **settings)
    slope = slope_of(expansion.report, expansion.share)
    check_size(request.label, slope)
    influence = slope * sample.on_rows(expansion.on_positive, expansion.on_negative)
    return value, influence, abs(slope)


def _trials(request: Request) -> float:
    """Independent pairs of a positive and a negative; of two groups, where groups are drawn."""
    groups = request.sample.groups
    return float(min(request.sample.units) if groups is None else (int(groups.max()) + 1) // 2)


def _by_gains(verdict: Verdict, requests: list[Request]) -> Comparison:
    """Differences of metrics at k, from the rows that stand differently."""
    request = requests[0]
    gains = Gains.of(request.name, request.sample, requests[1].sample, request.settings)
    values = [statistic_of(one)[1] for one in requests]
    check_size(verdict.label, max(map(abs, values)))
    trick = "labels permuted" if gains.counted else "signs flipped"
    method = f"{trick} over the rows that stand differently"
    error = gains.error(request.sample)
    if gains.moved == 0 or (error == 0 and not gains.counted):
        return verdict.without_spread(values, gains.trials, method, gains.largest)
    if gains.counted:
        ends = gains.newcombe(verdict.level)
    else:
        reach = float(student.ppf((1 + verdict.level) / 2, max(1, gains.moved - 1))) * error
        ends = (gains.difference - reach, gains.difference + reach)
    most = gains.largest
    ends = (max(-most, ends[0]), min(most, ends[1]))
    chance = gains.chance(request.sample, request.n_resamples, request.random_state)
    return verdict.result(values, ends, error, chance, method)


def _bootstrapped(
    verdict: Verdict,
    request: Request,
    statistics: Sequence[tuple[Callable[[FloatArray], float], float]],
) -> Comparison:
    """Differences of the other metrics, over resamples that both rankers share."""
    (of_a, a), (of_b, b) = statistics
    values = request.replicates(lambda weight: of_a(weight) - of_b(weight))
    method = f"paired bootstrap ({request.scheme}, {request.n_resamples})"
    if not np.all(np.isfinite(values)):
        raise ValueError(f"{verdict.label} is not finite in some resamples.")
    check_size(verdict.label, max(abs(a), abs(b), float(np.max(np.abs(values)))))
    spread = Spread(float(np.var(values, ddof=1)), request.freedom())
    if spread.variance <= 1e-24 * max(a**2, b**2):
        largest = 1.0 if request.name == "bedroc" else None
        return verdict.without_spread((a, b), _trials(request), method, largest)
    return verdict.decided((a, b), spread, method)


def _of_lists(verdict: Verdict, values: list[FloatArray], name: str) -> Comparison:
    """Paired differences of the values of each list."""
    differences = values[0] - values[1]
    count = len(differences)
    if count < 2:
        raise ValueError(f"lists holds {count} list with a positive; a comparison needs two.")
    means = [float(np.mean(one)) for one in values]
    method = f"paired Student's t over {count} lists"
    spread = Spread(float(np.var(differences, ddof=1)) / count, count - 1.0)
    if spread.variance <= 1e-24 * max(1.0, *(mean**2 for mean in means)):
        return verdict.without_spread(means, count, method, 1.0 if is_share(name) else None)
    return verdict.decided(means, spread, method)


def _ranking_risks(
    verdict: Verdict,
    y: ArrayLike,
    scores: tuple[Any, Any],
    weight: FloatArray,
    units: NDArray[np.intp] | None,
) -> Comparison:
    """Ranking risks of real labels, from the difference of the projections of each row."""
    (a, of_a), (b, of_b) = (ranking_projection(y, s, weight) for s in scores)
    total = float(np.sum(weight))
    pulls = 2 * (of_a - of_b - (a - b)) / total
    if units is None:
        spread = combined(Pulls(pulls[weight > 0], weight[weight > 0]))
    else:
        spread = combined(Pulls(sums_in(units, weight * pulls), None))
    method = "paired projections of the rows"
    if spread.variance <= 1e-24:
        drawn = total if units is None else len(np.unique(units))
        return verdict.without_spread((a, b), max(1.0, drawn // 2), method, 1.0)
    return verdict.decided((a, b), spread, method)
