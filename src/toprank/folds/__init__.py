"""Cross-validation: folds, what they are scored by, and the choice between settings."""

from toprank.folds.choice import RULES, Candidate, PChoice, check_powers
from toprank.folds.compare import compare_settings, tested_over_trained
from toprank.folds.corrected import Difference, corrected_difference
from toprank.folds.scoring import Scoring
from toprank.folds.splits import Fold, TimeOrderedSplit, folds_of

__all__ = [
    "RULES",
    "Candidate",
    "Difference",
    "Fold",
    "PChoice",
    "Scoring",
    "TimeOrderedSplit",
    "check_powers",
    "compare_settings",
    "corrected_difference",
    "folds_of",
    "tested_over_trained",
]
