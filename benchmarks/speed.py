"""How fast, side by side, in one run: ratios, printed as JSON.

    python benchmarks/speed.py              # everything
    python benchmarks/speed.py --quick      # small sizes, to see that it runs
    python benchmarks/speed.py fit-dense evaluation

Each figure is a ratio of two times (or sizes) taken alternately in this process, the best of
several rounds, with the limit it is held to. Both sides run on the same number of threads.
"""

from __future__ import annotations

import argparse
import json
import tracemalloc
import warnings
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits
from timing import clock, report, say, side_by_side

from toprank import PNormPush
from toprank.blocks import Workers
from toprank.losses import Logistic
from toprank.objective import LabelledData, Task, labelled, problem_of
from toprank.pair_sums import Interpolated

GAP = 1e-6
TOLERANCES = (1e-1, 1e-2, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 1e-7, 1e-8)


def gaussian(n: int, d: int, correlation: float, seed: int = 0) -> tuple[Any, Any]:
    """Normal features, neighbours correlated, and labels from a logistic model."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] *= np.sqrt(1 - correlation**2)
        X[:, j] += correlation * X[:, j - 1]
    logit = X @ (rng.standard_normal(d) / np.sqrt(d / 4))
    y = (logit - np.quantile(logit, 0.85) + rng.logistic(size=n) > 0).astype(int)
    return X, y


def logistic_objective(X: Any, y: Any, model: Any) -> float:
    z = X @ model.coef_[0] + model.intercept_[0]
    penalty = 0.5 * float(model.coef_[0] @ model.coef_[0]) / len(y)
    return float(np.mean(np.logaddexp(0, z) - y * z)) + penalty


def loosest(fit: Callable[[float], Any], value: Callable[[Any], float], best: float) -> float:
    """The loosest tolerance at which a fit comes within the gap of the best value."""
    for tol in TOLERANCES:
        if value(fit(tol)) - best <= GAP * abs(best):
            return tol
    raise RuntimeError("no tolerance reaches the gap")


def fit_against_logistic(X: Any, y: Any, limit: float, threads: int, rounds: int) -> Any:
    """PNormPush(p=4) against LogisticRegression(lbfgs), both at a relative gap of 1e-6."""

    def push(tol: float) -> Any:
        return PNormPush(p=4, tol=tol, n_jobs=threads).fit(X, y)

    def logistic(tol: float) -> Any:
        return LogisticRegression(solver="lbfgs", tol=tol, max_iter=10_000).fit(X, y)

    push_best = push(1e-9).objective_
    logistic_best = logistic_objective(X, y, logistic(1e-10))
    push_tol = loosest(push, lambda m: m.objective_, push_best)
    logistic_tol = loosest(logistic, lambda m: logistic_objective(X, y, m), logistic_best)
    ours, theirs = side_by_side(lambda: push(push_tol), lambda: logistic(logistic_tol), rounds)
    return report(
        limit,
        ours,
        theirs,
        iterations=[int(push(push_tol).n_iter_), int(logistic(logistic_tol).n_iter_[0])],
        tolerances=[push_tol, logistic_tol],
    )


def fit_dense(size: float, threads: int) -> dict[str, Any]:
    n = int(1_000_000 * size)
    results = {}
    for name, correlation in (("independent features", 0.0), ("correlated features", 0.7)):
        say(f"fit-dense: {n} x 30, {name}")
        results[name] = fit_against_logistic(*gaussian(n, 30, correlation), 0.35, threads, 5)
    return results


def fit_sparse(size: float, threads: int) -> dict[str, Any]:
    n, d = int(100_000 * size), int(20_000 * size)
    say(f"fit-sparse: {n} x {d}, density 0.1%")
    rng = np.random.default_rng(0)
    X = sparse.random(n, d, density=1e-3, format="csr", random_state=0)
    logit = X @ rng.standard_normal(d)
    y = (logit - np.quantile(logit, 0.85) + 0.5 * rng.logistic(size=n) > 0).astype(int)
    return fit_against_logistic(X, y, 1.0, threads, 3)


def evaluation(size: float, threads: int) -> dict[str, Any]:
    n = int(2_000_000 * size)
    say(f"evaluation: {n} x 30")
    X, y = gaussian(n, 30, 0.0)
    coef = np.full(30, 0.05)
    workers = Workers(threads)
    with workers.start_threads():
        problem = problem_of(LabelledData.of_arrays(X, y == 1), Task.build(p=4))
        numbers = count(1)  # the answer at the last point is kept, so that each asks for another

        def evaluate() -> Any:
            return problem.value_grad(coef + 1e-9 * next(numbers))

        ours, theirs = side_by_side(evaluate, X.max, rounds=9)
    return report(2.0, ours, theirs)


def kernels(size: float, threads: int) -> dict[str, Any]:
    """What Numba buys: one evaluation, compiled against NumPy, at several sizes."""
    results = {}
    for n in (int(200_000 * size), int(1_000_000 * size), int(4_000_000 * size)):
        say(f"kernels: {n} x 30")
        X, y = gaussian(n, 30, 0.0)
        coef = np.full(30, 0.05)
        workers = Workers(threads)
        with workers.start_threads():
            problem = problem_of(LabelledData.of_arrays(X, y == 1), Task.build(p=4))

            numbers = count(1)

            def run(
                threshold: int, problem: Any = problem, coef: Any = coef, numbers: Any = numbers
            ) -> None:
                kept, labelled.COMPILED_FROM = labelled.COMPILED_FROM, threshold
                problem.value_grad(coef + 1e-9 * next(numbers))
                labelled.COMPILED_FROM = kept

            ours, theirs = side_by_side(lambda: run(0), lambda: run(1 << 62))
        results[f"{n} x 30"] = report(1.0, ours, theirs)
    return results


def memory(size: float, threads: int) -> dict[str, Any]:
    """Peak of what a fit allocates, against the larger of 10% of X and 32 bytes per row."""
    results = {}
    for n, d in ((int(1_000_000 * size), 30), (int(400_000 * size), 100)):
        say(f"memory: {n} x {d}")
        X, y = gaussian(n, d, 0.0)
        PNormPush(p=4, n_jobs=threads).fit(X, y)  # loads and compiles what it needs
        tracemalloc.start()
        PNormPush(p=4, n_jobs=threads).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        allowed = max(0.1 * X.nbytes, 32.0 * n)
        results[f"{n} x {d}"] = report(1.0, peak / n, allowed / n, unit="bytes per row")
    return results


def pair_sums(size: float, threads: int) -> dict[str, Any]:
    n = int(1_000_000 * size)
    say(f"pair-sums: {n} x {n} pairs")
    rng = np.random.default_rng(0)
    positives, negatives = 3 * rng.standard_normal(n) + 1, 3 * rng.standard_normal(n)
    both, ones = np.concatenate([positives, negatives]), np.ones(n)
    ours, theirs = side_by_side(
        lambda: Interpolated(Logistic(), positives, negatives).log_heights(ones),
        lambda: np.argsort(both),
    )
    return report(4.0, ours, theirs)


def doubling(size: float, threads: int) -> dict[str, Any]:
    """How the time of a fit grows when the rows double."""
    results, before = {}, None
    for n in (int(r * size) for r in (500_000, 1_000_000, 2_000_000, 4_000_000)):
        say(f"doubling: {n} x 20")
        X, y = gaussian(n, 20, 0.0)
        fit = PNormPush(p=4, n_jobs=threads).fit
        fit(X, y)
        seconds = min(clock(lambda fit=fit, X=X, y=y: fit(X, y)) for _ in range(4))
        if before is not None:
            results[f"{n} x 20"] = report(2.3, seconds, before)
        before = seconds
    return results


BENCHMARKS = {
    "fit-dense": fit_dense,
    "fit-sparse": fit_sparse,
    "evaluation": evaluation,
    "kernels": kernels,
    "memory": memory,
    "pair-sums": pair_sums,
    "doubling": doubling,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("which", nargs="*", choices=[*BENCHMARKS, []], help="default: all")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the size")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    results: dict[str, Any] = {"threads": arguments.threads, "quick": arguments.quick}
    with threadpool_limits(arguments.threads):
        for name in arguments.which or BENCHMARKS:
            size = 0.05 if arguments.quick else 1.0
            results[name] = BENCHMARKS[name](size, arguments.threads)
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
