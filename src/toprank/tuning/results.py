"""A choice in the shape of scikit-learn's ``cv_results_``."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.folds import PChoice


def cv_results(choice: PChoice) -> dict[str, Any]:
    """The scores in the shape of scikit-learn's ``cv_results_``."""
    pushes = np.array([candidate.pushes for candidate in choice.candidates])
    ps = np.array([1.0 if c.p is None else c.p for c in choice.candidates])
    order = np.argsort(-choice.mean, kind="stable")
    rank = np.empty(len(order), dtype=np.int32)
    better = -choice.mean[order]
    rank[order] = 1 + np.searchsorted(better, better, side="left")
    results: dict[str, Any] = {
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
