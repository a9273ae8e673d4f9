"""Spread of a metric over groups that were drawn whole: each group left out in turn.

With few groups, or groups of very different sizes, the sum of the rows' influences within each
group understates how far the metric moves from one draw of groups to the next. The metric without
one group at a time (the jackknife, CR3 in the survey literature) does not. Its variance has as many
degrees of freedom as there are groups that carry information: of forty groups of which eleven hold
a positive it is the eleven that count, and fewer if one of them holds most positives.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from toprank._numerics import FloatArray
from toprank.blocks import go_on
from toprank.inference.sample import Sample, VarianceEstimate, kish

#: Entries that are summed up at most, one for each row and group; beyond, groups are many.
_MOST_ENTRIES = 5e7
#: Groups with a positive (or a negative) below which a result says how few there are; and how many
#: equal groups all rows must be worth where there are more.
_FEW, _FEW_BY_ROWS = 20, 12


def spread_over_groups(
    sample: Sample, statistic: Callable[[FloatArray], float]
) -> VarianceEstimate | None:
    """Jackknife variance of a statistic of the rows' weights; None where groups are too many."""
    assert sample.groups is not None
    count = sample.group_support.count
    if count * len(sample.scores) > _MOST_ENTRIES:
        return None
    weight = np.ones(len(sample.scores)) if sample.weight is None else sample.weight
    order = np.argsort(sample.groups, kind="stable")
    edges = np.searchsorted(sample.groups[order], np.arange(count + 1))
    values = np.empty(count)
    for group in range(count):
        go_on()
        rest = weight.copy()
        rest[order[edges[group] : edges[group + 1]]] = 0.0
        values[group] = statistic(rest)
    apart = values - np.mean(values)
    variance = (count - 1) / count * float(np.dot(apart, apart))
    support = sample.group_support
    return VarianceEstimate(variance, support.freedom, alike_freedom=support.alike_freedom)


def check_group_support(sample: Sample, label: str) -> None:
    """Raise ValueError where too few groups hold a class to show how far groups differ."""
    if sample.groups is None:
        return
    support = sample.group_support
    for kind, holding in zip(("positive", "negative"), support.holding, strict=True):
        if holding <= 2:
            are = "group holds" if holding == 1 else "groups hold"
            raise ValueError(
                f"{label}: {holding} of {support.count} {are} a {kind}, expected at least three: "
                "fewer do not show how far groups differ. Collect more groups, or name finer "
                "ones; leave groups= out only if rows are independent."
            )


def note_on_groups(sample: Sample, of_rows: bool = False) -> str:
    """What a reader should know of the groups; empty if there are enough.

    `of_rows`: the interval counts every group, as that of a precision does, and not only those
    that hold the rarer class.
    """
    if sample.groups is None:
        return ""
    support = sample.group_support
    kind, holding = min(
        zip(("positive", "negative"), support.holding, strict=True), key=lambda pair: pair[1]
    )
    if holding >= _FEW:
        return "" if of_rows else _note_on_large_groups(sample)
    if of_rows:
        return (
            f"{holding} of {support.count} groups hold a {kind}. Each of the {support.count} tells "
            "of the rows above the cut, and the interval counts them all: more would narrow it."
        )
    found = (
        f"{holding} of {support.count} groups hold a {kind}, worth {support.freedom + 1:.2g} of "
        "equal size: the interval allows for so few, and more groups would narrow it."
    )
    return f"{found} {_note_on_large_groups(sample)}".strip()


def _note_on_large_groups(sample: Sample) -> str:
    """Where a few groups hold most rows, though there are many groups; empty elsewhere."""
    support = sample.group_support
    if support.of_rows >= _FEW_BY_ROWS or support.count < _FEW:
        return ""
    return (
        f"By their rows {support.count} groups are worth {support.of_rows:.2g} of equal size: "
        "where a few hold most rows, simulated 95% intervals of the AUC held the true value in as "
        "few as 91% of the samples."
    )


def note_on_weights(sample: Sample) -> str:
    """What a reader should know of weights that let few rows count; empty where enough do."""
    if sample.weight is None or sample.counts or sample.groups is not None:
        return ""
    effective, rows, kind = min(
        (kish(sample.weight[members]), int(np.count_nonzero(members)), kind)
        for members, kind in ((sample.positive, "positives"), (~sample.positive, "negatives"))
    )
    if effective >= _FEW_EFFECTIVE or effective > _EVEN * rows:
        return ""
    return (
        f"Weights are so unequal that the {rows} {kind} count as {effective:.3g}. With fewer than "
        f"{_FEW_EFFECTIVE}, simulated 95% intervals held the true value in 89% of the samples or "
        "more, and equally good rankers were told apart in up to 12%."
    )


#: Independent rows below which unequal weights are named, and the share of the rows that these
#: must at least be for weights to be even.
_FEW_EFFECTIVE, _EVEN = 50, 0.7


def independent_units(sample: Sample, share: float, variance: float) -> tuple[float, float]:
    """Positives and negatives that the rows of groups are worth, for a floor under the variance.

    Where no error was seen, every group may be one observation; the more errors show how far the
    groups differ, the less does the floor need to.
    """
    rows = sample.units
    if sample.groups is None:
        return rows
    errors = min(share, 1 - share) ** 2 / variance if variance > 0 else 0.0
    trust = errors / (errors + _ERRORS_TO_TRUST)
    high, low = (
        alone + trust * (every - alone)
        for alone, every in zip(sample.group_support.effective, rows, strict=True)
    )
    return high, low


#: Errors, in terms of their spread over groups, at which rows of groups count half as rows.
_ERRORS_TO_TRUST = 5.0
