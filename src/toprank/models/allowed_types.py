"""What a model file may hold: a closed list, checked before anything of it is built.

skops builds objects without running code from the file, but trusts more than a model needs. Here
every object in a payload must be of a type that `fit_table` makes models of, read by the loader
for plain data, arrays or the states of objects; functions, methods and reductions are never among
them.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

_PLAIN = {
    "DictNode": {"builtins.dict"},
    "ListNode": {"builtins.list"},
    "TupleNode": {"builtins.tuple"},
    "JsonNode": {"builtins.str"},
    "TypeNode": {"builtins.int", "builtins.str", "builtins.float", "numpy.float64"},
    "DTypeNode": {"numpy.dtype"},
    "NdArrayNode": {
        "numpy.ndarray",
        "numpy.bool",
        "numpy.bool_",
        "numpy.float32",
        "numpy.float64",
        "numpy.int64",
        "numpy.intp",
    },
}
#: Types of objects by their full names: toprank's own, and those of the preparation.
_OBJECTS = {
    "sklearn.decomposition._truncated_svd.TruncatedSVD",
    "sklearn.feature_extraction.text.TfidfTransformer",
    "sklearn.feature_extraction.text.TfidfVectorizer",
    "sklearn.impute._base.MissingIndicator",
    "sklearn.impute._base.SimpleImputer",
    "sklearn.preprocessing._data.StandardScaler",
    "sklearn.preprocessing._encoders.OneHotEncoder",
    "sklearn.preprocessing._encoders.OrdinalEncoder",
    "skrub._datetime_encoder.DatetimeEncoder",
    "skrub._string_encoder.StringEncoder",
    "skrub._to_str.ToStr",
    "toprank.blocks.units.Units",
    "toprank.losses.proper.Logistic",
    "toprank.models.preparation.Preparation",
    "toprank.rankers.boosting.weak.StumpSum",
    "toprank.rankers.boosting.rank_boost.RankBoost",
    "toprank.rankers.boosting.rank_boost.SmoothMarginRanker",
    "toprank.rankers.boosting.stumps.Stump",
    "toprank.rankers.linear.IRPush",
    "toprank.rankers.linear.PNormPush",
    "toprank.rankers.proper.ProperRanker",
    "toprank.rankers.trees.columns.Categories",
    "toprank.rankers.trees.estimator.PushTrees",
}
ALLOWED: dict[str, set[str]] = {**_PLAIN, "ObjectNode": _OBJECTS}
#: What skops is told to trust.
TRUSTED = sorted(set().union(*ALLOWED.values()))


#: Types that stood elsewhere when older files were saved, and where they stand now.
_MOVED = {
    "toprank.blocks.arrays.Units": "toprank.blocks.units.Units",
    "toprank.rankers.boosting.model.StumpSum": "toprank.rankers.boosting.weak.StumpSum",
    "toprank.rankers.boosting.smooth_margin.SmoothMarginRanker": (
        "toprank.rankers.boosting.rank_boost.SmoothMarginRanker"
    ),
    "toprank.rankers.trees.columns.Columns": "toprank.rankers.trees.columns.Categories",
}


def foreign_types(payload: bytes) -> list[str]:
    """Return the types in a skops payload that are not on the list, by their full names."""
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        tree = json.loads(archive.read("schema.json"))
    found = {(str(node.get("__loader__")), _type_name(node)) for node in _objects(tree)}
    return sorted({name for loader, name in found if name not in ALLOWED.get(loader, set())})


def update_types(payload: bytes) -> bytes:
    """Return a payload in which types of older files are named as they are now."""
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        tree = json.loads(archive.read("schema.json"))
        moved = [node for node in _objects(tree) if _type_name(node) in _MOVED]
        if not moved:
            return payload
        others = {name: archive.read(name) for name in set(archive.namelist()) - {"schema.json"}}
    for node in moved:
        node["__module__"], _, node["__class__"] = _MOVED[_type_name(node)].rpartition(".")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {"schema.json": json.dumps(tree).encode(), **others}.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _objects(tree: Any) -> Iterator[dict[str, Any]]:
    """Every node in the tree of a payload that names a type or a loader, wherever it hides."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if "__loader__" in node or "__class__" in node or "__module__" in node:
                yield node
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)


def _type_name(node: dict[str, Any]) -> str:
    return f"{node.get('__module__')}.{node.get('__class__')}"


#: How the vectorisers of a preparation read texts: as they are, letter by letter.
_READING = {"input": "content", "analyzer": "char_wb"}


def reads_texts_unsafely(parts: Any) -> bool:
    """Whether some vectoriser among the parts would read texts in another way than ours do.

    It could take texts for the names of files and open them, or search them by a pattern that
    takes forever.
    """
    stack, seen = [parts], set()
    while stack:
        part = stack.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, dict):
            stack.extend(part.values())
        elif isinstance(part, list | tuple):
            stack.extend(part)
        elif hasattr(part, "__dict__"):
            if any(getattr(part, name, usual) != usual for name, usual in _READING.items()):
                return True
            stack.extend(vars(part).values())
    return False
