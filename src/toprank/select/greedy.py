"""Fill a list from the top, keeping to limits: the rows in one order, each taken if it fits.

Without a budget, and with limits per entity or per group but not both, no list that keeps the
limits is worth more (they are a laminar matroid). Otherwise `upper_bound` says how much more the
best list may be worth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from toprank._numerics import FloatArray, stable_order
from toprank.select.limits import NO_CAP, CutRows, IntArray, Limits, code_entities
from toprank.select.row_loop import compiled_loop, take_rows

#: Rows that are sorted at first, as a multiple of k, and at least; then eight times as many.
_FIRST, _FEWEST = 2, 2000
#: Rows from which on the loop is compiled.
_COMPILED_FROM = 15_000


class SortedPrefix:
    """Rows in the order of a key, the largest first, sorted only as far as they are asked for.

    Rows of one key stand in the order of their scores, then of the table. A key of minus infinity
    leaves a row out.

    Examples
    --------
    >>> import numpy as np
    >>> prefix = SortedPrefix(np.array([1.0, 3.0, 1.0, 2.0]), np.array([0.0, 0.0, 5.0, 0.0]))
    >>> prefix.first(3).tolist()
    [1, 3, 2, 0]
    """

    def __init__(self, key: FloatArray, scores: FloatArray) -> None:
        self.key = key
        self.scores = scores
        self.n = int(np.count_nonzero(key > -np.inf))
        self._order: IntArray = np.empty(0, dtype=np.intp)

    def first(self, count: int) -> IntArray:
        """The first rows, at least so many where there are as many."""
        count = min(count, self.n)
        if len(self._order) < count:
            place = len(self.key) - count
            least = np.partition(self.key, place)[place]
            rows = np.flatnonzero(self.key >= least)
            rows = rows[stable_order(-self.scores[rows])]
            if not np.array_equal(self.key[rows], self.scores[rows]):
                rows = rows[stable_order(-self.key[rows])]
            self._order = rows
        return self._order


@dataclass(frozen=True)
class Filled:
    """A list that was filled.

    Attributes
    ----------
    rows : ndarray of int
        In the order in which they were taken from the sorted rows.
    missing : int
        How many rows the floors still lack.
    """

    rows: IntArray
    missing: int


def rank_rows(rows: CutRows, limits: Limits, by_cost: bool = False) -> SortedPrefix:
    """The rows by their worth, or by their worth per cost; without those that must be out."""
    key = rows.worth
    if by_cost and rows.cost is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            key = np.where(rows.cost > 0, rows.worth / rows.cost, np.finfo(float).max)
    return SortedPrefix(drop_rows(key, limits.exclude), rows.scores)


def drop_rows(key: FloatArray, exclude: IntArray) -> FloatArray:
    """Keys with minus infinity for the rows that must be out."""
    if len(exclude):
        key = key.copy()
        key[exclude] = -np.inf
    return key


def fill_list(
    rows: CutRows, limits: Limits, ranked: SortedPrefix, least_key: float = -np.inf
) -> Filled:
    """Take the rows that must be in, then the first that the floors want, then the first that fit.

    Parameters
    ----------
    rows : CutRows
    limits : Limits
    ranked : SortedPrefix
        The order in which rows are tried.
    least_key : float
        Beyond the floors, only rows whose key is larger are taken.
    """
    asked = max(_FEWEST, _FIRST * min(limits.k, ranked.n))
    while True:
        order = ranked.first(asked)
        filled, left = _fill_from(rows, limits, order, ranked.key, least_key)
        # what is left of a budget buys no usual row more: cheaper ones further down are not sought
        some = filled.rows[:1000]
        usual = 0.0 if rows.cost is None or not len(some) else float(np.mean(rows.cost[some]))
        full = len(filled.rows) >= limits.k or left < usual
        beyond = not len(order) or ranked.key[order[-1]] <= least_key
        if len(order) == ranked.n or (filled.missing == 0 and (full or beyond)):
            return filled
        asked = 8 * len(order)


def _fill_from(
    rows: CutRows, limits: Limits, order: IntArray, key: FloatArray, least_key: float
) -> tuple[Filled, float]:
    """Fill the list from some sorted rows; also what is left of the budget."""
    must = limits.include
    if len(must):
        order = np.concatenate((must, order[~np.isin(order, must)]))
    n = len(order)
    groups = len(rows.group_names)
    entity, per_entity = np.zeros(n, dtype=np.intp), NO_CAP
    if limits.per_entity is not None and rows.entities is not None:
        entity, per_entity = code_entities(rows.entities[order]), limits.per_entity
    grouped = rows.group is not None and (limits.most is not None or limits.least is not None)
    group = rows.group[order] if grouped and rows.group is not None else np.zeros(n, dtype=np.intp)
    most = limits.most if grouped and limits.most is not None else np.full(groups + 1, NO_CAP)
    least = limits.least if grouped and limits.least is not None else np.zeros(groups + 1, int)
    charged = rows.cost is not None and limits.budget < np.inf
    cost = rows.cost[order] if charged and rows.cost is not None else np.zeros(n)
    useful = key[order] > least_key
    taken = np.zeros(n, dtype=np.uint8)
    columns = (entity, group, cost, useful, most, least)
    counts = (int(entity.max(initial=0)) + 1, groups + 1)
    budget = limits.budget * (1 + 1e-12)
    compiled = n >= _COMPILED_FROM
    loop: Callable[..., tuple[float, float]] = compiled_loop() if compiled else take_rows
    state = [np.zeros(size, dtype=np.int64) for size in counts]
    arrays = [*columns, *state]
    # lists are read faster than arrays, unless the loop is compiled
    listed: Sequence[object] = arrays if compiled else [column.tolist() for column in arrays]
    missing, spent = loop(len(must), *listed[:6], per_entity, limits.k, budget, *listed[6:], taken)
    return Filled(order[taken.astype(bool)], int(missing)), limits.budget - float(spent)


def upper_bound(rows: CutRows, limits: Limits, price: float, ranked: SortedPrefix) -> float:
    """Return what no list that keeps the limits is worth more than.

    The budget is dropped for a price per unit of cost (Lagrange), and the limits per entity or
    those per group are dropped: what is left is solved exactly by `fill_list`. The smaller of the
    two is the bound.

    Parameters
    ----------
    rows : CutRows
        With probabilities.
    limits : Limits
        That some list keeps.
    price : float
        Worth per unit of cost at which the budget is charged; any price gives a valid bound.
    ranked : SortedPrefix
        The rows by their worth less the price of their cost.
    """
    gain, spare = rows.worth, 0.0
    if price > 0 and rows.cost is not None:
        gain, spare = rows.worth - price * rows.cost, price * limits.budget
    free = replace(limits, budget=np.inf)
    relaxed = [free]
    if rows.entities is not None and limits.per_entity is not None and rows.group is not None:
        n = len(rows)
        relaxed = [free.without("per_entity", n), free.without("most", n).without("least", n)]
    found = [fill_list(rows, one, ranked, least_key=0.0).rows for one in relaxed]
    return spare + min(float(np.sum(gain[chosen])) for chosen in found)
