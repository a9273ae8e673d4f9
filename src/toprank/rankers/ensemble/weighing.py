"""From out-of-fold scores to weights: the choice of a combination, its interval, its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from toprank._numerics import FloatArray
from toprank.folds import Fold, Scoring
from toprank.pairs import Rows
from toprank.rankers.common import warn_caller
from toprank.rankers.ensemble.combination import (
    CombinationCandidate,
    CombinationChoice,
    Combiner,
    ScoreColumns,
    combination_folds,
    make_candidates,
    tested_parts,
)
from toprank.rankers.ensemble.out_of_fold import Run
from toprank.rankers.ensemble.table import MemberRow, MemberTable

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from toprank.inference import Interval

#: With fewer positives than these, the usual push has weights that are means over halves.
_FEW_POSITIVES = 100


@dataclass(frozen=True)
class Weighing:
    """Members, weighed.

    Attributes
    ----------
    scale : ScoreColumns
        How scores become the columns that are weighed.
    choice : CombinationChoice
    chosen : CombinationCandidate
    fitted : estimator
        The ranker of the columns.
    weights : dict of str to float
    interval : Interval or None
        The metric of rows scored by members and weights that have not seen them.
    combiner : Combiner
    """

    scale: ScoreColumns
    choice: CombinationChoice
    chosen: CombinationCandidate
    fitted: BaseEstimator
    weights: dict[str, float]
    interval: Interval | None
    combiner: Combiner


def weigh(
    rows: Rows,
    names: Sequence[str],
    folds: Sequence[Fold],
    scoring: Scoring,
    combinations: Sequence[tuple[float | None, float]],
    *,
    p: float | None,
    ordered: bool,
    level: float,
    least: float = 0.0,
) -> Weighing:
    """Weigh members by their out-of-fold scores, the columns of ``rows``; NaN where there is none.

    Rows that no fold tested, the earliest in the order of time, do not count. Members that weigh
    less than the share ``least`` of the heaviest are left out.
    """
    scored = np.flatnonzero(~np.isnan(rows.X).any(axis=1))
    part = rows.take(scored)
    scale = ScoreColumns.learn(part.X, part.weight)
    table = Rows(scale.make(part.X), part.y, part.weight, part.groups)
    tests = tested_parts(folds, scored)
    combiner = Combiner(table, combination_folds(tests, ordered), scoring, tests)
    counts = part.counts[part.y]
    few = max(len(counts), counts.sum()) < _FEW_POSITIVES  # weights that sum to one are no counts
    candidates = make_candidates(names, combinations, p, averaged=bool(few))
    choice, crossed = combiner.choose(candidates)
    chosen = candidates[choice.chosen_index]
    fitted = combiner.fit(chosen)
    weights = _weights(chosen, fitted, names)
    heaviest = max(weights.values())
    light = [j for j in chosen.columns if 0 < weights[names[j]] < least * heaviest]
    if light:
        for j in light:
            chosen = chosen.without(j)
        fitted = combiner.fit(chosen)
        weights = _weights(chosen, fitted, names)
    interval = measure_interval(scoring, table, crossed, level)
    return Weighing(scale, choice, chosen, fitted, weights, interval, combiner)


def _weights(
    chosen: CombinationCandidate, fitted: BaseEstimator, names: Sequence[str]
) -> dict[str, float]:
    weights = np.zeros(len(names))
    weights[list(chosen.columns)] = fitted.coef_.reshape(-1)
    if not np.any(weights > 0):
        warn_caller(
            "No member ranks better than chance on rows it has not seen, and all get the same "
            "weight. Check that the labels belong to these rows.",
            UserWarning,
        )
        fitted.coef_[...], fitted.optimality_gap_ = 1.0, np.inf
        weights[list(chosen.columns)] = 1.0
    return dict(zip(names, weights.tolist(), strict=True))


def measure_interval(
    scoring: Scoring, rows: Rows, scores: FloatArray, level: float
) -> Interval | None:
    """Return the metric of rows with its interval; None where there are too few for one."""
    known = np.flatnonzero(np.isfinite(scores))
    if len(known) == 0:
        return None
    part = rows.take(known)
    try:
        return scoring.interval(part.y, scores[known], part.weight, part.groups, level)
    except ValueError:  # too few rows of a class
        return None


def make_table(weighed: Weighing, runs: Sequence[Run]) -> MemberTable:
    """Return what each member brings, the heaviest first."""
    names = list(weighed.weights)
    used = [name for name in names if weighed.weights[name] > 0]
    found = weighed.combiner.losses_without(weighed.chosen, map(names.index, used))
    losses = dict(zip(used, found, strict=True))
    made = [_table_row(weighed, run, losses.get(run.name, 0.0)) for run in runs]
    made.sort(key=lambda row: (bool(row.note), -row.weight))
    return MemberTable(tuple(made), weighed.choice.metric)


def _table_row(weighed: Weighing, run: Run, loss: float) -> MemberRow:
    choice, nan, seconds = weighed.choice, float("nan"), float(np.sum(run.seconds))
    if run.dropped:
        return MemberRow(run.name, 0.0, nan, nan, seconds, run.dropped)
    weight = weighed.weights[run.name]
    if choice.fold_scores.shape[1] == 0:
        return MemberRow(run.name, weight, nan, nan, seconds)
    own = float(choice.fold_scores.mean(axis=1)[choice.names.index(f"{run.name} alone")])
    return MemberRow(run.name, weight, own, loss, seconds)
