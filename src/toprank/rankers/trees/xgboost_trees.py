"""Trees grown by XGBoost."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.blocks.threads import Stopped, is_stopped
from toprank.interop.team import xgboost_team
from toprank.interop.xgboost import push_objective
from toprank.rankers.trees.plan import Grown, Plan, TreeRows, Trees, Watch
from toprank.rankers.trees.reach import check_largest

_VALUE = "held_out"
_FORBIDDEN = frozenset("[]<")


class XGBoostTrees(Trees):
    """An XGBoost booster."""

    library = "xgboost"

    def __init__(self, booster: Any, n_rounds: int, plan: Plan, base: float):
        self.booster = booster
        booster.set_param("nthread", plan.n_threads)  # one that was read from a file takes all
        self.n_rounds = n_rounds
        self._plan = plan
        self._base = base  # what every prediction starts from

    @classmethod
    def grow(cls, rows: TreeRows, plan: Plan, push: Any, watch: Watch | None) -> Grown:
        xgboost = require("xgboost", "xgboost")
        objective = None if push is None else push_objective(**push, groups=rows.groups)
        link, base = ({}, 0.0) if push is not None else _binary(rows)
        values: list[float] = []
        watched: dict[str, Any] = {"callbacks": [_round_by_round()]}
        if watch is not None:
            measure = watch.measure

            def value_of(scores: FloatArray, _: Any) -> tuple[str, float]:
                values.append(measure(scores))
                return _VALUE, values[-1]

            stop = xgboost.callback.EarlyStopping(
                rounds=watch.patience, metric_name=_VALUE, maximize=True
            )
            watched = {
                "evals": [(_data(xgboost, watch.rows, plan), _VALUE)],
                "custom_metric": value_of,
                "callbacks": [*watched["callbacks"], stop],
                "verbose_eval": False,
            }
        booster = xgboost.train(
            {"base_score": 0.0, **_parameters(plan), **link, **plan.extra},
            _data(xgboost, rows, plan),
            plan.n_estimators,
            obj=objective,
            **watched,
        )
        return Grown(cls(booster, booster.num_boosted_rounds(), plan, base), np.array(values))

    def _predict(self, Z: FloatArray, first: int, last: int, what: str) -> FloatArray:
        data = _data(
            require("xgboost", "xgboost"), TreeRows(Z, np.zeros(0, dtype=bool)), self._plan
        )
        out = self.booster.predict(data, iteration_range=(first, last), **{what: True})
        return np.asarray(out, dtype=np.float64)

    def scores(self, Z: FloatArray, n_rounds: int | None = None) -> FloatArray:
        rounds = self.n_rounds if n_rounds is None else n_rounds
        return self._predict(Z, 0, rounds, "output_margin")

    def staged(self, Z: FloatArray) -> Iterator[FloatArray]:
        total = np.full(len(Z), self._base)
        for k in range(self.n_rounds):
            total = total + self._predict(Z, k, k + 1, "output_margin") - self._base
            yield total

    def contributions(self, Z: FloatArray) -> FloatArray:
        parts = self._predict(Z, 0, self.n_rounds, "pred_contribs")
        # float32 sums: what rounding lost goes to the expected score
        parts[:, -1] += self.scores(Z) - parts.sum(axis=1)
        return parts

    def gains(self) -> FloatArray:
        d = self.booster.num_features()
        booster = self.booster[: self.n_rounds]
        names = booster.feature_names or [f"f{j}" for j in range(d)]
        of_name = booster.get_score(importance_type="total_gain")
        return np.array([of_name.get(name, 0.0) for name in names], dtype=np.float64)


@cache
def _round_by_round() -> Any:
    """What lets a round begin only where somebody still waits for the trees.

    Workers that train together stop together: one that left alone would wait for the others to
    part, and they for its sums.
    """

    class RoundByRound(require("xgboost.callback", "xgboost").TrainingCallback):  # type: ignore[misc]
        def before_iteration(self, *_: Any) -> bool:
            if xgboost_team().any(is_stopped()):
                raise Stopped
            return False

    return RoundByRound()


def _binary(rows: TreeRows) -> tuple[dict[str, Any], float]:
    """The library's own objective, from the mean or from the scores to start from."""
    share = 0.5
    if rows.start is None:
        weight = np.ones(len(rows.y)) if rows.weight is None else rows.weight
        sums = [np.sum(weight, where=rows.y), np.sum(weight)]
        plus, total = xgboost_team().sum(np.array(sums))
        share = float(plus / total)
    link = {"objective": "binary:logistic", "base_score": share, "disable_default_eval_metric": 1}
    return link, float(np.log(np.float32(share)) - np.log1p(-np.float32(share)))


def _data(xgboost: Any, rows: TreeRows, plan: Plan) -> Any:
    names = None
    if plan.names and not any(_FORBIDDEN & set(name) for name in plan.names):
        names = list(plan.names)
    types = np.full(rows.X.shape[1], "q", dtype=object)
    types[list(plan.categorical)] = "c"
    check_largest("xgboost", rows.X)
    return xgboost.DMatrix(
        rows.X,
        rows.y.astype(np.float32) if len(rows.y) else None,
        weight=rows.weight,
        base_margin=rows.start,
        feature_names=names,
        feature_types=list(types),
        enable_categorical=True,
        nthread=plan.n_threads,
    )


def _parameters(plan: Plan) -> dict[str, Any]:
    params: dict[str, Any] = {
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "learning_rate": plan.learning_rate,
        "max_leaves": plan.max_leaves,
        "max_depth": 0 if plan.max_depth is None else plan.max_depth,
        "min_child_weight": plan.min_child_weight,
        "reg_lambda": plan.reg_lambda,
        "subsample": plan.subsample,
        "colsample_bytree": plan.colsample,
        "max_bin": plan.max_bins,
        "seed": plan.seed,
        "nthread": plan.n_threads,
        "verbosity": 1 if plan.verbose else 0,
        "disable_default_eval_metric": 1,
    }
    if plan.monotone is not None:
        params["monotone_constraints"] = tuple(plan.monotone)
    if plan.interactions is not None:
        params["interaction_constraints"] = str([list(group) for group in plan.interactions])
    return params
