"""`PushTrees`: LightGBM or XGBoost under the push, as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_consistent_length

from toprank._numerics import FloatArray
from toprank.interop.team import ALONE, Team
from toprank.pairs import IntArray, Rows, check_groups, check_labels, check_rows
from toprank.pairs.propensity import keep_label_weights
from toprank.rankers.callbacks import TakesCallbacks, has_callbacks
from toprank.rankers.common import Link, fits, logistic, p_classification
from toprank.rankers.held_out import choose_round, held_out, held_out_if_enough
from toprank.rankers.trees.auto import choose_power, usual_power
from toprank.rankers.trees.calibration import score_out_of_fold, thin_classes
from toprank.rankers.trees.clusters import OnClusters
from toprank.rankers.trees.columns import Categories
from toprank.rankers.trees.evaluation import check_eval_metric, list_eval_sets
from toprank.rankers.trees.libraries import (
    BACKENDS,
    check_weight_reach,
    light_row_notes,
    small_column_notes,
    warn_all,
)
from toprank.rankers.trees.model import TreeScores, check_start, model_scores, natural_scale
from toprank.rankers.trees.names import LibraryNames
from toprank.rankers.trees.on_blocks import OnBlocks
from toprank.rankers.trees.plan import CONSTRAINTS, TreeRows, Watch, plan_of
from toprank.rankers.trees.round_tasks import RoundTask
from toprank.rankers.trees.stopping import StoppingRule, cares_for_ties, tied_top_notes

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from toprank._arrays import Matrix, TableLike
    from toprank.folds import PChoice
    from toprank.folds.splits import CrossValidation
    from toprank.losses import Loss
    from toprank.prices import Price
    from toprank.rankers.trees.kept_rounds import KeptRounds

#: Rows from which early_stopping="auto" holds some out.
_MANY_ROWS = 50_000


class PushTrees(
    TakesCallbacks,
    LibraryNames,
    OnBlocks,
    OnClusters,
    TreeScores,
    ClassifierMixin,
    BaseEstimator,
):
    r"""Gradient-boosted trees under the push, by LightGBM or XGBoost.

    The trees minimise, exactly and in linear time per round,

    .. math::
        R_{g,\ell}(f) = \sum_k g\Big(\sum_i \ell(f_i - f_k)\Big)

    over positives i and negatives k, in one list of any length; or within groups.

    Parameters
    ----------
    p : float, "auto" or None, default="auto"
        Power of the price, >= 1; None is the library's own binary objective. "auto" chooses from
        ``ps`` by cross-validation, with trees of a quarter of the rounds and larger steps, which
        takes 1.3 to 1.7 times as long as a fit with p = 4, or up to some 3 times where many rows
        stop it early. With fewer than ten rows of a class, and with another price, p is 4.
    price : str or Price, default="power"
        "power", "identity", "exponential", "log1p" or "max" (p = inf; fitted with p = 64).
    loss : str or Loss, default="exponential"
        "exponential", "logistic", "hinge" or "squared_hinge".
    backend : {"lightgbm", "xgboost"}, default="lightgbm"
        Which library grows the trees.
    n_estimators : int, default=400
        Rounds, at most.
    learning_rate : float, default=0.03
        Many small steps: under the push they rank rare positives better than a hundred large ones.
    max_leaves : int, default=31
    max_depth : int, optional
    min_child_weight : float, default=1.0
        Curvature a leaf has at least; that of all rows sums, at the start, to the number of
        positives times the share of negatives, as for the binary objective.
    reg_lambda : float, default=1.0
        L2 penalty on the scores of leaves, in the same unit.
    min_samples_leaf : int, default=1
        Rows (not weights) a leaf has at least, as LightGBM estimates them from the curvature.
        LightGBM only: XGBoost has no such limit.
    subsample, colsample : float, default=0.8
        Shares of rows and of columns drawn for each tree: with small steps both rank better than
        all rows and columns. Rows are drawn by their place; with ``subsample=1`` a weight is a
        repetition, and the order of the rows is none of the trees' business.
    max_bins : int, default=255
    categorical_features : "from_dtype", sequence or None, default="from_dtype"
        Columns that hold categories: by name, place or mask; "from_dtype" takes the categorical
        and text columns of data frames. Categories never seen in training are missing values.
    monotone_constraints : sequence or dict, optional
        1, 0 or -1 for each column, or for the columns named.
    interaction_constraints : sequence of sequences, optional
        Sets of columns, by name or place, that may meet in a tree; the columns in no set form
        one more.
    early_stopping : bool or "auto", default="auto"
        Whether to hold rows out and stop by ``stop_by``; "auto" does from 50,000 rows on,
        where ten rows of each class or more are among those held out, and whenever ``fit`` is
        given an ``eval_set``.
    stop_by : str or callable, default="auto"
        The metric of the rows held out that the rounds stop by, named as ``metric`` is. "auto" is
        ``metric`` itself, unless it looks at the first k rows alone. Such a metric moves in steps,
        and by luck the best step is often the first: then the rounds stop by the average
        precision, and at least 20 are kept.
    metric : str or callable, default="precision_at"
        Name of a metric of `toprank.metrics`, or a function of labels and scores, larger is
        better.
    metric_kwargs : dict, optional
        Its parameters, such as ``{"k": 100}``; metrics at k look at the first tenth by default.
    rule : {"best", "one_standard_error"}, default="best"
        Which round is kept: the best, or the first within one standard error of it. The same for
        p = "auto", from the weakest push to the strongest.
    validation_fraction : float, default=0.1
    n_iter_no_change : int, default=50
        Rounds without improvement after which to stop.
    ps : sequence of float or None, default=(2, 4, 16)
        What p = "auto" tries. It is compared by ``metric``, or where that looks at the first k
        rows alone by the average precision, on at most 100,000 rows.
    cv : int or splitter, default=3
        Folds of p = "auto". A number draws them by what the rows hold, whatever their order.
    init_scale : "auto" or float, default="auto"
        What the scores of ``init_model`` or ``init_score`` are multiplied by. "auto" is 1/(1 + p)
        for the exponential loss, which makes log-odds scores of the push, else 1.
    link : {"logistic", "p_classification"}, default="logistic"
        From scores to probabilities, fitted to the rows held out if there are any.
    calibration : {"out_of_fold", "training"}, default="out_of_fold"
        What the logistic link is fitted to where no rows are held out: the scores of training rows
        by trees that have not seen them (three more fits to two thirds of the rows), or by the
        trees themselves, which are too sure of themselves. The ranking is the same. ``fit_blocks``,
        ``fit_dask`` and ``fit_spark`` take the trees themselves.
    backend_params : dict, optional
        Further parameters for the library, under its own names; they win over the others.
    random_state : int, RandomState or None, default=0
    n_jobs : int, optional
        Threads; None is one.
    verbose : int, default=0
        Print the metric of the rows held out every ten rounds (1) or every round (2).
    **names
        LightGBM's and XGBoost's names for these: ``num_leaves``, ``min_child_samples``,
        ``colsample_bytree``, ``reg_alpha``, ``early_stopping_rounds`` and others.

    Attributes
    ----------
    classes_ : array of shape (2,)
    p_ : float or None
        The p that was fitted; None for the binary objective.
    choice_ : PChoice or None
        What p = "auto" has seen; None where it took p = 4 without a comparison.
    booster_ : lightgbm.Booster or xgboost.Booster
    n_iter_ : int
        Rounds kept.
    validation_scores_ : array
        ``stop_by`` of the rows held out after each round, larger is better (risks are negated).
    evals_result_ : dict
        The same for each of several rows to stop by, as LightGBM has it.
    validation_standard_error_ : float
        Its standard error at the best round; NaN where none is known.
    feature_importances_ : array of shape (d,)
        Share of each column in the gain of all splits.
    intercept_ : array of shape (1,)
    init_scale_ : float

    Notes
    -----
    With ``subsample=1`` a weight is a repetition count as far as the library lets it be:
    ``min_samples_leaf`` counts rows, and so do the bins of columns with more than ``max_bins``
    values.

    Examples
    --------
    >>> from toprank import PushTrees
    >>> from toprank.datasets import load_wdbc
    >>> X, y = load_wdbc(return_X_y=True)
    >>> trees = PushTrees(p=4, n_estimators=20).fit(X, y)
    >>> bool(abs(trees.explain(X).sum(axis=1) - trees.decision_function(X)).max() < 1e-9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = CONSTRAINTS

    def __init__(
        self,
        p: Any = "auto",
        *,
        price: str | Price | tuple[object, ...] = "power",
        loss: str | Loss | tuple[object, ...] = "exponential",
        backend: str = "lightgbm",
        n_estimators: int = 400,
        learning_rate: float = 0.03,
        max_leaves: int = 31,
        max_depth: int | None = None,
        min_child_weight: float = 1.0,
        reg_lambda: float = 1.0,
        min_samples_leaf: int = 1,
        subsample: float = 0.8,
        colsample: float = 0.8,
        max_bins: int = 255,
        categorical_features: object = "from_dtype",
        monotone_constraints: object = None,
        interaction_constraints: object = None,
        early_stopping: bool | str = "auto",
        stop_by: str | Callable[..., float] = "auto",
        metric: str | Callable[..., float] = "precision_at",
        metric_kwargs: dict[str, Any] | None = None,
        rule: str = "best",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 50,
        ps: Sequence[float | None] = (2.0, 4.0, 16.0),
        cv: CrossValidation = 3,
        init_scale: float | str = "auto",
        link: str = "logistic",
        calibration: str = "out_of_fold",
        backend_params: dict[str, object] | None = None,
        random_state: int | np.random.Generator | None = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
        **names: object,
    ):
        self.p = p
        self.price = price
        self.loss = loss
        self.backend = backend
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_leaves = max_leaves
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.min_child_weight = min_child_weight
        self.reg_lambda = reg_lambda
        self.subsample = subsample
        self.colsample = colsample
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotone_constraints = monotone_constraints
        self.interaction_constraints = interaction_constraints
        self.early_stopping = early_stopping
        self.stop_by = stop_by
        self.metric = metric
        self.metric_kwargs = metric_kwargs
        self.rule = rule
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.ps = ps
        self.cv = cv
        self.init_scale = init_scale
        self.link = link
        self.calibration = calibration
        self.backend_params = backend_params
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self._take_names(names)

    @fits
    def fit(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        label_propensity: ArrayLike | None = None,
        eval_set: object = None,
        eval_metric: object = None,
        callbacks: Sequence[Callable[..., object]] | None = None,
        init_score: ArrayLike | None = None,
        init_model: object = None,
    ) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Numbers and categories; missing values as NaN or None.
        y : array-like of shape (n,)
            Labels of two classes; the larger one in sorted order belongs at the top.
        sample_weight : array-like of shape (n,), optional
            Repetition counts; a row of weight zero is absent.
        groups : array-like of shape (n,), optional
            Rows are compared within their group only.
        label_propensity : float or array-like of shape (n,), optional
            Probability that the row's label was seen; rows are weighted by its inverse, clipped
            (`toprank.select.label_weights`). ``effective_rows_`` says how many rows they count as.
        eval_set : tuple (X, y) or list of them, optional
            Rows to stop by, in the place of some held out. With groups: (X, y, groups). Of
            several the rounds stop by the last, as in XGBoost; all are in ``evals_result_``.
        eval_metric : str or callable, optional
            What to stop by in this fit, in the place of ``stop_by``: the name of a metric, or a
            function of labels and scores that returns a number, larger is better, or what
            LightGBM's functions return.
        callbacks : sequence, optional
            Callbacks of the library that grows the trees, such as ``lightgbm.log_evaluation()``.
            ``lightgbm.early_stopping(n)`` takes the place of ``n_iter_no_change``. A function of
            LightGBM's kind, such as `toprank.interop.optuna.RoundPruner`, is called by both
            libraries.
        init_score : array-like of shape (n,), optional
            Scores to start from, such as the log-odds of a model in production;
            ``decision_function`` then asks for those of its rows.
        init_model : estimator, booster or str, optional
            A fitted model to start from: the trees are added to its scores, here and in
            ``decision_function``.

        Returns
        -------
        self
        """
        if init_score is not None and (init_model is not None or eval_set is not None):
            raise ValueError(
                "init_score holds the scores of the training rows alone; with eval_set, or instead "
                "of init_model, give a model as init_model."
            )
        self._check_link()
        sample_weight = keep_label_weights(self, y, sample_weight, label_propensity)
        rows = self._check_fit(X, y, sample_weight, groups)
        warn_all(small_column_notes(self.backend, rows))
        self.init_model_ = init_model
        self._starts = init_score is not None
        rows = replace(rows, start=self._start_scores(X, init_score, len(rows)))
        self._settle_power(partial(choose_power, self, rows, groups))
        rows = self._scaled(rows.present())
        metric = None if eval_metric is None else check_eval_metric(eval_metric)
        watch, others = None, []
        if eval_set is not None:
            *others, last = [self._eval_rows(one) for one in list_eval_sets(eval_set)]
            watch = self._watch(last, metric)
        elif (parts := self._held_out(rows, self.random_state)) is not None:
            train, test = parts
            rows, watch = rows.take(train), self._watch(rows.take(test), metric)
        warn_all(self._grow(rows, watch, callbacks=tuple(callbacks or ())))
        if watch is not None:
            self._record(watch, others)
        return self

    @fits
    def _choose(
        self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> PChoice | None:
        """Choose p as ``fit`` does, and grow no trees with it."""
        rows = self._check_fit(X, y, sample_weight, None)
        self.init_model_ = None
        return choose_power(self, rows)

    def _check_fit(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
    ) -> TreeRows:
        """Check everything once; return the rows as numbers."""
        checked, classes = check_rows(self, X, y, sample_weight, groups, missing=True, frames=True)
        check_weight_reach(checked.weight)
        self.classes_ = classes
        self._columns = Categories.learn(checked.X, self.categorical_features)
        numbers = self._columns.numbers(checked.X)
        return TreeRows(numbers, checked.y, checked.weight, checked.groups)

    def _check_link(self) -> None:
        of_power = self.price in ("power", "identity") and self.loss == "exponential"
        if self.link == "p_classification" and (not of_power or self.p == np.inf):
            raise ValueError(
                "link='p_classification' belongs to the power price with a finite p and the "
                "exponential loss. Use link='logistic' here."
            )

    def _compares(self) -> bool:
        """Whether p is chosen by a comparison; another price takes none."""
        return isinstance(self.p, str) and self.price == "power"

    def _settle_power(self, choose: Callable[[], PChoice | None]) -> None:
        """Keep the p to fit with, and what follows from it."""
        self.p_ = self.p
        if isinstance(self.p, str):
            self.choice_ = choose() if self._compares() else None
            self.p_ = usual_power(self.ps) if self.choice_ is None else self.choice_.p
        self.init_scale_ = self._scale_for(self.p_)

    def _scale_for(self, p: float | None) -> float:
        """What the scores to start from are multiplied by."""
        if self.init_scale != "auto":
            return float(self.init_scale)
        if isinstance(self.init_model_, PushTrees) and self.init_model_.p_ is not None:
            return 1.0  # scores of the push already
        return natural_scale(p, self.price, self.loss)

    def _push_of(self, p: float | None) -> dict[str, object] | None:
        """The push that the library is asked for; None is its own binary objective."""
        return None if p is None else {"p": p, "price": self.price, "loss": self.loss}

    def _start_scores(
        self, X: Matrix, init_score: ArrayLike | None, n_rows: int
    ) -> FloatArray | None:
        """The scores that the trees are added to, as they were given."""
        if self.init_model_ is not None:
            return model_scores(self.init_model_, X)
        return None if init_score is None else check_start(init_score, n_rows)

    def _scaled(self, rows: TreeRows) -> TreeRows:
        return rows if rows.start is None else replace(rows, start=self.init_scale_ * rows.start)

    def _add_start(self, rows: TreeRows, X: Matrix) -> TreeRows:
        return self._scaled(replace(rows, start=self._start_scores(X, None, len(rows))))

    def _stops_early(self, n: int) -> bool:
        return n >= _MANY_ROWS if self.early_stopping == "auto" else bool(self.early_stopping)

    def _held_out(
        self, rows: Rows, random_state: int | np.random.Generator | None
    ) -> tuple[IntArray, IntArray] | None:
        """Rows to grow from and rows to stop by; None where none are held out."""
        if not self._stops_early(len(rows)):
            return None
        draw = held_out_if_enough if self.early_stopping == "auto" else held_out
        return draw(rows, self.validation_fraction, random_state)

    def _eval_rows(self, eval_set: Sequence[Any]) -> TreeRows:
        X, y, *groups = eval_set
        labels, numbers = check_labels(y), self._numbers(X)
        check_consistent_length(numbers, labels)
        if not np.all(np.isin(labels, self.classes_)):
            raise ValueError(f"eval_set has labels other than the classes fitted: {self.classes_}.")
        positive = np.asarray(labels == self.classes_[1])
        codes = check_groups(groups[0], len(labels)) if groups else None
        return self._add_start(TreeRows(numbers, positive, None, codes), X)

    def _watch(self, rows: TreeRows, metric: str | Callable[..., float] | None = None) -> Watch:
        rule = StoppingRule.of(self, grouped=rows.groups is not None)
        if metric is not None:
            rule = StoppingRule(metric, self.metric_kwargs if metric == self.metric else None)
        return Watch(rows, rule.measure(rows), self.n_iter_no_change, rule.least, rule.name)

    def _record(self, watch: Watch, others: list[TreeRows]) -> None:
        """Keep the metric after each round for every set of rows to measure on."""
        sets: list[list[float]] = []
        for rows in others:
            measure: Any = watch.measure
            stages = self._trees.staged_scores(rows.X)
            sets.append([measure.on(rows)(_add(scores, rows.start)) for scores in stages])
        sets.append(self.validation_scores_.tolist())
        self.evals_result_ = {f"valid_{j}": {watch.name: one} for j, one in enumerate(sets)}

    def _grow(
        self,
        rows: TreeRows,
        watch: Watch | None,
        team: Team = ALONE,
        callbacks: tuple[Callable[..., object], ...] = (),
        kept: KeptRounds | None = None,
    ) -> list[str]:
        """Grow the trees, and return what their user should be told."""
        push = self._push_of(self.p_)
        plan = replace(plan_of(self), callbacks=callbacks, kept=kept)
        library = BACKENDS[self.backend]
        told = plan
        if has_callbacks(self):
            at_round = partial(library.at_round, rows=rows, plan=plan, push=push)
            told = replace(plan, callbacks=(*callbacks, RoundTask(self, rows, at_round)))
        grown = library.grow(rows, told, push, watch)
        self._trees, shown = grown.trees, rows
        if watch is not None:
            self._keep_best(watch, grown.values)
            shown = watch.rows
        self.booster_ = self._trees.booster
        self.n_iter_ = self._trees.n_rounds
        gains = self._trees.gains()
        self.feature_importances_ = gains / (np.sum(gains) or 1.0)
        if self.calibration == "training" and team is ALONE and not cares_for_ties(self):
            shown = thin_classes(shown)
        scores, of_all = team.gather(self._from(shown)), shown.of_all(team)
        unseen = None
        at_hand = isinstance(rows.X, np.ndarray)
        if watch is None and team is ALONE and at_hand and self._calibrates():
            quiet = replace(plan, callbacks=(), verbose=0)
            unseen = score_out_of_fold(
                rows,
                lambda train, test: _add(
                    library.grow(train, quiet, push, None).trees.scores(test.X), test.start
                ),
            )
        self._keep_link(self._fit_link(scores if unseen is None else unseen, of_all))
        # the trees are the same for the whole team, which is asked as a whole
        if not np.any(gains > 0):
            return light_row_notes(rows.weight, self.min_child_weight, team)
        return tied_top_notes(self, scores, of_all)

    def _keep_best(self, watch: Watch, values: FloatArray) -> None:
        measure: Any = watch.measure
        best = int(np.argmax(values)) + 1
        at_best = self._from(watch.rows, best)
        self.validation_scores_ = values
        self.validation_standard_error_ = measure.standard_error(at_best)
        self._trees.n_rounds = choose_round(
            values, self.validation_standard_error_, self.rule, watch.least
        )

    def _from(self, rows: TreeRows, n_rounds: int | None = None) -> FloatArray:
        return _add(self._trees.scores(rows.X, n_rounds), rows.start)

    def _calibrates(self) -> bool:
        fits_link = self.link == "logistic" and self.p_ is not None
        return fits_link and self.calibration == "out_of_fold"

    def _fit_link(self, scores: FloatArray, rows: TreeRows) -> Link:
        if self.p_ is None:
            return Link(1.0, 0.0)  # the binary objective brings its own
        if self.link == "logistic":
            return logistic(scores, rows.y, rows.weight)
        p = 1.0 if self.price == "identity" else float(self.p_)
        return p_classification(scores, rows.y, rows.weight, p)

    def _most_steps(self) -> int:
        return self.n_estimators

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        return tags


def _add(scores: FloatArray, start: FloatArray | None) -> FloatArray:
    return scores if start is None else scores + start
