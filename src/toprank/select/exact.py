"""The best list that keeps its limits, by integer programming (HiGHS, through SciPy)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from toprank._arrays import Matrix
from toprank._numerics import FloatArray
from toprank.select.limits import NO_CAP, CutRows, IntArray, Limits, code_entities

#: Rows that an exact search takes at most, and how long it looks.
MOST_ROWS, MOST_SECONDS = 20_000, 20.0


@dataclass(frozen=True)
class ExactList:
    """What the search found: the rows, and what no list is worth more than."""

    rows: IntArray
    bound: float


def best_list(rows: CutRows, limits: Limits) -> ExactList | None:
    """Return the list of the largest worth that keeps the limits; None if there is none.

    Where the search runs out of time, the best list so far.
    """
    open_rows = np.setdiff1d(np.arange(len(rows)), limits.exclude)
    found = solve(rows, limits, open_rows, rows.worth)
    if found is None:
        return None
    chosen, bound = found
    return ExactList(chosen[np.lexsort((-rows.scores[chosen], -rows.worth[chosen]))], bound)


def solve(
    rows: CutRows, limits: Limits, among: IntArray, gain: FloatArray
) -> tuple[IntArray, float] | None:
    """Choose among some rows; return them and the bound of the gain, or None if none can be."""
    if not len(among):
        met = not len(limits.include) and not (limits.least is not None and limits.least.any())
        return (among, 0.0) if met else None
    low = np.isin(among, limits.include).astype(np.float64)
    found = milp(
        -gain[among],
        integrality=np.ones(len(among)),
        bounds=Bounds(low, np.ones(len(among))),
        constraints=_constraints(rows, limits, among),
        options={"time_limit": MOST_SECONDS, "mip_rel_gap": 1e-9},
    )
    if found.x is None:
        return None
    bound = found.mip_dual_bound if found.mip_dual_bound is not None else found.fun
    return among[found.x > 0.5], max(-float(bound), -float(found.fun))


def _constraints(rows: CutRows, limits: Limits, among: IntArray) -> list[LinearConstraint]:
    n = len(among)
    made = [LinearConstraint(np.ones((1, n)), 0, limits.k)]
    if limits.per_entity is not None and rows.entities is not None:
        codes = code_entities(rows.entities[among])
        used = np.flatnonzero(np.bincount(codes) > limits.per_entity)
        if len(used):
            made.append(LinearConstraint(_membership(codes, n)[used], 0, limits.per_entity))
    if rows.group is not None and (limits.most is not None or limits.least is not None):
        count = len(rows.group_names)
        least = np.zeros(count) if limits.least is None else limits.least
        most = np.full(count, NO_CAP) if limits.most is None else limits.most
        member = _membership(rows.group[among], n, count)
        made.append(LinearConstraint(member, least, np.minimum(most, n)))
    if rows.cost is not None and limits.budget < np.inf:
        made.append(LinearConstraint(rows.cost[among][None, :], 0, limits.budget * (1 + 1e-12)))
    return made


def _membership(codes: IntArray, n: int, count: int | None = None) -> Matrix:
    """One line per code, with a one for each of its rows."""
    shape = (int(codes.max()) + 1 if count is None else count, n)
    return csr_array((np.ones(n), (codes, np.arange(n))), shape=shape)
