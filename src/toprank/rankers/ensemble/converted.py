"""Members whose trees another library grew, kept as plain arrays."""

from __future__ import annotations

import json
import signal
import tempfile
from abc import abstractmethod
from copy import copy
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from toprank._arrays import TableLike
from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.blocks.threads import go_on, is_stopped
from toprank.pairs import Rows, check_rows, check_table
from toprank.rankers.common import Probabilities, fits
from toprank.rankers.ensemble.flat_forest import FlatForest, mean_values
from toprank.rankers.trees.columns import Categories

if TYPE_CHECKING:
    from sklearn.tree._tree import Tree
    from sklearn.utils import Tags

    from toprank._arrays import JsonObject, RandomState

#: The largest number that forests take.
_LARGEST = float(np.finfo(np.float32).max) / 2
#: A share of positives is at least this part of the training share: zero has no logarithm.
_LEAST_PART = 0.1
#: Rows times trees that are grown between two looks at whether anyone waits for them.
_ROWS_AT_ONCE = 200_000


class ConvertedTrees(Probabilities, ClassifierMixin, BaseEstimator):
    """Base of rankers whose trees are grown elsewhere: categories as codes, gaps to the left.

    A subclass grows the trees in ``_grow``.
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    categorical_features: object
    random_state: RandomState
    n_jobs: int | None
    _slope = 1.0

    @abstractmethod
    def _grow(self, rows: Rows, seed: int) -> tuple[FlatForest, float]:
        """Return the trees, and what the score starts from."""

    @fits
    def fit(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the trees; a weight is a repetition count."""
        rows, classes = check_rows(self, X, y, sample_weight, missing=True, frames=True)
        rows = rows.present()
        self.classes_ = classes
        self._columns = Categories.learn(rows.X, self.categorical_features)
        numbers = np.clip(self._columns.numbers(rows.X), -_LARGEST, _LARGEST)
        self._share = float(np.average(rows.y, weights=rows.weight))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._forest, self._base = self._grow(Rows(numbers, rows.y, rows.weight), seed)
        return self

    def _sums(self, X: TableLike) -> FloatArray:
        """The sum over the trees, for each row."""
        return self._forest.sums(self._numbers(X)) + self._base

    def _numbers(self, X: object) -> FloatArray:
        check_is_fitted(self)
        table = check_table(X, estimator=self, reset=False, missing=True, frames=True)
        return np.clip(self._columns.numbers(table), -_LARGEST, _LARGEST)

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return the log-odds of each row."""
        return self._sums(X)

    def explain(self, X: TableLike) -> FloatArray:
        """Return what each column adds to the score on the row's way down; the last is the rest.

        A split adds the mean of the training rows below it less that of the rows that reached it.
        Each row sums to its score.
        """
        parts = self._forest.contributions(self._numbers(X))
        parts[:, -1] += self._base
        return parts

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        return tags


class ForestRanker(ConvertedTrees):
    """Extra trees or a random forest of scikit-learn; the score is the log-odds of their mean.

    Parameters
    ----------
    kind : {"extra", "random"}, default="extra"
        Thresholds drawn at random, or the best ones on rows drawn with replacement.
    n_estimators : int, default=100
    min_samples_leaf : int, default=2
    max_features : "sqrt" or int, default="sqrt"
        Columns that are tried at every split, drawn at random.
    max_samples : int, default=50_000
        Rows that a tree sees, at most.
    last_estimators : int, optional
        How many trees an ensemble grows instead of ``n_estimators`` when it fits this member to
        all rows, after the folds.
    shrinkage : float, default=0.0
        Rows by which a node's share of positives is drawn to its parent's: the step from a node of
        n rows to its child counts n / (n + shrinkage) times. Zero leaves the shares as they are.
    smoothings : tuple of float, default=()
        Shrinkages that an ensemble tries on the same trees. The one with the least log loss out of
        fold becomes a further member.
    categorical_features, random_state, n_jobs
        As in `PushTrees`.

    Examples
    --------
    >>> from toprank.datasets import load_wdbc
    >>> from toprank.rankers.ensemble.converted import ForestRanker
    >>> X, y = load_wdbc(return_X_y=True)
    >>> forest = ForestRanker(n_estimators=10, random_state=0).fit(X, y)
    >>> bool(abs(forest.explain(X).sum(axis=1) - forest.decision_function(X)).max() < 1e-9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **ConvertedTrees._parameter_constraints,
        "kind": [StrOptions({"extra", "random"})],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
        "max_features": [StrOptions({"sqrt"}), Interval(Integral, 1, None, closed="left")],
        "max_samples": [Interval(Integral, 1, None, closed="left")],
        "last_estimators": [Interval(Integral, 1, None, closed="left"), None],
        "shrinkage": [Interval(Real, 0, None, closed="left")],
        "smoothings": [tuple],
    }
    max_features: str | int = "sqrt"  # files of earlier versions lack it
    last_estimators: int | None = None  # and this
    shrinkage: float = 0.0  # and these
    smoothings: tuple[float, ...] = ()

    def __init__(
        self,
        kind: str = "extra",
        *,
        n_estimators: int = 100,
        min_samples_leaf: int = 2,
        max_features: str | int = "sqrt",
        max_samples: int = 50_000,
        last_estimators: int | None = None,
        shrinkage: float = 0.0,
        smoothings: tuple[float, ...] = (),
        categorical_features: object = "from_dtype",
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ):
        self.kind = kind
        self.n_estimators = n_estimators
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.max_samples = max_samples
        self.last_estimators = last_estimators
        self.shrinkage = shrinkage
        self.smoothings = smoothings
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _grow(self, rows: Rows, seed: int) -> tuple[FlatForest, float]:
        # here, because scores need none of it
        from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

        # below every number, so that a gap goes to the left in every split
        low = np.fmin.reduce(rows.X, axis=0, initial=0.0)
        filled = np.where(np.isnan(rows.X), 2.0 * low - 1.0, rows.X).astype(np.float32)
        many = len(rows) > self.max_samples
        grows = ExtraTreesClassifier if self.kind == "extra" else RandomForestClassifier
        forest = grows(
            self.n_estimators,
            min_samples_leaf=self.min_samples_leaf,
            max_features=self.max_features,
            bootstrap=many or self.kind == "random",
            max_samples=self.max_samples if many else None,
            random_state=seed,
            n_jobs=self.n_jobs,
            warm_start=True,
        )
        at_once = max(1, _ROWS_AT_ONCE // len(rows)) * effective_n_jobs(self.n_jobs)
        for n_trees in (*range(at_once, self.n_estimators, at_once), self.n_estimators):
            go_on()
            forest.set_params(n_estimators=n_trees).fit(filled, rows.y, rows.weight)
        grown = [tree.tree_ for tree in forest.estimators_]
        made = FlatForest.join([_read_tree(tree, self.n_estimators) for tree in grown])
        # rows, not their weights, which need not be counts
        n_rows = np.concatenate([tree.n_node_samples for tree in grown])
        if self.smoothings:
            self._smoothed = made.shrink(n_rows, self.smoothings)
        if self.shrinkage > 0:
            made = replace(made, value=made.shrink(n_rows, [self.shrinkage])[:, 0])
        return made, 0.0

    def separate_smoothings(self) -> list[Self]:
        """Return this forest, and one more per smoothing: the same trees with smoothed shares."""
        forests = [copy(self) for _ in range(1 + len(self.smoothings))]
        for j, forest in enumerate(forests):
            if j > 0:
                forest._forest = replace(self._forest, value=self._smoothed[:, j - 1].copy())
                forest.shrinkage = self.smoothings[j - 1]
            forest.smoothings = ()
            del forest._smoothed
        return forests

    def smoothed_scores(self, X: TableLike) -> FloatArray:
        """Return the scores of the rows: a column without smoothing, then one per smoothing.

        For the fits to the folds alone: the smoothed shares of the nodes are no part of a file.
        """
        values = np.column_stack([self._forest.value, self._smoothed])
        return self._log_odds(np.clip(self._forest.sums_of(self._numbers(X), values), 0.0, 1.0))

    def _log_odds(self, share: FloatArray) -> FloatArray:
        least = _LEAST_PART * min(self._share, 1.0 - self._share)
        return np.log(share + least) - np.log(1.0 - share + least)

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return the log-odds of the mean share of positives in each row's leaves."""
        return self._log_odds(np.clip(self._sums(X), 0.0, 1.0))

    def predict_proba(self, X: TableLike) -> FloatArray:
        """Return the probabilities of the two classes that the score is the log-odds of.

        The mean shares of the classes in each row's leaves, each with a tenth of the rarer class's
        share of the training rows added, so that none is 0 or 1.
        """
        odds = self.decision_function(X)
        return np.column_stack([expit(-odds), expit(odds)])

    def explain(self, X: TableLike) -> FloatArray:
        """Return what each column adds to the score; the last is the rest.

        What the splits add to the share, stretched row by row so that they add up to the log-odds.
        """
        parts = super().explain(X)
        share = np.clip(parts.sum(axis=1), 0.0, 1.0)
        mean = np.clip(parts[:, -1], 0.0, 1.0)
        apart = share - mean
        near = np.abs(apart) < 1e-9
        slope = 1.0 / ((mean + 1e-12) * (1.0 - mean + 1e-12))
        rise = self._log_odds(share) - self._log_odds(mean)
        stretch = np.where(near, slope, rise / np.where(near, 1.0, apart))
        parts[:, :-1] *= stretch[:, None]
        parts[:, -1] = self._log_odds(share) - parts[:, :-1].sum(axis=1)
        return parts


def _read_tree(tree: Tree, n_trees: int) -> FlatForest:
    """A tree of scikit-learn; its leaves hold shares of positives."""
    counts = np.asarray(tree.value[:, 0, :], dtype=np.float64)
    share = counts[:, 1] / counts.sum(axis=1)
    return FlatForest(
        np.zeros(1, dtype=np.int64),
        tree.children_left,
        tree.children_right,
        np.maximum(tree.feature, 0),
        tree.threshold,
        share / n_trees,
    )


class CatBoostRanker(ConvertedTrees):
    """CatBoost's classifier with the log loss; the score is the log-odds.

    Categories are codes to it, not its own statistics of them, so that its trees are plain ones.

    Parameters
    ----------
    n_estimators : int, default=300
    learning_rate : float, optional
        By default CatBoost's own choice, from the number of rows and trees.
    depth : int, default=6
    categorical_features, random_state, n_jobs
        As in `PushTrees`.
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **ConvertedTrees._parameter_constraints,
        "learning_rate": [Interval(Real, 0, None, closed="neither"), None],
        "depth": [Interval(Integral, 1, 16, closed="both")],
    }

    def __init__(
        self,
        n_estimators: int = 300,
        *,
        learning_rate: float | None = None,
        depth: int = 6,
        categorical_features: object = "from_dtype",
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ):
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.depth = depth
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _grow(self, rows: Rows, seed: int) -> tuple[FlatForest, float]:
        catboost = require("catboost", "catboost")
        if hasattr(signal, "siginterrupt"):  # its import makes waiting threads deaf to Ctrl-C
            signal.siginterrupt(signal.SIGINT, True)
        model = catboost.CatBoostClassifier(
            n_estimators=self.n_estimators,
            learning_rate=self.learning_rate,
            depth=self.depth,
            nan_mode="Min",
            random_seed=seed % (2**31),
            thread_count=self.n_jobs or 1,
            verbose=0,
            allow_writing_files=False,
        )
        labels, watch = rows.y.astype(np.int64), [_StopsWithItsThread()]
        model.fit(rows.X, labels, sample_weight=rows.weight, callbacks=watch)
        go_on()
        return _read_catboost(model)


class _StopsWithItsThread:
    """A callback of CatBoost that ends the rounds where nobody waits for them any more."""

    def after_iteration(self, info: object) -> bool:
        return not is_stopped()


def _read_catboost(model: Any) -> tuple[FlatForest, float]:
    """The trees of a fitted CatBoost model of numbers, and the score they start from."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        model.save_model(str(path), format="json")
        facts = json.loads(path.read_text(encoding="utf-8"))
    features = facts["features_info"]["float_features"]
    column = {one["feature_index"]: one["flat_feature_index"] for one in features}
    scale, bias = facts["scale_and_bias"]
    trees = [_read_oblivious(tree, column, float(scale)) for tree in facts["oblivious_trees"]]
    return FlatForest.join(trees), float(np.sum(bias))


def _read_oblivious(tree: JsonObject, column: dict[int, int], scale: float) -> FlatForest:
    """A full tree whose levels ask one question each: node k has the children 2k + 1 and 2k + 2.

    Bit i of a leaf's number says whether the row lies above the border of the i-th split; the
    last split is asked first here, so that leaves come in the order of their numbers.
    """
    splits = (tree["splits"] or [])[::-1]
    n_inner, n_leaves = 2 ** len(splits) - 1, 2 ** len(splits)
    feature, threshold = np.zeros(n_inner + n_leaves, dtype=np.int64), np.zeros(n_inner + n_leaves)
    for level, split in enumerate(splits):
        nodes = slice(2**level - 1, 2 ** (level + 1) - 1)
        feature[nodes] = column[split["float_feature_index"]]
        threshold[nodes] = split["border"]
    inner, ends = np.arange(n_inner), np.full(n_leaves, -1)
    left, right = (np.concatenate([2 * inner + side, ends]) for side in (1, 2))
    value = np.concatenate([np.zeros(n_inner), scale * np.asarray(tree["leaf_values"])])
    count = np.concatenate([np.zeros(n_inner), np.asarray(tree["leaf_weights"], dtype=float)])
    value = mean_values(left, right, value, count)
    return FlatForest(np.zeros(1, dtype=np.int64), left, right, feature, threshold, value)
