"""Choosing how hard to push, and what the sample can support."""

from toprank.folds import (
    Candidate,
    Difference,
    PChoice,
    Scoring,
    TimeOrderedSplit,
    corrected_difference,
    folds_of,
    row_folds,
)
from toprank.tuning.capacity import CapacityThreshold, capacity_threshold
from toprank.tuning.choose_p import choose_p
from toprank.tuning.push_cv import PNormPushCV
from toprank.tuning.support import Support, SupportOfP, supported_p

__all__ = [
    "Candidate",
    "CapacityThreshold",
    "Difference",
    "PChoice",
    "PNormPushCV",
    "Scoring",
    "Support",
    "SupportOfP",
    "TimeOrderedSplit",
    "capacity_threshold",
    "choose_p",
    "corrected_difference",
    "folds_of",
    "row_folds",
    "supported_p",
]
