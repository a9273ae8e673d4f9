"""Do the intervals cover, and are the p-values what they say? Simulation, cell by cell.

    python benchmarks/error_bars.py                 # go on with the design, what tells most first
    python benchmarks/error_bars.py --every         # go on with every cell of the table
    python benchmarks/error_bars.py intervals       # or: nulls
    python benchmarks/error_bars.py --minutes 60    # stop then; the next call goes on
    python benchmarks/error_bars.py --metrics auc average_precision
    python benchmarks/error_bars.py --quick         # some cells, few samples: does it run?
    python benchmarks/error_bars.py page            # write the page and its picture again
    python benchmarks/error_bars.py nearest         # of wide cells, how near any interval could be

The table has 8,050 cells. The design is the part of them that is run: its corners, and a tenth of
the rest in which every level of one factor meets every level of each other; see `is_in_design`.

Every cell is kept in benchmarks/error_bars.csv as soon as it is known, so that a run that was cut
short goes on where it stopped. A cell is measured with 500 samples first. Then again with 2,000
others (1,000 where an interval takes long), first where less than 94.5% or more than 97% of the
intervals hold the true value. Rejections of equal rankers: 1,000 samples, and 5,000 where more than
5% are rejected. The samples come from `toprank.simulate`: see `ScoreSetting` for the laws, and for
what is the true value.

Null hypothesis of `compare`: two rankers whose scores are exchangeable given the label, each the
sum of a common part and one of its own; with groups, also one of its own per group.

With --strict the exit status is 1 if a cell that was measured covers less than 93%, or rejects more
than 6% at the 5% level, by more than two standard errors, and no note says so.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from error_bars_fast import average_precision_samples, is_fast
from error_bars_page import write_page
from error_bars_record import KEPT, WIDE, Cell, Record, is_wrong
from joblib import Parallel, delayed

from toprank.inference import compare
from toprank.metrics.metric import ENDLESS
from toprank.metrics.registry import METRICS as KNOWN
from toprank.simulate import ScoreSetting, coverage
from toprank.simulate.error_bars import nearest_coverage

METRICS: dict[str, dict[str, Any]] = {
    "auc": {},
    "partial_auc": {"max_fpr": 0.1},
    "average_precision": {},
    "pnorm_risk": {"p": 4, "normalize": True},
    "tpr_at_fpr": {"fpr": 0.1},
    "precision_at": {"k": 0.05},
    "recall_at": {"k": 0.1},
}
#: Discrete metrics: their intervals cover more than they say, and over groups come from a bootstrap
#: that takes fifty times as long.
AT_CUT = ("tpr_at_fpr", "precision_at", "recall_at")
POSITIVES = (5, 10, 20, 40, 200)
PREVALENCES = (0.002, 0.01, 0.1, 0.5)
LAWS = ("normal", "t3", "ties", "near-perfect", "random")
#: Groups, whether they are unequal, and whether rows are weighted: the most telling first.
SHAPES: tuple[tuple[int | None, bool, bool], ...] = (
    (None, False, False),
    (15, True, False),
    (40, True, False),
    (None, False, True),
    (15, False, False),
    (40, False, False),
    (200, True, False),
    (200, False, False),
    (15, True, True),
    (40, True, True),
    (200, True, True),
    (15, False, True),
    (40, False, True),
    (200, False, True),
)
#: Rows of a sample from which a cell waits for shorter ones, and beyond which it is left out: 200
#: positives at 0.2% are 100,000 rows.
FEW_ROWS, MANY_ROWS, MOST_ROWS = 500, 5_000, 30_000
#: Samples of the first look, of the second, and between which answers the first is enough.
LOOKS = {"intervals": (500, 2000, (0.945, 0.97)), "nulls": (1000, 5000, (0.0, 0.05))}


class Case(NamedTuple):
    """A cell to measure."""

    part: str
    metric: str
    setting: ScoreSetting


def settings() -> Iterator[ScoreSetting]:
    """Every setting of the table."""
    for (groups, unequal, weighted), positives, prevalence, law in product(
        SHAPES, POSITIVES, PREVALENCES, LAWS
    ):
        setting = ScoreSetting(
            positives, prevalence, law, groups=groups, unequal=unequal, weighted=weighted
        )
        if setting.rows <= MOST_ROWS and (groups or 0) <= setting.rows:
            yield setting


def is_in_design(setting: ScoreSetting) -> bool:
    """Whether a setting is one of those that are run.

    Corners: the fewest and the most positives, at their smallest and largest share, for every law,
    with independent rows and with 15 unequal groups. Of all others a tenth: the numbers of the
    levels of positives, share and rows decide the law, and have an even sum.
    """
    shape = SHAPES.index((setting.groups, setting.unequal, setting.weighted))
    positives, share = POSITIVES.index(setting.positives), PREVALENCES.index(setting.prevalence)
    rarest = next(v for v in PREVALENCES if setting.positives / v <= MOST_ROWS)
    at_end = positives in (0, len(POSITIVES) - 1)
    if shape < 2 and at_end and setting.prevalence in (rarest, PREVALENCES[-1]):
        return True
    law = LAWS.index(setting.law)
    return (positives + share + shape) % 2 == 0 and law == (positives + 2 * share + shape) % 5


def samples_at_last(case: Case) -> int:
    """With how many samples a cell is measured in the end."""
    last = LOOKS[case.part][1]
    if case.part == "nulls":
        return last
    setting = case.setting
    is_slow = setting.rows > MANY_ROWS or (setting.groups or 0) > 15
    return last // 2 if is_slow or (setting.groups and case.metric in AT_CUT) else last


def stage(case: Case) -> tuple[int, bool, int]:
    """How long a cell waits: for shorter lists, smooth metrics, shapes that tell more."""
    setting = case.setting
    shape = SHAPES.index((setting.groups, setting.unequal, setting.weighted))
    size = int(setting.rows > FEW_ROWS) + int(setting.rows > MANY_ROWS)
    return size, case.metric in AT_CUT, shape


def cases(parts: list[str], metrics: list[str], quick: bool, every: bool = True) -> list[Case]:
    """The cells that were asked for, in the order in which they are measured."""
    asked = [
        Case(part, metric, setting)
        for part in parts
        for setting in settings()
        for metric in metrics
        if (is_quick(setting) if quick else every or is_in_design(setting))
    ]
    return sorted(asked, key=lambda case: (case.part, stage(case), case.setting.rows))


def is_quick(setting: ScoreSetting) -> bool:
    """Whether a cell is one of those that --quick measures."""
    return (
        setting.positives in (10, 40)
        and setting.prevalence == 0.1
        and setting.groups in (None, 15)
        and setting.unequal == (setting.groups is not None)
        and not setting.weighted
    )


def todo(asked: list[Case], record: Record, quick: bool) -> Iterator[tuple[Case, int]]:
    """What to measure next, with how many samples; the record is read when the turn comes."""
    stages: dict[tuple[Any, ...], list[Case]] = {}
    for case in asked:
        stages.setdefault((case.part, *stage(case)), []).append(case)
    for second_look in ("none", "low", "high", "rest"):
        for (part, *_), members in stages.items():
            first, _, (least, most) = LOOKS[part]
            if quick:
                first = 60
            if second_look == "none":
                yield from ((case, first) for case in members if case not in record)
            if quick:
                continue
            for case in members:
                cell = record.get(case)
                second = samples_at_last(case)
                if cell is None or cell.draws >= second or not np.isfinite(cell.answer):
                    continue
                # too narrow: at the end of its stage; too wide: when all others are known
                low = cell.answer < least if part == "intervals" else cell.answer > most
                high = part == "intervals" and cell.answer > most
                rest = second_look == "rest" and part == "intervals"
                wanted = high if second_look == "high" else rest or low
                if wanted:
                    yield case, second


_TRUTHS: dict[tuple[Any, ...], float] = {}


def endless_value(metric: str, setting: ScoreSetting) -> float | None:
    """The metric of an endless list; None where it is not what the interval is for."""
    if KNOWN[metric].estimand != ENDLESS:
        return None
    share = setting.positives / setting.rows
    key = (metric, setting.law, setting.distance, share)
    if key not in _TRUTHS:
        y, s, weight = setting.draw_endless(np.random.default_rng(11))
        _TRUTHS[key] = float(KNOWN[metric].function(y, s, sample_weight=weight, **METRICS[metric]))
    return _TRUTHS[key]


def measure_coverage(metric: str, setting: ScoreSetting, samples: int) -> Cell:
    """One cell: coverage and width of an interval."""
    if is_fast(metric, setting):
        return measure_fast(setting, samples)
    found = coverage(
        metric,
        setting,
        draws=samples,
        n_resamples=200,
        random_state=samples,  # a second look is not at the samples of the first
        truth=endless_value(metric, setting),
        **METRICS[metric],
    )
    return Cell(
        found.covered, samples, found.refused, found.noted, found.width, found.above,
        found.below, found.true_value, found.nearest, found.nearest_by_halves,
    )  # fmt: skip


def measure_fast(setting: ScoreSetting, samples: int) -> Cell:
    """The same of the average precision of independent rows, many samples at once."""
    truth = endless_value("average_precision", setting)
    assert truth is not None
    found = average_precision_samples(setting, samples, np.random.default_rng(samples))
    above, below = float(np.mean(found.low > truth)), float(np.mean(found.high < truth))
    noted, width = float(np.mean(found.noted)), float(np.mean(found.high - found.low))
    nearest = nearest_coverage(found.value)
    return Cell(1 - above - below, samples, 0.0, noted, width, above, below, truth, *nearest)


def measure_nearest(case: Case, cell: Cell) -> Cell:
    """A cell with the nearest coverage that its estimates leave, which earlier ones were without.

    The samples are those of the cell, without their intervals; where the true value is a mean over
    lists they are others of the same law.
    """
    rng, samples = np.random.default_rng(int(cell.draws)), int(cell.draws)
    values = []
    for _ in range(samples):
        y, s, how = case.setting.draw(rng)
        weight = how.get("sample_weight")
        value = KNOWN[case.metric].function(y, s, sample_weight=weight, **METRICS[case.metric])
        values.append(float(value))
    nearest, by_halves = nearest_coverage(np.array(values))
    return cell._replace(nearest=nearest, nearest_by_halves=by_halves)


def add_nearest(record: Record, asked: list[Case], end: float) -> None:
    """Measure the nearest coverage of the wide cells that are known without."""
    for case in asked:
        cell = record.get(case)
        if cell is not None and cell.answer > WIDE and np.isnan(cell.nearest):
            if time.monotonic() > end:
                return
            record.add(case, measure_nearest(case, cell))


def measure_level(metric: str, setting: ScoreSetting, samples: int) -> Cell:
    """One cell: how often equally good rankers are told apart at the 5% level."""
    rng = np.random.default_rng(samples)
    chances, noted = [], 0
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
        noted += bool(found.note)
    answered = len(chances)
    rejected = float(np.mean(np.array(chances) <= 0.05)) if answered else np.nan
    return Cell(rejected, samples, 1 - answered / samples, noted / max(1, answered))


PARTS = {"intervals": measure_coverage, "nulls": measure_level}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, "page", "nearest", []])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--every", action="store_true")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--metrics", nargs="*", choices=list(METRICS), default=list(METRICS))
    parser.add_argument("--minutes", type=float, default=np.inf)
    parser.add_argument("--record", type=Path, default=KEPT)
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args()
    record = Record(options.record)
    parts = [part for part in PARTS if not options.parts or part in options.parts]
    asked = cases(parts, options.metrics, options.quick, options.every)
    end = time.monotonic() + 60 * options.minutes
    started: list[tuple[Case, int]] = []

    def jobs() -> Iterator[Any]:
        for case, samples in todo(asked, record, options.quick):
            if time.monotonic() > end:
                return
            started.append((case, samples))
            yield delayed(PARTS[case.part])(case.metric, case.setting, samples)

    wrong = 0
    measure = Parallel(n_jobs=options.jobs, return_as="generator", pre_dispatch="n_jobs")
    for number, cell in enumerate(measure(jobs())):
        case = started[number][0]
        record.add(case, cell)
        wrong += is_wrong(case.part, cell)
        mark = "  <-- not as promised" if is_wrong(case.part, cell) else ""
        words = f"{cell.answer:.4f}, refused {cell.refused:.2f}, {cell.draws} samples{mark}"
        print(f"{case.part} {case.metric} {case.setting}: {words}", flush=True)
    if "nearest" in options.parts:
        add_nearest(record, cases(["intervals"], options.metrics, quick=False), end)
    record.tidy()
    if options.record == KEPT and (not options.parts or "page" in options.parts):
        write_page(record, cases(list(PARTS), list(METRICS), quick=False), is_in_design)
    print(f"{len(record)} cells are known; {wrong} of those measured now are not as promised")
    return int(options.strict and wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
