"""Why a row stands where it stands: what each column of the table adds to its score."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.interop.additive import additive_form, is_additive
from toprank.models.columns import as_words


class Reason(NamedTuple):
    """What one column adds to the score of a row, against the mean of the training rows.

    Examples
    --------
    >>> from toprank.models import Reason
    >>> print(Reason("age", 0.8312, "41"))
    age = 41 (+0.831)
    """

    column: str
    contribution: float
    value: str

    def __str__(self) -> str:
        said = f"= {self.value}" if self.value else "missing"
        return f"{self.column} {said} ({self.contribution:+.3g})"


def contributions(ranker: Any, Z: FloatArray) -> FloatArray:
    """Return what each number adds to each score: for trees their SHAP values.

    For linear rankers and stumps these are the terms of the sum; whoever explains takes a mean
    off. ValueError for other rankers.
    """
    if hasattr(ranker, "explain"):
        parts = ranker.explain(Z)[:, :-1]
        before = getattr(ranker, "init_model_", None)
        if before is not None and explains(before):
            parts = parts + ranker.init_scale_ * contributions(before, Z)
        return parts
    return additive_form(ranker).contributions(Z)


def explains(ranker: Any) -> bool:
    """Whether `contributions` has an answer for a fitted ranker."""
    return hasattr(ranker, "explain") or is_additive(ranker)


def per_column(parts: FloatArray, owner: NDArray[np.intp], n_columns: int) -> FloatArray:
    """Sum contributions of numbers over the columns of the table that they came from."""
    order = np.argsort(owner, kind="stable")
    out = np.zeros((len(parts), n_columns))
    if len(order):
        starts = np.flatnonzero(np.diff(owner[order], prepend=-1))
        out[:, owner[order][starts]] = np.add.reduceat(parts[:, order], starts, axis=1)
    return out


def column_texts(values: NDArray[Any]) -> list[str]:
    """Return the values of a column for people to read; a missing one is the empty word."""
    if values.dtype.kind == "f":
        return ["" if np.isnan(value) else f"{value:.6g}" for value in values.tolist()]
    if values.dtype.kind == "M":
        words = np.datetime_as_string(values, unit="s").tolist()
        said = [word.replace("T", " ").removesuffix(" 00:00:00") for word in words]
        return ["" if word == "NaT" else word for word in said]
    return as_words(values).tolist()


def largest_reasons(
    parts: FloatArray, names: list[str], values: list[Any], n: int
) -> list[list[Reason]]:
    """Return the n largest contributions to each row, in absolute value; none that is zero.

    Parameters
    ----------
    parts : array of shape (rows, columns)
    names : list of str
        The columns.
    values : list of sequences
        The values of each column, as words.
    n : int
        How many.
    """
    order = np.argsort(-np.abs(parts), axis=1, kind="stable")[:, :n]
    return [
        [
            Reason(names[j], float(parts[i, j]), values[j][i])
            for j in chosen.tolist()
            if parts[i, j] != 0
        ]
        for i, chosen in enumerate(order)
    ]
