"""What a fold is scored by, and settings compared on the same folds."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from toprank._arrays import AnyArray
from toprank._numerics import FloatArray
from toprank.blocks import Workers, go_on
from toprank.folds.choice import Candidate, PChoice
from toprank.folds.splits import Fold, tested_over_trained
from toprank.inference import Interval, interval
from toprank.metrics import scorer
from toprank.metrics.registry import METRICS
from toprank.pairs import Rows

#: Resamples for the interval of a scorer that is not of this library, and slow.
_RESAMPLES = 200


class Scoring:
    """A score of a ranking; larger is better.

    Parameters
    ----------
    scoring : str or callable
        The name of a metric of `toprank.metrics`, the name of a scikit-learn scorer, or a scorer
        ``scorer(estimator, X, y)``; where it takes no ``sample_weight``, it is given each row as
        often as it counts. Risks and errors are negated.
    kwargs : mapping, optional
        Parameters of a metric of `toprank.metrics`. By default those that `summary` uses: for a
        metric at k the top tenth of the list.
    called : str, default="scoring"
        The name of the parameter that the user has given it by, for messages.

    Examples
    --------
    >>> from toprank.tuning import Scoring
    >>> top = Scoring("precision_at", {"k": 2})
    >>> top.label, top.of_scores([0, 0, 1, 1], [1.0, 3.0, 2.0, 4.0])
    ('precision_at(k=2)', 0.5)
    """

    def __init__(
        self,
        scoring: object = "precision_at",
        kwargs: Mapping[str, object] | None = None,
        called: str = "scoring",
    ):
        self.called = called
        self.metric = METRICS.get(scoring) if isinstance(scoring, str) else None
        if self.metric is None:
            if kwargs:
                raise ValueError(
                    f"{called}_kwargs belong to the metrics of toprank.metrics; build them into "
                    f"your scorer instead ({called}={scoring!r})."
                )
            self.kwargs: dict[str, Any] = {}
            self.scorer = _scikit_learn_scorer(scoring, called)
            self.name = scoring if isinstance(scoring, str) else _name_of(scoring)
            return
        self.kwargs = dict(self.metric.settings) if kwargs is None else dict(kwargs)
        self.scorer = scorer(self.metric.name, **self.kwargs)
        self.name = self.metric.name

    @property
    def steadier(self) -> Scoring:
        """What settings are compared by: this score, or a form of it that hangs on no single row.

        >>> from toprank.tuning import Scoring
        >>> Scoring("positives_at_top").steadier.label
        'positives_at_top(negatives=5)'
        """
        if self.metric is None or not self.metric.steadier:
            return self
        return Scoring(self.name, {**self.metric.steadier, **self.kwargs}, self.called)

    def check(
        self,
        folds: Sequence[Fold],
        y: AnyArray,
        weight: FloatArray | None = None,
        *,
        scores_alone: bool = False,
    ) -> None:
        """Raise ValueError where the folds could not be scored, before anything is fitted to them.

        Parameters
        ----------
        folds : sequence of (train, test)
        y, weight : array
            Labels of two classes and weights of the rows that the folds are made of.
        scores_alone : bool, default=False
            Whether a scorer is to be given scores and no estimator; it is then tried too.
        """
        tests = [test for _, test in folds if len(np.unique(y[test])) == 2]
        if not tests:
            return
        sizes = [float(len(test) if weight is None else np.sum(weight[test])) for test in tests]
        smallest = int(np.argmin(sizes))
        size, test = sizes[smallest], tests[smallest]
        k = self.kwargs.get("k")
        if isinstance(k, int | np.integer) and k > size:
            share = k / float(len(y) if weight is None else np.sum(weight))
            raise ValueError(
                f"k={k}, but the smallest fold of the comparison tests {size:g} rows: give "
                f"k as a share of the rows, such as {share if share < 1 else 0.1:.2g}, or take "
                "fewer folds (cv)."
            )
        if self.metric is None:
            _check_takes_three(self.scorer, self.name, self.called)
        if self.metric is not None or scores_alone:
            made = np.linspace(0.0, 1.0, len(test))
            self.steadier.of_scores(y[test], made, None if weight is None else weight[test])

    @property
    def label(self) -> str:
        """The score as it is printed, such as ``precision_at(k=0.1)``."""
        given = ", ".join(f"{key}={value!r}" for key, value in self.kwargs.items())
        return f"{self.name}({given})" if given else self.name

    @property
    def sign(self) -> int:
        """-1 where the metric is a risk, so that the score is its negative."""
        return 1 if self.metric is None or self.metric.higher_is_better else -1

    def of_estimator(
        self, estimator: BaseEstimator, X: object, y: object, weight: object = None
    ) -> float:
        """Score a fitted estimator on rows."""
        if weight is None:
            return float(self.scorer(estimator, X, y))
        if _takes_weights(self.scorer):
            return float(self.scorer(estimator, X, y, sample_weight=weight))
        rows = self._copies(np.asarray(weight, dtype=np.float64))
        return float(self.scorer(estimator, _safe_indexing(X, rows), np.asarray(y)[rows]))

    def _copies(self, weight: FloatArray) -> NDArray[np.intp]:
        """Each row as often as it counts, for a scorer that takes no weights."""
        if np.any(weight != np.round(weight)):
            raise ValueError(
                f"{self.called}={self.name!r} takes no sample_weight, so that a row of weight w is "
                "given to it w times: expected whole numbers. Let it take sample_weight=."
            )
        return np.repeat(np.arange(len(weight)), weight.astype(np.intp))

    def of_scores(self, y: ArrayLike, scores: object, weight: FloatArray | None = None) -> float:
        """Score the ranking of rows that have been given scores, whatever their zero."""
        if self.metric is not None:
            value = self.metric.function(y, scores, sample_weight=weight, **self.kwargs)
            return self.sign * float(value)
        column = np.asarray(scores, dtype=np.float64).reshape(-1, 1)
        try:
            return self.of_estimator(_ScoresAsModel(np.unique(y)), column, y, weight)
        except AttributeError as error:
            raise ValueError(
                f"{self.called}={self.name!r} needs labels or probabilities; what is compared here "
                "is the order of the rows alone: take a scorer that uses decision_function, such "
                "as 'roc_auc'."
            ) from error

    def interval(
        self,
        y: ArrayLike,
        scores: ArrayLike,
        weight: FloatArray | None = None,
        groups: ArrayLike | None = None,
        level: float = 0.95,
    ) -> Interval:
        """Confidence interval of the metric itself, not negated, of rows never used before."""
        metric: str | Callable[..., float] = self.name
        options: dict[str, Any] = dict(self.kwargs)
        if self.metric is None:
            options["n_resamples"] = _RESAMPLES

            def weighted(
                y: AnyArray, s: FloatArray, sample_weight: FloatArray | None = None
            ) -> float:
                return self.of_scores(y, s, sample_weight)

            def of_copies(y: AnyArray, s: FloatArray) -> float:
                return self.of_scores(y, s)

            metric = weighted if _takes_weights(self.scorer) else of_copies
            metric.__name__ = self.name
        return interval(
            metric, y, scores, level=level, groups=groups, sample_weight=weight, **options
        )


def _takes_weights(scorer: Callable[..., object]) -> bool:
    """Whether a scorer, or the function that scikit-learn has made one of, takes sample_weight."""
    parameters = inspect.signature(getattr(scorer, "_score_func", scorer)).parameters
    return "sample_weight" in parameters or any(
        one.kind == inspect.Parameter.VAR_KEYWORD for one in parameters.values()
    )


class _ScoresAsModel(ClassifierMixin, BaseEstimator):
    """A classifier whose one column of X is the score already; for scikit-learn's scorers."""

    def __init__(self, classes: AnyArray | None = None):
        self.classes = classes

    @property
    def classes_(self) -> AnyArray | None:
        return self.classes

    def decision_function(self, X: object) -> FloatArray:
        return np.asarray(X)[:, 0]


def _check_takes_three(scorer: Callable[..., object], name: str, called: str) -> None:
    """Refuse a function of labels and scores where a scorer is expected."""
    try:
        signature = inspect.signature(scorer)
    except ValueError:  # of compiled functions nothing is known
        return
    weighted = {"sample_weight": None} if "sample_weight" in signature.parameters else {}
    try:
        signature.bind(None, None, None, **weighted)
    except TypeError:
        raise ValueError(
            f"{called}={name} takes {signature}, expected a scorer(estimator, X, y). "
            f"sklearn.metrics.make_scorer({name}, response_method='decision_function') makes one "
            "of a function of labels and scores."
        ) from None


def _scikit_learn_scorer(scoring: object, called: str) -> Callable[..., float]:
    """A scorer of scikit-learn, by name or as it is."""
    if callable(scoring):
        return scoring
    if scoring in get_scorer_names():
        return get_scorer(scoring)
    names = ", ".join(sorted(METRICS))
    raise ValueError(
        f"{called}={scoring!r}: expected a metric of toprank.metrics ({names}), the name of a "
        "scikit-learn scorer, or a callable scorer(estimator, X, y)."
    )


def _name_of(scoring: object) -> str:
    inner = getattr(scoring, "_score_func", scoring)
    return str(getattr(inner, "__name__", type(scoring).__name__))


def compare_settings(
    candidates: Sequence[Candidate],
    models: Sequence[object],
    rows: Rows,
    folds: Sequence[Fold],
    score: Scoring,
    *,
    rule: str = "best",
    level: float = 0.95,
    fit_params: Mapping[str, object] | None = None,
    n_jobs: int | None = None,
) -> PChoice:
    """Fit and score every model on every fold, and return the choice between them.

    Parameters
    ----------
    candidates : sequence of Candidate
        What is tried, from the weakest push to the strongest.
    models : sequence of estimators
        The unfitted estimator of each.
    rows : Rows
        With the labels as the estimators should see them.
    folds : sequence of (train, test)
    score : Scoring
    rule, level
        As in `PChoice`.
    fit_params : mapping, optional
        Further arguments of ``fit``, passed on as they are.
    n_jobs : int, optional
        Folds at a time, in threads.
    """
    score.check(folds, rows.y, rows.weight)
    score = score.steadier
    fits = [WeightedFit(model, fit_params, rows.weight is not None) for model in models]
    workers = Workers(n_jobs)
    with workers.start_threads():
        columns = list(workers.map(lambda fold: _score_fold(fits, rows, fold, score), folds))
    overlap = tested_over_trained(folds)
    return PChoice(tuple(candidates), np.column_stack(columns), score.label, rule, overlap, level)


class WeightedFit:
    """An estimator, and the name of its argument for weights."""

    def __init__(
        self, estimator: BaseEstimator, fit_params: Mapping[str, object] | None, weighted: bool
    ):
        self.estimator = estimator
        self.params = dict(fit_params or {})
        self.weight_name = "sample_weight"
        if isinstance(estimator, Pipeline) and weighted:
            self.weight_name = f"{estimator.steps[-1][0]}__sample_weight"

    def fit(self, rows: Rows) -> BaseEstimator:
        weighted = {} if rows.weight is None else {self.weight_name: rows.weight}
        return clone(self.estimator).fit(rows.X, rows.y, **weighted, **self.params)


def _score_fold(fits: Sequence[WeightedFit], rows: Rows, fold: Fold, score: Scoring) -> list[float]:
    train, test = (rows.take(part) for part in fold)
    scores = []
    for fit in fits:
        go_on()
        scores.append(score.of_estimator(fit.fit(train), test.X, test.y, test.weight))
    return scores
