"""The members of ``estimators="auto"``: which, how large, and in which order.

The order is that in which they are fitted. Where time is short the last are left out first, so
cheap members come before slow ones, and different kinds before more of a kind.
"""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from sklearn.base import BaseEstimator

from toprank.rankers.ensemble.converted import CatBoostRanker, ForestRanker
from toprank.rankers.ensemble.prepared import PreparedRanker
from toprank.rankers.linear import PNormPush
from toprank.rankers.proper import ProperRanker
from toprank.rankers.trees import PushTrees

#: A name, and the unfitted estimator.
Member = tuple[str, BaseEstimator]

#: Fewer rows than these get at least so many folds: a fit to less would not stand for the whole.
_FEW_ROWS, _FOLDS_OF_FEW = 2_000, 5
#: Columns that the second forest tries at a split, at most.
_MANY_TRIED = 32
#: Fewer positives than these, in few rows, get more trees of CatBoost.
_FEW_POSITIVES = 100
#: Fewer positives than these, and fewer rows, get more trees of the forests.
_SMALL_TOP, _SMALL_TABLE = 200, 5_000
#: What is tried to smooth the extra trees by, in rows.
_SMOOTHINGS = (10.0, 30.0, 100.0, 300.0)
#: Positives are rare below this share of the rows.
_RARE_SHARE = 0.25


@dataclass(frozen=True)
class TableShape:
    """What of a table decides on the members."""

    n_columns: int = 1
    n_rows: int = 1_000_000
    n_positives: int = 100_000

    @property
    def has_few_positives(self) -> bool:
        """Whether positives are few, in a table so small that more trees take little time."""
        return self.n_rows < _FEW_ROWS and self.n_positives < _FEW_POSITIVES

    @property
    def has_rare_positives(self) -> bool:
        """Whether the top of the list is where few rows are: binary trees then hardly add."""
        return self.n_positives < _RARE_SHARE * self.n_rows

    @property
    def has_small_top(self) -> bool:
        """Whether few and rare positives weigh the members, and more trees take little time."""
        small = self.n_positives < _SMALL_TOP and self.n_rows < _SMALL_TABLE
        return small and self.has_rare_positives

    @property
    def n_tried(self) -> int:
        """How many columns the wide forest tries at a split; 0 where it would be like the other.

        Half of them, so that trees find the few that matter among many that do not; of many columns
        fewer, since the time grows with them. The other forest tries the root of their number.
        """
        tried = min((self.n_columns + 1) // 2, _MANY_TRIED)
        return tried if tried > math.isqrt(self.n_columns) else 0


class Forests(NamedTuple):
    """How many extra trees are grown.

    Attributes
    ----------
    first : int
        Trees that try the root of the number of columns at every split.
    wide : int
        Trees of a second forest, which tries more columns; 0 for none.
    last_wide : int or None
        Its trees where it is fitted to all rows; None for as many as in the folds. Folds only
        weigh it, and can do with fewer.
    """

    first: int
    wide: int = 0
    last_wide: int | None = None


@dataclass(frozen=True)
class Effort:
    """How much work a quality is.

    Attributes
    ----------
    folds : int
        Folds of the out-of-fold scores.
    rounds : int
        Trees of a boosted member.
    rate : float
        Their learning rate.
    powers : tuple of float
        The p of the pushed trees.
    forests : Forests
        The extra trees; a random forest has as many trees as the first of them.
    cat_rounds : int
        Trees of CatBoost.
    random_forest : bool
        Whether there is a random forest beside the extra trees.
    combinations : tuple of (p, alpha)
        The pushes over the members that are tried beside the first; p is None for the logistic
        loss.
    weighed : int
        Rows at most that the folds are made of; of more so many are drawn. The last fits of the
        members take all.
    bins : int
        Bins at most of all columns of a boosted member together, within 63 to 255 of each. With
        many columns the search over bins takes most of the time of trees on a few thousand rows;
        with few columns the bins of their tails are what the top of a list is made of.
    least_weight : float
        Members that weigh less than this share of the heaviest are left out, and the others are
        weighed again: what they add is lost in noise, and they take as long as the others.
    wide_or_binary : bool
        Whether the wide forest is a member where positives are rare only, and there, beside
        CatBoost, stands in the place of the trees with the binary objective.
    few_cat_rounds : int or None
        Trees of CatBoost where rows and positives are few; None for no more than elsewhere. It
        learns the more slowly the more trees it is to grow, and with few positives its lists gain
        by that.
    few_forests : Forests or None
        The forests where few and rare positives weigh the members; None for no larger ones. Their
        scores out of fold are steadier, and so are the weights.
    """

    folds: int
    rounds: int
    rate: float
    powers: tuple[float, ...]
    forests: Forests
    cat_rounds: int
    random_forest: bool
    combinations: tuple[tuple[float | None, float], ...]
    weighed: int = 1_000_000
    bins: int = 1_000_000
    least_weight: float = 0.0
    wide_or_binary: bool = False
    few_cat_rounds: int | None = None
    few_forests: Forests | None = None


_FEW = ((1.0, 0.01), (None, 0.01))
_MANY = (*_FEW, (2.0, 0.01), (8.0, 0.01), (4.0, 0.1), (4.0, 0.001), (None, 0.001))

#: What ``quality`` stands for.
EFFORTS = {
    "fast": Effort(3, 80, 0.12, (4.0,), Forests(40), 45, False, _FEW, 100_000, 6_000, 0.1),
    "good": Effort(
        *(4, 220, 0.05, (4.0,), Forests(160, 120, 160), 120, False, _MANY, 300_000),
        wide_or_binary=True,
        few_cat_rounds=300,
        few_forests=Forests(480, 180, 480),
    ),
    "best": Effort(
        *(5, 400, 0.03, (4.0, 1.0, 16.0), Forests(300, 300), 1000, True, _MANY, 1_000_000),
        few_forests=Forests(600, 600),
    ),
}


def is_installed(library: str) -> bool:
    """Whether a library can be imported, without importing it."""
    return importlib.util.find_spec(library) is not None


def auto_members(
    quality: str,
    categorical_features: Any,
    random_state: int,
    clip_tails: bool = True,
    table: TableShape = TableShape(),
) -> list[Member]:
    """Return the members for a table, whatever is installed, in the order of the fits."""
    effort = EFFORTS[quality]
    columns = {"categorical_features": categorical_features}
    prepared = {**columns, "clip_tails": clip_tails}
    drawn = {**columns, "random_state": random_state, "n_jobs": 1}
    others: list[Member] = []
    members: list[Member] = [
        ("logistic", PreparedRanker(ProperRanker(), **prepared)),
        ("push", PreparedRanker(PNormPush(4.0), **prepared)),
    ]
    backend = next((one for one in ("lightgbm", "xgboost") if is_installed(one)), None)
    if backend is not None:
        trees = {
            "backend": backend,
            "n_estimators": effort.rounds,
            "learning_rate": effort.rate,
            "subsample": 0.8,
            "colsample": 0.8,
            "max_bins": min(255, max(63, effort.bins // max(1, table.n_columns))),
            "early_stopping": False,
            "calibration": "training",  # the ensemble has a link of its own
            **drawn,
        }
        first, *others = ((f"trees, p = {p:g}", PushTrees(p, **trees)) for p in effort.powers)
        members.append(first)
    # to the last row: with leaves of two, averages of random cuts blur the top of the list
    deep = {"min_samples_leaf": 1, "smoothings": _SMOOTHINGS, **drawn}
    forests = (effort.few_forests if table.has_small_top else None) or effort.forests
    members.append(("extra trees", ForestRanker(n_estimators=forests.first, **deep)))
    has_catboost, rare = is_installed("catboost"), table.has_rare_positives
    if backend is not None and not (effort.wide_or_binary and has_catboost and rare):
        members.append(("trees, binary", PushTrees(None, **trees)))
    if has_catboost:
        more = effort.few_cat_rounds if table.has_few_positives else None
        members.append(("CatBoost", CatBoostRanker(more or effort.cat_rounds, **drawn)))
    if forests.wide and table.n_tried and (rare or not effort.wide_or_binary):
        deep |= {"max_features": table.n_tried, "last_estimators": forests.last_wide}
        wide = ForestRanker(n_estimators=forests.wide, **deep)
        members.append(("extra trees, wide", wide))
    if effort.random_forest or backend is None:
        forest = ForestRanker("random", n_estimators=forests.first, **drawn)
        members.append(("random forest", forest))
    return members + others


def auto_folds(quality: str, n_rows: int) -> int:
    """Return how many folds a quality makes of so many rows."""
    folds = EFFORTS[quality].folds
    return max(folds, _FOLDS_OF_FEW) if n_rows < _FEW_ROWS else folds
