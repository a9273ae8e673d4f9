"""Where the tails of columns begin, exactly, over rows in blocks: order statistics in two passes.

The first pass counts numbers by the leading bits of their floating-point form, which tells between
which two of these the numbers wanted lie; the second collects the outer numbers only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray, LongTail
from toprank.blocks import Block
from toprank.models.columns import Column
from toprank.models.moments import Moments
from toprank.models.wishes import CLIPPED

if TYPE_CHECKING:
    import pyarrow as pa

    from toprank.blocks.tables import TableSource

#: Bits by which numbers are first told apart: sign, exponent and four of the mantissa.
_BITS = 16
#: Standard deviations from the mean at which the farthest number of a long tail lies at least.
_FAR = 50.0

#: Reads columns of a table, of the rows that count.
ReadNumbers: TypeAlias = "Callable[[pa.Table, Sequence[Column]], Mapping[str, FloatArray]]"


def ordered_bits(numbers: FloatArray) -> NDArray[np.uint64]:
    """Return whole numbers in the order of the floats that they stand for.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.models.block_tails import ordered_bits
    >>> bool(np.all(np.diff(ordered_bits(np.array([-2.0, -0.5, 0.0, 1e-300, 7.0]))) > 0))
    True
    """
    bits = (np.asarray(numbers, dtype=np.float64) + 0.0).view(np.uint64)
    negative = bits >> np.uint64(63) == 1
    return np.where(negative, ~bits, bits | np.uint64(1 << 63))


@dataclass(frozen=True)
class _CountBits:
    """Counts the numbers of columns by their leading bits."""

    read: ReadNumbers
    columns: tuple[Column, ...]

    def local(self, block: Block, state: None) -> dict[str, NDArray[np.int64]]:
        found = {}
        for name, numbers in self.read(block.X, self.columns).items():
            keys = ordered_bits(numbers[~np.isnan(numbers)]) >> np.uint64(64 - _BITS)
            found[name] = np.bincount(keys.astype(np.intp), minlength=1 << _BITS)
        return found

    def merge(
        self, left: dict[str, NDArray[np.int64]], right: dict[str, NDArray[np.int64]]
    ) -> dict[str, NDArray[np.int64]]:
        return {name: counts + right[name] for name, counts in left.items()}


@dataclass(frozen=True)
class _CollectOuter:
    """Collects the numbers up to a key, and those from another one on."""

    read: ReadNumbers
    columns: tuple[Column, ...]

    def local(
        self, block: Block, state: Mapping[str, tuple[int, int]]
    ) -> dict[str, tuple[FloatArray, ...]]:
        found: dict[str, tuple[FloatArray, ...]] = {}
        for name, numbers in self.read(block.X, self.columns).items():
            there = numbers[~np.isnan(numbers)]
            keys = (ordered_bits(there) >> np.uint64(64 - _BITS)).astype(np.int64)
            low, high = state[name]
            found[name] = there[keys <= low], there[(keys >= high) & (keys > low)]
        return found

    def merge(
        self, left: dict[str, tuple[FloatArray, ...]], right: dict[str, tuple[FloatArray, ...]]
    ) -> dict[str, tuple[FloatArray, ...]]:
        return {
            name: tuple(np.concatenate(pair) for pair in zip(ends, right[name], strict=True))
            for name, ends in left.items()
        }


@dataclass(frozen=True)
class _CollectDistinct:
    """Collects the different numbers of columns in which most are the same."""

    read: ReadNumbers
    columns: tuple[Column, ...]

    def local(self, block: Block, state: None) -> dict[str, FloatArray]:
        read = self.read(block.X, self.columns)
        return {name: np.unique(x[~np.isnan(x)]) for name, x in read.items()}

    def merge(
        self, left: dict[str, FloatArray], right: dict[str, FloatArray]
    ) -> dict[str, FloatArray]:
        return {name: np.union1d(some, right[name]) for name, some in left.items()}


@dataclass(frozen=True)
class OuterNumbers:
    """The lowest and the highest numbers of a column, in order, and how many there are in all."""

    n: int
    lowest: FloatArray
    highest: FloatArray

    def at(self, place: int) -> float:
        """The number at a place of the sorted column, counted from 0."""
        if place < len(self.lowest):
            return float(self.lowest[place])
        return float(self.highest[place - self.n + len(self.highest)])

    def quantile(self, share: float) -> float:
        """As ``np.quantile`` of the whole column, to the same bits."""
        virtual = share * (self.n - 1)
        place = int(np.floor(virtual))
        part = virtual - place
        a, b = self.at(place), self.at(min(place + 1, self.n - 1))
        return b - (b - a) * (1 - part) if part >= 0.5 else a + (b - a) * part

    def at_share(self, share: float) -> float:
        """The first number up to which at least this share of the column lies."""
        return self.at(int(np.ceil(share * self.n)) - 1)


def collect_outer(
    source: TableSource, read: ReadNumbers, columns: Sequence[Column]
) -> dict[str, OuterNumbers]:
    """Return the outer numbers of columns, those at the shares of `CLIPPED` included."""
    chosen = tuple(columns)
    counts = source.map_reduce(_CountBits(read, chosen), None)
    cuts = {name: _outer_keys(found) for name, found in counts.items()}
    ends = source.map_reduce(_CollectOuter(read, chosen), cuts)
    return {
        name: OuterNumbers(int(counts[name].sum()), np.sort(low), np.sort(high))
        for name, (low, high) in ends.items()
    }


def _outer_keys(counts: NDArray[np.int64]) -> tuple[int, int]:
    """The leading bits up to which, and from which on, numbers are collected."""
    n = int(counts.sum())
    steps = np.cumsum(counts)
    # one place more on either side, between which a quantile is interpolated
    low = int(np.searchsorted(steps, min(n, int(CLIPPED[0] * n) + 2)))
    high = int(np.searchsorted(steps, max(1, int(CLIPPED[1] * n) - 2)))
    return low, high


def collect_distinct(
    source: TableSource, read: ReadNumbers, columns: Sequence[Column]
) -> dict[str, FloatArray]:
    """Return the different numbers of columns."""
    found: dict[str, FloatArray] = source.map_reduce(_CollectDistinct(read, tuple(columns)), None)
    return found


def find_ends_in_blocks(
    source: TableSource, read: ReadNumbers, columns: Sequence[Column]
) -> dict[str, tuple[float, float]]:
    """Where the tails begin that are to be clipped; as `wishes.find_ends` of the whole columns."""
    outer = {n: one for n, one in collect_outer(source, read, columns).items() if one.n}
    ends = {n: tuple(one.quantile(q) for q in CLIPPED) for n, one in outer.items()}
    flat = [c for c in columns if c.name in ends and ends[c.name][0] == ends[c.name][1]]
    if flat:
        for name, numbers in collect_distinct(source, read, flat).items():
            ends[name] = tuple(float(q) for q in np.quantile(numbers, CLIPPED))
    return {name: (pair[0], pair[1]) for name, pair in ends.items()}


def find_tails_in_blocks(
    source: TableSource,
    read: ReadNumbers,
    columns: Sequence[Column],
    moments: Mapping[str, Moments],
) -> dict[str, LongTail]:
    """The long tails of columns; as `toprank._numerics.find_long_tail` of the whole columns."""
    far: dict[str, tuple[float, float]] = {}
    for column in columns:
        one = moments[column.name]
        n, spread = one.rows - one.missing, np.sqrt(one.variance)
        if not n or not spread > 0:
            continue
        farthest = max((one.low, one.high), key=lambda end: abs(end - one.mean))
        away = abs(farthest - one.mean) / spread
        if away >= min(_FAR, 0.9 * np.sqrt(n)):
            far[column.name] = farthest, float(away)
    chosen = [c for c in columns if c.name in far]
    if not chosen:
        return {}
    outer = collect_outer(source, read, chosen)
    ends = {n: tuple(one.at_share(q) for q in CLIPPED) for n, one in outer.items()}
    flat = [c for c in chosen if ends[c.name][0] == ends[c.name][1]]
    if flat:
        for name, numbers in collect_distinct(source, read, flat).items():
            if len(numbers) >= 3:  # not a flag
                places = [int(q * (len(numbers) - 1)) for q in CLIPPED]
                ends[name] = tuple(float(numbers[place]) for place in places)
    return {
        name: LongTail(low, high, *far[name]) for name, (low, high) in ends.items() if low < high
    }
