"""Metrics as scikit-learn scorers."""

from __future__ import annotations

import inspect
from typing import Any

from sklearn.metrics import make_scorer

from toprank.metrics.registry import get_metric


def scorer(name: str, **kwargs: Any) -> Any:
    """A scikit-learn scorer of a metric, for ``cross_validate`` or ``GridSearchCV``.

    It ranks with the estimator's ``decision_function``, or else its ``predict_proba``. Risks and
    errors are negated, so that a larger score is always better.

    Parameters
    ----------
    name : str
        Name of a metric, such as "auc", "precision_at" or "pnorm_risk".
    **kwargs
        Its parameters, such as ``k=100`` or ``p=4``.

    Returns
    -------
    callable
        ``scorer(estimator, X, y, sample_weight=None)``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_validate
    >>> from toprank.metrics import scorer
    >>> X, y = make_classification(random_state=0)
    >>> scoring = {"top": scorer("precision_at", k=5), "risk": scorer("pnorm_risk", p=4)}
    >>> result = cross_validate(LogisticRegression(), X, y, scoring=scoring)
    >>> result["test_top"].shape, bool((result["test_risk"] <= 0).all())
    ((5,), True)
    """
    metric = get_metric(name)
    _check_parameters(metric.function, name, kwargs)
    return make_scorer(
        metric.function,
        greater_is_better=metric.higher_is_better,
        response_method=("decision_function", "predict_proba"),
        **kwargs,
    )


def _check_parameters(function: Any, name: str, kwargs: dict[str, Any]) -> None:
    """Raise ValueError now, not in the middle of a search, if the parameters do not fit."""
    parameters = list(inspect.signature(function).parameters.values())[2:]
    unknown = sorted(set(kwargs) - {p.name for p in parameters})
    missing = [p.name for p in parameters if p.default is p.empty and p.name not in kwargs]
    if unknown or missing:
        problems = [f"does not know {', '.join(unknown)}"] if unknown else []
        problems += [f"needs {', '.join(missing)}"] if missing else []
        raise ValueError(f"The metric {name!r} {' and '.join(problems)}.")
