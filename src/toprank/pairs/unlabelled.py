"""Labels of which some are not known: which rows are positive, and which may be without saying so.

Where only some positives have a label, the rows without one hold negatives and hidden positives.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._arrays import AnyArray
from toprank._columns import to_numpy, which_missing
from toprank.pairs.labels import check_labels, distinct_labels, split_classes

#: Labels that nobody gives to a positive row.
_NEVER_POSITIVE = (0, -1, "0", "-1", "no", "n", "false", "negative", "neg", "-")


def split_unlabelled(
    y: ArrayLike, unlabelled: object = None, pos_label: object = None, name: str = "y"
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which rows are known to be positive, and which have no label.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels.
    unlabelled : value or array-like of shape (n,), optional
        The value of `y` that stands for a label that is not known, NaN for missing entries; or one
        truth value per row. By default every row that is not positive is without a label.
    pos_label : label, optional
        The positive class; by default the larger label.
    name : str, default="y"
        What messages call the labels.

    Examples
    --------
    >>> import numpy as np
    >>> positive, open_rows = split_unlabelled([1, 0, np.nan, 1], np.nan)
    >>> positive.tolist(), open_rows.tolist()
    ([True, False, False, True], [False, False, True, False])
    """
    if unlabelled is None:
        positive = split_classes(check_labels(y, name), name, pos_label)[1]
        return positive, ~positive
    labels = np.asarray(to_numpy(y), dtype=None if isinstance(y, np.ndarray) else object)
    if labels.ndim != 1:
        raise ValueError(f"{name} has shape {labels.shape}, expected one label per row.")
    open_rows = _open_rows(labels, unlabelled, name)
    if not np.any(open_rows):
        raise ValueError(f"unlabelled={_shown(unlabelled)}: no row of {name} is without a label.")
    if np.all(open_rows):
        raise ValueError(
            f"All {len(labels)} rows of {name} are without a label: expected some that are known "
            "to be positive."
        )
    positive = np.zeros(len(labels), dtype=bool)
    positive[~open_rows] = _known_positives(labels[~open_rows], pos_label, name)
    return positive, open_rows


def _open_rows(labels: AnyArray, unlabelled: object, name: str) -> NDArray[np.bool_]:
    """The rows without a label."""
    given = np.asarray(to_numpy(unlabelled))
    if given.ndim == 0:
        if bool(which_missing(given.reshape(1))[0]):
            return which_missing(labels)
        return np.fromiter((_same(one, unlabelled) for one in labels), bool, len(labels))
    if given.dtype.kind != "b" or given.shape != labels.shape:
        raise ValueError(
            f"unlabelled has shape {given.shape} and dtype {given.dtype}, expected a value of "
            f"{name}, or one truth value per row: ({len(labels)},)."
        )
    return given


def _same(label: object, value: object) -> bool:
    """Whether a label is a value; a missing one is not."""
    try:
        return bool(label == value)
    except (TypeError, ValueError):  # pandas' NA
        return False


def _known_positives(labels: AnyArray, pos_label: object, name: str) -> NDArray[np.bool_]:
    """Which of the rows with a label are positive: all of them, where there is one label only."""
    known = check_labels(labels, name)
    classes = distinct_labels(known)
    if len(classes) != 1:
        return split_classes(known, name, pos_label)[1]
    only = classes.tolist()[0]
    low = only.strip().lower() if isinstance(only, str) else only
    if pos_label is not None and pos_label != only:
        raise ValueError(f"pos_label={pos_label!r}: every label of {name} is {only!r}.")
    if pos_label is None and low in _NEVER_POSITIVE:
        raise ValueError(
            f"Every label of {name} is {only!r}: expected rows that are known to be positive."
        )
    return np.ones(len(known), dtype=bool)


def _shown(unlabelled: object) -> str:
    return repr(unlabelled) if np.asarray(unlabelled).ndim == 0 else "(one truth value per row)"
