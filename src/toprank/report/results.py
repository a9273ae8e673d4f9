"""The results of a report as one dictionary, from the scores of unseen rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.folds import tested_over_trained
from toprank.report import verdict
from toprank.report.choice import Chosen, choose
from toprank.report.held_out import HeldOut
from toprank.report.lists import features, item_lists
from toprank.report.measures import LEVEL, Figure, compare_rankers, curves, figures, measure_figures
from toprank.report.table import Table
from toprank.report.text import clean_text, count, number
from toprank.tuning.support import Support

#: Negatives that the zoomed ROC curve shows at least.
_FEWEST_NEGATIVES = 20
_COMPARED = ("precision", "partial", "auc")


def results(
    table: Table, held: HeldOut, support: Support | None, asked: int, cv: int
) -> dict[str, Any]:
    """Everything that the page shows, but how it was made.

    Parameters
    ----------
    table : Table
    held : HeldOut
        Scores of rows that the rankers had not seen.
    support : Support or None
        What p the sample supports.
    asked : int
        How many rows the top should have.
    cv : int
        How many folds there should be.
    """
    k = min(asked, max(1, len(held.rows) // 2))
    max_fpr = min(1.0, max(0.05, _FEWEST_NEGATIVES / np.count_nonzero(~held.positive)))
    which = figures(k, max_fpr)
    overlap = tested_over_trained(held.folds)
    chosen = choose(held, which[0], support, overlap)
    lists, items = item_lists(table, held, k)

    def worth(scores: FloatArray) -> dict[str, Any]:
        return {
            "figures": measure_figures(which, held.positive, scores),
            "curves": curves(held.positive, scores, k, max_fpr),
        }

    data: dict[str, Any] = {
        "table": _table(table, held),
        "k": k,
        "max_fpr": max_fpr,
        "level": LEVEL,
        "ps": list(held.ps),
        "labels": [f"p = {number(p)}" for p in held.ps],
        "start": chosen.index,
        "figures": [_describe(figure) for figure in which],
        "pushes": [
            {**worth(scores), **lists[j], "features": features(table, held, k, j)}
            for j, scores in enumerate(held.pushes)
        ],
        "baselines": [{"name": n, **worth(scores)} for n, scores in held.baselines.items()],
        "items": items,
        "choice": {"verdict": chosen.verdict, "by_fold": list(chosen.by_fold)},
        "support": None if support is None else _describe_support(support),
        "notes": _notes(asked, k, cv, table, held),
        **_chosen(which, held, chosen, overlap),
    }
    return data | {"verdict": _verdict(data, which)}


def _verdict(data: dict[str, Any], which: tuple[Figure, ...]) -> dict[str, str]:
    return {
        "headline": verdict.headline(data, which[1]),
        "certainty": verdict.certainty(data),
        "against": verdict.against(data),
        "advice": verdict.advice(data),
    }


def _chosen(
    which: tuple[Figure, ...], held: HeldOut, chosen: Chosen, overlap: float
) -> dict[str, Any]:
    """The push with p chosen on the other folds, and how it compares with the baselines."""
    name = "push"
    scores = {name: chosen.scores, **held.baselines}
    some = tuple(figure for figure in which if figure.key in _COMPARED)
    lines = compare_rankers(some, held.positive, scores, held.fold, overlap)
    return {
        "chosen": {"name": name, "figures": measure_figures(which, held.positive, chosen.scores)},
        "comparison": lines,
    }


def _table(table: Table, held: HeldOut) -> dict[str, Any]:
    positives = int(np.count_nonzero(table.rows.y))
    schema = table.schema
    return {
        "rows": len(table.rows),
        "positives": positives,
        "scored": len(held.rows),
        "scored_positives": int(np.count_nonzero(held.positive)),
        "prevalence": float(np.mean(held.positive)),
        "target": clean_text(table.target.column),
        "positive": clean_text(table.target.positive),
        "negative": [clean_text(word) for word in table.target.negative[:5]],
        "id": None if schema.id is None else clean_text(schema.id),
        "time": None if schema.time is None else clean_text(schema.time),
        "columns": [
            {"name": clean_text(c.name), "kind": c.kind, "missing": c.missing}
            for c in schema.columns
        ],
        "left_out": [
            {"name": clean_text(name), "reason": clean_text(why)}
            for name, why in schema.left_out.items()
        ],
    }


def _describe(figure: Figure) -> dict[str, Any]:
    return {
        "key": figure.key,
        "label": figure.label,
        "explained": figure.explained,
        "unit": figure.unit,
    }


def _describe_support(support: Support) -> dict[str, Any]:
    said = support.as_dict()
    kept = ("p", "effective_negatives", "train_risk", "test_risk", "standard_error")
    return {
        "p": said["p"],
        "verdict": said["verdict"],
        "caution": said["caution"],
        "lines": [
            {key: line[key] for key in (*kept, "supported", "reason")} for line in said["lines"]
        ],
    }


def _notes(asked: int, k: int, cv: int, table: Table, held: HeldOut) -> list[str]:
    notes, folds = [], len(held.folds)
    if k < asked:
        notes.append(
            f"The top has {count(k)} rows instead of {count(asked)}: no more than half of the "
            f"{count(len(held.rows))} rows that were scored."
        )
    if folds < cv:
        notes.append(f"There are {folds} folds instead of {cv}: one class has too few rows.")
    if len(held.rows) < len(table.rows):
        notes.append(
            f"{count(len(table.rows) - len(held.rows))} rows were trained on only: the folds "
            "follow time, and the first rows have no past to be ranked from."
        )
    return notes
