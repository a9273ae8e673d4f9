"""From the results to the page: one HTML file that needs nothing else.

What does not depend on p is written here; the rest is drawn by `assets/report.js` from the same
results, which are embedded as JSON. Everything that came from the table is escaped here, or set
as text there; the page's policy allows no script but its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from importlib import resources
from typing import TYPE_CHECKING

from toprank._text import count, format_figure, format_p, percent
from toprank.report.front import luck
from toprank.report.front_page import card_sections, format_change, front_header, front_sections
from toprank.report.markup import figure_card, html_table, interval_text, notes_list, word

if TYPE_CHECKING:
    from toprank._arrays import JsonObject


def page(data: JsonObject) -> str:
    """Return the page of a report's results."""
    style, script = _asset("report.css"), _script()
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    title = f"The top of the list: {data['table']['target']}"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="generator" content="toprank {escape(data["made"]["toprank"])}">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#verdict">Skip to the verdict</a>
{front_header(data) if "front" in data else _page_header(data)}
<main>
{_main_sections(data)}
</main>
<footer><p>Made with toprank {escape(data["made"]["toprank"])}. This page holds its own data and
asks nothing of any network.</p></footer>
<script type="application/json" id="data">{json_for_script(data)}</script>
<script>{script}</script>
</body>
</html>
"""


def _main_sections(data: JsonObject) -> str:
    if "cards" in data:
        return card_sections(data)
    first = front_sections(data) if "front" in data else _verdict_section(data)
    if "pushes" not in data:
        return first
    parts = (_by_p, _comparison_section, _support_section, _run_section)
    return "\n".join([first, *(part(data) for part in parts)])


def _script() -> str:
    """One script of three files: what draws, the front page, and what depends on p."""
    parts = "\n".join(map(_asset, ("draw.js", "front.js", "report.js")))
    return f'"use strict";\n(function () {{\n{parts}\n}})();\n'


def json_for_script(data: object) -> str:
    """Return JSON that can stand inside a script element: no markup, nothing outside ASCII."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _asset(name: str) -> str:
    return resources.files("toprank.report").joinpath("assets", name).read_text("utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _page_header(data: JsonObject) -> str:
    table = data["table"]
    if "rows" not in table:
        return (
            '<header><p class="kicker">toprank report</p>'
            "<h1>How good is the top of the list?</h1></header>"
        )
    others = ", ".join(map(word, table["negative"]))
    share = table["positives"] / table["rows"]
    return f"""<header>
<p class="kicker">toprank report</p>
<h1>How good is the top of the list?</h1>
<p class="lede">{count(table["rows"])} rows, {count(len(table["columns"]))} columns to rank by.
{word(table["target"])} is {word(table["positive"])} in {count(table["positives"])} rows
({percent(share)}): these are the positives, which belong at the top. The negatives are
{others}.</p>
</header>"""


def _verdict_section(data: JsonObject) -> str:
    said = data["verdict"]
    shown = ("precision", "recall", "clean", "partial")
    by_key = {figure["key"]: figure for figure in data["figures"]}
    cards = "\n".join(
        figure_card(by_key[key]["label"], data["chosen"]["figures"][key], by_key[key]["unit"])
        for key in shown
        if key in by_key
    )
    return f"""<section id="verdict" aria-labelledby="verdict-title">
<h2 id="verdict-title" class="quiet">The verdict</h2>
<p class="headline">{escape(said["headline"])}</p>
<p>{escape(said["certainty"])} {escape(said["against"])}</p>
<dl class="cards">
{cards}
</dl>
<p class="small">All figures are about rows that the ranker had not seen; the
strength was chosen without the fold that it is measured on. Intervals are 95% intervals.</p>
{notes_list(data["notes"])}
</section>"""


def _by_p(data: JsonObject) -> str:
    k, labels = data["k"], data["labels"]
    ticks = "".join(f"<span>{escape(label.removeprefix('strength '))}</span>" for label in labels)
    disabled = " disabled" if len(labels) == 1 else ""
    return f"""<section id="by-p" aria-labelledby="by-p-title">
<h2 id="by-p-title">What does pushing harder change?</h2>
{_behind(data)}<p>{escape(data["verdict"]["advice"])} The greater the strength (the p of the P-Norm
Push), the more the ranking cares about the very top of the list, and the fewer rows it rests on.
Move the slider, with the mouse or the arrow keys: everything down to the cut follows it.</p>
<div class="slider" role="group" aria-label="How hard the push is">
<label for="p">How hard the push is</label>
<div class="track"><input type="range" id="p" min="0" max="{max(len(labels) - 1, 1)}" step="1"
value="{data["start"]}" aria-describedby="state"{disabled}>
<div class="ticks" aria-hidden="true">{ticks}</div></div>
<output id="p-value" for="p">{escape(labels[data["start"]])}</output>
</div>
<p id="state" class="state" aria-live="polite"></p>
<noscript><p class="notes">The slider and the pictures need JavaScript. The table below has the
figures of every strength.</p></noscript>
<div id="charts" class="charts"></div>
<div id="legend" class="legend" aria-hidden="true"></div>
<details class="screen"><summary>The figures behind the curves</summary>
<div id="points" class="wide"></div></details>
<h3>Every figure at this strength</h3>
<div id="figures"></div>
<details><summary>All strengths and the baselines in one table</summary>
<div class="wide all" tabindex="0" role="region" aria-label="All figures">{_all_figures(data)}</div>
</details>
<h3>Who enters the first {count(k)}, and who leaves?</h3>
<p id="moves"></p>
<div id="changes" class="changes"></div>
<details><summary>The first {count(k)} rows</summary><div id="top"></div></details>
</section>
<section id="features" aria-labelledby="features-title">
<h2 id="features-title">Which columns move rows to the top?</h2>
<p id="features-said"></p>
<div id="features-table"></div>
</section>
<section id="cut" aria-labelledby="cut-title">
<h2 id="cut-title">Who is near the cut?</h2>
<p id="cut-said"></p>
<div id="near"></div>
</section>"""


def _behind(data: JsonObject) -> str:
    """What this part is about, where the front page is about another model."""
    if "front" not in data:
        return ""
    scored, above, k = data["table"]["scored"], data["front"]["rows"], data["k"]
    other = ""
    if scored != above:
        other = (
            f" They are measured on {count(scored)} rows, not on the {count(above)} above: the "
            f"first {count(k)} are another part of the list, so their figures are others too."
        )
    return (
        "<p>From here on the page is about a linear score, pushed more and more to be right at the "
        f"top, beside logistic regression and boosted trees on the same rows.{other}</p>\n"
    )


def _all_figures(data: JsonObject) -> str:
    rows = [
        *zip(data["labels"], (push["figures"] for push in data["pushes"]), strict=True),
        *((one["name"], one["figures"]) for one in data["baselines"]),
    ]
    head = ["", *(figure["label"] for figure in data["figures"])]
    body = [
        [
            escape(name),
            *(
                f"{format_figure(values[figure['key']]['value'], figure['unit'])} "
                f"<small>{interval_text(values[figure['key']], figure['unit'])}</small>"
                for figure in data["figures"]
            ),
        ]
        for name, values in rows
    ]
    return html_table("Every figure, with its 95% interval", head, body)


def _comparison_section(data: JsonObject) -> str:
    lines = data["comparison"]
    head = ("Compared", "Figure", "Difference", "95% interval", "Over the folds", "By luck alone")
    body = [
        [
            f"{escape(line['names'][0])} \u2212 {escape(line['names'][1])}",
            escape(line["label"]) + (", in points" if line["unit"] == "share" else ""),
            f"<strong>{format_change(line['difference'], line['unit'])}</strong>",
            _span(line["low"], line["high"], line["unit"]),
            f"{_span(line['folds_low'], line['folds_high'], line['unit'])} "
            f"<small>{line['folds_agree']} of {line['folds']} agree</small>",
            luck(line["adjusted_p_value"]),
        ]
        for line in lines
    ]
    caption = "Differences on the same rows; above zero the first is better"
    table = html_table(caption, head, body, stack=True)
    said = data["verdict"]["against"] or "There are too few rows to compare."
    return f"""<section id="comparison" aria-labelledby="comparison-title">
<h2 id="comparison-title">How does it compare with logistic regression and trees?</h2>
<p>{escape(said)}</p>
<div id="forest"></div>
<div class="wide">{table if body else ""}</div>
<p class="small">Every ranker was trained on the same folds and scored the same unseen rows, so the
differences are paired. The first interval is for other rows and these very rankers. The second is
over the folds, corrected for the training rows they share, so that it is also for other training
rows. Both, and the chance of such a difference by luck, allow for the number of pairs
(Bonferroni).</p>
</section>"""


def _span(low: float | None, high: float | None, unit: str) -> str:
    return f"{format_change(low, unit)} to {format_change(high, unit)}"


def _support_section(data: JsonObject) -> str:
    support = data["support"]
    if support is None:
        said, table = "These rows cannot tell; the notes at the top say why.", ""
    else:
        said = f"{support['verdict']} {support['caution']}"
        head = (
            "Strength",
            "Negatives that carry it",
            "Risk trained on",
            "Risk held out",
            "Supported",
        )
        body = [
            [
                format_p(line["p"]),
                _few(line["effective_negatives"]),
                _format_known(line["train_risk"], ".3g"),
                f"{_format_known(line['test_risk'], '.3g')} "
                f"<small>± {_format_known(line['standard_error'], '.2g')}</small>",
                "yes" if line["supported"] else f"no: {escape(line['reason'])}",
            ]
            for line in support["lines"]
        ]
        table = html_table("What the sample says of each strength", head, body, stack=True)
    return f"""<section id="support" aria-labelledby="support-title">
<h2 id="support-title">What strength does the data support?</h2>
<p>{escape(said)}</p>
<div class="wide">{table}</div>
<p class="small">A hard push rests on few negatives, those that stand highest. The risk is the
normalised p-norm risk of Rudin (2009): 0 is a perfect order. A strength
is supported if at least ten negatives carry it and the risk on rows held out is known to within
30%.</p>
</section>"""


def _format_known(value: float | None, form: str) -> str:
    """A number, or that it is not known."""
    return "unknown" if value is None else format(value, form)


def _few(value: float) -> str:
    return count(value) if value >= 20 else f"{value:.1f}"


def _run_section(data: JsonObject) -> str:
    made = "\n".join(
        f"<div><dt>{escape(str(key))}</dt><dd>{escape(str(value))}</dd></div>"
        for key, value in data["made"].items()
    )
    columns = [
        [
            word(one["name"]),
            escape(one["kind"]),
            percent(one["missing"]) if one["missing"] else "–",
        ]
        for one in data["table"]["columns"]
    ]
    left = [[word(one["name"]), word(one["reason"])] for one in data["table"]["left_out"]]
    roles = "".join(
        f"<div><dt>{role} column</dt><dd>{word(data['table'][role])}</dd></div>"
        for role in ("target", "id", "time")
        if data["table"][role] is not None
    )
    return f"""<section id="made" aria-labelledby="made-title">
<h2 id="made-title">How was this made?</h2>
<p>Columns are prepared inside each fold, from its training rows alone: numbers are standardised,
categories become columns of 0 and 1, dates and text become numbers, and what is missing gets the
mean and a column that says so. Scores of different fits are not on one scale, so the lists of the
folds are merged place by place: the first hundredth of the whole is the first hundredth of
each.</p>
<dl class="facts">
{made}
{roles}
</dl>
<details><summary>The {count(len(columns))} column{"s"[: len(columns) != 1]} read</summary>
<div class="wide">{html_table("Columns", ("Column", "Kind", "Missing"), columns)}</div></details>
{_left_out(left)}
</section>"""


def _left_out(left: list[list[str]]) -> str:
    if not left:
        return ""
    table = html_table("Columns left out", ("Column", "Why"), left)
    return (
        f"<details><summary>The {count(len(left))} column{'s'[: len(left) != 1]} left out</summary>"
        f'<div class="wide">{table}</div></details>'
    )
