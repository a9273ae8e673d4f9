"""The rankers by name: how each is set up, how its p is chosen, what it needs of its numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from toprank._numerics import FloatArray
from toprank.folds import Fold
from toprank.models.errors import ModelError
from toprank.rankers import (
    IRPush,
    PNormPush,
    ProperRanker,
    PushTrees,
    RankBoost,
    SmoothMarginRanker,
)
from toprank.tuning import PNormPushCV, Scoring, choose_p

#: The powers that p = "auto" tries for boosted stumps and trees, where each is a fit a fold.
_FEW_PS = (1.0, 2.0, 4.0, 16.0)


@dataclass(frozen=True)
class Wish:
    """What the user asked of a ranker."""

    p: Any
    alpha: float | None
    scoring: Scoring
    random_state: int


@dataclass(frozen=True)
class Recipe:
    """One kind of ranker.

    Attributes
    ----------
    style : str
        What it needs of its numbers; see `Preparation`.
    make : callable
        (wish, p, categorical) -> unfitted ranker.
    choose : callable, optional
        (wish, prepared rows) -> (unfitted ranker, PChoice); None if it has no p.
    has_alpha : bool
        Whether it takes a penalty.
    """

    style: str
    make: Callable[[Wish, float, list[int]], Any]
    choose: Callable[[Wish, Any], tuple[Any, Any]] | None = None
    has_alpha: bool = False


def _penalty(wish: Wish) -> dict[str, Any]:
    return {} if wish.alpha is None else {"alpha": wish.alpha}


@dataclass(frozen=True)
class Prepared:
    """Training rows as numbers, with the folds that p is chosen on."""

    X: FloatArray
    y: NDArray[np.bool_]
    weight: FloatArray | None
    categorical: list[int]
    folds: list[Fold]


def _choose_linear(wish: Wish, data: Prepared) -> tuple[Any, Any]:
    grid: dict[str, Any] = {} if wish.alpha is None else {"alphas": (wish.alpha,)}
    search = PNormPushCV(
        scoring=wish.scoring.name,
        scoring_kwargs=wish.scoring.kwargs or None,
        cv=data.folds,
        test_size=None,
        **grid,
    ).fit(data.X, data.y, data.weight)
    return clone(search.best_estimator_), search.choice_


def _search(wish: Wish, data: Prepared, ranker: Any, **baseline: Any) -> Any:
    return choose_p(
        ranker,
        data.X,
        data.y,
        ps=_FEW_PS,
        scoring=wish.scoring.name,
        scoring_kwargs=wish.scoring.kwargs or None,
        cv=data.folds,
        sample_weight=data.weight,
        **baseline,
    )


def _choose_stumps(wish: Wish, data: Prepared) -> tuple[Any, Any]:
    choice = _search(wish, data, RankBoost(), baseline=None)
    return RankBoost(p=choice.p), choice


def _trees(wish: Wish, p: Any, categorical: list[int]) -> PushTrees:
    return PushTrees(
        p,
        categorical_features=categorical or None,
        metric=wish.scoring.name,
        metric_kwargs=wish.scoring.kwargs or None,
        random_state=wish.random_state,
    )


def _choose_trees(wish: Wish, data: Prepared) -> tuple[Any, Any]:
    choice = _search(
        wish,
        data,
        _trees(wish, 4.0, data.categorical),
        baseline=_trees(wish, None, data.categorical),
        baseline_name="the library's binary objective",
    )
    return _trees(wish, choice.p, data.categorical), choice


RECIPES: dict[str, Recipe] = {
    "pnorm": Recipe(
        "linear", lambda w, p, _: PNormPush(p, **_penalty(w)), _choose_linear, has_alpha=True
    ),
    "ir": Recipe("linear", lambda w, p, _: IRPush(**_penalty(w)), has_alpha=True),
    "proper": Recipe("linear", lambda w, p, _: ProperRanker(**_penalty(w)), has_alpha=True),
    "rankboost": Recipe("stumps", lambda w, p, _: RankBoost(p=p), _choose_stumps),
    "smooth-margin": Recipe("stumps", lambda w, p, _: SmoothMarginRanker()),
    "trees": Recipe("trees", _trees, _choose_trees),
}

#: Every ranker that a recipe makes or chooses.
RANKERS = (PNormPush, IRPush, ProperRanker, RankBoost, SmoothMarginRanker, PushTrees)


def check_wish(model: str, p: Any, alpha: float | None) -> Recipe:
    """Return the recipe of a model, or raise ModelError saying what is wrong with the wish."""
    if model not in RECIPES:
        raise ModelError(f"model={model!r}: expected one of {', '.join(RECIPES)}.")
    recipe = RECIPES[model]
    if p != "auto":
        if not isinstance(p, (int, float, np.number)) or isinstance(p, bool) or not p >= 1:
            raise ModelError(f"p={p!r}: expected 'auto' or a number from 1 on.")
        if recipe.choose is None:
            raise ModelError(f"model={model!r} has no p; leave p out.")
    if alpha is not None:
        if not recipe.has_alpha:
            raise ModelError(f"model={model!r} has no alpha; leave alpha out.")
        if not (np.isfinite(alpha) and alpha > 0):
            raise ModelError(f"alpha={alpha!r}: expected a positive number.")
    return recipe
