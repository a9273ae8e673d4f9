"""Training rows in blocks: what one block tells of the table, and how it becomes numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import Frame
from toprank._extras import require
from toprank._numerics import FloatArray, scramble_bits
from toprank.blocks import Block
from toprank.blocks.source import join_pieces
from toprank.models import frames
from toprank.models.block_tails import find_ends_in_blocks
from toprank.models.columns import Column, Unreadable, as_words, is_missing, tidy_words
from toprank.models.errors import ModelError
from toprank.models.moments import Moments
from toprank.models.preparation import ColumnFacts, Preparation
from toprank.models.rows import TrainingRows, drop_zero_weight
from toprank.models.schema import Schema, Target
from toprank.models.sketch import RowCounts
from toprank.models.summary import TableSummary, is_readable
from toprank.models.wishes import Wishes
from toprank.models.words import Words

if TYPE_CHECKING:
    import pyarrow as pa

    from toprank.blocks.tables import TableSource


@dataclass(frozen=True)
class UsableRows:
    """Which rows of a block count: those with a label and a weight above zero."""

    target: str
    weight: str | None = None
    skip: bool = False

    def of(self, frame: Frame) -> Frame:
        """Return the rows that count."""
        gaps = is_missing(frames.column(frame, self.target))
        if np.any(gaps):
            frame = frames.take(frame, np.flatnonzero(~gaps))
        return drop_zero_weight(frame, self.weight)


@dataclass(frozen=True)
class Described:
    """What the first pass over a table tells.

    Attributes
    ----------
    summary : TableSummary
        Of the rows that count.
    labels : Words
    unlabelled, total : int
        Rows without a label, and all rows.
    kept : dict
        How many rows of each block count, by its index.
    """

    summary: TableSummary
    labels: Words
    unlabelled: int
    total: int
    kept: dict[int, int]

    @property
    def n_rows(self) -> int:
        """Rows that count."""
        return sum(self.kept.values())

    def starts(self) -> dict[int, int]:
        """The number of the first row of each block, among those that count."""
        order = sorted(self.kept)
        firsts = np.cumsum([0, *(self.kept[index] for index in order)]).tolist()
        return dict(zip(order, firsts, strict=False))


@dataclass(frozen=True)
class DescribeRows:
    """The first pass: what the columns hold, which labels there are."""

    rows: UsableRows
    names: tuple[str, ...]
    wishes: Wishes
    tidy: bool = False

    def local(self, block: Block, state: None) -> Described:
        frame = self.rows.of(block.X)
        labels = frames.column(frame, self.rows.target)
        try:
            words = tidy_words(labels) if self.tidy else as_words(labels)
        except Unreadable as error:
            raise ModelError(f"{self.rows.target!r} cannot be the target: {error}.") from error
        gaps = is_missing(frames.column(block.X, self.rows.target))
        return Described(
            TableSummary.of(frame, self.names, self.wishes),
            Words.of(words),
            int(np.count_nonzero(gaps)),
            len(gaps),
            {block.index: frames.n_rows(frame)},
        )

    def merge(self, left: Described, right: Described) -> Described:
        return Described(
            left.summary.merge(right.summary),
            left.labels.merge(right.labels),
            left.unlabelled + right.unlabelled,
            left.total + right.total,
            _add_counts(left.kept, right.kept),
        )


def _add_counts(left: dict[int, int], right: dict[int, int]) -> dict[int, int]:
    """Rows by block; a partition of Spark may hand over several tables of one index."""
    shared = {index: left[index] + right[index] for index in left.keys() & right.keys()}
    return {**join_pieces(dict(left), dict(right)), **shared}


@dataclass(frozen=True)
class ReadColumns:
    """Reads columns of the rows that count; picklable."""

    rows: UsableRows

    def __call__(self, frame: Frame, columns: Sequence[Column]) -> Mapping[str, FloatArray]:
        """The values of each column, read as its kind."""
        kept, found = self.rows.of(frame), {}
        for column in columns:
            try:
                found[column.name] = column.read(frames.column(kept, column.name))
            except Unreadable as error:
                raise ModelError(f"column {column.name!r}: {error}.") from error
        return found


@dataclass(frozen=True)
class _FindMisread:
    """The columns that some block cannot be read by."""

    rows: UsableRows
    columns: tuple[Column, ...]

    def local(self, block: Block, state: None) -> list[str]:
        frame = self.rows.of(block.X)
        return [column.name for column in self.columns if not is_readable(column, frame)]

    def merge(self, left: list[str], right: list[str]) -> list[str]:
        return sorted({*left, *right})


@dataclass(frozen=True)
class BlocksLook:
    """A second look at a table in blocks, as `FrameLook` is one at a table in memory."""

    source: TableSource
    rows: UsableRows

    def find_misread(self, columns: Sequence[Column]) -> list[str]:
        """Return the names of the columns that cannot be read as they are described."""
        found: list[str] = self.source.map_reduce(_FindMisread(self.rows, tuple(columns)), None)
        return found

    def find_ends(self, columns: Sequence[Column]) -> dict[str, tuple[float, float]]:
        """Return where the tails of numbers begin, for the columns that hold some."""
        return find_ends_in_blocks(self.source, ReadColumns(self.rows), columns)


@dataclass(frozen=True)
class Learned:
    """What the second pass tells: how columns become numbers, a sample of the rows, their counts.

    Attributes
    ----------
    facts : ColumnFacts
    moments : dict
        Of columns of numbers, without weights: which tails are long.
    counts : RowCounts
    positives : int
    weight : float
        The sum of the weights, in the order of the blocks.
    sample : dict
        Tables of sampled rows by (block, number of the table in the block).
    """

    facts: ColumnFacts
    moments: dict[str, Moments]
    counts: RowCounts
    positives: int
    weight: float
    sample: list[pa.Table] = field(default_factory=list)


@dataclass(frozen=True)
class Sampling:
    """Which rows are drawn: by a checksum of their number, or of their group, which stays whole."""

    share: float
    seed: int = 0
    groups: str | None = None

    def of(self, frame: Frame, first: int) -> Frame:
        """The rows drawn from a table whose first row has this number."""
        return frame if self.share >= 1 else frames.take(frame, self.rows(frame, first))

    def rows(self, frame: object, first: int) -> NDArray[np.intp]:
        """Which rows are drawn from a table whose first row has this number."""
        if self.share >= 1:
            return np.arange(frames.n_rows(frame))
        if self.groups is None:
            keys = np.arange(first, first + frames.n_rows(frame), dtype=np.uint64)
        else:
            words = as_words(frames.column(frame, self.groups))
            hashed = require("pandas", "models").util.hash_array(words)
            keys = np.asarray(hashed, dtype=np.uint64)
        salt = np.uint64(0x9E3779B97F4A7C15 * (self.seed + 1) % 2**64)
        drawn = scramble_bits(keys + salt) < np.uint64(int(self.share * 2**64))
        return np.flatnonzero(drawn)


@dataclass(frozen=True)
class LearnRows:
    """The second pass: the facts of the preparation, the long tails, a sample of the rows."""

    rows: UsableRows
    schema: Schema
    target: Target
    style: str
    sampling: Sampling

    def local(self, block: Block, state: Mapping[int, int]) -> Learned:
        frame = self.rows.of(block.X)
        read = TrainingRows.read(frame, _without_roles(self.schema), self.target)
        facts = Preparation(self.style).describe(self.schema, read.X, read.weight)
        numbers = [c.name for c in self.schema.columns if c.kind == "number" and c.clip is None]
        if read.weight is None and self.style == "linear":
            moments = {name: facts.moments[name] for name in numbers}
        else:
            moments = Moments.of_columns((name, read.X[name]) for name in numbers)
        return Learned(
            facts,
            moments,
            RowCounts.of(read.X),
            read.n_positive,
            float(len(read) if read.weight is None else np.sum(read.weight)),
            [self.sampling.of(frame, state[block.index])],
        )

    def merge(self, left: Learned, right: Learned) -> Learned:
        return Learned(
            left.facts.merge(right.facts),
            {name: one.merge(right.moments[name]) for name, one in left.moments.items()},
            left.counts.merge(right.counts),
            left.positives + right.positives,
            left.weight + right.weight,
            [*left.sample, *right.sample],
        )


def _without_roles(schema: Schema) -> Schema:
    """The schema without groups and times, which single blocks need not have in order."""
    return replace(schema, groups=None, time=None)


@dataclass(frozen=True)
class LearnClipped:
    """A further pass: facts of the preparation and checksums, with the tails of columns clipped."""

    rows: UsableRows
    schema: Schema
    target: Target
    style: str

    def local(self, block: Block, state: None) -> tuple[ColumnFacts, RowCounts]:
        read = TrainingRows.read(self.rows.of(block.X), _without_roles(self.schema), self.target)
        facts = Preparation(self.style).describe(self.schema, read.X, read.weight)
        return facts, RowCounts.of(read.X)

    def merge(
        self, left: tuple[ColumnFacts, RowCounts], right: tuple[ColumnFacts, RowCounts]
    ) -> tuple[ColumnFacts, RowCounts]:
        return left[0].merge(right[0]), left[1].merge(right[1])


@dataclass(frozen=True)
class PrepareRows:
    """From a table to the numbers of the rows that count, their labels and weights."""

    rows: UsableRows
    schema: Schema
    target: Target
    preparation: Preparation

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.schema.weight is not None

    def __call__(self, frame: Frame) -> tuple[FloatArray, NDArray[np.bool_], FloatArray | None]:
        """Prepare the rows of a table."""
        read = TrainingRows.read(self.rows.of(frame), _without_roles(self.schema), self.target)
        if not len(read):
            empty = np.empty((0, len(self.preparation.names)))
            return empty, np.empty(0, dtype=bool), np.empty(0) if self.weighted else None
        return self.preparation.transform(read.X), np.asarray(read.y, dtype=bool), read.weight
