"""Pipelines of scikit-learn whose steps scale columns one by one, before a ranker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from toprank._numerics import FloatArray

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

_KNOWN = (MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler)


def is_pipeline(ranker: object) -> bool:
    """Whether a ranker is a pipeline of scikit-learn."""
    return isinstance(ranker, Pipeline)


def scales_columns(pipeline: Pipeline) -> bool:
    """Whether all steps before the last scale columns one by one, in a way that is known."""
    return all(_is_known(step) for _, step in pipeline.steps[:-1])


def _is_known(step: object) -> bool:
    if step in (None, "passthrough"):
        return True
    return type(step) in _KNOWN and not getattr(step, "clip", False)


def scaling(pipeline: Pipeline) -> tuple[FloatArray, FloatArray, BaseEstimator]:
    """Return the slopes b and offsets c of z = b x + c, column by column, and the last step.

    ValueError if a step before the last does something else.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from toprank import PNormPush
    >>> pipeline = make_pipeline(StandardScaler(), PNormPush()).fit([[0.0], [2.0]], [0, 1])
    >>> b, c, ranker = scaling(pipeline)
    >>> b.tolist(), c.tolist()
    ([1.0], [-1.0])
    """
    d = int(pipeline.n_features_in_)
    slope, offset = np.ones(d), np.zeros(d)
    for _, step in pipeline.steps[:-1]:
        if not _is_known(step):
            known = ", ".join(one.__name__ for one in _KNOWN)
            raise ValueError(
                f"The pipeline has a step {type(step).__name__}, which cannot be written in "
                f"another language here; expected {known}. TableRanker "
                "prepares columns itself, and is written with its preparation."
            )
        if step in (None, "passthrough"):
            continue
        b, c = _line(step, d)
        slope, offset = slope * b, offset * b + c
    return slope, offset, pipeline.steps[-1][1]


def _line(step: object, d: int) -> tuple[FloatArray, FloatArray]:
    """The slope and the offset of one step."""
    if isinstance(step, MinMaxScaler):
        return step.scale_, step.min_
    scale = getattr(step, "scale_", None)
    middle = getattr(step, "mean_" if isinstance(step, StandardScaler) else "center_", None)
    if isinstance(step, StandardScaler) and not step.with_mean:
        middle = None
    b = np.ones(d) if scale is None else 1.0 / np.asarray(scale, dtype=np.float64)
    return b, np.zeros(d) if middle is None else -np.asarray(middle, dtype=np.float64) * b
