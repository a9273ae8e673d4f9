"""Intervals of metrics of positive-unlabelled data, corrected for the hidden positives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from toprank.inference.hidden_share import share_of_rows
from toprank.inference.result import Interval
from toprank.inference.shares import agreement_interval
from toprank.metrics.hidden import (
    HiddenHeights,
    OpenLabels,
    check_hidden,
    correct_value,
    hidden_metric,
)
from toprank.metrics.metric import Hidden, Metric, call_label

_ESTIMAND = "{}, with the hidden positives known, of new rows; labelled positives at random"
#: Rows beyond which fewer resamples are drawn, and how many.
_LONG, _FEWER = 200_000, 200
#: Shares between the least and the largest at which a risk is measured, both included.
_BETWEEN = 6
#: What the label of a risk says beside its settings, by whether it is normalised.
_ROOT: dict[bool, dict[str, object]] = {True: {"normalize": True}, False: {}}


@dataclass(frozen=True)
class ShareRange:
    """The share of hidden positives: one number, and the least and the largest that it may be.

    ``estimated`` says that it comes from the same rows.
    """

    estimate: float
    low: float
    high: float
    estimated: bool

    @classmethod
    def of(
        cls, hidden: float | tuple[float, float] | None, rows: OpenLabels, level: float
    ) -> ShareRange:
        """The share as given, or estimated from the rows where it is None."""
        if hidden is not None:
            low, high = check_hidden(hidden)
            return cls((low + high) / 2, low, high, False)
        found = share_of_rows(rows, level)
        most = 1 - 1e-9  # a share of one leaves no negative to rank against
        ends = min(found.low, most), min(found.high, most)
        return cls(min(found.estimate, most), *ends, True)

    def __str__(self) -> str:
        if self.estimated:
            return f"{self.estimate:.3g} ({self.low:.3g} to {self.high:.3g}, estimated)"
        return f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"


def interval_with_hidden(
    metric: Any,
    rows: OpenLabels,
    hidden: float | tuple[float, float] | None,
    level: float,
    naive: Callable[..., Interval],
    resampling: tuple[int, int | np.random.Generator | None],
    settings: Mapping[str, Any],
) -> Interval:
    """The corrected metric with its interval.

    Where the share is estimated, both it and the metric are taken at half the risk of an error, so
    that the interval includes the error of the estimate.

    Parameters
    ----------
    metric : str or Metric
        ValueError if it has no correction.
    rows : OpenLabels
    hidden : float, (float, float) or None
        The share of hidden positives among the unlabelled rows; None to estimate it.
    level : float
    naive : callable
        From labels, scores and a level to the interval with unlabelled rows as negatives.
    resampling : (int, seed)
        Resamples of the bootstrap.
    settings : mapping
        Parameters of the metric.
    """
    known = hidden_metric(metric)
    each = level if hidden is not None else 1 - (1 - level) / 2
    share = ShareRange.of(hidden, rows, each)
    if known.hidden is Hidden.HEIGHTS:
        found = _of_heights(known, rows, share, each, resampling, settings)
    else:
        found = _of_shares(known, rows, share, naive(rows.positive, rows.scores, level=each))
    error = float("nan") if share.estimated else found.standard_error
    return replace(found, level=level, standard_error=error)


def _of_shares(metric: Metric, rows: OpenLabels, share: ShareRange, naive: Interval) -> Interval:
    """Correct a share of pairs or of labels at both ends of the hidden share."""
    corrected = [
        [correct_value(metric, value, rows, one) for value in (naive.low, naive.high)]
        for one in (share.low, share.high)
    ]
    estimate = correct_value(metric, naive.estimate, rows, share.estimate)
    if share.estimated:  # by chance above what the labels allow, or below
        estimate = max(0.0, min(1.0, estimate))
    ends = (correct_value(metric, end, rows, share.estimate) for end in (0.0, 1.0))
    low, high = min(one[0] for one in corrected), max(one[1] for one in corrected)
    return replace(
        naive,
        estimate=estimate,
        low=max(0.0, min(low, 1.0)),
        high=max(0.0, min(1.0, high)),
        standard_error=naive.standard_error * abs(next(ends) - next(ends)),
        bias=0.0,
        estimand=_ESTIMAND.format(naive.metric),
        note=_note(share, naive.estimate, estimate, 1.0),
    )


def _note(share: ShareRange, naive: float, estimate: float, most: float) -> str:
    text = (
        f"Corrected for a share of {share} hidden positives; without that it is {naive:.4g}."
        if estimate != naive
        else "Hidden positives do not change it where labels are at random."
    )
    if not 0 <= estimate <= most:
        text += (
            f" The estimate is outside of 0 to 1: a share of {share} does not go with these rows."
        )
    return text


def _of_heights(
    metric: Metric,
    rows: OpenLabels,
    share: ShareRange,
    level: float,
    resampling: tuple[int, int | np.random.Generator | None],
    settings: Mapping[str, Any],
) -> Interval:
    """A risk of heights, its interval by the bootstrap of labelled and of other rows."""
    heights = HiddenHeights.of(metric, rows, settings)
    # a sum over negatives rises with the positives and falls with the negatives that are left
    between = 2 if heights.normalize or share.low == share.high else _BETWEEN
    shares = [rows.share_of_others(one) for one in np.linspace(share.low, share.high, between)]
    middle = rows.share_of_others(share.estimate)
    n_resamples, seed = resampling
    if len(rows.scores) > _LONG:
        n_resamples = min(n_resamples, _FEWER)
    rng = np.random.default_rng(seed)
    drawn = np.empty((n_resamples, 1 + len(shares)))
    for place in range(n_resamples):
        known, others = (
            np.bincount(rng.integers(0, size, size), minlength=size).astype(np.float64)
            for size in (rows.n_positive, rows.n_others)
        )
        value = heights.counted(known, others)
        values = {one: value(one) for one in {middle, *shares}}
        drawn[place] = [values[one] for one in (middle, *shares)]
    estimate = heights.value(middle)
    label = call_label(metric.name, {**settings, **_ROOT[heights.normalize]})
    if not (np.isfinite(estimate) and np.all(np.isfinite(drawn))):
        raise ValueError(
            f"{label} exceeds the largest float on these rows, or on some that are drawn from "
            "them: divide the scores by a constant, or take a smaller p."
        )
    # B resamples part the line into B + 1 pieces of equal chance ("weibull")
    tails = 100 * np.array([1 - level, 1 + level]) / 2
    ends = np.percentile(drawn[:, 1:], tails, axis=0, method="weibull")
    low, high = float(np.min(ends[0])), float(np.max(ends[1]))
    if heights.normalize and high == 0:  # no resample of a list without errors has one
        pairs = min(rows.n_positive, rows.n_others)
        high = agreement_interval(0.0, pairs, level)[1] ** (1 / float(settings["p"]))
    most = 1.0 if heights.normalize else np.inf
    return Interval(
        label,
        estimate,
        min(low, estimate),
        min(most, max(high, estimate)),
        float(np.std(drawn[:, 0], ddof=1)),
        level,
        "bootstrap of labelled and of unlabelled rows",
        _ESTIMAND.format(label),
        note=_note(share, heights.value(0.0), estimate, most),
    )


def refuse_beside_unlabelled(*given: object) -> None:
    """ValueError where rows without labels come with what is not known to go with them."""
    if any(one is not None for one in given):
        raise ValueError(
            "unlabelled= and hidden= are for independent rows that count once: leave out groups, "
            "lists, sample_weight and label_propensity."
        )
