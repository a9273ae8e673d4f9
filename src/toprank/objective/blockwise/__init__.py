"""Objectives over the blocks of a source: every pass is a sweep that maps and merges."""

from __future__ import annotations

from typing import Any

from toprank.objective.blockwise.data import BlockData, count_labels
from toprank.objective.blockwise.gathered import BlockPeaked, BlockScored
from toprank.objective.blockwise.node_sums import BlockNodes
from toprank.objective.blockwise.pointwise import BlockPointwise
from toprank.objective.blockwise.priced import BlockPriced
from toprank.objective.blockwise.problem import BlockMax, BlockSwept, Blockwise
from toprank.objective.blockwise.rows import OpenBlock, View, open_block
from toprank.objective.max_price import MaxProblem
from toprank.objective.pointwise import PointwiseTask
from toprank.prices import Max, Power

__all__ = [
    "BlockData",
    "BlockMax",
    "BlockNodes",
    "BlockPeaked",
    "BlockPointwise",
    "BlockPriced",
    "BlockScored",
    "BlockSwept",
    "Blockwise",
    "OpenBlock",
    "View",
    "block_problem",
    "count_labels",
    "open_block",
]


def block_problem(data: BlockData, task: Any, *, gather: bool = False) -> Any:
    """Return the problem that makes the fewest passes and holds the least on the driver.

    ``gather`` asks for scores on the driver, which coordinate descent needs.
    """
    if isinstance(task, PointwiseTask):
        return BlockPointwise(data, task)
    if not gather and MaxProblem.suits(task):
        return BlockPeaked(data, task)
    if not gather and BlockNodes.suits(data, task):
        return BlockNodes(data, task)
    if gather or not task.loss.factorises:
        return BlockScored(data, task)
    if isinstance(task.price, Power):
        return BlockSwept(data, task)
    if isinstance(task.price, Max):
        return BlockMax(data, task)
    return BlockPriced(data, task)
