"""Scores of models: those that trees start from, and what fitted trees answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from toprank._arrays import Matrix, TableLike
from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.inference import compare
from toprank.metrics.registry import get_metric
from toprank.pairs import check_labels, check_scores, check_table
from toprank.rankers.common import Link, Probabilities
from toprank.rankers.trees.columns import Categories
from toprank.rankers.trees.plan import Trees

if TYPE_CHECKING:
    import xgboost

    from toprank.inference import Comparison
    from toprank.losses import Loss
    from toprank.prices import Price

#: Probabilities closer to 0 or 1 than this count as this close.
_CLOSEST = 1e-15


def model_scores(model: Any, X: Matrix) -> FloatArray:
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


def _matrix(model: Any, X: object) -> xgboost.DMatrix:
    xgboost = require("xgboost", "xgboost")
    if model.feature_names is not None and not hasattr(X, "columns"):
        return xgboost.DMatrix(X, feature_names=model.feature_names)
    return xgboost.DMatrix(X, enable_categorical=True)


def check_start(scores: ArrayLike, n: int) -> FloatArray:
    """Return the scores as float64, or raise ValueError saying what is wrong."""
    return check_scores(scores, n, name="init_score")


def natural_scale(
    p: float | None, price: str | Price | tuple[object, ...], loss: str | Loss | tuple[object, ...]
) -> float:
    """What log-odds are multiplied by to be scores of the push.

    The best scores of the exponential loss with the power price are log-odds / (1 + p) (Ertekin &
    Rudin 2011); for the other losses margins are in units of one already. The ranking to start
    from is the same for every scale.
    """
    if p is None or loss != "exponential" or price not in ("power", "identity"):
        return 1.0
    return 0.5 if price == "identity" else 1.0 / (1.0 + min(p, 64.0))


class TreeScores(Probabilities):
    """Scores of grown trees, on top of those they started from."""

    metric: str | Callable[..., float]
    metric_kwargs: dict[str, Any] | None
    init_model_: Any
    init_scale_: float
    _trees: Trees
    _columns: Categories
    _starts: bool
    _offset: float

    def _numbers(self, X: object) -> FloatArray:
        table = check_table(X, estimator=self, reset=False, missing=True, frames=True)
        return self._columns.numbers(table)

    def _keep_link(self, link: Link) -> None:
        self._offset, self._slope = link.offset, link.slope
        self.intercept_ = np.array([link.offset])

    def _start_of(self, X: TableLike, init_score: ArrayLike | None) -> float | FloatArray:
        if self._starts and init_score is None:
            raise ValueError(
                "The trees were grown on top of init_score, so the score of a row needs its own: "
                "pass init_score= to decision_function, or fit with init_model=."
            )
        if init_score is not None and not self._starts:
            raise ValueError("init_score was given, but the trees were grown without.")
        if init_score is not None:
            return self.init_scale_ * check_start(init_score, np.shape(X)[0])
        if self.init_model_ is not None:
            return self.init_scale_ * model_scores(self.init_model_, X)
        return 0.0

    def decision_function(self, X: TableLike, init_score: ArrayLike | None = None) -> FloatArray:
        """Return the ranking score of each row; zero is a probability of one half.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
        init_score : array-like of shape (n,), optional
            The scores the trees are added to, if they were grown with ``init_score``.

        Returns
        -------
        array of shape (n,)
        """
        check_is_fitted(self)
        Z = self._numbers(X)
        return self._trees.scores(Z) + self._start_of(X, init_score) + self._offset

    def staged_decision_function(
        self, X: TableLike, init_score: ArrayLike | None = None
    ) -> Iterator[FloatArray]:
        """Yield the scores after each round, all with the intercept of the last."""
        check_is_fitted(self)
        Z = self._numbers(X)
        start = self._start_of(X, init_score) + self._offset
        for scores in self._trees.staged_scores(Z):
            yield scores + start

    def explain(self, X: TableLike, init_score: ArrayLike | None = None) -> FloatArray:
        """Return what each column contributes to the score of each row (SHAP values of trees).

        ``shap.TreeExplainer(trees.booster_)`` gives the same values, to the last bit, and draws
        them. SHAP knows the libraries of trees by a list of its own, so it is given the booster.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
        init_score : array-like of shape (n,), optional
            As in ``decision_function``.

        Returns
        -------
        array of shape (n, d + 1)
            The last column is what does not depend on the columns: the mean score, the intercept
            and the score of ``init_model`` or ``init_score``. Each row sums to its score.
        """
        check_is_fitted(self)
        parts = self._trees.contributions(self._numbers(X))
        parts[:, -1] += self._start_of(X, init_score) + self._offset
        return parts

    def compare_with_start(
        self,
        X: TableLike,
        y: ArrayLike,
        *,
        init_score: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        level: float = 0.95,
    ) -> Comparison:
        """Compare the scores with those they started from, by ``metric``, on rows kept aside.

        Returns
        -------
        Comparison
            ``.difference .low .high .p_value`` of the push against the starting model, paired.
        """
        check_is_fitted(self)
        if self.init_model_ is None and not self._starts:
            raise ValueError(
                "The trees have no starting scores: fit with init_model= or init_score=."
            )
        scores, start = self.decision_function(X, init_score), self._start_of(X, init_score)
        settings = {} if callable(self.metric) else dict(get_metric(self.metric).settings)
        return compare(
            self.metric,
            check_labels(y) == self.classes_[1],
            scores,
            start,
            sample_weight=sample_weight,
            level=level,
            **{**settings, **(self.metric_kwargs or {})},
        )
