"""Whether trees in a model file are as LightGBM writes them; XGBoost's are in `xgboost_files`.

The libraries' own readers were written for files that they wrote themselves: a number out of
place ends the process, or sends a prediction through memory that is not the model's. So every
tree is checked here before a library sees it.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import AnyArray
from toprank.models.errors import ModelError

#: Splits one below the other; explaining a score takes memory in the square of it.
DEEPEST = 4096


def is_tree(left: NDArray[np.int64], right: NDArray[np.int64]) -> bool:
    """Whether every node is reached once from the first, and none is too deep.

    Parameters
    ----------
    left, right : array of int
        The children of each node; -1 and -1 for a leaf.

    Examples
    --------
    >>> import numpy as np
    >>> is_tree(np.array([1, -1, -1]), np.array([2, -1, -1]))
    True
    >>> is_tree(np.array([1, 0, -1]), np.array([2, 2, -1]))  # goes round in a circle
    False
    """
    split = left >= 0
    below = np.sort(np.concatenate([left[split], right[split]]))
    if not np.array_equal(split, right >= 0) or not np.array_equal(below, np.arange(1, len(left))):
        return False
    # every node but the first has one parent, so only circles apart from the first are left
    seen, level, depth = 0, np.zeros(min(1, len(left)), dtype=np.int64), 0
    while len(level) and depth <= DEEPEST:
        seen, depth = seen + len(level), depth + 1
        inner = level[split[level]]
        level = np.concatenate([left[inner], right[inner]])
    return seen == len(left) > 0


_LIGHTGBM_HEAD = {
    "version": re.compile(r"v[34]", re.ASCII),
    "num_class": re.compile("1", re.ASCII),
    "num_tree_per_iteration": re.compile("1", re.ASCII),
    "label_index": re.compile("0", re.ASCII),
    "max_feature_idx": re.compile(r"\d{1,6}", re.ASCII),
    "objective": re.compile(r"custom|binary( sigmoid:[\d.e+-]{1,30})?", re.ASCII),
    "feature_names": re.compile(".*", re.ASCII),
    "monotone_constraints": re.compile(r"(-?[01]( -?[01])*)?", re.ASCII),
    "feature_infos": re.compile(".*", re.ASCII),
    "tree_sizes": re.compile(r"(\d{1,9}( \d{1,9})*)?", re.ASCII),
}
_OPTIONAL = {"objective", "monotone_constraints"}
_NUMBER = re.compile(r"-?\d{1,30}(\.\d{0,40})?(e[+-]?\d{1,3})?", re.ASCII)
#: A split of the missing values from all others asks whether a number is at most infinity.
_CUT = re.compile(rf"{_NUMBER.pattern}|inf", re.ASCII)
_WHOLE = re.compile(r"-?\d{1,10}", re.ASCII)
#: A line of such words.
_LINES = {
    form: re.compile(rf"(?:{form.pattern})(?: (?:{form.pattern}))*", re.ASCII)
    for form in (_NUMBER, _CUT, _WHOLE)
}
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")
#: The lines of a tree, in order: what they hold, and how many (of splits, of leaves, one, any).
_LIGHTGBM_TREE = {
    "num_leaves": (_WHOLE, "one"),
    "num_cat": (_WHOLE, "one"),
    "split_feature": (_WHOLE, "splits"),
    "split_gain": (_NUMBER, "splits"),
    "threshold": (_CUT, "splits"),
    "decision_type": (_WHOLE, "splits"),
    "left_child": (_WHOLE, "splits"),
    "right_child": (_WHOLE, "splits"),
    "leaf_value": (_NUMBER, "leaves"),
    "leaf_weight": (_NUMBER, "leaves"),
    "leaf_count": (_WHOLE, "leaves"),
    "internal_value": (_NUMBER, "splits"),
    "internal_weight": (_NUMBER, "splits"),
    "internal_count": (_WHOLE, "splits"),
    "cat_boundaries": (_WHOLE, "any"),
    "cat_threshold": (_WHOLE, "any"),
    "is_linear": (_WHOLE, "one"),
    "shrinkage": (_NUMBER, "one"),
}
_OF_CATEGORIES = {"cat_boundaries", "cat_threshold"}
#: What a tree of one leaf may leave out.
_LEAF_FACTS = {"leaf_weight", "leaf_count"}
_CATEGORICAL, _MOST_TYPE = 1, 11
Numbers = dict[str, NDArray[np.float64]]


def check_lightgbm(text: str) -> None:
    """Raise ModelError unless a text is trees as LightGBM writes them.

    Examples
    --------
    >>> check_lightgbm("tree")
    Traceback (most recent call last):
    toprank.models.errors.ModelError: The trees in the file are damaged: 'version' is lacking.
    """
    head, _, rest = text.partition("\n\n")
    facts = _read_head(head)
    width = int(facts["max_feature_idx"]) + 1
    names, infos = (facts[part].split(" ") for part in ("feature_names", "feature_infos"))
    if _CONTROL.search(text) or len(names) != width or len(infos) != width:
        raise _damage("the trees read other columns than the model has")
    sizes = [int(size) for size in facts["tree_sizes"].split()]
    data, start = rest.encode(), 0
    for place, size in enumerate(sizes):
        block = data[start : start + size].decode(errors="replace")
        _check_tree(place, block, width)
        start += size
    if not data[start:].startswith(b"end of trees\n"):
        raise _damage("the header gives other tree sizes than the trees have")


def _damage(why: str) -> ModelError:
    return ModelError(f"The trees in the file are damaged: {why}.")


def _read_head(head: str) -> dict[str, str]:
    first, *lines = head.split("\n")
    facts = _facts(lines)
    if first != "tree" or "" in facts:
        raise _damage("the text does not begin as LightGBM's do")
    for name, form in _LIGHTGBM_HEAD.items():
        if name not in facts and name not in _OPTIONAL:
            raise _damage(f"{name!r} is lacking")
        if not form.fullmatch(facts.get(name, "")) and name in facts:
            raise _damage(f"{name!r} is {facts[name][:40]!r}")
    strange = sorted(set(facts) - set(_LIGHTGBM_HEAD))
    if strange:
        raise _damage(f"{strange[0]!r} is not known")
    return facts


def _facts(lines: list[str]) -> dict[str, str]:
    """The lines by name; an empty name where one has no equals sign, or comes twice."""
    pairs = [line.partition("=") for line in lines]
    facts = {name if sign else "": value for name, sign, value in pairs}
    return facts if len(facts) == len(lines) else {"": ""}


def _check_tree(place: int, block: str, width: int) -> None:
    try:
        fault = _find_lightgbm_fault(place, block, width)
    except (IndexError, ValueError) as error:
        raise _damage(f"tree {place} is not a valid tree ({error})") from error
    if fault:
        raise _damage(f"tree {place} is not a valid tree: {fault}")


def _find_lightgbm_fault(place: int, block: str, width: int) -> str:
    """What is wrong with a tree, as the end of a sentence; empty if nothing is."""
    first, *lines = block.rstrip("\n").split("\n")
    facts = _facts(lines)
    lacking = set(_LIGHTGBM_TREE) - set(facts)
    if first != f"Tree={place}" or list(facts) != [
        name for name in _LIGHTGBM_TREE if name not in lacking
    ]:
        return "its lines are not those that LightGBM writes"
    if lacking - _OF_CATEGORIES:
        return f"{min(lacking - _OF_CATEGORIES)!r} is lacking"
    tree = {name: _read_numbers(name, words) for name, words in facts.items()}
    leaves, n_categorical = (int(tree[name][0]) for name in ("num_leaves", "num_cat"))
    if lacking != (set() if n_categorical else _OF_CATEGORIES):
        return "'num_cat' does not agree with its categories"
    if leaves < 1 or facts["is_linear"] != "0":
        return "its leaves are none, or not plain numbers"
    wrong = [name for name in tree if not _is_of_size(name, tree[name], leaves)]
    if wrong:
        return f"{wrong[0]!r} holds too few, too many or infinite numbers"
    if not _are_splits(tree, width, n_categorical):
        return "a split names a column or categories that do not exist"
    if not _is_lightgbm_tree(tree["left_child"], tree["right_child"], leaves):
        return "a node has no parent, several, or itself below it"
    return ""


def _read_numbers(name: str, text: str) -> NDArray[np.float64]:
    words, form = text.split(" ") if text else [], _LIGHTGBM_TREE[name][0]
    if words and not _LINES[form].fullmatch(text):  # at once: a file has a thousand lines
        wrong = next((word for word in words if not form.fullmatch(word)), text)
        raise ValueError(f"{name} holds {wrong[:40]!r}")
    return np.array(words, dtype=np.float64)


def _is_of_size(name: str, values: NDArray[np.float64], leaves: int) -> bool:
    wanted = {"one": 1, "splits": leaves - 1, "leaves": leaves, "any": len(values)}[
        _LIGHTGBM_TREE[name][1]
    ]
    left_out = leaves == 1 and name in _LEAF_FACTS and len(values) == 0
    finite = name == "threshold" or bool(np.all(np.isfinite(values)))
    return (len(values) == wanted or left_out) and finite


def _are_splits(tree: Numbers, width: int, n_categorical: int) -> bool:
    features, cuts, types = (tree[name] for name in ("split_feature", "threshold", "decision_type"))
    inside = bool(np.all((features >= 0) & (features < width)))
    known = bool(np.all((types >= 0) & (types <= _MOST_TYPE)))
    if not (inside and known):
        return False
    sets = cuts[types.astype(np.int64) & _CATEGORICAL == 1]
    if not bool(np.all((sets >= 0) & (sets < n_categorical) & (sets == np.floor(sets)))):
        return False
    if n_categorical == 0:
        return True
    bounds, bits = tree["cat_boundaries"], tree["cat_threshold"]
    ends = len(bounds) == n_categorical + 1 and bounds[0] == 0 and bounds[-1] == len(bits)
    rising = bool(np.all(np.diff(bounds) > 0))
    return bool(ends and rising and np.all((bits >= 0) & (bits < 2**32)))


def _is_lightgbm_tree(left: AnyArray, right: AnyArray, leaves: int) -> bool:
    """As `is_tree`, where a leaf is a negative number: the splits first, then the leaves."""
    none = np.full(leaves, -1)
    children = np.stack([left, right]).astype(np.int64)
    places = np.where(children < 0, leaves - 2 - children, children)
    return is_tree(*(np.concatenate([row, none]) for row in places))
