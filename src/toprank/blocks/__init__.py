"""Sources of row blocks and the one map-reduce that every sweep over the data goes through."""

from toprank.blocks.batches import from_batches, from_csv, from_query
from toprank.blocks.checkpoint import with_checkpoint
from toprank.blocks.dask import from_dask
from toprank.blocks.memory import from_arrays, from_memmap
from toprank.blocks.negatives import sample_negatives
from toprank.blocks.parquet import from_parquet
from toprank.blocks.retries import StoreError
from toprank.blocks.source import Block, BlockSource, Sweep
from toprank.blocks.spark import from_spark, spark_session
from toprank.blocks.statistics import Units
from toprank.blocks.table_sources import from_tables
from toprank.blocks.threads import Workers, go_on
from toprank.blocks.torch import from_torch

__all__ = [
    "Block",
    "BlockSource",
    "StoreError",
    "Sweep",
    "Units",
    "Workers",
    "from_arrays",
    "from_batches",
    "from_csv",
    "from_dask",
    "from_memmap",
    "from_parquet",
    "from_query",
    "from_spark",
    "from_tables",
    "from_torch",
    "go_on",
    "sample_negatives",
    "spark_session",
    "with_checkpoint",
]
