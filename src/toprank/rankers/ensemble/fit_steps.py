"""The steps of a fit: rows and members checked, folds, weights, the last fits."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from numbers import Integral
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import check_random_state

from toprank._numerics import FloatArray
from toprank.blocks import Workers
from toprank.folds import Fold, Scoring, TimeOrderedSplit, folds_of
from toprank.folds.splits import check_fold_rows
from toprank.pairs import Rows, check_rows, check_times, group_labels
from toprank.pairs.door import FOR_WORDS
from toprank.rankers.callbacks import tell_step
from toprank.rankers.common import warn_caller
from toprank.rankers.ensemble.combination import CombinationChoice
from toprank.rankers.ensemble.out_of_fold import (
    Progress,
    Run,
    fault_of,
    of_one_fit,
    one_thread,
    reason_of,
    try_group,
)
from toprank.rankers.ensemble.plan import EFFORTS, Member, TableShape, auto_folds, auto_members
from toprank.rankers.ensemble.scores import EnsembleScores
from toprank.rankers.ensemble.table import MemberTable
from toprank.rankers.ensemble.weighing import make_table, weigh

if TYPE_CHECKING:
    from toprank._arrays import TableLike
    from toprank.folds.splits import CrossValidation
    from toprank.inference import Interval


#: The members fitted to all rows, by name; of those that failed, what they raised.
LastFits = dict[str, BaseEstimator | Exception]


@dataclass(frozen=True)
class EnsembleRows(Rows):
    """Rows, and when each was seen."""

    time: np.ndarray | None = None


class EnsembleSteps(EnsembleScores):
    """What every fit of an ensemble is made of, to rows in memory and to blocks."""

    p: float | str
    quality: str
    metric: str | Callable[..., float]
    metric_kwargs: dict[str, object] | None
    cv: CrossValidation | str
    level: float
    categorical_features: object
    clip_tails: bool
    random_state: int | np.random.Generator | None
    verbose: int
    on_error: str
    test_size: float | None
    classes_: np.ndarray
    dropped_: dict[str, str]
    choice_: CombinationChoice
    combination_: str
    p_: float | None
    optimality_gap_: float
    oof_scores_: FloatArray
    oof_decision_: FloatArray
    member_table_: MemberTable
    score_interval_: Interval | None
    _present: NDArray[np.intp]
    _n_rows: int
    _labels: np.ndarray
    _fit_weight: FloatArray | None
    _fit_groups: np.ndarray | None
    _folds: list[Fold]
    _ordered: bool
    _runs: dict[str, Run]
    _templates: list[Member]

    def _check_fit(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        groups: object,
        time: ArrayLike | None,
    ) -> EnsembleRows:
        missing = self._allows_missing()
        checked, classes = check_rows(self, X, y, sample_weight, missing=missing, frames=True)
        self.classes_ = classes
        n = len(checked)
        rows = EnsembleRows(
            checked.X,
            classes[checked.y.astype(np.intp)],
            checked.weight,
            group_labels(groups, n),
            None if time is None else check_times(time, n),
        )
        self._present, self._n_rows = rows.places_present, n
        self._fit_weight, self._fit_groups = rows.weight, rows.groups
        rows = rows.present()
        self._labels = rows.y
        return rows

    def _members(self, table: TableShape) -> list[Member]:
        if not isinstance(self.estimators, str):
            return check_members(self.estimators)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return auto_members(self.quality, self.categorical_features, seed, self.clip_tails, table)

    def _single(self, estimator: BaseEstimator) -> BaseEstimator:
        """A member as it is fitted: with one thread where several run at a time."""
        return one_thread(estimator) if Workers(self.n_jobs).n_jobs > 1 else estimator

    def _make_folds(self, rows: EnsembleRows) -> list[Fold]:
        cv: Any = auto_folds(self.quality, len(rows)) if isinstance(self.cv, str) else self.cv
        self._ordered = rows.time is not None or isinstance(cv, TimeOrderedSplit)
        if not isinstance(cv, Integral) and not hasattr(cv, "split"):
            cv = list(cv)
            check_fold_rows(cv, self._n_rows)
            place = np.full(self._n_rows, -1)
            place[self._present] = np.arange(len(self._present))
            given = [tuple(place[np.asarray(part)] for part in fold) for fold in cv]
            cv = [tuple(part[part >= 0] for part in fold) for fold in given]
        drawn = self._drawn_rows(rows)
        if drawn is None:
            return folds_of(cv, rows.y, groups=rows.groups, time=rows.time)
        part = EnsembleRows(
            None, rows.y[drawn], None, _take(rows.groups, drawn), _take(rows.time, drawn)
        )
        folds = folds_of(cv, part.y, groups=part.groups, time=part.time)
        return [(drawn[train], drawn[test]) for train, test in folds]

    def _scoring(self) -> Scoring:
        return Scoring(self.metric, self.metric_kwargs, "metric")

    def _check_metric(self, rows: EnsembleRows) -> None:
        """Refuse a metric that the folds cannot be scored by, before anything is fitted to them."""
        positive = np.asarray(rows.y == self.classes_[1])
        self._scoring().check(self._folds, positive, rows.weight, scores_alone=True)

    def _drawn_rows(self, rows: EnsembleRows) -> NDArray[np.intp] | None:
        """The rows that the folds are made of, class by class; None for all of them."""
        most = EFFORTS[self.quality].weighed
        if not isinstance(self.cv, str) or len(rows) <= most:
            return None
        splitter = StratifiedShuffleSplit(
            1, train_size=most, random_state=check_random_state(self.random_state).randint(2**31)
        )
        return np.sort(next(splitter.split(rows.y, rows.y))[0])

    def _teller(self, progress: Progress | None) -> Progress:
        start = clock.perf_counter()

        def tell(step: str, done: int, total: int) -> None:
            if self.verbose:
                seconds = clock.perf_counter() - start
                print(f"[PushEnsemble] {done}/{total}  {seconds:7.1f} s  {step}", flush=True)
            if progress is not None:
                progress(step, done, total)
            tell_step(self, step)

        return tell

    def _keep_runs(self, runs: list[Run], told: Collection[str]) -> None:
        """Keep what became of the members, and warn of those that failed and are not told of."""
        there = [run for run in runs if not run.dropped]
        if not there:
            raise ValueError(f"No member could be fitted{_reasons(runs)}")
        self._runs = {run.name: run for run in runs}
        self.dropped_ = {run.name: run.dropped for run in runs if run.dropped}
        for run in runs:
            if run.error is not None and run.name not in told:
                warn_caller(f"The member {run.name!r} was dropped: it {run.dropped}.", UserWarning)
        self.oof_members_ = [run.name for run in there]
        self.oof_scores_ = np.full((self._n_rows, len(there)), np.nan)
        self.oof_scores_[self._present] = np.column_stack([run.mean_scores for run in there])

    def _combine(self, rows: EnsembleRows, runs: list[Run]) -> None:
        """Weigh the members by their scores of rows that they have not seen."""
        weighed = weigh(
            Rows(
                self.oof_scores_[self._present],
                np.asarray(rows.y == self.classes_[1]),
                rows.weight,
                rows.groups,
            ),
            self.oof_members_,
            self._folds,
            self._scoring(),
            EFFORTS[self.quality].combinations,
            p=None if isinstance(self.p, str) else float(self.p),
            ordered=self._ordered,
            level=self.level,
            least=EFFORTS[self.quality].least_weight if isinstance(self.estimators, str) else 0.0,
        )
        self.choice_, self.weights_ = weighed.choice, weighed.weights
        self.combination_, self.p_ = weighed.chosen.name, weighed.chosen.p
        self._scale, self._combiner = weighed.scale, weighed.fitted
        self._columns_used = weighed.chosen.columns
        self._slope = float(getattr(weighed.fitted, "_slope", 1.0))
        self.optimality_gap_ = float(weighed.fitted.optimality_gap_)
        self.score_interval_ = weighed.interval
        self.oof_decision_ = np.full(self._n_rows, np.nan)
        scored = np.flatnonzero(~np.isnan(self.oof_scores_).any(axis=1))
        columns = weighed.scale.make(self.oof_scores_[scored])
        self.oof_decision_[scored] = weighed.chosen.scores(weighed.fitted, columns)
        self.member_table_ = make_table(weighed, runs)

    def _weighed(self, members: list[Member]) -> list[Member]:
        return [(name, one) for name, one in members if self.weights_.get(name, 0.0) > 0]

    def _weigh_and_fit(
        self,
        rows: EnsembleRows,
        runs: list[Run],
        members: list[Member],
        fit_last: Callable[[list[Member]], LastFits],
        known: Mapping[str, BaseEstimator] = MappingProxyType({}),
        told: Collection[str] = (),
    ) -> None:
        """Weigh the members, and fit those that have a weight to all rows but for those known.

        Of those that fail there ``on_error`` decides; without them the others are weighed again.
        """
        made = dict(known)
        while True:
            self._keep_runs(runs, told)
            self._combine(rows, runs)
            wanted, told = self._weighed(members), [*told, *self.dropped_]
            found = fit_last([(name, one) for name, one in wanted if name not in made])
            failed = {name: one for name, one in found.items() if isinstance(one, Exception)}
            made |= {name: one for name, one in found.items() if name not in failed}
            if not failed:
                break
            runs = [self._without(run, failed.get(run.name)) for run in runs]
        self.members_ = [(name, made[name]) for name, _ in wanted]
        self._templates = members

    def _without(self, run: Run, error: Exception | None) -> Run:
        """Return the run of a member, dropped where its fit to all rows has failed."""
        if error is None:
            return run
        fault = fault_of(run.name, " on the fit to all rows", error, self.on_error)
        return replace(run, dropped=fault, error=error)

    def _fit_last(self, rows: EnsembleRows, workers: Workers, wanted: list[Member]) -> LastFits:
        groups = of_one_fit([(name, self._single(one)) for name, one in wanted])
        return dict(chain.from_iterable(workers.map(partial(try_group, rows=rows), groups)))


def _reasons(runs: list[Run]) -> str:
    """Why every member failed, each reason once."""
    names: dict[str, list[str]] = {}
    for run in runs:
        why = run.dropped if run.error is None else reason_of(run.error)
        names.setdefault(why, []).append(run.name)
    told = "; ".join(f"{', '.join(some)}: {why}" for why, some in names.items())
    way_out = f" {FOR_WORDS}" if "could not convert string" in told else ""
    if len(names) == 1:
        return f": {next(iter(names)).removesuffix('.')}.{way_out}"
    return f" ({told}).{way_out}"


def _take(values: np.ndarray | None, rows: NDArray[np.intp]) -> np.ndarray | None:
    return None if values is None else values[rows]


def check_members(estimators: Any) -> list[Member]:
    """Return the members as given; ValueError saying what is wrong with them."""
    expected = "expected a list of (name, estimator), such as [('logistic', LogisticRegression())]"
    members = list(estimators)
    if not members:
        raise ValueError(f"estimators is empty; {expected}, or 'auto'.")
    for one in members:
        if not (isinstance(one, (list, tuple)) and len(one) == 2 and isinstance(one[0], str)):
            raise ValueError(f"estimators holds {one!r}; {expected}.")
        if not hasattr(one[1], "fit"):
            raise ValueError(f"The member {one[0]!r} is a {type(one[1]).__name__}; {expected}.")
    names = [name for name, _ in members]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"estimators names {twice[0]!r} twice; give each member its own name.")
    return [(name, estimator) for name, estimator in members]
