"""Rankers with scikit-learn's interface."""

from typing import TYPE_CHECKING

from toprank._imports import import_name

if TYPE_CHECKING:
    from toprank.rankers.boosting import AdaBoostRanker, RankBoost, SmoothMarginRanker
    from toprank.rankers.ensemble import PushEnsemble
    from toprank.rankers.labels import LabelRanker
    from toprank.rankers.linear import IRPush, PNormPush, PushRanker
    from toprank.rankers.pairwise import PairRanker
    from toprank.rankers.proper import ProperRanker
    from toprank.rankers.trees import PushTrees

__all__ = [
    "AdaBoostRanker",
    "IRPush",
    "LabelRanker",
    "PNormPush",
    "PairRanker",
    "ProperRanker",
    "PushEnsemble",
    "PushRanker",
    "PushTrees",
    "RankBoost",
    "SmoothMarginRanker",
]

#: The file of each public name.
_FILES = {
    "AdaBoostRanker": "boosting",
    "IRPush": "linear",
    "LabelRanker": "labels",
    "PNormPush": "linear",
    "PairRanker": "pairwise",
    "ProperRanker": "proper",
    "PushEnsemble": "ensemble",
    "PushRanker": "linear",
    "PushTrees": "trees",
    "RankBoost": "boosting",
    "SmoothMarginRanker": "boosting",
}


def __getattr__(name: str) -> object:
    """Import a ranker, or a file, when it is first asked for: one needs little of the others."""
    found = import_name(__name__, name, _FILES)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
