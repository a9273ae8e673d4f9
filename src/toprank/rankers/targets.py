"""Labels at the door: two classes, the larger one in sorted order on top."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from toprank.pairs import distinct_labels


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
