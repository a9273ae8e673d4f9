"""Plug-in ranking by proper losses: regret against the number of rows, bounds, and speed.

    python benchmarks/proper.py            # everything
    python benchmarks/proper.py --quick    # few repetitions and rows, to see that it runs

The first table has, for each loss, the exact ranking regret of `ProperRanker` on a simulated model
with known eta, averaged over samples, and how much of Theorem 13's bound it uses up. The second
line is a ratio of two times taken in turns in this process.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from toprank import ProperRanker
from toprank.bounds import exact_ranking_regret, ranking_regret, surrogate_regret
from toprank.losses.proper import PROPER_LOSSES
from toprank.simulate import BipartiteModel, linear_bipartite


def regrets(
    model: BipartiteModel, loss: str, n: int, samples: int, X: Any, eta: Any
) -> tuple[float, float]:
    """Mean ranking regret, and its mean share of the bound of Theorem 13."""
    found, shares = [], []
    for seed in range(samples):
        fit = ProperRanker(loss).fit(*model.sample(n, random_state=seed))
        scores = fit.decision_function(X)
        found.append(exact_ranking_regret(eta, scores))
        surrogate = surrogate_regret(fit.loss_, eta, scores)
        shares.append(found[-1] / ranking_regret(fit.loss_, surrogate, float(np.mean(eta))).value)
    return float(np.mean(found)), float(np.mean(shares))


def regret_table(sizes: list[int], samples: int) -> None:
    model = linear_bipartite(5, prevalence=0.3)
    X, _ = model.sample(20_000, random_state=2026)
    eta = model.eta(X)
    print("ranking regret x 1000 (share of Theorem 13's bound), logistic model, 5 features")
    print(f"{'loss':>22}" + "".join(f"{f'n = {n}':>18}" for n in sizes))
    for loss in PROPER_LOSSES:
        cells = [regrets(model, loss, n, samples, X, eta) for n in sizes]
        print(f"{loss:>22}" + "".join(f"{1e3 * r:>9.3f} ({share:.4f})" for r, share in cells))


def clock(model: Any, X: Any, y: Any) -> float:
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start


def speed(n: int, rounds: int) -> None:
    X, y = linear_bipartite(30, prevalence=0.15).sample(n, random_state=0)
    alpha = 1e-5
    ours = ProperRanker(alpha=alpha)
    theirs = LogisticRegression(C=1 / (alpha * n), tol=1e-6, max_iter=1000)
    with threadpool_limits(1):
        times = [(clock(ours, X, y), clock(theirs, X, y)) for _ in range(rounds)]
    best = [min(column) for column in zip(*times, strict=True)]
    apart = float(np.max(np.abs(ours.coef_ - theirs.coef_)))
    print(
        f"fit, {n} x 30, one thread: ProperRanker {best[0]:.3f} s, LogisticRegression "
        f"{best[1]:.3f} s, ratio {best[0] / best[1]:.2f}, coefficients within {apart:.1e}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    regret_table([50, 500] if quick else [50, 500, 5000, 50_000], 2 if quick else 10)
    speed(20_000 if quick else 500_000, 2 if quick else 5)


if __name__ == "__main__":
    main()
