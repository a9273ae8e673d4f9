"""The page docs/evidence/when_it_helps.md, from the record alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from .pages import Results, caps, cells_of, facts_of, gaps, gathered, text
from .store import Store
from .tables import DOWN, UP, by_split, cross, gap, markdown, mean, select, tally
from .when import COMPARED, SHARES, SIZES, USUAL
from .when_full_page import at_full_size

#: What "When does the push help?" is asked of.
ASKED = (
    "precision in the first 1%",
    "average precision",
    "positives above every negative",
    "AUC",
)


def when_it_helps(store: Store, extra: Store, docs: Path) -> str:
    """Return the page on p, the hypothesis space, the imbalance and the sample size."""
    cells = cells_of(store)
    results, sets, _ = gathered(cells)
    picture = ""
    if results:
        from .pictures import by_capacity

        by_capacity(results, sets, ASKED[:2], docs / "images" / "when_it_helps.png")
        picture = "![What p gains and loses](images/when_it_helps.png)"
    sections = [text("when_head.md"), *at_full_size(extra, docs)]
    sections += [text("when_small.md", **caps(cells)), picture, _counted(results, sets)]
    sections += [_named(results, sets)]
    which = _which_data(facts_of(store, caps(cells)["rows"]), results, sets)
    sections += [text("when_which.md"), which] if which else []
    sections += [text("when_capacity.md")]
    sections += [_by_capacity(results, sets, metric) for metric in ASKED]
    sections += [text("when_usual.md"), _against_usual(results, sets)]
    for question, levels, name in (
        ("imbalance", SHARES, "when_imbalance.md"),
        ("sample size", SIZES, "when_size.md"),
    ):
        tables = [_by_level(extra, question, levels, metric) for metric in ASKED]
        if any(tables):
            sections += [text(name), *tables]
    return "\n\n".join(section for section in sections if section) + "\n"


def _counted(results: Results, sets: list[str]) -> str:
    """Clear gains and losses of every push against p = 1 in its own hypothesis space."""
    rows = []
    for family, (without, pushes) in COMPARED.items():
        for push in pushes:
            found = [tally(gaps(results, sets, push, without, metric)) for metric in ASKED]
            rows.append([family, push, *found])
    return markdown(["hypothesis space", "against p = 1", *ASKED], rows)


def _named(results: Results, sets: list[str]) -> str:
    """The sets behind the counts of the strongest push of each hypothesis space."""
    rows = []
    for family, (without, pushes) in COMPARED.items():
        for metric in ASKED:
            found = dict(zip(sets, gaps(results, sets, pushes[-1], without, metric), strict=True))
            marked = {
                mark: [name for name, g in found.items() if g is not None and g.mark == mark]
                for mark in (UP, DOWN)
            }
            named = [", ".join(marked[mark]) or "none" for mark in (UP, DOWN)]
            rows.append([f"{family}, {pushes[-1]}", metric, *named])
    return markdown(["the strongest push", "metric", f"{UP} on", f"{DOWN} on"], rows)


def _which_data(facts: dict, results: Results, sets: list[str]) -> str:
    """Spearman's correlation, over the sets, of the gain with what is known of a set."""

    def of_set(name: str, without: str) -> list[float | None]:
        of = facts[name]
        share = of["positives"] / (of["positives"] + of["negatives"])
        found = mean(results.get((name, without), {}), "AUC")
        return [share * of["train"], share, of["features"] / of["train"], found]

    head = ["positives to train on", "share of positives", "features per row", "AUC of p = 1"]
    rows = []
    for family, (without, pushes) in COMPARED.items():
        for metric in ASKED:
            pairs = [
                (g.mean, *of_set(name, without))
                for name, g in zip(
                    sets, gaps(results, sets, pushes[-1], without, metric), strict=True
                )
                if g is not None
            ]
            if len(pairs) < 5:
                continue
            gain, *known = np.array(pairs, dtype=float).T
            rows.append([f"{family}, {pushes[-1]}", metric, *(_spearman(gain, x) for x in known)])
    return markdown(["gain of", "in", *head], rows) if rows else ""


def _spearman(a: Any, b: Any) -> str:
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return "–"
    found = stats.spearmanr(a, b)
    return f"{found.statistic:+.2f}" + ("*" if found.pvalue < 0.05 else "")


def _by_capacity(results: Results, sets: list[str], metric: str) -> str:
    columns = [push for _, pushes in COMPARED.values() for push in pushes]
    without = {push: plain for plain, pushes in COMPARED.values() for push in pushes}

    def cell(name: str, push: str) -> str:
        (found,) = gaps(results, [name], push, without[push], metric)
        return "–" if found is None else str(found)

    return f"**{metric[0].upper() + metric[1:]}**\n\n" + cross(sets, columns, cell, "data")


def _against_usual(results: Results, sets: list[str]) -> str:
    rows = []
    for family, (_, pushes) in COMPARED.items():
        for push in pushes:
            found = [tally(gaps(results, sets, push, USUAL[family], m)) for m in ASKED]
            rows.append([push, USUAL[family], *found])
    return markdown(["push", "against", *ASKED], rows)


def _by_level(store: Store, question: str, levels: tuple, metric: str) -> str:
    cells = select(store, question)
    found: dict[tuple[str, str, float], list] = {}
    for (name, ranker, number, level), cell in cells.items():
        found.setdefault((name, ranker, level), []).append((number, cell))
    values = {key: by_split(of) for key, of in found.items()}
    if not values:
        return ""
    pairs = [
        ("PNormPush(p=4)", "PNormPush(p=1)"),
        ("PNormPush(p=64)", "PNormPush(p=1)"),
        ("PushTrees(p=4)", "PushTrees(p=1)"),
    ]

    def cell(name: str, column: tuple[Any, float]) -> str:
        (push, plain), level = column
        of = gap(values.get((name, push, level), {}), values.get((name, plain, level), {}), metric)
        return "–" if of is None else str(of)

    names = sorted({name for name, _, _ in values})
    columns = [(pair, level) for pair in pairs for level in levels]
    head = ["data", *(f"{push}, {level:g}" for (push, _), level in columns)]
    body = [[name, *(cell(name, column) for column in columns)] for name in names]
    return f"**{metric[0].upper() + metric[1:]}**\n\n" + markdown(head, body)
