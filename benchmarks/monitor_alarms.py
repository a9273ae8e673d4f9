"""How often `toprank monitor` raises an alarm: where nothing has changed, and where it has.

    python benchmarks/monitor_alarms.py                # 500 tables per setting, about half an hour
    python benchmarks/monitor_alarms.py 5 10           # 5 fits and 10 tables of each
    python benchmarks/monitor_alarms.py retrain 20 10  # RETRAIN: 20 fits and 10 tables of each size

Every setting is fitted several times, and each model watches several new tables: unchanged ones
with the usual limits and with none (drift above 0, volume by more than a factor of 1), and tables
in which one column has moved by one standard deviation.

"retrain" brings labels along. "false" is the share of unchanged tables for which `RETRAIN` is said,
"covers" how often the precision that labels show is in the interval that was expected of it, and
"fewer" the share of tables for which RETRAIN is said where two in five positives have become
negatives.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from toprank.models import TableModel, fit_table
from toprank.models.monitor import Limits, monitor_model

USUAL, NONE = Limits(0.25, 2.0, None), Limits(0.0, 1.0, None)


def numbers(rng: np.random.Generator, n: int, d: int = 4, cut: float = 1.5) -> Any:
    """A table of normal columns, the first of which tells."""
    made = pd.DataFrame(rng.normal(size=(n, d)), columns=[f"x{j}" for j in range(d)])
    return made.assign(y=made.x0 + 1.5 * rng.normal(size=n) > cut)


def words(rng: np.random.Generator, n: int) -> Any:
    """200 categories, most of them seen once or twice or never."""
    made = numbers(rng, n)
    level = rng.integers(0, 200, n)
    made.insert(0, "city", [f"c{j}" for j in level])
    return made.assign(y=made.x0 + np.sin(7.3 * level) + rng.normal(size=n) > 1.5)


def mixed(rng: np.random.Generator, n: int) -> Any:
    """Numbers with gaps, counts, categories and flags."""
    made = numbers(rng, n)
    made["few"] = rng.poisson(1.0, n)
    made["town"] = rng.choice(["Rome", "Oslo", "Bern", "Lima"], n, p=[0.6, 0.3, 0.09, 0.01])
    made["flag"] = rng.random(n) < 0.02
    return made.assign(x1=made.x1.where(rng.random(n) < 0.8))


def few(rng: np.random.Generator, n: int) -> Any:
    """Ratings and a flag: the scores take ten values."""
    made = pd.DataFrame({"x0": rng.integers(1, 6, n), "flag": rng.random(n) < 0.3})
    return made.assign(y=0.5 * made.x0 + made.flag + rng.normal(size=n) > 3)


@dataclass(frozen=True)
class Setting:
    """A kind of ranker, the rows that it is fitted to and the rows of a new table."""

    model: str
    rows: int
    new_rows: int
    draw: Callable[..., Any] = numbers
    top: float = 0.1

    @property
    def name(self) -> str:
        return f"{self.model}, {self.rows} rows of {self.draw.__name__}, {self.new_rows} new"

    def fit(self, rng: np.random.Generator) -> TableModel:
        push = {} if self.model in ("ir", "proper", "smooth-margin") else {"p": 4}
        return fit_table(self.draw(rng, self.rows), "y", model=self.model, **push)


def wide(rng: np.random.Generator, n: int) -> Any:
    """Forty columns, one of which tells."""
    return numbers(rng, n, 40)


def rare(rng: np.random.Generator, n: int) -> Any:
    """One row in twenty is positive."""
    return numbers(rng, n, 4, 3.0)


SETTINGS = (
    Setting("trees", 500, 500),
    Setting("trees", 1_000, 5_000),
    Setting("trees", 600, 600, mixed),
    Setting("pnorm", 300, 300),
    Setting("pnorm", 300, 3_000, words),
    Setting("pnorm", 300, 1_000, wide),
    Setting("pnorm", 400, 2_000, rare, top=0.02),
    Setting("proper", 400, 100, mixed),
    Setting("rankboost", 300, 1_000),
    Setting("smooth-margin", 300, 300),
    Setting("pnorm", 600, 5_000, few),
    Setting("pnorm", 12_000, 2_000, few),
    Setting("rankboost", 11_000, 3_000),
)


def alarm_rates(
    setting: Setting, fits: int, tables: int, seed: int = 0, moved_every: int = 1
) -> dict[str, float]:
    """Shares of tables with an alarm: unchanged at the usual limits, at none, and moved.

    A rate that is near 0 needs many tables, one that is near 1 few: of those that move, every
    ``moved_every``-th is looked at.
    """
    rng = np.random.default_rng(seed)
    found: dict[str, list[bool]] = {"usual": [], "none": [], "moved": []}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # categories never seen before
        for _ in range(fits):
            model = setting.fit(rng)
            for table in range(tables):
                rows = setting.draw(rng, setting.new_rows).drop(columns="y")
                usual, none = _alarmed(model, rows, setting.top, USUAL, NONE)
                found["usual"].append(usual)
                found["none"].append(none)
                if table % moved_every == 0:
                    moved = rows.assign(x0=rows.x0 + 1)
                    found["moved"] += _alarmed(model, moved, setting.top, USUAL)
    return {name: float(np.mean(values)) for name, values in found.items()}


def _alarmed(model: TableModel, rows: Any, top: float, *limits: Limits) -> list[bool]:
    """Whether a table raises an alarm, at each of several limits."""
    parts = [(rows, model.score(rows))]  # scored once
    return [bool(monitor_model(model, parts, lambda: None, one, top=top).alarms) for one in limits]


#: Training rows, new rows, and from where on a row of `numbers` is positive.
SIZES = ((300, 300, 1.5), (1_000, 1_000, 1.5), (1_000, 5_000, 1.5), (1_000, 1_000, 3.0))
_TURNED = 0.4  # positives that become negatives


def retrain_rates(
    rows: int, new_rows: int, cut: float, fits: int, tables: int, seed: int = 0
) -> dict[str, float]:
    """Share of unchanged tables with RETRAIN, of intervals that cover, of worse tables with it."""
    rng = np.random.default_rng((seed, rows, new_rows))
    found: dict[str, list[bool]] = {"false": [], "covers": [], "fewer": []}
    for _ in range(fits):
        model = fit_table(numbers(rng, rows, 4, cut), "y", model="pnorm", p=4, alpha=1e-3)
        for _ in range(tables):
            table = numbers(rng, new_rows, 4, cut)
            same = _watch(model, table)
            found["false"].append(bool(same.retrain))
            if same.off_by is not None:
                found["covers"].append(same.off_by.low <= same.off_by.found <= same.off_by.high)
            turned = table.assign(y=table.y & (rng.random(new_rows) >= _TURNED))
            found["fewer"].append(bool(_watch(model, turned).retrain))
    return {name: float(np.mean(values)) for name, values in found.items()}


def _watch(model: TableModel, table: Any) -> Any:
    rows = table.drop(columns="y")
    return monitor_model(model, [(rows, model.score(rows))], lambda: table, USUAL)


def show_retrain(fits: int, tables: int) -> None:
    """Print how often RETRAIN is said, by the size of the tables."""
    print("| training rows, new rows, positives | false | covers | fewer |\n|---|---|---|---|")
    for rows, new_rows, cut in SIZES:
        share = float(np.mean(numbers(np.random.default_rng(0), 100_000, 4, cut).y))
        rates = retrain_rates(rows, new_rows, cut, fits, tables)
        shown = " | ".join(f"{rate:.3f}" for rate in rates.values())
        print(f"| {rows:,}, {new_rows:,}, {share:.0%} | {shown} |", flush=True)


def main() -> None:
    words = sys.argv[1:]
    if words[:1] == ["retrain"]:
        fits, tables = (int(word) for word in (words[1:] or ["25", "20"]))
        show_retrain(fits, tables)
        return
    fits, tables = (int(word) for word in (words or ["25", "20"]))
    print("| setting | usual limits | no limits | a column moved by 1 |\n|---|---|---|---|")
    for setting in SETTINGS:
        rates = alarm_rates(setting, fits, tables)
        print(f"| {setting.name} |", " | ".join(f"{rate:.3f}" for rate in rates.values()), "|")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
