"""Scores of a table in blocks, where its rows lie: its highest rows, or all scores with labels."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import Frame
from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.blocks import Block
from toprank.blocks.source import join_pieces
from toprank.models import frames
from toprank.models.columns import as_words
from toprank.models.errors import ModelWarning
from toprank.models.model import TableModel
from toprank.models.rows import ScoredRows, read_weight
from toprank.models.sketch import SeenRows
from toprank.models.top_of_list import RunningTop
from toprank.pairs.row_columns import check_groups

if TYPE_CHECKING:
    from toprank.blocks.source import BlockSource
    from toprank.blocks.tables import TableSource


@dataclass(frozen=True)
class TopPart:
    """The highest rows of one block."""

    n: int
    scores: FloatArray
    places: NDArray[np.intp]
    rows: Frame
    cut: float
    tied_out: int


@dataclass(frozen=True)
class TopRows:
    """A pass that keeps the k highest rows of every block.

    Attributes
    ----------
    model : TableModel
    k : int
    columns : tuple of (str, str)
        The columns to keep, and what they are called in the answer.
    """

    model: TableModel
    k: int
    columns: tuple[tuple[str, str], ...]

    def local(self, block: Block, state: None) -> dict[int, TopPart]:
        arrow = require("pyarrow", "frames")
        names, made = zip(*self.columns, strict=True)
        kept = RunningTop(self.k)
        scores = _score(self.model, block.X)
        columns = [block.X.column(name) for name in names]
        kept.add(scores, arrow.Table.from_arrays(columns, list(made)))
        kept.settle()
        part = TopPart(kept.n, kept.scores, kept.places, kept.rows, kept.cut, kept.tied_out)
        return {block.index: part}

    def merge(self, left: dict[int, TopPart], right: dict[int, TopPart]) -> dict[int, TopPart]:
        return join_pieces(left, right)


def top_of_blocks(
    model: TableModel, source: BlockSource, k: int, columns: Sequence[tuple[str, str]]
) -> RunningTop:
    """Return the k highest rows of a table in blocks, as `RunningTop` keeps those of a stream.

    Parameters
    ----------
    model : TableModel
    source : TableSource
        From `toprank.blocks.from_tables`.
    k : int
    columns : sequence of (str, str)
        The columns wanted, and what they are called in the answer.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from toprank import blocks
    >>> from toprank.models import fit_table
    >>> from toprank.models.block_scores import top_of_blocks
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"name": np.arange(300), "x": rng.normal(size=300)})
    >>> frame["y"] = (frame.x + rng.normal(size=300) > 1.5).astype(int)
    >>> model = fit_table(frame, "y", id="name", p=4)
    >>> source = blocks.from_tables(lambda: (frame[i : i + 70] for i in range(0, 300, 70)))
    >>> top = top_of_blocks(model, source, 2, [("name", "name")])
    >>> top.rows.column("name").to_pylist() == frame.nlargest(2, "x").name.tolist()
    True
    """
    found = source.map_reduce(TopRows(model, k, tuple(columns)), None)
    parts = [found[index] for index in sorted(found)]
    starts = np.cumsum([0, *(part.n for part in parts)])
    scores = np.concatenate([part.scores for part in parts])
    places = np.concatenate([p.places + s for p, s in zip(parts, starts[:-1], strict=True)])
    rows = require("pyarrow", "frames").concat_tables(
        [part.rows for part in parts], promote_options="permissive"
    )
    order = np.argsort(-scores, kind="stable")  # what came first stays first
    chosen, left = order[:k], order[k:]
    top = RunningTop(k)
    top.n = int(starts[-1])
    top.scores, top.places, top.rows = scores[chosen], places[chosen], rows.take(chosen)
    top.tied_out = int(np.count_nonzero(scores[left] == top.cut))
    top.tied_out += sum(part.tied_out for part in parts if part.cut == top.cut)
    return top


@dataclass(frozen=True)
class _ScorePart:
    scores: FloatArray
    positive: NDArray[np.bool_]
    weight: FloatArray | None
    groups: np.ndarray | None
    looked_up: int
    found: int


@dataclass(frozen=True)
class ScoreRows:
    """A pass that brings back the score, the label, the weight and the group of every row."""

    model: TableModel
    target: str
    weight: str | None
    groups: str | None

    def local(self, block: Block, state: None) -> dict[int, _ScorePart]:
        seen = SeenRows(self.model)
        seen.add(block.X)
        groups = None if self.groups is None else as_words(frames.column(block.X, self.groups))
        part = _ScorePart(
            _score(self.model, block.X),
            self.model.target.of(frames.column(block.X, self.target)),
            read_weight(block.X, self.weight),
            groups,
            seen.looked_up,
            seen.found,
        )
        return {block.index: part}

    def merge(
        self, left: dict[int, _ScorePart], right: dict[int, _ScorePart]
    ) -> dict[int, _ScorePart]:
        return join_pieces(left, right)


def score_blocks(
    model: TableModel, source: TableSource, target: str, weight: str | None, groups: str | None
) -> tuple[ScoredRows, SeenRows]:
    """Return the scores and labels of a table in blocks, and how many rows were learned from.

    Parameters
    ----------
    model : TableModel
    source : TableSource
        From `toprank.blocks.from_tables`.
    target : str
        Column of the labels.
    weight, groups : str or None
        Columns of repetition counts and of groups.
    """
    found = source.map_reduce(ScoreRows(model, target, weight, groups), None)
    parts = [found[index] for index in sorted(found)]
    positive = np.concatenate([part.positive for part in parts])
    scores = np.concatenate([part.scores for part in parts])
    counts = None if weight is None else np.concatenate([part.weight for part in parts])
    words = None if groups is None else np.concatenate([part.groups for part in parts])
    seen = SeenRows(model)
    seen.looked_up = sum(part.looked_up for part in parts)
    seen.found = sum(part.found for part in parts)
    clusters = check_groups(words, len(scores))
    return ScoredRows(None, positive, counts, clusters, scores=scores), seen


def _score(model: TableModel, table: object) -> FloatArray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # new categories count as none
        return model.score(table)
