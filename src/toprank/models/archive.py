"""The zip that a model is kept in: its members, its seal, and the version of its format.

`toprank.models.storage` says what the members hold.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from typing import TYPE_CHECKING

from toprank.models.errors import ModelError

if TYPE_CHECKING:
    from toprank._arrays import JsonObject

#: Goes up when the code before cannot read the new files; `toprank.models.migration` then gets a
#: step that brings the older ones here. 2: columns that are clipped, written with signs or tidied;
#: 3: tails that the linear members of ensembles clip; 4: encoders of dates and text of our own.
FORMAT = 4
_SEAL = b"toprank model sha256:"
MEMBERS = {"toprank.json", "card.json", "schema.json", "payload.skops"}
_TREES = re.compile(r"trees-\d{1,4}")
#: Bytes that a file, or what it unpacks to, may have unless the caller allows more.
MOST_BYTES = 2 << 30


def write_archive(members: dict[str, bytes]) -> bytes:
    """Return the members as one sealed zip."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.comment = _SEAL + b"0" * 64
    data = buffer.getvalue()
    return data[:-64] + hashlib.sha256(data[:-64]).hexdigest().encode()


def json_bytes(value: object) -> bytes:
    """Return a member that holds JSON."""
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
    """Return the members of the archive by name; ModelError if one is no part of a model."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        strange = [n for n in names if n not in MEMBERS and not _TREES.fullmatch(n)]
        if strange or len(set(names)) < len(names):
            shown = repr(strange[0]) if strange else "a name twice"
            raise ModelError(f"This is not a toprank model: the archive holds {shown}.")
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


def check_format(facts: object) -> JsonObject:
    """Return the facts of ``toprank.json``; ModelError if the format is a newer one."""
    known: JsonObject = facts if isinstance(facts, dict) else {}
    found = known.get("format")
    if not isinstance(found, int) or found < 1 or not isinstance(known.get("versions"), dict):
        raise ModelError("This is not a toprank model: its format has no version.")
    if found > FORMAT:
        made = known["versions"].get("toprank", "a newer version")
        raise ModelError(
            f"The model's format is version {found}, and this toprank reads up to {FORMAT}. It was "
            f"saved by toprank {made}: upgrade toprank."
        )
    return known
