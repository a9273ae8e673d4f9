"""Labels at the door: two classes, the larger one in sorted order on top."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from toprank._columns import labels_column
from toprank.pairs import distinct_labels


def known_labels(y: Any) -> Any:
    """Return labels as they are, or raise ValueError where one is missing.

    In a list of names NumPy makes the text "nan" of a missing one, and with it a class.
    """
    if y is None or getattr(y, "ndim", 1) == 0:
        return y
    if isinstance(y, np.ma.MaskedArray) or np.asarray(y).dtype.kind in "OUSmM":
        for column in np.asarray(y, dtype=object).T if np.ndim(y) == 2 else (y,):
            labels_column("y", column)
    return y


def two_classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the classes and which rows belong to the second, positive one."""
    if y.dtype.kind not in "biu":  # whole numbers are labels; anything else may be a quantity
        check_classification_targets(y)
    classes = distinct_labels(y)
    if len(classes) == 1:
        raise ValueError(
            f"y has one class only ({classes.tolist()[0]!r}); a ranking needs rows of two classes: "
            "check the label column, or the split that lost the rare class."
        )
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(y)}: {len(classes)} classes. Choose the class that belongs at the "
            "top and pass y == that_class."
        )
    return classes, np.asarray(y == classes[1])
