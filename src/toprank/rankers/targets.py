"""Labels at the door: two classes, the larger one in sorted order on top."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.pairs import check_labels, two_classes

__all__ = ["known_labels", "two_classes"]


def known_labels(y: Any) -> Any:
    """Return labels as they are, or raise ValueError where one is missing.

    In a list of names NumPy makes the text "nan" of a missing one, and with it a class.
    """
    if y is None or getattr(y, "ndim", 1) == 0:
        return y
    if isinstance(y, np.ma.MaskedArray) or np.asarray(y).dtype.kind in "OUSmM":
        for column in np.asarray(y, dtype=object).T if np.ndim(y) == 2 else (y,):
            check_labels(column)
    return y
