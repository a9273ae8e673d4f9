"""Boosted trees under the push."""

from toprank.rankers.trees.estimator import PushTrees

__all__ = ["PushTrees"]
