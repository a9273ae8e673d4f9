"""The P-Norm Push with p and alpha chosen by cross-validation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.model_selection import (
    StratifiedGroupKFold,
    check_cv,
)
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from toprank._arrays import TableLike
from toprank._files import path_on_disk
from toprank.blocks import Workers
from toprank.blocks.checkpoint import keep_passes
from toprank.folds import (
    RULES,
    Candidate,
    PChoice,
    Scoring,
    folds_on_blocks,
)
from toprank.pairs import check_rows, group_labels, weigh_classes
from toprank.pairs.propensity import keep_label_weights
from toprank.rankers.base import LinearRanker
from toprank.rankers.blockwise import check_source
from toprank.rankers.common import ShownInterval, fits, warn_caller
from toprank.rankers.linear import _LOSS
from toprank.tuning.block_search import BlockSearch
from toprank.tuning.nested import FOLDS, has_quick_interval, smaller_class
from toprank.tuning.rows import TuningRows, inner_folds, split_outer
from toprank.tuning.search import SettingSearch
from toprank.tuning.settings import cv_results, setting_grid

if TYPE_CHECKING:
    from os import PathLike

    from toprank._arrays import IntArray
    from toprank.blocks import BlockSource
    from toprank.losses import Loss


#: To compare settings on held-out rows a fit need not be exact: the gradient may be this share
#: of its own sampling error, 1/sqrt(n), but no more than the second number.
_SHARE_OF_NOISE, _LOOSEST = 0.1, 5e-5
#: Entries and columns of X up to which the folds within folds of an interval take seconds; beyond,
#: this share of the rows is kept aside.
_NESTED_ENTRIES, _NESTED_FEATURES, _SHARE_ASIDE = 20_000, 50, 0.2


class PNormPushCV(ShownInterval, LinearRanker):
    r"""The P-Norm Push, with p and alpha chosen on held-out rows, or no push at all.

    For every p and alpha, and for logistic regression with every alpha, the mean of the score over
    the folds is compared; the choice is fitted to all rows. Larger p needs more data (Rudin 2009,
    Theorems 2 and 3), so the answer may be not to push; it is reported as such.

    Parameters
    ----------
    ps : sequence of float, default=(1, 2, 4, 8, 16, 64)
        How hard to push: the values of p to try, from 1 to infinity.
    scoring : str or callable, default="precision_at"
        A metric of `toprank.metrics`, or a scikit-learn scorer that ranks by
        ``decision_function``. Larger is better; risks are negated. Settings are compared by a
        steadier form of a metric that one row decides: ``positives_at_top`` with five negatives.
    scoring_kwargs : mapping, optional
        Parameters of the metric, such as ``{"k": 0.01}``; by default the top tenth of the list.
        A share is the same depth in a fold as in the whole list; a count is not.
    cv : int, splitter or iterable, default=5
        Folds. A number means that many stratified folds, drawn at random by a fixed seed, of whole
        groups if ``fit`` is given groups; it is lowered to the number of rows in the smaller class.
        `toprank.tuning.TimeOrderedSplit` trains on the past, with a gap for labels that mature
        late; pass it the times as groups.
    n_repeats : int, default=1
        How often the folds are drawn where ``cv`` is a number. The mean over several draws is
        steadier where positives are few. The outer folds of a nested interval are drawn as often.
    alphas : sequence of float
        The L2 penalties to try, on the normalised objective; positive.
    rule : {"best", "one_standard_error"}, default="best"
        The highest mean; or the weakest push, none included, that is behind it by no more than
        one standard error of their paired difference.
    test_size : {"auto", "nested"}, float or None, default="auto"
        Which rows ``score_interval_`` tests. "nested": all of them, each by a choice that was made
        and fitted without its fold (nested cross-validation): the narrowest, at the price of 25
        more grids of fits, ``n_repeats`` times. A share: that part of the rows is kept aside;
        neither the folds nor the choice see them, and the final fit does. None: no interval.
        "auto": nested for tables of up to 20,000 entries and 50 features with ten rows of each
        class, if ``cv`` is a number, there are no groups and the metric is one of ours; otherwise
        0.2.
    level : float, default=0.95
        Confidence level of the intervals.
    loss, solver, max_iter, tol, link, class_weight
        As in :class:`PNormPush`.
    random_state : int, default=0
        Seed of the rows kept aside.
    n_jobs : int, optional
        Folds at a time, in threads. The answer does not depend on it.
    verbose : int, default=0
        Print the choice. ``fit`` also prints after every fold the seconds taken and the choice by
        the folds so far: the first of these lines is the first usable answer. ``fit_blocks``, which
        fits all folds in the same passes, prints the seconds after each of its steps.

    Attributes
    ----------
    p_ : float or None
        The chosen p; None if the answer is not to push.
    alpha_ : float
        The chosen penalty.
    pushes_ : bool
        Whether the answer is to push.
    choice_ : PChoice
        The means, standard errors and paired differences; prints as a table and a verdict.
    best_score_ : float
        Mean score of the choice over the folds. It was chosen for it, so it flatters.
    score_interval_ : Interval or None
        Confidence interval of the metric on rows that the choice has not seen; None if there are
        none, or too few.
    cv_results_ : dict
        As in scikit-learn's ``GridSearchCV``; ``param_p`` is masked for the baseline.
    best_estimator_ : PNormPush or ProperRanker
        The choice, fitted to all rows.
    coef_, intercept_, classes_, n_iter_, objective_, optimality_gap_, history_
        Those of the best estimator.

    Notes
    -----
    The grid costs little more than a few fits: the path through it is walked on a sample of the
    rows, then every setting steps at once, one read of X per step. In the folds the gradient is
    brought down to a small share of its sampling error; the final fit obeys ``tol``.

    The nested interval follows Bates, Hastie & Tibshirani (2023): five outer folds, and fits with
    one, two or three of them missing, 5 + 10 + 10 grids for each drawing. The choice without a fold
    is made on the other four; what the final fit gains from its rows is extrapolated (``bias``).

    Examples
    --------
    >>> from toprank import PNormPushCV
    >>> from toprank.datasets import load_magic
    >>> X, y = load_magic(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> ranker = PNormPushCV(scoring_kwargs={"k": 0.01}).fit(X, y)
    >>> ranker.pushes_, ranker.p_ >= 8
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **LinearRanker._parameter_constraints,
        "ps": ["array-like"],
        "scoring": [str, callable],
        "scoring_kwargs": [dict, None],
        "cv": [Interval(Integral, 2, None, closed="left"), HasMethods(["split"]), "array-like"],
        "n_repeats": [Interval(Integral, 1, None, closed="left")],
        "alphas": ["array-like"],
        "rule": [StrOptions(set(RULES))],
        "test_size": [
            Interval(Real, 0, 1, closed="neither"),
            StrOptions({"auto", "nested"}),
            None,
        ],
        "level": [Interval(Real, 0, 1, closed="neither")],
        "loss": _LOSS,
        "solver": [StrOptions({"auto", "lbfgs", "newton"})],
        "random_state": [Integral],
    }
    del _parameter_constraints["alpha"], _parameter_constraints["warm_start"]
    del _parameter_constraints["positive"]

    def __init__(
        self,
        ps: Sequence[float] = (1, 2, 4, 8, 16, 64),
        *,
        scoring: object = "precision_at",
        scoring_kwargs: Mapping[str, object] | None = None,
        cv: object = 5,
        n_repeats: int = 1,
        alphas: Sequence[float] = (1e-4, 1e-3, 1e-2, 1e-1, 1.0),
        rule: str = "best",
        test_size: float | str | None = "auto",
        level: float = 0.95,
        loss: str | Loss | tuple[object, ...] = "exponential",
        solver: str = "auto",
        max_iter: int | None = None,
        tol: float = 1e-6,
        link: str = "logistic",
        class_weight: object = None,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.ps = ps
        self.scoring = scoring
        self.scoring_kwargs = scoring_kwargs
        self.cv = cv
        self.n_repeats = n_repeats
        self.alphas = alphas
        self.rule = rule
        self.test_size = test_size
        self.level = level
        self.loss = loss
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.link = link
        self.class_weight = class_weight
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
        label_propensity: ArrayLike | None = None,
        **params: ArrayLike | None,
    ) -> Self:
        """Choose p and alpha, and fit the choice to all rows.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n, d)
            As in :class:`PNormPush`.
        y : array-like of shape (n,)
            Labels of two classes; the larger one in sorted order belongs at the top.
        sample_weight : array-like of shape (n,), optional
            Repetition counts, for fits and scores; a row of weight zero is absent.
        label_propensity : float or array-like of shape (n,), optional
            Probability that the row's label was seen; rows are weighted by its inverse, clipped
            (`toprank.select.label_weights`). ``effective_rows_`` says how many rows they count as.
        **params
            ``groups``, for the splitter: rows of one group stay in one fold, and are kept aside
            together.

        Returns
        -------
        self
        """
        sample_weight = keep_label_weights(self, y, sample_weight, label_propensity)
        groups = self._routed_groups(sample_weight, params)
        score = Scoring(self.scoring, self.scoring_kwargs)
        checked, classes = check_rows(self, X, y, sample_weight, sparse=True)
        n = len(checked)
        rows = TuningRows(
            checked.X,
            checked.y,
            checked.weight,
            group_labels(groups, n),
            weigh_classes(self.class_weight, classes, checked.y, checked.weight),
        )
        grid = self._grid()
        workers = Workers(self.n_jobs)
        with workers.start_threads():
            self._choose(rows, SettingSearch(*grid, score, self.rule, self.level, workers))
        template = grid[1][self.best_index_].set_params(tol=self.tol, n_jobs=self.n_jobs)
        self.best_estimator_ = template.fit(rows.X, classes[rows.y.astype(np.intp)], rows.weight)
        self._adopt(self.best_estimator_)
        if self.verbose:
            print(f"[PNormPushCV] {self.choice_}", flush=True)
        return self

    @fits
    def fit_blocks(
        self,
        source: BlockSource,
        *,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Choose p and alpha on folds of a block source, and fit the choice to all its rows.

        A row is put into a fold where it lies, by a hash of what it holds (`row_folds` tells which
        in memory); by a hash of its group where the source has groups; in the order of time where
        ``cv`` is `TimeOrderedSplit` and the groups are times. All settings of all folds are fitted
        and scored in the same passes; the choice is that of ``fit`` with the same folds. Metrics of
        folds are exact up to 2,000,000 rows, as in ``evaluate_blocks``.

        Parameters
        ----------
        source : BlockSource
            From `toprank.blocks`: ``from_parquet``, ``from_dask``, ``from_spark``, ...
        checkpoint, resume
            As in ``PNormPush.fit_blocks``; the choice is kept in the folder, the fit after it in
            ``final`` below.

        Returns
        -------
        self
            With ``passes_``: how often the rows were passed over, and for what.

        Examples
        --------
        >>> from toprank import PNormPushCV, blocks
        >>> from toprank.simulate import linear_bipartite
        >>> X, y = linear_bipartite().sample(5_000, random_state=0)
        >>> ranker = PNormPushCV((1, 4), alphas=(1e-3, 1e-2), cv=3)
        >>> ranker = ranker.fit_blocks(blocks.from_arrays(X, y))
        >>> ranker.choice_.fold_scores.shape
        (6, 3)
        """
        check_source(source)
        if self.test_size == "nested":
            raise ValueError(
                "test_size='nested' fits the grid 25 times more, which a block source is not read "
                "for: give a share of the rows to keep aside, such as 0.2, or None."
            )
        aside = _SHARE_ASIDE if isinstance(self.test_size, str) else self.test_size or 0.0
        candidates, templates = self._grid()
        with (
            keep_passes(source, checkpoint, resume) as kept,
            source.start_threads(self.n_jobs),
        ):
            folds = folds_on_blocks(
                kept, self.cv, repeats=self.n_repeats, seed=self.random_state, aside=aside
            )
            score = Scoring(self.scoring, self.scoring_kwargs)
            search = BlockSearch(
                kept, folds, candidates, templates, score, self.rule, self.level, self.class_weight
            )
            self._choose_on_blocks(search, aside > 0)
        template = templates[self.best_index_].set_params(tol=self.tol, n_jobs=self.n_jobs)
        final = None if checkpoint is None else path_on_disk(checkpoint, "checkpoint") / "final"
        self.best_estimator_ = template.fit_blocks(source, checkpoint=final, resume=resume)
        self._adopt(self.best_estimator_)
        self._keep_columns(source)
        self.passes_ = dict(search.passes + Counter(self.best_estimator_.passes_))
        if self.verbose:
            print(f"[PNormPushCV] {self.choice_}", flush=True)
        return self

    #: Called with what is known so far, a line of text; for whoever fits this as a part of more.
    _listener: Callable[[str], None] | None = None

    def _teller(self) -> Callable[[str], None] | None:
        """Return what is told how far the choice is; None if nobody listens."""
        if not self.verbose:
            return self._listener
        start = perf_counter()
        return lambda text: print(
            f"[PNormPushCV] {perf_counter() - start:.1f} s: {text}", flush=True
        )

    def _most_steps(self) -> int:
        return 0  # the grid steps as a whole

    def _choose_on_blocks(self, search: BlockSearch, aside: bool) -> None:
        tell = self._teller()
        data = search.look()
        tol = max(self.tol, min(_LOOSEST, _SHARE_OF_NOISE / np.sqrt(data.counts.n_present)))
        for template in search.templates:
            template.set_params(tol=tol)
        self._keep_choice(search.choose(tell))
        self.score_interval_ = None
        if not aside:
            return
        try:
            self.score_interval_ = search.interval_aside(self.best_index_)
        except ValueError as error:
            warn_caller(f"score_interval_ is None. {error}", UserWarning)

    def _choose(self, rows: TuningRows, search: SettingSearch) -> None:
        nested = self._is_nested(rows.take(rows.places_present), search.score)
        inner, outer = self._parts(rows, nested)
        folds = inner_folds(rows, inner, self.cv, self.n_repeats, self.random_state)
        part = rows.take(inner).in_lighter_form()
        search.score.check(folds, part.y, part.weight)
        tol = max(self.tol, min(_LOOSEST, _SHARE_OF_NOISE / np.sqrt(len(inner))))
        for template in search.templates:
            template.set_params(tol=tol)
        tell = self._teller()
        whole = search.fit(part)
        self._keep_choice(search.choose(part, folds, whole, tell))
        self.score_interval_ = None
        try:
            if nested:
                self.score_interval_ = search.nested_interval(
                    part, self.cv, whole, self.n_repeats, self.random_state
                )
            elif outer is not None:
                aside = rows.take(outer)
                line = whole.scores(aside)[self.best_index_]
                self.score_interval_ = search.interval_aside(line, aside, self.cv)
        except ValueError as error:
            warn_caller(f"score_interval_ is None. {error}", UserWarning)

    def _keep_choice(self, choice: PChoice) -> None:
        self.choice_ = choice
        self.best_index_ = choice.chosen_index
        self.p_, self.alpha_ = choice.p, float(choice.chosen.alpha or 0.0)
        self.pushes_, self.best_score_ = choice.pushes, choice.best_score
        self.n_splits_ = choice.fold_scores.shape[1]
        self.cv_results_ = cv_results(choice)

    def _is_nested(self, rows: TuningRows, score: Scoring) -> bool:
        """Whether all rows are tested, in folds of their own."""
        if self.test_size == "nested" and not isinstance(self.cv, Integral):
            raise ValueError(
                f"test_size='nested' draws folds at random, and cv={self.cv!r} has an order of its "
                "own: give cv as a number, or test_size as a share of the rows."
            )
        if self.test_size != "auto":
            return bool(self.test_size == "nested")
        return (
            isinstance(self.cv, Integral)
            and rows.groups is None
            and has_quick_interval(score)
            and rows.X.shape[0] * rows.X.shape[1] <= _NESTED_ENTRIES
            and rows.X.shape[1] <= _NESTED_FEATURES
            and smaller_class(rows) >= 2 * FOLDS
        )

    def _grid(self) -> tuple[tuple[Candidate, ...], list[LinearRanker]]:
        """The candidates, the weakest push first, and an unfitted ranker for each."""
        return setting_grid(
            self.ps,
            self.alphas,
            {"loss": self.loss, "link": self.link},
            solver=self.solver,
            max_iter=self.max_iter,
            class_weight=self.class_weight,
        )

    def _parts(self, rows: TuningRows, nested: bool) -> tuple[IntArray, IntArray | None]:
        """Rows to choose on, and rows kept aside."""
        present = rows.places_present
        if self.test_size is None or nested:
            return present, None
        share = _SHARE_ASIDE if isinstance(self.test_size, str) else self.test_size
        parts = split_outer(rows.take(present), self.cv, share, self.random_state)
        return (present, None) if parts is None else (present[parts[0]], present[parts[1]])

    def _adopt(self, best: LinearRanker) -> None:
        """Rank as the best estimator does."""
        self.classes_, self._units = best.classes_, best._units
        self.coef_, self.intercept_ = best.coef_, best.intercept_
        self._offset, self._slope = best._offset, best._slope
        self.n_iter_, self.objective_ = best.n_iter_, best.objective_
        self.optimality_gap_, self.history_ = best.optimality_gap_, best.history_

    def score(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the score that p was chosen by, on these rows."""
        check_is_fitted(self)
        return Scoring(self.scoring, self.scoring_kwargs).of_estimator(self, X, y, sample_weight)

    def _routed_groups(
        self, sample_weight: object, params: dict[str, ArrayLike | None]
    ) -> ArrayLike | None:
        """The groups for the splitter, by scikit-learn's metadata routing if that is on."""
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
            return routed.splitter.split.get("groups")
        unknown = sorted(set(params) - {"groups"})
        if unknown:
            raise TypeError(f"fit got {unknown[0]!r}; it takes X, y, sample_weight and groups.")
        return params.get("groups")

    def get_metadata_routing(self) -> MetadataRouter:
        """Say which metadata the splitter and ``fit`` itself consume."""
        cv = StratifiedGroupKFold(2) if isinstance(self.cv, Integral) else check_cv(self.cv)
        mapping = MethodMapping().add(caller="fit", callee="split")
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(splitter=cv, method_mapping=mapping)
        )
