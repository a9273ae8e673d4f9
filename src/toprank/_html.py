"""Results as small pieces of HTML, for notebooks: everything in them is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from toprank._text import visible

_LEFT = " style='text-align:left'"
#: Width and height of a picture of an interval, and the room left at its ends.
_WIDTH, _HEIGHT, _MARGIN = 180, 18, 8


class Markup(str):
    """Text that is HTML already, and is not escaped again."""

    __slots__ = ()


def cell(value: object) -> str:
    """Return a value as HTML: escaped, control characters made visible."""
    return value if isinstance(value, Markup) else escape(visible(value))


def table_html(
    rows: Iterable[Sequence[object]],
    *,
    head: Sequence[object] = (),
    caption: object = "",
    notes: Iterable[object] = (),
) -> str:
    """Return a table, the first column of each row its heading, and notes below it.

    Examples
    --------
    >>> from toprank._html import table_html
    >>> table_html([("a < b", 1)])
    "<table><tbody><tr><th style='text-align:left'>a &lt; b</th><td style='text-align:left'>1</td>\
</tr></tbody></table>"
    """
    body = "".join(
        f"<tr><th{_LEFT}>{cell(first)}</th>"
        + "".join(f"<td{_LEFT}>{cell(value)}</td>" for value in others)
        + "</tr>"
        for first, *others in rows
    )
    top = "".join(f"<th{_LEFT}>{cell(name)}</th>" for name in head)
    return (
        "<table>"
        + (f"<caption>{cell(caption)}</caption>" if caption else "")
        + (f"<thead><tr>{top}</tr></thead>" if top else "")
        + (f"<tbody>{body}</tbody>" if body else "")
        + "</table>"
        + notes_html(notes)
    )


def notes_html(notes: Iterable[object]) -> str:
    """Return each note as a small paragraph."""
    return "".join(f"<p><small>{cell(note)}</small></p>" for note in notes if note)


def interval_picture(
    estimate: float, low: float, high: float, *, mark: float | None = None
) -> Markup:
    """Return a picture of an interval: a bar from its low to its high end, a dot at the estimate.

    On a scale from 0 to 1 where all of them lie there, else on one of their own. A mark, such as
    a difference of zero, is a dashed line.
    """
    shown = [estimate, low, high, *([] if mark is None else [mark])]
    ends = (0.0, 1.0) if mark is None and 0 <= min(shown) and max(shown) <= 1 else None
    first, last = ends or (min(shown), max(shown))
    unit = (_WIDTH - 2 * _MARGIN) / ((last - first) or 1.0)
    x = [f"{_MARGIN + (value - first) * unit:.1f}" for value in shown]
    middle = _HEIGHT // 2
    dashes = (
        ""
        if mark is None
        else f"<line x1='{x[3]}' x2='{x[3]}' y1='1' y2='{_HEIGHT - 1}' stroke='currentColor' "
        "stroke-dasharray='2 2' opacity='0.7'/>"
    )
    base = (
        ""
        if ends is None
        else f"<line x1='{_MARGIN}' x2='{_WIDTH - _MARGIN}' y1='{middle}' y2='{middle}' "
        "stroke='currentColor' opacity='0.25'/>"
    )
    said = escape(f"{estimate:.4g}, from {low:.4g} to {high:.4g}")
    return Markup(
        f"<svg width='{_WIDTH}' height='{_HEIGHT}' viewBox='0 0 {_WIDTH} {_HEIGHT}' role='img' "
        f"aria-label='{said}'><title>{said}</title>{base}{dashes}"
        f"<line x1='{x[1]}' x2='{x[2]}' y1='{middle}' y2='{middle}' stroke='#3b7dd8' "
        f"stroke-width='6' stroke-linecap='round' opacity='0.55'/>"
        f"<circle cx='{x[0]}' cy='{middle}' r='4' fill='#3b7dd8' stroke='currentColor'/></svg>"
    )
