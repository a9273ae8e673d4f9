"""What is special about ensembles among the rankers of tables: effort, folds, unseen rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.models.errors import ModelError
from toprank.models.rows import TrainingRows
from toprank.models.unseen import UnseenScores, spread_between_folds
from toprank.rankers import PushEnsemble
from toprank.rankers.ensemble.plan import EFFORTS, auto_folds


def check_effort(quality: str, max_seconds: float | None) -> dict[str, Any]:
    """Return the effort that is asked for; ModelError if there is no such."""
    if quality not in EFFORTS:
        raise ModelError(f"quality={quality!r}: expected one of {', '.join(EFFORTS)}.")
    if max_seconds is not None and not max_seconds > 0:
        raise ModelError(f"max_seconds={max_seconds!r}: expected a positive number of seconds.")
    return {"quality": quality, "max_seconds": max_seconds}


def unseen_by_members(ranker: Any) -> UnseenScores | None:
    """The scores of rows by members that have not seen them, where an ensemble has them all."""
    if not isinstance(ranker, PushEnsemble) or not np.all(np.isfinite(ranker.oof_decision_)):
        return None
    fold = np.empty(len(ranker.oof_decision_), dtype=np.intp)
    for number, (_, test) in enumerate(ranker._folds):
        fold[test] = number
    scores = ranker.oof_decision_
    return UnseenScores(scores, "out of fold", spread_between_folds(scores, fold))


def fit_ensemble(
    ensemble: PushEnsemble, Z: FloatArray, rows: TrainingRows, given: dict[str, Any]
) -> PushEnsemble:
    """Fit an ensemble with folds that keep groups whole and follow time, as the others' do."""
    if rows.time is not None and rows.groups is not None:
        own = ensemble.cv
        ensemble.set_params(cv=rows.folds(auto_folds(ensemble.quality, len(rows))))
        return ensemble.fit(Z, rows.y, **given).set_params(cv=own)
    return ensemble.fit(Z, rows.y, groups=rows.groups, time=rows.time, **given)
