"""Pictures of a ranking, in scikit-learn's Display manner. They need the extra `plots`."""

from toprank.plots.contributions import PairContributionDisplay
from toprank.plots.discounts import DiscountDisplay
from toprank.plots.lift import LiftDisplay
from toprank.plots.margins import MarginDisplay
from toprank.plots.push_path import PushPathDisplay
from toprank.plots.roc import TopRocDisplay

__all__ = [
    "DiscountDisplay",
    "LiftDisplay",
    "MarginDisplay",
    "PairContributionDisplay",
    "PushPathDisplay",
    "TopRocDisplay",
]
