"""Searches by Optuna: trials that are stopped early by a metric of the top of the list.

`RoundPruner` stops a fit of trees between two rounds, `score_folds` a cross-validation between two
folds, of any ranker. Both report to the trial and ask it whether to go on.

Nothing is imported before it is used: ``pip install 'toprank[optuna]'`` brings Optuna.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing

from toprank._arrays import IntArray, TableLike
from toprank._extras import require
from toprank.inference import Interval
from toprank.metrics import scorer

if TYPE_CHECKING:
    from lightgbm.callback import CallbackEnv
    from optuna.trial import Trial


class RoundPruner:
    """A callback that reports the metric of the rows held out to a trial, round by round.

    For ``PushTrees.fit(callbacks=[...])`` with either library, and for ``lightgbm.train``. The
    metric is the one that the rounds stop by: ``eval_metric`` of the fit, or ``stop_by``.

    Parameters
    ----------
    trial : optuna.Trial
        Of a study with ``direction="maximize"``: the metrics of `PushTrees` are larger where the
        list is better, risks being negated.
    every : int, default=1
        Rounds from one report to the next.

    Raises
    ------
    optuna.TrialPruned
        From within ``fit``, if the study's pruner says so. The estimator is then as it was.
    ValueError
        If the study minimises, or no rows are held out to measure on.

    Examples
    --------
    >>> import optuna  # doctest: +SKIP
    >>> def objective(trial):
    ...     trees = PushTrees(p=trial.suggest_float("p", 1, 64, log=True))
    ...     trees.fit(X, y, eval_set=(X_new, y_new), callbacks=[RoundPruner(trial)])
    ...     return trees.validation_scores_[trees.n_iter_ - 1]
    >>> optuna.create_study(direction="maximize").optimize(objective, 50)  # doctest: +SKIP
    """

    def __init__(self, trial: object, *, every: int = 1):
        if every < 1:
            raise ValueError(f"every={every}: expected 1 or more rounds from report to report.")
        _check_direction(trial)
        self.trial = trial
        self.every = every

    def __call__(self, env: CallbackEnv) -> None:
        """Report the round; LightGBM calls it so, and `PushTrees` with XGBoost too."""
        if (env.iteration + 1) % self.every:
            return
        if not env.evaluation_result_list:
            raise ValueError(
                "RoundPruner has nothing to report: no rows are held out. Give fit an eval_set, or "
                "set early_stopping=True."
            )
        _, _, value, larger_is_better = env.evaluation_result_list[-1][:4]
        _report_value(self.trial, value if larger_is_better else -value, env.iteration)


def score_folds(
    trial: Trial,
    estimator: BaseEstimator,
    X: TableLike,
    y: ArrayLike,
    *,
    metric: str = "average_precision",
    cv: object = 5,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    **metric_kwargs: object,
) -> float:
    """Return the mean of a metric over folds, and stop between two folds if the trial is hopeless.

    After each fold the mean of the folds so far is reported. A trial that ends has the user
    attributes ``fold_scores`` and ``standard_error``.

    Parameters
    ----------
    trial : optuna.Trial
        Of a study with ``direction="maximize"``; risks are negated.
    estimator : classifier
        A ranker of toprank or any classifier of scikit-learn, in a pipeline or not. It is cloned.
    X : array or data frame of shape (n, d)
    y : array-like of shape (n,)
    metric : str, default="average_precision"
        Name of a metric of `toprank.metrics`.
    cv : int, splitter or iterable, default=5
        A number means that many stratified folds, drawn by a fixed seed, so that all trials are
        measured on the same folds; with groups, whole groups stay in one fold.
    groups : array-like of shape (n,), optional
        For the splitter.
    sample_weight : array-like of shape (n,), optional
        For fits and scores. The estimator itself must take it: a pipeline does not.
    **metric_kwargs
        Parameters of the metric, such as ``k=0.01``. A share is the same depth in a fold as in the
        whole list; a count is not.

    Returns
    -------
    float

    Raises
    ------
    optuna.TrialPruned
        If the study's pruner says so.

    Examples
    --------
    >>> import optuna  # doctest: +SKIP
    >>> def objective(trial):
    ...     ranker = PNormPush(p=trial.suggest_float("p", 1, 64, log=True))
    ...     return score_folds(trial, ranker, X, y, metric="precision_at", k=0.01)
    >>> optuna.create_study(direction="maximize").optimize(objective, 50)  # doctest: +SKIP
    """
    _check_direction(trial)
    score = scorer(metric, **metric_kwargs)
    labels = np.asarray(y)
    weight = None if sample_weight is None else np.asarray(sample_weight)
    found: list[float] = []
    for step, (train, test) in enumerate(_folds(cv, X, labels, groups)):
        parts = [{} if weight is None else {"sample_weight": weight[p]} for p in (train, test)]
        model = clone(estimator).fit(_safe_indexing(X, train), labels[train], **parts[0])
        found.append(float(score(model, _safe_indexing(X, test), labels[test], **parts[1])))
        _report_value(trial, float(np.mean(found)), step)
    trial.set_user_attr("fold_scores", found)
    if len(found) > 1:
        error = float(np.std(found, ddof=1) / np.sqrt(len(found)))
        trial.set_user_attr("standard_error", error)
    return float(np.mean(found))


def keep_interval(trial: Trial, found: Interval) -> float:
    """Keep an interval with a trial, as user attributes, and return its estimate.

    Parameters
    ----------
    trial : optuna.Trial
    found : Interval
        What `toprank.inference.interval` gave, or the ``score_interval_`` of a `PNormPushCV` or
        `PushEnsemble`.

    Returns
    -------
    float
        The estimate: what an objective may return. User attributes ``metric``, ``low``, ``high``
        and ``level`` say the rest.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from toprank.inference import interval
    >>> from toprank.interop.optuna import keep_interval
    >>> kept = {}
    >>> trial = SimpleNamespace(set_user_attr=kept.__setitem__)
    >>> keep_interval(trial, interval("precision_at", [1, 0, 1, 0], [4, 3, 2, 1], k=2))
    0.5
    >>> sorted(kept)
    ['high', 'level', 'low', 'metric']
    """
    facts = found.as_dict()
    for name in ("metric", "low", "high", "level"):
        trial.set_user_attr(name, facts[name])
    return float(found.estimate)


def _check_direction(trial: object) -> None:
    """Refuse a study that minimises, or has several objectives: these cannot prune."""
    study = getattr(trial, "study", None)  # a FixedTrial, to try an objective by hand, has none
    directions = ["MAXIMIZE"] if study is None else [one.name for one in study.directions]
    if directions != ["MAXIMIZE"]:
        said = ", ".join(name.lower() for name in directions)
        raise ValueError(
            f"The study's direction is {said}; the metrics of toprank are reported so that larger "
            "is better. Create it with optuna.create_study(direction='maximize')."
        )


def _report_value(trial: Trial, value: float, step: int) -> None:
    """Report a value, and end the trial if the study's pruner says so."""
    if np.isfinite(value):
        trial.report(float(value), step)
    if trial.should_prune():
        raise require("optuna", "optuna").TrialPruned(
            f"Stopped after step {step}, at {value:.6g}: other trials were better by then."
        )


def _folds(
    cv: object, X: TableLike, y: ArrayLike, groups: ArrayLike | None
) -> Iterator[tuple[IntArray, IntArray]]:
    if isinstance(cv, int):
        splitter = StratifiedKFold if groups is None else StratifiedGroupKFold
        cv = splitter(cv, shuffle=True, random_state=0)
    return check_cv(cv, y, classifier=True).split(X, y, groups)
