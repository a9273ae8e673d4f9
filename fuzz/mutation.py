"""Changes to files that keep them almost right, so that the code behind the door is reached."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Callable
from itertools import islice
from random import Random
from typing import Any

Mutate = Callable[[bytes], bytes]

#: Words that parsers of numbers, dates and texts disagree about.
WORDS = (
    *("", " ", "nan", "NaN", "inf", "-inf", "1e999", "-1e-400", "0x1F", "1_000", "1,5", "٣", "½"),
    *("9" * 400, "9223372036854775808", "-9223372036854775809", "18446744073709551616"),
    *("0001-01-01", "9999-12-31", "2026-02-30", "2026-11-15T25:00", "2026-11-15 12:00+14:00"),
    *("true", "NULL", "NA", "None", "<NA>", "#N/A", '"', '""', "'", "\\", "\0", "\r", "\n", "\r\n"),
    *("\x1a", "\x1c", "\x85", "\u2028", "\ufeff", "\ud7ff", "\U0010ffff", "=1+1", "\x1b[31m", "é"),
)
#: Values that stand where JSON had another.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**400, 0.5, -0.0, 1e308, 5e-324),
    *("", "x", "nan", "inf", "\0", "number", "text", "../../x", "A" * 5000),
    *([], {}, [[]], [None], {"": None}, {"__class__": "system", "__module__": "os"}),
)

#: Nodes of a tree of JSON that is still changed.
_MOST_PLACES = 100_000


def bytes_changed(data: bytes, rng: Random) -> bytes:
    """A few bytes flipped, cut out, repeated or made extreme."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        if not out:
            return bytes([rng.randrange(256)])
        place, size = rng.randrange(len(out)), rng.choice((1, 1, 2, 4, 8, 64))
        kind = rng.randrange(6)
        if kind == 0:
            out[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            out[place : place + size] = rng.choice((b"\xff", b"\0", b"\x7f", b"\x80")) * size
        elif kind == 2:
            del out[place : place + size]
        elif kind == 3:
            out[place:place] = out[place : place + size] * rng.choice((1, 2, 50))
        elif kind == 4:
            out[place : place + size] = rng.randbytes(size)
        else:
            del out[place:]
    return bytes(out)


def bytes_spliced(data: bytes, other: bytes, rng: Random) -> bytes:
    """The beginning of a file and the end of another, at the same place in every second case."""
    place = rng.randint(0, len(data))
    there = min(place, len(other)) if rng.random() < 0.5 else rng.randint(0, len(other))
    return data[:place] + other[there:]


def text_changed(data: bytes, rng: Random) -> bytes:
    """Fields and lines swapped, repeated, lost or replaced by awkward words."""
    parts = re.split(rb"([,;\t|=\n \"])", data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        place, other = rng.randrange(len(parts)), rng.randrange(len(parts))
        kind = rng.randrange(5)
        if kind == 0:
            parts[place] = rng.choice(WORDS).encode("utf-8")
        elif kind == 1:
            parts[place], parts[other] = parts[other], parts[place]
        elif kind == 2:
            parts[place:place] = parts[other : other + rng.choice((1, 2, 8))]
        elif kind == 3:
            parts[place] = b""
        else:
            parts[place] = rng.choice((b",", b";", b"\t", b"|", b"\n", b"\r\n", b'"', b"\0"))
    return b"".join(parts)


def json_changed(data: bytes, rng: Random) -> bytes:
    """A node of the tree replaced, lost, renamed, copied elsewhere or put ever deeper."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return bytes_changed(data, rng)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        tree = _tree_changed(tree, rng)
    try:
        return json.dumps(tree).encode()
    except (ValueError, RecursionError):
        return data


def _tree_changed(tree: Any, rng: Random) -> Any:
    places = list(islice(_places(tree), _MOST_PLACES + 1))
    if not places:
        return rng.choice(VALUES)
    if len(places) > _MOST_PLACES:  # copies of copies would fill the memory
        return tree
    parent, key = rng.choice(places)
    kind = rng.randrange(7)
    if kind == 0:
        parent[key] = rng.choice(VALUES)
    elif kind == 1:
        del parent[key]
    elif kind == 2:
        other, there = rng.choice(places)
        parent[key] = json.loads(json.dumps(other[there]))
    elif kind == 3 and isinstance(parent, dict):
        parent[rng.choice((*parent, "x", "__id__", ""))] = parent.pop(key)
    elif kind == 4 and isinstance(parent, list):
        parent[key:key] = [parent[key]] * rng.choice((1, 2, 100))
    elif kind == 5 and isinstance(parent[key], int | float):
        parent[key] = parent[key] + rng.choice((-1, 1, 0.5, 1e18, -1e18))
    else:
        for _ in range(rng.choice((1, 3, 300))):
            parent[key] = [parent[key]]
    return tree


def _places(tree: Any) -> Any:
    """Every (parent, key) of the tree."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, dict | list):
            for key, value in node.items() if isinstance(node, dict) else enumerate(node):
                yield node, key
                stack.append(value)


def members_of(data: bytes) -> dict[str, bytes]:
    """What a zip archive holds."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members: dict[str, bytes], comment: bytes = b"") -> bytes:
    """A zip archive of the members, stored as they are, which is quick."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), content)
        archive.comment = comment
    return buffer.getvalue()


def sealed(members: dict[str, bytes]) -> bytes:
    """The file of a model with these members and a checksum that is right."""
    data = zipped(members, b"toprank model sha256:" + b"0" * 64)[:-64]
    return data + hashlib.sha256(data).hexdigest().encode()
