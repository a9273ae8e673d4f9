"""Columns that part a list: its periods, its entities and its groups."""

from __future__ import annotations

import numpy as np

from toprank._arrays import AnyArray
from toprank.models import frames
from toprank.models.columns import as_dates, as_words, is_missing
from toprank.models.errors import ModelError
from toprank.models.kinds import find_kind

#: What rows without a group are called.
NO_GROUP = "(missing)"


def read_periods(frame: object, name: str) -> AnyArray:
    """The period of each row, dates as dates; ModelError where a row has none."""
    frames.require_columns(frame, {"by": name})
    values = frames.column(frame, name)
    gaps = is_missing(values)
    if np.any(gaps):
        raise ModelError(f"{name}: {np.count_nonzero(gaps)} row(s) have no period.")
    finding = find_kind(values)
    return as_dates(values, finding.date_format) if finding.kind == "date" else values


def read_entities(frame: object, name: str) -> AnyArray:
    """What each row is about, as words."""
    frames.require_columns(frame, {"per_entity": name})
    return as_words(frames.column(frame, name))


def read_group_words(frame: object, name: str) -> AnyArray:
    """The group of each row as a word; rows without one are a group of their own."""
    frames.require_columns(frame, {"by_group": name})
    values = frames.column(frame, name)
    return np.where(is_missing(values), NO_GROUP, as_words(values).astype(object))
