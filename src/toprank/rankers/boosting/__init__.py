"""Boosting over crucial pairs (Rudin & Schapire 2009)."""

from toprank.rankers.boosting.ada_boost import AdaBoostRanker
from toprank.rankers.boosting.rank_boost import RankBoost, SmoothMarginRanker

__all__ = ["AdaBoostRanker", "RankBoost", "SmoothMarginRanker"]
