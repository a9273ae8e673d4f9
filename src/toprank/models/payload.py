"""The payload of a model's file, built without running anything of it.

skops writes the payload: a tree in JSON whose nodes name a type and a way to build it, and arrays
in NumPy's own format beside it. A model needs seven of these ways, and they are written here: plain
data, arrays, and objects by their attributes. A type that is not on the caller's list is refused
before its module is imported. Loading needs no skops, which imports most of scikit-learn.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Collection, Hashable
from importlib import import_module
from typing import Any

import numpy as np

from toprank._arrays import JsonObject
from toprank.models.errors import ModelError

Node = JsonObject
#: Classes of libraries that older files name and no scoring needs: only their attributes are read.
_ATTRIBUTES_ALONE = "skrub."


class OlderEncoder:
    """The attributes of an encoder of dates or text that a file of an older format holds."""

    def __init__(self, state: dict[str, object]):
        self.state = state


def build_payload(payload: bytes, allowed: Collection[str]) -> Any:
    """Return what a payload holds; ModelError if a type is not among the allowed ones."""
    with zipfile.ZipFile(io.BytesIO(payload)) as files:
        return _Builder(files, allowed).build(json.loads(files.read("schema.json")))


class _Builder:
    """Builds the nodes of one payload; a node that occurs again is the same object."""

    def __init__(self, files: zipfile.ZipFile, allowed: Collection[str]):
        self.files = files
        self.allowed = allowed
        self.built: dict[object, object] = {}
        self.ways: dict[str, Callable[[Node], object]] = {
            "DictNode": self._dict,
            "ListNode": self._list,
            "TupleNode": lambda node: tuple(self._list(node)),
            "JsonNode": lambda node: json.loads(node["content"]),
            "TypeNode": self._type_of,
            "DTypeNode": lambda node: self.build(node["content"]).dtype,
            "NdArrayNode": self._array,
            "ObjectNode": self._object,
        }

    def build(self, node: Node) -> Any:
        known = node.get("__id__")
        if known in self.built:
            return self.built[known]
        found = self.ways[node["__loader__"]](node)
        if known is not None:
            self.built[known] = found
        return found

    def _dict(self, node: Node) -> dict[Hashable, object]:
        kinds = self.build(node["key_types"])
        entries = node["content"].items()
        return {
            kind(key): self.build(value) for kind, (key, value) in zip(kinds, entries, strict=True)
        }

    def _list(self, node: Node) -> list[object]:
        return [self.build(one) for one in node["content"]]

    def _array(self, node: Node) -> np.ndarray:
        if node["type"] == "json":
            items, shape = self._list(node), self.build(node["shape"])
            found = np.empty(len(items), dtype=object)
            for place, item in enumerate(items):
                found[place] = item
            return found if len(shape) == 1 else np.array(items, dtype=object).reshape(shape)
        content = np.load(io.BytesIO(self.files.read(node["file"])), allow_pickle=False)
        kind = self._type_of(node)
        return content if kind is np.ndarray else kind(content)

    def _object(self, node: Node) -> object:
        given = node.get("content")
        if node["__module__"].startswith(_ATTRIBUTES_ALONE):
            return OlderEncoder({} if given is None else self.build(given))
        kind = self._type_of(node)
        found = kind.__new__(kind)
        state = None if given is None else self.build(given)
        if state is not None:
            if hasattr(found, "__setstate__"):
                found.__setstate__(state)
            else:
                vars(found).update(state)
        return found

    def _type_of(self, node: Node) -> Any:
        module, name = node["__module__"], node["__class__"]
        if f"{module}.{name}" not in self.allowed:
            raise ModelError(f"The file holds {module}.{name}, and was not opened.")
        return getattr(import_module(module), name)
