"""The cells on docs/evidence/error_bars_table.md, and their picture, made from the record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from error_bars_record import WIDE, Cell, Record, is_wrong

DOCS = Path(__file__).resolve().parents[1] / "docs"
PICTURE, PAGE = DOCS / "images" / "error_bars.png", DOCS / "evidence" / "error_bars_table.md"
#: The parts of the page that are written from records, and what writes them.
WRITTEN = {
    "summary": "python benchmarks/error_bars.py page",
    "other code": "python benchmarks/error_bars_attack.py --page",
    "every cell": "python benchmarks/error_bars.py page",
}


def with_part(page: str, name: str, lines: Iterable[str]) -> str:
    """Return the page with these lines between the two marks of a part that is written."""
    first, last = f"<!-- {name}: {WRITTEN[name]} -->", f"<!-- end of {name} -->"
    before, rest = page.split(first)
    text = "\n".join(lines).strip("\n")
    return f"{before}{first}\n\n{text}\n\n{last}{rest.split(last)[1]}"


def write_page(record: Record, cases: list[Any], is_in_design: Callable[[Any], bool]) -> None:
    """Write the cells into docs/evidence/error_bars_table.md and draw docs/images/error_bars.png.

    `is_in_design` says of a setting whether its cells are among those that are run.
    """
    page = page_of(PAGE.read_text(encoding="utf-8"), record, cases, is_in_design)
    PAGE.write_text(page, encoding="utf-8")
    draw_picture([(case, cell) for case in cases if (cell := record.get(case)) is not None])


def page_of(
    page: str, record: Record, cases: list[Any], is_in_design: Callable[[Any], bool]
) -> str:
    """Return the page with the cells of the record."""
    known = [(case, record.get(case)) for case in cases]
    design = [is_in_design(case.setting) for case in cases]
    summary = (*_summary(known, design), *_wrong(known), *_above(known))
    page = with_part(page, "summary", summary)
    return with_part(page, "every cell", (*_levels(known), *_tables(known)))


def _summary(known: list[Any], design: list[bool]) -> Iterator[str]:
    """How many cells of each kind were measured, and between what they cover."""
    yield "\n## What was run, and what was not\n"
    yield from _design(known, design)
    yield "| rows | metrics | cells | in the design | measured | below 93% | to 97.5% | above |"
    yield "|---|---|---|---|---|---|---|---|"
    kinds: dict[tuple[str, bool], list[Any]] = {}
    for (case, cell), chosen in zip(known, design, strict=True):
        if case.part == "intervals":
            at_cut = case.metric in ("tpr_at_fpr", "precision_at", "recall_at")
            kinds.setdefault((shape_name(case.setting), at_cut), []).append((cell, chosen))
    for (shape, at_cut), members in kinds.items():
        cells = [cell for cell, _ in members]
        answers = [c.answer for c in cells if c is not None and np.isfinite(c.answer)]
        counts = Counter("low" if a < 0.93 else "high" if a > WIDE else "well" for a in answers)
        measured = sum(c is not None for c in cells)
        metrics = "at a cut" if at_cut else "smooth"
        part = sum(chosen for _, chosen in members)
        numbers = (len(cells), part, measured, *(counts[kind] for kind in ("low", "well", "high")))
        yield f"| {shape} | {metrics} | " + " | ".join(f"{n:,}" for n in numbers) + " |"
    yield (
        "\nShort lists are run first, then longer ones, and metrics at a cut after the smooth: "
        "over groups their bootstrap takes fifty times as long. Samples of more than 30,000 rows "
        "(200 positives at 0.2%) are not part of the table. Cells in which every sample was "
        "refused have no coverage."
    )


def _design(known: list[Any], design: list[bool]) -> Iterator[str]:
    """Which cells are run, and how many of them were."""
    cells = [
        (cell is not None, chosen)
        for (case, cell), chosen in zip(known, design, strict=True)
        if case.part == "intervals"
    ]
    chosen, both = sum(part for _, part in cells), sum(seen and part for seen, part in cells)
    yield (
        f"Of the {len(cells):,} cells the nightly run measures {chosen:,}: for every metric the "
        "corners (5 and 200 positives at their smallest and their largest share, every law, "
        "independent rows and 15 unequal groups), and a tenth of the other settings, chosen so "
        "that every number of positives meets every share, law and kind of rows, and every share "
        f"every law. {both:,} of these are on this page, with {sum(s for s, _ in cells) - both:,} "
        "others that were measured before; an empty place was not run.\n"
    )


def _wrong(known: list[Any]) -> Iterator[str]:
    """Every cell below 93%, with the share of the intervals that say so."""
    yield "\n## Cells below 93%\n"
    low = [
        (case, cell)
        for case, cell in known
        if case.part == "intervals" and cell is not None and cell.answer < 0.93
    ]
    if not low:
        yield "None of those measured."
        return
    yield "A note is what the interval prints below its ends.\n"
    yield "| metric | setting | covers | samples | with a note | refused |"
    yield "|---|---|---|---|---|---|"
    for case, cell in sorted(low, key=lambda pair: pair[1].answer):
        mark = "" if not is_wrong(case.part, cell) else " (not named yet)"
        yield (
            f"| `{case.metric}` | {setting_name(case.setting)} | {cell.answer:.3f}{mark} | "
            f"{cell.draws:,.0f} | {cell.noted:.0%} | {cell.refused:.0%} |"
        )


def _above(known: list[Any]) -> Iterator[str]:
    """How many cells of each metric and law cover more than 97.5%, and of how many they must."""
    laws = dict.fromkeys(case.setting.law for case, _ in known)
    cells: dict[str, list[Any]] = {}
    for case, cell in known:
        if case.part == "intervals" and cell is not None and np.isfinite(cell.answer):
            cells.setdefault(case.metric, []).append((case.setting.law, cell))
    yield "\n## Cells above 97.5%\n"
    yield (
        "Of the cells measured, by the law of the scores. Then how many of the cells above 97.5% "
        "are so whatever the interval. An interval whose ends rise with the estimate holds the "
        "true value for estimates between two values, so its coverage is a sum of the chances of "
        "neighbouring estimates. *No interval*: no such sum is from 93.5% to 97.5%, because the "
        "estimate has few values. *None by halves*: there is one, but not if each end may miss in "
        "at most 2.5%, because the estimate has its extreme value, or one of few next to it, in so "
        "many samples that one end cannot miss, or only in far fewer. *Ours*: the others. The last "
        "column counts those in which one end misses in less than one sample in a thousand. "
        "[Which they are, and why](../explanation/error_bars.md#more-than-promised).\n"
    )
    words = "no interval | none by halves | ours | one end never misses"
    yield f"| metric | {' | '.join(laws)} | all | {words} |"
    yield "|---" * (6 + len(laws)) + "|"
    for metric, members in cells.items():
        above = [
            f"{sum(cell.answer > WIDE for one, cell in members if one == law)} of "
            f"{sum(one == law for one, _ in members)}"
            for law in laws
        ]
        wide = [cell for _, cell in members if cell.answer > WIDE]
        kinds = Counter(map(_why_wide, wide))
        one_sided = sum(min(cell.above, cell.below) < 0.001 for cell in wide)
        numbers = (*(kinds[kind] for kind in ("no interval", "by halves", "ours")), one_sided)
        counts = " | ".join(map(str, (f"{len(wide)} of {len(members)}", *numbers)))
        yield f"| `{metric}` | {' | '.join(above)} | {counts} |"


def _why_wide(cell: Cell) -> str:
    """Whether the values that the estimate has leave an interval that covers less."""
    if cell.nearest > WIDE:
        return "no interval"
    if cell.nearest_by_halves > WIDE - 1e-9:
        return "by halves"
    return "ours" if np.isfinite(cell.nearest) else "not known"


def _levels(known: list[Any]) -> Iterator[str]:
    """How often equal rankers are told apart."""
    cells = [(case, cell) for case, cell in known if case.part == "nulls" and cell is not None]
    if not cells:
        return
    yield "\n## Equal rankers that `compare` tells apart at 5%\n"
    yield "| metric | setting | rejected | samples |\n|---|---|---|---|"
    for case, cell in cells:
        name = setting_name(case.setting)
        yield f"| `{case.metric}` | {name} | {cell.answer:.3f} | {cell.draws:,.0f} |"


def _tables(known: list[Any]) -> Iterator[str]:
    """Every measured cell: a table per metric, a line per rows, law and positives."""
    shares = sorted({case.setting.prevalence for case, _ in known})
    metrics = dict.fromkeys(case.metric for case, _ in known)
    for metric in metrics:
        lines: dict[tuple[str, str, int], dict[float, Cell]] = {}
        for case, cell in known:
            if (case.part, case.metric) == ("intervals", metric) and cell is not None:
                key = (shape_name(case.setting), case.setting.law, case.setting.positives)
                lines.setdefault(key, {})[case.setting.prevalence] = cell
        if not lines:
            continue
        yield f"\n## `{metric}`\n\nCoverage, and mean width, by the share of positives.\n"
        yield "| rows | law | positives | " + " | ".join(f"{s:.1%}" for s in shares) + " |"
        yield "|---" * (3 + len(shares)) + "|"
        for (shape, law, positives), cells in lines.items():
            shown = " | ".join(_text(cells.get(share)) for share in shares)
            yield f"| {shape} | {law} | {positives} | {shown} |"


def _text(cell: Cell | None) -> str:
    if cell is None:
        return ""
    if not np.isfinite(cell.answer):
        return "refused"
    star = "\\*" if cell.draws >= 2000 else "°" if cell.draws >= 1000 else ""
    return f"{cell.answer:.3f}{star}, {cell.width:.2g}"


def shape_name(setting: Any) -> str:
    """What the rows of a setting are."""
    if setting.groups is None:
        return "independent, weighted" if setting.weighted else "independent"
    words = (f"{setting.groups} groups", "unequal" * setting.unequal, "weighted" * setting.weighted)
    return ", ".join(filter(None, words))


def setting_name(setting: Any) -> str:
    """A setting in words."""
    share = f"{setting.positives} positives at {setting.prevalence:.1%}"
    return f"{share}, {setting.law}, {shape_name(setting)}"


def _rows_of(setting: Any) -> tuple[int, str]:
    """What a column of the picture is of, and its place; groups of any kind are together."""
    if setting.groups:
        return setting.groups, f"{setting.groups} groups"
    return (1, "weighted") if setting.weighted else (0, "independent")


def draw_picture(cells: list[tuple[Any, Cell]]) -> None:
    """Heat maps of coverage and width: a line per law and positives, a column per rows."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    worst: dict[tuple[Any, ...], Cell] = {}
    for case, cell in cells:
        setting = case.setting
        if case.part != "intervals" or not np.isfinite(cell.answer) or cell.refused > 0.5:
            continue
        key = (case.metric, _rows_of(setting), setting.law, setting.positives)
        if key not in worst or cell.answer < worst[key].answer:
            worst[key] = cell
    columns = list(dict.fromkeys(key[:2] for key in worst))
    order = list(dict.fromkeys(metric for metric, _ in columns))
    columns.sort(key=lambda column: (order.index(column[0]), column[1]))
    laws = list(dict.fromkeys(key[2] for key in worst))
    rows = [(law, n) for law in laws for n in sorted({key[3] for key in worst})]
    figure, axes = plt.subplots(
        2, 1, figsize=(max(8, 4 + 0.3 * len(columns)), 14), layout="constrained"
    )
    for ax, field, title, colours, limits in (
        (axes[0], "answer", "Coverage of 95% intervals", "RdBu", (0.91, 1.0)),
        (axes[1], "width", "Their mean width", "viridis_r", (0.0, 1.0)),
    ):
        grid = np.array(
            [[_value(worst.get((*column, *row)), field) for column in columns] for row in rows]
        )
        ax.set_facecolor("0.9")
        shown = ax.imshow(grid, cmap=colours, vmin=limits[0], vmax=limits[1], aspect="auto")
        ax.set_title(title)
        names = [f"{metric}, {rows_of[1]}" for metric, rows_of in columns]
        ax.set_xticks(range(len(columns)), names, rotation=90)
        ax.set_yticks(range(len(rows)), [f"{law}, {n} positives" for law, n in rows])
        ax.tick_params(labelsize=7)
        for down, across in zip(*np.nonzero(np.isfinite(grid)), strict=True):
            text = f"{grid[down, across]:.2f}".lstrip("0")
            dark = np.dot(shown.to_rgba(grid[down, across])[:3], (0.3, 0.6, 0.1)) < 0.45
            colour = "white" if dark else "black"
            ax.text(across, down, text, ha="center", va="center", fontsize=6, color=colour)
        figure.colorbar(shown, ax=ax, shrink=0.5)
    figure.savefig(PICTURE, dpi=90)
    plt.close(figure)


def _value(cell: Cell | None, field: str) -> float:
    return np.nan if cell is None else float(getattr(cell, field))
