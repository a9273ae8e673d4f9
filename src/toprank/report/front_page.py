"""The front page, for people who were not there: written here, drawn by `assets/front.js`."""

from __future__ import annotations

from html import escape

from numpy.typing import ArrayLike

from toprank._arrays import JsonObject
from toprank._text import clean_text, count, format_figure, percent
from toprank.report.decisions_page import group_section, period_section, promise_section
from toprank.report.front import luck, sentence_of_lists
from toprank.report.markup import (
    facts_list,
    figure_card,
    html_table,
    interval_text,
    notes_list,
    word,
)

#: Figures shown large, and what they are called there.
_CARDS = {
    "precision": "Right among the first {k}",
    "recall": "Of all there are, found in the first {k}",
    "lift": "Times better than at random",
    "auc": "How often one of them is above another row",
}
_NEAR = 6
#: Whether a column lifts a row (True) or lowers it.
_UP_DOWN = {True: "\u25b2", False: "\u25bc"}


def front_sections(data: JsonObject) -> str:
    """Return the sections of the front page."""
    front = data["front"]
    parts = [
        _answer_section(front, data["notes"]),
        _amount_section(front),
        _list_section(front),
        promise_section(front),
        period_section(front),
        group_section(front),
        _columns_section(front),
        _models_section(front),
    ]
    return "\n".join(part for part in parts if part)


def front_header(data: JsonObject) -> str:
    """Return the header of the page."""
    front = data["front"]
    share = front["positives"] / front["rows"]
    return f"""<header>
<p class="kicker">toprank report</p>
<h1>How good is the top of the list?</h1>
<p class="lede">{count(front["rows"])} rows. {word(front["target"])} is {word(front["positive"])} in
{count(front["positives"])} of them ({percent(share)}); the list is meant to have these first.</p>
</header>"""


def _answer_section(front: JsonObject, notes: list[str]) -> str:
    said, first = front["said"], front["models"][0]
    by_key = {figure["key"]: figure for figure in front["figures"]}
    cards = "\n".join(
        figure_card(label.format(k=count(front["k"])), first["figures"][key], by_key[key]["unit"])
        for key, label in _CARDS.items()
    )
    more = " ".join(part for part in (said["certainty"], said["against"]) if part)
    money = ""
    if said["money"]:
        money = f"<p><strong>{escape(said['advice'])}</strong> {escape(said['money'])}</p>"
    return f"""<section id="verdict" aria-labelledby="verdict-title">
<h2 id="verdict-title" class="quiet">The answer</h2>
<p class="headline">{escape(said["headline"])}</p>
<p>{escape(more)}</p>
{money}
<dl class="cards">
{cards}
</dl>
<p><a id="download" class="download" href="#list">The list, to see and to download</a></p>
<p class="small">{escape(front["how"])} Ranges hold 95 times in 100.</p>
{notes_list([*front["notes"], *notes])}
</section>"""


def _amount_section(front: JsonObject) -> str:
    money = front["models"][0]["money"] or {"value": "", "cost": ""}
    return f"""<section id="amount" aria-labelledby="amount-title">
<h2 id="amount-title">How many should I take?</h2>
<p>The further down the list, the fewer are right. What one of them brings, and what it costs to
take a row, decide where to stop.</p>
<div class="money" role="group" aria-label="What it is worth">
<label for="value">One that is found brings</label>
<input type="number" id="value" min="0" step="any" value="{_plain_number(money["value"])}">
<label for="cost">Taking a row costs</label>
<input type="number" id="cost" min="0" step="any" value="{_plain_number(money["cost"])}">
</div>
<p id="amount-said" aria-live="polite"></p>
<div id="amount-charts" class="charts two"></div>
{_depth_table(front)}
</section>"""


def _plain_number(value: object) -> str:
    return "" if value == "" else f"{value:g}"


def _depth_table(front: JsonObject) -> str:
    """How many are right among the first rows, at a few depths."""
    first = front["models"][0]
    curve, n = first["curve"], front["rows"]
    wanted = {front["k"], *(round(n * share) for share in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5))}
    rows = sorted(
        {min(range(len(curve["x"])), key=lambda i: abs(curve["x"][i] - depth)) for depth in wanted}
    )
    body = [
        [
            f"{count(curve['x'][i])} <small>({percent(curve['x'][i] / n)} of the list)</small>",
            count(curve["x"][i] * curve["y"][i]),
            percent(curve["y"][i]),
            f"{percent(curve['low'][i])} to {percent(curve['high'][i])}",
        ]
        for i in rows
        if curve["x"][i] >= 1
    ]
    head = ("Rows taken", "Right among them", "Share", "95 times in 100")
    return f'<div class="wide">{html_table("From the top down", head, body)}</div>'


def _list_section(front: JsonObject) -> str:
    tables = []
    for place, model in enumerate(front["models"]):
        if not model["list"] or (place and model["name"] == "today"):
            continue
        table = _list_table(model, front)
        several = len(front["models"]) > 1
        title = f"The list of \u201c{escape(model['name'])}\u201d" if several else "The list"
        unfolded = " open" if place == 0 else ""
        tables.append(f"<details{unfolded}><summary>{title}</summary>{table}</details>")
    carried = len(front["models"][0]["list"])
    sure = front.get("sure")
    said = "" if sure is None else f"<p>{escape(sure['said'])}</p>\n"
    return f"""<section id="list" aria-labelledby="list-title">
<h2 id="list-title">Who is on the list?</h2>
<p>The first {count(front["k"])}, and those just below. <span class="screen"><a id="save"
href="#list" download="list.csv">Download the first {count(carried)} as CSV</a>,
for a spreadsheet.</span></p>
{said}{"".join(tables)}
</section>"""


def _list_table(model: JsonObject, front: JsonObject) -> str:
    k, body = front["k"], []
    for rank, one in enumerate(model["list"][: k + _NEAR], 1):
        known = "yes" if one["positive"] else "no"
        body.append(
            [
                count(rank),
                word(one["id"]),
                f'<span class="outcome {known}">{"yes" if one["positive"] else "no"}</span>',
                *([percent(one["sure"])] if "sure" in one else []),
                _reasons_text(one["reasons"]),
            ]
        )
    outcome = clean_text(f"{front['target']} = {front['positive']}", 28)
    sure = ["In the list, of refits"] if "sure" in model["list"][0] else []
    head = ("Rank", "Row", f"Really {outcome}?", *sure, "Mostly because")
    table = html_table(f"The first {count(k)}, and those just below", head, body, stack=True)
    cut = f'<tr class="cut"><td colspan="{len(head)}">the first {count(k)} end here</td></tr>\n'
    lines = table.split("\n")
    return "\n".join([*lines[: k + 1], cut.strip(), *lines[k + 1 :]])


def _reasons_text(reasons: list[JsonObject]) -> str:
    if not reasons:
        return "\u2013"
    return "; ".join(
        f"{word(one['column'])} = {word(one['value'])} <small>{_UP_DOWN[one['adds'] > 0]}</small>"
        for one in reasons
    )


def _columns_section(front: JsonObject) -> str:
    columns = front["models"][0]["columns"]
    if not columns["named"]:
        return ""
    return f"""<section id="columns" aria-labelledby="columns-title">
<h2 id="columns-title">What does the list go by?</h2>
<p>How much each column moves the score, as a share of all. In the list above \u25b2 lifts a row and
\u25bc lowers it.</p>
{columns_table(columns["named"], columns["others"])}
</section>"""


def columns_table(named: list[JsonObject], others: int = 0) -> str:
    """The columns that move the score most."""
    body = [[word(one["column"]), percent(one["share"])] for one in named]
    table = html_table("Columns", ("Column", "Its share"), body)
    if others:
        table += f'<p class="small">and {count(others)} other column{"s"[: others != 1]}.</p>'
    return f'<div class="wide">{table}</div>'


def _models_section(front: JsonObject) -> str:
    models = front["models"]
    if len(models) == 1:
        return f"""<section id="models" aria-labelledby="models-title">
<h2 id="models-title">Which model is this?</h2>
{facts_list(models[0]["facts"])}
</section>"""
    head = ["", *(figure["label"] for figure in front["figures"])]
    body = [
        [
            word(model["name"]),
            *(
                f"{format_figure(model['figures'][f['key']]['value'], f['unit'])} "
                f"<small>{interval_text(model['figures'][f['key']], f['unit'])}</small>"
                for f in front["figures"]
            ),
        ]
        for model in models
    ]
    facts = "".join(
        f"<h3>{word(model['name'])}</h3>{facts_list(model['facts'])}" for model in models
    )
    lines = "".join(
        f"<li>{escape(sentence_of_lists(front, line))}</li>"
        for line in front["comparison"]
        if line["figure"] == "precision"
    )
    return f"""<section id="models" aria-labelledby="models-title">
<h2 id="models-title">Which list is better?</h2>
<ul>{lines}</ul>
{_pairs_table(front)}
<div class="wide all" tabindex="0" role="region" aria-label="All lists">
{html_table("Every list on the same rows; ranges hold 95 times in 100", head, body)}</div>
{facts}
</section>"""


def _pairs_table(front: JsonObject) -> str:
    body = [
        [
            f"{word(line['names'][0])} against {word(line['names'][1])}",
            escape(line["label"]) + (", in points" if line["unit"] == "share" else ""),
            format_change(line["difference"], line["unit"]),
            f"{format_change(line['low'], line['unit'])} to "
            f"{format_change(line['high'], line['unit'])}",
            luck(line["by_luck"]),
        ]
        for line in front["comparison"]
    ]
    if not body:
        return ""
    head = ("Lists", "Figure", "Difference", "95 times in 100", "By luck alone")
    caption = "Differences on the same rows; above zero the first is better"
    note = (
        '<p class="small">Ranges and the chance of luck allow for the number of pairs compared '
        "(Bonferroni).</p>"
    )
    return f'<div class="wide">{html_table(caption, head, body, stack=True)}</div>{note}'


def format_change(value: float | None, unit: str) -> str:
    """A difference with its sign; shares in points."""
    if value is None:
        return "unknown"
    change = f"{100 * value:+.1f}" if unit == "share" else f"{value:+.3f}"
    if not change.strip("+-0."):
        return "0"
    return change.replace("-", "\u2212")


def card_sections(data: JsonObject) -> str:
    """Return the sections of a page without rows: what the models' cards say."""
    models = "".join(_card_section(one, place) for place, one in enumerate(data["cards"]))
    return f"""<section id="verdict" aria-labelledby="verdict-title">
<h2 id="verdict-title" class="quiet">The answer</h2>
<p class="headline">{escape(data["verdict"]["headline"])}</p>
<p class="small">No table was given to this report. Give one with labels, which the model has not
seen, to get the list, its reasons and how many rows to take.</p>
{notes_list(data["notes"])}
</section>
{models}"""


def _card_section(card: JsonObject, place: int) -> str:
    body = [
        [
            escape(_metric_words(one["metric"])),
            _known(one["estimate"]),
            f"{_known(one['low'])} to {_known(one['high'])}",
        ]
        for one in card["intervals"]
    ]
    table = html_table("Rows held out in training", ("Figure", "Value", "95% interval"), body)
    return f"""<section aria-labelledby="card-{place}">
<h2 id="card-{place}">{word(card["name"])}</h2>
{facts_list(card["facts"])}
<div class="wide">{table if body else ""}</div>
<p class="small">Measured {escape(card["how"])}.</p>
{columns_table(card["columns"])}
{notes_list(card["warnings"])}
</section>"""


#: What the figures of a card are called on the page.
_METRICS = {
    "precision_at": "right among the first {}",
    "recall_at": "of all there are, found in the first {}",
    "lift_at": "times better than at random, in the first {}",
    "auc": "how often one of them is above another row (AUC)",
    "average_precision": "average precision",
    "positives_at_top": "above every other row",
}


def _metric_words(call: str) -> str:
    """A metric of a card, such as precision_at(k=0.1), in words."""
    name, _, settings = call.removesuffix(")").partition("(")
    k = settings.removeprefix("k=")
    if name not in _METRICS or (settings and k == settings):
        return call
    return _METRICS[name].format(percent(float(k)) if "." in k else f"{k} rows")


def _known(value: ArrayLike) -> str:
    return "unknown" if value is None else value if isinstance(value, str) else f"{value:.4g}"
