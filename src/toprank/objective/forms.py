"""Which form of the objective a task has: the one that passes over the rows the fewest times."""

from __future__ import annotations

from toprank.objective.data import LabelledData
from toprank.objective.max_price import MaxProblem
from toprank.objective.node_sums import NodesProblem
from toprank.objective.pointwise import PointwiseProblem
from toprank.objective.priced import PricedProblem
from toprank.objective.problem import TwoClassProblem
from toprank.objective.scored import ScoredProblem
from toprank.objective.swept import LargestHeight, SweptProblem
from toprank.objective.task import PointwiseTask, Task
from toprank.prices import Max, Power


def problem_of(
    data: LabelledData, task: Task | PointwiseTask, *, gather: bool = False
) -> TwoClassProblem:
    """Return the problem of a task on some rows.

    ``gather`` asks for scores on the driver, which coordinate descent needs.
    """
    if isinstance(task, PointwiseTask):
        return PointwiseProblem(data, task)
    if gather:
        return ScoredProblem(data, task)
    if task.loss.factorises:
        if isinstance(task.price, Power):
            return SweptProblem(data, task)
        if isinstance(task.price, Max):
            return LargestHeight(data, task)
        return PricedProblem(data, task)
    if MaxProblem.suits(task):
        return MaxProblem(data, task)
    if NodesProblem.suits(data, task):
        return NodesProblem(data, task)
    return ScoredProblem(data, task)
