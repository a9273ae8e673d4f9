"""What the boosters share: one door for the data, the rounds, scores, probabilities."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from toprank._arrays import Frame, TableLike
from toprank._numerics import FloatArray
from toprank.blocks import Workers
from toprank.pair_sums import concordance
from toprank.pairs import (
    Pairs,
    RelatedRows,
    check_related_rows,
    check_rows,
    check_table,
    is_frame,
    read_table,
    relate,
)
from toprank.rankers.boosting.learners import (
    LearnedRankers,
    LearnedSum,
    is_learner,
    mean_importances,
)
from toprank.rankers.boosting.pair_stumps import GradedStumps, ListedStumps, TwoClassStumps
from toprank.rankers.boosting.pair_weights import (
    GradedWeights,
    ListedWeights,
    PairWeights,
    TwoClassWeights,
    weigh_pairs,
)
from toprank.rankers.boosting.rounds import Descent, EarlyStopping, Ensemble, boost
from toprank.rankers.boosting.stumps import bin_columns
from toprank.rankers.boosting.weak import (
    WEAK_RANKERS,
    ColumnRankers,
    ColumnSum,
    StumpSum,
    WeakSum,
    are_binary,
    column_importances,
    weak_outputs,
)
from toprank.rankers.callbacks import TakesCallbacks, has_callbacks, tell_step
from toprank.rankers.common import Link, Probabilities, forget, logistic, warn_caller
from toprank.rankers.held_out import set_apart

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from toprank._arrays import RandomState
    from toprank.rankers.boosting.stumps import Binned

#: How stumps are judged on pairs of each kind.
_STUMPS: dict[type[PairWeights], Any] = {
    TwoClassWeights: TwoClassStumps,
    GradedWeights: GradedStumps,
    ListedWeights: ListedStumps,
}


def _is_classifier(self: object) -> bool:
    return getattr(self, "target", "binary") == "binary"


class Booster(TakesCallbacks, Probabilities, ClassifierMixin, BaseEstimator):
    """Base of the boosters: score = sum of weak rankers, higher is nearer the top."""

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "weak_rankers": [StrOptions(set(WEAK_RANKERS)), list, tuple],
        "n_thresholds": [Interval(Integral, 1, 254, closed="both"), None],
        "max_bins": [Interval(Integral, 2, 255, closed="both")],
        "link": [StrOptions({"p_classification", "logistic"})],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left"), None],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "scoring": [str, callable, None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    n_estimators: int
    weak_rankers: str | Sequence[object] | BaseEstimator
    n_thresholds: int | None
    max_bins: int
    link: str
    n_iter_no_change: int | None
    validation_fraction: float
    scoring: str | Callable[..., float] | None
    random_state: RandomState
    n_jobs: int | None
    verbose: int

    def _fit(
        self,
        X: TableLike,
        y: ArrayLike | None,
        groups: ArrayLike | None = None,
        pairs: ArrayLike | Pairs | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        forget(self)  # another target or weak ranker keeps other attributes
        rows = self._check_fit(X, y, groups, pairs, sample_weight)
        stopping = None
        if self.n_iter_no_change is not None:
            rng = check_random_state(self.random_state)
            rows, apart = set_apart(rows, self.validation_fraction, rng)
            stopping = EarlyStopping(
                apart, self.scoring, self.n_iter_no_change, self._outputs_on(apart)
            )
        weights = weigh_pairs(rows, self._power())
        workers = Workers(self.n_jobs)
        with workers.start_threads():
            engine = self._engine(rows, weights, workers)
            ensemble = boost(engine, self._rule(), self.n_estimators, self._watch(stopping))
            del engine  # its weights and histograms have done their work
            if stopping is not None:
                ensemble = stopping.best_rounds(ensemble)
                self.validation_scores_ = np.array(stopping.values)
            self._keep(ensemble, rows, weights, workers)
        self._after(ensemble)
        self._warn(ensemble)
        return self

    def _outputs_on(self, rows: RelatedRows) -> Callable[[Any], FloatArray]:
        """What a round's choice adds to the scores of some rows, for a step of one."""
        return lambda choice: choice.outputs(rows.X)

    @abstractmethod
    def _rule(self) -> Descent:
        """Return how a round chooses its weak ranker and the length of its step."""

    def _power(self) -> float:
        return 1.0

    def _check_fit(
        self,
        X: TableLike,
        y: Any,
        groups: ArrayLike | None,
        pairs: ArrayLike | Pairs | None,
        sample_weight: ArrayLike | None,
    ) -> RelatedRows:
        """Check everything; return the rows that are present, as the weak rankers see them."""
        if _is_classifier(self):
            rows, classes = check_rows(self, X, y, sample_weight, groups, **self._table_options())
            assert classes is not None
            self.classes_ = classes
            related = relate(rows, pairs)
        else:
            table = check_table(X, estimator=self, **self._table_options())
            related = check_related_rows(self, table, y, groups, pairs, sample_weight)
        columns = self._weak_columns(X, related.X)
        self._binary_weak = not self._learns() and are_binary(self.weak_rankers, columns)
        self._n_columns = columns.shape[1]
        return replace(related, X=columns).present()

    def _learns(self) -> bool:
        """Whether a learner is fitted every round."""
        return is_learner(self.weak_rankers)

    def _reads_missing(self) -> bool:
        return not (isinstance(self.weak_rankers, str) and self.weak_rankers != "stumps")

    def _table_options(self) -> dict[str, Any]:
        """What X may hold; what a function or an estimator can read is its own affair."""
        compares = self._reads_missing()
        named = isinstance(self.weak_rankers, str)
        return {"dtype": "numeric" if named else None, "missing": compares, "infinite": compares}

    def _weak_columns(self, X: TableLike, table: np.ndarray) -> np.ndarray | Frame:
        """The columns that stumps read, or what each weak ranker says about each row."""
        if isinstance(self.weak_rankers, str):
            return table
        if self._learns():
            return read_table(X) if is_frame(X) else table
        return weak_outputs(self.weak_rankers, read_table(X), len(table))

    def _engine(self, rows: RelatedRows, pairs: PairWeights, workers: Workers) -> Any:
        if self._learns():
            rng = check_random_state(self.random_state)
            return LearnedRankers(pairs, rows.X, self.weak_rankers, rng)
        if not self._binary_weak:
            return ColumnRankers(pairs, np.asarray(rows.X, dtype=np.float64))
        return _STUMPS[type(pairs)](pairs, self._bin_columns(rows, pairs.place, workers), workers)

    def _bin_columns(self, rows: RelatedRows, place: NDArray[np.intp], workers: Workers) -> Binned:
        most = self.max_bins - 1
        if self.n_thresholds is not None:
            most = min(most, self.n_thresholds)
        return bin_columns(rows.X, rows.weight, place, workers, most)

    def _watch(self, stopping: EarlyStopping | None) -> Callable[[Ensemble], bool] | None:
        if stopping is None and not self.verbose and not has_callbacks(self):
            return None

        def watch(ensemble: Ensemble) -> bool:
            if self.verbose:
                self._report(ensemble)
            stop = tell_step(self, "round")
            return (stopping is not None and stopping.should_stop(ensemble)) or stop

        return watch

    def _most_steps(self) -> int:
        return self.n_estimators

    def _report(self, ensemble: Ensemble) -> None:
        record = ensemble.history[-1]
        facts = "  ".join(
            f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in record.items()
        )
        print(f"[{type(self).__name__}] {len(ensemble.history):4d}  {facts}", flush=True)

    def _keep(
        self, ensemble: Ensemble, rows: RelatedRows, pairs: PairWeights, workers: Workers
    ) -> None:
        self._sum = self._additive(ensemble)
        self.history_ = ensemble.history
        self.n_iter_ = len(ensemble.history)
        self.stop_reason_ = ensemble.message
        self.objective_ = ensemble.history[-1]["objective"] if ensemble.history else 0.0
        self._keep_coef(ensemble)
        self._keep_scores(self._sum.scores(rows.X, workers), rows, pairs)

    def _keep_scores(self, scores: FloatArray, rows: RelatedRows, pairs: PairWeights) -> None:
        """Keep what the training scores say: margin, intercept, link."""
        smallest = pairs.margin(scores)
        norm = float(np.sum(np.abs(self.coef_)))
        self.margin_ = smallest / norm if norm > 0 else 0.0
        link = self._fit_link(scores, rows) if _is_classifier(self) else Link(1.0, 0.0)
        self._keep_link(link)

    def _additive(self, ensemble: Ensemble) -> WeakSum:
        if self._learns():
            return LearnedSum(ensemble.choices, ensemble.steps)
        kind = StumpSum if self._binary_weak else ColumnSum
        return kind(ensemble.choices, ensemble.steps)

    def _keep_coef(self, ensemble: Ensemble) -> None:
        """Coefficients of the weak rankers: of columns, or of the distinct stumps used."""
        if self._learns():
            self.estimators_ = [choice.estimator for choice in ensemble.choices]
            self.coef_: FloatArray = self._sum.steps.reshape(1, -1)
            importances = mean_importances(self.estimators_, self._sum.steps)
            if importances is not None:
                self.feature_importances_ = importances
            return
        if isinstance(self.weak_rankers, str) and self.weak_rankers == "stumps":
            distinct = {stump.key: stump for stump in reversed(ensemble.choices)}
            used = [distinct[key] for key in ensemble.coef]
            fields = [("feature", np.intp), ("threshold", np.float64), ("missing", np.int8)]
            self.stumps_ = np.array([(s.column, s.threshold, s.missing) for s in used], fields)
            self.coef_ = np.array([list(ensemble.coef.values())]).reshape(1, -1)
            columns = self.stumps_["feature"]
        else:
            sums: np.ndarray = np.bincount(
                self._sum.columns, self._sum.steps, minlength=self._n_columns
            )
            self.coef_ = sums.reshape(1, -1)
            columns = np.arange(self._n_columns)
        self.feature_importances_ = column_importances(columns, self.coef_[0], self._n_columns)

    def _fit_link(self, scores: FloatArray, rows: RelatedRows) -> Link:
        if self.link == "logistic":
            return logistic(scores, rows.y, rows.weight)
        return self._natural_link(scores, rows)

    @abstractmethod
    def _natural_link(self, scores: FloatArray, rows: RelatedRows) -> Link:
        """Return the link that the boosted loss itself implies."""

    def _keep_link(self, link: Link) -> None:
        self._offset, self._slope = link.offset, link.slope
        self.intercept_ = np.array([link.offset])

    def _after(self, ensemble: Ensemble) -> None:
        """What else a booster keeps."""

    def _warn(self, ensemble: Ensemble) -> None:
        if not ensemble.history:
            warn_caller(
                "No weak ranker tells the crucial pairs apart (for each, those ranked rightly and "
                "wrongly weigh the same), so no step was taken and all scores are equal. Check "
                "the columns and the pairs.",
                ConvergenceWarning,
            )

    def _outputs(self, X: TableLike) -> np.ndarray | Frame:
        check_is_fitted(self)
        table = check_table(X, estimator=self, reset=False, **self._table_options())
        return self._weak_columns(X, table)

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return the ranking score of each row; for two classes zero is a probability of 1/2."""
        Z = self._outputs(X)
        workers = Workers(self.n_jobs)
        with workers.start_threads():
            scores = self._sum.scores(Z, workers)
        scores += self._offset
        return scores

    def staged_decision_function(self, X: TableLike) -> Iterator[FloatArray]:
        """Yield the scores after each round, all with the intercept of the last."""
        Z = self._outputs(X)
        for scores in self._sum.staged_scores(Z):
            yield scores + self._offset

    def predict(self, X: TableLike) -> np.ndarray:
        """Return the more probable class of each row; with target="graded" the score."""
        return super().predict(X) if _is_classifier(self) else self.decision_function(X)

    @available_if(_is_classifier)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: TableLike) -> FloatArray:
        """Return the probabilities of the two classes, by the link."""
        return super().predict_proba(X)

    @available_if(_is_classifier)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: TableLike) -> FloatArray:
        """Return the logarithms of the probabilities of the two classes."""
        return super().predict_log_proba(X)

    def score(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> float:
        """Return the accuracy; with target="graded" the share of the pairs in order.

        A tie in score counts one half. With groups, pairs are those within a group.
        """
        if _is_classifier(self):
            return float(super().score(X, y, sample_weight))
        scores = self.decision_function(X)
        rows = check_related_rows(self, scores, y, groups, None, sample_weight)
        return concordance(rows.relation(), scores, rows.weight)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._reads_missing()
        if _is_classifier(self):
            tags.classifier_tags.multi_class = False
        else:
            tags.estimator_type = None
            tags.classifier_tags = None
        return tags
