"""What is special about ensembles among the rankers of tables: effort, folds, unseen rows."""

from __future__ import annotations

from typing import Any, TypedDict

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import StratifiedShuffleSplit

from toprank._numerics import FloatArray
from toprank.models.errors import ModelError
from toprank.models.rows import TrainingRows
from toprank.models.unseen import UnseenScores, spread_between_folds
from toprank.rankers import PushEnsemble
from toprank.rankers.ensemble.plan import EFFORTS, auto_folds

#: Rows drawn at random whose scores stand for those of all.
_ENOUGH = 20_000
#: Rows at most of the first fit of an ensemble: what it costs is twice the last fit otherwise.
_MOST_MEASURED_BY = 250_000


class Effort(TypedDict):
    """How much time a fit may take."""

    quality: str
    max_seconds: float | None


def check_effort(quality: str, max_seconds: float | None) -> Effort:
    """Return the effort that is asked for; ModelError if there is no such."""
    if quality not in EFFORTS:
        raise ModelError(f"quality={quality!r}: expected one of {', '.join(EFFORTS)}.")
    if max_seconds is not None and not max_seconds > 0:
        raise ModelError(f"max_seconds={max_seconds!r}: expected a positive number of seconds.")
    return {"quality": quality, "max_seconds": max_seconds}


def unseen_by_members(ranker: BaseEstimator) -> UnseenScores | None:
    """The scores of rows by members that have not seen them, where an ensemble has enough."""
    if not isinstance(ranker, PushEnsemble):
        return None
    known = np.flatnonzero(np.isfinite(ranker.oof_decision_))
    if len(known) < min(_ENOUGH, len(ranker.oof_decision_)):
        return None
    fold = np.empty(len(ranker.oof_decision_), dtype=np.intp)
    for number, (_, test) in enumerate(ranker._folds):
        fold[test] = number
    scores, fold = ranker.oof_decision_[known], fold[known]
    return UnseenScores(scores, "out of fold", spread_between_folds(scores, fold), known)


def rows_to_measure_by(weighs_members: bool, rows: TrainingRows, random_state: int) -> TrainingRows:
    """The rows that a first fit takes: for ensembles, some of many."""
    if not weighs_members or len(rows) <= _MOST_MEASURED_BY:
        return rows
    splitter = StratifiedShuffleSplit(1, train_size=_MOST_MEASURED_BY, random_state=random_state)
    return rows.take(np.sort(next(splitter.split(rows.y, rows.y))[0]))


def fit_ensemble(
    ensemble: PushEnsemble,
    Z: FloatArray,
    rows: TrainingRows,
    given: dict[str, Any],
) -> PushEnsemble:
    """Fit an ensemble with folds that keep groups whole and follow time, as the others' do."""
    if rows.time is not None and rows.groups is not None:
        own = ensemble.cv
        ensemble.set_params(cv=rows.folds(auto_folds(ensemble.quality, len(rows))))
        return ensemble.fit(Z, rows.y, **given).set_params(cv=own)
    return ensemble.fit(Z, rows.y, groups=rows.groups, time=rows.time, **given)
