"""Pictures of a ranking, in scikit-learn's Display manner. They need the extra `plots`."""

from toprank.plots.push_path import PushPathDisplay
from toprank.plots.roc import TopRocDisplay

__all__ = ["PushPathDisplay", "TopRocDisplay"]
