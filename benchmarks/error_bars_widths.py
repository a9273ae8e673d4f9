"""Are the intervals wider than they need be? Against other methods, on the same samples.

    python benchmarks/error_bars_widths.py                # 1,000 samples of each setting
    python benchmarks/error_bars_widths.py --draws 200

The rivals of smooth metrics take the metric and the standard error of its leave-one-out values:
the normal law, the normal law on the logit scale, and Student's law there with the rows of the
smaller class less one. Those of a precision take the rows above the cut as trials: the intervals of
Wilson, and of Clopper and Pearson. "wider" is the width over that of the narrowest rival that holds
the true value in 93.5% of the samples or more, and empty where none does.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
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
    ScoreSetting(40, 0.5, "t3"),
    ScoreSetting(40, 0.1, "ties"),
    ScoreSetting(200, 0.1, "normal"),
)
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
    others = rivals(metric, setting)
    ends: dict[str, list[Ends]] = {name: [] for name in ("toprank", *others)}
    for _ in range(draws):
        y, s, _ = setting.draw(rng)
        found = interval(metric, y, s, **METRICS[metric])
        ends["toprank"].append((found.low, found.high))
        for name, made in others.items():
            ends[name].append(made(found.estimate, found.standard_error))
    return {
        name: (float(np.mean((low <= truth) & (truth <= high))), float(np.mean(high - low)))
        for name, (low, high) in ((name, np.array(pairs).T) for name, pairs in ends.items())
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000)
    options = parser.parse_args()
    print(
        "| metric | setting | covers, width | others: cover, width | wider |\n|---|---|---|---|---|"
    )
    for metric in METRICS:
        for setting in SETTINGS:
            found = measure(metric, setting, options.draws)
            covered, width = found.pop("toprank")
            good = [w for c, w in found.values() if c >= 0.935]
            wider = f"{width / min(good):.2f}" if good else ""
            shown = "; ".join(f"{name} {c:.3f}, {w:.3f}" for name, (c, w) in found.items())
            name = f"{setting.positives} of {setting.rows:,}, {setting.law}"
            print(
                f"| `{metric}` | {name} | {covered:.3f}, {width:.3f} | {shown} | {wider} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
