"""From a ranking to the list that someone acts on: how long it may be, and how wrong it may be."""

from toprank.select.limited_cut import cut
from toprank.select.limited_list import LimitedList, LimitPrice

__all__ = [
    "LimitPrice",
    "LimitedList",
    "cut",
]
