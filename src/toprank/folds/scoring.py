"""What a fold is scored by: a metric of the library, or any scikit-learn scorer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer, get_scorer_names

from toprank._numerics import FloatArray
from toprank.inference import Interval, interval
from toprank.metrics import scorer
from toprank.metrics.registry import METRICS

#: Resamples for the interval of a scorer that is not of this library, and slow.
_RESAMPLES = 200


class Scoring:
    """A score of a ranking; larger is better.

    Parameters
    ----------
    scoring : str or callable
        The name of a metric of `toprank.metrics`, the name of a scikit-learn scorer, or a scorer
        ``scorer(estimator, X, y)``. Risks and errors are negated.
    kwargs : mapping, optional
        Parameters of a metric of `toprank.metrics`. By default those that `summary` uses: for a
        metric at k the top tenth of the list.

    Examples
    --------
    >>> from toprank.tuning import Scoring
    >>> top = Scoring("precision_at", {"k": 2})
    >>> top.label, top.of_scores([0, 0, 1, 1], [1.0, 3.0, 2.0, 4.0])
    ('precision_at(k=2)', 0.5)
    """

    def __init__(self, scoring: Any = "precision_at", kwargs: Mapping[str, Any] | None = None):
        self.metric = METRICS.get(scoring) if isinstance(scoring, str) else None
        if self.metric is None:
            if kwargs:
                raise ValueError(
                    "scoring_kwargs belong to the metrics of toprank.metrics; build them into "
                    f"your scorer instead (scoring={scoring!r})."
                )
            self.kwargs: dict[str, Any] = {}
            self.scorer = _foreign(scoring)
            self.name = scoring if isinstance(scoring, str) else _name_of(scoring)
            return
        self.kwargs = dict(self.metric.settings) if kwargs is None else dict(kwargs)
        self.scorer = scorer(self.metric.name, **self.kwargs)
        self.name = self.metric.name

    @property
    def label(self) -> str:
        """The score as it is printed, such as ``precision_at(k=0.1)``."""
        given = ", ".join(f"{key}={value!r}" for key, value in self.kwargs.items())
        return f"{self.name}({given})" if given else self.name

    @property
    def sign(self) -> int:
        """-1 where the metric is a risk, so that the score is its negative."""
        return 1 if self.metric is None or self.metric.higher_is_better else -1

    def of_estimator(self, estimator: Any, X: Any, y: Any, weight: Any = None) -> float:
        """Score a fitted estimator on rows."""
        given = {} if weight is None else {"sample_weight": weight}
        return float(self.scorer(estimator, X, y, **given))

    def of_scores(self, y: Any, scores: Any, weight: FloatArray | None = None) -> float:
        """Score the ranking of rows that have been given scores, whatever their zero."""
        if self.metric is not None:
            value = self.metric.function(y, scores, sample_weight=weight, **self.kwargs)
            return self.sign * float(value)
        column = np.asarray(scores, dtype=np.float64).reshape(-1, 1)
        try:
            return self.of_estimator(_Given(np.unique(y)), column, y, weight)
        except AttributeError as error:
            raise ValueError(
                f"scoring={self.name!r} needs labels or probabilities; p is chosen by the order of "
                "the rows alone: take a scorer that uses decision_function, such as 'roc_auc'."
            ) from error

    def interval(
        self,
        y: Any,
        scores: Any,
        weight: FloatArray | None = None,
        groups: Any = None,
        level: float = 0.95,
    ) -> Interval:
        """Confidence interval of the metric itself, not negated, of rows never used before."""
        metric: str | Callable[..., float] = self.name
        options: dict[str, Any] = dict(self.kwargs)
        if self.metric is None:
            options["n_resamples"] = _RESAMPLES

            def metric(y: Any, s: Any, sample_weight: Any = None) -> float:
                return self.of_scores(y, s, sample_weight)

            metric.__name__ = self.name
        return interval(
            metric, y, scores, level=level, groups=groups, sample_weight=weight, **options
        )


class _Given(ClassifierMixin, BaseEstimator):
    """A classifier whose one column of X is the score already; for scikit-learn's scorers."""

    def __init__(self, classes: NDArray[Any] | None = None):
        self.classes = classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> Any:
        return self.classes

    def decision_function(self, X: Any) -> FloatArray:
        return np.asarray(X)[:, 0]


def _foreign(scoring: Any) -> Any:
    """A scorer of scikit-learn, by name or as it is."""
    if callable(scoring):
        return scoring
    if scoring in get_scorer_names():
        return get_scorer(scoring)
    names = ", ".join(sorted(METRICS))
    raise ValueError(
        f"scoring={scoring!r}: expected a metric of toprank.metrics ({names}), the name of a "
        "scikit-learn scorer, or a callable scorer(estimator, X, y)."
    )


def _name_of(scoring: Any) -> str:
    inner = getattr(scoring, "_score_func", scoring)
    return str(getattr(inner, "__name__", type(scoring).__name__))
