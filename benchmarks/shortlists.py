"""Do shortlists hold what they say, and what do they lose against an oracle? And how fast?

    python benchmarks/shortlists.py             # six settings, 2,000 draws each, and the speed
    python benchmarks/shortlists.py --draws 200 # does it run?
    python benchmarks/shortlists.py speed       # or: guarantees, places

Each draw makes calibration rows and new rows and calls `toprank.select` once per wish. "error" is
the false discovery rate, or how often the list did not hold what was asked for; it must not exceed
0.1 (fdr), 0.05 (precision, recall) and 0.1 (positives). "kept" is what is left of the list of an
oracle who sees the labels of the new rows: positives chosen over those of the longest list of that
precision; for recall and numbers of positives the rows of the shortest such list over ours.
Refusals, and lists that are empty, err in nothing and keep nothing.

"places" asks how often the sets of ranks of `toprank.select.membership` hold the rank that a fit to
400,000 rows gives a row: at least 0.9 of them should.

The exit status is 1 if an error exceeds its target by more than three standard errors, or if
choosing from 10^6 rows with 10^5 labelled ones takes longer than 3 sorts of them.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from timing import report, say, side_by_side

from toprank import PNormPush
from toprank.select import TooFewLabels, membership, select

WISHES: dict[str, tuple[dict[str, Any], float]] = {
    "fdr": ({"fdr": 0.1}, 0.1),
    "precision": ({"precision_at_least": 0.8}, 0.05),
    "recall": ({"recall_at_least": 0.8}, 0.05),
    "positives": ({"positives_at_least": 10, "confidence": 0.9}, 0.1),
}


@dataclass(frozen=True)
class Setting:
    """Rows of two normal classes, their scores rounded or not; or rows under a shift."""

    name: str
    n: int
    m: int
    share: float
    gap: float
    digits: int | None = None
    shifted: bool = False

    def draw(self, rng: np.random.Generator) -> tuple[Any, ...]:
        """Labels and scores of the calibration rows and of the new rows, and likelihood ratios."""
        if self.shifted:
            return self.draw_shifted(rng)
        y = rng.random(self.n + self.m) < self.share
        s = rng.normal(size=len(y)) + self.gap * y
        if self.digits is not None:
            s = np.round(s, self.digits)
        return y[: self.n], s[: self.n], y[self.n :], s[self.n :], None

    def draw_shifted(self, rng: np.random.Generator) -> tuple[Any, ...]:
        """The score reads a column that says nothing of the label, and is higher in new rows."""
        size = self.n + self.m
        noise, signal = rng.normal(size=(2, size))
        noise[self.n :] += 1.0
        y = rng.random(size) < 1 / (1 + np.exp(5 - 5 * signal))
        s, ratio = signal + 0.5 * noise, np.exp(noise - 0.5)
        parts = slice(None, self.n), slice(self.n, None)
        (y_known, y_new), (s_known, s_new) = ([one[p] for p in parts] for one in (y, s))
        return y_known, s_known, y_new, s_new, tuple(ratio[p] for p in parts)


SETTINGS = (
    Setting("200 labelled, 30% positives", 200, 1_000, 0.3, 3.0),
    Setting("1,000 labelled, 10% positives", 1_000, 1_000, 0.1, 3.0),
    Setting("5,000 labelled, 2% positives", 5_000, 2_000, 0.02, 3.5),
    Setting("20,000 labelled, 0.5% positives", 20_000, 5_000, 0.005, 4.0),
    Setting("2,000 labelled, 10% positives, eight distinct scores", 2_000, 1_000, 0.1, 3.0, 0),
    Setting("2,000 labelled, known shift of the new rows", 2_000, 1_000, 0.2, 0.0, None, True),
)


def oracle(y: np.ndarray, s: np.ndarray, wish: str, value: float) -> float:
    """Positives of the longest list, or rows of the shortest, that holds what is wanted."""
    order = np.argsort(-s, kind="stable")
    found = np.cumsum(y[order])
    ends = np.append(s[order][1:] != s[order][:-1], True)
    lengths = np.arange(1, len(y) + 1)
    if wish in ("fdr", "precision"):
        good = found >= (value if wish == "precision" else 1 - value) * lengths - 1e-9
        return float(np.max(found, where=good & ends, initial=0))
    wanted = value * found[-1] if wish == "recall" else value
    good = np.flatnonzero((found >= wanted - 1e-9) & ends)
    return float(lengths[good[0]]) if len(good) else np.nan


@dataclass
class Row:
    """One line of the table: a wish in a setting, and what came of it in each draw."""

    wish: str
    label: str
    options: dict[str, Any] = field(default_factory=dict)
    with_ratio: bool = True
    errors: list[float] = field(default_factory=list)
    sizes: list[tuple[float, float]] = field(default_factory=list)
    without_list: int = 0

    def add(self, drawn: tuple[Any, ...], draw: int) -> None:
        """Choose from the new rows of a draw."""
        y, s, y_new, s_new, ratios = drawn
        given, _ = WISHES[self.wish]
        value = next(iter(given.values()))
        options = {"calibration": (y, s), "random_state": draw, **given, **self.options}
        if ratios is not None and self.with_ratio:
            options["likelihood_ratio"] = ratios
        try:
            chosen = select(s_new, **options).rows
        except TooFewLabels:
            chosen = None
        if chosen is None or not len(chosen):
            self.without_list += 1
        if chosen is None:
            self.errors.append(0.0)
            return
        hits = y_new[chosen]
        self.errors.append(error_of(hits, y_new, self.wish, value))
        size = float(hits.sum() if self.wish in ("fdr", "precision") else len(chosen))
        self.sizes.append((size, oracle(y_new, s_new, self.wish, value)))

    @property
    def standard_error(self) -> float:
        """Of the mean error."""
        return float(np.std(self.errors) / np.sqrt(len(self.errors)))

    @property
    def held(self) -> bool:
        """Whether the error is within its target, up to three standard errors."""
        return bool(np.mean(self.errors) <= WISHES[self.wish][1] + 3 * self.standard_error)

    def line(self, setting: str) -> str:
        """The row of the table."""
        sizes = np.array([pair for pair in self.sizes if np.isfinite(pair[1])]).reshape(-1, 2)
        ours, best = np.sum(sizes, axis=0)
        kept = ours / best if self.wish in ("fdr", "precision") else best / ours
        return (
            f"| {setting} | {self.label} | {np.mean(self.errors):.4f} ± {self.standard_error:.4f} "
            f"| {WISHES[self.wish][1]} | {kept:.2f} | {self.without_list / len(self.errors):.3f} |"
        )


def error_of(hits: np.ndarray, y_new: np.ndarray, wish: str, value: float) -> float:
    """The share of negatives in a list, or whether it did not hold what was asked for."""
    if wish == "fdr":
        return float(np.mean(~hits)) if len(hits) else 0.0
    if wish == "precision":
        return float(len(hits) > 0 and np.mean(hits) < value - 1e-9)
    wanted = value * y_new.sum() if wish == "recall" else value
    return float(hits.sum() < wanted - 1e-9)


def rows_of(setting: Setting) -> list[Row]:
    """What is tried in a setting."""
    if setting.shifted:
        naive = "fdr, without the ratio (no guarantee)"
        return [Row("fdr", "fdr, with the ratio"), Row("fdr", naive, with_ratio=False)]
    rows = [Row(wish, " ".join(f"{k}={v}" for k, v in WISHES[wish][0].items())) for wish in WISHES]
    if setting.digits is not None:
        rows.insert(1, Row("fdr", "fdr=0.1, random ties", {"ties": "random"}))
    return rows


def guarantees(draws: int, only: int | None) -> bool:
    """Print the table; whether every guarantee held."""
    print("| setting | wish | error | at most | kept | no list |\n|---|---|---|---|---|---|")
    held = True
    for place, setting in enumerate(SETTINGS):
        if only not in (None, place + 1):
            continue
        say(setting.name)
        rows = rows_of(setting)
        for draw in range(draws):
            drawn = setting.draw(np.random.default_rng((place, draw)))
            for row in rows:
                row.add(drawn, draw)
        for row in rows:
            print(row.line(setting.name), flush=True)
            held &= row.held or not row.with_ratio
    return held


def training_rows(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows of five columns, one positive in eight, and a label that is not quite linear in them."""
    X = rng.normal(size=(n, 5))
    score = X @ [1.0, 0.7, 0.5, 0.0, 0.0] + 0.3 * X[:, 0] * X[:, 3]
    return X, score + rng.logistic(size=n) > 2.6


def places(draws: int) -> bool:
    """Print how often sets of ranks hold the truth; whether at least nine in ten do."""
    print("| p | training rows | method | sets that hold the rank | mean width of 20 sets |")
    print("|---|---|---|---|---|")
    held = True
    whole = training_rows(400_000, np.random.default_rng(1))
    new = training_rows(200, np.random.default_rng(2))[0]
    for p in (1, 4):
        truth = np.argsort(np.argsort(-(new @ PNormPush(p=p).fit(*whole).coef_[0]))) + 1
        for n in (1_500, 6_000, 24_000):  # below, each refit is a fit
            say(f"p = {p}, {n} training rows")
            covered, widths, methods = [], [], set()
            for draw in range(draws):
                rows = training_rows(n, np.random.default_rng((3, n, draw)))
                found = membership(PNormPush(p=p), *rows, new, 20, level=0.9)
                ranks = truth[found.rows]
                covered.append(np.mean((found.low <= ranks) & (ranks <= found.high)))
                widths.append(np.mean(found.high - found.low + 1))
                methods.add(found.method)
            error = float(np.std(covered) / np.sqrt(draws))
            share = f"{np.mean(covered):.3f} ± {error:.3f}"
            print(f"| {p} | {n:,} | {' and '.join(methods)} | {share} | {np.mean(widths):.0f} |")
            held &= bool(np.mean(covered) >= 0.9 - 3 * error)
    return held


def speed() -> bool:
    """Print what choosing costs, in sorts of all scores; whether it is at most 3 of them."""
    rng = np.random.default_rng(0)
    y = rng.random(1_100_000) < 0.05
    s = rng.normal(size=len(y)) + 3 * y
    new, known = s[100_000:], (y[:100_000], s[:100_000])
    within = True
    for wish, (given, _) in WISHES.items():
        ours, sort = side_by_side(
            lambda given=given: select(new, calibration=known, **given), lambda: np.sort(s)
        )
        found = report(3.0 if wish == "fdr" else None, ours, sort, wish=wish)
        print(found)
        within &= found["within"] is not False
    ratio = np.exp(0.1 * s)
    shift = (ratio[:100_000], ratio[100_000:])
    ours, sort = side_by_side(
        lambda: select(new, calibration=known, fdr=0.1, likelihood_ratio=shift), lambda: np.sort(s)
    )
    found = report(3.0, ours, sort, wish="fdr under shift")
    print(found)
    return within and found["within"] is not False


def main() -> int:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=("guarantees", "places", "speed"))
    parser.add_argument("--draws", type=int, default=2_000)
    parser.add_argument("--setting", type=int, choices=range(1, 7), help="one of the six")
    given = parser.parse_args()
    parts = {
        "guarantees": lambda: guarantees(given.draws, given.setting),
        "places": lambda: places(max(20, given.draws // 10)),
        "speed": speed,
    }
    wanted = parts if given.part is None else [given.part]
    return int(not all([parts[name]() for name in wanted]))


if __name__ == "__main__":
    sys.exit(main())
