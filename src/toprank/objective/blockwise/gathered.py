"""Any price and loss over blocks, exactly, with the scores gathered on the driver.

One pass brings the score of every row to the driver (8 bytes a row), where the objective is
evaluated as for an array; a second one takes its gradient in the scores back to the blocks,
cut into their pieces. For losses whose pair sums do not merge (hinges: exact by sorting), for few
rows, and for coordinate descent.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from toprank.objective.blockwise.data import BlockData
from toprank.objective.blockwise.problem import Blockwise
from toprank.objective.linear import LinearProblem, ScoredProblem
from toprank.objective.max_price import MaxProblem


def _labelled(source: BlockData, task: Any) -> Any:
    """The task with the labels and weights of all rows, gathered unless it has them."""
    if task.positive is not None:
        return task
    positive, weight = source.labels()
    return replace(task, positive=positive, weight=weight)


class BlockScored(Blockwise, ScoredProblem):
    """Scores, the objective in scores, X' times its gradient: two passes an evaluation."""

    def __init__(self, source: BlockData, task: Any):
        super().__init__(source, _labelled(source, task))

    def _with(self, task: Any) -> LinearProblem:
        return BlockScored(self.source, task)


class BlockPeaked(Blockwise, MaxProblem):
    """The largest height with a loss other than the exponential, as for an array."""

    def __init__(self, source: BlockData, task: Any):
        super().__init__(source, _labelled(source, task))

    def _with(self, task: Any) -> LinearProblem:
        return BlockScored(self.source, task)

    def smooth_in_loss(self, level: float) -> MaxProblem:
        if self.task.loss.smooth:
            return self
        return BlockPeaked(self.source, replace(self.task, loss=self.task.loss.smoothed(level)))
