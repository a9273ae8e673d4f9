"""Where tables of any columns come from: files, frames of Dask and Spark, batches."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from toprank.blocks.columns import check_block_rows
from toprank.blocks.dask_tables import DaskTables
from toprank.blocks.parquet_files import read_footer
from toprank.blocks.places import find_files
from toprank.blocks.spark_tables import SparkTables
from toprank.blocks.tables import BatchTables, ParquetTables


def from_tables(
    rows: Any,
    *,
    columns: Sequence[str] | None = None,
    block_rows: int | None = None,
    cluster: object = None,
) -> ParquetTables | BatchTables | DaskTables | SparkTables:
    """Rows of a table whose columns may be words, dates, truth values, with missing values.

    For `toprank.models.fit_table_blocks`, which prepares them as `fit_table` prepares a frame.

    Parameters
    ----------
    rows : path, dask data frame, Spark data frame, or callable
        A Parquet file, folder, pattern, address or list of these, as in `from_parquet`; a frame of
        Dask or Spark, whose partitions are the blocks; or a function that starts a pass and returns
        an iterable of tables, as in `from_batches`.
    columns : sequence of str, optional
        The columns to read, of files; by default all.
    block_rows : int, optional
        Rows of a block, where this process reads them.
    cluster : distributed.Client or pyspark.sql.SparkSession, optional
        Where files are read and rows are held: the row groups are shared out among its workers,
        which must reach the files under the same paths. By default this process reads them.

    Returns
    -------
    TableSource

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from toprank import blocks
    >>> from toprank.models import fit_table_blocks
    >>> frame = pd.DataFrame({"city": ["Rome", "Oslo", None] * 60, "visits": range(180)})
    >>> frame["bought"] = [int(i % 7 > 3 or i > 120) for i in range(180)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame.to_parquet(f"{folder}/leads.parquet")
    ...     source = blocks.from_tables(folder)
    ...     model = fit_table_blocks(source, "bought", model="pnorm", p=4)
    >>> model.preparation.names.tolist()
    ['visits', 'city = Oslo', 'city = Rome', 'city = ']
    """
    check_block_rows(block_rows)
    if hasattr(rows, "mapInArrow"):
        return SparkTables.of_frame(rows)
    if hasattr(rows, "to_delayed"):
        return DaskTables.of_frame(rows, cluster)
    if callable(rows):
        return BatchTables(rows, "the batches", block_rows)
    tables = _open_files(rows, columns, block_rows)
    if cluster is None:
        return tables
    if hasattr(cluster, "sparkContext"):
        return SparkTables.of_files(tables, cluster)
    return DaskTables.of_files(tables, cluster)


def _open_files(
    path: str | os.PathLike[str], columns: Sequence[str] | None, block_rows: int | None
) -> ParquetTables:
    footers = [read_footer(file) for file in find_files(path)]
    schema = footers[0][1]
    names = list(schema.names) if columns is None else list(columns)
    missing = [name for name in names if name not in schema.names]
    if missing:
        raise ValueError(f"{footers[0][0].path} has no column {missing[0]!r}.")
    for part, other in footers[1:]:
        lacking = [name for name in names if name not in other.names]
        if lacking:
            raise ValueError(
                f"{part.path} has no column {lacking[0]!r}, which {footers[0][0].path} has. All "
                "files must have the same columns; leave it out with columns=, or add it."
            )
    return ParquetTables([part for part, _ in footers], schema, names, block_rows)
