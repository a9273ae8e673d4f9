"""Do the intervals cover, and are the p-values what they say? Simulation, as tables and a picture.

    python benchmarks/error_bars.py                 # every cell of the table, 2,000 samples each
    python benchmarks/error_bars.py --quick         # some cells, 300 samples: does it run?
    python benchmarks/error_bars.py intervals       # or: nulls
    python benchmarks/error_bars.py picture         # draw docs/images/error_bars.png again
    python benchmarks/error_bars.py --minutes 60    # stop then; the next call goes on
    python benchmarks/error_bars.py --metrics auc average_precision

Every cell is kept in benchmarks/results/error_bars.json as soon as it is known, so that a run that
was cut short goes on where it stopped; --again forgets them. The samples come from
`toprank.simulate.coverage`: see `ScoreSetting` for the laws, and for what is the true value.

Null hypothesis of `compare`: two rankers whose scores are exchangeable given the label, each the
sum of a common part and one of its own; with groups, also one of its own per group.

The exit status is 1 if a cell that was measured covers less than 93%, or rejects more than 6% at
the 5% level, by more than two standard errors.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from toprank.inference import compare
from toprank.simulate import ScoreSetting, coverage

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "benchmarks" / "results" / "error_bars.json"
PICTURE = ROOT / "docs" / "images" / "error_bars.png"
METRICS: dict[str, dict[str, Any]] = {
    "auc": {},
    "partial_auc": {"max_fpr": 0.1},
    "average_precision": {},
    "pnorm_risk": {"p": 4, "normalize": True},
    "precision_at": {"k": 0.05},
    "recall_at": {"k": 0.1},
    "tpr_at_fpr": {"fpr": 0.1},
}
POSITIVES = (5, 10, 20, 40, 200)
PREVALENCES = (0.002, 0.01, 0.1, 0.5)
LAWS = ("normal", "t3", "ties", "near-perfect", "random")
#: Groups, and whether they are unequal.
GROUPS: tuple[tuple[int | None, bool], ...] = (
    (None, False),
    (15, False),
    (15, True),
    (40, False),
    (40, True),
    (200, False),
    (200, True),
)
#: Rows of a sample beyond which a cell is left out: 200 positives at 0.2% are 100,000 rows.
MOST_ROWS = 30_000


def settings() -> Iterator[ScoreSetting]:
    """Every setting of the table; those that decide most first."""
    for (groups, unequal), weighted in product(GROUPS, (False, True)):
        for positives, prevalence, law in product(POSITIVES, PREVALENCES, LAWS):
            setting = ScoreSetting(
                positives, prevalence, law, groups=groups, unequal=unequal, weighted=weighted
            )
            if setting.rows <= MOST_ROWS and (groups or 0) <= setting.rows:
                yield setting


def is_quick(setting: ScoreSetting) -> bool:
    """Whether a cell is one of those that --quick measures."""
    return (
        setting.positives in (10, 40)
        and setting.prevalence == 0.1
        and setting.groups in (None, 15)
        and setting.unequal == (setting.groups is not None)
        and not setting.weighted
    )


def measure_coverage(metric: str, setting: ScoreSetting, samples: int) -> dict[str, Any]:
    """One cell: coverage and width of an interval."""
    found = coverage(metric, setting, draws=samples, n_resamples=200, **METRICS[metric])
    return found.as_dict()


def measure_level(metric: str, setting: ScoreSetting, samples: int) -> dict[str, Any]:
    """One cell: how often equally good rankers are told apart at the 5% level."""
    rng = np.random.default_rng(3)
    chances = []
    for _ in range(samples):
        y, common, how = setting.draw(rng)
        own = rng.normal(size=(2, len(y))) / 2
        if setting.groups is not None:
            own += rng.normal(size=(2, setting.groups))[:, how["groups"]] / 3
        a, b = common + own
        if setting.law == "ties":
            a, b = np.round(a), np.round(b)
        try:
            found = compare(metric, y, a, b, n_resamples=299, **how, **METRICS[metric])
        except ValueError:
            continue
        chances.append(found.p_value)
    answered = len(chances)
    return {
        "rejected": float(np.mean(np.array(chances) <= 0.05)) if answered else np.nan,
        "refused": 1 - answered / samples,
        "draws": samples,
    }


PARTS = {"intervals": measure_coverage, "nulls": measure_level}


def cell_name(part: str, metric: str, setting: ScoreSetting) -> str:
    """The name under which a cell is kept."""
    return " ".join(map(str, (part, metric, *asdict(setting).values())))


def is_wrong(cell: dict[str, Any]) -> bool:
    """Whether a cell misses its promise by more than two standard errors."""
    answered = max(1.0, cell["draws"] * (1 - cell["refused"]))
    if "rejected" in cell:
        return bool(cell["rejected"] > 0.06 + 2 * np.sqrt(0.06 * 0.94 / answered))
    return bool(cell["covered"] < 0.93 - 2 * np.sqrt(0.93 * 0.07 / answered))


def draw_picture(kept: dict[str, dict[str, Any]]) -> None:
    """Heat maps: a row per law and positives, a column per metric and groups."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shapes = [shape for shape in GROUPS if any(_found(kept, "auc", *shape).values())]
    columns = [(metric, shape) for metric in METRICS for shape in shapes]
    rows = [(law, positives) for law in LAWS for positives in POSITIVES]
    grids = np.full((2, len(rows), len(columns)), np.nan)
    for across, (metric, shape) in enumerate(columns):
        cells = _found(kept, metric, *shape)
        for down, row in enumerate(rows):
            if cells[row]:
                worst = min(cells[row], key=lambda cell: cell["covered"])
                grids[:, down, across] = worst["covered"], worst["width"]
    down, across = (np.any(np.isfinite(grids[0]), axis=axis) for axis in (1, 0))
    grids = grids[:, down][:, :, across]  # without what is not known yet
    rows = [row for row, known in zip(rows, down, strict=True) if known]
    columns = [column for column, known in zip(columns, across, strict=True) if known]
    figure, axes = plt.subplots(1, 2, figsize=(13, 7.5), sharey=True, layout="constrained")
    for ax, grid, title, colours, limits in (
        (axes[0], grids[0], "coverage of 95% intervals", "RdYlGn", (0.88, 1.0)),
        (axes[1], grids[1], "mean width", "viridis_r", (0.0, 1.0)),
    ):
        shown = ax.imshow(grid, cmap=colours, vmin=limits[0], vmax=limits[1], aspect="auto")
        ax.set_title(f"{title} (the worst over prevalences)" if ax is axes[0] else title)
        ax.set_xticks(range(len(columns)), [_column(*column) for column in columns], rotation=90)
        names = [f"{law}, {positives} positives" for law, positives in rows]
        ax.set_yticks(range(len(rows)), names)
        ax.tick_params(labelsize=7)
        for down, across in zip(*np.nonzero(np.isfinite(grid)), strict=True):
            text = f"{grid[down, across]:.2f}".lstrip("0")
            ax.text(across, down, text, ha="center", va="center", fontsize=5.5)
        figure.colorbar(shown, ax=ax, shrink=0.5)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=110)


def _column(metric: str, shape: tuple[int | None, bool]) -> str:
    groups, unequal = shape
    return metric if groups is None else f"{metric}, {groups}{' unequal' if unequal else ''} groups"


def _found(
    kept: dict[str, dict[str, Any]], metric: str, groups: int | None, unequal: bool
) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """The cells of one column that have an answer, by law and positives."""
    cells: dict[tuple[str, int], list[dict[str, Any]]] = {
        (law, positives): [] for law in LAWS for positives in POSITIVES
    }
    for name, cell in kept.items():
        part, of_metric = name.split()[:2]
        if part != "intervals" or of_metric != metric or cell["refused"] > 0.5:
            continue
        setting = cell["setting"]
        if (setting["groups"], setting["unequal"]) == (groups, unequal):
            cells[setting["law"], setting["positives"]].append(cell)
    return cells


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, "picture", []])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--samples", type=int)
    parser.add_argument("--metrics", nargs="*", default=list(METRICS))
    parser.add_argument("--minutes", type=float, default=np.inf)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--json", type=Path, default=KEPT)
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args()
    samples = options.samples or (300 if options.quick else 2000)
    kept: dict[str, dict[str, Any]] = {}
    if options.json.exists() and not options.again:
        kept = json.loads(options.json.read_text())
    todo = [
        (part, metric, setting)
        for part in PARTS
        if not options.parts or part in options.parts
        for setting in settings()
        for metric in options.metrics
        if (not options.quick or is_quick(setting))
        and kept.get(cell_name(part, metric, setting), {"draws": 0})["draws"] < samples
    ]
    todo.sort(key=lambda case: case[2].rows * (case[2].groups or 1))  # the quick ones first
    end = time.monotonic() + 60 * options.minutes
    jobs = Parallel(n_jobs=options.jobs, return_as="generator", pre_dispatch="n_jobs")(
        delayed(PARTS[part])(metric, setting, samples)
        for part, metric, setting in todo
        if time.monotonic() < end
    )
    options.json.parent.mkdir(exist_ok=True)
    wrong = 0
    for case, cell in zip(todo, jobs, strict=False):
        name = cell_name(*case)
        kept[name] = cell
        options.json.write_text(json.dumps(kept, indent=0))
        answer = cell.get("rejected", cell.get("covered"))
        wrong += is_wrong(cell)
        mark = "  <-- not as promised" if is_wrong(cell) else ""
        print(f"{name}: {answer:.4f}, refused {cell['refused']:.2f}{mark}", flush=True)
    if kept and (not options.parts or "picture" in options.parts):
        draw_picture(kept)
    print(f"{len(kept)} cells are known, {wrong} of those measured now are not as promised")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
