"""Settings in which intervals and tests once failed, measured again: own samples, exact truths.

    python benchmarks/error_bars_attack.py              # every row, 500 samples each
    python benchmarks/error_bars_attack.py --draws 2000 --rows auc groups
    python benchmarks/error_bars_attack.py --page       # only write what is known into its page

Nothing here comes from `toprank.simulate`: scores are drawn with NumPy, and the true values are
integrals over the laws of the scores. Answers are kept in benchmarks/error_bars_attack.json, with
what had been seen when they failed, and written into docs/evidence/error_bars_table.md.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from error_bars_page import PAGE, with_part
from scipy import stats
from scipy.integrate import quad

from toprank.inference import (
    compare,
    comparison_size,
    interval,
    precision_recall_band,
    sample_size,
    u_statistic,
)
from toprank.models import fit_table
from toprank.models.monitor import Limits, monitor_model
from toprank.tuning import capacity_threshold, supported_p

KEPT = Path(__file__).with_name("error_bars_attack.json")
SMOOTH: dict[str, dict[str, Any]] = {
    "auc": {},
    "partial_auc": {"max_fpr": 0.1},
    "average_precision": {},
    "pnorm_risk": {"p": 4, "normalize": True},
}
Answer = tuple[str, str, str, float, int]  # what, setting, seen before, seen now, samples


def exact_value(metric: str, law: Any, apart: float, share: float = 0.5) -> float:
    """The value of an endless list whose classes have this law, `apart` from each other."""

    def hit(fpr: float) -> float:
        return float(law.sf(law.isf(fpr) - apart))

    if metric == "auc":
        return float(quad(lambda x: law.cdf(x + apart) * law.pdf(x), -np.inf, np.inf)[0])
    if metric == "partial_auc":
        area = quad(hit, 0, 0.1, limit=200)[0]
        return float(0.5 * (1 + (area - 0.005) / (0.1 - 0.005)))
    if metric == "pnorm_risk":
        return float(quad(lambda fpr: (1 - hit(fpr)) ** 4, 0, 1, limit=200)[0] ** 0.25)

    def precision(recall: float) -> float:
        fpr = float(law.sf(law.isf(recall) + apart))
        return share * recall / (share * recall + (1 - share) * fpr)

    return float(quad(precision, 0, 1, limit=200)[0])


def draw(rng: np.random.Generator, law: Any, apart: float, positives: int, rows: int) -> Any:
    """Labels and scores of independent rows."""
    y = np.arange(rows) < positives
    return y, law.rvs(size=rows, random_state=rng) + apart * y


def share_covered(metric: str, truth: float, samples: Iterator[Any], **how: Any) -> float:
    """Share of the intervals that hold the truth, of the samples that have an interval."""
    held = []
    for y, s, *groups in samples:
        found = interval(metric, y, s, groups=groups[0] if groups else None, **how)
        held.append(found.low <= truth <= found.high)
    return float(np.mean(held))


def auc_rows(draws: int) -> Iterator[Answer]:
    normal, t3, t2 = stats.norm(), stats.t(3), stats.t(2)
    for law, name, apart, positives, rows, before in (
        (normal, "normal", 3, 20, 5000, ".86 to .88"),
        (normal, "normal", 2, 10, 1000, ".89"),
        (t3, "t with 3 df", 3, 20, 5000, ".78"),
        (t3, "t with 3 df", 4, 100, 2000, ".90"),
        (t2, "t with 2 df", 6, 20, 5000, ".49"),
    ):
        rng, truth = np.random.default_rng(1), exact_value("auc", law, apart)
        drawn = (draw(rng, law, apart, positives, rows) for _ in range(draws))
        setting = f"{name}, {positives} of {rows:,}, {apart} apart"
        yield '`interval("auc")`', setting, before, share_covered("auc", truth, drawn), draws
    rng, truth = np.random.default_rng(2), exact_value("average_precision", normal, 1.5, 0.004)
    drawn = (draw(rng, normal, 1.5, 20, 5000) for _ in range(draws))
    held = share_covered("average_precision", truth, drawn)
    yield '`interval("average_precision")`', "normal, 20 of 5,000, 1.5 apart", ".88", held, draws


def tail_rows(draws: int) -> Iterator[Answer]:
    normal, t3 = stats.norm(), stats.t(3)
    for law, name, apart, positives, rows, before in (
        (normal, "normal", 0, 10, 1000, ".993"),
        (normal, "normal", 1.5, 40, 4000, ".924"),
        (t3, "t with 3 df", 4, 20, 200, ".954"),
        (t3, "t with 3 df", 5, 20, 200, ".915"),
        (t3, "t with 3 df", 6, 20, 200, ".855"),
        (t3, "t with 3 df", 6, 40, 400, ".887"),
        (t3, "t with 3 df", 4, 200, 400, ".937"),
        (t3, "t with 3 df", 9, 200, 2000, ".898"),
    ):
        rng = np.random.default_rng(14)
        truth = exact_value("average_precision", law, apart, positives / rows)
        drawn = (draw(rng, law, apart, positives, rows) for _ in range(draws))
        held = share_covered("average_precision", truth, drawn)
        setting = f"{name}, {positives} of {rows:,}, {apart} apart"
        yield '`interval("average_precision")`', setting, before, held, draws


def clusters(rng: np.random.Generator, groups: int, holding: int) -> Any:
    """Labels and groups of about 50 rows each, unequal; some groups alone hold positives."""
    sizes = np.maximum(2, np.round(50 * rng.lognormal(-0.5, 1.0, groups))).astype(int)
    group = np.repeat(np.arange(groups), sizes)
    holds = np.isin(group, rng.choice(groups, holding, replace=False))
    y = holds & (rng.random(len(group)) < 0.15)
    return y, group


def clustered(
    rng: np.random.Generator, groups: int, holding: int, scores: int = 1, apart: float = 1.5
) -> Any:
    """A sample of groups whose rows share a fifth of the variance; three or more hold positives."""
    while True:
        y, group = clusters(rng, groups, holding)
        if len(np.unique(group[y])) > 2:
            break
    shared = rng.normal(size=(scores + 1, groups))[:, group]
    own = rng.normal(size=(scores + 1, len(y)))
    if scores == 1:
        return y, np.sqrt(0.2) * shared[0] + np.sqrt(0.8) * own[0] + apart * y, group
    common = np.sqrt(0.2) * shared[-1] + np.sqrt(0.8) * own[-1] + apart * y
    return y, common + 0.3 * shared[:-1] + 0.5 * own[:-1], group


def group_rows(draws: int) -> Iterator[Answer]:
    before = {
        (40, 11): (".92", ".87", ".89", ".90", ""),
        (15, 4): ("", ".85", ".79", ".89", ".89"),
    }
    for (groups, holding), seen in before.items():
        share = 0.15 * holding / groups
        for (metric, how), was in zip(SMOOTH.items(), seen, strict=False):
            rng = np.random.default_rng(3)
            truth = exact_value(metric, stats.norm(), 1.5, share)
            drawn = (clustered(rng, groups, holding) for _ in range(draws))
            setting = f"{groups} unequal groups, {holding} hold a positive"
            held = share_covered(metric, truth, drawn, **how)
            yield f'`interval("{metric}", groups=)`', setting, was, held, draws


def precision_rows(draws: int) -> Iterator[Answer]:
    rng, draws = np.random.default_rng(4), min(draws, 1000)
    values = []
    for _ in range(4000):
        y, s, _ = clustered(rng, 15, 4)
        values.append(np.mean(y[np.argsort(-s)[: max(1, round(0.05 * len(y)))]]))
    truth = float(np.mean(values))
    drawn = (clustered(rng, 15, 4) for _ in range(draws))
    held = share_covered("precision_at", truth, drawn, k=0.05, n_resamples=200)
    setting = "15 unequal groups, 4 hold a positive"
    yield '`interval("precision_at", groups=)`', setting, ".89", held, draws


def compare_rows(draws: int) -> Iterator[Answer]:
    for groups, holding, before in ((40, 11, ".08 to .12"), (15, 4, ".17 to .22")):
        for metric, how in SMOOTH.items():
            rng, rejected = np.random.default_rng(5), []
            for _ in range(draws):
                y, (a, b), group = clustered(rng, groups, holding, scores=2)
                found = compare(metric, y, a, b, groups=group, n_resamples=299, **how)
                rejected.append(found.p_value <= 0.05)
            setting = f"equal rankers, {groups} unequal groups, {holding} hold a positive"
            rate = float(np.mean(rejected))
            yield f'`compare("{metric}", groups=)`', setting, before, rate, draws


def band_rows(draws: int) -> Iterator[Answer]:
    law, apart, share, recalls = stats.norm(), 1.5, 0.01, np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    fpr = law.sf(law.isf(recalls) + apart)
    truth = share * recalls / (share * recalls + (1 - share) * fpr)
    rng, held = np.random.default_rng(6), np.zeros(len(recalls))
    for _ in range(draws):
        band = precision_recall_band(*draw(rng, law, apart, 20, 2000), recall=recalls)
        held += (band.low <= truth) & (truth <= band.high)
    worst = float(np.min(held / draws))
    setting = "20 of 2,000, 1.5 apart, the worst of five recalls"
    yield "pointwise PR band", setting, ".75 to .89", worst, draws


def capacity_rows(draws: int) -> Iterator[Answer]:
    for days, before in ((10, ".91"), (7, ".91"), (5, ".89"), (3, ".87"), (None, ".66")):
        rng, held = np.random.default_rng(7), []
        for _ in range(draws):
            counts = rng.negative_binomial(20 / 3, 1 / 4, days or 30)  # mean 20, variance 80
            day = np.repeat(np.arange(len(counts)), counts)
            period = 30 if days is None else day
            found = capacity_threshold(np.ones(len(day)), 1e6, period)
            held.append(found.low <= rng.negative_binomial(20 / 3, 1 / 4) <= found.high)
        setting = "`period=30` as a number" if days is None else f"{days} days seen"
        rate = float(np.mean(held))
        yield "`capacity_threshold`", f"{setting}, dispersion 4", before, rate, draws


def plan_rows(draws: int) -> Iterator[Answer]:
    draws = min(draws, 1000)
    for value, width, before in ((0.95, 0.02, "1.12"), (0.99, 0.008, "1.34 to 1.55")):
        plan = sample_size("auc", value=value, half_width=width, prevalence=0.1)
        apart = np.sqrt(2) * stats.norm.ppf(value)
        rng, halves = np.random.default_rng(8), []
        for _ in range(draws):
            y = np.arange(plan.rows) < plan.positives
            found = interval("auc", y, rng.normal(size=plan.rows) + apart * y)
            halves.append((found.high - found.low) / 2)
        ratio = float(np.mean(halves)) / width
        yield '`sample_size("auc")`', f"half-width over the promise, {value}", before, ratio, draws
    plan = comparison_size("precision_at", value=0.3, difference=0.15, power=0.8)
    rng, found_it = np.random.default_rng(9), []
    for _ in range(draws):
        y = np.concatenate([rng.random(plan.k) < 0.3, rng.random(plan.k) < 0.45, np.zeros(2, bool)])
        y[-2:] = True, False  # both classes are there, below both lists
        first = np.arange(2 * plan.k + 2) < plan.k
        second = ~first & (np.arange(len(first)) < 2 * plan.k)
        chance = compare("precision_at", y, 1.0 * first, 1.0 * second, k=plan.k).p_value
        found_it.append(chance <= 0.05)
    what = '`comparison_size("precision_at")`'
    yield what, "power, .80 promised", ".69", float(np.mean(found_it)), draws


def kernel_rows(draws: int) -> Iterator[Answer]:
    for rows, before in ((10, ".66, no note"), (30, ".84, no note"), (100, "")):
        rng, held, noted = np.random.default_rng(10), [], []
        for _ in range(draws):
            z = rng.exponential(size=rows)
            found = u_statistic(lambda a, b: (a - b) ** 2 / 2, z)
            low, high = found.interval()
            held.append(low <= 1 <= high)
            noted.append(bool(found.note))
        setting = f"variance of exponential data, n = {rows}"
        yield "`u_statistic`", setting, before, float(np.mean(held)), draws
        yield "`u_statistic`", f"{setting}: share with a note", "0", float(np.mean(noted)), draws


def noise_rows(draws: int) -> Iterator[Answer]:
    draws, rng = min(draws, 200), np.random.default_rng(11)
    allowed = 0
    for _ in range(draws):
        X, y = rng.normal(size=(100, 5)), np.arange(100) < 20
        p = supported_p(X, y).p
        allowed += p is not None and p > 1
    yield "`supported_p`", "noise, 20 + 80 rows: share with a push", "1", allowed / draws, draws


def shop(rng: np.random.Generator, rows: int, levels: int) -> pd.DataFrame:
    """Columns with long tails, and a category of so many levels where there are any."""
    made = pd.DataFrame({"amount": rng.lognormal(size=rows), "age": rng.gamma(2.0, size=rows)})
    made["visits"] = rng.poisson(3.0, rows)
    effect = np.zeros(rows)
    if levels:
        level = rng.integers(0, levels, rows)
        made["shop"] = [f"shop {number}" for number in level]
        effect = np.cos(2.9 * level)
    return made.assign(y=np.log(made.amount) + effect + rng.logistic(size=rows) > 1.6)


def monitor_rows(draws: int) -> Iterator[Answer]:
    fits, rng = 8, np.random.default_rng(13)
    tables = max(1, min(draws, 400) // fits)
    for model, rows, levels in (("trees", 500, 0), ("trees", 1000, 0), ("pnorm", 300, 200)):
        alarms = 0
        for _ in range(fits):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # categories never seen before
                fitted = fit_table(shop(rng, rows, levels), "y", model=model, p=4)
                for _ in range(tables):
                    new = shop(rng, 1000, levels).drop(columns="y")
                    parts = [(new, fitted.score(new))]
                    limits = Limits(0.25, 2.0, None)
                    alarms += bool(monitor_model(fitted, parts, lambda: None, limits).alarms)
        setting = f"nothing changed: alarms, {model} on {rows:,} rows"
        setting += f", {levels} levels" if levels else ""
        yield "`monitor`", setting, "1", alarms / (fits * tables), fits * tables


def order_rows(draws: int) -> Iterator[Answer]:
    y, s = np.repeat([0, 1], [4980, 20]), np.arange(5000.0)
    swapped = s.copy()
    swapped[[4979, 4980]] = s[[4980, 4979]]
    jump = abs(interval("auc", y, s).low - interval("auc", y, swapped).low)
    setting = "jump of the lower end when two rows at the border swap"
    yield '`interval("auc")`', setting, ".168", float(jump), 1
    rng = np.random.default_rng(12)
    y = np.arange(200) < 40
    a, b = (np.round(rng.normal(size=200) + y).clip(-1, 3) for _ in range(2))
    ahead, back = (
        compare("partial_auc", y[way], a[way], b[way], max_fpr=0.1).p_value
        for way in (slice(None), slice(None, None, -1))
    )
    setting = "five levels: p on the rows in reverse order, less p"
    yield '`compare("partial_auc")`', setting, ".073", float(abs(ahead - back)), 1


ROWS: dict[str, Callable[[int], Iterator[Answer]]] = {
    "order": order_rows,
    "capacity": capacity_rows,
    "kernel": kernel_rows,
    "auc": auc_rows,
    "tails": tail_rows,
    "band": band_rows,
    "groups": group_rows,
    "plans": plan_rows,
    "compare": compare_rows,
    "noise": noise_rows,
    "precision": precision_rows,
    "monitor": monitor_rows,
}


def table(kept: dict[str, list[Answer]]) -> Iterator[str]:
    """What is known now, as a table in Markdown, line by line."""
    yield "| what | setting | found | samples |"
    yield "|---|---|---|---|"
    for name in ROWS:
        for what, setting, _, now, draws in kept.get(name, []):
            shown = f"{now:.3f}" if draws > 1 else f"{now:.2g}"
            yield f"| {what} | {setting} | {shown} | {draws:,} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--rows", nargs="*", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for name in [] if options.page else options.rows:
        kept[name] = []
        for answer in ROWS[name](options.draws):
            kept[name].append(answer)
            print(*answer, sep=" | ", flush=True)
        KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    page = with_part(PAGE.read_text(encoding="utf-8"), "other code", table(kept))
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
