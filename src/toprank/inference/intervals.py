"""Confidence intervals for every metric of a ranking.

Of shares of trials: of the rows at a cut, and of the positives above every negative. The ordinary
bootstrap is inconsistent for a maximum: the highest row of a resample is the highest of the sample
with a chance that does not fade. Given the negatives, however, each positive is above them all or
not, independently of the others.

Of means over many lists, such as days or queries: the lists are the sample. Of the list of a block
source: rows that share a bin are tied, and a note says how far that may move the estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from toprank._arrays import AnyArray
from toprank._columns import labels_column
from toprank._numerics import FloatArray
from toprank.inference.bootstrap import bootstrap_interval, replicates, statistic_of
from toprank.inference.by_groups import check_group_support, note_on_groups, note_on_weights
from toprank.inference.curve_points import (
    BOTH_CLASSES,
    best_precision_ends,
    best_recall_ends,
    tpr_ends,
)
from toprank.inference.hidden_positives import interval_with_hidden, refuse_beside_unlabelled
from toprank.inference.influence import interval_from_expansion
from toprank.inference.real_labels import interval_of_kernel
from toprank.inference.result import (
    METHODS,
    Interval,
    MetricRequest,
    check_resamples,
    check_size,
)
from toprank.inference.sample import Sample, VarianceEstimate, kish, rows_and_units
from toprank.inference.shares import (
    check_level,
    clopper_pearson,
    ends_at_cut,
    interval_around,
    student_reach,
)
from toprank.metrics.at_cut import Cut, effective_trials, smooth_share
from toprank.metrics.block_list import BlockList
from toprank.metrics.hidden import OpenLabels
from toprank.metrics.metric import CurvePoint, Metric, call_label
from toprank.metrics.registry import METRICS, as_metric

GIVEN_NEGATIVES = "the expected value for new positives, against the negatives of this list"
OTHER_LISTS = "the mean over all lists drawn like these"
#: Values of lists that differ by this part of them are the same but for rounding.
_ROUNDING = 1e-12


def interval(
    metric: str | Callable[..., float] | Metric,
    y: ArrayLike,
    s: ArrayLike,
    *,
    level: float = 0.95,
    method: str = "auto",
    groups: ArrayLike | None = None,
    lists: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    weights: str = "counts",
    label_propensity: ArrayLike | None = None,
    unlabelled: object = None,
    hidden: float | tuple[float, float] | None = None,
    pos_label: object = None,
    n_resamples: int = 1000,
    random_state: int | np.random.Generator | None = 0,
    n_jobs: int | None = None,
    **metric_kwargs: object,
) -> Interval:
    """Confidence interval for a metric of any ranker's scores.

    Parameters
    ----------
    metric : str, callable or Metric
        A name of `toprank.metrics`, or a function ``metric(y, s, ...)``, which is called on
        resampled rows, with ``sample_weight=`` if it takes that. Of a function nothing is known;
        to keep the interval within the values it can have, see `toprank.metrics.register`.
    y, s : array-like of shape (n,)
        Labels and scores, as the metric takes them.
    level : float, default=0.95
        Confidence level.
    method : {"auto", "score", "projection", "delong", "bootstrap", "exact"}, default="auto"
        How. "score", for shares of pairs such as the AUC: every value that the sample does not
        contradict (Newcombe 2006, with DeLong's variance where that is larger). "projection": the
        Hoeffding projection of a U-statistic (for the AUC, DeLong's variance) or the influence of
        each row, on the logit scale. "delong": DeLong's variance and the normal law, for
        comparison with the literature; too narrow near 1 and with few positives. "bootstrap":
        resampled weights of one sorted list. "exact": shares of independent trials. "auto" takes
        the best one for the metric; not every metric has every method.
    groups : array-like of shape (n,), optional
        Clusters: rows of one group may depend on each other (visits of a patient, lines of a
        claim). The metric is still of all rows as one list.
    lists : array-like of shape (n,), optional
        For metrics at k: each value is a list of its own (a day, a query). The metric is
        the mean over the lists, as with ``groups=`` of the metric, and the lists are the sample.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows; zero is an absent row.
    weights : {"counts", "sampling"}, default="counts"
        What a weight is. "counts": so many independent rows. "sampling": one row that stands
        for so many, as inverse propensities do.
    label_propensity : float or array-like of shape (n,), optional
        Probability that the row's label was seen; rows are then weighted by its inverse, as
        "sampling" weights.
    unlabelled : value or array-like of bool of shape (n,), optional
        The label of rows whose label is not known (NaN for missing labels), or which rows those
        are: the metric is then corrected for the positives among them, as `unlabelled_interval`
        does it. For `auc`, `precision_at`, `recall_at`, `pnorm_risk` and `push_risk`.
    hidden : float or (float, float), optional
        The share of positives among them, or the least and the largest it may be; estimated by
        `hidden_share` if not given. Without `unlabelled` no row is known to be negative.
    pos_label : label, optional
        The positive class; by default the larger of the two labels. A function of your own then
        sees labels 1 and 0.
    n_resamples : int, default=1000
        Resamples of the bootstrap.
    random_state : int, Generator or None, default=0
        Seed of the bootstrap.
    n_jobs : int, optional
        Threads of the bootstrap; the result does not depend on it.
    **metric_kwargs
        Parameters of the metric, such as ``k=100`` or ``max_fpr=0.1``.

    Returns
    -------
    Interval
        ``.estimate .low .high .standard_error .method .estimand .note``; prints as a sentence.

    Raises
    ------
    ValueError
        If the input is not usable, or no valid method exists: the message says why.

    Notes
    -----
    Positives and negatives count as drawn apart, in fixed numbers; for `ranking_risk` and the
    metrics at k the rows are drawn together. The plug-in values of `pnorm_risk` and
    `average_precision` are biased in small samples; their intervals are centred where the bias is
    taken off (``.bias``). `positives_at_top` and `max_height` hang on the one highest negative,
    where the bootstrap fails; their intervals take the negatives as given, and are exact for new
    positives. `ranking_margin` has no interval.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.inference import interval
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], [900, 100])
    >>> s = rng.normal(size=1000) + y
    >>> print(interval("auc", y, s))
    auc = 0.7122, 95% interval 0.6564 to 0.7608 (score interval, Hoeffding projection (DeLong))
    >>> print(interval("precision_at", y, s, k=50))
    precision_at(k=50) = 0.3, 95% interval 0.1785 to 0.4463 (Clopper-Pearson, effective trials)
    """
    check_level(level)
    check_resamples(n_resamples)
    if method not in METHODS:
        raise ValueError(f"Unknown method {method!r}: expected one of {list(METHODS)}.")
    known = as_metric(metric)
    if not known.own_labels:
        known.check_settings(metric_kwargs)
    if unlabelled is not None or hidden is not None:
        refuse_beside_unlabelled(groups, lists, sample_weight, label_propensity)
        naive: Any = partial(interval, metric, method=method, **metric_kwargs)  # type: ignore[arg-type]
        open_rows = OpenLabels.read(y, s, unlabelled, pos_label)
        drawn_by = (n_resamples, random_state)
        return interval_with_hidden(
            metric, open_rows, hidden, level, naive, drawn_by, metric_kwargs
        )
    if known.kernel is not None:
        rows: dict[str, Any] = {
            "sample_weight": sample_weight,
            "label_propensity": label_propensity,
        }
        drawn = rows_and_units(len(np.asarray(s)), groups, weights=weights, **rows)
        return interval_of_kernel(known, y, s, *drawn, level, method, **rows)
    if lists is not None:
        check_lists(known, groups, method)
        weight = weight_for_lists(y, s, sample_weight, label_propensity, pos_label)
        values = known.each(y, s, lists, weight, pos_label, **metric_kwargs)
        sample = Sample.of(y, s, pos_label=pos_label)
        ends = known.ends_over_lists(y, sample.positive, lists, weight, pos_label, metric_kwargs)
        return interval_over_lists(MetricRequest(known, metric_kwargs, sample, level), values, ends)
    sample = Sample.of(y, s, sample_weight, groups, weights, label_propensity, pos_label)
    check_group_support(sample, call_label(known.name, metric_kwargs))
    resampling = (n_resamples, random_state, n_jobs)
    labels = own_labels(y, pos_label) if known.own_labels else None
    found = _by_strategy(
        MetricRequest(known, metric_kwargs, sample, level, method, *resampling, labels)
    )
    return found if label_propensity is None else _with_effective_rows(found, sample)


def _with_effective_rows(found: Interval, sample: Sample) -> Interval:
    """The interval, its note saying how many rows the weighted ones count as."""
    weight = np.ones(len(sample.scores)) if sample.weight is None else sample.weight
    rows = kish(weight)
    said = f"By their propensities {len(weight)} rows count as {rows:.4g}."
    return replace(found, note=f"{found.note} {said}".strip())


def own_labels(y: ArrayLike, pos_label: object) -> AnyArray:
    """The labels as a caller's function sees them: 1 and 0 where a positive class is named."""
    labels = labels_column("y", y)
    return np.asarray(labels if pos_label is None else (labels == pos_label).astype(np.intp))


def _by_strategy(request: MetricRequest) -> Interval:
    """The interval by the first of the strategies that the metric has an answer for."""
    metric, settings, sample = request.metric, request.settings, request.sample
    extreme = metric.extreme_of(settings)
    if extreme is not None and extreme.report is not None:
        return interval_given_negatives(request, extreme.report)
    if extreme is not None:
        raise ValueError(
            f"{request.label} has no valid interval: it is an extreme of the sample, and a larger "
            f"sample has another one. {extreme.advice}"
        )
    cut = None if metric.cut is None else metric.cut(sample, **settings)
    if cut is not None:
        return interval_at_cut(request, cut)
    if metric.curve_point is not None:
        return interval_of_curve_point(request, metric.curve_point)
    if request.expansion is not None:
        return interval_from_expansion(request, request.expansion)
    if metric.pulls is not None and sample.groups is None and request.method != "bootstrap":
        return interval_of_pulls(request, metric.pulls)
    return bootstrap_interval(request)


def interval_of_pulls(request: MetricRequest, pulls: Callable[..., FloatArray]) -> Interval:
    """Interval of a sum of the worth of rows above a cut, from how far each row moves it.

    Amounts with long tails leave few degrees of freedom. Few rows of a class are resampled, and so
    are rows that show no spread, where the bootstrap says what that means.
    """
    sample, settings = request.sample, request.row_settings
    request.check_method("projection", "bootstrap")
    estimate = statistic_of(request)[1]
    check_size(request.label, estimate)
    weight = np.ones(len(sample.scores)) if sample.weight is None else sample.weight
    worth = request.metric.worth_of(sample.positive, settings)
    if min(sample.units) < _FEW_TO_PULL:
        return bootstrap_interval(request)
    spread = sample.spread_of_sum(pulls(sample.ranked, sample.ties, weight, worth, **settings))
    if spread.variance <= (_ROUNDING * estimate) ** 2:
        return bootstrap_interval(request)
    error = float(np.sqrt(spread.variance))
    reach = student_reach(spread.freedom, request.level) * error
    ends = (estimate - reach, estimate + reach)
    note = note_on_weights(sample)
    return request.result(estimate, ends, error, "influence of the rows", note=note)


#: Rows of a class below which a sum of amounts is resampled: of five positives in 500 rows, two of
#: them above the cut, intervals by pulls held the true value in 71% of simulated samples, resampled
#: ones in 77%; from twenty on by pulls in as many or more.
_FEW_TO_PULL = 10


def interval_of_curve_point(request: MetricRequest, kind: CurvePoint) -> Interval:
    """Interval of a point of the precision-recall curve, from the band around the curve.

    A resample has few values of such a point, and near the top of the list often just one. The
    standard error comes from the rows' influences where there are some, and else from resamples.
    """
    if request.sample.groups is not None or request.method == "bootstrap":
        return bootstrap_interval(request)
    request.check_method("bootstrap")
    at = float(*request.settings.values())
    reads = {CurvePoint.PRECISION: best_precision_ends, CurvePoint.RECALL: best_recall_ends}
    low, high = reads[kind](request.sample, at, request.level)
    estimate = request.estimate
    ends = (min(low, estimate), max(high, estimate))
    expansion = request.expansion
    if expansion is None:
        error = bootstrap_interval(request).standard_error
    else:
        spread = request.sample.spread(expansion.on_positive, expansion.on_negative)
        error = float(np.sqrt(spread.variance))
    return request.result(estimate, ends, error, BOTH_CLASSES)


def interval_at_cut(request: MetricRequest, cut: Cut) -> Interval:
    """Interval of a share at a cut of the list."""
    sample, method = request.sample, "Clopper-Pearson, effective trials"
    trials, variance = cut.trials, cut.variance
    request.check_method("exact", "bootstrap")
    statistic, estimate = statistic_of(request)
    if (sample.groups is not None or request.method == "bootstrap") and not cut.is_certain:
        variance = float(np.var(replicates(request, statistic) / cut.scale, ddof=1))
        trials = effective_trials(smooth_share(cut.share * trials, trials), variance, trials)
        trials *= allowance_for_groups(sample, request.level, cut.of_rows)
        method = f"Clopper-Pearson, trials from a bootstrap ({request.scheme})"
    ends = ends_at_cut(replace(cut, trials=trials), request.level)
    low, high = (float(end) for end in ends)
    if cut.fpr is not None and sample.groups is None and request.method != "bootstrap":
        method = BOTH_CLASSES
        low, high = map(float, tpr_ends(sample, cut.fpr, cut.share, request.level))
    return request.result(
        estimate,
        (cut.report(low), cut.report(high)),
        abs(cut.scale) * float(np.sqrt(variance)),
        method,
        note=note_on_groups(sample, cut.of_rows),
    )


def allowance_for_groups(sample: Sample, level: float, of_rows: bool = False) -> float:
    """What trials over few groups are worth: the variance of so few is itself uncertain.

    The square of the normal quantile over Student's, of Korn & Graubard (1998). Every group tells
    of the rows above a cut, as there; of positives only those that hold some do.
    """
    if sample.groups is None:
        return 1.0
    support = sample.group_support
    freedom = support.count - 1 if of_rows else support.freedom
    normal = -float(ndtri((1 - level) / 2))
    return (normal / student_reach(freedom, level)) ** 2


def interval_given_negatives(
    request: MetricRequest, report: Callable[[float, float], float]
) -> Interval:
    """Interval of a metric that the highest negative decides: positives are the trials.

    `report` gives the metric from the share of positives above every negative, and the weight of
    all positives.
    """
    sample = request.sample
    request.check_method("exact")
    above, trials, variance = _share_above_negatives(sample)
    trials *= allowance_for_groups(sample, request.level)
    low, high = clopper_pearson(above, trials, request.level)
    total = sample.ranked.positives
    return request.result(
        request.estimate,
        (report(low, total), report(high, total)),
        abs(report(1.0, total) - report(0.0, total)) * float(np.sqrt(variance)),
        "Clopper-Pearson, given the negatives",
        GIVEN_NEGATIVES,
        note=(
            f"The highest negative alone decides {request.metric.name}, where the ordinary "
            "bootstrap is inconsistent. Another sample of negatives has another highest one, which "
            "this interval does not account for."
        ),
    )


def _share_above_negatives(sample: Sample) -> tuple[float, float, float]:
    """Share of positives above every negative, with its trials and variance."""
    ranked = sample.ranked
    beaten = np.arange(len(ranked.scores)) >= ranked.first_negative
    share = float(ranked.found[ranked.first_negative] / ranked.positives)
    trials = sample.units[0]
    inner = smooth_share(share * trials, trials)
    variance = inner * (1 - inner) / trials
    if sample.groups is not None:
        spread = sample.spread((~beaten).astype(np.float64), np.zeros(len(beaten)))
        variance = max(variance, spread.variance)
    return share, effective_trials(inner, variance, trials), variance


def check_lists(metric: Metric, groups: ArrayLike | None, method: str = "auto") -> None:
    """Raise ValueError where a mean over lists makes no sense."""
    if not metric.takes_lists:
        takers = [other.name for other in METRICS.values() if other.takes_lists]
        raise ValueError(
            f"{metric.name} is not a mean over lists; lists= is for {takers}. For rows that depend "
            "on each other use groups=."
        )
    if groups is not None:
        raise ValueError("Give lists= or groups=, not both: the lists are what is drawn.")
    if method not in ("auto", "projection"):
        raise ValueError(f"A mean over lists has no interval by method={method!r}; use 'auto'.")


def weight_for_lists(
    y: ArrayLike,
    s: ArrayLike,
    sample_weight: ArrayLike | None,
    label_propensity: ArrayLike | None,
    pos_label: object,
) -> FloatArray | None:
    """Weights of all rows, propensities included; None means one each."""
    sample = Sample.of(y, s, sample_weight, None, "counts", label_propensity, pos_label)
    if sample.weight is None:
        return None
    weight = np.zeros(len(np.asarray(s)))
    weight[sample.present] = sample.weight
    return weight


def interval_over_lists(
    request: MetricRequest, values: FloatArray, bounds: tuple[float, float]
) -> Interval:
    """Interval for the mean of a metric from its value in each list: the lists are independent.

    `bounds` are the smallest and the largest value that a list can have.
    """
    estimate = float(np.mean(values))
    method, note = f"Student's t over {len(values)} lists", ""
    if len(values) < 2:
        raise ValueError(
            f"lists holds {len(values)} list with a positive; an interval over lists needs two."
        )
    spread = VarianceEstimate(float(np.var(values, ddof=1)) / len(values), len(values) - 1.0)
    error = float(np.sqrt(spread.variance))
    lowest, highest = bounds
    span = highest - lowest
    share = min(max((estimate - lowest) / span, 0.0), 1.0) if 0 < span < np.inf else np.nan
    if error <= _ROUNDING * abs(estimate) and np.isfinite(share):
        low, high = clopper_pearson(share, len(values), request.level)
        ends = (lowest + span * low, lowest + span * high)
        note = "Every list has the same value; the interval is that of as many trials that agree."
    elif 0 < share < 1:
        known = replace(spread, variance=spread.variance / span**2)
        low, high = interval_around(share, known, request.level)
        ends = (lowest + span * low, lowest + span * high)
        method += ", logit scale"
    else:
        reach = student_reach(spread.freedom, request.level) * error
        ends = (max(lowest, estimate - reach), estimate + reach)
        if error == 0:
            note = "Every list has the same value, so the sample shows no spread."
    return request.result(estimate, ends, error, method, OTHER_LISTS, note=note)


@dataclass(frozen=True)
class BlockScores(BlockList):
    """The ranked list of a block source, for metrics and intervals.

    ``y``, ``scores`` and ``weight`` go into every function of `toprank.metrics`, and into
    `toprank.inference.interval`: ``auc(found.y, found.scores, sample_weight=found.weight)``. The
    methods do that and say how exact the answer is. Rows of equal score and class are one row of
    their summed weight, so that weights count independent rows.

    The attributes are those of `toprank.metrics.block_list.BlockList`.
    """

    def interval(
        self, metric: str | Callable[..., float], *, level: float = 0.95, **how: Any
    ) -> Interval:
        """Return a confidence interval for a metric; see `toprank.inference.interval`.

        Parameters
        ----------
        metric : str or callable
            As in `toprank.inference.interval`.
        level : float, default=0.95
            Confidence level.
        **how
            ``method``, ``n_resamples``, ``random_state``, ``n_jobs``, and parameters of the metric
            such as ``k=100``. What belongs to single rows (``groups``, ``lists``,
            ``weights="sampling"``) is not known here.

        Returns
        -------
        Interval
            Its ``note`` says how far the bins may move the estimate, where they may.
        """
        known = ("groups", "lists", "weights", "sample_weight", "label_propensity", "pos_label")
        refused = [name for name in known if name in how]
        if refused:
            raise TypeError(
                f"{refused[0]} belongs to single rows, which the list of a block source no longer "
                "has. Use toprank.inference.interval on gathered scores."
            )
        found = interval(metric, self.y, self.scores, sample_weight=self.weight, level=level, **how)
        notes = [note for note in (found.note, self._note_on_bins(metric, how)) if note]
        return replace(found, note=" ".join(notes))

    def _note_on_bins(self, metric: object, how: Mapping[str, object]) -> str:
        if self.exact:
            return ""
        if metric not in METRICS:
            return "Rows below the top are tied in bins; for this metric there is no bound on it."
        options = ("method", "n_resamples", "random_state", "n_jobs")
        found = self.metric(metric, **{key: how[key] for key in how if key not in options})
        if found.exact:
            return "The bins below the top have no part in the estimate."
        return f"Rows below the top are tied in bins: the estimate is within {found.bound:.2g}."
