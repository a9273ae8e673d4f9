"""Sources of row blocks and the one map-reduce that every sweep over the data goes through."""

from toprank.blocks.arrays import RowBlocks, Units, safe_units
from toprank.blocks.threads import Workers

__all__ = ["RowBlocks", "Units", "Workers", "safe_units"]
