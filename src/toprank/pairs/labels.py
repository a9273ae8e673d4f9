"""Labels: one per row, of two classes or in order; and which of two labels is positive.

The positive label belongs at the top of the list. There are two policies, for two kinds of callers.

- Tables (`toprank fit`, `choose-p` and `report`, `toprank.models`, `toprank.report`): their labels
  are words that people chose, and `positive_label` decides. Pairs of words that everybody reads in
  one way are known; for any other pair the caller names the positive label, or is refused. What a
  model learned from its training table holds for `evaluate`, `compare` and `monitor` too.
- Estimators and metrics, which take an array y: the larger label in sorted order is positive, as
  everywhere in scikit-learn (`toprank.pairs.labels.two_classes`).

The two agree on numbers and booleans that a table decides by itself. They differ on words such as
``Pos`` and ``neg`` or ``+`` and ``-``, whose sorted order means nothing. No label is judged twice:
tables pass booleans on, of which true is the larger.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_consistent_length
from sklearn.utils.multiclass import type_of_target

from toprank._arrays import AnyArray, BoolArray
from toprank._columns import finite_column, labels_column, to_numpy
from toprank._numerics import FloatArray

#: More different labels than these are hardly classes.
_MANY_LABELS = 10
_OF_NUMBERS = " Of a number make a column of two values first, such as whether it is above a limit."
#: Pairs of labels of which the first is positive; in small letters, numbers without a point.
KNOWN_PAIRS = (
    ("1", "0"),
    ("1", "-1"),
    ("true", "false"),
    ("yes", "no"),
    ("ja", "nein"),
    ("ja", "nee"),
    ("oui", "non"),
    ("s\u00ed", "no"),
    ("si", "no"),
    ("s\u00ec", "no"),
    ("sim", "n\u00e3o"),
    ("y", "n"),
    ("t", "f"),
    ("positive", "negative"),
    ("pos", "neg"),
    ("+", "-"),
)
#: Labels that a message names at most.
_MOST_NAMED = 6


class LabelError(ValueError):
    """Labels that do not say which of them is positive; the message says what to do.

    Attributes
    ----------
    choices : tuple of str
        The two labels to choose between, where naming one of them is all that is missing.
    """

    def __init__(self, message: str, choices: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.choices = choices


def check_labels(y: ArrayLike, name: str = "y") -> AnyArray:
    """Return one label per row, numbers, text or dates, none of them missing."""
    labels = labels_column(name, to_numpy(y))
    if labels.dtype == object and len({type(label) for label in labels}) == 1:
        plain = np.array(labels.tolist())
        if plain.dtype.kind in ("f" if isinstance(labels[0], float) else "biu"):
            return plain  # numbers that came as objects
    return labels


def distinct_labels(labels: AnyArray) -> AnyArray:
    """Return the distinct labels in order; numbers of two values are not sorted for it."""
    if labels.dtype.kind in "biuf" and labels.size:
        ends = np.array([labels.min(), labels.max()])
        if ends[0] != ends[1] and np.all((labels == ends[0]) | (labels == ends[1])):
            return ends
    return np.unique(labels)


def two_classes(
    y: ArrayLike, name: str = "y", pos_label: object = None
) -> tuple[AnyArray, BoolArray]:
    """Return the two classes, the positive one last, and which rows are positive.

    Without ``pos_label`` the larger label in sorted order is positive, as in scikit-learn.
    """
    return split_classes(check_labels(y, name), name, pos_label)


def split_classes(
    labels: AnyArray, name: str = "y", pos_label: object = None
) -> tuple[np.ndarray, BoolArray]:
    """Do as `two_classes` does with labels that are known to be there."""
    try:
        classes = distinct_labels(labels)
    except TypeError as error:
        raise ValueError(
            f"{name} mixes labels that have no order ({error}); expected labels of one type."
        ) from error
    if len(classes) != 2:
        raise ValueError(_no_two_classes(labels, classes, name))
    if pos_label is None or pos_label == classes[1]:
        return classes, np.asarray(labels == classes[1])
    if pos_label != classes[0]:
        raise ValueError(f"pos_label={pos_label!r} is not one of the labels {classes.tolist()}.")
    return classes[::-1], np.asarray(labels == classes[0])


def _no_two_classes(labels: AnyArray, classes: AnyArray, name: str) -> str:
    if len(classes) == 0:
        return "Found 0 rows while a minimum of 1 is required."
    if len(classes) == 1:
        return (
            f"{name} has one class only ({classes.tolist()[0]!r}), expected two: check the "
            "label column, or the split that lost the rare class."
        )
    kind = type_of_target(labels)
    if kind.startswith("continuous"):
        return (
            f"Unknown label type: {kind}. {name} has {len(classes)} different values, expected two "
            "classes: say from which value on a row belongs at the top."
        )
    return (
        f"Only binary classification is supported: {name} has {len(classes)} classes ({kind} "
        "labels), expected two. Choose the class that belongs at the top and pass y == that_class."
    )


def check_grades(y: ArrayLike, n: int | None = None, name: str = "y") -> FloatArray:
    """Return labels in order, grades or real numbers, as float64; larger is better."""
    labels = check_labels(y, name)
    if labels.dtype.kind in "SUMm" or any(
        isinstance(v, str | bytes) for v in _objects_among(labels)
    ):
        raise ValueError(
            f"{name} has dtype {labels.dtype}, and it is not known which label belongs above "
            "which: grades must be numbers, larger is better. Map them, for example with "
            "y.map({'bad': 0, 'fair': 1, 'good': 2}); for an ordered categorical use y.cat.codes."
        )
    grades = finite_column(name, labels)
    if n is not None:
        check_consistent_length(grades, np.empty(n))
    return grades


def _objects_among(labels: AnyArray) -> Iterable[object]:
    return labels if labels.dtype == object else ()


def missing_labels(name: str, missing: int, n: int) -> str:
    """Say that rows of a column of labels have none, and what to do."""
    return (
        f"{name!r} is missing in {missing} of {n} rows; leave these rows out (skip_unlabelled, "
        "--skip-unlabelled), or label them."
    )


def label_text(value: object) -> str:
    """Return a label as text; whole numbers without a point, so that 1 and 1.0 are one label.

    Examples
    --------
    >>> label_text(1.0), label_text(True), label_text("Yes")
    ('1', 'True', 'Yes')
    """
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def positive_label(labels: Iterable[str], positive: object = None, *, name: str = "y") -> str:
    """Return the label that belongs at the top, as it is written among the labels.

    Parameters
    ----------
    labels : iterable of str
        The labels as text (`label_text`); repeated ones count once.
    positive : value, optional
        The positive label, where the caller names it. Any other label is then negative. Capital
        letters and the spelling of a number (1, 1.0) do not matter unless they tell labels apart.
    name : str, default="y"
        What the messages call the column of the labels.

    Raises
    ------
    LabelError
        If there are fewer than two labels, if the named one is not among them, or if none is named
        and there are more than two or it is not clear which of the two is positive.

    Examples
    --------
    >>> positive_label(["No", "Yes"]), positive_label(["-", "+"]), positive_label(["-1", "1"])
    ('Yes', '+', '1')
    >>> positive_label(["alive", "dead"], "Alive")
    'alive'
    >>> positive_label(["alive", "dead"], name="state")
    Traceback (most recent call last):
    toprank.pairs.labels.LabelError: 'state' is 'alive' or 'dead', and it is not clear which \
belongs at the top: add positive='alive' or positive='dead'.
    """
    distinct = sorted(set(labels))
    named = None if positive is None else _named_label(name, distinct, positive)
    if named is None and len(distinct) > 2:
        raise LabelError(
            f"{name!r} has {len(distinct)} different values ({_quote(distinct)}), expected two. "
            "Pass positive= to name the one that belongs at the top; the others are then negative."
            f"{_OF_NUMBERS if len(distinct) > _MANY_LABELS else ''}"
        )
    if len(distinct) < 2:
        raise LabelError(
            f"{name!r} has one value only ({_quote(distinct) or 'none'}); a ranking needs rows of "
            "two classes: check the column, or the selection that lost the rare class."
        )
    return _known_label(name, distinct) if named is None else named


def _named_label(name: str, distinct: list[str], positive: object) -> str:
    """The label that a value names: as it is written, or else the only one that reads alike."""
    text = label_text(positive)
    if text in distinct:
        return text
    alike = [label for label in distinct if _fold_case(label) == _fold_case(text)]
    if len(alike) != 1:
        raise LabelError(
            f"positive={positive!r}: {name!r} never has that value; it has {_quote(distinct)}."
        )
    return alike[0]


def _known_label(name: str, distinct: list[str]) -> str:
    folded = {_fold_case(label): label for label in distinct}
    for high, low in KNOWN_PAIRS:
        if set(folded) == {high, low}:
            return folded[high]
    a, b = distinct
    raise LabelError(
        f"{name!r} is {a!r} or {b!r}, and it is not clear which belongs at the top: add "
        f"positive={a!r} or positive={b!r}.",
        (a, b),
    )


def _fold_case(label: str) -> str:
    """A label without capital letters and spaces around it, a number in its shortest spelling."""
    text = label.strip().lower()
    try:
        number = float(text)
    except ValueError:
        return text
    return label_text(number) if np.isfinite(number) else text


def _quote(labels: list[str]) -> str:
    shown = ", ".join(map(repr, labels[:_MOST_NAMED]))
    return shown if len(labels) <= _MOST_NAMED else f"{shown}, ..."
