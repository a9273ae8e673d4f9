"""Folds: stratified, by groups, or in the order of time with a gap for late labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import (
    PredefinedSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.model_selection._split import GroupsConsumerMixin, check_cv

from toprank._arrays import AnyArray, Frame, Matrix
from toprank.pairs import check_counts, check_groups, check_labels, check_times, group_labels

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator


#: The places of the rows to train on, and of those to test.
Fold = tuple[NDArray[np.intp], NDArray[np.intp]]
#: What says the folds: their number, a splitter, or the folds themselves.
CrossValidation: TypeAlias = "int | BaseCrossValidator | Iterable[tuple[ArrayLike, ArrayLike]]"


class TimeOrderedSplit(GroupsConsumerMixin):
    """Train on the past, test on the future, and leave out labels that were not known yet.

    The rows are put in the order of their times and cut by scikit-learn's ``TimeSeriesSplit``.
    Rows of one time stay on one side of a cut. A row at time t is trained on only if its label had
    matured when the test begins: t + gap <= start of the test.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    gap : number or timedelta, default=0
        How long a label takes to mature, in the units of the times.
    max_train_size, test_size : int, optional
        Rows trained on and tested, as in ``TimeSeriesSplit``.

    Notes
    -----
    The times travel as ``groups``, the one thing that scikit-learn hands to a splitter:
    ``cross_validate(..., cv=TimeOrderedSplit(gap=30), groups=time)``. Without them the rows
    count as being in order, one unit of time apart.

    Examples
    --------
    >>> from toprank.tuning import TimeOrderedSplit
    >>> day = [5, 1, 2, 6, 3, 4]
    >>> for train, test in TimeOrderedSplit(2, gap=2).split(day, groups=day):
    ...     print([day[i] for i in train], [day[i] for i in test])
    [1] [3, 4]
    [1, 2, 3] [5, 6]
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        gap: object = 0,
        max_train_size: int | None = None,
        test_size: int | None = None,
    ) -> None:
        self.n_splits = n_splits
        self.gap = gap
        self.max_train_size = max_train_size
        self.test_size = test_size

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(
        self, X: Matrix | Frame, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Iterator[Fold]:
        """Yield (rows to train on, rows to test), each in the order of time."""
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        time = check_times(np.arange(n) if groups is None else groups, n)
        gap = _gap(self.gap, time)
        order = np.argsort(time, kind="stable")
        ordered = time[order]
        cutter = TimeSeriesSplit(
            self.n_splits, test_size=self.test_size, max_train_size=self.max_train_size
        )
        for _, test in cutter.split(order):
            first = int(np.searchsorted(ordered, ordered[test[0]], side="left"))
            last = int(np.searchsorted(ordered, ordered[test[-1]], side="right"))
            known = int(np.searchsorted(ordered[:first], ordered[first] - gap, side="right"))
            oldest = max(0, known - (self.max_train_size or known))
            if known == 0:
                raise ValueError(
                    f"With gap={self.gap!r} no label has matured before the test that begins at "
                    f"{ordered[first]}: take fewer splits or a smaller gap."
                )
            yield order[oldest:known], order[first:last]


def folds_of(
    cv: CrossValidation,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    time: ArrayLike | None = None,
    gap: object = 0,
    weight: ArrayLike | None = None,
) -> list[Fold]:
    """Return the folds as a list of (train, test) rows, each with rows of both classes.

    Parameters
    ----------
    cv : int, splitter or iterable
        A number means that many folds: in the order of time where ``time`` is given, whole groups
        where ``groups`` is, and otherwise stratified by the class. Groups and rows are drawn at
        random, always in the same way: neighbours in a table are often alike, and folds of
        neighbours are not what new rows are. It is lowered to the number of rows (or groups) in
        the smaller class.
    y : array-like of shape (n,)
        Labels.
    groups : array-like of shape (n,), optional
        Rows of one group stay in one fold.
    time : array-like of shape (n,), optional
        When each row was seen.
    gap : number or timedelta, default=0
        How long labels take to mature; with ``time``.
    weight : array-like of shape (n,), optional
        Repetition counts; a row of weight zero is in no fold.
    """
    y, n = check_labels(y), len(y)
    groups, weight = group_labels(groups, n), check_counts(weight, n)
    time = None if time is None else check_times(time, n)
    if weight is not None and not np.all(weight > 0):
        return _folds_of_present(cv, y, groups, time, gap, weight > 0)
    if time is not None and groups is not None:
        raise ValueError("Give groups or time, not both: a fold cannot follow two orders.")
    if time is None and gap != 0:
        raise ValueError(f"gap={gap!r} needs time=, when each row was seen.")
    rows = np.zeros((len(y), 1))
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        y = np.unique(y, return_inverse=True)[1]  # any labels, dates too, are strata
        splitter, extra = _splitter(int(cv), y, groups, time, gap)
    else:
        splitter, extra = check_cv(cv, y, classifier=True), time if groups is None else groups
    folds = [(np.asarray(a), np.asarray(b)) for a, b in splitter.split(rows, y, groups=extra)]
    _check_both_classes(folds, y)
    return folds


def tested_over_trained(folds: Sequence[Fold]) -> float:
    """Return rows tested over rows trained on, in the mean over the folds."""
    return float(np.mean([len(test) / len(train) for train, test in folds]))


def _folds_of_present(
    cv: CrossValidation,
    y: AnyArray,
    groups: np.ndarray | None,
    time: np.ndarray | None,
    gap: object,
    present: NDArray[np.bool_],
) -> list[Fold]:
    """The folds of the rows that are there, as places among all rows."""
    if isinstance(cv, PredefinedSplit):
        cv = cv.split()
    if not isinstance(cv, (int, np.integer)) and not hasattr(cv, "split"):
        folds = [tuple(np.asarray(rows) for rows in fold) for fold in cv]
        return folds_of([tuple(rows[present[rows]] for rows in fold) for fold in folds], y)
    there = np.flatnonzero(present)
    in_groups, at = (None if one is None else one[there] for one in (groups, time))
    inside = folds_of(cv, y[there], groups=in_groups, time=at, gap=gap)
    return [(there[train], there[test]) for train, test in inside]


def _splitter(
    n_splits: int, y: AnyArray, groups: object, time: ArrayLike | None, gap: object
) -> tuple[BaseCrossValidator, ArrayLike | None]:
    """The splitter that a number of folds stands for, and what it splits by."""
    if n_splits < 2:
        raise ValueError(f"cv={n_splits}: expected at least two folds.")
    if time is not None:
        return TimeOrderedSplit(n_splits, gap=gap), time
    codes = check_groups(groups, len(y))
    units = np.arange(len(y)) if codes is None else codes
    fewest = min(len(np.unique(units[y == label])) for label in np.unique(y))
    if fewest < 2:
        what = "row" if groups is None else "group"
        raise ValueError(
            f"One class has a single {what}: cross-validation needs at least two of each class. "
            "Label more of them, or check the column of the labels."
        )
    n_splits = min(n_splits, fewest)
    if groups is None:
        return StratifiedKFold(n_splits, shuffle=True, random_state=0), None
    return StratifiedGroupKFold(n_splits, shuffle=True, random_state=0), units


def check_fold_rows(folds: Iterable[Sequence[ArrayLike]], n: int) -> None:
    """Refuse folds that name rows which are not there."""
    for number, fold in enumerate(folds):
        largest = max(int(np.max(np.asarray(rows), initial=0)) for rows in fold)
        if largest >= n:
            raise ValueError(
                f"Fold {number} of cv names row {largest}, but there are {n} rows, 0 to {n - 1}."
            )


def _check_both_classes(folds: list[Fold], y: AnyArray) -> None:
    if len(folds) < 2:
        raise ValueError(f"cv gives {len(folds)} fold(s); expected at least two.")
    check_fold_rows(folds, len(y))
    for number, fold in enumerate(folds):
        for rows, role in zip(fold, ("train on", "test"), strict=True):
            if len(np.unique(y[rows])) < 2:
                raise ValueError(
                    f"Fold {number} has rows of one class only to {role} ({len(rows)} rows): take "
                    "fewer folds, or folds that are stratified by the class."
                )


def _gap(gap: Any, time: AnyArray) -> Any:
    dated = time.dtype.kind == "M"
    if isinstance(gap, timedelta):
        gap = np.timedelta64(gap)
    if dated != isinstance(gap, np.timedelta64) and gap != 0:
        wanted = "a timedelta, as the times are dates" if dated else "a number, as the times are"
        raise ValueError(f"gap={gap!r}: expected {wanted}.")
    zero = np.timedelta64(0, "us") if dated else 0
    if gap == 0:
        return zero
    if gap < zero:
        raise ValueError(f"gap={gap!r}: a label cannot mature before it is seen.")
    return gap
