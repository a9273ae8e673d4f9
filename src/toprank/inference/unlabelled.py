"""Metrics of positive-unlabelled data: what they would be if the hidden positives were known.

Some positives have a label, the other rows have none: they are negatives and hidden positives. If
the labelled positives are a random part of all positives ("selected completely at random", Elkan &
Noto 2008), a share of hidden positives among the unlabelled rows takes the metrics apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._numerics import FloatArray, is_number
from toprank.inference.intervals import interval
from toprank.inference.result import Interval, check_resamples
from toprank.inference.shares import check_level
from toprank.metrics.metric import Hidden, call_label
from toprank.metrics.registry import METRICS, get_metric
from toprank.pairs import check_labels, check_scores, split_classes

_ESTIMAND = "{}, with the hidden positives known, of new rows; labelled positives at random"


def unlabelled_interval(
    metric: str,
    labelled: ArrayLike,
    s: ArrayLike,
    hidden: float | tuple[float, float],
    *,
    level: float = 0.95,
    n_resamples: int = 1000,
    random_state: int | np.random.Generator | None = 0,
    **metric_kwargs: Any,
) -> Interval:
    r"""A metric of positive-unlabelled data, corrected for the hidden positives, with its interval.

    With :math:`\alpha` the share of hidden positives among the unlabelled rows, ranking positives
    against unlabelled rows has an area of :math:`A' = (1 - \alpha) A + \alpha / 2`, since hidden
    and labelled positives are alike. So

    .. math:: A = \frac{A' - \alpha / 2}{1 - \alpha}.

    The first k rows hold a share q' of labelled positives, which are a share
    :math:`c = n_L / (n_L + \alpha n_U)` of all positives: the precision is q' / c. The
    recall of the labelled positives is that of all. The normalised p-norm risk is
    :math:`\big((R'_p - \alpha R^+_p) / (1 - \alpha)\big)^{1/p}`, where :math:`R'_p` is the
    mean of the p-th power of the heights of unlabelled rows, and :math:`R^+_p` that of the
    labelled positives, each among the others.

    Parameters
    ----------
    metric : {"auc", "precision_at", "recall_at", "pnorm_risk"}
    labelled : array-like of shape (n,)
        1 (the larger value) where a row is known to be positive, 0 where it is unlabelled.
    s : array-like of shape (n,)
        Scores.
    hidden : float or (float, float)
        Share of positives among the unlabelled rows, in [0, 1); or the least and the largest that
        it may be: the interval then holds for every share between them.
    level : float, default=0.95
        Confidence level.
    n_resamples : int, default=1000
        Resamples of the bootstrap, for `pnorm_risk`.
    random_state : int, Generator or None, default=0
    **metric_kwargs
        Parameters of the metric: ``k``, ``p``.

    Returns
    -------
    Interval

    Notes
    -----
    If some positives are easier to find than others, labelled ones score higher than hidden ones,
    and nothing here corrects for that.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.inference import unlabelled_interval
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(5000) < 0.2
    >>> s = rng.normal(size=5000) + 1.5 * y
    >>> labelled = y & (rng.random(5000) < 0.4)
    >>> print(unlabelled_interval("auc", labelled, s, hidden=0.13))
    auc = 0.8617, 95% interval 0.8376 to 0.8836 (score interval, Hoeffding projection (DeLong))
    Note: Corrected for a share of 0.13 hidden positives; without that it is 0.8147.
    """
    kind = get_metric(metric).hidden
    if kind is None:
        known = sorted(name for name, one in METRICS.items() if one.hidden is not None)
        raise ValueError(
            f"There is no correction of {metric!r} for hidden positives: expected one of {known}."
        )
    check_level(level)
    marks = split_classes(check_labels(labelled, "labelled"), "labelled")[1]
    scores = check_scores(s, len(marks), "s")
    ends = _check_hidden(hidden)
    if kind is Hidden.HEIGHTS:
        check_resamples(n_resamples)
        rng = np.random.default_rng(random_state)
        return _of_heights(metric, marks, scores, ends, level, n_resamples, rng, metric_kwargs)
    naive = interval(metric, marks, scores, level=level, **metric_kwargs)
    corrected = [
        [_correct(kind, value, share, marks) for value in (naive.estimate, naive.low, naive.high)]
        for share in ends
    ]
    middle = (ends[0] + ends[1]) / 2
    estimate = _correct(kind, naive.estimate, middle, marks)
    slope = _correct(kind, 1.0, middle, marks) - _correct(kind, 0.0, middle, marks)
    low, high = (min(row[1] for row in corrected), max(row[2] for row in corrected))
    return replace(
        naive,
        estimate=estimate,
        low=max(0.0, min(low, 1.0)),
        high=max(0.0, min(1.0, high)),
        standard_error=naive.standard_error * slope,
        bias=0.0,
        estimand=_ESTIMAND.format(naive.metric),
        note=_note(ends, naive.estimate, estimate),
    )


def _check_hidden(hidden: Any) -> tuple[float, float]:
    ends = (hidden, hidden) if np.ndim(hidden) == 0 else tuple(hidden)
    if len(ends) != 2 or not all(is_number(one) and 0 <= one < 1 for one in ends):
        raise ValueError(
            f"hidden={hidden!r}: expected a share of positives among the unlabelled rows, in "
            "[0, 1), or the least and the largest it may be."
        )
    return float(min(ends)), float(max(ends))


def _correct(kind: Hidden, value: float, share: float, marks: NDArray[np.bool_]) -> float:
    if kind is Hidden.PAIRS:
        return (value - share / 2) / (1 - share)
    if kind is Hidden.LABELS:
        known, others = np.count_nonzero(marks), np.count_nonzero(~marks)
        return float(value * (known + share * others) / known)
    return value


def _note(ends: tuple[float, float], naive: float, estimate: float) -> str:
    share = f"{ends[0]:g}" if ends[0] == ends[1] else f"{ends[0]:g} to {ends[1]:g}"
    text = (
        f"Corrected for a share of {share} hidden positives; without that it is {naive:.4g}."
        if estimate != naive
        else "Hidden positives do not change it where labels are at random."
    )
    if not 0 <= estimate <= 1:
        text += (
            f" The estimate is outside of 0 to 1: a share of {share} does not go with these rows."
        )
    return text


def _of_heights(
    metric: str,
    marks: NDArray[np.bool_],
    scores: FloatArray,
    ends: tuple[float, float],
    level: float,
    n_resamples: int,
    rng: np.random.Generator,
    settings: Mapping[str, object],
) -> Interval:
    """The normalised p-norm risk, its interval by the bootstrap of labelled and unlabelled rows."""
    p = settings.get("p")
    unknown = set(settings) - {"p", "normalize"}
    if unknown or settings.get("normalize", True) is not True:
        raise ValueError(f"{metric} of unlabelled rows takes p, and is normalised.")
    if not (is_number(p) and 1 <= p < np.inf):
        raise ValueError(f"p={p!r}: expected a finite number >= 1.")
    known, others = np.sort(scores[marks]), scores[~marks]
    if len(known) < 3:
        raise ValueError(f"There are {len(known)} labelled positives; expected at least 3.")

    def risks(high: FloatArray, low: FloatArray) -> tuple[float, float]:
        """Mean powers of the heights of unlabelled rows, and of positives among the others."""
        ordered = np.sort(high)
        of_low = np.searchsorted(ordered, low, side="right") / len(high)
        below = np.searchsorted(ordered, high, side="right") - 1  # without the row itself
        return float(np.mean(of_low**p)), float(np.mean((below / (len(high) - 1)) ** p))

    def corrected(both: tuple[float, float], share: float) -> float:
        return max(0.0, (both[0] - share * both[1]) / (1 - share)) ** (1 / p)

    own = risks(known, others)
    drawn = [
        risks(rng.choice(known, len(known)), rng.choice(others, len(others)))
        for _ in range(n_resamples)
    ]
    middle = (ends[0] + ends[1]) / 2
    estimate = corrected(own, middle)
    tail = 100 * (1 - level) / 2
    values = [np.array([corrected(one, share) for one in drawn]) for share in ends]
    low = min(float(np.percentile(one, tail)) for one in values)
    high = max(float(np.percentile(one, 100 - tail)) for one in values)
    label = call_label(metric, {"p": p, "normalize": True})
    return Interval(
        label,
        estimate,
        min(low, estimate),
        min(1.0, max(high, estimate)),
        float(np.std(np.array([corrected(one, middle) for one in drawn]), ddof=1)),
        level,
        "bootstrap of labelled and of unlabelled rows",
        _ESTIMAND.format(label),
        note=_note(ends, own[0] ** (1 / p), estimate),
    )
