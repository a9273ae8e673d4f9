"""Which way of comparing settings finds the one that puts most positives above every negative?

    python benchmarks/choose_top.py            # 8 draws of each of six tables: some minutes
    python benchmarks/choose_top.py --draws 2  # to see that it runs

The share of positives above every negative hangs on one row, so that a choice of p and alpha by
cross-validation is noisy. Every way looks at the same fits to the same folds (nine penalties; the
logistic loss, p = 1, 4, 16 and 64; features scaled to [0, 1], the protocol of TopPush) and is
judged by its choice on rows that no fit has seen, in lists half as long as the table. A way's
figure is its mean over the draws of a table as a share of that of the best setting fixed
beforehand, then the mean over the tables. The tables are magic, with either class on top, and
simulated ones; those of the protocol itself are left out.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats
from sklearn.model_selection import StratifiedKFold

from toprank import PNormPushCV
from toprank.blocks import Workers
from toprank.datasets import load_magic
from toprank.folds import Scoring
from toprank.simulate import linear_bipartite
from toprank.tuning.rows import TuningRows
from toprank.tuning.search import SettingSearch

POWERS, PENALTIES = (1, 4, 16, 64), tuple(10.0**k for k in range(2, -7, -1))
DRAWINGS, FOLDS = 5, 5
#: Rows to choose and fit on, and to measure on.
ROWS, TEST_ROWS = 1_000, 5_000
#: What `PNormPushCV` does, in the protocol.
OURS = "5 negatives, 2 drawings"

Table = tuple[Any, Any]


def of_magic(flipped: bool) -> Callable[[np.random.Generator], Table]:
    def draw(rng: np.random.Generator) -> Table:
        X, y = load_magic(return_X_y=True)
        rows = rng.choice(len(y), ROWS + TEST_ROWS, replace=False)
        return X[rows], (y[rows] == 1) != flipped

    return draw


def linear(rng: np.random.Generator) -> Table:
    X, y = linear_bipartite().sample(ROWS + TEST_ROWS, random_state=int(rng.integers(1 << 31)))
    return X, y == 1


def far_negatives(rng: np.random.Generator) -> Table:
    """Two clouds; one negative in a hundred lies beyond the positives."""
    n, direction = ROWS + TEST_ROWS, np.full(8, 8**-0.5)
    y = rng.random(n) < 0.3
    far = ~y & (rng.random(n) < 0.01)
    X = rng.normal(size=(n, 8)) * np.where(far, 1.8, 1.0)[:, None]
    return np.exp((X + np.outer(1.5 * y + 4.0 * far, direction)) / 2), y


def heavy_tails(rng: np.random.Generator) -> Table:
    n = ROWS + TEST_ROWS
    y = rng.random(n) < 0.35
    present = rng.random((n, 10)) < 0.7
    return rng.standard_t(3, size=(n, 10)) + np.outer(y, np.linspace(0.2, 1, 10)) * present, y


def frequencies(rng: np.random.Generator) -> Table:
    """Mostly zeros, lognormal elsewhere, as of words; four labels in a thousand are wrong."""
    n = ROWS + TEST_ROWS
    y = rng.random(n) < 0.4
    odds = np.outer(np.where(y, 1, -1), 0.8 * rng.normal(size=30)) - 1.5
    X = np.where(rng.random((n, 30)) < 1 / (1 + np.exp(-odds)), rng.lognormal(size=(n, 30)), 0.0)
    return X, y != (rng.random(n) < 0.004)


TABLES: dict[str, Callable[[np.random.Generator], Table]] = {
    "magic, gamma on top": of_magic(False),
    "magic, hadrons on top": of_magic(True),
    "linear": linear,
    "far negatives": far_negatives,
    "heavy tails": heavy_tails,
    "frequencies": frequencies,
}


def above(y: Any, scores: Any, negatives: int) -> Any:
    """Mean share of positives above each of the highest negatives, for each line of scores."""
    highest = -np.sort(-scores[:, ~y], axis=1)[:, :negatives]
    return (scores[:, None, y] > highest[:, :, None]).mean(axis=(1, 2))


def smoothed(means: Any) -> Any:
    """Each setting with half of its neighbours, in p and in the penalty."""
    grid = means.reshape(-1, len(PENALTIES))
    total, weight = grid.copy(), np.ones_like(grid)
    for axis in (0, 1):
        for here, there in ((slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None))):
            to, of = [slice(None)] * 2, [slice(None)] * 2
            to[axis], of[axis] = here, there
            total[tuple(to)] += grid[tuple(of)] / 2
            weight[tuple(to)] += 0.5
    return (total / weight).ravel()


def ways(y: Any, scores: Any, fold_of: Any) -> dict[str, Any]:
    """What each way compares the settings by."""
    found: dict[str, Any] = {}
    folds = [(y[rows], of[:, rows]) for of, number in zip(scores, fold_of, strict=True)
             for rows in (number == k for k in range(FOLDS))]  # fmt: skip
    depths: dict[str, Callable[[Any], int]] = {
        f"{k} negative{'s' * (k > 1)}": lambda _, k=k: k for k in (1, 3, 5, 10, 20)
    }
    depths |= {f"{f:.0%} of the negatives": lambda y, f=f: max(1, round(f * np.sum(~y)))
               for f in (0.02, 0.05, 0.1)}  # fmt: skip
    for name, depth in depths.items():
        table = np.array([above(truth, of, depth(truth)) for truth, of in folds])
        for count in (1, 2, 5):
            drawn = table[: FOLDS * count]
            label = f"{name}, {count} drawing{'s' * (count > 1)}"
            found[label] = drawn.mean(axis=0)
            found[f"{label}, smoothed"] = smoothed(found[label])
            found[f"{label}, ranks in the folds"] = stats.rankdata(drawn, axis=1).mean(axis=0)
    for k in (1, 5, 25):
        found[f"{k} highest of all folds as one list, 2 drawings"] = np.mean(
            [above(y, of, k) for of in scores[:2]], axis=0
        )
    return found


def one_draw(table: Callable[[np.random.Generator], Table], seed: int) -> tuple[Any, dict]:
    """What every setting is worth on the rows not drawn, and which each way takes."""
    X, y = table(np.random.default_rng(seed))
    low, high = X[:ROWS].min(axis=0), X[:ROWS].max(axis=0)
    X = (X - low) / np.where(high > low, high - low, 1.0)
    rows, test = (TuningRows(X[part], y[part]) for part in (slice(ROWS), slice(ROWS, None)))
    grid = PNormPushCV(POWERS, alphas=PENALTIES)._grid()
    search = SettingSearch(*grid, Scoring("positives_at_top"), "best", 0.95, Workers(None))
    whole = search.fit(rows)
    scores = np.empty((DRAWINGS, len(grid[0]), ROWS))
    fold_of = np.empty((DRAWINGS, ROWS), dtype=int)
    for drawing in range(DRAWINGS):
        cutter = StratifiedKFold(FOLDS, shuffle=True, random_state=drawing)
        for number, (train, out) in enumerate(cutter.split(rows.X, rows.y)):
            fitted = search.fit(rows.take(train), whole)
            scores[drawing][:, out], fold_of[drawing, out] = fitted.scores(rows.take(out)), number
    lists = np.array_split(np.arange(TEST_ROWS), 2 * TEST_ROWS // ROWS)
    of_test = whole.scores(test)
    worth = np.mean([above(test.y[one], of_test[:, one], 1) for one in lists], axis=0)
    taken = {name: int(np.argmax(by)) for name, by in ways(rows.y, scores, fold_of).items()}
    return worth, taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=8)
    n_draws = parser.parse_args().draws
    warnings.simplefilter("ignore")  # a setting that does not converge is judged by its ranking
    shares: dict[str, list[float]] = {}
    gained: dict[str, list[float]] = {}
    for name, table in TABLES.items():
        draws = [one_draw(table, seed) for seed in range(n_draws)]
        fixed = np.mean([worth for worth, _ in draws], axis=0).max()
        for way in draws[0][1]:
            found = np.array([worth[taken[way]] for worth, taken in draws])
            ours = np.array([worth[taken[OURS]] for worth, taken in draws])
            shares.setdefault(way, []).append(found.mean() / fixed)
            gained.setdefault(way, []).extend(found - ours)
        print(f"{name}: {OURS} {shares[OURS][-1]:.3f} of the best fixed, {fixed:.3f}", flush=True)
    for way in sorted(shares, key=lambda way: -np.mean(shares[way])):
        gaps = np.array(gained[way])
        p = stats.wilcoxon(gaps).pvalue if gaps.any() else 1.0
        better, worse = np.sum(gaps > 0), np.sum(gaps < 0)
        share = np.mean(shares[way])
        print(f"{share:.3f}  {way}: {better} draws better, {worse} worse, p = {p:.2g}")


if __name__ == "__main__":
    main()
