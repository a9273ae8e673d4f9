"""How a model shows itself in a notebook. Everything that came from data is escaped."""

from __future__ import annotations

from html import escape
from typing import Any

from toprank._text import visible


def model_html(model: Any) -> str:
    """Return a small table: what the model is, how good, and its most important columns."""
    card = model.card
    training, metrics = card.get("training", {}), card.get("metrics", {})
    p = card.get("p")
    rows = [
        ("ranker", f"{card.get('ranker')}{'' if p is None else f', p = {p}'}"),
        ("top is", f"{model.target.column} = {model.target.positive}"),
        ("trained on", f"{training.get('rows')} rows, {training.get('positives')} positive"),
        ("columns", ", ".join(f"{n} {kind}" for kind, n in training.get("columns", {}).items())),
        ("made", f"{card.get('made')}, toprank {card.get('versions', {}).get('toprank')}"),
    ]
    for found in metrics.get("intervals", []):
        level = f"{100 * found['level']:g}%"
        said = f"{_number(found['estimate'])}, {level} interval "
        rows.append(
            (found["metric"], said + f"{_number(found['low'])} to {_number(found['high'])}")
        )
    leading = list(card.get("importances", {}).items())[:5]
    rows.append(("leading columns", ", ".join(f"{name} ({size:.3g})" for name, size in leading)))
    return table_html(f"TableModel: {card.get('model')}", rows, metrics.get("how", ""))


def table_html(caption: str, rows: list[tuple[str, str]], note: str = "") -> str:
    """Return a table of two columns, all of it escaped."""
    lines = "".join(
        f"<tr><th style='text-align:left'>{escape(visible(name))}</th>"
        f"<td style='text-align:left'>{escape(visible(value))}</td></tr>"
        for name, value in rows
    )
    below = f"<p><small>{escape(visible(note))}</small></p>" if note else ""
    return (
        f"<table><caption>{escape(visible(caption))}</caption><tbody>{lines}</tbody></table>{below}"
    )


def _number(value: Any) -> str:
    if value is None:
        return "unknown"
    return value if isinstance(value, str) else f"{value:.4g}"  # infinity is a word on a card
