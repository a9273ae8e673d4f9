"""Whether a model that was read from a file works: it scores two rows, and explains them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._warnings import catching
from toprank.models.errors import ModelError
from toprank.models.model import TableModel
from toprank.models.schema import Column


def check_works(model: TableModel) -> None:
    """Raise unless a row of nothing and an ordinary row get scores, chances and reasons.

    The parts of a file can be of the right types and still not fit each other: an index beyond
    the columns, an array of another shape, a number that is none. What such parts raise is left
    to the caller.
    """
    values = {column.name: _two(column) for column in model.schema.columns}
    width = len(model.preparation.names)
    with catching(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # other versions of the libraries may have much to say
        Z = model.preparation.transform(values)
        scores = np.asarray(model.ranker.decision_function(Z))
        chances = np.asarray(model.ranker.predict_proba(Z))
        parts = np.asarray(model.column_contributions(Z))
    found = (Z.shape, scores.shape, chances.shape, parts.shape)
    if found != ((2, width), (2,), (2, 2), (2, len(model.schema.columns))):
        raise ModelError("The parts of the file are not of one model.")
    if not all(np.all(np.isfinite(array)) for array in (scores, chances, parts)):
        raise ModelError("The model in the file gives scores that are no numbers.")


def _two(column: Column) -> NDArray[Any]:
    """A missing value and an ordinary one."""
    if column.kind in ("number", "boolean"):
        return np.array([np.nan, 1.0])
    if column.kind == "date":
        return np.array(["NaT", "2024-02-29"], dtype="datetime64[us]")
    ordinary = column.categories[0] if column.categories else "a word"
    return np.array(["", ordinary], dtype=object)
