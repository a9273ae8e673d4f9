"""A model as one file: a zip of JSON, a skops payload and boosters in their own formats.

====================  =========================================================================
``toprank.json``      the format's version, and the versions of the libraries
``card.json``         the card
``schema.json``       the columns and the target
``payload.skops``     the preparation and the ranker
``trees-0``, ...      boosters, in LightGBM's text or XGBoost's UBJSON format
====================  =========================================================================

The comment of the zip is the SHA-256 of all bytes before it, so that a file that was cut short,
damaged or edited by accident is recognised as such. It is no signature: whoever can write the
file can write a matching one. What protects the reader from strangers is that nothing in the file
is ever run, and that its types are checked against a closed list (`toprank.models.trust`).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import InconsistentVersionWarning

from toprank._extras import require
from toprank._files import replacing
from toprank._warnings import catching
from toprank.models.card import VERSIONED, installed
from toprank.models.card_shape import check_card
from toprank.models.errors import ModelError, ModelWarning
from toprank.models.labels import Target
from toprank.models.model import TableModel
from toprank.models.plain import plain
from toprank.models.preparation import Preparation
from toprank.models.recipes import RANKERS
from toprank.models.schema import Schema
from toprank.models.trees import attach, detach
from toprank.models.trial import check_works
from toprank.models.trust import TRUSTED, foreign_types, reads_otherwise

#: Raised when a file of the new format cannot be read by the old code.
FORMAT = 1
_SEAL = b"toprank model sha256:"
_NAMES = {"toprank.json", "card.json", "schema.json", "payload.skops"}
_TREES = re.compile(r"trees-\d{1,4}")
#: Bytes that a file, or what it unpacks to, may have unless the caller allows more.
MOST_BYTES = 2 << 30
#: How many libraries a warning names.
_NAMED = 12


def save(model: TableModel, path: str | PathLike[str]) -> None:
    """Write a model to one file, whole or not at all.

    An interrupted save leaves the file that was there before.

    Parameters
    ----------
    model : TableModel
    path : str or path
        The file; by custom its name ends in ``.toprank``.
    """
    data = to_bytes(model)
    target = Path(path)
    if target.is_dir():
        raise ModelError(f"'{target}' is a folder; name a file in it.")
    try:
        with replacing(target) as file:
            file.write(data)
    except OSError as error:
        raise ModelError(
            f"'{target}' {error.strerror}." if error.strerror else str(error)
        ) from error


def to_bytes(model: TableModel) -> bytes:
    """Return the file of a model as bytes."""
    io_ = require("skops.io", "models")
    bare, boosters = detach(model.ranker)
    payload = io_.dumps(
        {"preparation": model.preparation, "ranker": bare, "centre": model.centre},
        compression=zipfile.ZIP_DEFLATED,
    )
    foreign = foreign_types(payload)
    if foreign:
        raise ModelError(
            f"The model cannot be saved: it holds {', '.join(foreign)}, which is none of the types "
            "that fit_table makes models of."
        )
    target = {"positive": model.target.positive, "negative": list(model.target.negative)}
    members = {
        "toprank.json": _json({"format": FORMAT, "versions": model.card["versions"]}),
        "card.json": _json(plain(model.card)),
        "schema.json": _json({**model.schema.as_dict(), "values": target}),
        "payload.skops": payload,
        **{f"trees-{j}": booster for j, booster in enumerate(boosters)},
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.comment = _SEAL + b"0" * 64
    data = buffer.getvalue()
    return data[:-64] + hashlib.sha256(data[:-64]).hexdigest().encode()


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
    try:
        _check_seal(data)
        members = _members(data, most_bytes)
        facts = _check_format(json.loads(members["toprank.json"]))
        schema, target = _schema(json.loads(members["schema.json"]))
        card = check_card(json.loads(members["card.json"]))
        parts = _payload(members["payload.skops"], most_bytes)
        boosters = [members[f"trees-{j}"] for j in range(len(members) - len(_NAMES))]
        model = _assembled(schema, target, parts, card, boosters)
        check_works(model)
    except ModelError:
        raise
    except MemoryError as error:
        raise ModelError("What the file holds does not fit into memory.") from error
    except Exception as error:  # whatever a file made to mislead brings the readers to raise
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise ModelError(f"The file is damaged, or not a toprank model ({why}).") from error
    _warn_of_versions(facts["versions"])
    return model


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1).encode()


def _check_seal(data: bytes) -> None:
    if not data.startswith(b"PK"):
        raise ModelError("This is not a toprank model: the file is no zip archive.")
    end = len(data) - 64
    if end < len(_SEAL) or data[end - len(_SEAL) : end] != _SEAL:
        raise ModelError(
            "This is not a toprank model, or the file was cut short: it lacks the seal at its end."
        )
    if hashlib.sha256(data[:end]).hexdigest().encode() != data[end:]:
        raise ModelError(
            "The checksum does not match: the file was damaged or changed after it was saved."
        )


def _members(data: bytes, most_bytes: int) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        strange = [n for n in names if n not in _NAMES and not _TREES.fullmatch(n)]
        if strange or len(set(names)) < len(names):
            shown = repr(strange[0]) if strange else "a name twice"
            raise ModelError(f"This is not a toprank model: the archive holds {shown}.")
        lacking = sorted(_NAMES - set(names))
        if lacking:
            raise ModelError(f"This is not a toprank model: the archive lacks {lacking[0]!r}.")
        _check_sizes(entries, most_bytes)
        return {entry.filename: archive.read(entry) for entry in entries}


def _check_sizes(entries: list[zipfile.ZipInfo], most_bytes: int) -> None:
    """Refuse what would unpack to too much; a reader stops at the size an entry declares."""
    total = sum(entry.file_size for entry in entries)
    if total > most_bytes:
        raise ModelError(
            f"The file would unpack to {total} bytes, more than the {most_bytes} allowed; pass "
            "most_bytes= if you trust it."
        )


def _check_format(facts: Any) -> dict[str, Any]:
    found = facts.get("format") if isinstance(facts, dict) else None
    if not isinstance(found, int) or found < 1 or not isinstance(facts.get("versions"), dict):
        raise ModelError("This is not a toprank model: its format has no version.")
    if found > FORMAT:
        made = facts["versions"].get("toprank", "a newer version")
        raise ModelError(
            f"The model's format is version {found}, and this toprank reads up to {FORMAT}. It was "
            f"saved by toprank {made}: upgrade toprank."
        )
    return facts


def _schema(given: Any) -> tuple[Schema, Target]:
    if not isinstance(given, dict) or not isinstance(given.get("values"), dict):
        raise ModelError("The schema in the file is not one.")
    values = given.pop("values")
    schema = Schema.from_dict(given)
    positive, negative = values["positive"], values["negative"]
    if not isinstance(negative, list) or not _are_words([positive, *negative]):
        raise ModelError("The target in the file is not one.")
    return schema, Target(schema.target, positive, tuple(negative))


def _are_words(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _payload(payload: bytes, most_bytes: int) -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        _check_sizes(archive.infolist(), most_bytes)
    foreign = foreign_types(payload)
    if foreign:
        raise ModelError(
            "The file holds objects that no toprank model needs, and was not opened: "
            f"{', '.join(foreign[:5])}{', ...' if len(foreign) > 5 else ''}. Do not trust it."
        )
    with catching():
        # the versions are compared once, for all libraries
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        parts: dict[str, Any] = require("skops.io", "models").loads(payload, trusted=TRUSTED)
    if reads_otherwise(parts):
        raise ModelError(
            "The model in the file would open the files that the texts of a table name, or search "
            "the texts by patterns of its own. Do not trust it."
        )
    return parts


def _assembled(
    schema: Schema,
    target: Target,
    parts: dict[str, Any],
    card: dict[str, Any],
    boosters: list[bytes],
) -> TableModel:
    preparation, ranker = parts["preparation"], parts["ranker"]
    centre = np.asarray(parts["centre"], dtype=np.float64)
    if type(preparation) is not Preparation or not all(type(r) in RANKERS for r in _chain(ranker)):
        raise ModelError("This is not a toprank model: its parts are not those of one.")
    width = len(preparation.names)
    if width != ranker.n_features_in_ or centre.shape != (width,) or not preparation.fits(schema):
        raise ModelError("The parts of the file are not of one model.")
    remembered = {name: entry["kind"] for name, entry in card["reference"]["columns"].items()}
    if remembered != {column.name: column.kind for column in schema.columns}:
        raise ModelError("The card in the file is not that of the model.")
    for one in _chain(ranker):
        if hasattr(one, "n_jobs"):
            one.n_jobs = _threads_here(one.n_jobs)
    attach(ranker, boosters)
    return TableModel(schema, target, preparation, ranker, card, centre)


def _chain(ranker: Any) -> Iterator[Any]:
    """A ranker and those whose scores it started from; a file name is no such thing here."""
    while ranker is not None:
        yield ranker
        ranker = getattr(ranker, "init_model_", None)


def _threads_here(n_jobs: Any) -> int | None:
    """The threads asked for, at most those of this machine: a million would end the process."""
    return min(n_jobs, os.cpu_count() or 1) if isinstance(n_jobs, int) else None


def _warn_of_versions(made: dict[str, str]) -> None:
    # a name that no card has is not looked for: that would take time, or fail
    here = {name: installed(name) if name in VERSIONED else None for name in made}
    other = [
        f"{name} {was} (here {here[name] or 'none'})"
        for name, was in made.items()
        if was != here[name]
    ]
    if other:
        shown = ", ".join(other[:_NAMED]) + (", ..." if len(other) > _NAMED else "")
        warnings.warn(
            f"The model was made with {shown}; scores may differ. Refit it if they do.",
            ModelWarning,
            stacklevel=4,
        )
