"""Trees in a model file, each damaged in one place: every check says what it found."""

import struct

import numpy as np
import pytest

from toprank.models import ModelError
from toprank.models.tree_files import check_lightgbm
from toprank.models.xgboost_files import _find_xgboost_fault, check_xgboost


@pytest.fixture(scope="module")
def text():
    """Two trees of three leaves, as LightGBM writes them: of a number, and of a category."""
    lightgbm = pytest.importorskip("lightgbm", reason="the trees are LightGBM's")
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), rng.integers(0, 6, 200)])
    y = X[:, 0] + 3 * np.isin(X[:, 1], [1, 4]) > 1
    settings = {"objective": "binary", "num_leaves": 3, "min_data_in_leaf": 5, "verbose": -1}
    settings |= {"min_data_per_group": 5, "cat_smooth": 1.0, "num_threads": 1}
    data = lightgbm.Dataset(X, y, categorical_feature=[1])
    return lightgbm.train(settings, data, 2).model_to_string()


def in_first_tree(text, old, new):
    """The text with words of its first tree replaced, and the sizes in its header mended."""
    head, _, rest = text.partition("\n\n")
    size = int(head.partition("tree_sizes=")[2].split()[0])
    assert old in rest[:size]
    tree = rest[:size].replace(old, new, 1)
    return f"{head.replace(f'tree_sizes={size}', f'tree_sizes={len(tree)}')}\n\n{tree}{rest[size:]}"


def line_of(text, name):
    """The line of the first tree that begins with a name."""
    return next(line for line in text.splitlines() if line.startswith(f"{name}="))


def test_the_trees_are_sound_as_they_are(text):
    assert line_of(text, "num_cat") == "num_cat=1"
    check_lightgbm(text)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("tree\n", "wood\n", "the text does not begin as LightGBM's do"),
        ("version=v4\n", "", "'version' is lacking"),
        ("num_class=1", "num_class=2", "'num_class' is '2'"),
        ("label_index=0", "label_index=0\nlabel_name=y", "'label_name' is not known"),
        ("max_feature_idx=1", "max_feature_idx=2", "read other columns than the model has"),
        ("end of trees", "END OF TREES", "other tree sizes than the trees have"),
    ],
)
def test_a_header_that_is_damaged_is_refused(text, old, new, said):
    assert old in text
    with pytest.raises(ModelError, match=f"are damaged: .*{said}"):
        check_lightgbm(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("name", "new", "said"),
    [
        ("num_leaves", "num_leaves=0", "its leaves are none"),
        ("is_linear", "is_linear=1", "its leaves are none, or not plain numbers"),
        ("threshold", "limit=1 2", "its lines are not those that LightGBM writes"),
        ("num_cat", "num_cat=0", "'num_cat' does not agree with its categories"),
        ("leaf_value", "leaf_value=0.1 nan 0.2", r"\(leaf_value holds 'nan'\)"),
        ("leaf_value", "leaf_value=0.1 0.2", "'leaf_value' holds too few"),
        ("leaf_value", "leaf_value=0.1 0.2 1e999", "'leaf_value' holds .* infinite numbers"),
        ("num_leaves", "num_leaves=", r"\(index 0 is out of bounds"),
        ("split_feature", "split_feature=0 2", "a split names a column"),
        ("decision_type", "decision_type=1 99", "a split names a column or categories"),
        ("threshold", "threshold=7 7", "a split names a column or categories"),
        ("cat_boundaries", "cat_boundaries=0 5", "a split names a column or categories"),
        ("left_child", "left_child=0 -2", "a node has no parent, several, or itself below it"),
    ],
)
def test_a_tree_that_is_damaged_is_refused(text, name, new, said):
    with pytest.raises(ModelError, match=f"tree 0 is not a valid tree.*{said}"):
        check_lightgbm(in_first_tree(text, line_of(text, name), new))


def test_a_tree_without_one_of_its_lines_is_refused(text):
    with pytest.raises(ModelError, match="tree 0 is not a valid tree: 'threshold' is lacking"):
        check_lightgbm(in_first_tree(text, f"{line_of(text, 'threshold')}\n", ""))


def length(n):
    return b"L" + struct.pack(">q", n)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "it ends too early"),
        (b"[$d#" + length(-1), "it ends too early"),
        (b"{i", "a length is not a number of eight bytes"),
        (b"[$d", "it ends too early"),
        (b"[$dx", "an array has no length"),
        (b"[x", "an array has no length"),
        (b"[#" + length(99), "an array is longer than the file"),
        (b"[$q#" + length(1), "b'q' is not a type"),
    ],
)
def test_bytes_that_are_not_as_xgboost_writes_them_are_refused(data, said):
    with pytest.raises(ModelError, match=f"are damaged .ValueError: {said}"):
        check_xgboost(data)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"base_weights": [0.0, 0.0]}, "'base_weights' does not have one entry per node"),
        ({"left_children": [0, -1, -1]}, "a node has no parent, several, or itself below it"),
        ({"parents": [5, 0, 0]}, "a node names another parent"),
    ],
)
def test_a_tree_of_xgboost_that_is_damaged_is_named(change, said):
    tree = {
        "id": 0, "tree_param": {"num_nodes": "3", "num_feature": "1", "num_deleted": "0",
                                "size_leaf_vector": "1"},
        "base_weights": [0.0, 1.0, 2.0], "default_left": [0, 0, 0], "loss_changes": [1.0, 0, 0],
        "left_children": [1, -1, -1], "right_children": [2, -1, -1], "parents": [2**31 - 1, 0, 0],
        "split_conditions": [0.5, 1.0, 2.0], "split_indices": [0, 0, 0], "split_type": [0, 0, 0],
        "sum_hessian": [2.0, 1.0, 1.0], "categories": [], "categories_nodes": [],
        "categories_segments": [], "categories_sizes": [],
    }  # fmt: skip
    assert _find_xgboost_fault({**tree, **change}, 0, 1) == said
