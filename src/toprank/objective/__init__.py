"""R_{g,l}: the objective in scores, and the same through a design matrix."""

from toprank.objective.curvature import boostable, derivatives_of, grad_curvature
from toprank.objective.data import BlockData, LabelledData, count_labels
from toprank.objective.duality import pair_weights, primal_dual_gap
from toprank.objective.forms import LargestHeight, ManySwept, SweptProblem, problem_of
from toprank.objective.labelled import View, open_block
from toprank.objective.max_price import MaxProblem
from toprank.objective.node_sums import NodesProblem
from toprank.objective.pair_dual import PairDual, dual_at
from toprank.objective.pair_entropy import PairEntropy
from toprank.objective.pointwise import PointwiseProblem
from toprank.objective.priced import PricedProblem
from toprank.objective.problem import LinearProblem, ScoredProblem, TwoClassProblem
from toprank.objective.related_dual import RelatedDual, related_dual_at
from toprank.objective.risk import (
    PointwiseTask,
    PushObjective,
    Task,
    build_objective,
    price_and_loss,
)

__all__ = [
    "BlockData",
    "LabelledData",
    "LargestHeight",
    "LinearProblem",
    "ManySwept",
    "MaxProblem",
    "NodesProblem",
    "PairDual",
    "PairEntropy",
    "PointwiseProblem",
    "PointwiseTask",
    "PricedProblem",
    "PushObjective",
    "RelatedDual",
    "ScoredProblem",
    "SweptProblem",
    "Task",
    "TwoClassProblem",
    "View",
    "boostable",
    "build_objective",
    "count_labels",
    "derivatives_of",
    "dual_at",
    "grad_curvature",
    "open_block",
    "pair_weights",
    "price_and_loss",
    "primal_dual_gap",
    "problem_of",
    "related_dual_at",
]
