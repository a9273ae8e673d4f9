"""The kinds of rankers that `fit_table` knows: how each is made, and how its p is chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from toprank.folds import Fold
from toprank.models.errors import ModelError
from toprank.pairs import Rows
from toprank.rankers import (
    IRPush,
    PNormPush,
    ProperRanker,
    PushEnsemble,
    PushTrees,
    RankBoost,
    SmoothMarginRanker,
)
from toprank.tuning import PChoice, PNormPushCV, Scoring, choose_p

#: The powers that p = "auto" tries for boosted stumps and trees, where each is a fit per fold.
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
        (request, rows, categorical, folds) -> (unfitted ranker, PChoice); None if it has no p.
    has_alpha : bool
        Whether it takes a penalty.
    weighs_members : bool
        Whether it is an ensemble.
    """

    style: str
    make: Callable[[RankerRequest, float, list[int]], BaseEstimator]
    choose: (
        Callable[[RankerRequest, Rows, list[int], list[Fold]], tuple[BaseEstimator, PChoice]] | None
    ) = None
    has_alpha: bool = False
    weighs_members: bool = False


def _penalty(request: RankerRequest) -> dict[str, Any]:
    return {} if request.alpha is None else {"alpha": request.alpha}


def _choose_linear(
    request: RankerRequest, rows: Rows, categorical: list[int], folds: list[Fold]
) -> tuple[BaseEstimator, PChoice]:
    grid: dict[str, Any] = {} if request.alpha is None else {"alphas": (request.alpha,)}
    search = PNormPushCV(
        scoring=request.scoring.name,
        scoring_kwargs=request.scoring.kwargs or None,
        cv=folds,
        test_size=None,
        **grid,
    )
    search._listener = request.tell
    search.fit(rows.X, rows.y, rows.weight)
    return clone(search.best_estimator_), search.choice_


def _search(
    request: RankerRequest, rows: Rows, folds: list[Fold], ranker: BaseEstimator, **baseline: Any
) -> PChoice:
    return choose_p(
        ranker,
        rows.X,
        rows.y,
        ps=_FEW_PS,
        scoring=request.scoring.name,
        scoring_kwargs=request.scoring.kwargs or None,
        cv=folds,
        sample_weight=rows.weight,
        **baseline,
    )


def _choose_stumps(
    request: RankerRequest, rows: Rows, categorical: list[int], folds: list[Fold]
) -> tuple[BaseEstimator, PChoice]:
    choice = _search(request, rows, folds, RankBoost(), baseline=None)
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


def _choose_trees(
    request: RankerRequest, rows: Rows, categorical: list[int], folds: list[Fold]
) -> tuple[BaseEstimator, PChoice]:
    # the folds compare rankings, which no link changes
    choice = _search(
        request,
        rows,
        folds,
        _make_trees(request, 4.0, categorical).set_params(calibration="training"),
        baseline=_make_trees(request, None, categorical),
        baseline_name="the library's binary objective",
    )
    return _make_trees(request, choice.p, categorical), choice


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
