"""The page docs/evidence/peers.md, from the record alone."""

from __future__ import annotations

from pathlib import Path

from toprank import __all__

from . import toppush
from .cells import METRICS
from .full_page import FEWEST_SETS, complete, critical_difference, draw
from .rankers import BASELINE, RANKERS
from .store import Store
from .tables import (
    Values,
    by_split,
    costs,
    cross,
    gap,
    markdown,
    mean,
    select,
    short,
    tally,
)

TEXTS = Path(__file__).parent / "texts"
FAMILIES = ("linear", "stumps", "trees")
Results = dict[tuple[str, str], Values]


def peers(store: Store, top: Store | None, docs: Path | None = None) -> str:
    """Return the page of all peers side by side; draw its picture below docs, if that is given."""
    cells = cells_of(store)
    results, sets, rankers = gathered(cells)
    head = text("peers_head.md", **caps(cells))
    picture = None if docs is None else _picture(results, rankers, docs)
    if picture is not None:  # after the title and what the page is about
        title, about, rest = head.split("\n\n", 2)
        head = "\n\n".join([title, about, picture, rest])
    sections = [head, _sets(store, sets, caps(cells)["rows"])]
    sections += [_summary(results, sets, rankers)]
    sections += [_metric(metric, results, sets, rankers) for metric in _metrics(results)]
    sections += [_costs(cells, sets, rankers, *kind) for kind in _COSTS]
    sections += [_failures(cells)]
    if top is not None and top.cells:
        sections += [text("toppush.md"), toppush.table(top)]
    return "\n\n".join(section for section in sections if section) + "\n"


def _picture(results: Results, rankers: list[str], docs: Path) -> str | None:
    """Draw the mean ranks of those that finished on nearly all sets, and say what is seen."""
    done = {
        one: sum(bool(results.get((s, one))) for s in {s for s, _ in results}) for one in rankers
    }
    most = max(done.values(), default=0)
    shown = [one for one in rankers if done[one] >= most - 2]
    sets, common = complete(results, shown)
    if len(sets) < FEWEST_SETS:
        return None
    ours = {one for one in shown if any(name in one for name in __all__)}
    draw(sets, shown, common, ours, docs / "images" / "peers_ranks.png")
    apart = critical_difference(len(shown), len(sets))
    return "\n\n".join(
        [
            "![Mean ranks of every peer with the critical difference](images/peers_ranks.png)",
            f"*Mean rank by average precision over the {len(sets)} sets that all of these "
            f"{len(shown)} finished, 1 is best; ours in red. Mean ranks less than {apart:.1f} "
            "apart do not differ at the level of 5% (Nemenyi's test): at these small sizes, "
            "nearly all pairs. [At full size](full_size.md) there are fewer peers and more rows.*",
        ]
    )


def text(name: str, **facts: int) -> str:
    """A passage written by hand, with numbers of the record in it."""
    return (TEXTS / name).read_text(encoding="utf-8").strip().format(**facts)


def cells_of(store: Store) -> dict:
    """The cells with the most training rows, by (set, ranker, split, rows)."""
    cells = select(store, "cell")
    most = max((key[3] for key in cells), default=0)
    return {key: cell for key, cell in cells.items() if key[3] == most}


def caps(cells: dict) -> dict[str, int]:
    """How many training rows were allowed, and how many splits there are."""
    return {
        "rows": max((key[3] for key in cells), default=0),
        "splits": 1 + max((key[2] for key in cells), default=0),
    }


def gathered(cells: dict) -> tuple[Results, list[str], list[str]]:
    """Values by (set, ranker), and both in the order of the tables."""
    found: dict[tuple[str, str], list] = {}
    for (name, ranker, number, *_), cell in cells.items():
        found.setdefault((name, ranker), []).append((number, cell))
    results = {key: by_split(sorted(of, key=lambda x: x[0])) for key, of in found.items()}
    sets = sorted({name for name, _ in results})
    known = {ranker for _, ranker in results}
    order = sorted(RANKERS.values(), key=lambda r: FAMILIES.index(r.family))
    return results, sets, [r.name for r in order if r.name in known]


def _sets(store: Store, sets: list[str], cap: int) -> str:
    facts = facts_of(store, cap)
    rows = [
        [
            name + (" (groups)" if of["groups"] else ""),
            *(f"{of[what]:,}" for what in ("positives", "negatives", "features", "train", "test")),
        ]
        for name, of in sorted(facts.items())
        if name in sets
    ]
    head = ["data", "positives", "negatives", "features", "trained on", "measured on"]
    return "## The data\n\n" + markdown(head, rows)


def facts_of(store: Store, cap: int) -> dict[str, dict]:
    """What is known of each set, by its name."""
    described = select(store, "set").items()
    return {name: cell["values"] for (name, rows), cell in described if rows == cap}


def _metrics(results: Results) -> list[str]:
    """Those that cells of the record have: it may be older than a metric."""
    known = {metric for of in results.values() for split in of.values() for metric in split}
    return [metric for metric in METRICS if metric in known]


def gaps(results: Results, sets: list[str], ranker: str, other: str, metric: str) -> list:
    return [
        gap(results.get((name, ranker), {}), results.get((name, other), {}), metric)
        for name in sets
    ]


def _summary(results: Results, sets: list[str], rankers: list[str]) -> str:
    def cell(ranker: str, metric: str) -> str:
        return tally(gaps(results, sets, ranker, BASELINE, metric))

    others = [name for name in rankers if name != BASELINE]
    return (
        "## Clear gains and losses against logistic regression\n\n"
        "The number of sets with p < 0.05, not corrected for their number.\n\n"
        + cross(others, _metrics(results), cell, "ranker")
    )


def _metric(metric: str, results: Results, sets: list[str], rankers: list[str]) -> str:
    def cell(ranker: str, name: str) -> str:
        level = mean(results.get((name, ranker), {}), metric)
        if level is None:
            return "–"
        if ranker == BASELINE:
            return f"**{short(level)}**"
        (found,) = gaps(results, [name], ranker, BASELINE, metric)
        splits = len(results[name, ranker])
        of = f"{splits} split{'s' if splits > 1 else ''}"
        return f"{short(level)} ({of if found is None else found})"

    return f"## {metric[0].upper() + metric[1:]}\n\n" + cross(rankers, sets, cell, "ranker")


_COSTS = (
    ("Seconds to train", "fit_s", "{:.2f}"),
    ("Peak memory while training, megabytes above what was held before", "peak_mb", "{:.0f}"),
)


def _costs(cells: dict, sets: list[str], rankers: list[str], title: str, what: str, form: str):
    def cell(ranker: str, name: str) -> str:
        found = costs((c for key, c in cells.items() if key[:2] == (name, ranker)), what)
        return "–" if found is None else form.format(found)

    return f"## {title}\n\n" + cross(rankers, sets, cell, "ranker")


def _failures(cells: dict) -> str:
    why: dict[tuple[str, str], set[str]] = {}
    for (name, ranker, *_), cell in cells.items():
        if "failed" in cell["values"]:
            why.setdefault((ranker, cell["values"]["failed"]), set()).add(name)
    if not why:
        return "## What did not run\n\nEverything ran."
    rows = [[ranker, ", ".join(sorted(on)), text] for (ranker, text), on in sorted(why.items())]
    return "## What did not run\n\n" + markdown(["ranker", "on", "why"], rows)
