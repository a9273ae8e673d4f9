"""`PushEnsemble`: rankers of any kind, weighed by a push over their out-of-fold scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from toprank.blocks import Workers
from toprank.pairs import Rows
from toprank.pairs.propensity import keep_label_weights
from toprank.rankers.callbacks import TakesCallbacks
from toprank.rankers.common import ShownInterval, fits
from toprank.rankers.ensemble.fit_steps import EnsembleRows, EnsembleSteps, check_members
from toprank.rankers.ensemble.on_blocks import EnsembleOnBlocks
from toprank.rankers.ensemble.out_of_fold import (
    Budget,
    OutOfFold,
    Progress,
    reason_of,
    smoothed_members,
)
from toprank.rankers.ensemble.plan import EFFORTS, Member, TableShape
from toprank.rankers.ensemble.weighing import measure_interval
from toprank.rankers.held_out import held_out

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from toprank._arrays import TableLike
    from toprank._numerics import FloatArray
    from toprank.folds.splits import CrossValidation
    from toprank.inference import Interval as MetricInterval


#: What is known of the rows of the fit.
_OF_ROWS = ("_present", "_n_rows", "_labels", "_fit_weight", "_fit_groups")


class PushEnsemble(
    TakesCallbacks,
    ShownInterval,
    EnsembleOnBlocks,
    EnsembleSteps,
    ClassifierMixin,
    BaseEstimator,
):
    r"""A P-Norm Push with weights that are not negative, over rankers of any kind.

    Each member is fitted to folds; its scores of the rows it has not seen, standardised, become a
    column. Over these columns h_m the weights

    .. math::
        \min_{\lambda \ge 0} \sum_k \Big(\sum_i e^{-\sum_m \lambda_m
        (h_m(x_i) - h_m(x_k))}\Big)^p

    are those of the paper's push over weak rankers (Rudin 2009), found with a certificate; with
    fewer than 100 positives the means of those of each half of the folds, which follow noise less.
    The members that have a weight are then fitted to all rows. The score rises with that of every
    member.

    Parameters
    ----------
    estimators : "auto" or list of (str, estimator), default="auto"
        The members: classifiers with ``decision_function`` or ``predict_proba``. "auto" takes
        logistic regression, the linear push, boosted trees under the push and with the binary
        objective (LightGBM, or XGBoost), extra trees, and CatBoost where it is installed.
    p : "auto" or float, default="auto"
        The push over the members. "auto" compares several, the logistic loss and each member
        alone; a number from 1 on is taken as it is, with the penalty chosen.
    quality : {"fast", "good", "best"}, default="good"
        How much work "auto" is: folds, trees per member, members, combinations tried.

        ========  =====  ==============  ======  ==============================================
        quality   folds  boosted trees   forest  beside the linear members
        ========  =====  ==============  ======  ==============================================
        fast      3      80              40      trees with p = 4, extra trees, binary trees
        good      4      220             160     the same or wide trees, more combinations
        best      5      400             300     wide, p = 1 and 16, a random forest too
        ========  =====  ==============  ======  ==============================================

        Wide extra trees try half of the columns at every split, 32 at most, where the others try
        the root of their number: they find the few columns that matter among many that do not.
        In "good" there are some where less than a quarter of the rows are positives, and there,
        beside CatBoost, no binary trees, which hardly add anything then. A forest of extra trees
        is two members: as it is, and smoothed, the shares of its leaves drawn towards those of the
        nodes above them, as far as the log loss out of fold says.
        Tables of fewer than 2,000 rows get at least five folds; those with fewer than 100 positives
        get 300 trees of CatBoost in "good", others 120. Of more than 100,000 rows (fast), 300,000
        (good) or 1,000,000 (best) so many are drawn, class by class, to weigh the members by; the
        members themselves are then fitted to all rows. A ``cv`` of your own takes all. "fast"
        leaves out members of "auto" that weigh less than a tenth of the heaviest, and in boosted
        trees of more than 23 columns tells fewer values of each apart (255 otherwise, 63 at least).
    metric : str or callable, default="average_precision"
        What combinations are compared by: a metric of `toprank.metrics`, or a scikit-learn scorer
        that ranks by ``decision_function``, ``scorer(estimator, X, y)``.
    metric_kwargs : dict, optional
        Its parameters, such as ``{"k": 100}``.
    cv : int, splitter, iterable or "auto", default="auto"
        Folds. A number means that many stratified folds, drawn at random by a fixed seed, of whole
        groups where ``fit`` is given groups, in the order of time where it is given times. "auto"
        is the number of ``quality``.
    max_seconds : float, optional
        Members whose first folds say that they would not end in time are left out, the last of
        the list first; the first member never is.
    on_error : {"warn", "raise"}, default="warn"
        A member that fails, in a fold or in the fit to all rows, is dropped with a warning that
        names it, or stops the fit.
    test_size : float or None, default=None
        Share of the rows for ``score_interval_``: the whole ensemble is fitted without them,
        measured on them, and then fitted again to all rows, which doubles the time. None takes
        the interval from the out-of-fold scores, each row scored by members and by a combination
        that have not seen it.
    level : float, default=0.95
        Confidence level of the interval.
    categorical_features : "from_dtype", sequence or None, default="from_dtype"
        Columns that hold categories, as in `PushTrees`; for the members of "auto". Trees split by
        them, linear members take a column of 0 and 1 for each.
    clip_tails : bool, default=True
        Whether in the linear members of "auto" a column of which a number lies 50 standard
        deviations or more from the mean counts beyond its outer half percents as no more than
        these; such a number would head their lists by itself otherwise. Nor does any number count
        as farther out than the range of the training rows once more.
    random_state : int, RandomState or None
        Seed of the members of "auto".
    n_jobs : int, optional
        Folds and members at a time, in threads; each member then uses one thread.
    verbose : int, default=0
        Print a line per member and fold.

    Attributes
    ----------
    classes_ : array of shape (2,)
    members_ : list of (str, estimator)
        The members that have a weight, fitted to all rows.
    weights_ : dict of str to float
        The weight of every member that was not dropped, per standard deviation of its scores.
    combination_ : str
        The combination that was taken.
    choice_ : CombinationChoice
        All combinations tried, and their scores on the folds.
    p_ : float or None
        The push of the combination; None for the logistic loss and for one member alone.
    optimality_gap_ : float
        Certified bound on how far the combination's objective lies above its minimum at
        ``weights_``: next to nothing, but where these are means over halves of the folds.
    member_table_ : MemberTable
        What each member brings: its own metric, the loss without it, its seconds.
    oof_scores_ : array of shape (n, members)
        Out-of-fold scores; NaN where a row was in no test fold, or was not drawn.
    oof_decision_ : array of shape (n,)
        The score of each row from its out-of-fold scores; NaN where it has none.
    oof_members_ : list of str
        The members in the order of its columns.
    score_interval_ : Interval or None
        The metric of the ensemble, with its interval; None if there are too few rows for one.
    dropped_ : dict of str to str
        The members that failed or were left out, and why.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from toprank import PushEnsemble
    >>> from toprank.datasets import load_wdbc
    >>> X, y = load_wdbc(return_X_y=True)
    >>> linear = make_pipeline(StandardScaler(), LogisticRegression())
    >>> ensemble = PushEnsemble([("linear", linear), ("bayes", GaussianNB())], cv=3).fit(X, y)
    >>> all(weight >= 0 for weight in ensemble.weights_.values())
    True
    >>> ensemble.score_interval_.estimate > 0.97
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "estimators": [StrOptions({"auto"}), list, tuple],
        "p": [StrOptions({"auto"}), Interval(Real, 1, None, closed="left")],
        "quality": [StrOptions(set(EFFORTS))],
        "metric": [str, callable],
        "metric_kwargs": [dict, None],
        "cv": [
            StrOptions({"auto"}),
            Interval(Integral, 2, None, closed="left"),
            HasMethods(["split"]),
            "array-like",
        ],
        "max_seconds": [Interval(Real, 0, None, closed="neither"), None],
        "on_error": [StrOptions({"warn", "raise"})],
        "test_size": [Interval(Real, 0, 1, closed="neither"), None],
        "level": [Interval(Real, 0, 1, closed="neither")],
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", None],
        "clip_tails": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    clip_tails = False  # of files that were saved before there was such a parameter

    def __init__(
        self,
        estimators: str | Sequence[Member] = "auto",
        *,
        p: float | str = "auto",
        quality: str = "good",
        metric: str | Callable[..., float] = "average_precision",
        metric_kwargs: dict[str, object] | None = None,
        cv: CrossValidation | str = "auto",
        max_seconds: float | None = None,
        on_error: str = "warn",
        test_size: float | None = None,
        level: float = 0.95,
        categorical_features: object = "from_dtype",
        clip_tails: bool = True,
        random_state: int | np.random.Generator | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.estimators = estimators
        self.p = p
        self.quality = quality
        self.metric = metric
        self.metric_kwargs = metric_kwargs
        self.cv = cv
        self.max_seconds = max_seconds
        self.on_error = on_error
        self.test_size = test_size
        self.level = level
        self.categorical_features = categorical_features
        self.clip_tails = clip_tails
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fits
    def fit(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
        label_propensity: ArrayLike | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit members to folds, weigh them, and fit those that have a weight to all rows.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Numbers, categories where the members take them, missing values as NaN or None.
        y : array-like of shape (n,)
            Labels of two classes; the larger one in sorted order belongs at the top.
        sample_weight : array-like of shape (n,), optional
            Repetition counts; a row of weight zero is absent.
        groups : array-like of shape (n,), optional
            Rows of one group stay in one fold; or what the splitter ``cv`` splits by.
        time : array-like of shape (n,), optional
            When each row was seen: members and their weights learn from the past. The earliest
            rows, which no fold tests, count for the members alone.
        label_propensity : float or array-like of shape (n,), optional
            Probability that the row's label was seen; rows are weighted by its inverse, clipped
            (`toprank.select.label_weights`). ``effective_rows_`` says how many rows they count as.
        progress : callable, optional
            Called as ``progress(step, done, total)`` after each fold of each member.

        Returns
        -------
        self
        """
        sample_weight = keep_label_weights(self, y, sample_weight, label_propensity)
        rows = self._check_fit(X, y, sample_weight, groups, time)
        n_positives = int(np.sum(rows.y == self.classes_[1]))
        members = self._members(TableShape(self.n_features_in_, len(rows), n_positives))
        self._folds = self._make_folds(rows)
        self._check_metric(rows)
        outer = None if self.test_size is None else self._outer_interval(rows, members)
        budget = Budget(self.max_seconds, Workers(self.n_jobs).n_jobs)
        workers = Workers(self.n_jobs)
        tell = self._teller(progress)
        with workers.start_threads():
            work = OutOfFold(rows, self._folds, workers, budget, tell, self.on_error)
            runs = work.run([(name, self._single(one)) for name, one in members])
            members += smoothed_members(runs)
            self._weigh_and_fit(rows, runs, members, partial(self._fit_last, rows, workers))
        if outer is not None:
            self.score_interval_ = outer
        return self

    @fits
    def partial_refit(
        self,
        X: TableLike,
        y: ArrayLike,
        estimators: Sequence[Member],
        sample_weight: ArrayLike | None = None,
        *,
        progress: Progress | None = None,
    ) -> Self:
        """Add members, or put others in the place of those of the same name, and weigh all anew.

        The other members are not fitted again, unless they had no weight before and have one now.

        Parameters
        ----------
        X, y, sample_weight
            The rows of the fit, in the same order. Without ``sample_weight`` they have the weights
            of the fit, and always its groups.
        estimators : list of (str, estimator)
            The new members.
        progress : callable, optional
            As in ``fit``.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        known, folds, runs = dict(self._templates), self._folds, dict(self._runs)
        before, dropped = dict(self.members_), self.dropped_
        rows = self._rows_again(X, y, sample_weight)
        new = check_members(estimators)
        workers = Workers(self.n_jobs)
        with workers.start_threads():
            budget, tell = Budget(self.max_seconds, workers.n_jobs), self._teller(progress)
            work = OutOfFold(rows, folds, workers, budget, tell, self.on_error)
            found = work.run([(name, self._single(one)) for name, one in new])
            runs.update((run.name, run) for run in found)
            known.update(new + smoothed_members(found))
            self._folds = folds
            again = {run.name for run in found}
            kept = {name: model for name, model in before.items() if name not in again}
            told = [name for name in dropped if name not in again]
            fit_last = partial(self._fit_last, rows, workers)
            members = list(known.items())
            self._weigh_and_fit(rows, list(runs.values()), members, fit_last, kept, told)
        return self

    def _rows_again(
        self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> EnsembleRows:
        """The rows of the fit with its groups and weights; ValueError if they are others."""
        n, labels = self._n_rows, self._labels
        told = hasattr(self, "_fit_weight")  # pickles of earlier versions do not say
        same = told and np.shape(y)[:1] == (n,)
        weight, groups = (self._fit_weight, self._fit_groups) if same else (None, None)
        given = weight if sample_weight is None else sample_weight
        rows = self._check_fit(X, y, given, groups, None)
        if told and self._n_rows == n and not _same_weights(self._fit_weight, weight):
            raise ValueError(
                "partial_refit got a sample_weight that differs from that of the fit, which the "
                "other members were fitted and weighed by. Leave it out to go on with that of the "
                "fit, or fit anew."
            )
        if self._n_rows != n or not np.array_equal(rows.y, labels):
            raise ValueError(
                f"partial_refit got {self._n_rows} rows, expected the {n} of the fit with the same "
                "labels in the same order: the out-of-fold scores of the other members are those "
                "of these rows. Fit anew for other rows."
            )
        return rows

    @fits
    def refit_members(
        self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the members that have a weight to other rows, and keep the weights.

        One fit per member instead of one per fold too: for rows that came since, or after a first
        fit to most of the rows that some were held out of. What the weights were found by
        (``choice_``, ``oof_scores_``, ``member_table_``, ``score_interval_``) stays that of
        the fit.

        Parameters
        ----------
        X, y, sample_weight
            Rows of the same columns and classes as those of the fit.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        about_fit = {name: vars(self)[name] for name in _OF_ROWS if name in vars(self)}
        classes = self.classes_
        rows = self._check_fit(X, y, sample_weight, None, None)
        if not np.array_equal(self.classes_, classes):
            raise ValueError(f"The labels are {self.classes_}; those of the fit were {classes}.")
        for name in _OF_ROWS:
            self.__dict__.pop(name)
        self.__dict__.update(about_fit)
        workers, wanted = Workers(self.n_jobs), self._weighed(self._templates)
        with workers.start_threads():
            found = self._fit_last(rows, workers, wanted)
        for name, one in found.items():
            if isinstance(one, Exception):
                raise ValueError(
                    f"The member {name!r} failed on the fit to these rows: {reason_of(one)}. "
                    "refit_members keeps the weights of all: put it right, or fit anew."
                ) from one
        self.members_ = [(name, found[name]) for name, _ in wanted]
        return self

    def _outer_interval(self, rows: EnsembleRows, members: list[Member]) -> MetricInterval | None:
        """Fit without some of the rows, and measure on them."""
        positive = np.asarray(rows.y == self.classes_[1])
        assert self.test_size is not None
        if rows.time is None:
            parts = Rows(np.empty((len(rows), 0)), positive, None, rows.groups)
            seed = check_random_state(self.random_state)
            try:
                train, test = held_out(parts, self.test_size, seed)
            except ValueError:
                raise ValueError(
                    f"test_size={self.test_size}: no split of the "
                    f"{'rows' if rows.groups is None else 'groups'} leaves both classes on both "
                    "sides. Give another share, or None, which takes the interval from the "
                    "out-of-fold scores."
                ) from None
        else:
            order = np.argsort(rows.time, kind="stable")
            cut = len(order) - max(1, round(self.test_size * len(order)))
            train, test = order[:cut], order[cut:]
        inner = PushEnsemble(members, **{**self._settings(), "test_size": None, "verbose": 0})
        part, aside = rows.take(np.sort(train)), rows.take(np.sort(test))
        inner.fit(part.X, part.y, part.weight, groups=part.groups, time=part.time)
        table = Rows(None, np.asarray(aside.y == self.classes_[1]), aside.weight, aside.groups)
        return measure_interval(
            self._scoring(), table, inner.decision_function(aside.X), self.level
        )

    def _settings(self) -> dict[str, Any]:
        given = self.get_params(deep=False)
        del given["estimators"]
        cv = given["cv"]
        if not isinstance(cv, (str, Integral)) and not hasattr(cv, "split"):
            given["cv"] = len(list(cv))  # folds of all rows are none of some
        return given

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = self._allows_missing()
        return tags


def _same_weights(given: FloatArray | None, kept: FloatArray | None) -> bool:
    """Whether two weights are the same; None is one for every row."""
    if given is None or kept is None:
        one = kept if given is None else given
        return one is None or bool(np.all(one == 1.0))
    return np.array_equal(given, kept)
