"""The top of each group of a list that never is in memory, with each entity in it once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.select.explore import counts_so_far

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows that wait together, so that short lists are not sorted all the time.
_FEWEST_SORTED = 100_000

#: Scores, places, rows, groups and entities of some rows of a list.
_Part: TypeAlias = (
    "tuple[FloatArray, NDArray[np.intp], pa.Table, NDArray[np.object_], NDArray[np.object_] | None]"
)


class LimitedTop:
    """Keeps the k highest rows of each group, and of each entity the highest row only.

    Among equal scores the earlier rows stay. A row whose entity is missing (None or the empty word)
    is its own entity; rows without a group are a group.

    Parameters
    ----------
    k : int or None
        How many rows to keep, of each group where there are groups; None for all.

    Attributes
    ----------
    scores, places, rows : array, array of int, pyarrow.Table
        As in `RunningTop`; after `settle`, group by group, the group with the best row first.
    ranks : array of int
        The rank of each row in its group.
    tied : array of bool
        Whether rows of the same score were left out of its group.
    tied_out : int
        How many rows tie with the last of their group, and were left out.
    n : int
        How many rows were offered.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa
    >>> top = LimitedTop(1)
    >>> rows = pa.table({"name": ["a", "b", "c"]})
    >>> top.add(np.array([1.0, 3.0, 2.0]), rows, groups=["x", "x", "y"])
    >>> top.settle()
    >>> top.rows.column("name").to_pylist(), top.ranks.tolist()
    (['b', 'c'], [1, 1])
    """

    def __init__(self, k: int | None) -> None:
        self.k = k
        self.scores: FloatArray = np.empty(0)
        self.places: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self.ranks: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self.tied: NDArray[np.bool_] = np.empty(0, dtype=bool)
        self.rows: pa.Table = None  # before any rows
        self.n = 0
        self._groups: NDArray[np.object_] | None = None
        self._entities: NDArray[np.object_] | None = None
        self._waiting: list[_Part] = []
        self._ties: dict[object, tuple[float, int]] = {}

    @property
    def tied_out(self) -> int:
        """How many rows tie with the last of their group, and were left out."""
        return sum(count for _, count in self._ties.values())

    def add(
        self,
        scores: FloatArray,
        rows: pa.Table,
        groups: np.ndarray | None = None,
        entities: Sequence[object] | None = None,
    ) -> None:
        """Offer the next rows of the list, their scores, and what their groups and entities are."""
        places = np.arange(self.n, self.n + len(scores), dtype=np.intp)
        mine = np.full(len(scores), "", dtype=object)
        if groups is not None:
            mine[:] = ["\0" if group is None else group for group in groups]
        whose = None
        if entities is not None:
            whose = np.empty(len(scores), dtype=object)
            for place, entity in enumerate(entities):
                # a missing entity is named after its place, as no entity is
                whose[place] = (self.n + place,) if entity in (None, "") else entity
        self._waiting.append((scores, places, rows, mine, whose))
        self.n += len(scores)
        # with entities nothing is cut before the end: a row that its group lost stands for its own
        if sum(len(part[0]) for part in self._waiting) >= _FEWEST_SORTED:
            self._merge(final=False)

    def settle(self) -> None:
        """Sort the waiting rows into the list, drop those beyond the limits, order it by groups."""
        self._merge(final=True)
        if self.rows is None or not len(self.scores):
            return
        codes = _codes(self._groups)
        order = np.argsort(codes, kind="stable")  # codes count groups in the order of best rows
        ranks = counts_so_far(codes) + 1
        cuts = {group: score for group, (score, count) in self._ties.items() if count}
        assert self._groups is not None
        tied = np.array(
            [cuts.get(g) == s for g, s in zip(self._groups, self.scores, strict=True)], dtype=bool
        )
        self.ranks, self.tied = ranks[order], tied[order]
        self._take(order)

    def _take(self, chosen: NDArray[np.intp]) -> None:
        self.scores, self.places = self.scores[chosen], self.places[chosen]
        self.rows = self.rows.take(chosen)
        self._groups = None if self._groups is None else self._groups[chosen]
        self._entities = None if self._entities is None else self._entities[chosen]

    def _merge(self, final: bool) -> None:
        # what was merged before the end may still have to be cut
        if not self._waiting and (self.rows is None or not final):
            return
        kept = (
            []
            if self.rows is None
            else [(self.scores, self.places, self.rows, self._groups, self._entities)]
        )
        scores, places, tables, groups, entities = zip(*kept, *self._waiting, strict=True)
        self._waiting = []
        self.scores, self.places = np.concatenate(scores), np.concatenate(places)
        self.rows = require("pyarrow", "frames").concat_tables(tables, promote_options="permissive")
        self._groups = np.concatenate(groups)
        self._entities = None if entities[-1] is None else np.concatenate(entities)
        self._take(np.argsort(-self.scores, kind="stable"))  # what came first stays first
        if self._entities is not None:
            self._take(np.flatnonzero(counts_so_far(_codes(self._entities)) == 0))
        if self.k is not None and (final or self._entities is None):
            self._cut_groups(self.k)

    def _cut_groups(self, k: int) -> None:
        """Keep the first k rows of each group, and count those that tie with the last of them."""
        place = counts_so_far(_codes(self._groups))
        assert self._groups is not None
        last = np.flatnonzero(place == k - 1)
        cuts = dict(zip(self._groups[last], self.scores[last].tolist(), strict=True))
        for group, score in cuts.items():
            before = self._ties.get(group, (score, 0))
            self._ties[group] = before if before[0] == score else (score, 0)
        for row in np.flatnonzero(place >= k).tolist():
            group = self._groups[row]
            score, count = self._ties[group]
            if self.scores[row] == score:
                self._ties[group] = (score, count + 1)
        self._take(np.flatnonzero(place < k))


def _codes(keys: object) -> NDArray[np.intp]:
    codes, _ = require("pandas", "models").factorize(keys)
    return np.asarray(codes, dtype=np.intp)
