"""Choosing how hard to push, for any estimator that has a parameter p."""

from toprank.tuning.choice import Candidate, PChoice
from toprank.tuning.choose_p import choose_p
from toprank.tuning.corrected import Difference, corrected_difference
from toprank.tuning.scoring import Scoring
from toprank.tuning.splits import TimeOrderedSplit, folds_of

__all__ = [
    "Candidate",
    "Difference",
    "PChoice",
    "Scoring",
    "TimeOrderedSplit",
    "choose_p",
    "corrected_difference",
    "folds_of",
]
