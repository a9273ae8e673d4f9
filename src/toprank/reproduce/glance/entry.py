"""One item of a paper: what it says, where it is in the code, what checks it, what we found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """An item of a paper.

    Parameters
    ----------
    item : str
        Its name in the paper.
    says : str
        What it is about, in a few words.
    code : str
        Names below `toprank`, separated by spaces; empty for a step of a proof that nothing
        computes.
    tests : str
        ``file::test`` below `tests`, separated by spaces.
    found : str
        What was found out: a misprint, a number that does not come out, a proof that needs more.
    """

    item: str
    says: str
    code: str = ""
    tests: str = ""
    found: str = ""


@dataclass(frozen=True)
class Paper:
    """A paper and its items, in its own order."""

    title: str
    entries: tuple[Entry, ...]
