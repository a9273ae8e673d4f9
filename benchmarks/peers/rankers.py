"""Every ranker under one handle: fit(X, y), then scores(X), higher nearer the top.

Parameters are the libraries' defaults with a hundred trees or stumps, one thread and a fixed
seed, unless the name says that something was chosen: then by cross-validation inside the
training rows, in three folds, on average precision. Linear models see standardised features.
Nothing is tuned to a data set.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import AdaBoostClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import toprank

BASELINE = "LogisticRegression"
NOT_INSTALLED = "not installed"
ROUNDS = 100
PENALTIES = tuple(10.0**k for k in range(-4, 2))
#: LightGBM refuses to rank a list longer than this.
LIGHTGBM_LIST = 10_000


@dataclass(frozen=True)
class Ranker:
    """How a ranker is made, what it needs, and where it stands in the tables."""

    name: str
    family: str  # linear, stumps, trees
    library: str  # the module it needs
    make: Callable[[], Any]
    longest: int | None = None  # rows it accepts in one list
    slow: bool = False  # left out of --quick
    compiled: bool = False  # its code is compiled when first used
    loader: Callable[[], Any] | None = None  # loads its library, where `make` does much besides

    @property
    def missing(self) -> str | None:
        """Why it cannot run here; None if it can."""
        try:
            importlib.import_module(self.library)
        except Exception as error:  # a half-installed library may raise anything
            return f"{NOT_INSTALLED} ({type(error).__name__}: {error})"
        return None

    @property
    def ours(self) -> bool:
        return self.library == "toprank"


def scores_of(model: Any, X: Any) -> np.ndarray:
    """Decision values, else the probability of class one, else predictions."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X), dtype=np.float64)
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X), dtype=np.float64)[:, 1]
    return np.asarray(model.predict(X), dtype=np.float64).reshape(-1)


def standardised(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


def logistic_chosen() -> Any:
    grid = {"C": [1 / penalty for penalty in PENALTIES]}
    logistic = LogisticRegression(max_iter=2000)
    return GridSearchCV(logistic, grid, scoring="average_precision", cv=3)


def push_chosen() -> Any:
    return toprank.PNormPushCV(
        (1, 4, 16, 64), alphas=PENALTIES, scoring="average_precision", test_size=None, cv=3
    )


def lightgbm(ranker: bool = False) -> Any:
    import lightgbm as library

    settings = {"n_estimators": ROUNDS, "n_jobs": 1, "verbose": -1, "deterministic": True}
    settings |= {"force_row_wise": True, "random_state": 0}
    if not ranker:
        return library.LGBMClassifier(**settings)
    return OneList(library.LGBMRanker(**settings), group=True)


def xgboost(objective: str) -> Any:
    import xgboost as library

    settings = {"n_estimators": ROUNDS, "n_jobs": 1, "random_state": 0}
    if objective.startswith("binary"):
        return library.XGBClassifier(**settings)
    return OneList(library.XGBRanker(objective=objective, **settings), group=False)


def catboost() -> Any:
    import catboost as library

    return library.CatBoostClassifier(
        n_estimators=ROUNDS, thread_count=1, random_seed=0, verbose=0, allow_writing_files=False
    )


class OneList:
    """A ranker of queries that is given one: the whole table."""

    def __init__(self, ranker: Any, group: bool):
        self.ranker = ranker
        self.group = group

    def fit(self, X: Any, y: Any) -> OneList:
        asked = {"group": [len(y)]} if self.group else {"qid": np.zeros(len(y), dtype=int)}
        self.ranker.fit(X, y, **asked)
        return self

    def predict(self, X: Any) -> Any:
        return self.ranker.predict(X)


class SurvivalSVM(BaseEstimator):
    """scikit-survival's ranking SVM; a positive is an event at time one, a negative at two."""

    def fit(self, X: Any, y: Any) -> SurvivalSVM:
        from sksurv.svm import FastSurvivalSVM

        times = np.empty(len(y), dtype=[("event", bool), ("time", float)])
        times["event"], times["time"] = True, 2.0 - y
        self.model_ = FastSurvivalSVM(rank_ratio=1.0, max_iter=200, tol=1e-6, random_state=0)
        self.model_.fit(X, times)
        return self

    def predict(self, X: Any) -> Any:
        return self.model_.predict(X)


class PartialAucLinear(BaseEstimator):
    """A linear model under one of LibAUC's partial-AUC losses, by its own optimiser."""

    def __init__(self, loss: str = "CVaR", epochs: int = 20, batch: int = 64):
        self.loss = loss
        self.epochs = epochs
        self.batch = batch

    def fit(self, X: Any, y: Any) -> PartialAucLinear:
        import torch
        from libauc.losses.auc import pAUC_CVaR_Loss, pAUC_DRO_Loss
        from libauc.optimizers import SOPA, SOPAs

        torch.manual_seed(0)
        torch.set_num_threads(1)
        rng = np.random.default_rng(0)
        inputs = torch.as_tensor(X, dtype=torch.float32)
        self.model_ = torch.nn.Linear(X.shape[1], 1)
        positive, negative = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
        if self.loss == "CVaR":
            loss = pAUC_CVaR_Loss(data_len=len(y), pos_len=len(positive), device="cpu")
            optimiser = SOPA(self.model_.parameters(), lr=0.01, device="cpu")
        else:
            loss = pAUC_DRO_Loss(data_len=len(y), device="cpu")
            optimiser = SOPAs(self.model_.parameters(), lr=0.01, verbose=False, device="cpu")
        half = min(self.batch, len(positive), len(negative))
        targets = torch.cat([torch.ones(half, 1), torch.zeros(half, 1)])
        for _ in range(self.epochs * max(1, len(y) // (2 * half))):
            rows = np.concatenate(
                [rng.choice(positive, half, False), rng.choice(negative, half, False)]
            )
            optimiser.zero_grad()
            index = torch.as_tensor(rows)
            loss(self.model_(inputs[index]), targets, index).backward()
            optimiser.step()
        return self

    def predict(self, X: Any) -> Any:
        import torch

        with torch.no_grad():
            return self.model_(torch.as_tensor(X, dtype=torch.float32)).numpy()


def _linear(name: str, library: str, make: Callable[[], Any], **facts: Any) -> Ranker:
    return Ranker(name, "linear", library, lambda: standardised(make()), **facts)


def _ours() -> list[Ranker]:
    def push(p: float) -> Callable[[], Any]:
        return lambda: toprank.PNormPush(p)

    def trees(p: float) -> Callable[[], Any]:
        return lambda: toprank.PushTrees(p, early_stopping=False, random_state=0)

    def stumps(p: float) -> Callable[[], Any]:
        return lambda: toprank.RankBoost(ROUNDS, p=p)

    top = "toprank"
    return [
        *(_linear(f"PNormPush(p={p})", top, push(p)) for p in (1, 4, 16, 64)),
        _linear(
            "TopPush: PNormPush(p=inf, squared_hinge)",
            top,
            lambda: toprank.PNormPush(np.inf, loss="squared_hinge"),
        ),
        _linear("IRPush", top, toprank.IRPush),
        _linear("PNormPushCV, p and penalty chosen", top, push_chosen, slow=True),
        _linear("ProperRanker", top, toprank.ProperRanker),
        _linear("PairRanker", top, toprank.PairRanker),
        *(Ranker(f"RankBoost(p={p})", "stumps", top, stumps(p), compiled=True) for p in (1, 4, 16)),
        Ranker(
            "SmoothMarginRanker",
            "stumps",
            top,
            lambda: toprank.SmoothMarginRanker(10 * ROUNDS),
            compiled=True,
        ),
        *(Ranker(f"PushTrees(p={p})", "trees", "lightgbm", trees(p)) for p in (1, 4, 16)),
    ]


def _theirs() -> list[Ranker]:
    sklearn = "sklearn"
    return [
        _linear(BASELINE, sklearn, lambda: LogisticRegression(max_iter=2000)),
        _linear("LogisticRegression, C chosen", sklearn, logistic_chosen, slow=True),
        _linear("LinearSVC", sklearn, lambda: LinearSVC(random_state=0, max_iter=2000)),
        _linear("scikit-survival FastSurvivalSVM", "sksurv.svm", SurvivalSVM),
        _linear(
            "LibAUC pAUC_CVaR", "libauc.optimizers", lambda: PartialAucLinear("CVaR"), slow=True
        ),
        _linear("LibAUC pAUC_DRO", "libauc.optimizers", lambda: PartialAucLinear("DRO"), slow=True),
        Ranker(
            "AdaBoost",
            "stumps",
            sklearn,
            lambda: AdaBoostClassifier(n_estimators=ROUNDS, random_state=0),
        ),
        Ranker(
            "HistGradientBoosting",
            "trees",
            sklearn,
            lambda: HistGradientBoostingClassifier(
                max_iter=ROUNDS, early_stopping=False, random_state=0
            ),
        ),
        Ranker("LightGBM binary", "trees", "lightgbm", lightgbm),
        Ranker(
            "LightGBM lambdarank",
            "trees",
            "lightgbm",
            lambda: lightgbm(ranker=True),
            longest=LIGHTGBM_LIST,
        ),
        *(
            Ranker(f"XGBoost {objective}", "trees", "xgboost", _xgboost_of(objective))
            for objective in ("binary:logistic", "rank:pairwise", "rank:ndcg")
        ),
        Ranker("CatBoost", "trees", "catboost", catboost, slow=True),
    ]


def _xgboost_of(objective: str) -> Callable[[], Any]:
    return lambda: xgboost(objective)


RANKERS: dict[str, Ranker] = {ranker.name: ranker for ranker in [*_theirs(), *_ours()]}
