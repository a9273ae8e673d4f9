"""The parameters of `PushTrees`: what they may be, and the plan they make."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from toprank.losses import TRAINABLE_LOSSES, Loss
from toprank.prices import PRICES, Price
from toprank.rankers.trees.columns import columns_named
from toprank.rankers.trees.lightgbm_trees import LightGBMTrees
from toprank.rankers.trees.plan import Plan, Trees
from toprank.rankers.trees.xgboost_trees import XGBoostTrees

BACKENDS: dict[str, type[Trees]] = {cls.library: cls for cls in (LightGBMTrees, XGBoostTrees)}

CONSTRAINTS: dict[str, Any] = {
    "p": [Interval(Real, 1, np.inf, closed="both"), StrOptions({"auto"}), None],
    "price": [StrOptions(PRICES.keys()), Price, tuple],
    "loss": [StrOptions(TRAINABLE_LOSSES), Loss, tuple],
    "backend": [StrOptions(set(BACKENDS))],
    "n_estimators": [Interval(Integral, 1, None, closed="left")],
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    "max_leaves": [Interval(Integral, 2, None, closed="left")],
    "max_depth": [Interval(Integral, 1, None, closed="left"), None],
    "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
    "min_child_weight": [Interval(Real, 0, None, closed="left")],
    "reg_lambda": [Interval(Real, 0, None, closed="left")],
    "subsample": [Interval(Real, 0, 1, closed="right")],
    "colsample": [Interval(Real, 0, 1, closed="right")],
    "max_bins": [Interval(Integral, 2, None, closed="left")],
    "categorical_features": [StrOptions({"from_dtype"}), "array-like", None],
    "monotone_constraints": ["array-like", dict, None],
    "interaction_constraints": [list, tuple, None],
    "early_stopping": ["boolean", StrOptions({"auto"})],
    "metric": [str, callable],
    "metric_kwargs": [dict, None],
    "rule": [StrOptions({"best", "one_standard_error"})],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
    "ps": ["array-like"],
    "cv": ["cv_object"],
    "init_scale": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
    "link": [StrOptions({"logistic", "p_classification"})],
    "backend_params": [dict, None],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
}


def plan_of(trees: Any) -> Plan:
    """Return how an estimator that has seen its columns wants its trees grown."""
    names = getattr(trees, "feature_names_in_", None)
    return Plan(
        n_estimators=trees.n_estimators,
        learning_rate=trees.learning_rate,
        max_leaves=trees.max_leaves,
        max_depth=trees.max_depth,
        min_samples_leaf=trees.min_samples_leaf,
        min_child_weight=trees.min_child_weight,
        reg_lambda=trees.reg_lambda,
        subsample=trees.subsample,
        colsample=trees.colsample,
        max_bins=trees.max_bins,
        seed=int(check_random_state(trees.random_state).randint(2**31 - 1)),
        n_threads=effective_n_jobs(trees.n_jobs),
        verbose=trees.verbose,
        monotone=_monotone(trees, names),
        interactions=_interactions(trees, names),
        categorical=trees._columns.places,
        names=None if names is None else tuple(names),
        extra=trees.backend_params or {},
    )


def _monotone(trees: Any, names: Any) -> tuple[int, ...] | None:
    given, d = trees.monotone_constraints, trees.n_features_in_
    if given is None:
        return None
    if isinstance(given, dict):
        signs = np.zeros(d, dtype=np.intp)
        for name, sign in given.items():
            signs[columns_named([name], names, d, "monotone_constraints")] = sign
    else:
        signs = np.asarray(given)
    if signs.shape != (d,) or not np.all(np.isin(signs, (-1, 0, 1))):
        raise ValueError(
            f"monotone_constraints must hold -1, 0 or 1 for each of the {d} columns; got {given!r}."
        )
    if np.any(signs[list(trees._columns.places)]):
        raise ValueError("monotone_constraints cannot be set on a column of categories.")
    return tuple(int(sign) for sign in signs)


def _interactions(trees: Any, names: Any) -> tuple[tuple[int, ...], ...] | None:
    if trees.interaction_constraints is None:
        return None
    d, what = trees.n_features_in_, "interaction_constraints"
    sets = [
        tuple(columns_named(list(one), names, d, what)) for one in trees.interaction_constraints
    ]
    rest = tuple(sorted(set(range(d)).difference(*sets)))
    return tuple(sets) + ((rest,) if rest else ())
