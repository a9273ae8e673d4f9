"""The rows that p is chosen on, and rows kept aside for a score that the choice never touched."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.model_selection import (
    PredefinedSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    check_cv,
)

from toprank._arrays import AnyArray
from toprank._numerics import FloatArray
from toprank.blocks.row_keys import hash_rows
from toprank.folds import TimeOrderedSplit, folds_of
from toprank.folds.splits import check_fold_rows
from toprank.pairs import Rows

if TYPE_CHECKING:
    from toprank.folds import Fold


#: A matrix with a smaller share of entries other than zero than the first number is read faster as
#: a sparse one, with a larger one than the second as a dense one of no more bytes than the third.
_SPARSE_BELOW, _DENSE_ABOVE, _DENSE_BYTES = 0.2, 0.3, 1 << 24
#: Stored entries up to which those of a sparse matrix are made float64, which every product needs.
_FLOAT_ENTRIES = 1 << 25


@dataclass(frozen=True)
class TuningRows(Rows):
    """Rows whose ``weight`` is for scores; ``fit_weight`` includes the weights of the classes."""

    fit_weight: FloatArray | None = None

    def by_class(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """These rows, the positives first: blocks of one class are read fastest."""
        return rows[np.argsort(~self.y[rows], kind="stable")]

    def in_lighter_form(self) -> Self:
        """The same rows, sparse or dense: a grid reads them hundreds of times."""
        X, entries = self.X, self.X.shape[0] * self.X.shape[1]
        if sparse.issparse(X):
            dense = X.nnz > _DENSE_ABOVE * entries and 8 * entries <= _DENSE_BYTES
            X = X.toarray() if dense else X
        elif np.count_nonzero(X) < _SPARSE_BELOW * entries:
            X = sparse.csr_array(X)
        if sparse.issparse(X) and X.nnz <= _FLOAT_ENTRIES:
            X = X.astype(np.float64, copy=False)
        return replace(self, X=X)

    def clusters(self, cv: object) -> AnyArray | None:
        """Groups whose rows depend on each other; times are none."""
        return None if isinstance(cv, TimeOrderedSplit) else self.groups


def split_outer(
    rows: Rows, cv: object, share: float, seed: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
    """Return (rows to choose on, rows kept aside); None if a class has too few rows for it.

    In the order of time the last rows are kept aside, after the gap that the splitter asks for.
    Otherwise about the same share of each class is, by a hash of the row: rows that are alike
    (or of one group) stay together, and a row of weight two is treated as the row twice.
    """
    positive = rows.y
    if isinstance(cv, TimeOrderedSplit | TimeSeriesSplit):
        return _latest(len(rows), rows.groups, cv, share, positive)
    if rows.groups is not None:
        aside = _smallest_keys(_hash_labels(rows.groups, seed), rows.counts, share)
    else:
        keys, aside = hash_rows(rows.X, seed), np.zeros(len(rows), dtype=bool)
        for members in (positive, ~positive):
            aside[members] = _smallest_keys(keys[members], rows.counts[members], share)
    return _parts_with_both_classes(np.flatnonzero(~aside), np.flatnonzero(aside), positive)


def _latest(
    n: int,
    time: ArrayLike | None,
    cv: TimeOrderedSplit | TimeSeriesSplit,
    share: float,
    positive: NDArray[np.bool_],
) -> Fold | None:
    size = max(1, round(share * n))
    if isinstance(cv, TimeOrderedSplit):
        splitter = TimeOrderedSplit(2, gap=cv.gap, test_size=size)
        folds = splitter.split(np.empty(n), groups=time)
    else:
        folds = TimeSeriesSplit(2, gap=cv.gap, test_size=size).split(np.empty(n))
    *_, (before, after) = folds
    return _parts_with_both_classes(np.sort(before), np.sort(after), positive)


def _smallest_keys(keys: NDArray[np.uint64], weight: FloatArray, share: float) -> NDArray[np.bool_]:
    """The smallest keys that carry about this share of the weight, equal keys together."""
    distinct, where = np.unique(keys, return_inverse=True)
    mass = np.cumsum(np.bincount(where, weights=weight))
    last = int(np.argmin(np.abs(mass - share * mass[-1])))
    return np.asarray(keys <= distinct[last])


def _parts_with_both_classes(
    inside: NDArray[np.intp], aside: NDArray[np.intp], positive: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
    """None unless both parts have both classes, and the inner one at least two rows of each."""
    enough = all(
        np.count_nonzero(positive[rows] == side) >= least
        for rows, least in ((inside, 2), (aside, 1))
        for side in (True, False)
    )
    return (inside, aside) if enough else None


def _hash_labels(groups: AnyArray, seed: int) -> NDArray[np.uint64]:
    """A number for each row that depends on its group alone."""
    distinct, where = np.unique(groups, return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(distinct))
    return order.astype(np.uint64)[where]


def inner_folds(
    rows: Rows, inner: NDArray[np.intp], cv: object, repeats: int, seed: int
) -> list[Fold]:
    """Return the folds to choose on, as positions among the inner rows.

    Where their number is given they are drawn ``repeats`` times.
    """
    if isinstance(cv, Integral) or (hasattr(cv, "split") and not isinstance(cv, PredefinedSplit)):
        part = rows.take(inner)
        folds = folds_of(cv, part.y, groups=part.groups)
        if isinstance(cv, Integral):
            folds += _folds_again(part, len(folds), range(seed + 1, seed + repeats))
        return folds
    place = np.full(len(rows), -1)
    place[inner] = np.arange(len(inner))
    given = list(check_cv(cv, rows.y, classifier=True).split(rows.y, rows.y))
    check_fold_rows(given, len(rows))
    parts = [tuple(place[part][place[part] >= 0] for part in map(np.asarray, f)) for f in given]
    return folds_of(parts, rows.y[inner])


def _folds_again(part: Rows, n_splits: int, seeds: range) -> list[Fold]:
    """The folds drawn again, at random."""
    kind = StratifiedKFold if part.groups is None else StratifiedGroupKFold
    again = (kind(n_splits, shuffle=True, random_state=seed) for seed in seeds)
    return [fold for cv in again for fold in folds_of(cv, part.y, groups=part.groups)]
