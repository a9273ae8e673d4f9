"""A fit is whole or it is not: one that fails leaves what was there, an interrupted one nothing."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import sklearn
from sklearn.base import _fit_context

Given = ParamSpec("Given")
Answer = TypeVar("Answer")

#: How the names begin that scikit-learn keeps with an estimator and that are no part of its fit.
_KEPT = ("__", "_metadata_request", "_skl", "_parent_callback", "_callback")
_LIBRARIES = tuple(
    f"{Path(module.__file__ or '').parent}{os.sep}" for module in (sys.modules["toprank"], sklearn)
)


def fits(method: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Make a method a fit: the parameters are checked first, and all is kept or nothing.

    A fit that fails by an error is as one that was never asked for: what was fitted before still
    scores. A fit that is interrupted leaves the estimator unfitted, also where it was fitted
    before: whoever stops a fit and goes on would take the old model for the new one. Parameters
    stay as they are, and the estimator can be fitted again.
    """
    checked = _fit_context(prefer_skip_nested_validation=True)(method)

    @wraps(method)
    def whole(*given: Given.args, **named: Given.kwargs) -> Answer:
        estimator: Any = given[0]
        before = _fitted(estimator)
        try:
            answer: Answer = checked(*given, **named)
        except BaseException as error:
            forget(estimator)
            if isinstance(error, Exception):
                vars(estimator).update(before)
            raise
        return answer

    return whole


def forget(estimator: Any) -> None:
    """Drop what fits have left."""
    for name in _fitted(estimator):
        del vars(estimator)[name]


def _fitted(estimator: Any) -> dict[str, Any]:
    """What fits have left: attributes that end or begin with an underscore."""
    return {
        name: value
        for name, value in vars(estimator).items()
        if (name.endswith("_") or name.startswith("_")) and not name.startswith(_KEPT)
    }


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn of a fit at the line that asked for it, the first outside the libraries.

    Python shows a warning once a line: at a line of the library the second fit of a program would
    have nothing to say.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
