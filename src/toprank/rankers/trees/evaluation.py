"""Rows to measure the rounds on, and the metric, as LightGBM's and XGBoost's users give them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toprank.metrics.registry import METRICS

#: What the libraries call metrics of ours.
_SAME = {"map": "average_precision", "aucpr": "average_precision", "ndcg": "ndcg_at"}
#: Metrics of probabilities, which a ranking leaves open.
_OF_PROBABILITIES = ("binary_logloss", "logloss", "binary_error", "error", "l2", "rmse", "l1")


def list_eval_sets(eval_set: Any) -> list[tuple[object, ...]]:
    """Return (X, y) or (X, y, groups) of each set, whether one or a list of them was given."""
    several = isinstance(eval_set, list) or (
        isinstance(eval_set, tuple) and all(isinstance(one, tuple) for one in eval_set)
    )
    sets = list(eval_set) if several else [eval_set]
    for one in sets:
        if not isinstance(one, tuple | list) or len(one) not in (2, 3):
            raise ValueError(
                f"eval_set holds a {type(one).__name__}; expected (X, y) or (X, y, groups), or a "
                "list of such."
            )
    if not sets:
        raise ValueError("eval_set is empty; leave it out, or give (X, y).")
    return [tuple(one) for one in sets]


def check_eval_metric(given: object) -> str | Callable[..., float]:
    """Return the metric to stop by: a name of ours, or a function, larger is better.

    Of several the first; a function may return what LightGBM's do: name, value and whether larger
    is better.
    """
    if isinstance(given, Sequence) and not isinstance(given, str):
        if not given:
            raise ValueError("eval_metric is empty; leave it out, or name a metric.")
        given = given[0]
    if callable(given):
        return _value_of(given)
    if not isinstance(given, str):
        raise ValueError(f"eval_metric={given!r}: expected the name of a metric, or a function.")
    name = _SAME.get(given.split("@")[0], given)
    if name in METRICS:
        return name
    if name in _OF_PROBABILITIES:
        raise ValueError(
            f"eval_metric={given!r} measures probabilities; the push orders rows. Use "
            "'average_precision', 'auc', 'partial_auc' or 'push_risk'."
        )
    raise ValueError(f"eval_metric={given!r}: expected one of {', '.join(sorted(METRICS))}.")


def _value_of(function: Callable[..., Any]) -> Callable[..., float]:
    def value(y: object, scores: object) -> float:
        found = function(y, scores)
        if not isinstance(found, tuple):
            return float(found)
        _, amount, larger_is_better = found
        return float(amount) if larger_is_better else -float(amount)

    value.__name__ = getattr(function, "__name__", "eval_metric")
    return value
