"""Tables of any columns on the workers of Dask: partitions of a frame, or row groups of files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from toprank._extras import require
from toprank.blocks.batches import as_table
from toprank.blocks.dask import DaskBlocks, _chunks, _token
from toprank.blocks.dask_tasks import KnownPlaces
from toprank.blocks.source import Block, BlockSource, Progress
from toprank.blocks.tables import ParquetTables, Prepare, with_times

if TYPE_CHECKING:
    import dask.dataframe as dd
    from dask.delayed import Delayed
    from distributed import Client


class DaskTables(DaskBlocks):
    """Arrow tables that workers read anew at every pass; their numbers stay with the workers."""

    def __init__(
        self, tables: list[Delayed], names: list[str], client: Client | None, verbose: int = 0
    ):
        self._hold(tables, client, verbose, persist=False)
        self.names = names
        self.n_features = len(names)
        self.feature_names = np.array(names, dtype=object)

    def _hold(
        self, blocks: list[Delayed], client: Client | None, verbose: int, persist: bool
    ) -> None:
        self._dask = require("dask", "dask")
        self._client = client
        self._progress = Progress(verbose)
        self._persists = persist
        self._answers = {}
        self._places = KnownPlaces()
        self._blocks = list(self._persist(blocks)) if persist else blocks
        self._rows = [float("nan")] * len(blocks)
        self._graph = {
            key: task for block in self._blocks for key, task in dict(block.dask).items()
        }

    @classmethod
    def of_frame(cls, frame: dd.DataFrame, client: Client | None = None) -> DaskTables:
        """The partitions of a data frame."""
        make = require("dask", "dask").delayed(_make_table, pure=False)
        token = f"toprank-table-{_token()}"
        tables = [
            make(index, part, dask_key_name=(token, index))
            for index, part in enumerate(_chunks(frame))
        ]
        return cls(tables, [str(name) for name in frame.columns], client)

    @classmethod
    def of_files(cls, files: ParquetTables, client: Client | None = None) -> DaskTables:
        """The row groups of Parquet files, which the workers read."""
        read = require("dask", "dask").delayed(_read_table, pure=False)
        token = f"toprank-table-{_token()}"
        tables = [
            read(index, files, *place, dask_key_name=(token, index))
            for index, place in enumerate(files.groups)
        ]
        return cls(tables, files.names, client)

    @contextmanager
    def numbers(self, prepare: Prepare, n_rows: int, n_features: int) -> Iterator[BlockSource]:
        """Let the workers prepare their blocks, and keep the numbers."""
        make = self._dask.delayed(_prepare_block, pure=False)
        token = f"toprank-numbers-{_token()}"
        blocks = [
            make(table, prepare, dask_key_name=(token, index))
            for index, table in enumerate(self._blocks)
        ]
        held = _DaskNumbers(blocks, n_features, self._client, self._progress.verbose)
        try:
            yield held
        finally:
            held.close()


class _DaskNumbers(DaskTables):
    """Numbers that stay with the workers that prepared them."""

    def __init__(self, blocks: list[object], n_features: int, client: Client | None, verbose: int):
        self._hold(blocks, client, verbose, persist=True)
        self.n_features = n_features
        self.feature_names = None


def _make_table(index: int, part: object) -> Block:
    return Block(index, with_times(as_table(part)))


def _read_table(index: int, files: ParquetTables, file: int, group: int) -> Block:
    return Block(index, files.read_group(file, group))


def _prepare_block(block: Block, prepare: Prepare) -> Block:
    return Block(block.index, *prepare(block.X))
