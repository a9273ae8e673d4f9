"""One cell: a ranker fitted to one split of one set, in a process of its own.

The process is forked with the data in memory, so that its peak of resident memory above what it
held before the fit is the ranker's, and so that a ranker that crashes or never ends takes only
its own cell with it. Seconds are those that the processor spent in ``fit`` alone, on one thread:
they do not depend on what else the machine was doing.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from toprank.metrics import auc, average_precision, partial_auc, positives_at_top, precision_at

from .data import Data
from .rankers import Ranker, scores_of

#: How much longer than its processor time a cell may take on a busy machine.
_PATIENCE = 50
#: Rows of each class in the fit that goes before the timed one.
_FEW = 20
#: What is measured, by its name in the tables.
METRICS: dict[str, Callable[[Any, Any], float]] = {
    "precision in the first 1%": lambda y, s: precision_at(y, s, 0.01),
    "precision in the first 5%": lambda y, s: precision_at(y, s, 0.05),
    "precision at the number of positives": lambda y, s: precision_at(y, s, int(y.sum())),
    "average precision": average_precision,
    "AUC up to 5% false positives": lambda y, s: partial_auc(y, s, max_fpr=0.05),
    "positives above every negative": positives_at_top,
    "AUC": auc,
}


@dataclass(frozen=True)
class Outcome:
    """Values that every run repeats, costs that are the machine's, settings that were chosen."""

    values: dict[str, Any]
    costs: dict[str, Any]
    settings: dict[str, Any] | None = None


def measured(ranker: Ranker, data: Data, train: Any, test: Any, limit: float) -> Outcome:
    """Fit and measure in a forked process; a failure is an outcome too."""
    if ranker.longest is not None and len(train) > ranker.longest:
        return failure(f"takes at most {ranker.longest} rows in one list")
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_work, args=(sender, ranker, data, train, test, limit))
    with warnings.catch_warnings():  # newer Pythons warn of threads, none of which is ours
        warnings.simplefilter("ignore", DeprecationWarning)
        child.start()
    sender.close()
    try:
        if not receiver.poll(_PATIENCE * limit):
            return failure(f"no result in {_PATIENCE * limit:g} s")
        return receiver.recv()
    except EOFError:
        child.join()
        if child.exitcode == -signal.SIGXCPU:
            return failure(f"no result in {limit:g} s of processor time")
        return failure(f"the process ended with exit code {child.exitcode}")
    finally:
        child.kill()
        child.join()
        receiver.close()


def failure(why: str) -> Outcome:
    return Outcome({"failed": why}, {})


def _work(sender: Any, ranker: Ranker, data: Data, train: Any, test: Any, limit: float) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (ceil(limit), ceil(limit) + 5))
    try:
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            sender.send(fit_and_measure(ranker, data, train, test))
    except Exception as error:  # whatever a library raises is its row in the table
        line = (str(error).splitlines() or [""])[0][:200]
        sender.send(failure(f"{type(error).__name__}: {line}"))
    finally:
        sender.close()


def fit_and_measure(ranker: Ranker, data: Data, train: Any, test: Any) -> Outcome:
    X, y = data.X[train], data.y[train]
    _warm_up(ranker, X, y)
    model = ranker.make()
    before = _forget_peak()
    start = process_time()
    model.fit(X, y)
    seconds = process_time() - start
    peak = _peak() - before
    scores = scores_of(model, data.X[test])
    values: dict[str, Any]
    if np.all(np.isfinite(scores)):
        values = {name: float(metric(data.y[test], scores)) for name, metric in METRICS.items()}
    else:
        values = {"failed": "scores that are not finite"}
    found = {"fit_s": round(seconds, 4), "peak_mb": round(max(0.0, peak), 1)}
    return Outcome(values, found, chosen_settings(model))


def chosen_settings(model: Any) -> dict[str, Any] | None:
    """The settings that a search of scikit-learn took, plain numbers; None where none was made."""
    search = model.steps[-1][1] if hasattr(model, "steps") else model
    if not hasattr(search, "best_params_"):
        return None
    chosen = sorted(search.best_params_.items())
    return {name: one.item() if isinstance(one, np.generic) else one for name, one in chosen}


def _warm_up(ranker: Ranker, X: Any, y: Any) -> None:
    """Fit a few rows first where a library is loaded by its first use: that is not training."""
    if ranker.library in ("sklearn", "toprank"):  # in memory before the fork
        return
    few = np.concatenate([np.flatnonzero(y == label)[:_FEW] for label in (0, 1)])
    try:
        (ranker.loader or ranker.make)().fit(X[few], y[few])
    except Exception:  # too few for it; it will have its say on all rows
        return


def _forget_peak() -> float:
    """Reset the high-water mark where the system allows it; megabytes held now."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass
    return _status("VmRSS")


def _peak() -> float:
    peak = _status("VmHWM")
    return peak or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _status(what: str) -> float:
    try:
        lines = Path(f"/proc/{os.getpid()}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) / 1024 for line in lines if line.startswith(what)), 0.0)
