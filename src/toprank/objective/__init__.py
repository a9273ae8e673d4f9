"""R_{g,l}: the objective in scores, and the same through a design matrix."""

from toprank.objective.curvature import boostable, derivatives_of, grad_curvature
from toprank.objective.duality import has_dual, pair_weights, primal_dual_gap
from toprank.objective.linear import (
    LinearProblem,
    ScoredProblem,
    SweptProblem,
    Task,
    linear_problem,
)
from toprank.objective.many import ManySwept
from toprank.objective.max_price import MaxProblem
from toprank.objective.pointwise import PointwiseProblem, PointwiseTask
from toprank.objective.risk import PushObjective, price_and_loss, push_objective

__all__ = [
    "LinearProblem",
    "ManySwept",
    "MaxProblem",
    "PointwiseProblem",
    "PointwiseTask",
    "PushObjective",
    "ScoredProblem",
    "SweptProblem",
    "Task",
    "boostable",
    "derivatives_of",
    "grad_curvature",
    "has_dual",
    "linear_problem",
    "pair_weights",
    "price_and_loss",
    "primal_dual_gap",
    "push_objective",
]
