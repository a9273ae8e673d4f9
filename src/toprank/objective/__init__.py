"""R_{g,l}: the objective in scores, and the same through a design matrix."""

from toprank.objective.curvature import boostable, derivatives_of, grad_curvature
from toprank.objective.data import BlockData, LabelledData, count_labels
from toprank.objective.duality import pair_weights, primal_dual_gap
from toprank.objective.forms import problem_of
from toprank.objective.labelled import View, open_block
from toprank.objective.max_price import MaxProblem
from toprank.objective.node_sums import NodesProblem
from toprank.objective.pointwise import PointwiseProblem
from toprank.objective.priced import PricedProblem
from toprank.objective.problem import LinearProblem, TwoClassProblem
from toprank.objective.risk import PushObjective, price_and_loss, push_objective
from toprank.objective.scored import ScoredProblem
from toprank.objective.swept import LargestHeight, ManySwept, SweptProblem
from toprank.objective.task import PointwiseTask, Task

__all__ = [
    "BlockData",
    "LabelledData",
    "LargestHeight",
    "LinearProblem",
    "ManySwept",
    "MaxProblem",
    "NodesProblem",
    "PointwiseProblem",
    "PointwiseTask",
    "PricedProblem",
    "PushObjective",
    "ScoredProblem",
    "SweptProblem",
    "Task",
    "TwoClassProblem",
    "View",
    "boostable",
    "count_labels",
    "derivatives_of",
    "grad_curvature",
    "open_block",
    "pair_weights",
    "price_and_loss",
    "primal_dual_gap",
    "problem_of",
    "push_objective",
]
