"""Ranking the labels of each example: AdaBoost.MH and AdaBoost.MR."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import expit
from scipy.special import softmax as softmax_rows
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from toprank._arrays import Frame, Matrix
from toprank._numerics import FloatArray
from toprank.blocks import Workers
from toprank.pairs import check_counts, check_labels, check_table, to_numpy
from toprank.rankers.boosting.label_columns import LabelColumns, label_outputs
from toprank.rankers.boosting.label_stumps import LabelObjective, LabelStumps
from toprank.rankers.boosting.rounds import Descent, Ensemble, boost
from toprank.rankers.boosting.stumps import bin_columns
from toprank.rankers.boosting.weak import StumpSum
from toprank.rankers.callbacks import TakesCallbacks, tell_step
from toprank.rankers.common import fits, logistic

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from toprank.rankers.boosting.stumps import Stump


class LabelRanker(TakesCallbacks, ClassifierMixin, BaseEstimator):
    r"""AdaBoost.MH and AdaBoost.MR over stumps (Schapire & Singer 1999).

    Scores f(x, l) of labels l, so that the labels an example has come above those it has not.
    With y = ±1 for having the label or not, "mh" minimises
    :math:`\sum_{i, l} e^{-y_{il} f(x_i, l)}` and "mr" the pairs' loss within examples,
    :math:`\sum_i \frac{1}{|Y_i| |\bar Y_i|} \sum_{l \in Y_i, l' \notin Y_i}
    e^{-(f(x_i, l) - f(x_i, l'))}`. "mr_pooled" takes all entries together,
    :math:`\sum_{y_{il} = 1} e^{-f} \sum_{y_{il} = -1} e^{f}`: it is to "mh" as RankBoost is to
    AdaBoost, and reaches the same minimum (Rudin & Schapire 2009, Section 5.1).

    A weak ranker is a stump that speaks of one label, or a label's constant; or a weak classifier
    h(x, l) of your own.

    Parameters
    ----------
    n_estimators : int, default=100
        Rounds.
    method : {"mr", "mh", "mr_pooled"}, default="mr"
    weak_rankers : "stumps" or list of functions, default="stumps"
        Functions of X that return h(x, l), an array of shape (rows, labels), as it is: -1 and 1 for
        the weak classifiers of Schapire & Singer, or any finite numbers. The labels' constants are
        added to them. Steps are searched for.
    n_thresholds : int, optional
        Thresholds per column, at evenly spaced quantiles; by default all, up to ``max_bins - 1``.
    max_bins : int, default=255
        Bins per column, at most 255.
    n_jobs : int, optional
        Threads. The answer does not depend on it.

    Attributes
    ----------
    classes_ : array of shape (labels,)
        The classes; for an indicator matrix the column numbers.
    intercept_ : float
        Added to every score: zero for "mh", the F-skew's zero for "mr_pooled" (Corollary 13), that
        of a logistic curve fitted to the training scores for "mr".
    coef_ : array of shape (m,)
        Coefficients of the weak classifiers, where ``weak_rankers`` lists them.
    history_ : list of dict
        Per round: label, feature (None for the label's constant), threshold, missing, step,
        criterion (what the best step multiplies the loss by), objective. With weak classifiers of
        your own, feature counts the labels' constants first, and then those.
    n_iter_ : int
    objective_ : float
        Log of the loss, divided by its value for equal scores.
    stop_reason_ : str

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.metrics import label_ranking_loss
    >>> from toprank import LabelRanker
    >>> X, Y = make_multilabel_classification(random_state=0)
    >>> ranker = LabelRanker(100).fit(X, Y)
    >>> bool(label_ranking_loss(Y, ranker.decision_function(X)) < 0.05)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "method": [StrOptions({"mr", "mh", "mr_pooled"})],
        "weak_rankers": [StrOptions({"stumps"}), list, tuple],
        "n_thresholds": [Interval(Integral, 1, 254, closed="both"), None],
        "max_bins": [Interval(Integral, 2, 255, closed="both")],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        method: str = "mr",
        weak_rankers: Any = "stumps",
        n_thresholds: int | None = None,
        max_bins: int = 255,
        n_jobs: int | None = None,
    ):
        self.n_estimators = n_estimators
        self.method = method
        self.weak_rankers = weak_rankers
        self.n_thresholds = n_thresholds
        self.max_bins = max_bins
        self.n_jobs = n_jobs

    @fits
    def fit(self, X: Any, y: object, sample_weight: ArrayLike | None = None) -> LabelRanker:
        """Fit the ranker.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Numbers; NaN is a missing value.
        y : array-like of shape (n, labels) or (n,)
            1 where the example has the label, 0 elsewhere; or one class per example.
        sample_weight : array-like of shape (n,), optional
            Repetition counts; a row of weight zero is absent.

        Returns
        -------
        self
        """
        X = check_table(X, estimator=self, missing=True, infinite=True)
        members = self._members(y)
        check_consistent_length(X, members.T)
        weight = check_counts(sample_weight, len(X))
        if weight is not None:
            present = weight > 0
            X, weight = X[present], weight[present]
            members = np.ascontiguousarray(members[:, present])
        _check_indicators(members, self.method)
        workers = Workers(self.n_jobs)
        most = min(self.max_bins - 1, self.n_thresholds or self.max_bins)
        objective = LabelObjective(self.method, members, weight)
        if not self._reads_stumps():
            return self._fit_own(X, objective, weight)
        with workers.start_threads():
            binned = bin_columns(X, weight, np.arange(len(X)), workers, most)
            engine = LabelStumps(objective, binned, workers)
            ensemble = boost(engine, Descent("loss"), self.n_estimators, self._watch)
        self._keep_link(objective, engine.scores, weight)
        self._keep(ensemble, len(members))
        return self

    def _watch(self, _: Ensemble) -> bool:
        return tell_step(self, "round")

    def _most_steps(self) -> int:
        return self.n_estimators

    def _fit_own(
        self, X: Matrix, objective: LabelObjective, weight: FloatArray | None
    ) -> LabelRanker:
        """Boost weak classifiers of the user's own, and the labels' constants."""
        n_labels = len(objective.members)
        outputs = label_outputs(self.weak_rankers, X, objective.members.shape)
        engine = LabelColumns(objective, outputs)
        ensemble = boost(engine, Descent("loss"), self.n_estimators, self._watch)
        self._keep_link(objective, engine.label_scores, weight)
        self._keep_rounds(ensemble)
        columns = [choice.column for choice in ensemble.choices]
        sums: np.ndarray = np.bincount(columns, ensemble.steps, minlength=outputs.shape[1])
        self._constants, self.coef_ = sums[:n_labels], sums[n_labels:]
        return self

    def _reads_stumps(self) -> bool:
        return isinstance(self.weak_rankers, str)

    def _keep_link(
        self, objective: LabelObjective, scores: FloatArray, weight: FloatArray | None
    ) -> None:
        """MH needs no intercept; MR's loss says nothing about it, nor about the scale."""
        self.intercept_, self._slope = 0.0, 2.0
        if self.method == "mh":
            return
        weights = None if weight is None else np.tile(weight, len(scores))
        link = logistic(scores.reshape(-1), objective.members.reshape(-1), weights)
        self._slope = link.slope
        pooled = self.method == "mr_pooled"
        self.intercept_ = objective.skew(scores) if pooled else link.offset

    def _members(self, y: Any) -> NDArray[np.bool_]:
        """Return, for each label, which rows have it."""
        if y is None:
            raise ValueError("LabelRanker requires y to be passed, but the target y is None.")
        y = y.toarray() if sparse.issparse(y) else to_numpy(y)
        shape = np.asarray(y).shape
        self._one_each = len(shape) < 2 or shape[1] == 1
        return self._of_classes(y) if self._one_each else self._of_indicators(y)

    def _of_classes(self, y: ArrayLike) -> NDArray[np.bool_]:
        """One class per row."""
        labels = check_labels(y)
        if np.asarray(y).ndim == 2:
            column_or_1d(y, warn=True)
        check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class only ({self.classes_.tolist()[0]!r}); ranking labels needs "
                "two or more."
            )
        return np.asarray(labels == self.classes_[:, None])

    def _of_indicators(self, y: object) -> NDArray[np.bool_]:
        """A column of 0 and 1 per label."""
        columns = [check_labels(column) for column in np.asanyarray(y).T]
        indicators = np.column_stack(columns)
        kind = type_of_target(indicators)
        if kind != "multilabel-indicator":
            raise ValueError(
                f"y is {kind} of shape {indicators.shape}, expected an indicator matrix of 0 and "
                "1, one column per label, or one class per row."
            )
        members = indicators.T == 1
        if not np.all(members | (indicators.T == 0)):
            raise ValueError(
                f"y holds the values {np.unique(indicators).tolist()}, expected 0 and 1 only: 1 "
                "where the example has the label."
            )
        self.classes_ = np.arange(indicators.shape[1])
        return np.ascontiguousarray(members)

    def _keep_rounds(self, ensemble: Ensemble) -> None:
        self._choices, self._steps = ensemble.choices, ensemble.steps
        self.history_, self.n_iter_ = ensemble.history, len(ensemble.history)
        self.stop_reason_ = ensemble.message
        self.objective_ = ensemble.history[-1]["objective"] if ensemble.history else 0.0

    def _keep(self, ensemble: Ensemble, n_labels: int) -> None:
        self._keep_rounds(ensemble)
        both = self.method == "mh"  # 2h - 1 in place of h
        self._constants = np.zeros(n_labels)
        stumps: list[list[Stump]] = [[] for _ in range(n_labels)]
        steps: list[list[float]] = [[] for _ in range(n_labels)]
        for choice, step in zip(ensemble.choices, ensemble.steps, strict=True):
            if choice.stump is None:
                self._constants[choice.label] += step
                continue
            stumps[choice.label].append(choice.stump)
            steps[choice.label].append((1 + both) * step)
            self._constants[choice.label] -= both * step
        self._sums = [StumpSum(*label) for label in zip(stumps, steps, strict=True)]

    def _scores(self, X: object) -> FloatArray:
        check_is_fitted(self)
        table = check_table(X, estimator=self, reset=False, missing=True, infinite=True)
        if not self._reads_stumps():
            return self._own_scores(table, np.concatenate([self._constants, self.coef_]))
        workers = Workers(self.n_jobs)
        with workers.start_threads():
            scores = [label.scores(table, workers) for label in self._sums]
        return np.column_stack(scores) + self._constants + self.intercept_

    def _own_scores(self, X: Any, coef: FloatArray) -> FloatArray:
        shape = len(self.classes_), len(X)
        outputs = label_outputs(self.weak_rankers, X, shape)
        return (outputs @ coef).reshape(shape).T + self.intercept_

    def _reshape(self, scores: FloatArray) -> FloatArray:
        """Two classes have one score: how far the second is above the first."""
        two = self._one_each and len(self.classes_) == 2
        return scores[:, 1] - scores[:, 0] if two else scores

    def decision_function(self, X: object) -> FloatArray:
        """Return the score of each label, of shape (n, labels); (n,) for two classes."""
        return self._reshape(self._scores(X))

    def staged_decision_function(self, X: Matrix | Frame) -> Iterator[FloatArray]:
        """Yield the scores after each round, all with the intercept of the last."""
        check_is_fitted(self)
        X = check_table(X, estimator=self, reset=False, missing=True, infinite=True)
        if not self._reads_stumps():
            coef = np.zeros(len(self._constants) + len(self.coef_))
            for choice, step in zip(self._choices, self._steps, strict=True):
                coef[choice.column] += step
                yield self._reshape(self._own_scores(X, coef))
            return
        scores = np.full((len(X), len(self._sums)), self.intercept_)
        for choice, step in zip(self._choices, self._steps, strict=True):
            h = np.ones(len(X)) if choice.stump is None else choice.stump.outputs(X)
            if self.method == "mh" and choice.stump is not None:
                h = 2.0 * h - 1.0
            scores[:, choice.label] += step * h
            yield self._reshape(scores.copy())

    def predict(self, X: object) -> np.ndarray:
        """Return the labels with a positive score, as 0 and 1; or the class of highest score."""
        scores = self._scores(X)
        if self._one_each:
            return self.classes_[np.argmax(scores, axis=1)]
        return (scores > 0).astype(np.intp)

    def predict_proba(self, X: object) -> FloatArray:
        """Return sigmoid(slope · f) for each label; for classes softmax(slope · f).

        The slope is 2 for "mh"; for "mr" and "mr_pooled" it is fitted to the training scores.
        """
        scores = self._scores(X)
        scores *= self._slope
        return softmax_rows(scores, axis=1) if self._one_each else expit(scores)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags


def _check_indicators(members: NDArray[np.bool_], method: str) -> None:
    """Raise ValueError where there is no pair of a label that is there and one that is not."""
    both = np.any(members, axis=0) & ~np.all(members, axis=0)
    found = np.any(both) if method == "mr" else np.any(members) and not np.all(members)
    if not found:
        raise ValueError(
            "There is no pair to rank: every example has all of the labels or none. Check y."
        )
