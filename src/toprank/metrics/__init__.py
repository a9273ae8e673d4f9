"""How good is the top of the list? Metrics of any ranker's scores."""

from toprank.metrics.at_k import positives_at_top, precision_at
from toprank.metrics.push import heights, push_risk, reverse_heights

__all__ = ["heights", "positives_at_top", "precision_at", "push_risk", "reverse_heights"]
