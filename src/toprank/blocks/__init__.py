"""Sources of row blocks and the one map-reduce that every sweep over the data goes through."""

from toprank.blocks.arrays import RowBlocks, safe_centre
from toprank.blocks.threads import Workers

__all__ = ["RowBlocks", "Workers", "safe_centre"]
