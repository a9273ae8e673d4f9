"""Rankers that add up their columns: a slope or a step function for each.

What linear rankers and sums of stumps have in common, read from what they learned, so that it can
be explained column by column and written in other languages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from toprank._numerics import FloatArray
from toprank.interop.pipelines import is_pipeline, scales_columns, scaling


@dataclass(frozen=True)
class Line:
    """slope · x."""

    slope: float

    def of(self, x: FloatArray) -> FloatArray:
        """Return the term of each value."""
        return self.slope * x


@dataclass(frozen=True)
class Steps:
    """A step function: values[j] where exactly j of the edges lie below x.

    Attributes
    ----------
    edges : array of shape (m,)
        Thresholds, ascending; a value equal to one is not above it.
    values : array of shape (m + 1,)
    missing : float
        The term of a missing value.
    """

    edges: FloatArray
    values: FloatArray
    missing: float

    def of(self, x: FloatArray) -> FloatArray:
        """Return the term of each value."""
        terms = self.values[np.searchsorted(self.edges, x, side="left")]
        return np.where(np.isnan(x), self.missing, terms)


@dataclass(frozen=True)
class Additive:
    """score = intercept + sum over the columns j of terms[j](x_j).

    Examples
    --------
    >>> from toprank import RankBoost
    >>> from toprank.datasets import load_wdbc
    >>> from toprank.interop.additive import additive_form
    >>> X, y = load_wdbc(return_X_y=True)
    >>> ranker = RankBoost(20).fit(X, y)
    >>> form = additive_form(ranker)
    >>> scores = form.intercept + form.contributions(X).sum(axis=1)
    >>> bool(abs(scores - ranker.decision_function(X)).max() < 1e-12)
    True
    """

    intercept: float
    terms: dict[int, Line | Steps]
    n_columns: int

    def contributions(self, Z: FloatArray) -> FloatArray:
        """Return the term of each column in the score of each row: an array of shape (n, d)."""
        out = np.zeros((len(Z), self.n_columns))
        for j, term in self.terms.items():
            out[:, j] = term.of(np.asarray(Z[:, j], dtype=np.float64))
        return out


def is_additive(ranker: BaseEstimator) -> bool:
    """Whether a fitted ranker adds up its columns."""
    if is_pipeline(ranker):
        return scales_columns(ranker) and is_additive(ranker.steps[-1][1])
    if not isinstance(getattr(ranker, "weak_rankers", ""), str):
        return False
    coef = getattr(ranker, "coef_", None)
    return hasattr(ranker, "stumps_") or (
        coef is not None
        and np.shape(coef) in {(1, ranker.n_features_in_), (ranker.n_features_in_,)}
    )


def additive_form(ranker: BaseEstimator) -> Additive:
    """Return a fitted ranker as a sum over its columns; ValueError if it is none."""
    check_is_fitted(ranker)
    if is_pipeline(ranker):
        slopes, offsets, last = scaling(ranker)
        return _on_raw_columns(additive_form(last), slopes, offsets)
    if not is_additive(ranker):
        raise ValueError(
            f"{type(ranker).__name__} is neither linear nor a sum of stumps over columns, so its "
            "score cannot be written as one formula of the columns."
        )
    intercept = float(np.sum(getattr(ranker, "intercept_", 0.0)))
    coef = np.asarray(ranker.coef_, dtype=np.float64).reshape(-1)
    d = int(ranker.n_features_in_)
    if not hasattr(ranker, "stumps_"):
        return Additive(intercept, {int(j): Line(float(coef[j])) for j in np.flatnonzero(coef)}, d)
    columns = ranker.stumps_["feature"]
    terms: dict[int, Line | Steps] = {
        int(j): _steps(ranker.stumps_[columns == j], coef[columns == j]) for j in np.unique(columns)
    }
    return Additive(intercept, terms, d)


def _on_raw_columns(form: Additive, slopes: FloatArray, offsets: FloatArray) -> Additive:
    """The form of the columns x where its own are slope · x + offset."""
    intercept, terms = form.intercept, dict[int, Line | Steps]()
    for j, term in form.terms.items():
        slope, offset = float(slopes[j]), float(offsets[j])
        if isinstance(term, Line):
            intercept += term.slope * offset
            terms[j] = Line(term.slope * slope)
        else:
            terms[j] = Steps((term.edges - offset) / slope, term.values, term.missing)
    return Additive(intercept, terms, form.n_columns)


def _steps(stumps: np.ndarray, coef: FloatArray) -> Steps:
    edges, place = np.unique(stumps["threshold"], return_inverse=True)
    heights = np.bincount(place.reshape(-1), coef, minlength=len(edges))
    values = np.concatenate([[0.0], np.cumsum(heights)])
    return Steps(edges, values, float(np.sum(coef[stumps["missing"] == 1])))
