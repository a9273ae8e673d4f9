"""Scores of rows by members that were fitted without them."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from toprank._arrays import IntArray, TableLike
from toprank._numerics import FloatArray
from toprank.blocks import Workers, go_on
from toprank.folds import Fold, WeightedFit
from toprank.pairs import Rows
from toprank.rankers.ensemble.plan import Member

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


#: Called as progress(step, done, total).
Progress = Callable[[str, int, int], None]
#: What the name of a smoothed member ends in.
_SMOOTHED = ", smoothed"
#: Where members give probabilities only: those at 0 and 1 count as this close to it.
_CLOSEST = 1e-4
#: Rows that a member scores after its fit to all of them, at most: whether it can.
TRIED = 100


class MemberError(ValueError):
    """A member of an ensemble that could not be fitted or gave no scores."""


def member_scores(model: object, X: TableLike) -> FloatArray:
    """Return the scores of a fitted member: its decision values, or its log-odds."""
    if hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X), dtype=np.float64)
    elif hasattr(model, "predict_proba"):
        share = np.asarray(model.predict_proba(X), dtype=np.float64)[:, 1]
        scores = np.log(share + _CLOSEST) - np.log(1.0 - share + _CLOSEST)
    else:
        raise MemberError("it has neither decision_function nor predict_proba")
    check_scores(scores)
    return scores


def check_scores(scores: FloatArray) -> None:
    """Refuse scores that no weight can be given to."""
    if scores.ndim != 1:
        raise MemberError(f"its scores have shape {scores.shape}, expected one per row")
    if not np.all(np.isfinite(scores)):
        bad = np.count_nonzero(~np.isfinite(scores))
        raise MemberError(f"{bad} of its {len(scores)} scores are NaN or infinite")


def reason_of(error: Exception) -> str:
    """What a member says of why it failed, in a line."""
    why = (str(error).splitlines() or [""])[0]
    return why if isinstance(error, MemberError) else f"{type(error).__name__}: {why}"


def fault_of(name: str, where: str, error: Exception, on_error: str) -> str:
    """Return what became of a member that failed; ValueError where that is to end the fit."""
    fault = f"failed{where}: {reason_of(error)}"
    if on_error == "raise":
        raise ValueError(
            f"The member {name!r} {fault}. Put it right, leave it out of estimators, or use "
            'on_error="warn" to go on without it.'
        ) from error
    return fault


def fit_member(estimator: object, rows: Rows) -> BaseEstimator:
    """Fit a clone of a member to rows, with their weights where there are some."""
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    if rows.weight is not None and not has_fit_parameter(last, "sample_weight"):
        raise MemberError("its fit takes no sample_weight, and there are weights")
    return WeightedFit(estimator, None, rows.weight is not None).fit(rows)


def for_all_rows(estimator: BaseEstimator) -> BaseEstimator:
    """Return a member as it is fitted after the folds: with more trees, where it says how many.

    That fit is one of several, so more trees cost little there, and it is the one that scores.
    Other smoothings have been tried by then.
    """
    trees, other = getattr(estimator, "last_estimators", None), {}
    if trees is not None:
        other["n_estimators"] = trees
    if getattr(estimator, "smoothings", ()):
        other["smoothings"] = ()
    return clone(estimator).set_params(**other) if other else estimator


def _times_the_trees(estimator: BaseEstimator) -> float:
    trees = getattr(estimator, "last_estimators", None)
    return 1.0 if trees is None else trees / estimator.n_estimators


def _tried_scores(model: BaseEstimator, X: TableLike) -> FloatArray:
    """The scores of a member, and one more column per smoothing that it tries."""
    if getattr(model, "smoothings", ()):
        return np.asarray(model.smoothed_scores(X))
    return member_scores(model, X)[:, None]


def one_thread(estimator: object) -> BaseEstimator:
    """Return a clone that uses one thread, wherever it says how many.

    None is one thread to scikit-learn's estimators, some of which warn of any number, and all
    threads to LightGBM's and XGBoost's.
    """
    single = clone(estimator)
    given = single.get_params()
    names = [name for name in given if name.split("__")[-1] == "n_jobs"]
    for name in names:
        owner = given.get(name.rpartition("__")[0], single)
        if given[name] is not None or not type(owner).__module__.startswith("sklearn."):
            single.set_params(**{name: 1})
    return single


@dataclass
class Run:
    """What became of one member: its scores out of fold, its seconds, why it was dropped.

    ``last`` is how many times the work of a fold its last fit is by its trees, rows apart.
    ``smoothed`` has the scores of a member that tries smoothings, one column per smoothing.
    ``member`` is the estimator to fit to all rows, where the scores came from another's folds.
    """

    name: str
    scores: FloatArray
    hits: FloatArray
    seconds: list[float] = field(default_factory=list)
    dropped: str = ""
    error: Exception | None = None
    last: float = 1.0
    smoothed: FloatArray | None = None
    member: BaseEstimator | None = None

    @classmethod
    def start(cls, name: str, estimator: BaseEstimator, n: int) -> Run:
        """Return a run without scores yet."""
        run = cls(name, np.zeros(n), np.zeros(n), last=_times_the_trees(estimator))
        if tried := len(getattr(estimator, "smoothings", ())):
            run.smoothed = np.zeros((n, tried))
        return run

    @property
    def mean_scores(self) -> FloatArray:
        """The mean score of each row over the folds that tested it; NaN where none did."""
        with np.errstate(invalid="ignore"):
            return np.where(self.hits > 0, self.scores / self.hits, np.nan)

    def best_smoothed(self, rows: Rows, estimator: BaseEstimator) -> Run:
        """Return the run of the same trees at the smoothing of least log loss.

        Not by a metric of lists: what the shares of leaves are worth as probabilities is known
        from all rows, and hangs less on the few at the top.
        """
        assert self.smoothed is not None
        tested = np.flatnonzero(self.hits > 0)
        odds = self.smoothed[tested] / self.hits[tested, None]
        sign = np.where(rows.y[tested] == np.unique(rows.y)[-1], 1.0, -1.0)
        weight = None if rows.weight is None else rows.weight[tested]
        losses = np.average(np.logaddexp(0.0, -sign[:, None] * odds), axis=0, weights=weight)
        best = int(np.argmin(losses))
        taken = {"shrinkage": estimator.smoothings[best], "smoothings": ()}
        member = clone(estimator).set_params(**taken)
        scores = self.smoothed[:, best]
        return Run(f"{self.name}{_SMOOTHED}", scores, self.hits, last=self.last, member=member)


def smoothed_members(runs: Sequence[Run]) -> list[Member]:
    """Return the members that came out of the folds of others."""
    return [(run.name, run.member) for run in runs if run.member is not None]


def of_one_fit(members: Sequence[Member]) -> list[list[Member]]:
    """Return the members in groups: a forest and the same one smoothed need one fit."""
    groups: dict[str, list[Member]] = {}
    for name, one in members:
        forest = name.removesuffix(_SMOOTHED) if hasattr(one, "shrinkage") else name
        groups.setdefault(forest, []).append((name, one))
    return list(groups.values())


def fit_group(members: Sequence[Member], rows: Rows) -> list[Member]:
    """Fit members that need one fit to all rows."""
    names, (first, *others) = zip(*members, strict=True)
    template = for_all_rows(first)
    if not others:
        return [(names[0], fit_member(template, rows))]
    smoothings = tuple(one.shrinkage for one in others)
    model = fit_member(clone(template).set_params(smoothings=smoothings), rows)
    return list(zip(names, model.separate_smoothings(), strict=True))


def try_group(members: Sequence[Member], rows: Rows) -> list[tuple[str, BaseEstimator | Exception]]:
    """Fit members that need one fit to all rows, and score some, or say what they raise."""
    some = rows.take(np.arange(min(TRIED, len(rows)))).X
    try:
        fitted = fit_group(members, rows)
        for _, model in fitted:
            member_scores(model, some)
    except Exception as error:  # whatever a member raises is its own
        return [(name, error) for name, _ in members]
    return list(fitted)


class Budget:
    """The seconds there are, and whether another member fits in."""

    def __init__(self, seconds: float | None, n_jobs: int):
        self.seconds = seconds
        self.n_jobs = n_jobs
        self.start = time.perf_counter()
        self.promised = 0.0  # the last fits of the members that are in

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.start

    def allows(self, run: Run, n_folds: int) -> bool:
        """Whether the folds that are left and the last fit end in time, by those that are done."""
        if self.seconds is None:
            return True
        each = float(np.mean(run.seconds)) if run.seconds else 0.0
        left = each * (n_folds - len(run.seconds)) + self.promised + self._last_fit(run)
        return self.elapsed + left / self.n_jobs <= self.seconds

    def promise(self, run: Run) -> None:
        """Set time aside for the last fit of a member."""
        self.promised += self._last_fit(run)

    def _last_fit(self, run: Run) -> float:
        return 1.3 * run.last * float(np.mean(run.seconds)) if run.seconds else 0.0


class OutOfFold:
    """Fits members to folds, and keeps what each says of the rows it has not seen."""

    def __init__(
        self,
        rows: Rows,
        folds: Sequence[Fold],
        workers: Workers,
        budget: Budget,
        progress: Progress,
        on_error: str,
    ):
        self.rows, self.folds = rows, folds
        self.workers, self.budget = workers, budget
        self.progress, self.on_error = progress, on_error
        self._lock = threading.Lock()
        self._done = 0

    def run(self, members: Sequence[Member]) -> list[Run]:
        """Return one run per member, in their order, then those of smoothed ones.

        The first is never short of time.
        """
        n, self._total = len(self.rows), len(members) * len(self.folds)
        runs = [Run.start(name, one, n) for name, one in members]
        tasks = [(i, k) for i in range(len(members)) for k in range(len(self.folds))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit to all rows says the same, once
            work = self.workers.map(lambda task: self._one(members, runs, *task), tasks)
            for _ in work:
                pass
        pairs = zip(runs, (one for _, one in members), strict=True)
        whole = [(run, one) for run, one in pairs if run.smoothed is not None and not run.dropped]
        return runs + [run.best_smoothed(self.rows, one) for run, one in whole]

    def _one(self, members: Sequence[Member], runs: list[Run], i: int, k: int) -> None:
        go_on()
        run, (train, test) = runs[i], self.folds[k]
        with self._lock:
            if not run.dropped and i > 0 and not self.budget.allows(run, len(self.folds)):
                run.dropped = "left out: max_seconds leaves no time for it"
            skipped = bool(run.dropped)
        if not skipped:
            start = time.perf_counter()
            try:
                model = fit_member(members[i][1], self.rows.take(train))
                scores = _tried_scores(model, self.rows.take(test).X)
                self._keep(run, test, scores, time.perf_counter() - start)
            except Exception as error:  # whatever a member raises is its own
                self._drop(run, k, error)
        with self._lock:
            self._done += 1
            self.progress(f"{run.name}, fold {k + 1} of {len(self.folds)}", self._done, self._total)

    def _keep(self, run: Run, test: IntArray, scores: FloatArray, seconds: float) -> None:
        with self._lock:
            np.add.at(run.scores, test, scores[:, 0])
            np.add.at(run.hits, test, 1.0)
            if run.smoothed is not None:
                np.add.at(run.smoothed, test, scores[:, 1:])
            run.seconds.append(seconds)
            if len(run.seconds) == len(self.folds):
                self.budget.promise(run)

    def _drop(self, run: Run, k: int, error: Exception) -> None:
        fault = fault_of(run.name, f" on fold {k + 1}", error, self.on_error)
        with self._lock:
            run.dropped, run.error = fault, error
