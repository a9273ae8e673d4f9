"""Labelled rows that had no part in the fit: the evidence behind every guarantee.

Scores of rows that a model has learned from are too good, and a guarantee made of them is wrong.
So labels come in one of these forms, and each says where its scores are from:

- ``(y, s)``: labels and scores that the caller has made of rows held out;
- `held_out`: labelled rows for the model to score, of which the caller says that they were kept
  from the fit; a model with a card checks it;
- `out_of_fold`: every row scored by a model fitted without it.

A bare ``(X, y)`` is taken only by models whose card tells which rows they have learned from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone

from toprank._arrays import TableLike
from toprank._numerics import FloatArray
from toprank._text import about_share
from toprank.folds import WeightedFit, folds_of
from toprank.pairs import (
    Rows,
    check_counts,
    check_labels,
    check_scores,
    check_weights,
    is_frame,
    read_any_table,
    split_classes,
    to_numpy,
)

_NO_PART = "none of the calibration rows had a part in the fit"


@dataclass(frozen=True, eq=False)
class Calibration:
    """Labels and scores of rows that had no part in the fit.

    Attributes
    ----------
    positive : array of bool
    scores : array
    counts : array
        How many rows each stands for.
    source : str
        Where the scores are from, as the assumption of a guarantee.
    """

    positive: NDArray[np.bool_]
    scores: FloatArray
    counts: FloatArray
    source: str = _NO_PART

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(np.sum(self.counts))

    @property
    def n_positives(self) -> int:
        """How many of them are positives."""
        return int(np.sum(self.counts[self.positive]))

    def of_class(self, positive: bool) -> tuple[FloatArray, FloatArray]:
        """The scores of one class in descending order, and how many rows each stands for."""
        members = self.positive == positive
        if bool(np.all(self.counts == 1)):
            scores = np.sort(self.scores[members])[::-1]
            return scores, np.ones(len(scores))
        order = np.argsort(-self.scores[members], kind="stable")
        return self.scores[members][order], self.counts[members][order]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Labelled rows that a model is to score; `held_out` makes one."""

    X: TableLike
    y: ArrayLike
    sample_weight: ArrayLike | None = None


def held_out(X: TableLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None) -> HeldOut:
    """Declare that labelled rows were kept from the fit of the model that is to score them.

    Parameters
    ----------
    X : array, data frame or sparse matrix
        The rows, as the model takes them.
    y : array-like of shape (n,)
        Labels of two classes.
    sample_weight : array-like of shape (n,), optional
        How many rows each stands for: whole numbers.

    Returns
    -------
    HeldOut
        For ``calibration=`` of `select`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import PNormPush, select
    >>> from toprank.select import held_out
    >>> X, y = make_classification(3000, weights=[0.8], class_sep=2, random_state=0)
    >>> ranker = PNormPush(p=4).fit(X[:1000], y[:1000])
    >>> chosen = select(ranker, X[2000:], calibration=held_out(X[1000:2000], y[1000:2000]), fdr=0.1)
    >>> len(chosen) > 100
    True
    """
    return HeldOut(X, y, sample_weight)


def out_of_fold(
    estimator: BaseEstimator,
    X: TableLike,
    y: ArrayLike,
    *,
    cv: object = 5,
    groups: ArrayLike | None = None,
    time: ArrayLike | None = None,
    gap: object = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> Calibration:
    """Score every row by a model that was fitted without it.

    The labels of all rows then serve twice: to fit the model that ranks the new rows, and to
    calibrate. Its price is an approximation: models of the folds learn from fewer rows than the
    final one, and the guarantee of `select` holds as far as their scores are like its scores.

    Parameters
    ----------
    estimator : estimator
        Unfitted or fitted; clones of it are fitted.
    X, y : rows and labels
    cv, groups, time, gap
        The folds, as in `toprank.tuning.folds_of`.
    sample_weight : array-like of shape (n,), optional
        How many rows each stands for: whole numbers. Given to the fits too.
    pos_label : label, optional
        The positive class; by default the larger of the two labels.

    Returns
    -------
    Calibration
        For ``calibration=`` of `select`; rows that no fold tests are left out.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import PNormPush, select
    >>> from toprank.select import out_of_fold
    >>> X, y = make_classification(3000, weights=[0.8], class_sep=2, random_state=0)
    >>> evidence = out_of_fold(PNormPush(p=4), X[:2000], y[:2000])
    >>> ranker = PNormPush(p=4).fit(X[:2000], y[:2000])
    >>> len(select(ranker, X[2000:], calibration=evidence, fdr=0.1)) > 100
    True
    """
    labels = check_labels(to_numpy(y))
    rows = Rows(read_any_table(X), labels, check_counts(sample_weight, len(labels)))
    folds = folds_of(cv, labels, groups=groups, time=time, gap=gap, weight=sample_weight)
    fit = WeightedFit(clone(estimator), None, rows.weight is not None)
    total, hits = np.zeros(len(labels)), np.zeros(len(labels))
    for train, test in folds:
        model = fit.fit(rows.take(train))
        total[test] += score_rows(model, rows.take(test).X)
        hits[test] += 1
    tested = hits > 0
    counts = None if rows.weight is None else rows.weight[tested]
    source = f"rows are scored alike by the models of {len(folds)} folds, each fitted without them"
    given = (labels[tested], total[tested] / hits[tested])
    return from_scores(*given, counts, pos_label, f"{source}, and by the model of the new rows")


def score_rows(model: object, X: TableLike) -> FloatArray:
    """Return the scores of a fitted model: its decision values, or its probabilities."""
    if hasattr(model, "decision_function"):
        scores = model.decision_function(X)
    elif hasattr(model, "card") and hasattr(model, "score"):  # a model of tables
        scores = model.score(X)
    elif hasattr(model, "predict_proba"):
        scores = np.asarray(model.predict_proba(X))[:, 1]
    else:
        raise TypeError(
            f"{type(model).__name__} has no decision_function and no predict_proba: expected a "
            "fitted model, or scores."
        )
    return check_scores(scores, name="the model's scores")


def from_scores(
    y: ArrayLike,
    scores: ArrayLike,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    source: str = _NO_PART,
) -> Calibration:
    """Return checked labels and scores; ValueError says what is wrong with them."""
    labels = check_labels(to_numpy(y), "the column of calibration labels")
    values = check_scores(scores, name="the column of calibration scores")
    if len(labels) != len(values):
        raise ValueError(
            f"calibration has {len(labels)} labels and {len(values)} scores: expected (y, s), one "
            "label and one score per row."
        )
    positive = split_classes(labels, "the column of calibration labels", pos_label)[1]
    counts = check_weights(positive, sample_weight)
    if counts is None:
        return Calibration(positive, values, np.ones(len(labels)), source)
    if np.any(counts != np.round(counts)):
        raise ValueError(
            "sample_weight of the calibration rows must be whole numbers: how many rows each "
            "stands for. Where rows are drawn otherwise than the new ones, give the ratio of the "
            "two densities as likelihood_ratio=."
        )
    return Calibration(positive, values, counts, source)


def read_calibration(
    model: Any, calibration: Any, sample_weight: ArrayLike | None = None, pos_label: object = None
) -> Calibration:
    """Return the evidence that was given, in whichever form; refuse rows of the fit."""
    if isinstance(calibration, Calibration):
        _refuse_twice(sample_weight, "out_of_fold")
        return calibration
    if isinstance(calibration, HeldOut):
        _refuse_twice(sample_weight, "held_out")
        return _score_held_out(model, calibration, pos_label)
    if is_frame(calibration) and hasattr(model, "labels"):  # the labels are a column of it
        rows = HeldOut(calibration, model.labels(calibration), sample_weight)
        return _score_held_out(model, rows, None)
    if not (isinstance(calibration, tuple | list) and len(calibration) == 2):
        raise ValueError(
            f"calibration is a {type(calibration).__name__}: expected (y, s), the labels and "
            "scores of rows held out; or held_out(X, y); or out_of_fold(estimator, X, y)."
        )
    first, second = calibration
    if not _is_table(first):
        return from_scores(first, second, sample_weight, pos_label)
    if model is None or not hasattr(model, "share_learned_from"):
        raise ValueError(
            "calibration=(X, y) says nothing of whether the model has learned from these rows, and "
            "a guarantee made of such rows is wrong. Give held_out(X, y) if none of them was in "
            "the fit, or out_of_fold(estimator, X, y) to use the rows of the fit."
        )
    return _score_held_out(model, HeldOut(first, second, sample_weight), pos_label)


def _refuse_twice(sample_weight: ArrayLike | None, maker: str) -> None:
    if sample_weight is not None:
        raise ValueError(f"give sample_weight to {maker}, which made the calibration rows.")


def _is_table(values: TableLike) -> bool:
    shape = getattr(values, "shape", None) or np.shape(values)
    return is_frame(values) or (len(shape) == 2 and shape[1] != 1)


def _score_held_out(model: object, rows: HeldOut, pos_label: object) -> Calibration:
    if model is None:
        raise ValueError("held_out rows need a model that scores them; scores alone came.")
    learned = getattr(model, "share_learned_from", None)
    share = 0.0 if learned is None else learned(rows.X)
    if share > 0:
        raise ValueError(
            f"{about_share(share)} of the calibration rows are rows that the model has learned "
            "from: the guarantee would be wrong. Give rows that were kept from the fit."
        )
    source = f"{_NO_PART}{'' if learned is None else ' (the card of the model bears that out)'}"
    scores = score_rows(model, rows.X)
    return from_scores(rows.y, scores, rows.sample_weight, pos_label, source)
