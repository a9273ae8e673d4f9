"""The settings that are compared, and their scores in the shape of scikit-learn's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from toprank.folds import Candidate, PChoice, check_powers
from toprank.rankers.base import LinearRanker
from toprank.rankers.linear import PNormPush
from toprank.rankers.proper import ProperRanker

if TYPE_CHECKING:
    from toprank._arrays import JsonObject


def setting_grid(
    ps: Sequence[float], alphas: Sequence[float], of_push: dict[str, object], **common: object
) -> tuple[tuple[Candidate, ...], list[LinearRanker]]:
    """Return the candidates, the weakest push first, and an unfitted ranker for each."""
    penalties = np.unique(np.asarray(alphas, dtype=np.float64))[::-1]
    if len(penalties) == 0 or not np.all((penalties > 0) & np.isfinite(penalties)):
        raise ValueError(
            f"alphas={alphas!r}: expected positive numbers. Without a penalty separable folds have "
            "no finite solution to compare."
        )
    candidates: list[Candidate] = []
    templates: list[LinearRanker] = []
    for alpha in map(float, penalties):
        candidates.append(Candidate("logistic regression", None, alpha, pushes=False))
        templates.append(ProperRanker(alpha=alpha).set_params(**common))
    for p in check_powers(ps):
        for alpha in map(float, penalties):
            candidates.append(Candidate(f"p = {p:g}", p, alpha))
            templates.append(PNormPush(p, alpha=alpha).set_params(**of_push, **common))
    return tuple(candidates), templates


def cv_results(choice: PChoice) -> JsonObject:
    """The scores in the shape of scikit-learn's ``cv_results_``."""
    pushes = np.array([candidate.pushes for candidate in choice.candidates])
    ps = np.array([1.0 if c.p is None else c.p for c in choice.candidates])
    order = np.argsort(-choice.mean, kind="stable")
    rank = np.empty(len(order), dtype=np.int32)
    better = -choice.mean[order]
    rank[order] = 1 + np.searchsorted(better, better, side="left")
    results: JsonObject = {
        "params": [
            {"model": "push", "p": c.p, "alpha": c.alpha}
            if c.pushes
            else {"model": "logistic regression", "alpha": c.alpha}
            for c in choice.candidates
        ],
        "param_p": np.ma.MaskedArray(ps, mask=~pushes),
        "param_alpha": np.array([c.alpha for c in choice.candidates]),
        "pushes": pushes,
    }
    for fold, column in enumerate(choice.fold_scores.T):
        results[f"split{fold}_test_score"] = column
    return results | {
        "mean_test_score": choice.mean,
        "std_test_score": choice.deviation(),
        "standard_error": choice.standard_error,
        "rank_test_score": rank,
    }
