"""Rows held out of a fit: how they are split off, and the metric of them that rounds stop by."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import GroupShuffleSplit, StratifiedShuffleSplit

from toprank._numerics import FloatArray
from toprank.inference import interval
from toprank.metrics.registry import get_metric
from toprank.pairs import IntArray, RelatedRows, Rows

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator


_TRIES = 20
#: Of fewer rows of a class a metric says next to nothing: so many are held out, or none.
_LEAST_OF_CLASS = 10


class TopMetric:
    """A metric of held-out rows, larger is better, within groups where it knows them."""

    def __init__(
        self, metric: str | Callable[..., float], kwargs: Mapping[str, Any] | None, rows: Rows
    ):
        self.rows = rows
        self._given = (metric, kwargs)
        self._name = metric
        self._kwargs = dict(kwargs or {})
        if callable(metric):
            self.sign = 1.0
            return
        registered = get_metric(metric)
        self._function = registered.function
        self._kwargs = {**registered.settings, **self._kwargs}
        self.sign = 1.0 if registered.higher_is_better else -1.0
        takes_groups = "groups" in inspect.signature(registered.function).parameters
        self._lists = rows.groups if takes_groups else None

    def on(self, rows: Rows) -> TopMetric:
        """Return the same metric of other rows."""
        return TopMetric(*self._given, rows)

    def __call__(self, scores: FloatArray) -> float:
        y, scores = self.rows.y, np.asarray(scores, dtype=np.float64)
        if callable(self._name):
            return float(self._name(y, scores, **self._kwargs))
        lists = {} if self._lists is None else {"groups": self._lists}
        value = self._function(y, scores, sample_weight=self.rows.weight, **lists, **self._kwargs)
        return self.sign * float(value)

    def standard_error(self, scores: FloatArray) -> float:
        """Return the standard error of the value; NaN where none is known."""
        lists: dict[str, Any] = (
            {} if callable(self._name) or self._lists is None else {"lists": self._lists}
        )
        try:
            return interval(
                self._name,
                self.rows.y,
                np.asarray(scores, dtype=np.float64),
                sample_weight=self.rows.weight,
                n_resamples=200,
                **lists,
                **self._kwargs,
            ).standard_error
        except ValueError:  # the metric has no valid interval, or too few rows for one
            return float("nan")


def choose_round(values: FloatArray, standard_error: float, rule: str, least: int = 1) -> int:
    """Return how many rounds to keep: those to the best value, or to one as good but for noise.

    At least so many, where there are so many.
    """
    first = min(least, len(values)) - 1
    best = first + int(np.argmax(values[first:]))
    if rule == "best" or not np.isfinite(standard_error):
        return best + 1
    as_good = values[first:] >= values[best] - standard_error
    return first + int(np.flatnonzero(as_good)[0]) + 1


def held_out(
    rows: Rows, fraction: float, random_state: int | np.random.Generator | None
) -> tuple[IntArray, IntArray]:
    """Return rows to train on and rows to stop by, both of two classes, groups kept whole."""
    splitter: BaseCrossValidator
    if rows.groups is None:
        counts = np.bincount(rows.y.astype(np.intp), minlength=2)
        if counts.min() < 2:
            raise ValueError(
                "Early stopping needs two rows of each class, one to train on and one to hold out; "
                f"got {counts[0]} negatives and {counts[1]} positives. Use early_stopping=False."
            )
        size = max(2, round(fraction * len(rows.y)))
        splitter = StratifiedShuffleSplit(1, test_size=size, random_state=random_state)
        parts = [next(splitter.split(rows.X, rows.y))]
    else:
        splitter = GroupShuffleSplit(_TRIES, test_size=fraction, random_state=random_state)
        parts = splitter.split(rows.X, rows.y, rows.groups)
    for train, test in parts:
        if all(0 < rows.y[part].sum() < len(part) for part in (train, test)):
            return train, test
    raise ValueError(
        "No split of the rows leaves both classes on both sides. Raise validation_fraction, or use "
        "early_stopping=False."
    )


def held_out_if_enough(
    rows: Rows, fraction: float, random_state: int | np.random.Generator | None
) -> tuple[IntArray, IntArray] | None:
    """Do as `held_out`; None where it cannot, or with fewer than ten rows of a class held out."""
    try:
        train, test = held_out(rows, fraction, random_state)
    except ValueError:
        return None
    n_positives = int(np.sum(rows.y[test]))
    few = min(n_positives, len(test) - n_positives) < _LEAST_OF_CLASS
    return None if few else (train, test)


def set_apart(
    rows: RelatedRows, fraction: float, random_state: np.random.RandomState
) -> tuple[RelatedRows, RelatedRows]:
    """Split the rows for validation: whole groups, or a share of each class, or of all rows."""
    apart = np.zeros(len(rows), dtype=bool)
    if rows.groups is not None:
        names, group = np.unique(rows.groups, return_inverse=True)
        apart = np.isin(group.reshape(-1), _share_of(np.arange(len(names)), fraction, random_state))
    elif rows.is_bipartite:
        for members in (np.flatnonzero(rows.y), np.flatnonzero(~rows.y)):
            apart[_share_of(members, fraction, random_state)] = True
    else:
        apart[_share_of(np.arange(len(rows)), fraction, random_state)] = True
    return rows.take(~apart), rows.take(apart)


def _share_of(members: IntArray, fraction: float, random_state: np.random.RandomState) -> IntArray:
    """A share of the members, at least one, and not all."""
    if len(members) < 2:
        raise ValueError(
            "n_iter_no_change sets rows of each class (whole groups, where there are groups) apart "
            "for validation, but a class, or the table, has only one. Use n_iter_no_change=None."
        )
    count = min(max(1, round(fraction * len(members))), len(members) - 1)
    return random_state.permutation(members)[:count]
