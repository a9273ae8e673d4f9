"""R_{g,l}: the objective in scores, and the same through a design matrix."""

from toprank.objective.risk import PushObjective, push_objective

__all__ = ["PushObjective", "push_objective"]
