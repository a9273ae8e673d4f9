"""One function that chooses p for any estimator that has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_consistent_length

from toprank._arrays import TableLike
from toprank.blocks import BlockSource
from toprank.folds import (
    RULES,
    Candidate,
    PChoice,
    Scoring,
    check_fits_blocks,
    check_powers,
    compare_on_blocks,
    compare_settings,
    folds_of,
    folds_on_blocks,
)
from toprank.pairs import (
    Rows,
    check_labels,
    check_weights,
    read_any_table,
    refuse_huge,
    two_classes,
)
from toprank.rankers.proper import ProperRanker

DEFAULT_PS = (1.0, 2.0, 4.0, 8.0, 16.0, 64.0)


def choose_p(
    estimator: BaseEstimator,
    X: TableLike,
    y: ArrayLike | None = None,
    *,
    ps: Sequence[float] = DEFAULT_PS,
    scoring: object = "precision_at",
    scoring_kwargs: Mapping[str, object] | None = None,
    cv: object = 5,
    groups: ArrayLike | None = None,
    time: ArrayLike | None = None,
    gap: object = 0,
    sample_weight: ArrayLike | None = None,
    baseline: object = "logistic",
    baseline_name: str | None = None,
    rule: str = "best",
    level: float = 0.95,
    parameter: str | None = None,
    fit_params: Mapping[str, object] | None = None,
    n_jobs: int | None = None,
) -> PChoice:
    """Choose how hard to push by cross-validation, "do not push" included.

    Every p and the baseline are fitted and scored on the same folds, so that they can be compared
    pair by pair. For linear rankers `toprank.PNormPushCV` does the same much faster.

    Parameters
    ----------
    estimator : estimator
        A ranker with ``fit`` and ``decision_function`` (or ``predict_proba``) and a parameter
        ``p``, such as ``RankBoost``, ``PushTrees`` or a pipeline that ends in one. One without
        p, such as ``IRPush``, is compared with the baseline as it is.
    X : array, data frame or sparse matrix of shape (n, d), or BlockSource
        Features, as the estimator takes them. Or a source of `toprank.blocks`, which holds labels,
        weights and groups itself: folds are then by a hash of the row (`row_folds`) or of its
        group, or by time (``cv=TimeOrderedSplit()``), and linear rankers are fitted to all of them
        in the same passes. The baseline is `toprank.ProperRanker` with the estimator's ``alpha``.
    y : array-like of shape (n,)
        Labels of two classes; the larger one is positive.
    ps : sequence of float
        The values of p to try.
    scoring : str or callable, default="precision_at"
        A metric of `toprank.metrics`, or a scikit-learn scorer. Larger is better; risks are
        negated. Settings are compared by a steadier form of a metric that one row decides:
        ``positives_at_top`` with five negatives.
    scoring_kwargs : mapping, optional
        Parameters of the metric, such as ``{"k": 100}``; by default the top tenth of the list.
    cv : int, splitter or iterable, default=5
        Folds; a number means that many stratified folds, drawn at random by a fixed seed.
    groups : array-like of shape (n,), optional
        Rows of one group stay in one fold.
    time : array-like of shape (n,), optional
        When each row was seen: folds then train on the past and test on the future.
    gap : number or timedelta, default=0
        How long labels take to mature, in the units of ``time``.
    sample_weight : array-like of shape (n,), optional
        Repetition counts, for fits and scores.
    baseline : "logistic", estimator or None, default="logistic"
        What does not push. "logistic" is logistic regression on standardised features, behind
        the same first steps if the estimator is a pipeline.
    baseline_name : str, optional
        What the baseline is called in tables and verdicts.
    rule : {"best", "one_standard_error"}, default="best"
        The highest mean; or the weakest push, none included, that is behind it by no more than
        one standard error of their paired difference.
    level : float, default=0.95
        Confidence level of the differences.
    parameter : str, optional
        Name of the parameter to vary; by default ``p``, or the one that ends in ``__p``.
    fit_params : mapping, optional
        Further arguments of ``fit``, passed on as they are.
    n_jobs : int, optional
        Folds at a time, in threads.

    Returns
    -------
    PChoice
        ``.p`` (None: do not push), ``.pushes``, ``.table()``, ``.difference(i, j)``; prints as a
        table and a verdict in words.

    Examples
    --------
    >>> from toprank import RankBoost
    >>> from toprank.datasets import load_wdbc
    >>> from toprank.tuning import choose_p
    >>> X, y = load_wdbc(return_X_y=True)
    >>> choice = choose_p(RankBoost(20), X, y, ps=(1, 4), baseline=None, cv=3)
    >>> choice.p in (1, 4), choice.fold_scores.shape
    (True, (2, 3))
    """
    if rule not in RULES:
        raise ValueError(f"Unknown rule {rule!r}: expected one of {list(RULES)}.")
    score = Scoring(scoring, scoring_kwargs)
    if isinstance(X, BlockSource):
        of_rows = {"y": y, "groups": groups, "time": time, "sample_weight": sample_weight}
        _refuse_rows({**of_rows, "fit_params": fit_params})
        candidates, models = _candidates(estimator, ps, parameter, baseline, baseline_name, True)
        check_fits_blocks(models)
        with X.start_threads(n_jobs):
            folds_of_rows = folds_on_blocks(X, cv)
            return compare_on_blocks(
                candidates, models, X, folds_of_rows, score, rule=rule, level=level
            )
    if y is None:
        raise TypeError(
            "choose_p needs y, the labels of the rows; only a block source has its own."
        )
    X, labels = read_any_table(X), check_labels(y)
    check_consistent_length(X, labels)
    if isinstance(baseline, str) and not isinstance(estimator, Pipeline) and hasattr(X, "dtype"):
        refuse_huge(X)  # the baseline reads X itself
    weight = check_weights(two_classes(labels)[1], sample_weight)
    folds = folds_of(cv, labels, groups=groups, time=time, gap=gap, weight=weight)
    candidates, models = _candidates(estimator, ps, parameter, baseline, baseline_name)
    return compare_settings(
        candidates,
        models,
        Rows(X, labels, weight),
        folds,
        score,
        rule=rule,
        level=level,
        fit_params=fit_params,
        n_jobs=n_jobs,
    )


def _candidates(
    estimator: BaseEstimator,
    ps: Sequence[float],
    parameter: str | None,
    baseline: object,
    baseline_name: str | None,
    on_blocks: bool = False,
) -> tuple[tuple[Candidate, ...], list[BaseEstimator]]:
    """What is tried, and the unfitted estimator of each."""
    parameter = _parameter(estimator, parameter)
    if parameter is None:
        name = type(_last_step(estimator)).__name__
        tried = [(Candidate(name, None), clone(estimator))]
    else:
        values = check_powers(ps) if parameter.split("__")[-1] == "p" else sorted(ps)
        short = parameter.split("__")[-1]
        tried = [
            (Candidate(f"{short} = {p:g}", p), clone(estimator).set_params(**{parameter: p}))
            for p in values
        ]
    if baseline is not None:
        without = Candidate(baseline_name or _baseline_name(baseline), None, pushes=False)
        tried.insert(0, (without, _baseline(estimator, baseline, on_blocks)))
    names, models = zip(*tried, strict=True)
    return names, list(models)


def _parameter(estimator: BaseEstimator, parameter: str | None) -> str | None:
    """The name of the parameter to vary; None if the estimator has no p."""
    known = estimator.get_params()
    if parameter is not None:
        if parameter not in known:
            raise ValueError(f"{type(estimator).__name__} has no parameter {parameter!r}.")
        return parameter
    if "p" in known:
        return "p"
    nested = [name for name in known if name.endswith("__p")]
    if len(nested) > 1:
        raise ValueError(f"p may be any of {nested}: name one with parameter=.")
    return nested[0] if nested else None


def _last_step(estimator: BaseEstimator) -> BaseEstimator:
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def _baseline_name(baseline: object) -> str:
    if isinstance(baseline, str):
        return "logistic regression"
    return f"the baseline {type(_last_step(baseline)).__name__}"


def _refuse_rows(given: Mapping[str, object]) -> None:
    """Refuse what belongs to single rows where the source has it."""
    for name, value in given.items():
        if value is not None:
            raise TypeError(
                f"{name}= was given beside a block source, which brings labels, weights and groups "
                "itself: name them when the source is made."
            )


def _baseline(estimator: BaseEstimator, baseline: object, on_blocks: bool = False) -> BaseEstimator:
    if not isinstance(baseline, str):
        return clone(baseline)
    if baseline != "logistic":
        raise ValueError(f"baseline={baseline!r}: expected 'logistic', an estimator or None.")
    if on_blocks:
        return ProperRanker(alpha=getattr(estimator, "alpha", 1e-3))
    # at its default tolerance the ranking of the top still hangs on the machine
    model = LogisticRegression(tol=1e-6, max_iter=10_000)
    if not isinstance(estimator, Pipeline):
        return make_pipeline(StandardScaler(with_mean=False), model)
    return Pipeline([*clone(estimator).steps[:-1], ("logisticregression", model)])
