"""Choosing how hard to push, and what the sample can support."""

from toprank.choose.capacity import CapacityThreshold, capacity_threshold
from toprank.choose.push_cv import PNormPushCV
from toprank.choose.support import Support, SupportOfP, supported_p
from toprank.tuning import PChoice, TimeOrderedSplit, choose_p

__all__ = [
    "CapacityThreshold",
    "PChoice",
    "PNormPushCV",
    "Support",
    "SupportOfP",
    "TimeOrderedSplit",
    "capacity_threshold",
    "choose_p",
    "supported_p",
]
