"""The kinds of rankers that `fit_table` knows: how each is made, and how its p is chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, clone

from toprank.folds import Fold
from toprank.models.errors import ModelError
from toprank.models.rows import TrainingRows
from toprank.rankers import (
    IRPush,
    PNormPush,
    ProperRanker,
    PushEnsemble,
    PushTrees,
    RankBoost,
    SmoothMarginRanker,
)
from toprank.rankers.trees.auto import usual_power
from toprank.tuning import PChoice, PNormPushCV, Scoring, choose_p

#: The powers that p = "auto" tries for boosted stumps, where each is a fit per fold.
_FEW_PS = (1.0, 2.0, 4.0, 16.0)


@dataclass(frozen=True)
class RankerRequest:
    """What the user asks of a ranker."""

    p: Any
    alpha: float | None
    scoring: Scoring
    random_state: int
    quality: str = "good"
    max_seconds: float | None = None
    keep_tails: bool = False
    tell: Callable[[str], None] | None = field(default=None, compare=False, repr=False)


#: An unfitted ranker, and what its p was chosen on.
Chosen: TypeAlias = "tuple[BaseEstimator, PChoice | None]"


@dataclass(frozen=True)
class RankerKind:
    """One kind of ranker.

    Attributes
    ----------
    style : str
        What it needs of its numbers; see `Preparation`.
    make : callable
        (request, p, categorical) -> unfitted ranker; `categorical` are the columns of codes.
    choose : callable, optional
        (request, prepared rows, categorical) -> (unfitted ranker, PChoice), or None in its place
        where the rows are too few to compare; None if it has no p.
    has_alpha : bool
        Whether it takes a penalty.
    weighs_members : bool
        Whether it is an ensemble.
    """

    style: str
    make: Callable[[RankerRequest, float, list[int]], BaseEstimator]
    choose: Callable[[RankerRequest, TrainingRows, list[int]], Chosen] | None = None
    has_alpha: bool = False
    weighs_members: bool = False


def _penalty(request: RankerRequest) -> dict[str, Any]:
    return {} if request.alpha is None else {"alpha": request.alpha}


def _folds(rows: TrainingRows) -> list[Fold]:
    try:
        return rows.folds()
    except ValueError as error:
        raise ModelError(f"p='auto' needs folds to compare on. {error} Or give p.") from error


def _choose_linear(request: RankerRequest, rows: TrainingRows, categorical: list[int]) -> Chosen:
    grid: dict[str, Any] = {} if request.alpha is None else {"alphas": (request.alpha,)}
    search = PNormPushCV(
        scoring=request.scoring.name,
        scoring_kwargs=request.scoring.kwargs or None,
        cv=_folds(rows),
        test_size=None,
        **grid,
    )
    search._listener = request.tell
    search.fit(rows.X, rows.y, rows.fit_weight)
    return clone(search.best_estimator_), search.choice_


def _choose_stumps(request: RankerRequest, rows: TrainingRows, categorical: list[int]) -> Chosen:
    choice = choose_p(
        RankBoost(),
        rows.X,
        rows.y,
        ps=_FEW_PS,
        scoring=request.scoring.name,
        scoring_kwargs=request.scoring.kwargs or None,
        cv=_folds(rows),
        sample_weight=rows.fit_weight,
        baseline=None,
    )
    assert choice.p is not None  # every candidate pushes
    return RankBoost(p=choice.p), choice


def _make_trees(request: RankerRequest, p: object, categorical: list[int]) -> PushTrees:
    return PushTrees(
        p,
        categorical_features=categorical or None,
        metric=request.scoring.name,
        metric_kwargs=request.scoring.kwargs or None,
        random_state=request.random_state,
    )


def _choose_trees(request: RankerRequest, rows: TrainingRows, categorical: list[int]) -> Chosen:
    """As the trees choose by themselves, on folds that follow groups and time where rows do."""
    trees, choice = _make_trees(request, "auto", categorical), None
    try:
        if rows.groups is not None or rows.time is not None:
            trees.set_params(cv=rows.folds(trees.get_params()["cv"]))
    except ValueError:  # a class in one group, or folds in time without it
        pass
    else:
        choice = trees._choose(rows.X, rows.y, rows.fit_weight)
    p = usual_power(trees.ps) if choice is None else choice.p
    return _make_trees(request, p, categorical), choice


def _make_ensemble(request: RankerRequest, p: object, categorical: list[int]) -> PushEnsemble:
    # it is fitted twice: without the rows held out, and to all rows
    seconds = None if request.max_seconds is None else request.max_seconds / 2.2
    return PushEnsemble(
        quality=request.quality,
        metric=request.scoring.name,
        metric_kwargs=request.scoring.kwargs or None,
        max_seconds=seconds,
        categorical_features=categorical or None,
        clip_tails=not request.keep_tails,
        random_state=request.random_state,
    )


RANKER_KINDS: dict[str, RankerKind] = {
    "auto": RankerKind("trees", _make_ensemble, weighs_members=True),
    "pnorm": RankerKind(
        "linear", lambda r, p, _: PNormPush(p, **_penalty(r)), _choose_linear, has_alpha=True
    ),
    "ir": RankerKind("linear", lambda r, p, _: IRPush(**_penalty(r)), has_alpha=True),
    "proper": RankerKind("linear", lambda r, p, _: ProperRanker(**_penalty(r)), has_alpha=True),
    "rankboost": RankerKind("stumps", lambda r, p, _: RankBoost(p=p), _choose_stumps),
    "smooth-margin": RankerKind("stumps", lambda r, p, _: SmoothMarginRanker()),
    "trees": RankerKind("trees", _make_trees, _choose_trees),
}


def check_ranker(model: str, p: object, alpha: float | None) -> RankerKind:
    """Return a kind of ranker by name; ModelError if it does not take what is asked of it."""
    if model not in RANKER_KINDS:
        raise ModelError(f"model={model!r}: expected one of {', '.join(RANKER_KINDS)}.")
    kind = RANKER_KINDS[model]
    if p != "auto":
        if not isinstance(p, (int, float, np.number)) or isinstance(p, bool) or not p >= 1:
            raise ModelError(f"p={p!r}: expected 'auto' or a number from 1 on.")
        if kind.choose is None:
            raise ModelError(f"model={model!r} has no p; leave p out.")
    if alpha is not None:
        if not kind.has_alpha:
            raise ModelError(f"model={model!r} has no alpha; leave alpha out.")
        if not (np.isfinite(alpha) and alpha > 0):
            raise ModelError(f"alpha={alpha!r}: expected a positive number.")
    return kind
