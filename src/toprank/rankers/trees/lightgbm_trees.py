"""Trees grown by LightGBM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.blocks import go_on
from toprank.interop.lightgbm import push_objective
from toprank.rankers.trees.plan import Grown, Plan, TreeRows, Trees, Watch
from toprank.rankers.trees.reach import is_blank

_VALUE = "held_out"
#: Signs that LightGBM does not allow in names.
_FORBIDDEN = frozenset('",:[]{}')


class LightGBMTrees(Trees):
    """A LightGBM booster."""

    library = "lightgbm"

    def __init__(self, booster: Any, n_rounds: int, n_threads: int = 1):
        self.booster = booster
        self.n_rounds = n_rounds
        self.n_threads = n_threads

    @classmethod
    def grow(cls, rows: TreeRows, plan: Plan, push: Any, watch: Watch | None) -> Grown:
        lightgbm = require("lightgbm", "lightgbm")
        objective = "binary" if push is None else push_objective(**push, groups=rows.groups)
        params = {**_parameters(plan), "objective": objective}
        data = _data(lightgbm, rows, plan)
        record: dict[str, Any] = {}
        watched: dict[str, Any] = {"callbacks": [lambda _: go_on()]}
        if watch is not None:
            watched = {
                "valid_sets": [_data(lightgbm, watch.rows, plan, reference=data)],
                "valid_names": [_VALUE],
                "feval": lambda scores, _: (_VALUE, watch.measure(scores), True),
                "callbacks": [
                    *watched["callbacks"],
                    lightgbm.early_stopping(watch.patience, verbose=False),
                    lightgbm.record_evaluation(record),
                ],
            }
        booster = lightgbm.train(params, data, plan.n_estimators, **watched)
        values = np.array(record.get(_VALUE, {}).get(_VALUE, []))
        booster.free_dataset()
        return Grown(cls(booster, booster.current_iteration(), plan.n_threads), values)

    def _predict(self, Z: FloatArray, **kwargs: Any) -> FloatArray:
        # left to itself LightGBM takes every core, and processes forked afterwards wait for ever
        found = self.booster.predict(Z, num_threads=self.n_threads, **kwargs)
        return np.asarray(found, dtype=np.float64)

    def scores(self, Z: FloatArray, n_rounds: int | None = None) -> FloatArray:
        rounds = self.n_rounds if n_rounds is None else n_rounds
        return self._predict(Z, raw_score=True, num_iteration=rounds)

    def staged(self, Z: FloatArray) -> Iterator[FloatArray]:
        total = np.zeros(len(Z))
        for k in range(self.n_rounds):
            total = total + self._predict(Z, raw_score=True, start_iteration=k, num_iteration=1)
            yield total

    def contributions(self, Z: FloatArray) -> FloatArray:
        return self._predict(Z, pred_contrib=True, num_iteration=self.n_rounds)

    def gains(self) -> FloatArray:
        gains = self.booster.feature_importance("gain", iteration=self.n_rounds)
        return np.asarray(gains, dtype=np.float64)


def _data(lightgbm: Any, rows: TreeRows, plan: Plan, reference: Any = None) -> Any:
    names: Any = "auto"
    if plan.names and not any(_FORBIDDEN & set(name) for name in plan.names):
        names = [name.replace(" ", "_") for name in plan.names]
        names = names if len(set(names)) == len(names) else "auto"
    # it refuses a table of zeros; one of ones says as little, and no tree splits it either
    Z = np.ones_like(rows.X) if is_blank("lightgbm", rows.X) else rows.X
    return lightgbm.Dataset(
        Z,
        rows.y.astype(np.float32),
        weight=rows.weight,
        init_score=rows.start,
        categorical_feature=list(plan.categorical),
        feature_name=names,
        reference=reference,
        params=_parameters(plan),
    )


def _parameters(plan: Plan) -> dict[str, Any]:
    params: dict[str, Any] = {
        "learning_rate": plan.learning_rate,
        "num_leaves": plan.max_leaves,
        "max_depth": -1 if plan.max_depth is None else plan.max_depth,
        # LightGBM takes the number of rows from the curvature, so that even a limit of 1 bites
        "min_data_in_leaf": plan.min_samples_leaf if plan.min_samples_leaf > 1 else 0,
        # bins that do not count rows, so that a weight is a repetition
        "min_data_in_bin": 1,
        # columns that no leaf can be split by are left in, so that there is always one
        "feature_pre_filter": False,
        "min_sum_hessian_in_leaf": plan.min_child_weight,
        "lambda_l2": plan.reg_lambda,
        "bagging_fraction": plan.subsample,
        "bagging_freq": 1 if plan.subsample < 1 else 0,
        "feature_fraction": plan.colsample,
        "max_bin": plan.max_bins,
        "seed": plan.seed,
        "num_threads": plan.n_threads,
        "deterministic": True,
        "force_row_wise": True,
        "metric": "None",
        "verbose": plan.verbose - 1,
    }
    if plan.monotone is not None:
        params["monotone_constraints"] = list(plan.monotone)
    if plan.interactions is not None:
        params["interaction_constraints"] = [list(group) for group in plan.interactions]
    return {**params, **plan.extra}
