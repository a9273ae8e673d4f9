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
is ever run, and that its types are checked against a closed list
(`toprank.models.allowed_types`) before `toprank.models.loader` builds anything.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from os import PathLike
from pathlib import Path
from typing import Any

from toprank._extras import require
from toprank._files import replacing
from toprank._text import plain
from toprank.models.allowed_types import foreign_types
from toprank.models.boosters import detach
from toprank.models.errors import ModelError

#: Raised when a file of the new format cannot be read by the old code.
FORMAT = 1
_SEAL = b"toprank model sha256:"
MEMBERS = {"toprank.json", "card.json", "schema.json", "payload.skops"}
_TREES = re.compile(r"trees-\d{1,4}")
#: Bytes that a file, or what it unpacks to, may have unless the caller allows more.
MOST_BYTES = 2 << 30


def save(model: Any, path: str | PathLike[str]) -> None:
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


def to_bytes(model: Any) -> bytes:
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


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1).encode()


def check_seal(data: bytes) -> None:
    """Raise ModelError unless the checksum at the end of a file is that of its bytes."""
    if not data.startswith(b"PK"):
        raise ModelError("This is not a toprank model: the file is not a zip archive.")
    end = len(data) - 64
    if end < len(_SEAL) or data[end - len(_SEAL) : end] != _SEAL:
        raise ModelError(
            "This is not a toprank model, or the file was cut short: it lacks the seal at its end."
        )
    if hashlib.sha256(data[:end]).hexdigest().encode() != data[end:]:
        raise ModelError(
            "The checksum does not match: the file was damaged or changed after it was saved."
        )


def read_members(data: bytes, most_bytes: int) -> dict[str, bytes]:
    """Return the members of the archive by name; ModelError unless they are those of a model."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        strange = [n for n in names if n not in MEMBERS and not _TREES.fullmatch(n)]
        if strange or len(set(names)) < len(names):
            shown = repr(strange[0]) if strange else "a name twice"
            raise ModelError(f"This is not a toprank model: the archive holds {shown}.")
        lacking = sorted(MEMBERS - set(names))
        if lacking:
            raise ModelError(f"This is not a toprank model: the archive lacks {lacking[0]!r}.")
        check_entry_sizes(entries, most_bytes)
        return {entry.filename: archive.read(entry) for entry in entries}


def check_entry_sizes(entries: list[zipfile.ZipInfo], most_bytes: int) -> None:
    """Refuse what would unpack to too much; a reader stops at the size an entry declares."""
    total = sum(entry.file_size for entry in entries)
    if total > most_bytes:
        raise ModelError(
            f"The file would unpack to {total} bytes, more than the {most_bytes} allowed; pass "
            "most_bytes= if you trust it."
        )


def check_format(facts: Any) -> dict[str, Any]:
    """Return the facts of ``toprank.json``; ModelError if the format is a newer one."""
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
