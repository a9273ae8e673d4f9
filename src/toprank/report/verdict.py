"""The report in sentences."""

from __future__ import annotations

from typing import Any

from toprank.report.held_out import TREES
from toprank.report.measures import Figure
from toprank.report.text import count, number, percent

#: Positives below which the report warns before it says anything else.
FEW_POSITIVES = 30
_REMEDY = "A straight line is not enough here: try PushTrees, which pushes in trees."


def headline(data: dict[str, Any], figure: Figure) -> str:
    """How good the top of the list is, in one sentence."""
    chosen, table = data["chosen"]["figures"], data["table"]
    one, lift = chosen["precision"], chosen["lift"]
    k = data["k"]
    found = _found(one["value"] * k)
    said = (
        f"Of the first {count(k)} rows of the list, {found} {'is' if found == '1' else 'are'} "
        "positive: "
        f"{percent(one['value'])}"
    )
    if one["low"] is not None:
        said += f" (95% interval {percent(one['low'])} to {percent(one['high'])})"
    times = figure.format(lift["value"]).removesuffix("×")
    return f"{said}, {times} times the {percent(table['prevalence'])} of a random order."


def _found(rows: float) -> str:
    """A number of rows; ties at the cut may leave a part of one."""
    return count(rows) if abs(rows - round(rows)) < 0.05 else f"{rows:.1f}"


def certainty(data: dict[str, Any]) -> str:
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


def against(data: dict[str, Any]) -> str:
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


def _is_clear(line: dict[str, Any]) -> bool:
    """Whether the rows tell the rankers apart, after correction, and most folds agree."""
    return bool(line["adjusted_p_value"] <= 0.05 and line["folds_agree"] >= 0.75 * line["folds"])


def _difference(line: dict[str, Any]) -> str:
    other, points = line["names"][1], 100 * line["difference"]
    ends = f"interval {_with_sign(100 * line['low'])} to {_with_sign(100 * line['high'])}"
    if points == 0:
        return f"level with {other} ({ends})"
    word = "more than" if points > 0 else "less than"
    return f"{abs(points):.3g} points {word} {other} ({ends})"


def _with_sign(value: float) -> str:
    return f"{value:+.2g}".replace("-", "\u2212")


def advice(data: dict[str, Any]) -> str:
    """Which p, and why."""
    p = data["ps"][data["start"]]
    return f"The push shown first is p = {number(p)}. {data['choice']['verdict']}"
