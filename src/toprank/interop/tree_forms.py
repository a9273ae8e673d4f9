"""The trees of every library as the same questions, for writing them in other languages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import BaseEstimator

    from toprank._arrays import JsonObject

#: How a split compares, by the numbers of ONNX's TreeEnsemble.
AT_MOST, LESS, MEMBER = 0, 1, 6


@dataclass(frozen=True)
class Leaf:
    """The end of a path, and what it adds to the score."""

    value: float


@dataclass(frozen=True)
class Split:
    """A question about one column; where it is missing, the answer is `if_missing`.

    Attributes
    ----------
    column : int
    mode : int
        How the value is compared: at most or less than a threshold, or a member of a set.
    threshold : float
    members : tuple of float
    if_missing : bool
    yes, no : Split or Leaf
    """

    column: int
    mode: int
    threshold: float
    members: tuple[float, ...]
    if_missing: bool
    yes: Split | Leaf
    no: Split | Leaf


class Forest(Protocol):
    """Trees that lie in arrays, a place per node; a leaf has no left child."""

    roots: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray


def library_trees(ranker: BaseEstimator) -> Iterator[Split | Leaf]:
    """Yield the trees of a fitted `PushTrees`; categories are codes, their places in training."""
    return (_of_lightgbm if ranker._trees.library == "lightgbm" else _of_xgboost)(ranker)


def forest_trees(forest: Forest) -> Iterator[Split | Leaf]:
    """Yield the trees of a `FlatForest`."""
    for root in forest.roots.tolist():
        yield _forest_node(forest, root)


def _forest_node(forest: Forest, place: int) -> Split | Leaf:
    left, right = int(forest.left[place]), int(forest.right[place])
    if left < 0:
        return Leaf(float(forest.value[place]))
    column, threshold = int(forest.feature[place]), float(forest.threshold[place])
    yes, no = _forest_node(forest, left), _forest_node(forest, right)
    return Split(column, AT_MOST, threshold, (), True, yes, no)


def _of_lightgbm(ranker: BaseEstimator) -> Iterator[Split | Leaf]:
    dump = ranker.booster_.dump_model(num_iteration=ranker._trees.n_rounds)
    for tree in dump["tree_info"]:
        yield _lightgbm_node(tree["tree_structure"])


def _lightgbm_node(node: JsonObject) -> Split | Leaf:
    if "split_feature" not in node:
        return Leaf(float(node["leaf_value"]))
    yes, no = _lightgbm_node(node["left_child"]), _lightgbm_node(node["right_child"])
    column = int(node["split_feature"])
    if node["decision_type"] == "==":
        members = tuple(float(code) for code in str(node["threshold"]).split("||"))
        return Split(column, MEMBER, 0.0, members, False, yes, no)
    threshold = float(node["threshold"])
    if node["missing_type"] == "Zero":
        raise ValueError("LightGBM's zero_as_missing cannot be written in another language.")
    # a column without missing values in training reads a later one as zero
    missing = node["default_left"] if node["missing_type"] == "NaN" else threshold >= 0
    return Split(column, AT_MOST, threshold, (), bool(missing), yes, no)


def _of_xgboost(ranker: BaseEstimator) -> Iterator[Split | Leaf]:
    booster = ranker.booster_[: ranker._trees.n_rounds]
    model = json.loads(bytes(booster.save_raw("json")))
    for tree in model["learner"]["gradient_booster"]["model"]["trees"]:
        yield _xgboost_node(tree, 0, _category_sets(tree))


def _category_sets(tree: JsonObject) -> dict[int, Sequence[int]]:
    """The categories that a node sends to the right."""
    flat = tree["categories"]
    rows = zip(
        tree["categories_nodes"],
        tree["categories_segments"],
        tree["categories_sizes"],
        strict=True,
    )
    return {node: flat[start : start + size] for node, start, size in rows}


def _xgboost_node(tree: JsonObject, place: int, sets: dict[int, Sequence[int]]) -> Split | Leaf:
    left, right = tree["left_children"][place], tree["right_children"][place]
    condition = float(tree["split_conditions"][place])
    if left < 0:
        return Leaf(condition)
    below, above = _xgboost_node(tree, left, sets), _xgboost_node(tree, right, sets)
    column, to_left = int(tree["split_indices"][place]), bool(tree["default_left"][place])
    if tree["split_type"][place] == 1:
        members = tuple(float(code) for code in sets[place])
        return Split(column, MEMBER, 0.0, members, not to_left, above, below)
    return Split(column, LESS, condition, (), to_left, below, above)
