"""Metrics of scores that lie on a device: checked, sorted and summed there; a number comes back.

Every metric is written once, in NumPy's words, and `toprank.blocks.tensors` lets tensors answer
to them. Only the door and the sort are different, and those are here. What needs more than the
order of the rows of two classes (`push_risk`, `heights`, groups, amounts) is refused by name.
"""

from __future__ import annotations

from typing import Any

from toprank._extras import require
from toprank.blocks.tensors import OnDevice, all_finite, distinct, on_device
from toprank.pairs import split_classes


def checked(
    scores: Any, y_true: Any, sample_weight: Any, pos_label: Any, label_propensity: Any
) -> tuple[OnDevice, OnDevice, OnDevice | None]:
    """Return (positive, scores, weights) on the device of the scores, or raise ValueError."""
    labels = _column("y_true", y_true, scores)
    scores = _column("y_score", scores, scores)
    if len(labels) != len(scores):
        raise ValueError(f"y_true has {len(labels)} entries, but y_score has {len(scores)}.")
    positive = _positives(labels, pos_label)
    weight = None
    if sample_weight is not None:
        weight = _weights("sample_weight", sample_weight, scores)
    if label_propensity is not None:
        seen = _weights("label_propensity", label_propensity, scores)
        if bool((seen <= 0).any()) or bool((seen > 1).any()):
            raise ValueError("label_propensity must lie in (0, 1]: every row can be labelled.")
        weight = (1.0 if weight is None else weight) / seen
    if weight is not None:
        _check_classes(positive, weight)
    return OnDevice(positive), OnDevice(scores), None if weight is None else OnDevice(weight)


def _column(name: str, values: Any, like: Any) -> Any:
    column = on_device(values, like)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise ValueError(f"{name} has shape {tuple(column.shape)}, expected one entry per row.")
    if not all_finite(column):
        raise ValueError(f"{name} contains NaN or infinity; expected finite numbers.")
    return column


def _positives(labels: Any, pos_label: Any) -> Any:
    classes, _ = split_classes(distinct(labels), "y_true", pos_label)
    return labels == classes[1].item()


def _weights(name: str, values: Any, scores: Any) -> Any:
    """One number per row in float64, from one for all rows or one for each."""
    weight = on_device(values, scores).double()
    if tuple(weight.shape) not in ((), (len(scores),)):
        raise ValueError(
            f"{name} has shape {tuple(weight.shape)}, expected one number per row: "
            f"({len(scores)},)."
        )
    if not all_finite(weight) or bool((weight < 0).any()):
        raise ValueError(f"{name} has negative entries, NaN or infinity; expected counts.")
    return weight.expand(len(scores))


def _check_classes(positive: Any, weight: Any) -> None:
    high = float((weight * positive).sum())
    low = float((weight * ~positive).sum())
    if min(high, low) <= 0:
        raise ValueError("A class has a total weight of zero: a ranking needs rows of both.")
    if not 1e-100 < min(high, low) <= high + low < 1e100:
        raise ValueError(
            f"sample_weight sums to {high + low:g}, and to {min(high, low):g} in one class: too "
            "far from a repetition count. Scale the weights to between 1e-100 and 1e100."
        )


def ties(positive: OnDevice, scores: OnDevice, weight: OnDevice | None) -> tuple[Any, ...]:
    """Sort on the device; return what a RankedList is made of."""
    torch = require("torch", "torch")
    high, at = positive.tensor, scores.tensor
    if weight is not None:
        present = weight.tensor > 0
        high, at, units = high[present], at[present], weight.tensor[present]
    at, order = at.sort(descending=True)
    high = high[order]
    units = torch.ones_like(at, dtype=torch.float64) if weight is None else units[order]
    del order
    last = torch.cat([at[1:] != at[:-1], high.new_ones(1)])
    ends = last.nonzero()[:, 0]
    whole = weight is None or bool((units == units.round()).all())
    columns = [_of_ties(units * side, ends, whole) for side in (high, ~high)]
    (in_positive, found), (in_negative, passed) = columns
    lists = (at[ends].double(), in_positive, in_negative, found, passed)
    return (*map(OnDevice, lists), whole)


def _of_ties(units: Any, ends: Any, whole: bool) -> tuple[Any, Any]:
    """The units in each tie, and in the first j ties for j = 0, 1, ..."""
    torch = require("torch", "torch")
    met = torch.cat([units.new_zeros(1), units.cumsum(0)[ends]])
    if whole:
        return met.diff(), met
    # a difference of sums would lose what a light tie holds
    lengths = torch.cat([ends[:1] + 1, ends.diff()])
    return torch.segment_reduce(units, "sum", lengths=lengths), met


def summed_on_device(depth: OnDevice) -> OnDevice:
    """The sum of 1 / ln(1 + r) over the places r = 1, ..., depth, from a table of every place."""
    torch = require("torch", "torch")
    last = depth.tensor.ceil().max()
    places = torch.arange(1, int(last) + 1, dtype=torch.float64, device=depth.tensor.device)
    sums = torch.cat([places.new_zeros(1), (1.0 / places.log1p()).cumsum(0)])
    below = depth.tensor.floor()
    at = below.long()
    share = depth.tensor - below
    return OnDevice(sums[at] + share * (sums[depth.tensor.ceil().long()] - sums[at]))
