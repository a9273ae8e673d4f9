"""Cross-validation: folds, what they are scored by, and the choice between settings."""

from toprank.folds.block_folds import folds_on_blocks, row_folds
from toprank.folds.block_models import check_fits_blocks, compare_on_blocks, fit_on_folds
from toprank.folds.choice import (
    RULES,
    Candidate,
    Difference,
    PChoice,
    check_powers,
    corrected_difference,
)
from toprank.folds.scoring import Scoring, WeightedFit, compare_settings
from toprank.folds.splits import Fold, TimeOrderedSplit, folds_of, tested_over_trained

__all__ = [
    "RULES",
    "Candidate",
    "Difference",
    "Fold",
    "PChoice",
    "Scoring",
    "TimeOrderedSplit",
    "WeightedFit",
    "check_fits_blocks",
    "check_powers",
    "compare_on_blocks",
    "compare_settings",
    "corrected_difference",
    "fit_on_folds",
    "folds_of",
    "folds_on_blocks",
    "row_folds",
    "tested_over_trained",
]
