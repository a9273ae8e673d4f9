"""Which rows a model has learned from: a sketch of their checksums, small enough for its card.

Every row has a checksum of 64 bits of the values that the model reads. The sketch keeps the
smallest few thousand of them. A row whose checksum is at most the largest one kept was learned
from if, and only if, its own is among them (up to a chance of 1 in 10^16): so the rows of another
table with small checksums, which are a random sample of it, say how many of it were learned from.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import AnyArray, Frame, JsonObject
from toprank._numerics import scramble_bits
from toprank._text import about_share

#: Checksums that a sketch keeps at most.
_KEPT = 4096
#: Rows that must have been looked up before anything is said of a table.
_FEWEST = 3
#: Share of rows beyond that of chance twins from which a table counts as learned from.
_NOTICED = 0.05

Checksums = NDArray[np.uint64]


@dataclass(frozen=True)
class RowSketch:
    """The smallest checksums of the rows that a model has learned from.

    Attributes
    ----------
    smallest : array of uint64
        The checksums kept, ascending, each once.
    whole : bool
        Whether all are kept.
    twins : float
        Share of the rows that equal another one.
    """

    smallest: Checksums
    whole: bool
    twins: float

    @classmethod
    def of(cls, columns: Mapping[str, np.ndarray]) -> RowSketch:
        """Return the sketch of the rows of some columns."""
        return RowCounts.of(columns).sketch()

    def as_dict(self) -> JsonObject:
        """Return the sketch as a card has it."""
        packed = base64.b64encode(self.smallest.astype("<u8").tobytes()).decode("ascii")
        return {"smallest": packed, "whole": self.whole, "twins": self.twins}

    @classmethod
    def from_dict(cls, given: object) -> RowSketch | None:
        """Return the sketch on a card; None if there is none, or none that can be used."""
        if not isinstance(given, Mapping):
            return None
        try:
            packed = base64.b64decode(given["smallest"], validate=True)
            smallest = np.frombuffer(packed, dtype="<u8").astype(np.uint64)
            whole, twins = bool(given["whole"]), float(given["twins"])
        except (TypeError, KeyError, ValueError, binascii.Error):
            return None
        if len(smallest) == 0 or np.any(np.diff(smallest.astype(np.float64)) < 0):
            return None
        return cls(smallest, whole, twins)

    def look_up(self, columns: Mapping[str, AnyArray]) -> tuple[int, int]:
        """Return how many rows of a table can be looked up, and how many were learned from."""
        sums = row_checksums(columns)
        if not self.whole:
            sums = sums[sums <= self.smallest[-1]]
        return len(sums), int(np.count_nonzero(np.isin(sums, self.smallest)))


@dataclass(frozen=True)
class RowCounts:
    """The smallest checksums of some rows and how often each occurs; those of others merge."""

    sums: Checksums
    times: NDArray[np.int64]
    whole: bool

    @classmethod
    def of(cls, columns: Mapping[str, np.ndarray]) -> RowCounts:
        """Count the rows of some columns."""
        found, times = np.unique(row_checksums(columns), return_counts=True)
        return cls(found[:_KEPT], times[:_KEPT], len(found) <= _KEPT)

    def merge(self, other: RowCounts) -> RowCounts:
        """Join the counts of other rows."""
        sums, place = np.unique(np.concatenate([self.sums, other.sums]), return_inverse=True)
        both = np.concatenate([self.times, other.times])
        times = np.bincount(place.reshape(-1), both, len(sums)).astype(np.int64)
        whole = self.whole and other.whole and len(sums) <= _KEPT
        return RowCounts(sums[:_KEPT], times[:_KEPT], whole)

    def sketch(self) -> RowSketch:
        """The sketch; of many rows those kept tell how many equal another one."""
        total = int(np.sum(self.times))
        twins = float(np.sum(self.times[self.times > 1]) / total) if total else 0.0
        return RowSketch(self.sums, self.whole, twins)


class SeenRows:
    """Counts, part by part, how many rows of a table a model has learned from.

    Parameters
    ----------
    model : TableModel
    """

    def __init__(self, model: Any):
        self._model = model
        self._sketch = RowSketch.from_dict(model.card.get("training", {}).get("sketch"))
        self.looked_up = self.found = 0

    def add(self, frame: Frame) -> None:
        """Look up some of the rows."""
        if self._sketch is None:
            return
        columns, match = self._model.schema.read(frame)
        if not match.problems:
            looked_up, found = self._sketch.look_up(columns)
            self.looked_up += looked_up
            self.found += found

    @property
    def share(self) -> float:
        """Share of the rows that were learned from; zero where too few could be looked up."""
        return self.found / self.looked_up if self.looked_up >= _FEWEST else 0.0

    @property
    def note(self) -> str:
        """What to say of it; empty where rows were not learned from, or equal some by chance."""
        chance = 0.0 if self._sketch is None else self._sketch.twins
        if self.share <= chance + _NOTICED:
            return ""
        return (
            f"{about_share(self.share)} of these rows are rows that the model has learned from, so "
            "these figures flatter it; the figures on its card are those of rows held out."
        )


def row_checksums(columns: Mapping[str, AnyArray]) -> Checksums:
    """Return a checksum of each row over columns by name, in whatever order they come."""
    total: Checksums | None = None
    for name in sorted(columns):
        part = scramble_bits(_bits(columns[name]) ^ _word_checksum(name))
        total = part if total is None else total + part
    return np.zeros(0, dtype=np.uint64) if total is None else scramble_bits(total)


def _bits(values: AnyArray) -> Checksums:
    """Values as 64 bits that are the same for the same value."""
    if values.dtype.kind == "M":
        return values.astype("datetime64[us]").astype(np.int64).view(np.uint64)
    if values.dtype.kind in "fbiu":
        numbers = np.asarray(values, dtype=np.float64) + 0.0  # one zero
        return np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    words, place = np.unique(values.astype(str), return_inverse=True)
    sums = np.array([_word_checksum(word) for word in words.tolist()], dtype=np.uint64)
    return sums[place.reshape(-1)]


def _word_checksum(word: str) -> np.uint64:
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))
