"""Positives among unlabelled rows: is the share found, are metrics corrected, do intervals cover?

    python benchmarks/unlabelled.py              # 200 tables per setting, some minutes
    python benchmarks/unlabelled.py --tables 20  # does it run?

Scores of positives are normal, `gap` deviations above those of negatives, and labelled positives
are a random part of all. "given" takes the true share of hidden positives, "estimated" that of
`toprank.inference.hidden_share` on the same rows. The exit status is 1 if intervals cover less
often than nine times in ten.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank.inference import hidden_share, unlabelled_interval
from toprank.metrics import METRICS
from toprank.metrics.metric import Hidden

METRICS_MEASURED: dict[str, dict[str, Any]] = {
    "auc": {},
    "precision_at": {"k": 0.05},
    "pnorm_risk": {"p": 4},
    "push_risk": {"price": "power", "p": 2, "loss": "logistic"},
}
#: Resamples of the risks, and every how many tables they are measured.
_RESAMPLES, _EVERY = 200, 4
#: Rows from which the bootstrap of the risks takes too long here.
_LONG = 20_000


@dataclass(frozen=True)
class Setting:
    """Rows, share of positives, share of these that have a label, and how far apart scores are."""

    n: int
    share: float
    labels: float
    gap: float

    def draw(self, rng: np.random.Generator, n: int | None = None) -> tuple[Any, Any, Any]:
        """True labels, scores, and which rows have a label."""
        size = self.n if n is None else n
        y = rng.random(size) < self.share
        s = rng.normal(size=size) + self.gap * y
        return y, s, y & (rng.random(size) < self.labels)

    @property
    def hidden(self) -> float:
        return self.share * (1 - self.labels) / (1 - self.share * self.labels)

    def __str__(self) -> str:
        return f"{self.n:,}, {self.share:.0%}, {self.labels:.0%}, {self.gap:g}"


SETTINGS = (
    Setting(1_000, 0.3, 0.5, 1.2),
    Setting(1_000, 0.3, 0.5, 2.5),
    Setting(5_000, 0.1, 0.3, 1.2),
    Setting(5_000, 0.1, 0.3, 2.5),
    Setting(20_000, 0.02, 0.5, 1.2),
    Setting(20_000, 0.02, 0.5, 2.5),
)


def shares(setting: Setting, tables: int) -> float:
    """Print how well the share of hidden positives is found; how often intervals cover it."""
    rng = np.random.default_rng(0)
    found = np.empty((tables, 3))
    for place in range(tables):
        _, s, labelled = setting.draw(rng)
        one = hidden_share(labelled, s)
        found[place] = one.estimate, one.low, one.high
    cover = float(np.mean((found[:, 1] <= setting.hidden) & (setting.hidden <= found[:, 2])))
    middle, low, high = np.mean(found, axis=0)
    print(f"| {setting} | {setting.hidden:.4f} | {middle:.4f} | {low:.4f} to {high:.4f} "
        f"| {cover:.3f} |")  # fmt: skip
    return cover


def metrics(setting: Setting, name: str, tables: int) -> float:
    """Print how well a metric is corrected; how often the intervals cover it, at least."""
    rng = np.random.default_rng(1)
    given = METRICS_MEASURED[name]
    own = {**given, "normalize": True} if name == "pnorm_risk" else given
    metric = METRICS[name]
    y, s, _ = setting.draw(rng, 400_000 if name != "push_risk" else None)
    truth = metric.function(y, s, **own)
    rows = []
    heavy = metric.hidden is Hidden.HEIGHTS
    if name == "push_risk":  # a sum over the rows of a table: the mean of many tables
        truth = np.mean([metric.function(*setting.draw(rng)[:2], **own) for _ in range(200)])
    for _ in range(tables // _EVERY if heavy else tables):
        _, s, labelled = setting.draw(rng)
        more = {"n_resamples": _RESAMPLES} if heavy else {}
        line = [metric.function(labelled, s, **own)]
        for hidden in (setting.hidden, None):
            one = unlabelled_interval(name, labelled, s, hidden, **more, **given)
            line += [one.estimate, one.low <= truth <= one.high]
        rows.append(line)
    naive, known, covers, estimated, covers_too = np.mean(np.array(rows, dtype=float), axis=0)
    print(f"| {setting} | {name} | {truth:.4g} | {naive:.4g} | {known:.4g} | {covers:.3f} "
        f"| {estimated:.4g} | {covers_too:.3f} |")  # fmt: skip
    return min(covers, covers_too)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=200)
    tables = parser.parse_args().tables
    print("| rows, positives, labelled, gap | hidden | estimate | 95% interval | covers |")
    print("|---|---|---|---|---|")
    least = [shares(setting, tables) for setting in SETTINGS]
    print("\n| rows, positives, labelled, gap | metric | truth | unlabelled as negatives "
        "| share given | covers | share estimated | covers |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for setting in SETTINGS[1::2]:
        for name in METRICS_MEASURED:
            if setting.n < _LONG or METRICS[name].hidden is not Hidden.HEIGHTS:
                least.append(metrics(setting, name, tables))
    return int(min(least) < 0.9)


if __name__ == "__main__":
    sys.exit(main())
