"""A P-Norm Push over rankers: members, out-of-fold scores, their combination."""

from toprank.rankers.ensemble.estimator import PushEnsemble

__all__ = ["PushEnsemble"]
