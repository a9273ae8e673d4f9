"""How fast PairRanker is, side by side, in one run: ratios, printed as JSON.

    python benchmarks/pairwise.py              # everything
    python benchmarks/pairwise.py --quick      # small sizes, to see that it runs
    python benchmarks/pairwise.py single-loss survival

Each figure is a ratio of two times (or sizes) taken alternately in this process, the best of
several rounds, with the limit it is held to. Both sides run on one thread unless --threads says
more. Times are processor times of the process where both sides are our own single-threaded code
(``cpu``), else seconds on the clock (``wall``); they agree on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np
from sklearn.utils import check_X_y
from threadpoolctl import threadpool_limits
from timing import clock, report, say, side_by_side

from toprank import PairRanker
from toprank.blocks import Workers
from toprank.objective import BlockData
from toprank.solvers import lbfgs

ALPHA, TOL = 1e-3, 1e-6


def real_labels(n: int, d: int, correlation: float = 0.0, seed: int = 0) -> tuple[Any, Any]:
    """Normal features, neighbours correlated, and real labels with noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] *= np.sqrt(1 - correlation**2)
        X[:, j] += correlation * X[:, j - 1]
    signal = X @ rng.standard_normal(d)
    return X, signal / np.std(signal) + rng.standard_normal(n)


class Ridge:
    """mean (x'b - y)^2 / 2 + (alpha/2) |b|^2: one loss a row, for the same solver."""

    scale = 1.0

    def __init__(self, data: BlockData, y: Any, has_curvature: bool):
        self.data, self.y = data, y - np.mean(y)
        self.has_curvature = has_curvature
        self.alpha = self.penalty = ALPHA
        self.size = data.n_features

    def value_grad(self, coef: Any) -> tuple[float, Any]:
        residual = self.data.scores(coef) - self.y
        grad = self.data.adjoint(residual / len(residual)) + ALPHA * coef
        return 0.5 * float(np.mean(residual**2)) + 0.5 * ALPHA * float(coef @ coef), grad

    def hessian(self, coef: Any, *, exact: bool = True) -> Any:
        moments = self.data.adjoint(self.data.columns(0, self.size)) / self.data.n_rows
        return moments + ALPHA * np.eye(self.size)

    def column_scale(self) -> Any:
        return 1.0 / np.sqrt(self.data.squares[1] / self.data.n_rows)

    def coarse(self) -> None:
        return None

    def runs_away(self, coef: Any) -> bool:
        return False


def fit_ridge(X: Any, y: Any, threads: int, rounded: bool) -> Any:
    """Through the same door: checked, in safe units, and minimised by our own L-BFGS.

    ``rounded`` lets it use the Hessian at the start as a change of coordinates, which for one
    squared loss a row is the whole solution.
    """
    X, y = check_X_y(X, y)
    with Workers(threads).start_threads():
        problem = Ridge(BlockData.of(X), y, rounded)
        return lbfgs(problem, np.zeros(X.shape[1]), tol=TOL)


def single_loss(size: float, threads: int) -> dict[str, Any]:
    """All pairs of real labels, squared hinge, against one squared loss a row by L-BFGS."""
    n = int(100_000 * size)
    results = {}
    for name, correlation in (("independent features", 0.0), ("correlated features", 0.7)):
        X, y = real_labels(n, 50, correlation)
        ranker = PairRanker(alpha=ALPHA, tol=TOL, n_jobs=threads)
        for way, rounded in (("L-BFGS", False), ("L-BFGS from the Hessian", True)):
            say(f"single-loss: {n} x 50, {name}, {way}")
            ours, theirs = side_by_side(
                lambda ranker=ranker, X=X, y=y: ranker.fit(X, y),
                lambda X=X, y=y, rounded=rounded: fit_ridge(X, y, threads, rounded),
                timer=time.process_time if threads == 1 else time.perf_counter,
            )
            iterations = [ranker.n_iter_, fit_ridge(X, y, threads, rounded).n_iter]
            results[f"{name}, {way}"] = report(
                5.0, ours, theirs, pairs=ranker.n_pairs_, iterations=iterations
            )
    return results


def explicit_pairs(size: float, threads: int) -> dict[str, Any]:
    """Labels against the list of the pairs they imply: the same coefficients."""
    n = int(3_000 * size)
    say(f"explicit: {n} x 50")
    X, y = real_labels(n, 50)
    pairs = np.argwhere(y[:, None] > y[None, :])
    ranker = PairRanker(alpha=ALPHA, tol=TOL, n_jobs=threads)
    ours, theirs = side_by_side(
        lambda: ranker.fit(X, y), lambda: ranker.fit(X, pairs=pairs), rounds=3
    )
    from_labels, from_pairs = ranker.fit(X, y).coef_, ranker.fit(X, pairs=pairs).coef_
    apart = float(np.max(np.abs(from_labels - from_pairs)))
    return report(1 / 50, ours, theirs, pairs=len(pairs), coefficients_apart=apart)


def survival(size: float, threads: int) -> dict[str, Any]:
    """scikit-survival's FastSurvivalSVM without censoring: the same loss, penalty, tolerance.

    It minimises sum over pairs of (1 - r)+^2 alpha/2 + |coef|^2/2, so its alpha is ours turned
    round; the objective both reach is compared, too.
    """
    from sksurv.svm import FastSurvivalSVM
    from sksurv.util import Surv

    n = int(20_000 * size)
    say(f"survival: {n} x 20")
    X, y = real_labels(n, 20)
    y = y - np.min(y) + 1.0
    n_pairs = n * (n - 1) // 2
    times = Surv.from_arrays(np.ones(n, dtype=bool), y)
    ranker = PairRanker(alpha=ALPHA, tol=TOL, n_jobs=threads)
    best = None
    for optimizer in ("avltree", "rbtree"):
        # half the squared hinge: 2 / (alpha pairs) makes the two objectives proportional
        other = FastSurvivalSVM(
            alpha=2.0 / (ALPHA * n_pairs),
            rank_ratio=1.0,
            optimizer=optimizer,
            tol=TOL,
            max_iter=1000,
        )
        ours, theirs = side_by_side(lambda: ranker.fit(X, y), lambda o=other: o.fit(X, times), 3)
        if best is None or theirs < best[1]:
            best = ours, theirs, optimizer, other
    ours, theirs, optimizer, other = best

    def objective(coef: Any) -> float:
        from toprank.objective.pairwise import PairTask
        from toprank.pairs import Graded

        task = PairTask.build(Graded(y, None, np.arange(n)), np.ones(n))
        return task.objective().value(X @ coef) + ALPHA / 2 * float(coef @ coef)

    return report(
        1.0,
        ours,
        theirs,
        optimizer=optimizer,
        objectives=[objective(ranker.coef_), objective(other.coef_)],
        cosine=float(
            ranker.coef_ @ other.coef_ / np.linalg.norm(ranker.coef_) / np.linalg.norm(other.coef_)
        ),
    )


_KERNEL_FIT = """
import resource, sys
import numpy as np
from toprank import PairRanker
n = int(sys.argv[1])
rng = np.random.default_rng(0)
X = rng.standard_normal((n, 20))
y = -np.sum(X[:, :5] ** 2, axis=1) + rng.standard_normal(n)
ranker = PairRanker(kernel="rbf", random_state=0, tol=1e-4).fit(X, y)
concordance = ranker.score(X, y)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(peak, concordance)
"""


def kernel_memory(size: float, threads: int) -> dict[str, Any]:
    """Peak resident memory of a process that fits a kernel ranker, in GB, against 2 GB."""
    n = int(100_000 * size)
    say(f"kernel-memory: {n} rows, default landmarks")
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _KERNEL_FIT, str(n)], capture_output=True, text=True, check=True
    )
    peak, concordance = map(float, done.stdout.split())
    seconds = round(time.perf_counter() - start, 1)
    return report(1.0, peak, 2.0, unit="GB", concordance=concordance, seconds=seconds)


def growth(size: float, threads: int) -> dict[str, Any]:
    """How the time of a fit grows when the rows double, for every loss."""
    results: dict[str, Any] = {}
    for loss in ("squared_hinge", "hinge", "logistic", "exponential"):
        before = None
        for n in (int(25_000 * size), int(50_000 * size), int(100_000 * size)):
            say(f"growth: {loss}, {n} x 10")
            X, y = real_labels(n, 10)
            fit = PairRanker(loss=loss, n_jobs=threads, tol=1e-5).fit
            fit(X, y)
            seconds = min(clock(lambda f=fit, X=X, y=y: f(X, y), time.process_time) for _ in "123")
            if before is not None:
                results[f"{loss} {n} x 10"] = report(2.6, seconds, before)
            before = seconds
    return results


BENCHMARKS = {
    "single-loss": single_loss,
    "explicit": explicit_pairs,
    "survival": survival,
    "kernel-memory": kernel_memory,
    "growth": growth,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("which", nargs="*", choices=[*BENCHMARKS, []], help="default: all")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    results: dict[str, Any] = {"threads": arguments.threads, "quick": arguments.quick}
    with threadpool_limits(arguments.threads):
        for name in arguments.which or BENCHMARKS:
            size = 0.1 if arguments.quick else 1.0
            results[name] = BENCHMARKS[name](size, arguments.threads)
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
