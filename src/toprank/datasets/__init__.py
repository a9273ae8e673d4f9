"""Two-class data sets whose class 1 belongs at the top of the list.

`load_magic`, `load_ionosphere` and `load_spambase` read files that ship with the package,
`load_wdbc` reads scikit-learn's copy, and `fetch` downloads from OpenML and keeps a cache.
All return a scikit-learn `Bunch`, or the pair (X, y) on request, with y in {0, 1}.
"""

from toprank.datasets._bundled import load_ionosphere, load_magic, load_spambase, load_wdbc
from toprank.datasets._openml import fetch

__all__ = ["fetch", "load_ionosphere", "load_magic", "load_spambase", "load_wdbc"]
