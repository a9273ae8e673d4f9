"""The first part of docs/evidence/when_it_helps.md: at full size, from the record alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from .full_page import wilcoxon
from .pages import Results, text
from .store import Store
from .tables import by_split, gap, markdown, mean, select, short, tally
from .when_full import BINARY, CONTESTS, LOGISTIC, QUESTION, SHARES

SHOWN = ("average precision", "AUC up to 5% false positives", "precision in the first 1%")
#: What the picture and the table of thinned positives show.
DRAWN = (("linear, p = 4", LOGISTIC), ("trees, p = 4", BINARY))
#: A set and a share of its positives.
Table = tuple[str, float]


def at_full_size(store: Store, docs: Path) -> list[str]:
    """Return the sections, and draw their picture below docs; nothing without a record."""
    results = _results(store)
    sets = sorted({name for (name, share), _ in results if share == 1})
    if not sets:
        return []
    rarity = {table: _share_of_positives(of) for (table, _), of in results.items()}
    _draw(results, rarity, docs / "images" / "when_full.png")
    n_splits = max(len(of) for (table, _), of in results.items() if table[1] == 1)
    return [
        text("when_full.md", sets=len(sets), splits=n_splits),
        _over_sets(results, sets, rarity),
        "![What the push adds against the share of positives](images/when_full.png)",
        text("when_full_sets.md"),
        *(_by_set(results, sets, rarity, metric) for metric in SHOWN),
        text("when_rare.md"),
        _thinned(results, rarity),
    ]


def _results(store: Store) -> dict[tuple[Table, str], Any]:
    found: dict[tuple[Table, str], list] = {}
    for (name, ranker, number, share), cell in select(store, QUESTION).items():
        found.setdefault(((name, share), ranker), []).append((number, cell))
    return {key: by_split(sorted(of, key=lambda one: one[0])) for key, of in found.items()}


def _share_of_positives(values: Any) -> float:
    return float(np.mean([one["positives"] / one["train"] for one in values.values()]))


def _gap(results: Results, table: Table, push: str, plain: str, metric: str) -> Any:
    return gap(results.get((table, push), {}), results.get((table, plain), {}), metric)


def _over_sets(results: Results, sets: list[str], rarity: dict[Table, float]) -> str:
    """Sets won and lost, clear differences, and how they go with the share of positives."""
    rows = []
    for push, plain in CONTESTS:
        line = [push, plain]
        for metric in SHOWN:
            common = {
                (s, one): {n: results[(s, 1.0), one][n] for n in _shared(results, s, push, plain)}
                for s in sets
                for one in (push, plain)
            }
            known = [s for s in sets if common[s, push]]
            won, lost, p = wilcoxon(known, common, push, plain, metric)
            line.append(f"{won} : {lost}" + ("" if p is None else f", p = {p:.2g}"))
        gaps = [_gap(results, (s, 1.0), push, plain, SHOWN[0]) for s in sets]
        line.append(tally(gaps))
        pairs = [(rarity[s, 1.0], g.mean) for s, g in zip(sets, gaps, strict=True) if g]
        found = stats.spearmanr(*zip(*pairs, strict=True)) if len(pairs) > 4 else None
        line.append("" if found is None else f"{found.statistic:+.2f} (p = {found.pvalue:.2g})")
        rows.append(line)
    head = ["push", "against", *SHOWN, "clear differences in average precision"]
    return markdown([*head, "its gain goes with the share of positives"], rows)


def _shared(results: Results, name: str, *rankers: str) -> list[int]:
    return sorted(set.intersection(*(set(results.get(((name, 1.0), r), ())) for r in rankers)))


def _by_set(results: Results, sets: list[str], rarity: dict[Table, float], metric: str) -> str:
    contests = [CONTESTS[0], CONTESTS[2], CONTESTS[3], CONTESTS[5]]
    head = ["data", "positives", *(f"{push}, less {plain}" for push, plain in contests)]
    rows = []
    for name in sorted(sets, key=lambda s: rarity[s, 1.0]):
        gaps = [_gap(results, (name, 1.0), *contest, metric) for contest in contests]
        rows.append(
            [name, _percent(rarity[name, 1.0]), *("–" if g is None else str(g) for g in gaps)]
        )
    return f"**{metric[0].upper() + metric[1:]}**\n\n" + markdown(head, rows)


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%"


def _thinned(results: Results, rarity: dict[Table, float]) -> str:
    """Both contests that the picture shows, set by set, as the positives get rarer."""
    names = sorted({name for name, share in rarity if share < 1})
    rows = []
    for name in names:
        for share in SHARES:
            if (name, share) not in rarity:
                continue
            line = [name, _percent(rarity[name, share])]
            for push, plain in DRAWN:
                level = mean(results.get(((name, share), plain), {}), SHOWN[0])
                found = _gap(results, (name, share), push, plain, SHOWN[0])
                line.append("–" if level is None else short(level))
                line.append("–" if found is None else str(found))
            rows.append(line)
    head = [
        "data",
        "positives",
        *(what for push, plain in DRAWN for what in (plain, f"{push}, adds")),
    ]
    return markdown(head, rows)


def _draw(results: Results, rarity: dict[Table, float], path: Path) -> None:
    """One panel per hypothesis space, a point per table; thinned tables hang on their set."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    names = sorted({name for name, _ in rarity}, key=lambda name: rarity[name, 1.0])
    for panel, (push, plain) in zip(figure.subplots(1, 2), DRAWN, strict=True):
        for number, name in enumerate(names):
            points = [
                (100 * rarity[name, share], found.mean)
                for share in SHARES
                if (name, share) in rarity
                and (found := _gap(results, (name, share), push, plain, SHOWN[0]))
            ]
            if not points:
                continue
            x, y = zip(*points, strict=True)
            colour = f"C{number % 10}"
            panel.plot(x, y, "-" if number < 10 else "--", color=colour, linewidth=0.8, alpha=0.6)
            panel.plot(x[1:], y[1:], "o", color=colour, markersize=3, fillstyle="none")
            panel.plot(x[0], y[0], "o", color=colour, markersize=5)
            above = (5, -9)[number % 2]  # neighbours by rarity above and below their dots
            panel.annotate(
                name, (x[0], y[0]), (3, above), textcoords="offset points", fontsize=7, color=colour
            )
        panel.axhline(0, color="0.5", linewidth=0.8)
        panel.set(xscale="log", xlabel="positives among the training rows, %")
        panel.set_title(f"{push}, less {plain}", fontsize=10)
        panel.set_ylabel("average precision gained")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
