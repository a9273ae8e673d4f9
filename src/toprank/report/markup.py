"""Pieces of the page: words and tables, escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from toprank._text import format_figure

if TYPE_CHECKING:
    from toprank._arrays import JsonObject


def word(text: object) -> str:
    """A word from the table: escaped, and kept to its own direction of writing."""
    return f"<bdi>{escape(str(text))}</bdi>"


def html_table(
    caption: str, head: Sequence[str], body: Sequence[Sequence[str]], *, stack: bool = False
) -> str:
    """A table; the cells of the body are markup already.

    One that stacks puts its cells one below the other on a narrow screen, each with its heading.
    """
    heads = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    labels = [f' data-label="{escape(text)}"' if stack else "" for text in head]
    rows = "\n".join(
        f'<tr><th scope="row">{row[0]}</th>'
        + "".join(
            f"<td{label}>{cell}</td>" for label, cell in zip(labels[1:], row[1:], strict=True)
        )
        + "</tr>"
        for row in body
    )
    return (
        f"<table{' class=stack' if stack else ''}><caption>{escape(caption)}</caption>"
        f"<thead><tr>{heads}</tr></thead><tbody>\n{rows}\n</tbody></table>"
    )


def interval_text(value: JsonObject, unit: str) -> str:
    """The ends of an interval, or that there is none."""
    if value["low"] is None:
        return "no interval: too few rows"
    return f"{format_figure(value['low'], unit)} to {format_figure(value['high'], unit)}"


def figure_card(label: str, value: JsonObject, unit: str) -> str:
    """One number in large, its interval below."""
    said = format_figure(value["value"], unit)
    return (
        f"<div><dt>{escape(label)}</dt><dd><strong>{said}</strong>"
        f"<span>{interval_text(value, unit)}</span></dd></div>"
    )


def facts_list(facts: dict[str, str]) -> str:
    """What is known of a thing, name by name."""
    lines = "\n".join(
        f"<div><dt>{escape(str(name))}</dt><dd>{word(value)}</dd></div>"
        for name, value in facts.items()
    )
    return f'<dl class="facts">\n{lines}\n</dl>'


def notes_list(notes: Sequence[str]) -> str:
    """What the reader should know; nothing if there is nothing."""
    lines = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<ul class="notes">{lines}</ul>' if lines else ""
