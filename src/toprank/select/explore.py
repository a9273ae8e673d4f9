"""Rows drawn at random below the cut, with the probability that each had."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toprank._numerics import FloatArray, row_codes
from toprank.select.limits import NO_CAP, CutRows, IntArray, Limits, code_entities


@dataclass(frozen=True)
class Drawn:
    """Rows that were drawn, and their probabilities.

    Attributes
    ----------
    rows : ndarray of int
    propensity : ndarray of shape (len(rows),)
        The product of the probabilities of each stage of the draw: of one row in place of the
        others of its entity, of its group where that has a cap, and of the final draw. Weights of
        one over it make sums over the rows below the cut unbiased.
    too_dear : int
        Rows below the cut that could not be drawn for their cost.
    """

    rows: IntArray
    propensity: FloatArray
    too_dear: int = 0


#: Share of the rows below the cut that a draw within a budget must be able to reach.
_REACHED = 0.9


def draw_below(
    rows: CutRows,
    limits: Limits,
    listed: IntArray,
    size: int,
    reserve: float,
    rng: np.random.Generator,
) -> Drawn:
    """Draw rows that are neither in the list nor out, so that the limits still hold.

    Parameters
    ----------
    rows : CutRows
    limits : Limits
    listed : ndarray of int
        The rows of the list so far.
    size : int
        How many to draw, where there are as many.
    reserve : float
        What they may cost: so many are drawn that nine in ten rows below the cut can be among
        them, and the more expensive rows are never drawn.
    rng : numpy Generator
    """
    if size == 0:
        return Drawn(np.empty(0, dtype=np.intp), np.empty(0))
    below = np.ones(len(rows), dtype=bool)
    below[listed] = False
    below[limits.exclude] = False
    before = int(np.count_nonzero(below))
    if rows.cost is not None and before:
        usual = float(np.quantile(rows.cost[below], _REACHED, method="higher"))
        if usual > 0:
            size = min(size, max(1, int(reserve / usual * (1 + 1e-12))))
        below &= rows.cost <= reserve / size
    too_dear = before - int(np.count_nonzero(below))
    pool = rng.permutation(_by_content(rows, np.flatnonzero(below)))
    chance = np.ones(len(pool))
    if limits.per_entity is not None and rows.entities is not None:
        codes = code_entities(np.concatenate((rows.entities[listed], rows.entities[pool])))
        used = np.bincount(codes[: len(listed)], minlength=codes.max(initial=-1) + 1)
        room = limits.per_entity - used
        pool, chance = _thin(pool, chance, codes[len(listed) :], room, rng)
    if limits.most is not None and rows.group is not None:
        used = np.bincount(rows.group[listed], minlength=len(rows.group_names))
        room = np.where(limits.most == NO_CAP, len(rows), limits.most - used)
        pool, chance = _thin(pool, chance, rows.group[pool], room, rng)
    size = min(size, len(pool))
    share = size / len(pool) if len(pool) else 1.0
    return Drawn(pool[:size], chance[:size] * share, too_dear)


def _by_content(rows: CutRows, pool: IntArray) -> IntArray:
    """The pool by what is known of its rows, so that a draw does not depend on their order.

    Rows that are equal in all of it stay in the order they came in.
    """
    known = (rows.scores, rows.probability, rows.value, rows.cost)
    codes = row_codes(column[pool] for column in known if column is not None)
    # any order that the codes alone decide will do: short numbers are sorted in linear time, and
    # three quarters of the bits tell a million rows apart
    return pool[np.lexsort([(codes >> np.uint64(bit)).astype(np.uint16) for bit in (16, 32, 48)])]


def _thin(
    pool: IntArray,
    chance: FloatArray,
    codes: IntArray,
    room: IntArray,
    rng: np.random.Generator,
) -> tuple[IntArray, FloatArray]:
    """Keep of each code as many rows as there is room for, of a pool in random order.

    The rows kept are shuffled again: the first of many rows of a code stands early in the pool.
    """
    counts = np.bincount(codes, minlength=len(room))
    if np.max(room, initial=0) <= 1:  # the last to be written is the first of the pool
        first = np.full(len(room), -1, dtype=np.intp)
        first[codes[::-1]] = np.arange(len(codes))[::-1]
        fits = np.sort(first[(first >= 0) & (room > 0)])  # codes follow the order of the table
    else:
        fits = np.flatnonzero(counts_so_far(codes) < room[codes])
    kept = rng.permutation(fits)
    share = np.minimum(1.0, room / np.maximum(counts, 1))
    return pool[kept], chance[kept] * share[codes[kept]]


def counts_so_far(codes: IntArray) -> IntArray:
    """How often each code has come before.

    Examples
    --------
    >>> import numpy as np
    >>> counts_so_far(np.array([2, 0, 2, 2])).tolist()
    [0, 0, 1, 2]
    """
    if not len(codes):
        return np.empty(0, dtype=np.intp)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    lengths = np.diff(np.append(starts, len(codes)))
    out = np.empty(len(codes), dtype=np.intp)
    out[order] = np.arange(len(codes)) - np.repeat(starts, lengths)
    return out
