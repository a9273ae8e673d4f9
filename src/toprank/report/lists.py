"""The list itself: who stands at the top, who is near the cut, and which columns put them there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import AnyArray, JsonObject
from toprank._numerics import FloatArray
from toprank._text import clean_text, percent
from toprank.models.columns import Column
from toprank.models.model import largest_reasons
from toprank.report.held_out import HeldOut
from toprank.report.table import Table, word_of

#: Rows shown on each side of the cut.
NEAR = 6
#: Columns that are shown by name; the others are summed.
MOST_COLUMNS = 12
_REASONS = 3


def order_by_score(scores: FloatArray) -> NDArray[np.intp]:
    """Places of the rows, the highest score first; ties in the order of the table."""
    return np.argsort(-scores, kind="stable")


def mean_and_spread(scores: FloatArray) -> tuple[float, float]:
    """Mean and standard deviation of a list's scores: the zero and the unit of what is shown.

    The scale of a push depends on p and means nothing by itself.
    """
    spread = float(np.std(scores))
    return float(np.mean(scores)), spread if spread > 0 else 1.0


def shown_rows(held: HeldOut, k: int) -> list[NDArray[np.intp]]:
    """For each p the first k rows and those just below the cut, the highest score first."""
    return [order_by_score(scores)[: k + NEAR] for scores in held.pushes]


def item_lists(
    table: Table, held: HeldOut, k: int, parts: list[FloatArray]
) -> tuple[list[JsonObject], JsonObject]:
    """For each p the first k rows and those near the cut, and the items that they name.

    Parameters
    ----------
    table : Table
    held : HeldOut
    k : int
    parts : list of arrays
        For each p, what each column adds to the scores of `shown_rows`.

    Returns
    -------
    lists : list of dict
        One per p: ``top`` and ``near`` (names of items, best first), ``score_at_cut``,
        ``gap_at_cut`` and ``tied_at_cut``.
    items : dict
        By the row's number: ``id``, ``positive``, and one entry per p of ``rank``, ``score`` (in
        standard deviations from the mean) and ``reasons`` (empty where the row is not shown).
    """
    orders = [order_by_score(scores) for scores in held.pushes]
    tops = [order[:k] for order in orders]
    nears = [order[max(0, k - NEAR) : k + NEAR] for order in orders]
    wanted = np.unique(np.concatenate([*tops, *nears]))
    ranks = np.empty((len(orders), len(held.rows)), dtype=np.intp)
    for j, order in enumerate(orders):
        ranks[j, order] = np.arange(1, len(order) + 1)
    reasons = [
        _explain_rows(table, held, order[: k + NEAR], parts[j], j) for j, order in enumerate(orders)
    ]
    standardised = [
        (scores - mean) / spread
        for scores, (mean, spread) in ((scores, mean_and_spread(scores)) for scores in held.pushes)
    ]
    items = {
        str(held.rows[place]): {
            "id": table.names[held.rows[place]],
            "positive": bool(held.positive[place]),
            "rank": ranks[:, place],
            "score": [scores[place] for scores in standardised],
            "reasons": [of_p.get(int(place), []) for of_p in reasons],
        }
        for place in wanted
    }
    lists = [
        {
            "top": [str(held.rows[place]) for place in top],
            "near": [str(held.rows[place]) for place in near],
            **_describe_cut(scores[order], k),
        }
        for top, near, order, scores in zip(tops, nears, orders, standardised, strict=True)
    ]
    return lists, items


def _describe_cut(sorted_scores: FloatArray, k: int) -> dict[str, float]:
    """The score at the cut, and how far the first row below it is."""
    if k >= len(sorted_scores):
        return {"score_at_cut": sorted_scores[-1], "gap_at_cut": None, "tied_at_cut": 0}
    last = sorted_scores[k - 1]
    tied = int(np.count_nonzero(sorted_scores == last)) if sorted_scores[k] == last else 0
    return {"score_at_cut": last, "gap_at_cut": last - sorted_scores[k], "tied_at_cut": tied}


def _explain_rows(
    table: Table, held: HeldOut, places: NDArray[np.intp], parts: FloatArray, which: int
) -> dict[int, list[JsonObject]]:
    parts = parts / mean_and_spread(held.pushes[which])[1]
    together = table.together
    words = [table.words(column, held.rows[places]) for column in table.schema.columns]
    names = [clean_text(name, 60) for name in together.names]
    found = largest_reasons(together.sums(parts), names, together.words(words), _REASONS)
    return {
        int(place): [
            {"column": one.column, "value": one.value, "adds": one.contribution} for one in line
        ]
        for place, line in zip(places, found, strict=True)
    }


def features(table: Table, held: HeldOut, k: int, parts: FloatArray, which: int) -> JsonObject:
    """Which columns separate the first k rows from an average row, for one p.

    The score is a sum over the columns, so the difference between the mean score of the first k
    rows and that of all rows is the sum of what each column adds to it. Both are in standard
    deviations of the score. ``parts`` is what each column adds to the scores of `shown_rows`.
    """
    top, together = order_by_score(held.pushes[which])[:k], table.together
    adds = together.sums(parts[:k]).mean(axis=0) / mean_and_spread(held.pushes[which])[1]
    order = np.argsort(-np.abs(adds), kind="stable")
    named = order[:MOST_COLUMNS]
    columns = table.schema.columns
    return {
        "total": float(adds.sum()),
        "columns": [
            {
                "column": clean_text(together.names[j], 80),
                "kind": columns[together.members[j][0]].kind,
                "adds": float(adds[j]),
                **_typical_values(
                    table, [columns[i] for i in together.members[j]], held.rows, held.rows[top]
                ),
            }
            for j in named
            if adds[j] != 0
        ],
        "others": len(order) - len(named),
        "others_add": float(adds[order[MOST_COLUMNS:]].sum()),
    }


def _typical_values(
    table: Table, columns: list[Column], rows: NDArray[np.intp], top: NDArray[np.intp]
) -> dict[str, str]:
    """What columns that are taken together hold, side by side."""
    each = [_typical_value(table, column, rows, top) for column in columns]
    return each[0] | {
        where: ", ".join(one[where] for one in each) for where in ("in_top", "in_all")
    }


def _typical_value(
    table: Table, column: Column, rows: NDArray[np.intp], top: NDArray[np.intp]
) -> dict[str, str]:
    """What the column holds in the first rows and in all: a median, or the share of a value."""
    values = table.rows.X[column.name]
    if column.kind in ("number", "date"):
        pair = [word_of(column.kind, _median(values[part])) for part in (top, rows)]
        return {"what": "median", "in_top": pair[0], "in_all": pair[1]}
    if column.kind == "text":
        return {"what": "text", "in_top": "", "in_all": ""}
    if column.kind == "boolean":
        shares = [float(np.mean(values[part] == 1)) for part in (top, rows)]
        return {"what": "yes", "in_top": percent(shares[0]), "in_all": percent(shares[1])}
    word, in_top, in_all = _most_over_represented(values[top], values[rows])
    return {
        "what": clean_text(word, 40) or "missing",
        "in_top": percent(in_top),
        "in_all": percent(in_all),
    }


def _median(values: np.ndarray) -> np.generic | float:
    if values.dtype.kind == "M":
        there = np.sort(values[~np.isnat(values)])
        return there[len(there) // 2] if len(there) else np.datetime64("NaT", "us")
    there = values[~np.isnan(values)]
    return np.median(there) if len(there) else np.nan


def _most_over_represented(top: AnyArray, every: AnyArray) -> tuple[str, float, float]:
    """The value whose share in the first rows exceeds its share in all rows the most."""
    words, counts = np.unique(every.astype(str), return_counts=True)
    in_all = counts / len(every)
    in_top = np.array([np.mean(top == word) for word in words])
    best = int(np.argmax(in_top - in_all))
    return str(words[best]), float(in_top[best]), float(in_all[best])
