"""The search for the best list within limits, and for what each limit costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from toprank._numerics import FloatArray, stable_order
from toprank._text import counted
from toprank.select.clash import describe, describe_group, meet_floors
from toprank.select.exact import best_list
from toprank.select.greedy import SortedPrefix, drop_rows, fill_list, rank_rows, upper_bound
from toprank.select.limited_list import LimitPrice
from toprank.select.limits import NO_CAP, CutRows, IntArray, Limits

#: Groups up to which each cap and each floor has a price of its own.
_MOST_PRICED = 12
#: Steps of the search for the price of the budget.
_HALVINGS = 9


class ListSearch:
    """Finds the best list, with the sorted rows kept for the next search."""

    def __init__(self, rows: CutRows, method: str) -> None:
        self.rows = rows
        self.method = method
        self._priced: tuple[Limits, float] | None = None
        self._charged: tuple[float, int, SortedPrefix] | None = None
        self._sorted: dict[tuple[bool, bool], SortedPrefix] = {}

    def total(self, chosen: IntArray) -> float:
        """What rows are worth together."""
        return float(np.sum(self.rows.worth[chosen]))

    def best(self, limits: Limits) -> IntArray:
        """The rows of the best list, or the best that greedy finds; the first row first."""
        if self.method == "exact":
            best = best_list(self.rows, limits)
            if best is not None:
                self._bound = best.bound
                return best.rows
            meet_floors(self.rows, limits)  # raises where the limits clash
            self.method = "greedy"  # they do not: the time was up before any list was found
        found = [
            fill_list(self.rows, limits, self.ranked(limits, by_cost))
            for by_cost in ((False, True) if limits.budget < np.inf else (False,))
        ]
        price = self.price_of_cost(limits)
        if price > 0:
            found.append(fill_list(self.rows, limits, self.charged(limits, price)))
        whole = [one.rows for one in found if one.missing == 0]
        if not whole:
            floors = meet_floors(self.rows, limits)
            return self.best(replace(limits, least=None, include=floors))
        chosen = max(whole, key=self.total)
        # by worth, then by score; the sort of the scores is often the whole of it
        chosen = chosen[stable_order(-self.rows.scores[chosen])]
        return chosen[stable_order(-self.rows.worth[chosen])]

    def ranked(self, limits: Limits, by_cost: bool) -> SortedPrefix:
        """The rows in the order in which they are tried."""
        key = (by_cost, len(limits.exclude) > 0)
        if key not in self._sorted:
            self._sorted[key] = rank_rows(self.rows, limits, by_cost)
        return self._sorted[key]

    def bound(self, limits: Limits, chosen: IntArray) -> float | None:
        """What no list is worth more than; None where no probabilities are known."""
        if self.rows.probability is None:
            return None
        if self.method == "exact":
            return max(self._bound, self.total(chosen))
        bounds = [upper_bound(self.rows, limits, 0.0, self.ranked(limits, False))]
        price = self.price_of_cost(limits)
        if price > 0:
            bounds.append(upper_bound(self.rows, limits, price, self.charged(limits, price)))
        return max(min(bounds), self.total(chosen))

    def charged(self, limits: Limits, price: float) -> SortedPrefix:
        """The rows by their worth less a price per unit of cost."""
        if self._charged is None or self._charged[:2] != (price, len(limits.exclude)):
            assert self.rows.cost is not None
            key = drop_rows(self.rows.worth - price * self.rows.cost, limits.exclude)
            self._charged = (price, len(limits.exclude), SortedPrefix(key, self.rows.scores))
        return self._charged[2]

    def price_of_cost(self, limits: Limits) -> float:
        """The price per unit of cost at which the rows that are worth it use up the budget.

        Found by halving an interval, on the rows that lead by their worth or their worth per cost.
        Zero where the budget is no limit.
        """
        if self.rows.cost is None or limits.budget == np.inf:
            return 0.0
        if self._priced is not None and self._priced[0] is limits:
            return self._priced[1]
        self._priced = (limits, self._halve(limits))
        return self._priced[1]

    def _halve(self, limits: Limits) -> float:
        lead = [self.ranked(limits, by_cost) for by_cost in (False, True)]
        count = max(1000, 2 * min(limits.k, len(self.rows)))
        among = np.union1d(limits.include, np.union1d(*(one.first(count) for one in lead)))
        rows = self.rows.take(among)
        inside = replace(
            limits,
            budget=np.inf,
            least=None,
            include=np.searchsorted(among, limits.include),
            exclude=np.flatnonzero(np.isin(among, limits.exclude)),
        )
        assert rows.cost is not None
        low, high = 0.0, _dearest_price(rows, limits.budget)
        for step in range(_HALVINGS):
            price = 0.0 if step == 0 else (low + high) / 2
            key = drop_rows(rows.worth - price * rows.cost, inside.exclude)
            taken = fill_list(rows, inside, SortedPrefix(key, key), least_key=0.0).rows
            over = float(np.sum(rows.cost[taken])) > limits.budget
            if step == 0 and not over:
                return 0.0
            low, high = (price, high) if over else (low, price)
        return high


def _dearest_price(rows: CutRows, budget: float) -> float:
    """A price at which the rows that are worth it cost no more than the budget."""
    assert rows.cost is not None
    dear = np.flatnonzero(rows.cost > 0)
    each = rows.worth[dear] / rows.cost[dear]
    order = np.argsort(-each)
    over = np.flatnonzero(np.cumsum(rows.cost[dear][order]) > budget)
    return float(each[order[over[0]]]) if len(over) else 0.0


def find_prices(
    search: ListSearch,
    limits: Limits,
    chosen_within: Limits,
    chosen: IntArray,
    listed: IntArray,
    rows: CutRows,
) -> Iterator[LimitPrice]:
    """What the list would hold more without each of the limits, by the probabilities of `rows`."""
    for said, loose in _loosened(rows, limits, chosen_within):
        free = search.best(loose)
        # this list keeps the other limits too
        yield price_of(
            rows, said, free if search.total(free) > search.total(chosen) else chosen, chosen
        )
    drawn = len(listed) - len(chosen)
    if drawn:
        said = f"{counted(drawn, 'row')} drawn at random"
        yield price_of(rows, said, search.best(limits), listed)


def price_of(rows: CutRows, said: str, free: IntArray, listed: IntArray) -> LimitPrice:
    """What a list holds less than another that keeps a limit fewer."""
    before, after = np.zeros(len(rows), dtype=bool), np.zeros(len(rows), dtype=bool)
    before[free], after[listed] = True, True
    gone, come = free[~after[free]], listed[~before[listed]]
    value = None if rows.value is None else rows.worth
    return LimitPrice(
        said,
        len(gone),
        *(None if one is None else _lost(one, gone, come) for one in (rows.probability, value)),
    )


def _lost(values: FloatArray, gone: IntArray, come: IntArray) -> float:
    lost = float(np.sum(values[gone])) - float(np.sum(values[come]))
    return lost if abs(lost) > 1e-12 else 0.0


def _loosened(rows: CutRows, limits: Limits, chosen_within: Limits) -> Iterator[tuple[str, Limits]]:
    """Each limit in words, and the limits of the chosen rows without it."""
    n, inner = len(rows), chosen_within
    if limits.per_entity is not None:
        yield describe(rows, limits, "per_entity"), inner.without("per_entity", n)
    for name in ("most", "least"):
        counts = getattr(limits, name)
        if counts is None:
            continue
        codes = np.flatnonzero(counts < NO_CAP) if name == "most" else np.flatnonzero(counts)
        if len(codes) > _MOST_PRICED:
            yield describe(rows, limits, name), inner.without(name, n)
            continue
        for code in codes:
            said = describe_group(rows, limits, name, int(code))
            yield said, inner.without_group(name, int(code))
    if limits.budget < np.inf and limits.k < n:
        yield describe(rows, limits, "budget"), inner.without("budget", n)
    for name in ("include", "exclude"):
        if len(getattr(limits, name)):
            yield describe(rows, limits, name), inner.without(name, n)
