"""The trees of LightGBM and XGBoost as a ``TreeEnsemble`` of ONNX."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from toprank._numerics import FloatArray
from toprank.interop.tree_forms import AT_MOST, MEMBER, Leaf, Split, library_trees

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from toprank.interop.onnx_nodes import Nodes


@dataclass
class _Ensemble:
    """The arrays of a TreeEnsemble, filled tree by tree."""

    roots: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    modes: list[int] = field(default_factory=list)
    splits: list[float] = field(default_factory=list)
    yes: list[int] = field(default_factory=list)
    yes_leaf: list[int] = field(default_factory=list)
    no: list[int] = field(default_factory=list)
    no_leaf: list[int] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    members: list[float] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)

    def plant(self, tree: Split | Leaf) -> None:
        if isinstance(tree, Leaf):  # a root must ask something: both answers lead to the leaf
            tree = Split(0, AT_MOST, 0.0, (), False, tree, tree)
        self.roots.append(self._node(tree))

    def _node(self, split: Split) -> int:
        place = len(self.columns)
        self.columns.append(split.column)
        self.modes.append(split.mode)
        self.splits.append(split.threshold)
        self.missing.append(int(split.if_missing))
        for array in (self.yes, self.yes_leaf, self.no, self.no_leaf):
            array.append(0)
        if split.mode == MEMBER:
            self.members += [*split.members, float("nan")]
        self.yes[place], self.yes_leaf[place] = self._child(split.yes)
        self.no[place], self.no_leaf[place] = self._child(split.no)
        return place

    def _child(self, child: Split | Leaf) -> tuple[int, int]:
        if isinstance(child, Split):
            return self._node(child), 0
        self.weights.append(child.value)
        return len(self.weights) - 1, 1


def add_trees(graph: Nodes, ranker: BaseEstimator, X: str) -> str:
    """Append the trees of a fitted `PushTrees` and return the name of their scores, doubles."""
    exact = ranker._trees.library == "lightgbm"
    categories = ranker._columns.categories
    ensemble = _Ensemble()
    for tree in library_trees(ranker):
        ensemble.plant(_in_raw_categories(tree, categories))
    if not exact:
        X = _known_categories(graph, X, categories, int(ranker.n_features_in_))
    X = _no_missing_categories(graph, X, categories, int(ranker.n_features_in_))
    if not exact:
        X = graph.add("Cast", X, to=graph.float)
    scores = _add_ensemble(graph, ensemble, X, np.float64 if exact else np.float32)
    if exact:
        return scores
    base = graph.constant(np.array([float(ranker._trees._base)]))
    return str(graph.add("Add", graph.add("Cast", scores, to=graph.double), base))


def add_plain_trees(graph: Nodes, trees: Iterable[Split | Leaf], X: str) -> str:
    """Append trees over numbers and return the name of their sums, doubles."""
    ensemble = _Ensemble()
    for tree in trees:
        ensemble.plant(tree)
    return _add_ensemble(graph, ensemble, X, np.float64)


def _add_ensemble(graph: Nodes, ensemble: _Ensemble, X: str, kind: type[np.floating]) -> str:
    tensor = graph.onnx.numpy_helper.from_array
    members = {}
    if ensemble.members:
        members["membership_values"] = tensor(np.array(ensemble.members, dtype=kind))
    return str(
        graph.add(
            "TreeEnsemble",
            X,
            domain="ai.onnx.ml",
            n_targets=1,
            aggregate_function=1,
            post_transform=0,
            tree_roots=ensemble.roots,
            nodes_featureids=ensemble.columns,
            nodes_modes=tensor(np.array(ensemble.modes, dtype=np.uint8)),
            nodes_splits=tensor(np.array(ensemble.splits, dtype=kind)),
            nodes_truenodeids=ensemble.yes,
            nodes_trueleafs=ensemble.yes_leaf,
            nodes_falsenodeids=ensemble.no,
            nodes_falseleafs=ensemble.no_leaf,
            nodes_missing_value_tracks_true=ensemble.missing,
            leaf_targetids=[0] * len(ensemble.weights),
            leaf_weights=tensor(np.array(ensemble.weights, dtype=kind)),
            **members,
        )
    )


def _in_raw_categories(tree: Split | Leaf, categories: dict[int, np.ndarray]) -> Split | Leaf:
    """Name categories as the table does, not by the codes that the library saw."""
    if isinstance(tree, Leaf):
        return tree
    yes = _in_raw_categories(tree.yes, categories)
    no = _in_raw_categories(tree.no, categories)
    if tree.mode != MEMBER:
        return replace(tree, yes=yes, no=no)
    known = category_numbers(categories[tree.column], tree.column)
    places = {int(code) for code in tree.members}
    if tree.if_missing:  # ask for all the others: a missing value is never among them
        places, yes, no = set(range(len(known))) - places, no, yes
    members = tuple(float(known[c]) for c in sorted(places) if c < len(known))
    return replace(tree, members=members, if_missing=False, yes=yes, no=no)


def category_numbers(categories: np.ndarray, column: int) -> FloatArray:
    """Return the categories of a column as numbers, which the ONNX form takes alone."""
    try:
        return np.asarray(categories, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Column {column} holds categories that are words, such as {str(categories[0])!r}, and "
            "the ONNX form of a ranker takes a matrix of numbers. Fit a TableRanker, or fit_table "
            "with model='trees': its to_onnx takes the columns by name, words included; or code "
            "the words as numbers before fit."
        ) from error


def _no_missing_categories(graph: Nodes, X: str, categories: dict[int, np.ndarray], d: int) -> str:
    """A number that is no category where one is missing: ONNX Runtime takes NaN for a member."""
    if not categories:
        return X
    here = np.zeros((1, d), dtype=bool)
    here[0, list(categories)] = True
    lowest = min(float(np.min(known, initial=0.0)) for known in categories.values())
    lost = graph.add("And", graph.add("IsNaN", X), graph.constant(here))
    return str(graph.add("Where", lost, graph.constant(np.array(lowest - 1.0)), X))


def _known_categories(graph: Nodes, X: str, categories: dict[int, np.ndarray], d: int) -> str:
    """A category never seen in training is a missing value."""
    for column, known in categories.items():
        x = graph.add("Gather", X, graph.constant(np.array([column], dtype=np.int64)), axis=1)
        same = graph.add("Equal", x, graph.constant(np.asarray(known, dtype=np.float64)[None, :]))
        counts = graph.add("Cast", same, to=graph.double)
        found = graph.add("ReduceMax", counts, graph.constant(np.array([1], dtype=np.int64)))
        here = np.zeros((1, d))
        here[0, column] = 1.0
        lost = graph.add("Sub", graph.constant(np.array(1.0)), found)
        lost = graph.add("Mul", lost, graph.constant(here))
        hit = graph.add("Greater", lost, graph.constant(np.array(0.5)))
        X = graph.add("Where", hit, graph.constant(np.array(np.nan)), X)
    return X
