"""Rankings that are right at the top of the list.

>>> from toprank import PNormPush
>>> from toprank.datasets import load_magic
>>> X, y = load_magic(return_X_y=True)
>>> scores = PNormPush(p=4).fit(X, y).decision_function(X)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:
    """Import a public name, or a room, when it is first asked for.

    scikit-learn takes seconds to import; the help and the completion of the command line need
    not wait for it.
    """
    if name in __all__ and name != "select":  # a room that can be called
        found = getattr(import_module(f"toprank.{_ELSEWHERE.get(name, 'rankers')}"), name)
        globals()[name] = found
        return found
    if not name.startswith("_"):
        try:
            return import_module(f"toprank.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"toprank.{name}":
                raise
    raise AttributeError(f"module 'toprank' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, and the rooms that hold more of them."""
    return sorted({*__all__, *_ROOMS})
