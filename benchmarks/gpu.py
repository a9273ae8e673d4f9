"""The push on a GPU, side by side, in one run: ratios, printed as JSON.

    python benchmarks/gpu.py                # 100,000,000 rows of 32 float32 features (26 GB)
    python benchmarks/gpu.py --rows 1000000 # a smaller table
    python benchmarks/gpu.py --cpu          # on the host, to see that it runs
    python benchmarks/gpu.py --keep         # every figure with a limit into gpu.json
    python benchmarks/gpu.py --out folder   # the report as a file there, whatever ends the run
    python benchmarks/gpu.py --add folder/gpu_*.json  # into gpu.json, what another machine reported
    python benchmarks/gpu.py --out folder --profiles  # and where the time of the host goes

gpu.json keeps the last five runs of a figure by the same code, and none of other code beside them;
`python benchmarks/limits.py --page` writes the table of limits.md from it.

Data are made on the device and stay there. A time is the best of several rounds, taken after a
first one that compiles kernels, with the device idle before and after.
"""

from __future__ import annotations

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn asks for it before SciPy is imported

import argparse
import cProfile
import io
import json
import pstats
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import gpu_record
import numpy as np
import torch
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from timing import say

import toprank
from toprank import PNormPush
from toprank.blocks import Block, from_torch
from toprank.interop.torch import PushLoss
from toprank.metrics import auc, precision_at
from toprank.objective.labelled import OpenBlock, View
from toprank.objective.sweeps import Evaluate

GAP = 1e-6
FIT_WIDTHS = (10, 30, 100, 300)
#: A folder for profiles of the host, where they are asked for.
PROFILES: Path | None = None
WIDTHS = (4, 10, 17, 30, 33, 65, 100, 200, 300, 600, 1024)
HALF_WIDTHS = (4, 8, 10, 30, 33, 36, 65, 66, 100, 257, 300, 600, 1024)
TOLERANCES = (1e-1, 1e-2, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 1e-7)


def finish(device: Any) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def best(action: Callable[[], Any], device: Any, rounds: int = 5) -> float:
    """Best wall-clock time of an action, the device idle before and after."""
    action()
    times = []
    for _ in range(rounds):
        finish(device)
        start = time.perf_counter()
        action()
        finish(device)
        times.append(time.perf_counter() - start)
    return min(times)


def table(n: int, d: int, device: Any) -> tuple[Any, Any]:
    """Normal float32 features, and labels from a logistic model, 15 in 100 positive."""
    generator = torch.Generator(device=device).manual_seed(0)
    X = torch.empty((n, d), dtype=torch.float32, device=device)
    logit = torch.empty(n, dtype=torch.float32, device=device)
    beta = torch.randn(d, generator=generator, device=device) / (d / 4) ** 0.5
    for first in range(0, n, 10_000_000):
        rows = slice(first, first + 10_000_000)
        X[rows].normal_(generator=generator)
        noise = torch.rand(len(X[rows]), generator=generator, device=device).logit()
        logit[rows] = X[rows] @ beta + noise
    cut = logit[:1_000_000].quantile(0.85)
    return X, logit > cut


def ratio(limit: float | None, ours: float, theirs: float, **facts: Any) -> dict[str, Any]:
    got = ours / theirs
    within = {} if limit is None else {"limit": limit, "within": bool(got <= limit)}
    return {"ratio": round(got, 3), **within, "ours": ours, "theirs": theirs, **facts}


def size(X: Any) -> str:
    return f"{len(X):,} x {X.shape[1]}"


def evaluation_of_table(X: Any, y: Any) -> dict[str, Any]:
    return {size(X): evaluation(X, y)}


def evaluation(X: Any, y: Any) -> dict[str, Any]:
    """Value and gradient against a mere sum of X."""
    rows = OpenBlock(Block(0, X, y), View(np.array([False, True])))
    coef = np.random.default_rng(0).normal(size=X.shape[1]) / 10
    ours = best(lambda: rows.sum_tilted(coef, ((-1.0, 4.0),)), X.device, 20)
    theirs = best(lambda: X.sum(), X.device, 20)
    return ratio(1.6, ours, theirs, fused=rows.design.kernel)


def evaluation_at_widths(X: Any, y: Any) -> dict[str, Any]:
    """The same for other numbers of columns, types of entries, and tables that lie by columns."""
    found = {}
    bytes_read = 4e9 if X.is_cuda else 4e6
    cases = [(d, torch.float32, False) for d in WIDTHS]
    cases += [(d, torch.float32, True) for d in WIDTHS]
    cases += [(d, torch.float64, False) for d in (10, 30, 100, 300)]
    halves = torch.float16, torch.bfloat16
    cases += [(d, kind, order) for order in (False, True) for kind in halves for d in HALF_WIDTHS]
    for d, kind, by_column in cases:
        n = int(bytes_read / (d * kind.itemsize))
        shape = (d, n) if by_column else (n, d)
        other = torch.empty(shape, dtype=kind, device=X.device).normal_()
        positive = torch.rand(n, device=X.device) < 0.15
        name = f"{d} x {str(kind).removeprefix('torch.')}, by {'columns' if by_column else 'rows'}"
        found[name] = evaluation(other.T if by_column else other, positive)
        del other
    return found


def fit(X: Any, y: Any) -> dict[str, Any]:
    ranker = PNormPush(p=4)
    seconds = best(lambda: ranker.fit(X, y), X.device)
    facts = {"passes": getattr(ranker, "passes_", None), "objective": ranker.objective_}
    limit = 1.0 if len(X) >= 100_000_000 else None
    return {f"{size(X)}, seconds against 0.1": ratio(limit, seconds, 0.1, **facts)}


def agreement(X: Any, y: Any) -> dict[str, Any]:
    """Coefficients of the device against those of NumPy on the same rows."""
    X, y = X[:1_000_000], y[:1_000_000]
    there = PNormPush(p=4, tol=1e-10).fit(X, y)
    here = PNormPush(p=4, tol=1e-10).fit(X.cpu().numpy(), y.cpu().numpy())
    scale = float(np.max(np.abs(here.coef_)))
    scores = there.decision_function(X)
    return {
        "coefficients": float(np.max(np.abs(there.coef_ - here.coef_))) / scale,
        "intercept": float(abs(there.intercept_ - here.intercept_)[0]),
        "scores on": str(scores.device),
        "auc": auc(y, scores) - auc(y.cpu().numpy(), scores.cpu().numpy()),
    }


def loosest(fit: Callable[[float], Any], value: Callable[[Any], float]) -> float:
    """The loosest tolerance at which a fit comes within the gap of the best value."""
    least = value(fit(TOLERANCES[-1]))
    for tol in TOLERANCES:
        if value(fit(tol)) - least <= GAP * abs(least):
            return tol
    raise RuntimeError("no tolerance reaches the gap")


def logistic_objective(X: Any, y: Any, model: Any) -> float:
    coef = model.coef_[0].double()
    total = 0.0
    for first in range(0, len(X), 10_000_000):
        rows = slice(first, first + 10_000_000)
        z = (X[rows] @ coef.float()).double() + float(model.intercept_[0])
        total += float((torch.nn.functional.softplus(z) - y[rows] * z).sum())
    return (total + 0.5 * float(coef @ coef)) / len(X)


def against_scikit_learn(X: Any, y: Any) -> dict[str, Any]:
    """PNormPush against LogisticRegression(lbfgs) on the same tensors.

    At default tolerances (1e-6 and 1e-4), and with both at a relative gap of 1e-6.
    """
    labels = y.to(X.dtype)

    def push(tol: float) -> Any:
        return PNormPush(p=4, tol=tol).fit(X, y)

    def logistic(tol: float) -> Any:
        with config_context(array_api_dispatch=True):
            return LogisticRegression(solver="lbfgs", tol=tol, max_iter=1000).fit(X, labels)

    try:
        logistic(1e-1)
    except Exception as error:  # what it says is the result
        return {"scikit-learn refused": f"{type(error).__name__}: {str(error)[:500]}"}
    ours, theirs = (best(lambda fit=fit, tol=tol: fit(tol), X.device, 3)
                    for fit, tol in ((push, 1e-6), (logistic, 1e-4)))  # fmt: skip
    at_default = ratio(0.25, ours, theirs)
    tols = (
        loosest(push, lambda model: model.objective_),
        loosest(logistic, lambda model: logistic_objective(X, y, model)),
    )
    ours, theirs = (best(lambda fit=fit, tol=tol: fit(tol), X.device, 3)
                    for fit, tol in zip((push, logistic), tols, strict=True))  # fmt: skip
    at_gap = ratio(0.25, ours, theirs, tolerances=tols)
    return {
        f"{size(X)}, default tolerances": at_default,
        f"{size(X)}, equal relative gap": at_gap,
    }


def fits_at_widths(X: Any, y: Any) -> dict[str, Any]:
    """Fits against scikit-learn's at other numbers of columns, on 8 GB; where the host's time goes.

    A fit at its default tolerance, scikit-learn's at its own.
    """
    found: dict[str, Any] = {}
    bytes_held = 8e9 if X.is_cuda else 8e6
    for d in FIT_WIDTHS:
        rows = table(int(bytes_held / (4 * d)), d, X.device)
        ranker = PNormPush(p=4).fit_blocks(from_torch(*rows))
        found[f"{d} columns"] = {**default_fits(*rows), "passes": ranker.passes_}
        if PROFILES is not None:
            (PROFILES / f"host_{d}.txt").write_text(host_profile(ranker, rows))
        del rows
    return found


def host_profile(ranker: Any, rows: Any) -> str:
    """Where the host spends its time, waiting for the device included."""
    profile, text = cProfile.Profile(), io.StringIO()
    profile.runcall(ranker.fit, *rows)
    statistics = pstats.Stats(profile, stream=text)
    statistics.sort_stats("tottime").print_stats(25)
    statistics.sort_stats("cumtime").print_stats(60)
    return text.getvalue()


def default_fits(X: Any, y: Any) -> dict[str, Any]:
    """Both at their default tolerances, 1e-6 and 1e-4."""
    labels = y.to(X.dtype)

    def logistic() -> Any:
        with config_context(array_api_dispatch=True):
            return LogisticRegression(solver="lbfgs", tol=1e-4, max_iter=1000).fit(X, labels)

    ours = best(lambda: PNormPush(p=4).fit(X, y), X.device, 3)
    return ratio(0.25, ours, best(logistic, X.device, 3))


def push_loss(X: Any, y: Any) -> dict[str, Any]:
    """A step of PushLoss, forward and backward, against one of BCEWithLogitsLoss."""
    found = {}
    for n in (4_096, 65_536, 1_000_000, 10_000_000) if X.is_cuda else (4_096,):
        scores = torch.randn(n, device=X.device, requires_grad=True)
        targets = (torch.rand(n, device=X.device) < 0.1).float()

        def steps(loss: Any, scores: Any = scores, targets: Any = targets) -> Callable[[], None]:
            def run() -> None:
                for _ in range(20):
                    scores.grad = None
                    loss(scores, targets).backward()

            return run

        ours, theirs = (best(steps(loss), X.device, 10)
                        for loss in (PushLoss(4.0), torch.nn.BCEWithLogitsLoss()))  # fmt: skip
        found[f"{n:,} scores"] = ratio(1.3, ours / 20, theirs / 20)
    return found


def metrics_on_device(X: Any, y: Any) -> dict[str, Any]:
    scores = PNormPush(p=4).fit(X, y).decision_function(X)
    return {
        "auc": best(lambda: auc(y, scores), X.device, 3),
        "precision_at": best(lambda: precision_at(y, scores, 1000), X.device, 3),
    }


def sparse_tensors(X: Any, y: Any) -> dict[str, Any]:
    """Fits to sparse CSR tensors, in a tenth of the time of those to the same SciPy matrices."""
    few = 1 if X.is_cuda else 50
    tables = {
        "100,000 x 500 one-hot": (random_entries(100_000 // few, 500, 10, 1.0), 1e-6),
        "2,000,000 x 500 one-hot": (random_entries(2_000_000 // few, 500, 10, 1.0), 1e-6),
        "1,000,000 x 100,000 text": (random_entries(1_000_000 // few, 100_000, 30, 3.0), 1e-4),
    }
    found = {}
    for name, ((rows, labels), tol) in tables.items():
        parts = (rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data)
        tensors = (torch.as_tensor(part, device=X.device) for part in parts)
        there = torch.sparse_csr_tensor(*tensors, size=rows.shape, check_invariants=True)
        source = from_torch(there, labels)
        ranker = PNormPush(p=4, tol=tol)
        gpu = best(lambda ranker=ranker, source=source: ranker.fit_blocks(source), X.device, 3)
        reached, started = ranker.objective_, time.perf_counter()
        ranker.fit(rows, labels)
        host = time.perf_counter() - started
        facts = {"objectives": (reached, ranker.objective_), "iterations": ranker.n_iter_}
        found[name] = ratio(0.1, gpu, host, **facts)
    return found


def other_losses(X: Any, y: Any) -> dict[str, Any]:
    """Fits of the logistic loss and the squared hinge against one of the exponential."""
    found = {}
    sizes = ((200_000, ""), (2_000_000, ""), (20_000_000, ""), (2_000_000, " by columns"))
    for n, by in sizes if X.is_cuda else ((20_000, ""), (20_000, " by columns")):
        rows = table(n, 100, X.device)
        rows = (rows[0].T.contiguous().T, rows[1]) if by else rows
        seconds = {
            loss: best(lambda loss=loss, rows=rows: PNormPush(4, loss=loss).fit(*rows), X.device, 3)
            for loss in ("exponential", "logistic", "squared_hinge")
        }
        for loss in ("logistic", "squared_hinge"):
            found[f"{loss}, {n:,} x 100{by}"] = ratio(2.5, seconds[loss], seconds["exponential"])
        del rows
    return found


def random_entries(n: int, d: int, per_row: int, skew: float) -> tuple[Any, Any]:
    """Rows of ones: a category of each of several columns, or words of unequal frequency."""
    rng = np.random.default_rng(0)
    columns = rng.random((n, per_row)) ** skew
    if skew == 1.0:
        columns = (columns + np.arange(per_row)) / per_row
    columns = np.sort(np.minimum((d * columns).astype(np.int32), d - 1), axis=1).ravel()
    starts = np.arange(0, n * per_row + 1, per_row)
    rows = csr_array((np.ones(n * per_row, np.float32), columns, starts), shape=(n, d))
    rows.sum_duplicates()
    scores = rows @ rng.normal(scale=1.0 if skew == 1.0 else 0.3, size=d)
    return rows, scores + rng.logistic(size=n) > np.quantile(scores, 0.85)


def streamed_rows(X: Any, y: Any) -> dict[str, Any]:
    """A pass over rows of the host that go through the device, against a plain copy of them."""
    n, d = (80_000_000, 32) if X.is_cuda else (100_000, 32)
    rows = torch.empty((n, d), pin_memory=X.is_cuda)
    labels = torch.empty(n, dtype=torch.bool)
    for first in range(0, n, 1_000_000):
        part = torch.randn(min(1_000_000, n - first), d, device=X.device)
        rows[first : first + len(part)].copy_(part)
        noise = torch.rand(len(part), device=X.device).logit()
        labels[first : first + len(part)] = (part[:, :4].sum(1) + noise > 3).cpu()
    source = from_torch(rows, labels, device=X.device)
    places = [torch.empty((source.block_rows, d), device=X.device) for _ in range(2)]
    sweep = Evaluate(View(np.array([False, True])), ((-1.0, 4.0),))
    coef = np.random.default_rng(0).normal(size=d) / 10

    def copy() -> None:
        for place, part in enumerate(rows.split(source.block_rows)):
            places[place % 2][: len(part)].copy_(part, non_blocking=True)

    ours = best(lambda: source.map_reduce(sweep, coef), X.device, 3)
    found = ratio(1.1, ours, best(copy, X.device, 3), gigabytes=4e-9 * rows.numel())
    ranker = PNormPush(p=4)
    found["fit"] = best(lambda: ranker.fit_blocks(source), X.device, 1)
    return {size(rows): {**found, "passes": ranker.passes_}}


FIGURES: dict[str, Callable[[Any, Any], dict[str, Any]]] = {
    "evaluation against reading X": evaluation_of_table,
    "evaluation at other widths": evaluation_at_widths,
    "fit": fit,
    "agreement with the host": agreement,
    "fit against scikit-learn": against_scikit_learn,
    "fit at other widths": fits_at_widths,
    "other losses": other_losses,
    "sparse tensors": sparse_tensors,
    "rows of the host": streamed_rows,
    "PushLoss": push_loss,
    "metrics": metrics_on_device,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--features", type=int, default=32)
    parser.add_argument("--figures", nargs="+", choices=FIGURES, default=list(FIGURES))
    parser.add_argument("--keep", action="store_true", help="put the figures into gpu.json")
    parser.add_argument("--out", type=Path, help="folder for the report")
    parser.add_argument("--profiles", action="store_true", help="and for profiles of the host")
    parser.add_argument("--add", type=Path, nargs="+", help="put these reports into gpu.json")
    parser.add_argument("--cpu", action="store_true", help="run on the host; nothing is kept")
    options = parser.parse_args()
    if options.keep and options.cpu:
        parser.error("--keep: gpu.json has figures of GPUs alone")
    if options.profiles and options.out is None:
        parser.error("--profiles: --out says where to")
    if options.add:
        for path in options.add:
            say(f"{path}: {gpu_record.keep(json.loads(path.read_text()))} figures")
        return
    if not options.cpu and not torch.cuda.is_available():
        sys.exit("No GPU is there; --cpu runs on the host.")
    measure(options)


def measure(options: argparse.Namespace) -> None:
    global PROFILES
    device = torch.device("cpu" if options.cpu else "cuda")
    file = None
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        file = options.out / f"gpu_{time.strftime('%Y%m%d_%H%M%S')}.json"
        PROFILES = options.out if options.profiles else None
    say(f"making {options.rows} x {options.features} float32 on {device}")
    X, y = table(options.rows, options.features, device)
    report: dict[str, Any] = {
        "rows": options.rows,
        "features": options.features,
        "device": "host" if options.cpu else torch.cuda.get_device_name(device),
        "toprank": toprank.__version__,
        "torch": torch.__version__,
        "date": str(date.today()),
        "code": gpu_record.code(),
    }
    for name in options.figures:
        say(name)
        try:
            report[name] = FIGURES[name](X, y)
        except Exception as error:  # the other figures are worth having all the same
            report[name] = {"failed": f"{type(error).__name__}: {str(error)[:500]}"}
        say(json.dumps(report[name]))
        if file is not None:
            file.write_text(json.dumps(report, indent=2))
    if options.keep:
        say(f"{gpu_record.keep(report)} figures kept")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
