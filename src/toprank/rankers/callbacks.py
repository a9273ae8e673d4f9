"""Callbacks of scikit-learn, from its version 1.9 on: progress bars, monitors, an early end.

A fit is one task; its iterations, rounds or folds are tasks below it. A fit on which nobody has set
callbacks does nothing here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import sklearn
from sklearn.utils.metaestimators import available_if

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

#: Why a fit ended, where a callback asked for it.
STOPPED = "a callback asked to stop"


#: The fits that callbacks are told of. One on a cluster sends the estimator to its workers, which
#: a progress bar of this process cannot follow.
_TOLD = ("fit", "fit_blocks")


def _no_callbacks(ranker: object) -> bool:
    """Say why there is no ``set_callbacks``: scikit-learn shows it as the cause."""
    raise AttributeError(
        f"{type(ranker).__name__}.set_callbacks needs scikit-learn 1.9 or newer; this is "
        f"{sklearn.__version__}."
    )


class _WithoutCallbacks:
    """In the place of scikit-learn's mixin where it has none."""

    @available_if(_no_callbacks)  # type: ignore[untyped-decorator]
    def set_callbacks(self, *callbacks: object) -> Any:
        """Set callbacks; scikit-learn 1.9 and newer have them."""


try:
    from sklearn.callback import CallbackSupportMixin as _Mixin
except ImportError:
    _Mixin = _WithoutCallbacks


class TakesCallbacks(_Mixin):
    """A ranker with ``set_callbacks``, where scikit-learn has callbacks."""

    def _most_steps(self) -> int | None:
        """How many tasks a fit has below it, at most; None where nobody knows."""
        return None


def as_root_task(method: Callable[..., BaseEstimator]) -> Callable[..., BaseEstimator]:
    """Make a fit a task that callbacks are told of, from its begin to its end."""
    signature = inspect.signature(method)
    if method.__name__ not in _TOLD:
        return method

    @wraps(method)
    def fit(estimator: BaseEstimator, *given: object, **named: object) -> BaseEstimator:
        if not getattr(estimator, "_skl_callbacks", None):
            return method(estimator, *given, **named)
        outer = hasattr(estimator, "_callback_fit_ctx")  # this fit was called by another
        if not outer:
            context = estimator._init_callback_context(max_subtasks=estimator._most_steps())
            rows = signature.bind(estimator, *given, **named).arguments
            weight = rows.get("sample_weight")
            estimator._callback_rows = {
                "X": rows.get("X"),
                "y": rows.get("y"),
                "metadata": None if weight is None else {"sample_weight": weight},
            }
            context.call_on_fit_task_begin(estimator=estimator, **estimator._callback_rows)
        try:
            answer = method(estimator, *given, **named)
            end_task(estimator, getattr(estimator, "_callback_fit_ctx", None), dict)
        finally:
            vars(estimator).pop("_callback_rows", None)
        return answer

    return fit


def end_task(
    estimator: BaseEstimator,
    context: Any,
    attributes: Callable[[], dict[str, object] | None] | None,
) -> bool:
    """Tell callbacks that a task has ended; return whether one of them asks to stop."""
    rows = getattr(estimator, "_callback_rows", None)
    if context is None or rows is None:
        return False
    stop = context.call_on_fit_task_end(
        estimator=estimator, reconstruction_attributes=attributes, **rows
    )
    return bool(stop)


def tell_step(
    estimator: BaseEstimator,
    name: str,
    attributes: Callable[[], dict[str, object] | None] | None = None,
) -> bool:
    """Tell callbacks of a step of the fit; return whether one of them asks to stop.

    Parameters
    ----------
    estimator : ranker
        The one that is being fitted.
    name : str
        What the step is called.
    attributes : callable, optional
        Returns what makes a copy of the estimator one that was fitted up to here. It is called
        only for callbacks that look at such a copy.
    """
    root = getattr(estimator, "_callback_fit_ctx", None)
    if root is None or not hasattr(estimator, "_callback_rows"):
        return False
    step = root.subcontext(task_name=name)
    step.call_on_fit_task_begin(estimator=estimator, **estimator._callback_rows)
    return end_task(estimator, step, attributes)


def has_callbacks(estimator: object) -> bool:
    """Whether a fit is under way that callbacks are told of."""
    return hasattr(estimator, "_callback_rows")


def without_callbacks(estimator: BaseEstimator) -> BaseEstimator:
    """Return the estimator, a clone, without the callbacks that it was cloned with.

    They are of the fit that it is a part of, and that fit tells them.
    """
    vars(estimator).pop("_skl_callbacks", None)
    return estimator
