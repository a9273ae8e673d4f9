"""Rankings that are right at the top of the list.

>>> from toprank import PNormPush
>>> from toprank.datasets import load_magic
>>> X, y = load_magic(return_X_y=True)
>>> scores = PNormPush(p=4).fit(X, y).decision_function(X)
"""

from typing import TYPE_CHECKING

from toprank._imports import import_name
from toprank._version import __version__

if TYPE_CHECKING:
    from toprank.bounds.empirical import EmpiricalRanker
    from toprank.models import top
    from toprank.pairs import Pairs
    from toprank.rankers import (
        AdaBoostRanker,
        IRPush,
        LabelRanker,
        PairRanker,
        PNormPush,
        ProperRanker,
        PushEnsemble,
        PushRanker,
        PushTrees,
        RankBoost,
        SmoothMarginRanker,
    )
    from toprank.select import select
    from toprank.tuning import PNormPushCV

__all__ = [
    "AdaBoostRanker",
    "EmpiricalRanker",
    "IRPush",
    "LabelRanker",
    "PNormPush",
    "PNormPushCV",
    "PairRanker",
    "Pairs",
    "ProperRanker",
    "PushEnsemble",
    "PushRanker",
    "PushTrees",
    "RankBoost",
    "SmoothMarginRanker",
    "__version__",
    "select",
    "top",
]

_ELSEWHERE = {
    "EmpiricalRanker": "bounds.empirical",
    "PNormPushCV": "tuning",
    "Pairs": "pairs",
    "top": "models",
}

#: The modules with public names of their own.
_ROOMS = (
    *("blocks", "bounds", "datasets", "inference", "interop", "losses", "metrics", "models"),
    *("objective", "pairs", "plots", "prices", "report", "reproduce", "select", "simulate"),
    "tuning",
)


def __getattr__(name: str) -> object:
    """Import a public name, or a room, when it is first asked for.

    scikit-learn takes seconds to import; the help and the completion of the command line need
    not wait for it.
    """
    # `select` is a room that can be called
    holders = {one: _ELSEWHERE.get(one, "rankers") for one in __all__ if one != "select"}
    found = import_name(__name__, name, holders)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """The public names, and the rooms that hold more of them."""
    return sorted({*__all__, *_ROOMS})
