"""Rankers with scikit-learn's interface."""

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
