"""The scores that trees start from: those of a model in production, or any others."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.pairs import check_scores

#: Probabilities closer to 0 or 1 than this count as this close.
_CLOSEST = 1e-15


def model_scores(model: Any, X: Any) -> FloatArray:
    """Return the scores of a fitted model: log-odds, or what its decision_function says.

    Estimators with ``decision_function`` or ``predict_proba``, boosters of LightGBM and XGBoost,
    and the file name of a LightGBM model.
    """
    if isinstance(model, str):
        model = require("lightgbm", "lightgbm").Booster(model_file=model)
    kind = type(model).__module__.split(".")[0]
    if kind == "lightgbm" and hasattr(model, "current_iteration"):
        scores = model.predict(X, raw_score=True)
    elif kind == "xgboost" and hasattr(model, "num_boosted_rounds"):
        scores = model.predict(_matrix(model, X), output_margin=True)
    elif hasattr(model, "decision_function"):
        scores = model.decision_function(X)
    elif hasattr(model, "predict_proba"):
        share = np.clip(np.asarray(model.predict_proba(X))[:, 1], _CLOSEST, 1.0 - _CLOSEST)
        scores = np.log(share) - np.log1p(-share)
    else:
        raise TypeError(
            f"init_model is a {type(model).__name__}; expected a fitted classifier, a booster of "
            "LightGBM or XGBoost, or the file name of a LightGBM model."
        )
    return check_start(scores, np.shape(X)[0])


def _matrix(model: Any, X: Any) -> Any:
    xgboost = require("xgboost", "xgboost")
    if model.feature_names is not None and not hasattr(X, "columns"):
        return xgboost.DMatrix(X, feature_names=model.feature_names)
    return xgboost.DMatrix(X, enable_categorical=True)


def check_start(scores: Any, n: int) -> FloatArray:
    """Return the scores as float64, or raise ValueError saying what is wrong."""
    return check_scores(scores, n, name="init_score")


def natural_scale(p: float | None, price: Any, loss: Any) -> float:
    """What log-odds are multiplied by to be scores of the push.

    The best scores of the exponential loss with the power price are log-odds / (1 + p) (Ertekin &
    Rudin 2011); for the other losses margins are in units of one already. The ranking to start
    from is the same for every scale.
    """
    if p is None or loss != "exponential" or price not in ("power", "identity"):
        return 1.0
    return 0.5 if price == "identity" else 1.0 / (1.0 + min(p, 64.0))
