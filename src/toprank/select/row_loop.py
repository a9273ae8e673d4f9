"""The loop over sorted rows that fills a list: plain, or compiled where there are many rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from toprank._extras import jit

if TYPE_CHECKING:
    from toprank._arrays import AnyArray


@cache
def compiled_loop() -> Callable[..., tuple[float, float]]:
    """`take_rows`, compiled by Numba; loaded only where there are so many rows that it repays."""
    return jit(nogil=True, cache=True)(take_rows)


def take_rows(
    must: int,
    entity: list[int],
    group: list[int],
    cost: list[float],
    useful: list[bool],
    most: list[int],
    least: list[int],
    per_entity: int,
    k: int,
    budget: float,
    of_entity: list[int],
    of_group: list[int],
    taken: AnyArray,
) -> tuple[int, float]:
    """Mark the rows taken, and return how many rows the floors lack and what was spent.

    Plain loops over lists, or over arrays where they are compiled: whether a row fits depends on
    all that were taken before it.
    """
    n = len(entity)
    count = 0
    spent = 0.0
    for i in range(must):
        taken[i] = 1
        count += 1
        spent += cost[i]
        of_entity[entity[i]] += 1
        of_group[group[i]] += 1
    missing = 0
    for g in range(len(least)):
        if least[g] > of_group[g]:
            missing += least[g] - of_group[g]
    for floors in (True, False):
        if floors and missing == 0:
            continue
        for i in range(must, n):
            if count >= k or (floors and missing == 0):
                break
            g = group[i]
            if taken[i] or of_group[g] >= most[g] or of_entity[entity[i]] >= per_entity:
                continue
            if spent + cost[i] > budget:
                continue
            if floors:
                if of_group[g] >= least[g]:
                    continue
                missing -= 1
            elif not useful[i]:
                continue
            taken[i] = 1
            count += 1
            spent += cost[i]
            of_entity[entity[i]] += 1
            of_group[g] += 1
    return missing, spent
