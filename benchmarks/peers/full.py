"""Peers at full size: defaults and tuned ones, many splits, the same for all.

Up to 10,000 training rows. Where thinning a class in proportion would leave fewer than 100
positives, as many more are kept as there are, up to 100. Sets of fewer than 1,000 rows get 30
splits, the others 10. Tuned peers draw ten settings at random and take the one of highest average
precision over three inner folds; then they are fitted to all training rows. The order is split by
split over the sets, the smallest first, and defaults before tuned ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GroupShuffleSplit,
    RandomizedSearchCV,
    StratifiedKFold,
    StratifiedShuffleSplit,
)

import toprank

from .cells import METRICS, measured
from .data import TEST_SHARE, Cut, Data, by_size, load
from .harness import Clock, say
from .marks import mark_of
from .rankers import NOT_INSTALLED, Ranker, standardised
from .store import Store

TRAIN_ROWS = 10_000
KEPT_POSITIVES = 100
FEW_ROWS, SPLITS_OF_FEW, SPLITS = 1_000, 30, 10
TRIALS, INNER_FOLDS = 10, 3
#: Seconds of processor time that a cell may take.
LIMIT = 3_600.0


def lightgbm(**settings: Any) -> Any:
    import lightgbm as library

    return library.LGBMClassifier(n_jobs=1, verbose=-1, random_state=0, **settings)


def xgboost(**settings: Any) -> Any:
    import xgboost as library

    return library.XGBClassifier(n_jobs=1, random_state=0, **settings)


def catboost(**settings: Any) -> Any:
    import catboost as library

    return library.CatBoostClassifier(
        thread_count=1, random_seed=0, verbose=0, allow_writing_files=False, **settings
    )


def hist_gradient_boosting() -> Any:
    return HistGradientBoostingClassifier(random_state=0)


def random_forest() -> Any:
    return RandomForestClassifier(random_state=0, n_jobs=1)


def extra_trees() -> Any:
    return ExtraTreesClassifier(random_state=0, n_jobs=1)


def logistic() -> Any:
    return LogisticRegression(max_iter=2000)


_RATES = stats.loguniform(0.01, 0.3)
_SHARES = stats.uniform(0.5, 0.5)
#: What a tuned peer draws its settings from; the usual ranges, the same for every set.
SPACES: dict[str, dict[str, Any]] = {
    "LogisticRegression": {"C": stats.loguniform(1e-4, 1e3), "class_weight": [None, "balanced"]},
    "LightGBM": {
        "n_estimators": [100, 200, 400],
        "learning_rate": _RATES,
        "num_leaves": [7, 15, 31, 63],
        "min_child_samples": [5, 20, 50],
        "subsample": _SHARES,
        "subsample_freq": [1],
        "colsample_bytree": _SHARES,
        "reg_lambda": stats.loguniform(1e-3, 10),
    },
    "XGBoost": {
        "n_estimators": [100, 200, 400],
        "learning_rate": _RATES,
        "max_depth": [3, 4, 6, 8],
        "min_child_weight": stats.loguniform(0.3, 20),
        "subsample": _SHARES,
        "colsample_bytree": _SHARES,
        "reg_lambda": stats.loguniform(1e-3, 10),
    },
    "CatBoost": {
        "n_estimators": [200, 500, 1000],
        "learning_rate": _RATES,
        "depth": [4, 6, 8],
        "l2_leaf_reg": stats.loguniform(1, 10),
    },
    "HistGradientBoosting": {
        "max_iter": [100, 200, 400],
        "learning_rate": _RATES,
        "max_leaf_nodes": [7, 15, 31, 63],
        "min_samples_leaf": [5, 20, 50],
        "l2_regularization": stats.loguniform(1e-3, 10),
    },
    "random forest": {
        "n_estimators": [300],
        "min_samples_leaf": [1, 2, 5, 10],
        "max_features": ["sqrt", 0.3, 0.6],
        "class_weight": [None, "balanced_subsample"],
    },
    "extra trees": {
        "n_estimators": [300],
        "min_samples_leaf": [1, 2, 5, 10],
        "max_features": ["sqrt", 0.3, 0.6],
        "class_weight": [None, "balanced"],
    },
}
_PEERS: dict[str, tuple[str, Callable[[], Any]]] = {
    "LogisticRegression": ("sklearn", logistic),
    "LightGBM": ("lightgbm", lightgbm),
    "XGBoost": ("xgboost", xgboost),
    "CatBoost": ("catboost", catboost),
    "HistGradientBoosting": ("sklearn", hist_gradient_boosting),
    "random forest": ("sklearn", random_forest),
    "extra trees": ("sklearn", extra_trees),
}


def tuned(name: str) -> Any:
    """The peer with settings drawn at random and compared on inner folds."""
    search = RandomizedSearchCV(
        _PEERS[name][1](),
        SPACES[name],
        n_iter=TRIALS,
        scoring="average_precision",
        cv=StratifiedKFold(INNER_FOLDS, shuffle=True, random_state=0),
        random_state=0,
    )
    return standardised(search) if name == "LogisticRegression" else search


def _default(name: str) -> Any:
    model = _PEERS[name][1]()
    return standardised(model) if name == "LogisticRegression" else model


def _make(kind: Callable[[str], Any], name: str) -> Callable[[], Any]:
    return lambda: kind(name)


def _ensemble(quality: str) -> Callable[[], Any]:
    return lambda: toprank.PushEnsemble(quality=quality, random_state=0)


def _rankers() -> list[Ranker]:
    ours = [
        Ranker("PushEnsemble", "ours", "toprank", _ensemble("good"), compiled=True),
        Ranker("PushEnsemble, fast", "ours", "toprank", _ensemble("fast"), compiled=True),
        Ranker("PushTrees", "ours", "lightgbm", lambda: toprank.PushTrees(random_state=0)),
    ]
    defaults = [
        Ranker(name, "default", library, _make(_default, name))
        for name, (library, _) in _PEERS.items()
    ]
    chosen = [
        Ranker(f"{name}, tuned", "tuned", library, _make(tuned, name), loader=_make(_default, name))
        for name, (library, _) in _PEERS.items()
    ]
    return [*ours, *defaults, *chosen]


RANKERS: dict[str, Ranker] = {ranker.name: ranker for ranker in _rankers()}


def n_splits(data: Data) -> int:
    """How many splits a set gets."""
    return SPLITS_OF_FEW if len(data.y) < FEW_ROWS else SPLITS


def splits(data: Data, *, train_rows: int = TRAIN_ROWS, seed: int = 0) -> Iterator[Cut]:
    """Random cuts, stratified or by whole groups; the test part stays whole."""
    kind = StratifiedShuffleSplit if data.groups is None else GroupShuffleSplit
    cutter = kind(n_splits(data), test_size=TEST_SHARE, random_state=seed)
    for number, (train, test) in enumerate(cutter.split(data.X, data.y, data.groups)):
        yield thinned(train, data.y, train_rows, seed=[seed, number]), test


def thinned(rows: Any, y: Any, count: int, *, seed: list[int]) -> Any:
    """At most so many rows, classes in proportion, but no fewer than 100 positives if there are."""
    if len(rows) <= count:
        return rows
    rng = np.random.default_rng(seed)
    positives, negatives = rows[y[rows] == 1], rows[y[rows] == 0]
    wanted = max(round(count * len(positives) / len(rows)), KEPT_POSITIVES)
    kept = min(len(positives), wanted)
    parts = [
        rng.choice(positives, kept, replace=False),
        rng.choice(negatives, count - kept, replace=False),
    ]
    return np.sort(np.concatenate(parts))


def run(
    store: Store,
    folder: Path,
    sets: tuple[str, ...],
    rankers: tuple[str, ...],
    most_splits: int = SPLITS_OF_FEW,
    again: bool = False,
) -> None:
    """Every cell that is not in the store yet, split by split, the cheaper families first.

    ``again`` measures those too that carry another mark than today's, or none, or lack a metric.
    """
    missing = {name: RANKERS[name].missing for name in rankers}
    _load_compiled_code()
    marks = {name: mark_of(RANKERS[name]) for name in rankers if not missing[name]}
    cuts = {name: list(splits(load(name, folder))) for name in by_size(sets, folder)}
    jobs = [
        (number, name, ranker)
        for number in range(most_splits)
        for family in (("ours", "default"), ("tuned",))
        for name in cuts
        for ranker in rankers
        if number < len(cuts[name]) and RANKERS[ranker].family in family
    ]
    clock = Clock(len(jobs))
    for number, name, ranker in jobs:
        key = ("full", name, ranker, number)
        known = key in store and not (again and outdated(store.cells[key], marks.get(ranker)))
        if known or missing[ranker]:
            clock.skip()
            continue
        describe(store, load(name, folder), cuts[name][0])
        outcome = measured(RANKERS[ranker], load(name, folder), *cuts[name][number], LIMIT)
        store.add(key, outcome.values, outcome.costs, marks[ranker], outcome.settings)
        found = outcome.values.get("failed") or f"{outcome.costs['fit_s']:.2f} s"
        say(f"{clock.tick()} {name} · {ranker} · split {number}: {found}")
    for ranker, why in missing.items():
        if why:
            say(f"{ranker}: {NOT_INSTALLED}")


def outdated(cell: dict[str, Any], mark: str | None) -> bool:
    """Whether a cell is of other code than that of a mark, or from before a metric was kept."""
    values = cell["values"]
    return cell.get("mark") != mark or not ("failed" in values or METRICS.keys() <= values.keys())


def _load_compiled_code() -> None:
    """Once, before the cells' processes are forked from this one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    toprank.PushEnsemble(quality="fast", random_state=0).fit(X, X[:, 0] > 0)


def describe(store: Store, data: Data, cut: Cut) -> None:
    """Keep what the page says of a set beside its results."""
    key = ("full set", data.name)
    if key in store:
        return
    train, test = cut
    share = len(train) * data.positives / len(data.y)
    facts = {"rows": len(data.y), "positives": data.positives, "features": data.X.shape[1]}
    facts |= {"train": len(train), "train_positives": int(data.y[train].sum())}
    facts |= {"test": len(test), "splits": n_splits(data)}
    facts["kept"] = bool(data.y[train].sum() > 1.5 * share)
    store.add(key, facts, {})
