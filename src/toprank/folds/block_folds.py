"""Folds of rows that no process holds together: by a hash of the row or its group, or by time."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import TimeSeriesSplit

from toprank._arrays import TableLike
from toprank.blocks import Block, BlockSource
from toprank.blocks.parts import Folds, HashFolds, TimeFolds
from toprank.blocks.source import join_pieces
from toprank.folds.splits import TimeOrderedSplit
from toprank.pairs import check_groups, check_table

if TYPE_CHECKING:
    from toprank._arrays import AnyArray


#: Times up to which all are brought to the driver; of more rows every so many.
_MOST_TIMES = 1_000_000


def row_folds(
    X: TableLike, n_splits: int = 5, *, groups: ArrayLike | None = None, random_state: int = 0
) -> NDArray[np.int32]:
    """Return the fold of each row, as ``PNormPushCV.fit_blocks`` and ``choose_p`` draw it.

    The fold depends on what the row holds (or on its group) and on nothing else, so that it is the
    same in memory, in files and on a cluster, in whatever order the rows come. Rows that are alike
    are in one fold.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n, d)
        Numbers. Of the same type as in the files: 0.1 as float32 is another number.
    n_splits : int, default=5
        How many folds.
    groups : array-like of shape (n,), optional
        Rows of one group are in one fold, whatever else they hold.
    random_state : int, default=0
        Another number gives other folds.

    Returns
    -------
    array of shape (n,)
        Numbers from 0 to n_splits - 1, for scikit-learn's ``PredefinedSplit``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import PredefinedSplit
    >>> from toprank import PNormPushCV
    >>> from toprank.datasets import load_wdbc
    >>> from toprank.tuning import row_folds
    >>> X, y = load_wdbc(return_X_y=True)
    >>> fold = row_folds(X, 3)
    >>> np.unique(fold).tolist()
    [0, 1, 2]
    >>> ranker = PNormPushCV(cv=PredefinedSplit(fold), test_size=None).fit(X, y)
    """
    if not isinstance(n_splits, Integral) or n_splits < 2:
        raise ValueError(f"n_splits={n_splits!r}: expected a whole number of folds, 2 or more.")
    table = check_table(X, sparse=True)
    if groups is not None:
        check_groups(groups, table.shape[0])
        groups = np.asarray(groups)
    folds = HashFolds(int(n_splits), int(random_state), by_group=groups is not None)
    return folds.numbers(Block(0, table, groups=groups))


def folds_on_blocks(
    source: BlockSource,
    cv: int | TimeOrderedSplit | TimeSeriesSplit,
    *,
    repeats: int = 1,
    seed: int = 0,
    aside: float = 0.0,
) -> Folds:
    """Return the folds that a number or a splitter stands for, on the rows of a source.

    Parameters
    ----------
    source : BlockSource
    cv : int, TimeOrderedSplit or TimeSeriesSplit
        A number means folds by a hash of the groups where the source has groups, else of the rows.
        For a splitter by time the groups are the times.
    repeats : int
        How often the folds of a number are drawn.
    seed : int
    aside : float
        The share of the rows that no fold sees: by the same hash, or the last ones.
    """
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        return HashFolds(int(cv), seed, aside, source.grouped, repeats)
    if isinstance(cv, TimeOrderedSplit | TimeSeriesSplit):
        return _folds_by_time(source, cv, aside)
    raise TypeError(
        f"cv={cv!r}: the rows of a block source are put into folds one by one, where they lie. "
        "Give a number of folds (by a hash of the row, or of its group where the source has "
        "groups), or TimeOrderedSplit (the groups are the times)."
    )


@dataclass(frozen=True)
class _Times:
    """Every so many times of each block, and how many rows there are."""

    step: int
    needs_features = False

    def local(self, block: Block, state: None) -> dict[int, tuple[int, AnyArray]]:
        if block.groups is None:
            raise ValueError(
                "Folds in the order of time need the times: pass group= (the name of a column) or "
                "groups= (arrays) when the source is made."
            )
        time = np.asarray(block.groups)
        if block.weight is not None:
            time = time[np.asarray(block.weight) > 0]
        return {block.index: (len(time), time[:: self.step].copy())}

    def merge(
        self, left: dict[int, tuple[int, AnyArray]], right: dict[int, tuple[int, AnyArray]]
    ) -> dict[int, tuple[int, AnyArray]]:
        return join_pieces(left, right)


def _folds_by_time(
    source: BlockSource, cv: TimeOrderedSplit | TimeSeriesSplit, aside: float
) -> TimeFolds:
    """Cut the times of the rows where the splitter would cut the rows themselves."""
    sizes = source.map_reduce(_Times(1 << 62), None)
    step = max(1, -(-sum(n for n, _ in sizes.values()) // _MOST_TIMES))
    found = source.map_reduce(_Times(step), None)
    time = np.sort(np.concatenate([found[index][1] for index in sorted(found)]))
    if isinstance(cv, TimeSeriesSplit):
        raise TypeError(
            "TimeSeriesSplit cuts by the place of the rows, and blocks have none. Use "
            "toprank.tuning.TimeOrderedSplit, which cuts by their times."
        )
    inner = after = None
    if aside > 0:
        last = TimeOrderedSplit(2, gap=cv.gap, test_size=max(1, round(aside * len(time))))
        *_, (train, test) = last.split(time, groups=time)
        inner, after = time[train].max(), time[test].min()
        time = time[time <= inner]
    sizes_of = {
        name: None if size is None else max(1, size // step)
        for name, size in (("max_train_size", cv.max_train_size), ("test_size", cv.test_size))
    }
    splitter = TimeOrderedSplit(cv.n_splits, gap=cv.gap, **sizes_of)
    folds = tuple(
        (time[train].min(), time[train].max(), time[test].min(), time[test].max())
        for train, test in splitter.split(time, groups=time)
    )
    return TimeFolds(folds, inner, after)
