"""From a ranking to the list that someone acts on: how long it may be, and how wrong it may be.

The room can be called: ``toprank.select(...)`` is its function `select`.
"""

import inspect
import sys
from types import ModuleType
from typing import Any

from toprank.pairs.propensity import LabelWeights, label_weights
from toprank.select.calibration import Calibration, HeldOut, held_out, out_of_fold
from toprank.select.difference import ListDifference, compare_lists
from toprank.select.guarantee import select
from toprank.select.limited_cut import cut
from toprank.select.limited_list import LimitedList, LimitPrice
from toprank.select.membership import Membership, membership
from toprank.select.shortlist import Shortlist, TooFewLabels
from toprank.select.stay import StayingList, keep_rows

__all__ = [
    "Calibration",
    "HeldOut",
    "LabelWeights",
    "LimitPrice",
    "LimitedList",
    "ListDifference",
    "Membership",
    "Shortlist",
    "StayingList",
    "TooFewLabels",
    "compare_lists",
    "cut",
    "held_out",
    "keep_rows",
    "label_weights",
    "membership",
    "out_of_fold",
    "select",
]


class _Room(ModuleType):
    """The module, which Python binds to ``toprank.select`` when any file of it is imported."""

    def __call__(self, *args: Any, **kwargs: Any) -> Shortlist:
        return select(*args, **kwargs)


__signature__ = inspect.signature(select)
sys.modules[__name__].__class__ = _Room
