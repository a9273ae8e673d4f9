"""Intervals of the metrics that a first-order expansion describes, on the logit scale."""

from __future__ import annotations

import numpy as np

from toprank.inference.bootstrap import OfOrder
from toprank.inference.influence import EXPANSIONS, Expansion
from toprank.inference.request import ENDLESS, Request, check_size, only, without_lists
from toprank.inference.result import Interval
from toprank.inference.sample import Spread
from toprank.inference.shares import around, on_logit, slope_of, uncontradicted
from toprank.metrics.registry import METRICS


def expanded(request: Request) -> Interval:
    """Interval of a metric that has an expansion."""
    sample = request.sample
    expansion = EXPANSIONS[request.name](sample.ranked, **request.settings)
    estimate = METRICS[request.name].of(sample.ranked, without_lists(), **request.settings)
    check_size(request.label, estimate)
    by_leaving_out = request.name in ("average_precision", "pnorm_risk")
    if by_leaving_out and not sample.by_ties:
        only(request, "bootstrap")
        return _resampled_share(request, expansion, estimate)
    only(request, "projection", "bootstrap")
    if request.method == "bootstrap":
        return _resampled_share(request, expansion, estimate)
    spread = expansion.spread(sample)
    early = _without_spread(request, expansion, estimate, spread)
    if early is not None:
        return early
    if expansion.on_logit is not None:
        centre, on_positive, on_negative = expansion.on_logit
        there = sample.spread(on_positive, on_negative)
        ends = on_logit(centre, float(np.sqrt(there.variance)), there.plain_freedom, request.level)
    else:
        if request.name == "partial_auc":
            # its few negatives make the projection's variance too large already
            spread = Spread(spread.variance, np.inf)
        ends = around(expansion.centre, spread, request.level)
    how = "leave-one-out" if by_leaving_out else "Hoeffding projection (DeLong)"
    how = "influence function" if request.name == "partial_auc" else how
    return _reported(request, expansion, estimate, ends, spread, f"{how}, logit scale")


def _without_spread(
    request: Request, expansion: Expansion, estimate: float, spread: Spread
) -> Interval | None:
    """Intervals where the rows show no spread at all, or too few of them could."""
    high, low = request.sample.units
    if not np.isfinite(spread.variance):
        few = "positive" if high < low else "negative"
        return request.result(
            estimate,
            (expansion.report(0.0), expansion.report(1.0)),
            np.nan,
            "none: everything is possible",
            ENDLESS,
            note=f"One {few} row says nothing of how far such rows spread.",
        )
    # sums over many rows leave rounding errors where the spread is zero
    if spread.variance > 1e-24 and 0 < expansion.share < 1:
        return None
    ends = uncontradicted(expansion.share, expansion.trials, request.level)
    return request.result(
        estimate,
        (expansion.report(ends[0]), expansion.report(ends[1])),
        0.0,
        "exact, from disjoint pairs",
        ENDLESS,
        note=(
            "Every pair of rows says the same, so the sample shows no spread; the interval is "
            f"what {expansion.trials:g} disjoint pairs that agree leave possible."
        ),
    )


def _reported(
    request: Request,
    expansion: Expansion,
    estimate: float,
    ends: tuple[float, float],
    spread: Spread,
    method: str,
) -> Interval:
    """Bring an interval for the share to the form of the metric."""
    share, error = expansion.share, float(np.sqrt(spread.variance))
    slope = slope_of(expansion.report, share)
    bias = estimate - expansion.report(expansion.centre) if expansion.bias else 0.0
    return request.result(
        estimate,
        (expansion.report(ends[0]), expansion.report(ends[1])),
        slope * error,
        method,
        ENDLESS,
        bias=bias,
    )


def _resampled_share(request: Request, expansion: Expansion, estimate: float) -> Interval:
    """Bootstrap of a metric with an expansion, as a share."""
    settings, scale = dict(request.settings), 1.0
    if request.name == "partial_auc":
        settings["standardize"] = False
        whole = EXPANSIONS["partial_auc"](request.sample.ranked, **settings)
        scale = whole.report(1.0)
    if request.name == "pnorm_risk":
        settings.update(normalize=True, log=False)
    statistic = OfOrder(request.sample, METRICS[request.name], settings)
    values = request.replicates(statistic) / scale
    spread = Spread(float(np.var(values, ddof=1)), request.freedom())
    early = _without_spread(request, expansion, estimate, spread)
    if early is not None:
        return early
    bias = float(np.mean(values)) - expansion.share
    moved = Expansion(expansion.share, values, values, expansion.report, expansion.trials, bias)
    ends = around(moved.centre, spread, request.level)
    method = f"bootstrap ({request.scheme}, {request.n_resamples}), bias taken off, logit scale"
    return _reported(request, moved, estimate, ends, spread, method)
