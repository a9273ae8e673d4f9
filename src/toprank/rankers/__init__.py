"""Rankers with scikit-learn's interface."""

from toprank.rankers.linear import IRPush, PNormPush, PushRanker

__all__ = ["IRPush", "PNormPush", "PushRanker"]
