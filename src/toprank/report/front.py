"""The front page: how many of the first rows are right, how sure that is, what it is worth."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from toprank._arrays import JsonObject
from toprank._numerics import FloatArray
from toprank._text import clean_text, count, percent
from toprank.inference import compare, lift_band
from toprank.models.model import Reason
from toprank.report.measures import LEVEL, Figure, figures, measure_figures
from toprank.report.money import describe_gains, gains
from toprank.report.subjects import LabelledRows, Subject

#: Rows of the list that the page carries for download, at least where there are so many.
_DOWNLOADED = 1_000
#: Rows shown on each side of the cut.
_NEAR = 6
_POINTS = 81
#: Positives below which the page warns before it says anything else.
FEW_POSITIVES = 30
_COMPARED = ("precision", "auc")
_MOST_COLUMNS = 12
#: Numbers below a million whose fractions are longer than people read.
_LONG_FRACTION = re.compile(r"-?\d{1,4}\.\d{2,}", re.ASCII)


def front_results(
    subjects: Sequence[Subject],
    rows: LabelledRows,
    asked: int,
    *,
    value: float | None = None,
    cost: float | None = None,
    today: Subject | None = None,
) -> JsonObject:
    """Everything that the front page shows.

    Parameters
    ----------
    subjects : sequence of Subject
        The models; the first is the one that the headline is about.
    rows : LabelledRows
        Rows that none of them has seen.
    asked : int
        How many rows the top should have; it has at most half of them.
    value, cost : float, optional
        What a positive brings, and what taking a row costs.
    today : Subject, optional
        The order that is used today.
    """
    k = min(asked, max(1, len(rows) // 2))
    which = figures(k, 0.05)
    listed = [*subjects, *([today] if today is not None else [])]
    models = [_describe_subject(one, rows, which, k, value, cost) for one in listed]
    comparison = _compare_lists(listed, rows, which)
    data = {
        "k": k,
        "rows": len(rows),
        "positives": int(np.count_nonzero(rows.y)),
        "prevalence": rows.prevalence,
        "target": clean_text(rows.target.column),
        "positive": clean_text(rows.target.positive),
        "weighted": rows.weight is not None,
        "figures": [
            {"key": f.key, "label": f.label, "explained": f.explained, "unit": f.unit}
            for f in which
        ],
        "models": models,
        "comparison": comparison,
        "notes": [] if k == asked else [note_short_top(k, asked, len(rows))],
    }
    return data | {"said": sentences(data)}


def note_short_top(k: int, asked: int, n: int) -> str:
    """Say that the top was made shorter than asked for, and why."""
    return (
        f"The top has {count(k)} rows instead of {count(asked)}: no more than half of the "
        f"{count(n)} rows that were scored."
    )


def _describe_subject(
    subject: Subject,
    rows: LabelledRows,
    which: tuple[Figure, ...],
    k: int,
    value: float | None,
    cost: float | None,
) -> JsonObject:
    curve = _precision_curve(subject.scores, rows, k)
    found = {
        "name": subject.name,
        "facts": subject.facts,
        "figures": measure_figures(which, rows.scored(subject.scores)),
        "curve": curve,
        "columns": _leading_columns(subject.importances),
        "money": None,
        **_list_rows(subject, rows, k),
    }
    if value is not None:
        found["money"] = gains(curve, value, 0.0 if cost is None else cost)
    return found


def _precision_curve(scores: FloatArray, rows: LabelledRows, k: int) -> dict[str, FloatArray]:
    """Share of positives among the first rows, from a few to all."""
    n = len(rows)
    few = min(n, max(1, min(k, 50) // 5))
    depth = np.unique(np.round(np.geomspace(few, n, _POINTS)))
    depth = np.unique(np.append(depth, k))
    band = lift_band(rows.y, scores, LEVEL, top=depth / n, sample_weight=rows.weight)
    share = rows.prevalence
    y, low, high = (np.clip(share * one, 0, 1) for one in (band.estimate, band.low, band.high))
    return {"x": depth, "y": y, "low": low, "high": high}


def _list_rows(subject: Subject, rows: LabelledRows, k: int) -> JsonObject:
    """The first rows by name, with reasons, and how many tie at the cut."""
    order = np.argsort(-subject.scores, kind="stable")
    shown = order[: min(len(order), k + _NEAR)]
    reasons = subject.explain(shown)
    carried = order[: max(k + _NEAR, _DOWNLOADED)]
    ranked = subject.scores[order]
    tied = 0
    if k < len(order) and ranked[k] == ranked[k - 1]:
        tied = int(np.count_nonzero(ranked == ranked[k - 1]))
    return {
        "list": [
            {
                "id": rows.names[place],
                "positive": bool(rows.y[place]),
                "score": float(subject.scores[place]),
                "reasons": [_reason(one) for one in reasons[j]] if j < len(reasons) else [],
            }
            for j, place in enumerate(carried)
        ],
        "tied_at_cut": tied,
        "all_tied": bool(ranked[0] == ranked[k - 1]) and k > 1,
    }


def _reason(one: Reason) -> JsonObject:
    return {
        "column": clean_text(one.column, 60),
        "value": clean_text(short_values(one.value), 40) or "missing",
        "adds": one.contribution,
    }


def short_values(text: str) -> str:
    """Return values with long fractions in four figures: enough to read.

    Examples
    --------
    >>> from toprank.report.front import short_values
    >>> short_values("10.9393"), short_values("0.702761, 12"), short_values("v1.23456")
    ('10.94', '0.7028, 12', 'v1.23456')
    """
    return ", ".join(
        f"{float(part):.4g}" if _LONG_FRACTION.fullmatch(part) else part
        for part in text.split(", ")
    )


def _leading_columns(importances: dict[str, float]) -> JsonObject:
    """The columns that move the score most, each as a share of all."""
    total = sum(importances.values()) or 1.0
    ordered = sorted(importances.items(), key=lambda pair: -pair[1])
    named = ordered[:_MOST_COLUMNS]
    return {
        "named": [{"column": name, "share": size / total} for name, size in named],
        "others": len(ordered) - len(named),
    }


def _compare_lists(
    subjects: Sequence[Subject], rows: LabelledRows, which: tuple[Figure, ...]
) -> list[JsonObject]:
    """Every pair of lists on the same rows.

    With several pairs every interval is as much wider as the chance of luck is larger
    (Bonferroni): whether a difference is clear can be read off either.
    """
    if len(subjects) < 2:
        return []
    pairs = len(subjects) * (len(subjects) - 1) // 2
    scores = {one.name: one.scores for one in subjects}
    lines = []
    for figure in which:
        if figure.key not in _COMPARED:
            continue
        try:
            found = compare(
                figure.metric,
                rows.y,
                scores,
                level=1 - (1 - LEVEL) / pairs,
                sample_weight=rows.weight,
                groups=rows.groups,
                **figure.settings,
            )
        except ValueError:  # too few rows
            continue
        lines += [
            {
                "figure": figure.key,
                "label": figure.label,
                "unit": figure.unit,
                "names": list(pair.names),
                "values": list(pair.estimates),
                "difference": pair.difference,
                "low": pair.low,
                "high": pair.high,
                "by_luck": min(1.0, pairs * pair.p_value),
            }
            for pair in found
        ]
    return lines


def sentences(data: JsonObject) -> dict[str, str]:
    """The front page in words."""
    model = data["models"][0]
    said = {
        "headline": headline_of_list(data, model),
        "certainty": certainty_of_list(data, model),
        "against": " ".join(
            sentence_of_lists(data, line)
            for line in data["comparison"]
            if line["figure"] == "precision" and line["names"][0] == model["name"]
        ),
        "advice": "",
        "money": "",
    }
    if model["money"] is not None:
        said["advice"], said["money"] = describe_gains(
            model["money"], model["figures"]["precision"], data["k"], data["rows"]
        )
    return said


def headline_of_list(data: JsonObject, model: JsonObject) -> str:
    """How many of the first rows are right, and how many a random order would put there."""
    k, one = data["k"], model["figures"]["precision"]
    found = rows_text(one["value"] * k)
    by_chance = rows_text(round(data["prevalence"] * k, 1))
    word = "is" if found == "1" else "are"
    return (
        f"Of the first {count(k)} on the list, {found} {word} "
        f"\u201c{data['target']} = {data['positive']}\u201d ({percent(one['value'])}). "
        f"Taken at random, {by_chance} of {count(k)} would be."
    )


def rows_text(rows: float) -> str:
    """Return a number of rows; ties at the cut may leave a part of one."""
    return count(rows) if abs(rows - round(rows)) < 0.05 else f"{rows:.1f}"


def certainty_of_list(data: JsonObject, model: JsonObject) -> str:
    """How sure that is, in a count of rows."""
    k, one = data["k"], model["figures"]["precision"]
    if one["low"] is None:
        return "There are too few rows to say how sure that is."
    low, high = (count(round(k * one[end])) for end in ("low", "high"))
    said = f"Other rows like these would give between {low} and {high} (95 times in 100)."
    if data["positives"] < FEW_POSITIVES:
        return (
            f"There are only {count(data['positives'])} rows of that kind here, so look at the "
            f"range and not at the number. {said}"
        )
    if one["low"] <= data["prevalence"]:
        said += " That range includes a random order: this list may be no better than luck."
    if model["all_tied"]:
        said += " All of the first rows have the same score: their order means nothing."
    elif model["tied_at_cut"]:
        said += (
            f" {count(model['tied_at_cut'])} rows share the score at the cut; which of them are "
            "in is a matter of chance."
        )
    return said


def sentence_of_lists(data: JsonObject, line: JsonObject) -> str:
    """One list against another, in a sentence."""
    k = data["k"]
    a, b = line["names"]
    more = round(k * line["difference"], 1)
    low, high = (round(k * line[end], 1) for end in ("low", "high"))
    if more == 0:
        found = f"\u201c{a}\u201d finds as many of the first {count(k)} as \u201c{b}\u201d"
    else:
        word = "more" if more > 0 else "fewer"
        found = (
            f"\u201c{a}\u201d finds {rows_text(abs(more))} {word} of the first {count(k)} than "
            f"\u201c{b}\u201d"
        )
    clear = line["low"] > 0 or line["high"] < 0
    verdict = "a clear difference" if clear else "these rows cannot tell the two apart"
    return (
        f"{found} (between {_signed(low)} and {_signed(high)}; chance of such a difference by "
        f"luck: {luck(line['by_luck'])}): {verdict}."
    )


def luck(value: float | None) -> str:
    """Return the chance of a difference by luck, in percent."""
    if value is None:
        return "unknown"
    return "below 0.1%" if value < 0.001 else percent(value)


def _signed(rows: float) -> str:
    return f"{rows:+g}".replace("-", "\u2212").replace("+0", "0")
