"""Tables in which only some positives have a label: rows without one are marked, and ranked below.

Such rows are negatives and hidden positives. If the labelled positives are a random part of all,
the order that is best against the unlabelled rows is best against the negatives, so that a fit
takes them for negatives; what is measured is corrected (`toprank.inference.unlabelled_interval`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import AnyArray, Frame
from toprank.models import frames
from toprank.models.columns import Unreadable, as_words, is_missing
from toprank.models.errors import ModelError
from toprank.models.schema import UNLABELLED
from toprank.pairs.labels import label_text

#: Stands for missing labels where words are typed.
MISSING = "missing"


def mark_unlabelled(
    frame: object, target: str, unlabelled: object, positive: object = None
) -> tuple[Frame, object]:
    """Return a table whose rows without a label say so, and its positive label.

    Parameters
    ----------
    frame : data frame of pandas or polars, or pyarrow Table
    target : str
        Column of the labels.
    unlabelled : value
        The label that stands for one that is not known; "missing" or NaN for missing labels.
    positive : value, optional
        The label that belongs at the top; where it is not given and all other labels are
        the same, it is that one.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> frame, positive = mark_unlabelled(pd.DataFrame({"y": [1.0, np.nan]}), "y", "missing")
    >>> frame.y.tolist(), positive
    (['1', '(unlabelled)'], '1')
    """
    frames.require_columns(frame, {"target": target})
    values = frames.column(frame, target)
    open_rows = find_unlabelled(values, target, unlabelled)
    words = np.full(len(values), UNLABELLED, dtype=object)
    try:
        words[~open_rows] = as_words(values[~open_rows])
    except Unreadable as error:
        raise ModelError(f"{target!r} cannot be the target: {error}.") from error
    labels = set(words[~open_rows].tolist())
    if not labels:
        raise ModelError(
            f"All {len(values)} rows of {target!r} are without a label; expected some that are "
            "known to be positive."
        )
    if positive is None and len(labels) == 1:
        (positive,) = labels
        if positive in ("0", "-1") or str(positive).lower() in ("no", "false", "negative"):
            raise ModelError(
                f"Every label of {target!r} is {positive!r}; expected rows that are known to be "
                "positive. If that label is the positive one, say so: positive=."
            )
    return frames.replace_column(frame, target, words), positive


def find_unlabelled(values: AnyArray, target: str, unlabelled: object) -> NDArray[np.bool_]:
    """Which rows have no label; ModelError where none has, or where others are missing."""
    gaps = is_missing(values)
    if _stands_for_missing(unlabelled, values, gaps):
        open_rows = gaps
    else:
        if np.any(gaps):
            raise ModelError(
                f"{target!r} is missing in {np.count_nonzero(gaps)} rows, and "
                f"unlabelled={unlabelled!r} means others: leave them out, or take "
                f"unlabelled={MISSING!r}."
            )
        wanted = label_text(unlabelled)
        open_rows = np.fromiter((label_text(one) == wanted for one in values), bool, len(values))
    if not np.any(open_rows):
        raise ModelError(f"unlabelled={unlabelled!r}: every row of {target!r} has a label.")
    return np.asarray(open_rows)


def _stands_for_missing(unlabelled: object, values: AnyArray, gaps: NDArray[np.bool_]) -> bool:
    """Whether a value means missing labels: NaN does, and the word unless it is a label."""
    if unlabelled == MISSING:
        return not np.any(values[~gaps] == MISSING)
    return bool(is_missing(np.array([unlabelled], dtype=object))[0])


def read_unlabelled(frame: Frame, target: str) -> NDArray[np.bool_] | None:
    """Which rows of a marked table have no label; None where none is marked."""
    values = frames.column(frame, target)
    if values.dtype.kind not in "OUT":
        return None
    open_rows = np.asarray(values == UNLABELLED, dtype=bool)
    return open_rows if np.any(open_rows) else None
