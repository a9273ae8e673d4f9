"""A sample of the rows of a table in blocks, brought here from wherever they lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toprank._extras import require
from toprank.blocks import Block
from toprank.blocks.source import join_pieces
from toprank.models.block_rows import Sampling

if TYPE_CHECKING:
    import pyarrow as pa

    from toprank._arrays import Frame
    from toprank.blocks.source import BlockSource


@dataclass(frozen=True)
class CountRows:
    """A pass that counts the rows of every block."""

    def local(self, block: Block, state: None) -> dict[int, int]:
        return {block.index: int(block.X.num_rows)}

    def merge(self, left: dict[int, int], right: dict[int, int]) -> dict[int, int]:
        return join_pieces(left, right)


@dataclass(frozen=True)
class TakeRows:
    """A pass that brings back some rows; the state are the numbers of the blocks' first rows."""

    sampling: Sampling

    def local(self, block: Block, state: Mapping[int, int]) -> dict[int, pa.Table]:
        return {block.index: self.sampling.of(block.X, state[block.index])}

    def merge(self, left: dict[int, pa.Table], right: dict[int, pa.Table]) -> dict[int, pa.Table]:
        return join_pieces(left, right)


def sample_of_blocks(source: BlockSource, share_of: Callable[[int], float]) -> tuple[Frame, int]:
    """Return a share of the rows of a table in blocks, in their order, and how many there are.

    Which rows are drawn depends on their numbers alone: the same ones on every engine.

    Parameters
    ----------
    source : TableSource
        From `toprank.blocks.from_tables`.
    share_of : callable
        From the number of all rows to the share that is wanted.

    Examples
    --------
    >>> import pandas as pd
    >>> from toprank import blocks
    >>> from toprank.models.block_samples import sample_of_blocks
    >>> frame = pd.DataFrame({"x": range(1000)})
    >>> source = blocks.from_tables(lambda: (frame[i : i + 300] for i in range(0, 1000, 300)))
    >>> rows, total = sample_of_blocks(source, lambda n: 100 / n)
    >>> total, 70 < rows.num_rows < 130
    (1000, True)
    """
    counts = source.map_reduce(CountRows(), None)
    starts, total = {}, 0
    for index in sorted(counts):
        starts[index] = total
        total += counts[index]
    found = source.map_reduce(TakeRows(Sampling(share_of(max(1, total)))), starts)
    parts = [found[index] for index in sorted(found)]
    arrow = require("pyarrow", "frames")
    return arrow.concat_tables(parts, promote_options="permissive").combine_chunks(), total
