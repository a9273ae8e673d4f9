"""The rows that p is chosen on, with what travels with them through splits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from toprank._numerics import FloatArray
from toprank.folds import TimeOrderedSplit
from toprank.pairs import Rows

#: Sparse matrices that take no more bytes than this when dense are made dense for the folds.
_DENSE_BYTES = 1 << 24


@dataclass(frozen=True)
class TuningRows(Rows):
    """Rows whose ``weight`` is for scores; ``fit_weight`` includes the weights of the classes."""

    fit_weight: FloatArray | None = None

    def by_class(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """These rows, the positives first: blocks of one class are read fastest."""
        return rows[np.argsort(~self.y[rows], kind="stable")]

    def dense_if_small(self) -> Self:
        """A small sparse matrix is quicker to fit as a dense one."""
        small = sparse.issparse(self.X) and 8 * self.X.shape[0] * self.X.shape[1] <= _DENSE_BYTES
        return replace(self, X=self.X.toarray()) if small else self

    def clusters(self, cv: Any) -> NDArray[Any] | None:
        """Groups whose rows depend on each other; times are none."""
        return None if isinstance(cv, TimeOrderedSplit) else self.groups
