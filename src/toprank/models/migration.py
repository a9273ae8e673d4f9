"""Files of older formats, brought to the present one step by step.

When a change makes files that the code before it cannot read, `toprank.models.archive.FORMAT` goes
up by one, and `STEPS` gets a function that turns the members of a file of the format before into
those of the new one. No step is ever removed, so that the first file still loads: it goes through
all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from toprank.models import archive
from toprank.models.errors import ModelError

if TYPE_CHECKING:
    from toprank._arrays import JsonObject


def _unchanged_members(members: dict[str, bytes]) -> dict[str, bytes]:
    """A file of the format before is one of the next as it is: the next only has more to say."""
    return members


#: From the members of a file of this format to those of the next; a step changes what it must and
#: leaves the number in ``toprank.json`` alone.
STEPS: dict[int, Callable[[dict[str, bytes]], dict[str, bytes]]] = {
    1: _unchanged_members,
    2: _unchanged_members,
    3: _unchanged_members,  # the loader replaces the encoders of dates and text
}


def to_present_format(members: dict[str, bytes]) -> tuple[dict[str, bytes], JsonObject]:
    """Return the members as this version writes them, and the facts of ``toprank.json``.

    Raises
    ------
    ModelError
        If the format is newer than this version's, or the file lacks a member.
    """
    check_complete(members, {"toprank.json"})
    facts = archive.check_format(json.loads(members["toprank.json"]))
    for number in range(facts["format"], archive.FORMAT):
        members = STEPS[number](dict(members))
    check_complete(members, archive.MEMBERS)
    return members, facts


def check_complete(members: dict[str, bytes], needed: set[str]) -> None:
    """Raise ModelError unless all that is needed is there."""
    lacking = sorted(needed - members.keys())
    if lacking:
        raise ModelError(f"This is not a toprank model: the archive lacks {lacking[0]!r}.")
