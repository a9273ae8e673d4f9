"""From a file to a model: everything is checked before it is built, and tried before use."""

from __future__ import annotations

import io
import json
import os
import warnings
import zipfile
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import InconsistentVersionWarning

from toprank._extras import require
from toprank.models.card import VERSIONED, check_card, installed_version
from toprank.models.columns import Column, are_words
from toprank.models.errors import ModelError, ModelWarning, catch_warnings
from toprank.models.fit import RANKERS
from toprank.models.migration import to_present_format
from toprank.models.model import TableModel
from toprank.models.preparation import Preparation
from toprank.models.schema import Schema, Target
from toprank.models.storage import (
    MOST_BYTES,
    TRUSTED,
    attach,
    check_entry_sizes,
    check_seal,
    foreign_types,
    read_members,
    reads_texts_unsafely,
    update_types,
)
from toprank.rankers.ensemble.converted import CatBoostRanker, ForestRanker
from toprank.rankers.ensemble.prepared import PreparedRanker

#: Every class of rankers in a file, members of ensembles among them.
_KNOWN = (*RANKERS, PreparedRanker, ForestRanker, CatBoostRanker)
#: How many libraries a warning names.
_NAMED = 12


def load(path: str | PathLike[str], *, most_bytes: int = MOST_BYTES) -> TableModel:
    """Read a model from a file, without running anything of it.

    Parameters
    ----------
    path : str or path
    most_bytes : int
        The largest file, and the largest content once unpacked, that is accepted.

    Returns
    -------
    TableModel

    Raises
    ------
    ModelError
        If the file is not a model, was cut short or changed, is of a newer format, or holds
        objects that no model needs.

    Warns
    -----
    ModelWarning
        If the model was made with other versions of the libraries; it names them.
    """
    source = Path(path)
    try:
        size = source.stat().st_size
        if size > most_bytes:
            raise ModelError(
                f"'{source}' has {size} bytes, more than the {most_bytes} allowed; pass "
                "most_bytes= if you trust it."
            )
        data = source.read_bytes()
    except OSError as error:
        raise ModelError(f"'{source}' could not be read: {error.strerror or error}.") from error
    try:
        return from_bytes(data, most_bytes=most_bytes)
    except ModelError as error:
        raise ModelError(f"'{source}': {error}") from error


def from_bytes(data: bytes, *, most_bytes: int = MOST_BYTES) -> TableModel:
    """Return the model that a file's bytes hold; as `load`."""
    other = ""
    try:
        check_seal(data)
        members = read_members(data, most_bytes)
        members, facts = to_present_format(members)
        other = _other_versions(facts["versions"])
        schema, target = _read_schema(json.loads(members["schema.json"]))
        card = check_card(json.loads(members["card.json"]))
        parts = _read_payload(members["payload.skops"], most_bytes)
        n_boosters = sum(name.startswith("trees-") for name in members)
        boosters = [members[f"trees-{j}"] for j in range(n_boosters)]
        model = _assemble(schema, target, parts, card, boosters)
        check_works(model)
    except ModelError:
        raise
    except MemoryError as error:
        raise ModelError("What the file holds does not fit into memory.") from error
    except Exception as error:  # whatever a file made to mislead brings the readers to raise
        why = (str(error).splitlines() or [type(error).__name__])[0]
        remedy = f" It says that it was made with {other}: try those versions." if other else ""
        raise ModelError(f"The file is damaged, or not a toprank model ({why}).{remedy}") from error
    if other:
        warnings.warn(
            f"The model was made with {other}; scores may differ. Refit it if they do.",
            ModelWarning,
            stacklevel=3,
        )
    return model


def _read_schema(given: Any) -> tuple[Schema, Target]:
    if not isinstance(given, dict) or not isinstance(given.get("values"), dict):
        raise ModelError(
            "The schema in the file cannot be used: it is not a collection of named parts."
        )
    values = given.pop("values")
    schema = Schema.from_dict(given)
    positive, negative = values["positive"], values["negative"]
    if not isinstance(negative, list) or not are_words([positive, *negative]):
        raise ModelError("The target in the file cannot be used: its values are not texts.")
    return schema, Target(schema.target, positive, tuple(negative), values.get("tidy") is True)


def _read_payload(payload: bytes, most_bytes: int) -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        check_entry_sizes(archive.infolist(), most_bytes)
    payload = update_types(payload)
    foreign = foreign_types(payload)
    if foreign:
        raise ModelError(
            "The file holds objects that no toprank model needs, and was not opened: "
            f"{', '.join(foreign[:5])}{', ...' if len(foreign) > 5 else ''}. Do not trust it."
        )
    with catch_warnings():
        # the versions are compared once, for all libraries
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        parts: dict[str, Any] = require("skops.io", "models").loads(payload, trusted=TRUSTED)
    if reads_texts_unsafely(parts):
        raise ModelError(
            "The model in the file would open the files that the texts of a table name, or search "
            "the texts by patterns of its own. Do not trust it."
        )
    return parts


def _assemble(
    schema: Schema,
    target: Target,
    parts: dict[str, Any],
    card: dict[str, Any],
    boosters: list[bytes],
) -> TableModel:
    preparation, ranker = parts["preparation"], parts["ranker"]
    centre = np.asarray(parts["centre"], dtype=np.float64)
    if type(preparation) is not Preparation or not all(type(r) in _KNOWN for r in _chain(ranker)):
        raise ModelError("This is not a toprank model: its parts have other types.")
    width = len(preparation.names)
    if width != ranker.n_features_in_ or centre.shape != (width,) or not preparation.fits(schema):
        raise ModelError("The parts of the file belong to different models.")
    remembered = {name: entry["kind"] for name, entry in card["reference"]["columns"].items()}
    if remembered != {column.name: column.kind for column in schema.columns}:
        raise ModelError("The card in the file describes another model.")
    for one in _chain(ranker):
        if hasattr(one, "n_jobs"):
            one.n_jobs = _threads_here(one.n_jobs)
    attach(ranker, boosters)
    return TableModel(schema, target, preparation, ranker, card, centre)


def _chain(ranker: Any) -> Iterator[Any]:
    """A ranker, its members, and those whose scores it started from.

    The name of a file does not count.
    """
    while ranker is not None:
        yield ranker
        for _, member in getattr(ranker, "members_", ()):
            yield from _chain(member)
        ranker = getattr(ranker, "init_model_", None)


def _threads_here(n_jobs: Any) -> int | None:
    """The threads asked for, at most those of this machine: a million would end the process."""
    return min(n_jobs, os.cpu_count() or 1) if isinstance(n_jobs, int) else None


def _other_versions(made: dict[str, str]) -> str:
    """The libraries, with their versions, that are others here; empty if none is."""
    # a name that no card has is not looked for: that would take time, or fail
    here = {name: installed_version(name) if name in VERSIONED else None for name in made}
    other = [
        f"{name} {was} (here {here[name] or 'none'})"
        for name, was in made.items()
        if was != here[name]
    ]
    return ", ".join(other[:_NAMED]) + (", ..." if len(other) > _NAMED else "")


def check_works(model: TableModel) -> None:
    """Raise unless a row of nothing and an ordinary row get scores, chances and reasons.

    The parts of a file can be of the right types and still not fit each other: an index beyond
    the columns, an array of another shape, a NaN. The caller handles what such parts
    raise.
    """
    values = {column.name: _sample_values(column) for column in model.schema.columns}
    width = len(model.preparation.names)
    with catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # other versions of the libraries may have much to say
        Z = model.preparation.transform(values)
        scores = np.asarray(model.ranker.decision_function(Z))
        chances = np.asarray(model.ranker.predict_proba(Z))
        parts = np.asarray(model.column_contributions(Z))
    found = (Z.shape, scores.shape, chances.shape, parts.shape)
    if found != ((2, width), (2,), (2, 2), (2, len(model.schema.columns))):
        raise ModelError("The parts of the file belong to different models.")
    if not all(np.all(np.isfinite(array)) for array in (scores, chances, parts)):
        raise ModelError("The model in the file gives scores that are not numbers.")


def _sample_values(column: Column) -> NDArray[Any]:
    """A missing value and an ordinary one."""
    if column.kind in ("number", "boolean"):
        return np.array([np.nan, 1.0])
    if column.kind == "date":
        return np.array(["NaT", "2024-02-29"], dtype="datetime64[us]")
    ordinary = column.categories[0] if column.categories else "a word"
    return np.array(["", ordinary], dtype=object)
