"""Minimisers of convex problems; they know nothing of scikit-learn, labels or losses."""

from __future__ import annotations

from toprank.solvers.bounded import free_gradient
from toprank.solvers.coordinate import coordinate
from toprank.solvers.lbfgs import lbfgs
from toprank.solvers.minimise import minimise
from toprank.solvers.newton import newton
from toprank.solvers.result import SEPARABLE, Problem, Result, duality_gap, penalty_gap
from toprank.solvers.smooth import Minimiser

SOLVERS: dict[str, Minimiser] = {"lbfgs": lbfgs, "newton": newton, "coordinate": coordinate}

__all__ = [
    "SEPARABLE",
    "SOLVERS",
    "Problem",
    "Result",
    "coordinate",
    "duality_gap",
    "free_gradient",
    "lbfgs",
    "minimise",
    "newton",
    "penalty_gap",
]
