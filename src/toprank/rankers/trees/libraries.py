"""Trees grown by LightGBM and by XGBoost, and the numbers that each library can tell apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.blocks import go_on
from toprank.interop import lightgbm as lightgbm_push
from toprank.interop import xgboost as xgboost_push
from toprank.interop.team import ALONE, Team, xgboost_team
from toprank.pairs import Rows
from toprank.rankers.common import warn_caller
from toprank.rankers.trees.block_table import BlockTable, external_matrix
from toprank.rankers.trees.plan import Grown, TreePlan, TreeRows, Trees, Watch
from toprank.rankers.trees.rounds import (
    is_over,
    print_round,
    seed_of_round,
    xgboost_callbacks,
)

if TYPE_CHECKING:
    from types import ModuleType

    import lightgbm
    import xgboost

    from toprank.rankers.trees.plan import Booster


#: What a library reads rows from.
Table = TypeVar("Table")

#: Each library's name, and the sizes that it reads as they are, from the smallest to the largest.
REACH = {
    "lightgbm": ("LightGBM", 1e-35, np.inf),
    "xgboost": ("XGBoost", float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)),
}
#: Weights, whose sums and products both hold as float32.
_WEIGHTS = (1e-30, 1e30)
#: Signs that the libraries do not allow in names.
_NOT_IN_LIGHTGBM_NAMES = frozenset('",:[]{}')
_NOT_IN_XGBOOST_NAMES = frozenset("[]<")


def check_largest(backend: str, Z: FloatArray, team: Team = ALONE) -> None:
    """Refuse columns with entries that the library would take for infinity, wherever they lie."""
    library, _, most = REACH[backend]
    largest = _largest_sizes(Z, team)
    lost = np.flatnonzero(largest > most)
    if len(lost):
        raise ValueError(
            f"Column {lost[0]} of X has entries of up to {largest[lost[0]]:.3g} in size; {library} "
            f"reads sizes up to {most:.2g}. Scale the column, or replace infinity."
        )


def small_column_notes(backend: str, rows: Rows, team: Team = ALONE) -> list[str]:
    """Return what to say where a column is zero to the library and not to its user."""
    library, least, _ = REACH[backend]
    largest = _largest_sizes(rows.present().X, team)
    lost = np.flatnonzero((largest > 0) & (largest < least))
    if not len(lost):
        return []
    return [
        f"{len(lost)} column(s) of X (column {lost[0]} first) have no entry above "
        f"{least:.2g} in size: {library} takes them for zero and splits by none of them. "
        "Scale such columns."
    ]


def is_blank(backend: str, Z: FloatArray) -> bool:
    """Whether every entry is zero to the library, and none is missing."""
    return bool(np.all(_largest_sizes(Z) < REACH[backend][1])) and not np.any(np.isnan(Z))


def _largest_sizes(Z: FloatArray, team: Team = ALONE) -> NDArray[np.float64]:
    """The largest size in each column; zero where every entry is missing, or there is none."""
    ends = (np.fmax.reduce(Z, axis=0, initial=0.0), -np.fmin.reduce(Z, axis=0, initial=0.0))
    return team.max(np.fmax(*ends))


def check_weight_reach(weight: FloatArray | None, team: Team = ALONE) -> None:
    """Refuse weights that are zero, infinite or lost as float32."""
    if weight is None:
        return
    smallest = -float(team.max(-np.min(weight, where=weight > 0, initial=np.inf)))
    total = float(team.sum(np.sum(weight)))
    if smallest < _WEIGHTS[0] or total > _WEIGHTS[1]:
        raise ValueError(
            f"sample_weight holds {smallest:g} and adds up to {total:g}; the tree libraries hold "
            f"weights as float32: expected none below {_WEIGHTS[0]:g} and a sum of at most "
            f"{_WEIGHTS[1]:g}. Divide the weights by their mean, and use 0 to leave a row out."
        )


def light_row_notes(weight: FloatArray | None, least: float, team: Team = ALONE) -> list[str]:
    """Return what to say of trees without a split where weights are shares, not counts."""
    if weight is None:
        return []
    total, rows = team.sum([np.sum(weight), np.count_nonzero(weight)])
    if total >= rows:
        return []
    return [
        f"No tree found a split, and all scores are equal. sample_weight adds up to {total:g} "
        f"for {rows:.0f} rows, and a leaf needs min_child_weight={least:g}. "
        "Divide the weights by their mean, or lower min_child_weight."
    ]


def warn_all(notes: Sequence[str]) -> None:
    """Warn whoever asked for the trees."""
    for note in notes:
        warn_caller(note, ConvergenceWarning)


@contextmanager
def bins_once() -> Iterator[None]:
    """Within, trees that are grown one after the other on the same rows share their bins."""
    token = _LAST_BINS.set([])
    try:
        yield
    finally:
        _LAST_BINS.reset(token)


#: The rows that were binned last, by their digest, and the library's table of them.
_LAST_BINS: ContextVar[list[object] | None] = ContextVar("last_bins", default=None)


def _binned_once(
    library: ModuleType, make: Callable[..., Table], rows: TreeRows, plan: TreePlan
) -> Table:
    """Return the library's table of the rows: that of the last call, if they are the same."""
    last = _LAST_BINS.get()
    if last is None or isinstance(rows.X, BlockTable):
        return make(library, rows, plan)
    key = (make, _digest(rows), replace(plan, callbacks=(), kept=None, verbose=0))
    if not last or last[0] != key:
        last[:] = key, make(library, rows, plan)
    return cast(Table, last[1])


def _digest(rows: TreeRows) -> bytes:
    """What tells apart the rows that a library's table is made of, without keeping them."""
    found = sha256()
    for part in (rows.X, rows.y, rows.weight, rows.start):
        found.update(b"none" if part is None else str((part.shape, part.dtype)).encode())
        if part is not None:
            found.update(np.ascontiguousarray(part).view(np.uint8).data)
    return found.digest()


class LightGBMTrees(Trees):
    """A LightGBM booster."""

    library = "lightgbm"

    def __init__(self, booster: Booster, n_rounds: int, n_threads: int = 1):
        self.booster = booster
        self.n_rounds = n_rounds
        self.n_threads = n_threads

    @classmethod
    def at_round(
        cls, booster: Booster, n_rounds: int, rows: TreeRows, plan: TreePlan, push: object
    ) -> LightGBMTrees:
        return cls(booster, n_rounds, plan.n_threads)

    @classmethod
    def grow(cls, rows: TreeRows, plan: TreePlan, push: Any, watch: Watch | None) -> Grown:
        lightgbm = require("lightgbm", "lightgbm")
        objective = (
            "binary" if push is None else lightgbm_push.push_objective(**push, groups=rows.groups)
        )
        params = {**_lightgbm_parameters(plan), "objective": objective}
        data = _binned_once(lightgbm, _lightgbm_data, rows, plan)
        values: list[float] = []
        callbacks = [lambda _: go_on(), *plan.callbacks]
        if plan.verbose:
            callbacks.append(lambda env: print_round(plan, watch, env.iteration + 1, values))
        watched: dict[str, Any] = {}
        if watch is not None:
            name, measure = watch.name, watch.measure

            def value_of(scores: FloatArray, _: object) -> tuple[str, float, bool]:
                values.append(measure(scores))
                return name, values[-1], True

            if not any(hasattr(one, "stopping_rounds") for one in plan.callbacks):
                callbacks.append(lightgbm.early_stopping(watch.patience, verbose=False))
            watched = {
                "valid_sets": [_lightgbm_data(lightgbm, watch.rows, plan, reference=data)],
                "valid_names": ["valid_0"],
                "feval": value_of,
            }
        booster = lightgbm.train(params, data, plan.n_estimators, callbacks=callbacks, **watched)
        booster.free_dataset()
        grown = cls(booster, booster.current_iteration(), plan.n_threads)
        return Grown(grown, np.array(values))

    def _predict(self, Z: FloatArray, **kwargs: object) -> FloatArray:
        # left to itself LightGBM takes every core, and processes forked afterwards wait for ever
        found = self.booster.predict(Z, num_threads=self.n_threads, **kwargs)
        return np.asarray(found, dtype=np.float64)

    def scores(self, Z: FloatArray, n_rounds: int | None = None) -> FloatArray:
        rounds = self.n_rounds if n_rounds is None else n_rounds
        return self._predict(Z, raw_score=True, num_iteration=rounds)

    def staged_scores(self, Z: FloatArray) -> Iterator[FloatArray]:
        total = np.zeros(len(Z))
        for k in range(self.n_rounds):
            total = total + self._predict(Z, raw_score=True, start_iteration=k, num_iteration=1)
            yield total

    def contributions(self, Z: FloatArray) -> FloatArray:
        return self._predict(Z, pred_contrib=True, num_iteration=self.n_rounds)

    def gains(self) -> FloatArray:
        gains = self.booster.feature_importance("gain", iteration=self.n_rounds)
        return np.asarray(gains, dtype=np.float64)


def _lightgbm_data(
    lightgbm: ModuleType, rows: TreeRows, plan: TreePlan, reference: object = None
) -> lightgbm.Dataset:
    names: list[str] | str = "auto"
    if plan.names and not any(_NOT_IN_LIGHTGBM_NAMES & set(name) for name in plan.names):
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
        params=_lightgbm_parameters(plan),
    )


def _lightgbm_parameters(plan: TreePlan) -> dict[str, object]:
    params: dict[str, object] = {
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


class XGBoostTrees(Trees):
    """An XGBoost booster."""

    library = "xgboost"

    def __init__(self, booster: Booster, n_rounds: int, plan: TreePlan, base: float):
        self.booster = booster
        booster.set_param("nthread", plan.n_threads)  # one that was read from a file takes all
        self.n_rounds = n_rounds
        self._plan = replace(plan, callbacks=(), kept=None)
        self._base = base  # what every prediction starts from

    @classmethod
    def at_round(
        cls, booster: Booster, n_rounds: int, rows: TreeRows, plan: TreePlan, push: object
    ) -> XGBoostTrees:
        base = 0.0 if push is not None else _own_objective(rows)[1]
        return cls(booster, n_rounds, plan, base)

    @classmethod
    def grow(cls, rows: TreeRows, plan: TreePlan, push: Any, watch: Watch | None) -> Grown:
        xgboost = require("xgboost", "xgboost")
        link, base = ({}, 0.0) if push is not None else _own_objective(rows)
        begun = None if plan.kept is None else plan.kept.read()
        values: list[float] = []
        booster, ended = None, False
        if begun is not None:
            values += begun.values
            booster = xgboost.Booster(model_file=bytearray(begun.booster))
            ended = begun.ended or _has_all(booster, plan, watch, values)
        if booster is None or not ended:
            params = {"base_score": 0.0, **_xgboost_parameters(plan), **link, **plan.extra}
            own = None
            if push is not None:
                own = xgboost_push.push_objective(**push, groups=rows.groups)
            booster = _add_rounds(xgboost, booster, params, rows, plan, own, watch, values)
        if plan.kept is not None:
            plan.kept.keep(booster, values, ended=True)
        return Grown(cls(booster, booster.num_boosted_rounds(), plan, base), np.array(values))

    def _predict(self, Z: object, first: int, last: int, what: str) -> FloatArray:
        if isinstance(Z, BlockTable):
            parts = [self._predict(part, first, last, what) for part in Z.parts()]
            return np.concatenate(parts) if parts else np.zeros(0)
        data = _xgboost_data(
            require("xgboost", "xgboost"), TreeRows(Z, np.zeros(0, dtype=bool)), self._plan
        )
        out = self.booster.predict(data, iteration_range=(first, last), **{what: True})
        return np.asarray(out, dtype=np.float64)

    def scores(self, Z: FloatArray, n_rounds: int | None = None) -> FloatArray:
        rounds = self.n_rounds if n_rounds is None else n_rounds
        return self._predict(Z, 0, rounds, "output_margin")

    def staged_scores(self, Z: FloatArray) -> Iterator[FloatArray]:
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


def _has_all(
    booster: xgboost.Booster, plan: TreePlan, watch: Watch | None, values: list[float]
) -> bool:
    """Whether trees that were kept while they grew are all that would have grown."""
    return booster.num_boosted_rounds() >= plan.n_estimators or is_over(watch, values)


def _add_rounds(
    xgboost: ModuleType,
    begun: xgboost.Booster | None,
    params: dict[str, object],
    rows: TreeRows,
    plan: TreePlan,
    objective: object,
    watch: Watch | None,
    values: list[float],
) -> xgboost.Booster:
    """Grow the trees, or those that are missing, and add the metric after each round to values."""
    first = 0 if begun is None else begun.num_boosted_rounds()
    seed = int(str(params.pop("random_state", params["seed"])))
    params["seed"] = seed
    callbacks = xgboost_callbacks(params, plan, watch, values, first)
    data = _binned_once(xgboost, _xgboost_data, rows, plan)
    watched: dict[str, Any] = {}
    if watch is not None:
        name, measure = watch.name, watch.measure

        def value_of(scores: FloatArray, _: object) -> tuple[str, float]:
            values.append(measure(scores))
            return name, values[-1]

        watched = {
            "evals": [(_xgboost_data(xgboost, watch.rows, plan, data), "valid_0")],
            "custom_metric": value_of,
            "verbose_eval": False,
        }
    return xgboost.train(
        {**params, "seed": seed_of_round(seed, first)},
        data,
        plan.n_estimators - first,
        obj=objective,
        xgb_model=begun,
        callbacks=callbacks,
        **watched,
    )


def _own_objective(rows: TreeRows) -> tuple[dict[str, object], float]:
    """The library's own objective, from the mean or from the scores to start from."""
    share = 0.5
    if rows.start is None:
        weight = np.ones(len(rows.y)) if rows.weight is None else rows.weight
        sums = [np.sum(weight, where=rows.y), np.sum(weight)]
        plus, total = xgboost_team().sum(np.array(sums))
        share = float(plus / total)
    link = {"objective": "binary:logistic", "base_score": share, "disable_default_eval_metric": 1}
    return link, float(np.log(np.float32(share)) - np.log1p(-np.float32(share)))


def _xgboost_data(
    xgboost: ModuleType, rows: TreeRows, plan: TreePlan, reference: object = None
) -> xgboost.DMatrix:
    names = None
    if plan.names and not any(_NOT_IN_XGBOOST_NAMES & set(name) for name in plan.names):
        names = list(plan.names)
    if isinstance(rows.X, BlockTable):
        return external_matrix(rows, plan, names, reference)
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


def _xgboost_parameters(plan: TreePlan) -> dict[str, object]:
    params: dict[str, object] = {
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


#: The libraries by their names.
BACKENDS: dict[str, type[Trees]] = {cls.library: cls for cls in (LightGBMTrees, XGBoostTrees)}
