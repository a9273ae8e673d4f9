"""What choosing p costs: the whole grid against single cold fits, printed as JSON.

    python benchmarks/choose.py            # 200,000 x 30, 6 p, 5 alphas, 5 folds
    python benchmarks/choose.py --quick    # small, to see that it runs

The grid of `PNormPushCV` (the logistic baseline, the rows kept aside and the final fit included)
is timed in the same run as single cold fits of `PNormPush` on all rows, one for each p of the
grid, before and after it; the ratio is the grid's time over their mean. A plain grid search makes
6 x 5 x 5 = 150 fits of four fifths of the rows; `grid_search` is measured on the same folds with
one alpha, and multiplied.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from timing import clock

from toprank import PNormPush, PNormPushCV
from toprank.metrics import scorer

PS = (1, 2, 4, 8, 16, 64)
ALPHAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
FOLDS = 5
LIMIT = 40


def rows(n: int, d: int, correlation: float = 0.7, seed: int = 0) -> tuple[Any, Any]:
    """Normal features, neighbours correlated, and 15% positives from a logistic model."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] *= np.sqrt(1 - correlation**2)
        X[:, j] += correlation * X[:, j - 1]
    logit = X @ (rng.standard_normal(d) / np.sqrt(d / 4))
    return X, (logit - np.quantile(logit, 0.85) + rng.logistic(size=n) > 0).astype(int)


def cold_fits(X: Any, y: Any, n_jobs: int) -> float:
    """Mean time of a cold fit over the p of the grid."""
    alpha = ALPHAS[len(ALPHAS) // 2]
    return float(
        np.mean([clock(lambda p=p: PNormPush(p, alpha=alpha, n_jobs=n_jobs).fit(X, y)) for p in PS])
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--jobs", type=int, default=1, help="threads, on both sides")
    options = parser.parse_args()
    n, d = (20_000, 10) if options.quick else (200_000, 30)
    X, y = rows(n, d)
    PNormPush(4).fit(X, y)  # warm up
    before = cold_fits(X, y, options.jobs)
    cross_validated = PNormPushCV(
        PS, alphas=ALPHAS, cv=FOLDS, scoring_kwargs={"k": 0.01}, n_jobs=options.jobs
    )
    grid = clock(lambda: cross_validated.fit(X, y))
    cold = (before + cold_fits(X, y, options.jobs)) / 2
    search = GridSearchCV(
        PNormPush(n_jobs=options.jobs),
        {"p": PS, "alpha": [ALPHAS[len(ALPHAS) // 2]]},
        scoring=scorer("precision_at", k=0.01),
        cv=StratifiedKFold(FOLDS),
        refit=False,
    )
    plain = clock(lambda: search.fit(X, y)) * len(ALPHAS)
    print(
        json.dumps(
            {
                "rows": n,
                "features": d,
                "grid": f"{len(PS)} p x {len(ALPHAS)} alphas x {FOLDS} folds, and the baseline",
                "cold_fits": round(grid / cold, 1),
                "limit": LIMIT,
                "within": bool(grid <= LIMIT * cold),
                "grid_search_cold_fits": round(plain / cold, 1),
                "seconds": {"grid": round(grid, 2), "cold_fit": round(cold, 3)},
                "chosen_p": cross_validated.p_,
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
