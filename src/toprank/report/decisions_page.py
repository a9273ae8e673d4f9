"""The sections of the front page about what is done with the list."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from toprank._text import count, percent
from toprank.report.front import luck
from toprank.report.markup import html_table, word

if TYPE_CHECKING:
    from toprank._arrays import JsonObject

#: The picture of the periods: its size, and the room for the figures beside it.
_WIDE, _HIGH, _LEFT, _BELOW = 720, 190, 44, 26
#: Names of periods below the picture.
_NAMED = 6


def promise_section(front: JsonObject) -> str:
    """What can be promised of a list that is cut from a new table."""
    promises = front.get("promises")
    if not promises:
        return ""
    body = [
        [
            escape(one["wish"]),
            _rows_of_promise(one),
            escape(one["guarantee"]) or _why_none(one),
            f"<code>{escape(one['option'])}</code>",
        ]
        for one in promises
    ]
    head = ("You want", "Rows to take", "What is promised", "toprank select")
    table = html_table("Lists with a guarantee", head, body, stack=True)
    return f"""<section id="promises" aria-labelledby="promises-title">
<h2 id="promises-title">What can be promised of a new list?</h2>
<p>These {count(front["rows"])} rows have labels and had no part in the fit, so they can vouch for
lists of rows that have none yet. The table says how long such lists come out where a new table has
as many rows, drawn like these; <code>toprank select</code> cuts them.</p>
<div class="wide">{table}</div>
</section>"""


def _rows_of_promise(one: JsonObject) -> str:
    if one["rows"] is None or one["rows"] == 0:
        return "none"
    return f"{count(one['rows'])} <small>({percent(one['share'])} of the list)</small>"


def _why_none(one: JsonObject) -> str:
    if one["rows"] is not None:
        return "no list: too many others score as high"
    if one["needed"] is None:
        return "nothing: no number of labelled rows would do"
    return f"nothing yet: about {count(one['needed'])} labelled rows would do"


def period_section(front: JsonObject) -> str:
    """The precision of each period's list, its mean and the interval over periods."""
    found = front.get("periods")
    if found is None:
        return ""
    k, n = front["k"], len(found["values"])
    what = "rows" if found["entity"] is None else f"({word(found['entity'])} counted once)"
    rows = [
        [word(name), count(size), percent(value)]
        for name, size, value in zip(found["names"], found["rows"], found["values"], strict=True)
    ]
    head = (found["column"], "Rows" if found["entity"] is None else "Different ones", "Right")
    note = f'<p class="small">{escape(found["note"])}</p>' if found["note"] else ""
    return f"""<section id="periods" aria-labelledby="periods-title">
<h2 id="periods-title">How good is the list of each {word(found["column"])}?</h2>
<p>Each {word(found["column"])} has a list of its own. Of its first {count(k)} {what},
<strong>{percent(found["mean"])}</strong> are right in the mean of {count(n)} (between
{percent(found["low"])} and {percent(found["high"])}, 95 times in 100; neighbours may be alike).</p>
{_period_picture(found)}
<details><summary>The {count(n)} figures</summary>
<div class="wide">{html_table("Right among the first", head, rows)}</div></details>{note}
</section>"""


def _period_picture(found: JsonObject) -> str:
    values, n = found["values"], len(found["values"])
    top = max([*values, found["high"], 0.01])

    def across(place: float) -> float:
        return _LEFT + (place + 0.5) / n * (_WIDE - _LEFT)

    def up(value: float) -> float:
        return (1 - value / top) * (_HIGH - _BELOW)

    low, high, mean = (up(found[end]) for end in ("low", "high", "mean"))
    line = " ".join(f"{across(i):.1f},{up(value):.1f}" for i, value in enumerate(values))
    dots = "".join(
        f'<circle class="dot" cx="{across(i):.1f}" cy="{up(value):.1f}" r="3"/>'
        for i, value in enumerate(values)
    )
    shown = sorted({round(i * (n - 1) / max(1, _NAMED - 1)) for i in range(_NAMED)})
    ends = {0: "start", n - 1: "end"}  # so that the first and the last name stay in the picture
    names = "".join(
        f'<text x="{across(i):.1f}" y="{_HIGH - 4}" text-anchor="{ends.get(i, "middle")}">'
        f"{escape(found['names'][i])}</text>"
        for i in shown
    )
    marks = "".join(
        f'<text x="{_LEFT - 6}" y="{up(value) + 4:.1f}" text-anchor="end">{percent(value)}</text>'
        f'<line class="grid" x1="{_LEFT}" x2="{_WIDE}" y1="{up(value):.1f}" y2="{up(value):.1f}"/>'
        for value in (0.0, top / 2, top)
    )
    said = f"Right among the first, {n} values, mean {percent(found['mean'])}"
    return f"""<figure><figcaption>Right among the first of each, their mean and its range
</figcaption><svg viewBox="0 0 {_WIDE} {_HIGH}" role="img" aria-label="{escape(said)}">
<rect class="band" x="{_LEFT}" y="{high:.1f}" width="{_WIDE - _LEFT}" height="{low - high:.1f}"/>
{marks}<line class="mark" x1="{_LEFT}" x2="{_WIDE}" y1="{mean:.1f}" y2="{mean:.1f}"/>
<polyline class="curve push" points="{line}"/>{dots}{names}</svg></figure>"""


def group_section(front: JsonObject) -> str:
    """Share, precision and recall of each group in the first rows, and whether they differ."""
    found = front.get("groups")
    if found is None:
        return ""
    body = [
        [
            word(one["name"]),
            count(one["rows"]),
            f"{one['listed']:.4g}",
            *(_share(one[measure]) for measure in ("selected", "precision", "recall")),
        ]
        for one in found["lines"]
    ]
    chances = found["adjusted_p_values"]
    body.append(
        [
            "by luck alone",
            "\u2013",
            "\u2013",
            *(luck(chances[measure]) for measure in ("selected", "precision", "recall")),
        ]
    )
    head = (
        found["column"],
        "Rows",
        "In the list",
        "Of its rows, in the list",
        "Right, of those",
        "Of all right ones, found",
    )
    others = ""
    if found["others"]:
        others = f'<p class="small">and {count(found["others"])} smaller groups.</p>'
    caption = f"Groups in the first {count(front['k'])}; ranges hold 95 times in 100"
    return f"""<section id="groups" aria-labelledby="groups-title">
<h2 id="groups-title">Which groups make up the first {count(front["k"])}?</h2>
<p>The last line is the chance of such differences between the groups, were there none, allowing for
three comparisons. A difference is a fact about this list; whether it is right is another
question.</p>
<div class="wide">{html_table(caption, head, body, stack=True)}</div>{others}
</section>"""


def _share(values: list[float | None]) -> str:
    estimate, low, high = values
    if estimate is None or low is None or high is None:
        return "\u2013"
    return f"{percent(estimate)} <small>{percent(low)} to {percent(high)}</small>"
