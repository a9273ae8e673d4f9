"""Are the intervals wider than they need be? Against other methods, on the same samples.

    python benchmarks/error_bars_widths.py                # 1,000 samples of each setting
    python benchmarks/error_bars_widths.py --draws 200 --metrics average_precision

The rivals of smooth metrics take the metric and the standard error of its leave-one-out values:
the normal law, the normal law on the logit scale, and Student's law there with the rows of the
smaller class less one; of a part of the ROC curve also Newcombe's score interval (2006, method 5)
with the rows that lie in the part. Those of a precision take the rows above the cut as trials: the
intervals of Wilson, and of Clopper and Pearson. "wider" is the width over that of the narrowest
rival that holds the true value in 93.5% of the samples or more, here and in the look-alike where
there is one, and empty where none does. "elsewhere" is what the narrowest rival that covers here
covers there.

A look-alike has rows that are rarely above all others: each positive (of random scores) or
negative (of near-perfect ones) with the chance 1 / m, if there are m of them. In (1 - 1 / m)^m of
its samples, about 37%, there is none, and these are as those of the setting. The same with any
chance e gives the least width: an interval that covers the value v(e) in 93.5% of the samples
holds it, where there are no such rows, in at least 1 - 0.065 / (1 - e)^m of them, and the mean
width is the integral of that chance over all values (Pratt 1961). "of the least" is the width over
this bound, below which no interval falls that covers every look-alike, whatever its method. The
table is on docs/evidence/error_bars_table.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from error_bars_fast import Samples, average_precision_samples, is_fast
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit, logit

from toprank._arrays import BoolArray, FloatArray
from toprank.inference import interval
from toprank.inference.auc_models import pair_share_variance
from toprank.metrics.registry import METRICS as KNOWN
from toprank.simulate import ScoreSetting
from toprank.simulate.error_bars import true_value

METRICS: dict[str, dict[str, Any]] = {
    "average_precision": {},
    "pnorm_risk": {"p": 4, "normalize": True},
    "partial_auc": {"max_fpr": 0.1},
    "precision_at": {"k": 0.05},
}
SETTINGS = (
    ScoreSetting(10, 0.01, "random"),
    ScoreSetting(10, 0.1, "normal"),
    ScoreSetting(20, 0.1, "t3"),
    ScoreSetting(20, 0.1, "near-perfect"),
    ScoreSetting(200, 0.5, "near-perfect"),
    ScoreSetting(40, 0.5, "t3"),
    ScoreSetting(40, 0.1, "ties"),
    ScoreSetting(200, 0.1, "normal"),
)
#: Of partial areas: those that were once more than 1.25 times as wide as another, and three more.
PARTS = (
    *(ScoreSetting(n, 0.5, "near-perfect") for n in (20, 40, 200)),
    *(ScoreSetting(n, 0.1, "random") for n in (20, 40)),
    ScoreSetting(40, 0.1, "normal"),
    ScoreSetting(20, 0.1, "t3"),
    ScoreSetting(40, 0.5, "ties"),
)
NEAR_PERFECT = (ScoreSetting(20, 0.1, "near-perfect"), ScoreSetting(200, 0.5, "near-perfect"))
#: Where samples differ from others by rows that they hardly ever hold: whether by positives.
RARELY_ON_TOP = {
    ("average_precision", ScoreSetting(10, 0.01, "random")): True,
    **{("average_precision", setting): False for setting in NEAR_PERFECT},
    **{("pnorm_risk", setting): False for setting in NEAR_PERFECT},
    **{("partial_auc", setting): False for setting in PARTS if setting.law == "near-perfect"},
}
#: Another share of hits among as few rows at the top.
ELSEWHERE = {
    ("precision_at", ScoreSetting(10, 0.1, "normal")): ScoreSetting(10, 0.1, "normal", 3.0),
}
COVERS = 0.935
LEVEL = 0.95
Ends = tuple[float, float]


@dataclass(frozen=True)
class RowsOnTop(ScoreSetting):
    """A setting in which rows of one class are now and then above all others."""

    chance: float = 0.0
    of_positives: bool = True

    @classmethod
    def like(cls, setting: ScoreSetting, chance: float, of_positives: bool) -> RowsOnTop:
        """The same setting, with such rows."""
        same = {field.name: getattr(setting, field.name) for field in fields(setting)}
        return cls(**same, chance=chance, of_positives=of_positives)

    @property
    def candidates(self) -> int:
        """Rows of the class."""
        return self.positives if self.of_positives else self.rows - self.positives

    def _scores(
        self, positive: BoolArray, common: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        scores = super()._scores(positive, common, rng)
        moved = (positive == self.of_positives) & (rng.random(len(scores)) < self.chance)
        scores[moved] = np.max(scores) + 1 + rng.random(np.count_nonzero(moved))
        return scores


def around(value: float, error: float, reach: float) -> Ends:
    """The ends on the scale of the metric."""
    return value - reach * error, value + reach * error


def on_logit(value: float, error: float, reach: float) -> Ends:
    """The ends on the logit scale."""
    inner = float(np.clip(value, 1e-9, 1 - 1e-9))
    low, high = around(float(logit(inner)), error / (inner * (1 - inner)), reach)
    return float(expit(low)), float(expit(high))


def newcombe_of_part(value: float, setting: ScoreSetting, part: float) -> Ends:
    """Newcombe's interval of the share of pairs in order in the first part of the curve."""
    positives, negatives = setting.positives, part * (setting.rows - setting.positives)
    counts = (positives, negatives, (positives + negatives) / 2)
    # a share of part / 2, that of random scores, is a partial area of 1 / 2 by McClish
    share = float(np.clip((2 * value - 1) * (1 - part / 2) + part / 2, 0.0, 1.0))
    squared = float(stats.norm.isf((1 - LEVEL) / 2)) ** 2

    def end(seen: float) -> float:
        def excess(low: float) -> float:
            variance = squared * pair_share_variance(low, *counts)
            return (seen - low) ** 2 - variance if seen < 1 else 1 - low - variance / (1 - low)

        return float(brentq(excess, 0.0, min(seen, 1 - 1e-12))) if seen > 0 else 0.0

    ends = np.array([end(share), 1 - end(1 - share)])
    low, high = (1 + (ends - part / 2) / (1 - part / 2)) / 2
    return float(low), float(high)


def of_trials(value: float, rows: int, method: str) -> Ends:
    """The interval of a share of so many trials."""
    found = stats.binomtest(round(value * rows), rows).proportion_ci(LEVEL, method)
    return float(found.low), float(found.high)


def rivals(metric: str, setting: ScoreSetting) -> dict[str, Callable[[float, float], Ends]]:
    """Other intervals, each of a value and its standard error."""
    normal = float(stats.norm.isf((1 - LEVEL) / 2))
    if metric == "precision_at":
        rows = max(1, round(METRICS[metric]["k"] * setting.rows))
        return {
            "Wilson": lambda value, _: of_trials(value, rows, "wilson"),
            "Clopper-Pearson": lambda value, _: of_trials(value, rows, "exact"),
        }
    fewest = min(setting.positives, setting.rows - setting.positives)
    student = float(stats.t.isf((1 - LEVEL) / 2, fewest - 1))
    of_part: dict[str, Callable[[float, float], Ends]] = {}
    if metric == "partial_auc":
        part = METRICS[metric]["max_fpr"]
        of_part = {"Newcombe": lambda value, _: newcombe_of_part(value, setting, part)}
    return {
        **of_part,
        "normal": lambda value, error: around(value, error, normal),
        "logit": lambda value, error: on_logit(value, error, normal),
        "logit, Student": lambda value, error: on_logit(value, error, student),
    }


def measure(metric: str, setting: ScoreSetting, draws: int) -> dict[str, tuple[float, float]]:
    """Share of samples whose interval holds the true value, and mean width, by method."""
    rng = np.random.default_rng(21)
    truth = true_value(KNOWN[metric], setting, rng, 2 * draws, **METRICS[metric])
    if is_fast(metric, setting):
        found = average_precision_samples(setting, draws, rng, LEVEL)
    else:
        found = _samples(metric, setting, draws, rng)
    ends = {"toprank": np.array([found.low, found.high])}
    for name, made in rivals(metric, setting).items():
        pairs = zip(found.value, found.error, strict=True)
        ends[name] = np.array([made(float(value), float(error)) for value, error in pairs]).T
    return {
        name: (float(np.mean((low <= truth) & (truth <= high))), float(np.mean(high - low)))
        for name, (low, high) in ends.items()
    }


def _samples(metric: str, setting: ScoreSetting, draws: int, rng: np.random.Generator) -> Samples:
    found = [interval(metric, *setting.draw(rng)[:2], **METRICS[metric]) for _ in range(draws)]
    rows = [(one.estimate, one.standard_error, one.low, one.high, np.nan) for one in found]
    return Samples(*np.array(rows).T)


def least_width(metric: str, setting: ScoreSetting, of_positives: bool) -> float:
    """The least mean width in a setting of intervals that cover with any chance of rows on top."""
    rows = RowsOnTop.like(setting, 0.0, of_positives).candidates
    chances = (1 - (1 - COVERS) ** (1 / rows)) * np.linspace(0, 1, 21) ** 2
    values = [
        true_value(
            KNOWN[metric],
            RowsOnTop.like(setting, float(chance), of_positives),
            np.random.default_rng(5),
            1,
            **METRICS[metric],
        )
        for chance in chances
    ]
    held = 1 - (1 - COVERS) / (1 - chances) ** rows
    return float(np.sum((held[1:] + held[:-1]) / 2 * np.abs(np.diff(values))))


def look_alike(metric: str, setting: ScoreSetting) -> ScoreSetting | None:
    """A setting in which a rival should cover too; None where there is none."""
    if (metric, setting) not in RARELY_ON_TOP:
        return ELSEWHERE.get((metric, setting))
    of_positives = RARELY_ON_TOP[metric, setting]
    candidates = RowsOnTop.like(setting, 0.0, of_positives).candidates
    return RowsOnTop.like(setting, 1 / candidates, of_positives)


def narrowest(*found: dict[str, tuple[float, float]]) -> str:
    """The narrowest rival that covers everywhere; empty where none does."""
    good = [name for name in found[0] if all(one[name][0] >= COVERS for one in found)]
    return min(good, key=lambda name: found[0][name][1], default="")


def line(metric: str, setting: ScoreSetting, draws: int) -> str:
    """A line of the table."""
    found, elsewhere, least = measure(metric, setting, draws), "", ""
    covered, width = found.pop("toprank")
    best, other = narrowest(found), look_alike(metric, setting)
    if other is not None:
        there = measure(metric, other, draws)
        mine = there.pop("toprank")[0]
        names = [best] if best else list(there)
        elsewhere = "; ".join(f"{name} {there[name][0]:.3f}" for name in names)
        elsewhere += f"; this {mine:.3f}"
        best = narrowest(found, there)
    if isinstance(other, RowsOnTop):
        least = f"{width / least_width(metric, setting, other.of_positives):.2f}"
    wider = f"{width / found[best][1]:.2f}" if best else ""
    shown = "; ".join(f"{name} {c:.3f}, {w:.3f}" for name, (c, w) in found.items())
    name = f"{setting.positives} of {setting.rows:,}, {setting.law}"
    cells = (f"`{metric}`", name, f"{covered:.3f}, {width:.3f}", shown, wider, elsewhere, least)
    return f"| {' | '.join(cells)} |"


TITLES = (
    "metric",
    "setting",
    "covers, width",
    "others: cover, width",
    "wider",
    "elsewhere",
    "of the least",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--metrics", nargs="*", choices=list(METRICS), default=list(METRICS))
    options = parser.parse_args()
    print(f"| {' | '.join(TITLES)} |\n{'|---' * len(TITLES)}|")
    for metric in options.metrics:
        for setting in PARTS if metric == "partial_auc" else SETTINGS:
            print(line(metric, setting, options.draws), flush=True)


if __name__ == "__main__":
    main()
