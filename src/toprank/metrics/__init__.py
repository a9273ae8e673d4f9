"""How good is the top of the list? Metrics of any ranker's scores."""

from toprank.metrics.push import heights, push_risk, reverse_heights

__all__ = ["heights", "push_risk", "reverse_heights"]
