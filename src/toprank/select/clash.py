"""Limits that no list can keep: which of them clash, in a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

import numpy as np

from toprank._text import counted, visible
from toprank.select.exact import solve
from toprank.select.limits import NO_CAP, CutRows, IntArray, Limits, code_entities

#: Limits that are tried one by one, to see which are to blame.
_MOST_TRIED = 40


def check_limits(rows: CutRows, limits: Limits) -> None:
    """Raise ValueError where a count shows that no list can keep the limits."""
    both = np.intersect1d(limits.include, limits.exclude)
    if len(both):
        _refuse([f"row {both[0]} must be in", f"row {both[0]} must be out"])
    must = limits.include
    if len(must) > limits.k:
        _refuse([describe(rows, limits, "k"), describe(rows, limits, "include")])
    _check_entities(rows, limits)
    if rows.group is not None:
        _check_groups(rows, limits, rows.group)
    if rows.cost is not None and float(np.sum(rows.cost[must])) > limits.budget * (1 + 1e-12):
        _refuse([describe(rows, limits, "budget"), describe(rows, limits, "include")])


def _check_entities(rows: CutRows, limits: Limits) -> None:
    if limits.per_entity is None or rows.entities is None or not len(limits.include):
        return
    counts = np.bincount(code_entities(rows.entities[limits.include]))
    if np.max(counts) > limits.per_entity:
        _refuse([describe(rows, limits, "per_entity"), describe(rows, limits, "include")])


def _check_groups(rows: CutRows, limits: Limits, group: IntArray) -> None:
    count = len(rows.group_names)
    must = np.bincount(group[limits.include], minlength=count)
    if limits.most is not None and np.any(must > limits.most):
        code = int(np.argmax(must > limits.most))
        inside = f"{counted(int(must[code]), 'row')} of {_name(rows, code)} that must be in"
        _refuse([describe_group(rows, limits, "most", code), inside])
    if limits.least is None:
        return
    least = limits.least
    if limits.most is not None and np.any(least > limits.most):
        code = int(np.argmax(least > limits.most))
        _refuse([describe_group(rows, limits, name, code) for name in ("least", "most")])
    there = np.bincount(group, minlength=count)
    if np.any(least > there):
        code = int(np.argmax(least > there))
        said = describe_group(rows, limits, "least", code)
        raise ValueError(f"{said[0].upper()}{said[1:]} cannot be: there are only {there[code]}.")
    left = there - np.bincount(group[limits.exclude], minlength=count)
    if np.any(least > left):
        code = int(np.argmax(least > left))
        outside = f"{there[code] - left[code]} of its {there[code]} rows that must be out"
        _refuse([describe_group(rows, limits, "least", code), outside])
    wanted = int(np.sum(np.maximum(least, must)))
    if wanted > limits.k:
        floors = [
            describe_group(rows, limits, "least", int(code)) for code in np.flatnonzero(least)
        ]
        more = [describe(rows, limits, "include")] if int(least.sum()) <= limits.k else []
        _refuse([*_shorten(floors, int(least.sum())), *more, describe(rows, limits, "k")])


def meet_floors(rows: CutRows, limits: Limits) -> IntArray:
    """Return rows that meet the floors within the other limits, or ValueError naming the clash.

    For the cases that filling from the top does not solve: entities with rows in several groups, or
    floors that only cheap rows can meet.
    """
    found = solve(rows, limits, _floor_rows(rows, limits), rows.worth)
    if found is None:
        _refuse(list(_to_blame(rows, limits)))
    return found[0]


def _floor_rows(rows: CutRows, limits: Limits) -> IntArray:
    """The rows that may be of use to a floor: those of its group that are not out."""
    useful = np.zeros(len(rows), dtype=bool)
    if rows.group is not None and limits.least is not None:
        useful = limits.least[rows.group] > 0
    useful[limits.include] = True
    useful[limits.exclude] = False
    return np.flatnonzero(useful)


def _to_blame(rows: CutRows, limits: Limits) -> Iterator[str]:
    """The limits of a smallest set that clash: without any one of them there is a list."""
    nothing = np.zeros(len(rows))
    kept, n = limits, len(rows)
    # k is none of them: a list that meets the floors can drop all rows but those `check_limits` has
    # counted
    for name in ("exclude", "include", "per_entity", "budget"):
        loose = kept.without(name, n)
        if solve(rows, loose, _floor_rows(rows, loose), nothing) is None:
            kept = loose
        elif _is_set(limits, name):
            yield describe(rows, limits, name)
    floors = np.flatnonzero(0 if kept.least is None else kept.least)
    if len(floors) > _MOST_TRIED:
        yield f"the floors of {len(floors)} groups"
        return
    for name in ("most", "least"):
        for code in floors:
            counts = getattr(kept, name)
            if counts is None or counts[code] == NO_CAP:
                continue
            loose = kept.without_group(name, int(code))
            if solve(rows, loose, _floor_rows(rows, loose), nothing) is None:
                kept = loose
            else:
                yield describe_group(rows, limits, name, int(code))


def _is_set(limits: Limits, name: str) -> bool:
    if name == "budget":
        return bool(limits.budget < np.inf)
    value = getattr(limits, name)
    return value is not None and (np.ndim(value) == 0 or len(value) > 0)


def describe(rows: CutRows, limits: Limits, name: str) -> str:
    """A limit in words."""
    if name == "k":
        return f"at most {counted(limits.k, 'row')}"
    if name == "per_entity":
        return f"at most {counted(limits.per_entity or 0, 'row')} per entity"
    if name == "budget":
        return f"a budget of {limits.budget:g}"
    if name == "include":
        return f"{counted(len(limits.include), 'row')} that must be in"
    if name == "exclude":
        return f"{counted(len(limits.exclude), 'row')} that must be out"
    counts = getattr(limits, name)
    limited = np.flatnonzero(counts < NO_CAP) if name == "most" else np.flatnonzero(counts)
    bound, shown = ("at most", "caps") if name == "most" else ("at least", "floors")
    values = np.unique(counts[limited])
    if len(limited) == len(rows.group_names) and len(values) == 1:
        return f"{bound} {counted(int(values[0]), 'row')} per group"
    return f"the {shown} of {len(limited)} groups"


def describe_group(rows: CutRows, limits: Limits, name: str, code: int) -> str:
    """The cap or the floor of one group in words."""
    bound = "at most" if name == "most" else "at least"
    return f"{bound} {counted(int(getattr(limits, name)[code]), 'row')} of {_name(rows, code)}"


def _name(rows: CutRows, code: int) -> str:
    return f"'{visible(rows.group_names[code])}'"


def _shorten(said: list[str], total: int) -> list[str]:
    return said if len(said) <= 6 else [f"floors of {len(said)} groups, {total} rows together"]


def _refuse(limits: list[str]) -> NoReturn:
    *most, last = limits
    said = f"{', '.join(most)} and {last}" if most else last
    raise ValueError(
        f"The limits clash: {said} cannot all hold." if most else f"The limit cannot be: {last}."
    )
