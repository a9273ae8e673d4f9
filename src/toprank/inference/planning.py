"""How many rows to label before a measurement is worth making.

`sample_size` answers for one ranker's interval and `comparison_size` for the difference of two;
`expected_half_width` and `comparison_power` are their inverses. The AUC needs a model of the scores
(`toprank.inference.auc_models`); the precision at k is a share of k labels, and exact.

The counts of positives and negatives are taken as planned. Where rows are drawn at random, plan
some more: their number of positives varies. Rows that come in groups carry less than independent
rows; multiply by 1 + (rows per group - 1) times the correlation within groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from toprank._numerics import is_number
from toprank.inference.area_power import area_power
from toprank.inference.auc_models import auc_variance
from toprank.inference.designs import (
    INDEPENDENT_LABELS,
    MOST_ROWS,
    ComparisonPlan,
    IntervalPlan,
    advice,
    area_difference_variance,
    check_area,
    check_count,
    check_difference,
    check_model,
    check_share,
    clopper_pearson_half_width,
    design,
    logit_half_width,
    normal_quantile,
    plan_kind,
    planned_trials,
    refuse,
    shares_apart,
    smallest_plan,
    smallest_plan_near,
    smallest_size,
    whole_rows,
)
from toprank.inference.equal_shares import equal_shares_power
from toprank.inference.sample import VarianceEstimate
from toprank.inference.score_interval import score_interval
from toprank.inference.shares import check_level
from toprank.metrics.expansion import PairShare
from toprank.metrics.metric import Planned

#: Nodes and weights of a mean over normal errors.
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
_NODE_WEIGHTS = _NODE_WEIGHTS / np.sum(_NODE_WEIGHTS)
#: The largest standard error on the logit scale that the mean is taken over.
_LONGEST = 1.0
#: Score intervals of smaller shares lose digits; those around the estimate stand for them.
_SMALLEST = 1e-6
#: A power of the normal theory up to so many times the risk is not simulated.
_HARDLY = 1.1
#: Powers from here on are one where plans are searched for.
_CERTAIN = 1 - 1e-12


def sample_size(
    metric: str,
    *,
    value: float,
    half_width: float,
    level: float = 0.95,
    prevalence: float | None = None,
    positives: int | None = None,
    negatives: int | None = None,
    model: str = "binormal",
    spread: float = 1.0,
    fraction: float | None = None,
    local_precision: float | None = None,
) -> IntervalPlan:
    """The fewest labelled rows whose interval is expected to be as narrow as asked.

    Parameters
    ----------
    metric : {"auc", "misranking_error", "precision_at"}
        What will be measured.
    value : float
        The value it is supposed to have.
    half_width : float
        Half the length of the interval, less than 1/2.
    level : float, default=0.95
        Confidence level.
    prevalence : float, optional
        For the AUC: share of positives among the rows that will be labelled.
    positives, negatives : int, optional
        For the AUC, instead of `prevalence`: the rows there are of one class; the plan says how
        many of the other class are needed.
    model : {"binormal", "exponential", "any"}, default="binormal"
        For the AUC: the model of the scores. "any" holds for all scores, and needs the most rows.
    spread : float, default=1.0
        For the binormal model: standard deviation of the positives' scores over the negatives'.
    fraction : float in (0, 1], optional
        For the precision at k: k as a fraction of the list, to learn how long a list must be.
    local_precision : float, optional
        For the precision at k: share of positives among the rows near the cut, where the list
        itself is drawn at random. Without it a cut at a fixed score is supposed, and intervals at a
        rank come out wider than planned: of binormal scores 1.04 to 1.37 times. See the notes.

    Returns
    -------
    IntervalPlan
        ``.positives .negatives .k .rows .half_width``, and printed, a few lines.

    Notes
    -----
    The interval of the AUC is that of `interval`, a score interval, and its half-length is
    averaged over the estimates that the supposed A may lead to. That of the precision P is
    Clopper and Pearson's, its half-length averaged over the binomial number of positives among k
    labels that are independent and positive with probability P. So it is where the cut is at a
    fixed score. The cut at rank k moves with the sample, which changes the rows near it: with the
    precision there, eta, the variance is (P (1 - P) + (1 - k / n) (P - eta)^2) / k, and
    ``local_precision`` counts as many trials as give that variance.

    Examples
    --------
    >>> from toprank.inference.planning import sample_size
    >>> print(sample_size("auc", value=0.85, half_width=0.03, prevalence=0.2))
    auc of 0.85
    label     197 positives and 785 negatives
    expect    95% interval of half-width 0.02998
    supposed  normal scores in each class, with standard deviations as 1 to 1
    >>> sample_size("precision_at", value=0.6, half_width=0.1).k
    99
    """
    if not (is_number(half_width) and 0 < half_width < 0.5):
        raise ValueError(f"half_width={half_width!r}: expected a number between 0 and 1/2.")
    counts = design(metric, prevalence, positives, negatives)

    def plan(size: int) -> IntervalPlan:
        return expected_half_width(
            metric,
            value=value,
            level=level,
            model=model,
            spread=spread,
            fraction=fraction,
            local_precision=local_precision,
            **counts(size),
        )

    found = smallest_plan(plan, lambda plan: plan.half_width <= half_width)
    if found is None:
        least = plan(MOST_ROWS).half_width
        raise ValueError(
            f"half_width={half_width:g} is out of reach: {MOST_ROWS:g} more rows would leave "
            f"{least:.4g}. {advice(positives, negatives, local_precision)}"
        )
    return found


def expected_half_width(
    metric: str,
    *,
    value: float,
    level: float = 0.95,
    positives: int | None = None,
    negatives: int | None = None,
    k: int | None = None,
    model: str = "binormal",
    spread: float = 1.0,
    fraction: float | None = None,
    local_precision: float | None = None,
) -> IntervalPlan:
    """How wide an interval to expect from the rows there are: the inverse of `sample_size`.

    Parameters
    ----------
    metric, value, level, model, spread, fraction, local_precision
        As in `sample_size`.
    positives, negatives : int, optional
        Rows of each class, for "auc" and "misranking_error".
    k : int, optional
        Rows at the top of the list, for "precision_at".

    Returns
    -------
    IntervalPlan
        With its ``.half_width``.

    Examples
    --------
    >>> from toprank.inference.planning import expected_half_width
    >>> round(expected_half_width("auc", value=0.9, positives=50, negatives=500).half_width, 4)
    0.0479
    >>> round(expected_half_width("precision_at", value=0.6, k=100).half_width, 4)
    0.0993
    """
    level, planned = check_level(level), plan_kind(metric)
    at_k = planned is Planned.LABELS
    value = check_share("value", value) if at_k else check_area(metric, value)
    about: dict[str, Any] = {"metric": metric, "value": value, "level": level}
    if at_k:
        refuse(metric, positives=positives, negatives=negatives)
        k = check_count("k", k, 1)
        trials = planned_trials(value, k, fraction, local_precision)
        return IntervalPlan(
            **about,
            supposed=INDEPENDENT_LABELS,
            k=k,
            list_length=None if fraction is None else whole_rows(k / fraction),
            half_width=clopper_pearson_half_width(value, trials, level),
        )
    refuse(metric, k=k, fraction=fraction, local_precision=local_precision)
    m, n = check_count("positives", positives, 2), check_count("negatives", negatives, 2)
    supposed = check_model(model, spread)
    wrong = planned is Planned.WRONG_PAIRS
    area, rest = (1 - value, value) if wrong else (value, 1 - value)

    def variance(share: float) -> float:
        """Of a share of pairs that is the smaller of the area and the rest."""
        high, low = (1 - share, share) if rest < area else (share, 1 - share)
        return auc_variance(high, m, n, model, spread, low)

    if min(area, rest) < _SMALLEST:
        error = float(np.sqrt(auc_variance(area, m, n, model, spread, rest)))
        length = logit_half_width(min(area, rest), error, level)
    else:
        length = _score_half_width(min(area, rest), (m, n), variance, level)
    return IntervalPlan(**about, supposed=supposed, positives=m, negatives=n, half_width=length)


def _score_half_width(
    share: float, counts: tuple[int, int], variance: Callable[[float], float], level: float
) -> float:
    """Expected half-length of the score interval of a share of pairs, at most one half.

    The estimate is taken as normal on the logit scale, and the variance that will be seen as the
    model's at the estimate.
    """
    found, place = 0.0, float(logit(share))
    error = float(np.sqrt(variance(share))) / (share * (1 - share))
    for node, weight in zip(_NODES, _NODE_WEIGHTS, strict=True):
        seen = float(expit(place + min(error, _LONGEST) * node))
        spread = VarianceEstimate(variance(seen), min(counts) / 2)
        low, high = score_interval(seen, spread, PairShare(), counts, level)
        found += weight * max(high - low, 0.0) / 2
    return float(found)


def comparison_size(
    metric: str,
    *,
    value: float,
    difference: float,
    power: float = 0.8,
    level: float = 0.95,
    correlation: float = 0.0,
    overlap: float = 0.0,
    prevalence: float | None = None,
    positives: int | None = None,
    negatives: int | None = None,
    spread: float = 1.0,
) -> ComparisonPlan:
    """The fewest labelled rows that show which of two rankers is better, with a given power.

    Parameters
    ----------
    metric, level, prevalence, positives, negatives, spread
        As in `sample_size`.
    value, difference : float
        The rankers have the values ``value`` and ``value + difference``.
    power : float, default=0.8
        Probability that the two-sided test at 1 - `level` finds a difference, as in
        `comparison_power`.
    correlation, overlap : float, default=0.0
        As in `comparison_power`. Zero is cautious for rankers that do not oppose each other.

    Returns
    -------
    ComparisonPlan
        ``.positives .negatives .k .rows .power``.

    Examples
    --------
    >>> from toprank.inference.planning import comparison_size
    >>> plan = comparison_size("auc", value=0.85, difference=0.03, correlation=0.7, prevalence=0.2)
    >>> plan.positives, plan.negatives
    (254, 1013)
    """
    if not (is_number(power) and 1 - check_level(level) < power < 1):
        raise ValueError(f"power={power!r}: expected a number between 1 - level and 1.")
    counts = design(metric, prevalence, positives, negatives)

    def plan(size: int, simulated: bool = True) -> ComparisonPlan:
        return _comparison(
            metric,
            value=value,
            difference=difference,
            level=level,
            correlation=correlation,
            overlap=overlap,
            spread=spread,
            simulated=simulated,
            **counts(size),
        )

    def excess(plan: ComparisonPlan) -> float:
        return float(ndtri(min(plan.power, _CERTAIN)) - ndtri(min(power, _CERTAIN)))

    if plan_kind(metric) is Planned.LABELS:
        found = smallest_plan(plan, lambda plan: plan.power >= power)
    else:  # the normal theory says where to begin
        start = smallest_size(lambda size: plan(size, simulated=False).power >= power)
        reach = normal_quantile(level) + float(ndtri(min(power, _CERTAIN)))
        found = smallest_plan_near(plan, excess, max(reach, 0.1), start or MOST_ROWS)
    if found is None:
        most = plan(MOST_ROWS).power
        raise ValueError(
            f"power={power:g} is out of reach: {MOST_ROWS:g} more rows would reach {most:.4g}. "
            f"{advice(positives, negatives)}"
        )
    return found


def comparison_power(
    metric: str,
    *,
    value: float,
    difference: float,
    level: float = 0.95,
    positives: int | None = None,
    negatives: int | None = None,
    k: int | None = None,
    correlation: float = 0.0,
    overlap: float = 0.0,
    spread: float = 1.0,
) -> ComparisonPlan:
    """The chance that a paired comparison of two rankers on these rows finds their difference.

    The power is that of the test which `compare` makes. For the AUC 3,000 samples of binormal
    scores are drawn with a fixed seed and the test is made of each, of large ones by what each row
    adds to the difference (`toprank.inference.area_power`); 0.01 or 0.02 are chance. Where the
    normal theory of the difference gives hardly more than the risk of the test, 1 - `level`, it
    stands. For the precision at k, rows that both lists hold cancel: of the others, a share of
    1 - `overlap` in each list, the labels are independent, and the power is that of the test of
    them (`toprank.inference.equal_shares`), exact up to 300 such rows. The rows that both hold are
    supposed to have a precision half way between the two lists'.

    Parameters
    ----------
    metric, level, spread
        As in `sample_size`.
    value, difference : float
        The rankers have the values ``value`` and ``value + difference``.
    positives, negatives, k : int, optional
        The rows there are, as in `expected_half_width`.
    correlation : float from -1 to 1, default=0.0
        For the AUC: correlation of the two rankers' scores within each class.
    overlap : float in [0, 1), default=0.0
        For the precision at k: share of the first k rows that both lists hold.

    Returns
    -------
    ComparisonPlan
        With its ``.power``.

    Examples
    --------
    >>> from toprank.inference.planning import comparison_power
    >>> plan = comparison_power("auc", value=0.85, difference=0.03, correlation=0.7,
    ...                         positives=100, negatives=900)
    >>> round(plan.power, 1)
    0.5
    """
    return _comparison(
        metric,
        value=value,
        difference=difference,
        level=level,
        positives=positives,
        negatives=negatives,
        k=k,
        correlation=correlation,
        overlap=overlap,
        spread=spread,
    )


def _comparison(
    metric: str,
    *,
    value: float,
    difference: float,
    level: float,
    correlation: float,
    overlap: float,
    spread: float,
    positives: int | None = None,
    negatives: int | None = None,
    k: int | None = None,
    simulated: bool = True,
) -> ComparisonPlan:
    """A comparison with its power; that of areas by the normal theory alone if not simulated."""
    level, planned = check_level(level), plan_kind(metric)
    at_k = planned is Planned.LABELS
    difference = check_difference(difference)
    value = check_share("value", value) if at_k else check_area(metric, value)
    about: dict[str, Any] = {"metric": metric, "value": value, "difference": difference}
    if at_k:
        refuse(metric, positives=positives, negatives=negatives)
        k = check_count("k", k, 1)
        about |= {"k": k, "overlap": overlap, "supposed": INDEPENDENT_LABELS}
        shares = shares_apart(value, difference, overlap)
        moved = max(1, round(k * (1 - overlap)))
        power = equal_shares_power(*shares, moved, 1 - level)
        return ComparisonPlan(**about, level=level, power=power)
    refuse(metric, k=k)
    m, n = check_count("positives", positives, 2), check_count("negatives", negatives, 2)
    about |= {"positives": m, "negatives": n, "supposed": check_model("binormal", spread)}
    variance = area_difference_variance(metric, value, difference, correlation, m, n, spread)
    effect = abs(difference) / np.sqrt(variance) if variance > 0 else np.inf
    z = normal_quantile(level)
    power = float(ndtr(effect - z) + ndtr(-effect - z))
    if simulated and power > _HARDLY * (1 - level):
        pair = value, difference, float(correlation), m, n, float(spread)
        power = area_power(*pair, 1 - level)
    return ComparisonPlan(**about, level=level, power=power)
