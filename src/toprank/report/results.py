"""The results of a report as one dictionary, and in sentences."""

from __future__ import annotations

import re

import numpy as np

from toprank._arrays import JsonObject
from toprank._numerics import FloatArray
from toprank._text import clean_text, count, percent
from toprank.folds import tested_over_trained
from toprank.report.front import note_short_top
from toprank.report.held_out import TREES, Chosen, HeldOut, choose_first_p, strength
from toprank.report.lists import features, item_lists, shown_rows
from toprank.report.measures import LEVEL, Figure, compare_rankers, curves, figures, measure_figures
from toprank.report.table import Table
from toprank.tuning.support import Support

#: Negatives that the zoomed ROC curve shows at least.
_FEWEST_NEGATIVES = 20
_COMPARED = ("precision", "partial", "auc")


def results(
    table: Table, held: HeldOut, support: Support | None, asked: int, cv: int
) -> JsonObject:
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
    chosen = choose_first_p(held, which[0], support, overlap)
    parts = held.explain(table, shown_rows(held, k))
    lists, items = item_lists(table, held, k, parts)

    def worth(scores: FloatArray) -> JsonObject:
        return {
            "figures": measure_figures(which, held.scored(scores)),
            "curves": curves(held.scored(scores), k, max_fpr),
        }

    data: JsonObject = {
        "table": _describe_table(table, held),
        "k": k,
        "max_fpr": max_fpr,
        "level": LEVEL,
        "ps": list(held.ps),
        "labels": [strength(p) for p in held.ps],
        "start": chosen.index,
        "figures": [_describe_figure(figure) for figure in which],
        "pushes": [
            {**worth(scores), **lists[j], "features": features(table, held, k, parts[j], j)}
            for j, scores in enumerate(held.pushes)
        ],
        "baselines": [{"name": n, **worth(scores)} for n, scores in held.baselines.items()],
        "items": items,
        "choice": {"verdict": chosen.verdict, "by_fold": list(chosen.by_fold)},
        "support": None if support is None else _describe_support(support),
        "notes": _list_notes(asked, k, cv, table, held),
        **_compare_choice(which, held, chosen, overlap),
    }
    return data | {"verdict": _sentences(data, which)}


def _sentences(data: JsonObject, which: tuple[Figure, ...]) -> dict[str, str]:
    return {
        "headline": headline(data, which[1]),
        "certainty": certainty(data),
        "against": against(data),
        "advice": advice(data),
    }


def _compare_choice(
    which: tuple[Figure, ...], held: HeldOut, chosen: Chosen, overlap: float
) -> JsonObject:
    """The push with p chosen on the other folds, and how it compares with the baselines."""
    name = "push"
    scores = {name: chosen.scores, **held.baselines}
    some = tuple(figure for figure in which if figure.key in _COMPARED)
    lines = compare_rankers(some, held.scored(chosen.scores), scores, held.fold, overlap)
    return {
        "chosen": {"name": name, "figures": measure_figures(which, held.scored(chosen.scores))},
        "comparison": lines,
    }


def _describe_table(table: Table, held: HeldOut) -> JsonObject:
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


def _describe_figure(figure: Figure) -> dict[str, str]:
    return {
        "key": figure.key,
        "label": figure.label,
        "explained": figure.explained,
        "unit": figure.unit,
    }


def _describe_support(support: Support) -> JsonObject:
    said = support.as_dict()
    kept = ("p", "effective_negatives", "train_risk", "test_risk", "standard_error")
    return {
        "p": said["p"],
        "verdict": in_strengths(said["verdict"]),
        "caution": in_strengths(said["caution"]),
        "lines": [
            {key: line[key] for key in (*kept, "supported", "reason")} for line in said["lines"]
        ],
    }


def in_strengths(text: str) -> str:
    """Return a sentence about p in the page's word for it.

    Examples
    --------
    >>> in_strengths("every p up to 64 is supported; p = 64 rests on 20 negatives")
    'every strength up to 64 is supported; strength 64 rests on 20 negatives'
    """
    text = re.sub(r"\bp = ", "strength ", text)
    return re.sub(r"\bp up to\b", "strength up to", text)


def _list_notes(asked: int, k: int, cv: int, table: Table, held: HeldOut) -> list[str]:
    notes, folds = [], len(held.folds)
    if k < asked:
        notes.append(note_short_top(k, asked, len(held.rows)))
    if folds < cv:
        notes.append(f"There are {folds} folds instead of {cv}: one class has too few rows.")
    if len(held.rows) < len(table.rows):
        notes.append(
            f"{count(len(table.rows) - len(held.rows))} rows were trained on only: the folds "
            "follow time, and the first rows have no past to be ranked from."
        )
    return notes


#: Positives below which the report warns before it says anything else.
FEW_POSITIVES = 30
_REMEDY = "A straight line is not enough here: try PushTrees, which pushes in trees."


def headline(data: JsonObject, figure: Figure) -> str:
    """How good the top of the list is, in one sentence."""
    chosen, table = data["chosen"]["figures"], data["table"]
    one, lift = chosen["precision"], chosen["lift"]
    k = data["k"]
    found = _format_rows(one["value"] * k)
    said = (
        f"Of the first {count(k)} rows of the list, {found} {'is' if found == '1' else 'are'} "
        "positive: "
        f"{percent(one['value'])}"
    )
    if one["low"] is not None:
        said += f" (95% interval {percent(one['low'])} to {percent(one['high'])})"
    times = figure.format(lift["value"]).removesuffix("×")
    return f"{said}, {times} times the {percent(table['prevalence'])} of a random order."


def _format_rows(rows: float) -> str:
    """A number of rows; ties at the cut may leave a part of one."""
    return count(rows) if abs(rows - round(rows)) < 0.05 else f"{rows:.1f}"


def certainty(data: JsonObject) -> str:
    """How far the figures can be trusted."""
    table, one = data["table"], data["chosen"]["figures"]["precision"]
    if table["scored_positives"] < FEW_POSITIVES:
        return (
            f"There are only {count(table['scored_positives'])} positives: read the intervals, "
            "not the figures."
        )
    if one["low"] is None:
        return "The rows are too few for an interval."
    if one["low"] > table["prevalence"]:
        return "The whole interval lies above a random order."
    return "The interval includes a random order: this top may be luck."


def against(data: JsonObject) -> str:
    """How the push compares with the baselines, in one sentence."""
    push = data["chosen"]["name"]
    lines = [
        line
        for line in data["comparison"]
        if line["figure"] == "precision" and line["names"][0] == push
    ]
    if not lines:
        return ""
    clear = [_is_clear(line) for line in lines]
    said = "On the same rows that is " + " and ".join(_difference(line) for line in lines)
    if not any(clear):
        return f"{said}; these rows cannot tell such differences from nothing."
    if all(clear):
        said += f"; {'both differences are' if len(lines) > 1 else 'the difference is'} clear."
    else:
        sure = lines[clear.index(True)]["names"][1]
        said += f"; only the difference from {sure} is clear."
    behind = [
        line["names"][1]
        for line, sure in zip(lines, clear, strict=True)
        if sure and line["difference"] < 0
    ]
    return said + (f" {_REMEDY}" if TREES in behind else "")


def _is_clear(line: JsonObject) -> bool:
    """Whether the rows tell the rankers apart, after correction, and most folds agree."""
    return bool(line["adjusted_p_value"] <= 0.05 and line["folds_agree"] >= 0.75 * line["folds"])


def _difference(line: JsonObject) -> str:
    other, points = line["names"][1], 100 * line["difference"]
    ends = f"interval {_with_sign(100 * line['low'])} to {_with_sign(100 * line['high'])}"
    if abs(points) < 0.005:
        return f"level with {other} ({ends})"
    word = "more than" if points > 0 else "less than"
    return f"{abs(points):.3g} points {word} {other} ({ends})"


def _with_sign(value: float) -> str:
    said = f"{value:+.2g}" if abs(value) >= 0.005 else "0"
    return said.replace("-", "\u2212")


def advice(data: JsonObject) -> str:
    """Which strength, and why."""
    return f"The push shown first has {data['labels'][data['start']]}. {data['choice']['verdict']}"
