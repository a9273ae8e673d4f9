"""Rankings that are right at the top of the list.

>>> from toprank import PNormPush
>>> from toprank.datasets import load_magic
>>> X, y = load_magic(return_X_y=True)
>>> scores = PNormPush(p=4).fit(X, y).decision_function(X)
"""

from toprank._version import __version__
from toprank.pairs import Pairs
from toprank.rankers import IRPush, PNormPush, PushRanker

__all__ = ["IRPush", "PNormPush", "Pairs", "PushRanker", "__version__"]
