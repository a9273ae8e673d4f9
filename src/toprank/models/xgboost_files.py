"""Whether trees in a model file are as XGBoost writes them, in UBJSON; see `tree_files`."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import AnyArray, JsonObject
from toprank.models.columns import are_words
from toprank.models.errors import ModelError
from toprank.models.tree_files import is_tree

_UBJSON_TYPES = {
    b"d": ">f4",
    b"D": ">f8",
    b"i": "i1",
    b"U": "u1",
    b"I": ">i2",
    b"l": ">i4",
    b"L": ">i8",
}
_OBJECTIVES = {"binary:logistic", "reg:squarederror"}
_SETTING = re.compile(r"\[?-?[\d.]{1,30}(E-?\d{1,3})?\]?")
_OF_NODES = (
    *("base_weights", "default_left", "left_children", "loss_changes", "parents"),
    *("right_children", "split_conditions", "split_indices", "split_type", "sum_hessian"),
)
_NO_PARENT = 2**31 - 1
_MOST_CATEGORIES = 1 << 24
_MOST_NESTED = 20  # objects in objects


class _UbjsonReader:
    """Reads the part of UBJSON that XGBoost writes."""

    def __init__(self, data: bytes):
        self.data, self.place = data, 0

    def take(self, size: int) -> bytes:
        found = self.data[self.place : self.place + size]
        if size < 0 or len(found) < size:
            raise ValueError("it ends too early")
        self.place += size
        return found

    def value(self, depth: int = 0) -> object:
        if depth > _MOST_NESTED:
            raise ValueError("it is too deep")
        sign = self.take(1)
        if sign == b"{":
            return self._object(depth)
        if sign == b"[":
            return self._array(depth)
        if sign == b"S":
            return self.take(self._count()).decode()
        if sign in b"TFZ":
            return {b"T": True, b"F": False, b"Z": None}[sign]
        return self._numbers(sign, 1)[0].item()

    def _count(self) -> int:
        if self.take(1) != b"L":
            raise ValueError("a length is not a number of eight bytes")
        return int(struct.unpack(">q", self.take(8))[0])

    def _object(self, depth: int) -> dict[str, object]:
        found: JsonObject = {}
        while self.data[self.place : self.place + 1] != b"}":
            name = self.take(self._count()).decode()
            if name in found:
                raise ValueError(f"{name!r} occurs twice")
            found[name] = self.value(depth + 1)
        self.take(1)
        return found

    def _array(self, depth: int) -> AnyArray | list[object]:
        sign = self.take(1)
        if sign == b"$":
            kind = self.take(1)
            if self.take(1) != b"#":
                raise ValueError("an array has no length")
            return self._numbers(kind, self._count())
        if sign != b"#":
            raise ValueError("an array has no length")
        count = self._count()
        if count > len(self.data):
            raise ValueError("an array is longer than the file")
        return [self.value(depth + 1) for _ in range(count)]

    def _numbers(self, kind: bytes, count: int) -> AnyArray:
        if kind not in _UBJSON_TYPES:
            raise ValueError(f"{kind!r} is not a type")
        form = np.dtype(_UBJSON_TYPES[kind])
        return np.frombuffer(self.take(count * form.itemsize), form)


def check_xgboost(data: bytes) -> None:
    """Raise ModelError unless bytes are trees as XGBoost writes them.

    Examples
    --------
    >>> check_xgboost(b"{}")
    Traceback (most recent call last):
    toprank.models.errors.ModelError: The trees in the file are damaged (KeyError: 'learner').
    """
    try:
        reader = _UbjsonReader(data)
        found = reader.value()
        _check_that(reader.place == len(data), "something follows them")
        if not isinstance(found, dict):
            raise TypeError("they are not a collection of named parts")
        _check_learner(found["learner"])
    except ModelError:
        raise
    except (AttributeError, KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise ModelError(
            f"The trees in the file are damaged ({type(error).__name__}: {error})."
        ) from error


def _check_that(condition: object, why: str) -> None:
    if not condition:
        raise ModelError(f"The trees in the file are damaged: {why}.")


def _check_learner(learner: JsonObject) -> None:
    facts, booster = learner["learner_model_param"], learner["gradient_booster"]
    _check_that(learner["objective"]["name"] in _OBJECTIVES, "their objective is not known")
    _check_that(booster["name"] == "gbtree", "they are not plain ones")
    _check_that(
        all(_SETTING.fullmatch(value) for value in facts.values()), "a setting is not a number"
    )
    _check_that(facts["num_class"] == "0" and facts.get("num_target", "1") == "1", "many targets")
    width = int(facts["num_feature"])
    for part in ("feature_names", "feature_types"):
        words = learner.get(part, [])
        _check_that(
            len(words) in (0, width) and are_words(words), f"{part!r} are not of the columns"
        )
    _check_that(are_words(learner["attributes"].values()), "an attribute is not text")
    model = booster["model"]
    trees, count = model["trees"], len(model["trees"])
    _check_that(
        model["gbtree_model_param"] == {"num_parallel_tree": "1", "num_trees": str(count)}
        and list(model["iteration_indptr"]) == list(range(count + 1))
        and list(model["tree_info"]) == [0] * count
        and not any(len(part) for part in model.get("cats", {}).values()),
        "their list is not of these trees",
    )
    for place, tree in enumerate(trees):
        fault = _find_xgboost_fault(tree, place, width)
        _check_that(not fault, f"tree {place} is not a valid tree: {fault}")


def _find_xgboost_fault(tree: JsonObject, place: int, width: int) -> str:
    """What is wrong with a tree, as the end of a sentence; empty if nothing is."""
    facts = tree["tree_param"]
    nodes = int(facts["num_nodes"])
    columns = {name: np.asarray(tree[name]) for name in _OF_NODES}
    wrong = [name for name, values in columns.items() if values.shape != (nodes,)]
    if wrong:
        return f"{wrong[0]!r} does not have one entry per node"
    left, right = (columns[name].astype(np.int64) for name in ("left_children", "right_children"))
    if not is_tree(left, right):
        return "a node has no parent, several, or itself below it"
    splits, above = left >= 0, np.full(nodes, _NO_PARENT)
    above[left[splits]] = above[right[splits]] = np.flatnonzero(splits)
    features, cuts = columns["split_indices"].astype(np.int64), columns["split_conditions"]
    by_category = splits & (columns["split_type"] != 0)
    sound = {
        "its number is not its place": tree["id"] == place,
        "its settings are not those of a plain tree": (
            (facts["num_feature"], facts["num_deleted"]) == (str(width), "0")
            and facts["size_leaf_vector"] in ("0", "1")
        ),
        "a node names another parent": np.array_equal(columns["parents"].astype(np.int64), above),
        "a split names a column that does not exist": np.all((features >= 0) & (features < width)),
        "a threshold is no finite number": np.all(np.isfinite(cuts) | by_category),
        "a leaf is no finite number": np.all(np.isfinite(columns["base_weights"])),
        "the categories of its splits do not agree": _are_categories(
            tree, np.flatnonzero(by_category)
        ),
    }
    return next((fault for fault, holds in sound.items() if not holds), "")


def _are_categories(tree: Mapping[str, object], nodes: NDArray[np.int64]) -> bool:
    """Whether each split by categories has its own, one after the other."""
    values, of_nodes, starts, sizes = (
        np.asarray(tree[name]).astype(np.int64)
        for name in ("categories", "categories_nodes", "categories_segments", "categories_sizes")
    )
    return bool(
        np.array_equal(of_nodes, nodes)
        and len(starts) == len(sizes) == len(nodes)
        and np.all(sizes > 0)
        and np.array_equal(starts, np.cumsum(sizes) - sizes)
        and sizes.sum() == len(values)
        and np.all((values >= 0) & (values < _MOST_CATEGORIES))
    )
