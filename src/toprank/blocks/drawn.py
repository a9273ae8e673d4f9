"""Rows that are drawn from a block source by a hash, and brought to this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy import sparse

from toprank._arrays import AnyArray, Matrix
from toprank._numerics import sum_of_squares
from toprank.blocks.row_keys import hash_rows, hash_values
from toprank.blocks.source import Block, BlockSource, join_pieces
from toprank.blocks.statistics import refusal

#: Bytes of the features that are drawn, at most.
_MOST_BYTES = 1 << 28


#: The rows drawn of one block: their entries, labels, weights and groups; and a column of the
#: block that holds an infinity, if any does.
Drawn: TypeAlias = "tuple[AnyArray | int | None, ...]"


@dataclass(frozen=True)
class Draw:
    """A pass that brings back the rows whose hash, or that of their group, is below a share."""

    share: float
    seed: int
    by_group: bool

    def local(self, block: Block, state: None) -> dict[int, Drawn]:
        X = block.X.cpu().numpy() if hasattr(block.X, "cpu") else block.X
        if self.share >= 1:
            chosen = np.ones(block.n_rows, dtype=bool)
        else:
            what = block.groups if self.by_group else X
            keys = (hash_values if self.by_group else hash_rows)(what, self.seed)
            chosen = keys < np.uint64(int(self.share * 2**64))
        if block.weight is not None:
            chosen &= np.asarray(block.weight) > 0
        rows = np.flatnonzero(chosen)
        infinite = _infinite_column(X)
        X = X[rows]
        X = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
        others = (block.y, block.weight, block.groups)
        drawn = (None if one is None else np.asarray(one)[rows] for one in others)
        return {block.index: (X, *drawn, infinite)}

    def merge(self, left: dict[int, Drawn], right: dict[int, Drawn]) -> dict[int, Drawn]:
        return join_pieces(left, right)


def _infinite_column(X: Matrix) -> int | None:
    """The first column with an infinity, whose rows no ranker takes."""
    held = sparse.coo_array(X) if sparse.issparse(X) else None
    values: AnyArray = X[:] if held is None else held.data
    if values.dtype.kind != "f" or np.isfinite(sum_of_squares(values)):
        return None
    wrong = np.isinf(values)
    if not wrong.any():
        return None
    columns = np.flatnonzero(wrong.any(axis=0)) if held is None else held.col[wrong]
    return int(columns.min())


def draw_rows(
    source: BlockSource, most: int, n_rows: int, seed: int, *, by_group: bool = False
) -> Block:
    """Return about so many rows of a source in memory, in their order.

    Which ones depends on what the rows hold alone, or on their groups, which stay whole. Rows of
    weight zero are left out. An infinity anywhere is refused, in rows that are not drawn as well.

    Parameters
    ----------
    source : BlockSource
    most : int
        Rows that are wanted, all of them if there are no more; fewer where they would take more
        than 256 MB.
    n_rows : int
        Rows there are.
    seed : int
    by_group : bool, default=False
        Whether whole groups are drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank import blocks
    >>> from toprank.blocks.drawn import draw_rows
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> source = blocks.from_arrays(X, X[:, 0] > 1, block_rows=300)
    >>> 70 < draw_rows(source, 100, 1000, seed=0).n_rows < 130
    True
    """
    most = min(most, max(2, _MOST_BYTES // (8 * max(1, source.n_features))))
    share = 1.0 if n_rows <= most else most / n_rows
    pieces = source.map_reduce(Draw(share, seed, by_group), None)
    *columns, infinite = zip(*(pieces[index] for index in sorted(pieces)), strict=True)
    for index, column in zip(sorted(pieces), infinite, strict=True):
        if column is not None:
            names = source.feature_names
            name = f"column {column}" if names is None else f"column {names[column]!r}"
            raise ValueError(refusal("infinity", f"{name}, in {source.name_of(index)}"))
    X, y, weight, groups = (
        None if parts[0] is None else np.concatenate(parts) for parts in map(list, columns)
    )
    return Block(0, X, y, weight, groups)
