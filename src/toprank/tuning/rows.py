"""Rows with what travels with them through splits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from toprank._numerics import FloatArray
from toprank.folds import TimeOrderedSplit

#: Sparse matrices that take no more bytes than this when dense are made dense for the folds.
_DENSE_BYTES = 1 << 24


@dataclass(frozen=True)
class Rows:
    """Rows with what travels with them."""

    X: Any
    positive: NDArray[np.bool_]
    weight: FloatArray | None  # for the fit: class_weight included
    counts: FloatArray | None  # for the score
    groups: NDArray[Any] | None

    def present(self) -> NDArray[np.intp]:
        """The rows of positive weight: others are absent."""
        n = len(self.positive)
        return np.arange(n) if self.weight is None else np.flatnonzero(self.weight > 0)

    def take(self, rows: NDArray[np.intp]) -> Rows:
        if len(rows) == len(self.positive) and np.array_equal(rows, np.arange(len(rows))):
            return self
        carried = (self.weight, self.counts, self.groups)
        kept = (None if one is None else one[rows] for one in carried)
        return Rows(self.X[rows], self.positive[rows], *kept)

    def by_class(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """These rows, the positives first: blocks of one class are read fastest."""
        return rows[np.argsort(~self.positive[rows], kind="stable")]

    def dense_if_small(self) -> Rows:
        """A small sparse matrix is quicker to fit as a dense one."""
        small = sparse.issparse(self.X) and 8 * self.X.shape[0] * self.X.shape[1] <= _DENSE_BYTES
        return replace(self, X=self.X.toarray()) if small else self

    def clusters(self, cv: Any) -> NDArray[Any] | None:
        """Groups whose rows depend on each other; times are none."""
        return None if isinstance(cv, TimeOrderedSplit) else self.groups
