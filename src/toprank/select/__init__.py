"""From a ranking to the list that someone acts on: how long it may be, and how wrong it may be."""

from toprank.select.difference import ListDifference, compare_lists
from toprank.select.limited_cut import cut
from toprank.select.limited_list import LimitedList, LimitPrice
from toprank.select.stay import StayingList, keep_rows

__all__ = [
    "LimitPrice",
    "LimitedList",
    "ListDifference",
    "StayingList",
    "compare_lists",
    "cut",
    "keep_rows",
]
