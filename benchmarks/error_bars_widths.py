"""Are the intervals wider than they need be? Against other methods, on the same samples.

    python benchmarks/error_bars_widths.py                # 1,000 samples of each setting
    python benchmarks/error_bars_widths.py --draws 200 --metrics average_precision

The rivals of smooth metrics take the metric and the standard error of its leave-one-out values:
the normal law, the normal law on the logit scale, and Student's law there with the rows of the
smaller class less one. Those of a precision take the rows above the cut as trials: the intervals of
Wilson, and of Clopper and Pearson. "wider" is the width over that of the narrowest rival that holds
the true value in 93.5% of the samples or more, and empty where none does. "elsewhere" is what that
rival covers in a setting whose samples often look the same, with as many positives and rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from error_bars_fast import Samples, average_precision_samples, is_fast
from scipy import stats
from scipy.special import expit, logit

from toprank.inference import interval
from toprank.metrics.registry import METRICS as KNOWN
from toprank.simulate import ScoreSetting
from toprank.simulate.error_bars import true_value

METRICS: dict[str, dict[str, Any]] = {
    "average_precision": {},
    "pnorm_risk": {"p": 4, "normalize": True},
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
#: Settings with as many positives and rows, whose samples a user cannot always tell from these.
ELSEWHERE = {
    ScoreSetting(10, 0.01, "random"): ScoreSetting(10, 0.01, "normal"),
    ScoreSetting(20, 0.1, "near-perfect"): ScoreSetting(20, 0.1, "t3", 5.0),
    ScoreSetting(200, 0.5, "near-perfect"): ScoreSetting(200, 0.5, "t3", 5.0),
}
LEVEL = 0.95
Ends = tuple[float, float]


def around(value: float, error: float, reach: float) -> Ends:
    """The ends on the scale of the metric."""
    return value - reach * error, value + reach * error


def on_logit(value: float, error: float, reach: float) -> Ends:
    """The ends on the logit scale."""
    inner = float(np.clip(value, 1e-9, 1 - 1e-9))
    low, high = around(float(logit(inner)), error / (inner * (1 - inner)), reach)
    return float(expit(low)), float(expit(high))


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
    return {
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


def narrowest(found: dict[str, tuple[float, float]]) -> str:
    """The narrowest rival that covers; empty where none does."""
    good = {name: width for name, (covered, width) in found.items() if covered >= 0.935}
    return min(good, key=lambda name: good[name]) if good else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--metrics", nargs="*", choices=list(METRICS), default=list(METRICS))
    options = parser.parse_args()
    titles = ("metric", "setting", "covers, width", "others: cover, width", "wider", "elsewhere")
    print(f"| {' | '.join(titles)} |\n{'|---' * len(titles)}|")
    for metric in options.metrics:
        for setting in SETTINGS:
            found = measure(metric, setting, options.draws)
            covered, width = found.pop("toprank")
            best, other = narrowest(found), ELSEWHERE.get(setting)
            wider = f"{width / found[best][1]:.2f}" if best else ""
            elsewhere = ""
            if best and other is not None and metric != "precision_at":
                there = measure(metric, other, options.draws)
                elsewhere = f"{best} {there[best][0]:.3f} of {other.law}, {other.distance:g} apart"
                elsewhere += f"; this {there['toprank'][0]:.3f}"
            shown = "; ".join(f"{name} {c:.3f}, {w:.3f}" for name, (c, w) in found.items())
            name = f"{setting.positives} of {setting.rows:,}, {setting.law}"
            cells = (f"`{metric}`", name, f"{covered:.3f}, {width:.3f}", shown, wider, elsewhere)
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
