"""Rankings that are right at the top of the list.

>>> from toprank import PNormPush
>>> from toprank.datasets import load_magic
>>> X, y = load_magic(return_X_y=True)
>>> scores = PNormPush(p=4).fit(X, y).decision_function(X)
"""

from toprank._version import __version__
from toprank.choose import PNormPushCV
from toprank.pairs import Pairs
from toprank.rankers import (
    AdaBoostRanker,
    IRPush,
    LabelRanker,
    PairRanker,
    PNormPush,
    ProperRanker,
    PushRanker,
    PushTrees,
    RankBoost,
    SmoothMarginRanker,
)

__all__ = [
    "AdaBoostRanker",
    "IRPush",
    "LabelRanker",
    "PNormPush",
    "PNormPushCV",
    "PairRanker",
    "Pairs",
    "ProperRanker",
    "PushRanker",
    "PushTrees",
    "RankBoost",
    "SmoothMarginRanker",
    "__version__",
]
