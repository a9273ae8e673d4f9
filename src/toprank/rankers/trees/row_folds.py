"""Which fold a row is in, and which rows are drawn: by what they hold, not by their place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import BoolArray
from toprank._numerics import row_codes, scramble_bits
from toprank.rankers.trees.plan import TreeRows


def fold_of_rows(rows: TreeRows, count: int) -> NDArray[np.intp]:
    """Return the fold of each row: classes in equal shares, equal rows and groups together.

    It depends on what the rows hold, not on their order or on how groups are called.
    """
    if rows.groups is not None:
        return np.unique(_codes(rows), return_inverse=True)[1].reshape(-1) % count
    codes, fold = _codes(rows), np.empty(len(rows), dtype=np.intp)
    for positive in (False, True):
        mine = np.flatnonzero(rows.y == positive)
        _, place = np.unique(codes[mine], return_inverse=True)
        fold[mine] = place.reshape(-1) % count
    return fold


def about_so_many(rows: TreeRows, most: int) -> BoolArray:
    """Say which rows to take: all that are present, or about so many where there are more.

    Equal rows and groups stay whole.
    """
    drawn = np.zeros(len(rows), dtype=bool)
    drawn[rows.places_present] = True
    n_present = np.count_nonzero(drawn)
    if n_present > most:
        share = most / n_present
        drawn &= scramble_bits(_codes(rows)) < np.uint64(int(share * 2**64))
    return drawn


def have_pairs(rows: TreeRows) -> bool:
    """Whether a positive faces a negative anywhere, within a group where there are groups."""
    if rows.groups is None:
        return bool(rows.y.any() and not rows.y.all())
    return len(np.intersect1d(rows.groups[rows.y], rows.groups[~rows.y])) > 0


def _codes(rows: TreeRows) -> NDArray[np.uint64]:
    """A number for each row, the same for equal rows, or for all rows of a group."""
    codes = row_codes(rows.X.T)
    if rows.groups is None:
        return codes
    names, group = np.unique(rows.groups, return_inverse=True)
    of_group = np.full(len(names), np.iinfo(np.uint64).max)
    np.minimum.at(of_group, group.reshape(-1), codes)
    return of_group[group.reshape(-1)]
