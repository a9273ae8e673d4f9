"""Is one ranker better than another? Paired differences on the same rows.

For metrics that are sums of gains, such as those at k, two rankers share the labels and differ in
the gains they give to rows. If they are equally good, the labels say nothing about which of two
rows stands higher with which ranker, so that over the rows that they treat differently labels and
gains pair up at random: that is the null distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student

from toprank._numerics import FloatArray
from toprank.inference.bootstrap import compare_resampled, statistic_of
from toprank.inference.by_groups import check_group_support, note_on_groups
from toprank.inference.equal_shares import equal_shares_p_value
from toprank.inference.intervals import check_lists, own_labels, weight_for_lists
from toprank.inference.paired_influences import (
    can_compare_moves,
    compare_influences,
    compare_moves,
    with_swaps,
)
from toprank.inference.real_labels import compare_kernels
from toprank.inference.result import (
    Comparison,
    Comparisons,
    MetricRequest,
    Verdict,
    check_resamples,
    check_size,
)
from toprank.inference.sample import Sample, VarianceEstimate, kish, rows_and_units, sums_by_group
from toprank.inference.shares import check_level, newcombe
from toprank.metrics.curve_expansions import SHARES_OF_PAIRS
from toprank.metrics.metric import Metric, call_label
from toprank.metrics.registry import as_metric
from toprank.pairs import check_scores

Scores = ArrayLike | Mapping[str, ArrayLike] | Sequence[ArrayLike]
#: Up to so many moved rows their signs are flipped.
_FLIPPED = 2000
#: Rows that weights which count rows are written out as, so that tests of rows are those of them.
_UNROLLED = 100_000
#: Digits of gains, which are at most one.
_DIGITS = 12


def compare(
    metric: str | Callable[..., float] | Metric,
    y: ArrayLike,
    s_a: Scores,
    s_b: ArrayLike | None = None,
    *,
    level: float = 0.95,
    method: str = "auto",
    groups: ArrayLike | None = None,
    lists: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    weights: str = "counts",
    label_propensity: ArrayLike | None = None,
    pos_label: Any = None,
    n_resamples: int = 1000,
    random_state: int | np.random.RandomState | None = 0,
    n_jobs: int | None = None,
    **metric_kwargs: Any,
) -> Any:
    """Compare rankers on the same rows by one metric: difference, interval and p-value.

    Parameters
    ----------
    metric : str, callable or Metric
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
    method : {"auto", "delong"}, default="auto"
        "delong": the test of DeLong et al. (1988) as the literature has it, with the normal law
        instead of Student's t, for the AUC and metrics like it. "auto": the best for the metric.
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
        If the input is not usable, or the metric depends on one extreme row, so that no valid
        comparison exists.

    Notes
    -----
    The AUC and metrics like it, partial areas, average precision, the p-norm risk, `bedroc`, `dcg`
    and `aver`, and precisions at a recall are compared by the difference of each row's influence,
    in O(n log n) time and O(n) memory (for the AUC this is DeLong's test). In small samples the
    p-values of partial areas (up to 1,000 rows), of the average precision and of `dcg` and `aver`
    (up to 4,000) come from random swaps of the two rankers' ranks, row by row.
    Metrics at k are compared over the rows that they rank differently: if the rankers are equally
    good, labels fall on those rows at random. The rest is compared by a paired bootstrap:
    `recall_at_precision`, `push_risk` and functions of your own; `dcg` and `aver` over groups and
    where any of the first 30 rows tie; `bedroc` where its discount falls by e within ten rows; a
    precision at a recall over groups, in large ties, and with fewer than 100 positives on either
    side of the threshold or ten negatives above it.

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
        "how": {
            "method": method,
            "n_resamples": n_resamples,
            "random_state": random_state,
            "n_jobs": n_jobs,
        },
    }
    known = as_metric(metric)
    if not known.own_labels:
        known.check_settings(metric_kwargs)
    _check_method(known, method, groups, lists)
    label = call_label(known.name, metric_kwargs)
    results = [
        _pair(
            known,
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


def _check_method(
    metric: Metric, method: str, groups: ArrayLike | None, lists: ArrayLike | None
) -> None:
    """Raise ValueError unless the metric can be compared by this method."""
    if method == "auto":
        return
    if method != "delong":
        raise ValueError(f"Unknown method {method!r}: expected 'auto' or 'delong'.")
    if metric.expansion not in SHARES_OF_PAIRS or groups is not None or lists is not None:
        raise ValueError(
            "DeLong's test is for the AUC and metrics like it, of independent rows: "
            f"compare {metric.name} with method='auto', which also takes groups= and lists=."
        )


def _by_name(s_a: Scores, s_b: ArrayLike | None) -> dict[str, object]:
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
    metric: Metric,
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
    pos_label: object,
    how: dict[str, Any],
) -> Comparison:
    if metric.kernel is not None:
        n = len(check_scores(scores[0]))
        rows = rows_and_units(n, groups, sample_weight, weights, label_propensity)
        return compare_kernels(verdict, y, scores, *rows)
    if lists is not None:
        check_lists(metric, groups)
        weight = weight_for_lists(y, scores[0], sample_weight, label_propensity, pos_label)
        values = [metric.each(y, s, lists, weight, pos_label, **settings) for s in scores]
        positive = Sample.of(y, scores[0], pos_label=pos_label).positive
        ends = metric.ends_over_lists(y, positive, lists, weight, pos_label, settings)
        return compare_lists(verdict, values, ends)
    if metric.own_labels:
        how = {**how, "own_labels": own_labels(y, pos_label)}
    given = sample_weight, groups, weights, label_propensity, pos_label
    samples = [Sample.of(y, s, *given).unrolled(_UNROLLED) for s in scores]
    check_group_support(samples[0], verdict.label)
    a, b = (MetricRequest(metric, settings, sample, verdict.level, **how) for sample in samples)
    return _compare_by_strategy(verdict, a, b)


def _compare_by_strategy(verdict: Verdict, a: MetricRequest, b: MetricRequest) -> Comparison:
    """The comparison by the first of the strategies that the metric has an answer for."""
    metric = a.metric
    if metric.extreme_of(a.settings) is not None:
        raise ValueError(
            f"{verdict.label} depends on one extreme row of each ranking, so that neither the "
            "bootstrap nor a normal limit is valid for a difference. Compare pnorm_risk with a "
            "large p, partial_auc with a small max_fpr, or precision_at instead."
        )
    if metric.gains is not None:
        return compare_gains(verdict, a, b)
    expanded = a.expansion is not None and b.expansion is not None
    if expanded and (metric.curve_point is None or a.sample.groups is None):
        return compare_influences(verdict, a, b)
    found = (compare_moves if can_compare_moves(a, b) else compare_resampled)(verdict, a, b)
    if metric.swaps is None or found.standard_error == 0:
        return found
    swapped = with_swaps(found, a, b)
    # in ties resamples show too little of the spread, and swaps take the rankers for too alike
    chance = max(found.p_value, swapped.p_value)
    if chance > 1 - verdict.level:
        swapped = replace(swapped, low=min(found.low, 0.0), high=max(found.high, 0.0))
    return replace(swapped, p_value=chance, adjusted_p_value=chance)


def compare_gains(verdict: Verdict, a: MetricRequest, b: MetricRequest) -> Comparison:
    """Difference of a metric that is a sum of gains, from the rows ranked differently."""
    shifts = Shifts.between(a, b)
    values = [statistic_of(one)[1] for one in (a, b)]
    check_size(verdict.label, max(map(abs, values)))
    trick = "Boschloo's test of" if shifts.counted else "signs flipped among"
    method = f"{trick} the rows ranked differently"
    error = shifts.error(a.sample)
    if shifts.moved == 0 or (error == 0 and not shifts.counted):
        return verdict.without_spread(values, shifts.trials, method, shifts.largest)
    if shifts.counted:
        ends = shifts.newcombe(verdict.level)
    else:
        freedom = shifts.freedom(a.sample)
        reach = float(student.ppf((1 + verdict.level) / 2, freedom)) * error
        ends = (shifts.difference - reach, shifts.difference + reach)
    # rounding, and weights that the rankers share out differently, must not leave it outside
    difference = values[0] - values[1]
    most = max(shifts.largest, abs(difference))
    ends = (min(max(-most, ends[0]), difference), max(min(most, ends[1]), difference))
    chance = shifts.chance(a.sample, a.n_resamples, a.random_state)
    return verdict.result(values, ends, error, chance, method, note_on_groups(a.sample))


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
        Number of rows that gain anything, with the ranker that has fewer.
    """

    worth: FloatArray
    shift: FloatArray
    scale: float
    counted: bool
    largest: float
    trials: int

    @classmethod
    def between(cls, a: MetricRequest, b: MetricRequest) -> Shifts:
        """Shifts of the gains of one metric under the scores of two samples of the same rows."""
        gains = a.metric.gains
        assert gains is not None
        of_a, of_b = (gains(one.sample.ranked, **one.settings) for one in (a, b))
        sample = a.sample
        gain_a, gain_b = of_a.by_tie[sample.ties], of_b.by_tie[b.sample.ties]
        weight = np.ones(len(sample.scores)) if sample.weight is None else sample.weight
        worth = a.metric.worth_of(sample.positive, a.row_settings)
        # what differs by rounding alone, such as shares of a tie, does not differ
        shift = np.round(weight * (gain_a - gain_b) / np.max(weight), _DIGITS) * np.max(weight)
        whole = bool(np.all(np.isin(shift, (-1.0, 0.0, 1.0))) and np.sum(shift) == 0)
        counted = whole and sample.groups is None and of_a.counted
        largest = of_a.largest
        if largest is None:
            gained = max(float(np.dot(weight, gain)) for gain in (gain_a, gain_b))
            if a.metric.worth is None:
                gained = min(gained, sample.ranked.positives)
            largest = of_a.scale * float(np.ptp(worth)) * gained
        trials = min(int(np.count_nonzero(gain)) for gain in (gain_a, gain_b))
        return cls(worth, shift, of_a.scale, counted, largest, trials)

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
            pulls = sums_by_group(sample.groups, pulls)
        error = float(np.sqrt(np.sum(pulls**2)))
        # of worths that are all the same nothing is left but rounding
        most = float(np.max(np.abs(self.worth))) * float(np.sum(np.abs(self.shift)))
        return self.scale * error if error > 10.0**-_DIGITS * most else 0.0

    def freedom(self, sample: Sample) -> float:
        """Degrees of freedom: of the rows that moved, or of the groups that hold them."""
        if sample.groups is None:
            return max(1.0, self.moved - 1.0)
        held = sums_by_group(sample.groups, np.abs(self.shift))
        holding = (np.count_nonzero(held) + kish(held)) / 2
        return max(1.0, min(holding - 1, sample.group_support.freedom))

    def chance(
        self, sample: Sample, n_resamples: int, random_state: int | np.random.Generator | None
    ) -> float:
        """Two-sided p-value of equally good rankers, over the rows that moved.

        Counts take Boschloo's exact test, other gains random signs; many rows, or groups, take the
        normal limit.
        """
        error = self.error(sample)
        if self.moved == 0 or error == 0:
            return 1.0
        if self.counted:
            hits_a = int(np.sum(self.worth[self.shift > 0]))
            hits = hits_a + int(np.sum(self.worth[self.shift < 0]))
            return equal_shares_p_value(hits_a, hits - hits_a, self.moved // 2)
        if sample.groups is None and self.moved <= _FLIPPED:
            return self._sign_flip_p_value(n_resamples, np.random.default_rng(random_state))
        freedom = self.freedom(sample)
        return float(2 * student.sf(abs(self.difference) / error, freedom))

    def _sign_flip_p_value(self, n_resamples: int, rng: np.random.Generator) -> float:
        """p-value from random signs of the shifts: alike rankers may trade any row.

        Shifts sum to zero, so that any constant may be taken off the worths; with the median most
        rows drop out, and those that are left are few and far from it.
        """
        rows = np.flatnonzero(self.shift)
        pulls = self.shift[rows] * (self.worth[rows] - np.median(self.worth[rows]))
        seen = abs(float(np.sum(pulls)))
        pulls = np.sort(np.abs(pulls[pulls != 0]))  # whatever the order of rows and rankers
        signs = rng.integers(0, 2, (n_resamples, len(pulls)), dtype=np.int8) * 2.0 - 1.0
        reached = np.count_nonzero(np.abs(signs @ pulls) >= seen * (1 - 1e-9))
        return (1 + int(reached)) / (1 + n_resamples)

    def _pulls(self) -> FloatArray:
        """What each row adds to the difference, with the worths centred over the moved rows."""
        squares = self.shift**2
        total = float(np.sum(squares))
        if total == 0:
            return np.zeros(len(self.shift))
        return self.shift * (self.worth - float(np.dot(squares, self.worth)) / total)


def compare_lists(
    verdict: Verdict, values: list[FloatArray], bounds: tuple[float, float]
) -> Comparison:
    """Paired differences of the values of each list, of which these are the least and the most."""
    differences = values[0] - values[1]
    count = len(differences)
    if count < 2:
        raise ValueError(f"lists holds {count} list with a positive; a comparison needs two.")
    means = [float(np.mean(one)) for one in values]
    method = f"paired Student's t over {count} lists"
    spread = VarianceEstimate(float(np.var(differences, ddof=1)) / count, count - 1.0)
    if spread.variance <= 1e-24 * max(1.0, *(mean**2 for mean in means)):
        largest = bounds[1] - bounds[0] if np.all(np.isfinite(bounds)) else None
        return verdict.without_spread(means, count, method, largest)
    return verdict.from_variance(means, spread, method)
