"""What a library of boosted trees is asked to do, from the parameters of `PushTrees`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from toprank._arrays import AnyArray
from toprank._numerics import FloatArray
from toprank.interop.team import Team
from toprank.losses import TRAINABLE_LOSSES, Loss
from toprank.pairs import Rows
from toprank.prices import PRICES, Price
from toprank.rankers.trees.columns import find_columns

if TYPE_CHECKING:
    import lightgbm
    import xgboost

    from toprank.rankers.trees.kept_rounds import KeptRounds


#: Returns the metric of the held-out rows at their scores, larger is better.
Measure = Callable[[FloatArray], float]
#: What the libraries call an ensemble of trees.
Booster: TypeAlias = "lightgbm.Booster | xgboost.Booster"


@dataclass(frozen=True)
class TreeRows(Rows):
    """Rows for a tree library: numbers, NaN where missing, categories as codes 0, 1, ...

    ``start`` are the scores that the trees are added to.
    """

    start: FloatArray | None = None

    def of_all(self, team: Team) -> TreeRows:
        """Return the labels, weights and groups of all members' rows; the numbers stay."""

        def whole(values: AnyArray | None) -> np.ndarray | None:
            return None if values is None else team.gather(values)

        return TreeRows(self.X, whole(self.y), whole(self.weight), whole(self.groups))


@dataclass(frozen=True)
class Watch:
    """Rows held out, the metric they are measured by, and how long to wait for it to improve.

    ``least`` is how many rounds are kept at least, ``name`` what the metric is called.
    """

    rows: TreeRows
    measure: Measure
    patience: int
    least: int = 1
    name: str = "metric"


@dataclass(frozen=True)
class TreePlan:
    """How trees are grown, in the words of `PushTrees`."""

    n_estimators: int
    learning_rate: float
    max_leaves: int
    max_depth: int | None
    min_samples_leaf: int
    min_child_weight: float
    reg_lambda: float
    subsample: float
    colsample: float
    max_bins: int
    seed: int
    n_threads: int
    verbose: int = 0
    monotone: tuple[int, ...] | None = None
    interactions: tuple[tuple[int, ...], ...] | None = None
    categorical: tuple[int, ...] = ()
    names: tuple[str, ...] | None = None
    extra: Mapping[str, object] = field(default_factory=dict)
    callbacks: tuple[Callable[..., object], ...] = ()
    #: Where the rounds are kept, and gone on from.
    kept: KeptRounds | None = None


@dataclass(frozen=True)
class Grown:
    """An ensemble, and the metric of the held-out rows after each round."""

    trees: Trees
    values: FloatArray


class Trees(ABC):
    """A grown ensemble: scores, shares of the score, importances."""

    #: The library, and the extra of toprank that brings it.
    library: ClassVar[str]
    n_rounds: int
    booster: Booster

    @classmethod
    @abstractmethod
    def grow(cls, rows: TreeRows, plan: TreePlan, push: object, watch: Watch | None) -> Grown:
        """Grow trees under the push, or under the library's binary objective if it is None."""

    @classmethod
    @abstractmethod
    def at_round(
        cls, booster: Booster, n_rounds: int, rows: TreeRows, plan: TreePlan, push: object
    ) -> Trees:
        """Return the trees of a booster that is still growing, after so many rounds."""

    @abstractmethod
    def scores(self, Z: FloatArray, n_rounds: int | None = None) -> FloatArray:
        """Return the raw scores after so many rounds, all by default."""

    @abstractmethod
    def staged_scores(self, Z: FloatArray) -> Iterator[FloatArray]:
        """Yield the raw scores after each round."""

    @abstractmethod
    def contributions(self, Z: FloatArray) -> FloatArray:
        """Return SHAP values of shape (n, d + 1), the expected score last; rows sum to scores."""

    @abstractmethod
    def gains(self) -> FloatArray:
        """Return the total gain of the splits of each feature."""


#: What each parameter of `PushTrees` may be.
CONSTRAINTS: dict[str, list[object]] = {
    "p": [Interval(Real, 1, np.inf, closed="both"), StrOptions({"auto"}), None],
    "price": [StrOptions(PRICES.keys()), Price, tuple],
    "loss": [StrOptions(TRAINABLE_LOSSES), Loss, tuple],
    "backend": [StrOptions({"lightgbm", "xgboost"})],
    "n_estimators": [Interval(Integral, 1, None, closed="left")],
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    "max_leaves": [Interval(Integral, 2, None, closed="left")],
    "max_depth": [Interval(Integral, -1, None, closed="left"), None],
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
    "stop_by": [str, callable],
    "metric": [str, callable],
    "metric_kwargs": [dict, None],
    "rule": [StrOptions({"best", "one_standard_error"})],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
    "ps": ["array-like"],
    "cv": ["cv_object"],
    "init_scale": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
    "calibration": [StrOptions({"out_of_fold", "training"})],
    "link": [StrOptions({"logistic", "p_classification"})],
    "backend_params": [dict, None],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
}


def plan_of(trees: Any) -> TreePlan:
    """Return how an estimator that has seen its columns wants its trees grown."""
    names = getattr(trees, "feature_names_in_", None)
    return TreePlan(
        n_estimators=trees.n_estimators,
        learning_rate=trees.learning_rate,
        max_leaves=trees.max_leaves,
        max_depth=None if (trees.max_depth or 0) <= 0 else trees.max_depth,
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


def _monotone(trees: Any, names: Sequence[str] | None) -> tuple[int, ...] | None:
    given, d = trees.monotone_constraints, trees.n_features_in_
    if given is None:
        return None
    if isinstance(given, dict):
        signs = np.zeros(d, dtype=np.intp)
        for name, sign in given.items():
            signs[find_columns([name], names, d, "monotone_constraints")] = sign
    else:
        signs = np.asarray(given)
    if signs.shape != (d,) or not np.all(np.isin(signs, (-1, 0, 1))):
        raise ValueError(
            f"monotone_constraints must hold -1, 0 or 1 for each of the {d} columns; got {given!r}."
        )
    if np.any(signs[list(trees._columns.places)]):
        raise ValueError("monotone_constraints cannot be set on a column of categories.")
    return tuple(int(sign) for sign in signs)


def _interactions(trees: Any, names: Sequence[str] | None) -> tuple[tuple[int, ...], ...] | None:
    if trees.interaction_constraints is None:
        return None
    d, what = trees.n_features_in_, "interaction_constraints"
    sets = [tuple(find_columns(list(one), names, d, what)) for one in trees.interaction_constraints]
    rest = tuple(sorted(set(range(d)).difference(*sets)))
    return tuple(sets) + ((rest,) if rest else ())
