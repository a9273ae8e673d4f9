"""How fast lists are decided: shortlists, cuts within limits, and how sure a place is.

    python benchmarks/decisions.py          # a minute or two; prints a page of Markdown
    python benchmarks/decisions.py --quick  # a hundredth of the rows: does it run?

A figure is the ratio of two processor times, taken in turns on one thread, the best of several
rounds: in sorts (`np.sort`) of as many scores, or in fits of the ranker. The last page is in
decisions.md. The exit status is 1 where a figure exceeds its limit.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits
from timing import report, say, side_by_side

import toprank
from toprank import PNormPush, ProperRanker, select
from toprank.select import cut, membership

#: Limits: sorts of a shortlist, sorts of a cut within limits, fits of membership probabilities.
SORTS_OF_SELECT, SORTS_OF_CUT, FITS = 3.0, 5.0, 10.0
Line = tuple[str, dict[str, Any]]


def compare(ours: Callable[[], Any], theirs: Callable[[], Any], limit: float, rounds: int) -> Any:
    """The ratio of two processor times."""
    times = side_by_side(ours, theirs, rounds, timer=time.process_time)
    return report(limit, *times)


def shortlists(n: int) -> Iterator[Line]:
    """Choose from n new rows with a tenth as many labelled ones."""
    rng = np.random.default_rng(0)
    known = n // 10
    y = rng.random(n + known) < 0.05
    s = rng.normal(size=len(y)) + 3 * y
    wishes: dict[str, dict[str, Any]] = {
        "fdr=0.1": {"fdr": 0.1},
        "precision_at_least=0.8": {"precision_at_least": 0.8},
        "recall_at_least=0.8": {"recall_at_least": 0.8},
        "positives_at_least=1000": {"positives_at_least": max(1, n // 1000)},
    }
    ratio = np.exp(0.1 * s)
    wishes["fdr=0.1, known shift"] = {
        "fdr": 0.1,
        "likelihood_ratio": (ratio[:known], ratio[known:]),
    }
    for name, wish in wishes.items():
        found = compare(
            lambda wish=wish: select(s[known:], calibration=(y[:known], s[:known]), **wish),
            lambda: np.sort(s),
            SORTS_OF_SELECT,
            5,
        )
        yield f"select, {n:,} new and {known:,} labelled rows, {name}, in sorts", found


def cuts(n: int) -> Iterator[Line]:
    """Cut lists of a hundredth of n rows within limits, greedily."""
    rng = np.random.default_rng(1)
    s = rng.normal(size=n)
    k, chance = n // 100, 1 / (1 + np.exp(4 - 2 * s))
    entities, region = rng.integers(0, n // 3, n), rng.integers(0, 10, n)
    before = np.argsort(-(s + rng.normal(scale=0.1, size=n)))[:k]
    limits: dict[str, dict[str, Any]] = {
        "one row per entity": {"entities": entities},
        "a cap and a floor per group": {"groups": region, "at_most": 0.3, "at_least": 0.05},
        "a budget": {"cost": rng.uniform(0.5, 2, n), "budget": 0.8 * k},
        "rows drawn at random": {"explore": 0.1},
        "rows of before stay": {"previous": before, "noise": 0.1},
    }
    for name, one in limits.items():
        found = compare(
            lambda one=one: cut(s, k, probability=chance, method="greedy", **one),
            lambda: np.sort(s),
            SORTS_OF_CUT,
            5,
        )
        yield f"cut to {k:,} of {n:,} rows, {name}, in sorts", found


def places(n: int) -> Iterator[Line]:
    """Probabilities of the first hundred places of n / 5 new rows, in fits to n rows."""
    rng = np.random.default_rng(2)
    X, new = rng.normal(size=(n, 20)), rng.normal(size=(n // 5, 20))
    y = X[:, :5].sum(axis=1) + rng.logistic(size=n) > 4
    for ranker in (PNormPush(p=1), PNormPush(p=4), PNormPush(p=4, loss="logistic"), ProperRanker()):
        fitted = ranker.fit(X, y)
        found = compare(
            lambda fitted=fitted: membership(fitted, X, y, new, 100),
            lambda ranker=ranker: type(ranker)(**ranker.get_params()).fit(X, y),
            FITS,
            3,
        )
        yield f"membership of {n // 5:,} rows, {ranker!r}, in fits to {n:,} rows", found


def main() -> int:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    scale = 100 if parser.parse_args().quick else 1
    print("# Decisions, as last measured\n")
    print(
        f"`python benchmarks/decisions.py`, toprank {toprank.__version__}, "
        f"{date.today().isoformat()}, {platform.machine()}, one thread. Processor seconds.\n"
    )
    print("| figure | ours | theirs | ratio | limit | within |\n|---|---|---|---|---|---|")
    within = True
    parts = (shortlists(10**6 // scale), cuts(10**6 // scale), places(10**5 // scale))
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in parts:
            for name, found in part:
                say(name)
                within &= bool(found["within"])
                cells = (name, found["ours"], found["theirs"], f"{found['ratio']:.2f}")
                last = (f"{found['limit']:g}", "yes" if found["within"] else "**no**")
                print("|", " | ".join(map(str, (*cells, *last))), "|", flush=True)
    return int(not within)


if __name__ == "__main__":
    sys.exit(main())
