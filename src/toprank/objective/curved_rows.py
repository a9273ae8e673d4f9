"""The curvature that the heaviest rows make, where a table is too wide for a Hessian.

The Hessian of a push is the penalty and, in each class, the tilt times a covariance whose weights
are those of the rows: sum_i c_i (x_i - mean)(x_i - mean)', c_i = |tilt| w_i. A steep price, and any
price once the classes are told apart, puts the weight on a few rows. The sum over these is S'S, for
S with one line sqrt(c_i) (x_i - mean) per row, so that S is kept and no d x d matrix is made. A
diagonal stands for the other rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from toprank._arrays import Matrix
from toprank._lazy import cached_property
from toprank._numerics import FloatArray
from toprank.blocks.design import DENSE_SHARE
from toprank.objective.data import LabelledData
from toprank.objective.sampled import heaviest_rows

#: Curvature, as a share of all of it, that the rows left out may make, at the most; and what a row
#: left out may make along its own direction, as a share of the penalty.
_LEFT_OUT, _BESIDE_PENALTY = 1e-8, 1.0
#: Entries up to which rows are made dense for the products of all pairs of them, and the largest
#: of these products up to which they may have single precision.
_DENSE_ENTRIES, _ROUNDED_UP_TO = 1 << 23, 1e6
#: The share of all curvature that the rows must make: a diagonal tells the others' well enough.
_TELLING = 0.5


@dataclass(frozen=True)
class CurvedRows:
    """S'S of some rows, and a diagonal for what it leaves out of a Hessian.

    Parameters
    ----------
    rows : array or CSR matrix of shape (m, d)
    root : array of shape (m,)
        Square roots of c_i.
    members : array of shape (m, 2)
        One where a row is of a class.
    means : array of shape (2, d)
        What is taken off the rows of each class.
    rest : array of shape (d,)
        The diagonal, without the penalty.
    exact : bool
        Whether products of all pairs of rows are in double precision.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.objective.curved_rows import CurvedRows
    >>> rows = np.array([[1.0, 0.0], [3.0, 2.0]])
    >>> found = CurvedRows(rows, np.ones(2), np.ones((2, 1)), rows[:1], np.zeros(2))
    >>> found.times(np.array([1.0, 1.0])).tolist()
    [0.0, 4.0]
    >>> found.adjoint(np.array([5.0, 1.0])).tolist(), found.gram(np.ones(2)).tolist()
    ([2.0, 2.0], [[0.0, 0.0], [0.0, 8.0]])
    """

    rows: Matrix
    root: FloatArray
    members: FloatArray
    means: FloatArray
    rest: FloatArray
    exact: bool = False

    @cached_property
    def _transposed(self) -> Matrix:
        return self.rows.T

    def times(self, v: FloatArray) -> FloatArray:
        """Return S @ v."""
        found: FloatArray = self.root * (self.rows @ v - self.members @ (self.means @ v))
        return found

    def adjoint(self, u: FloatArray) -> FloatArray:
        """Return S.T @ u."""
        weighed = self.root * u
        found: FloatArray = self._transposed @ weighed - (weighed @ self.members) @ self.means
        return found

    def gram(self, scale: FloatArray) -> FloatArray:
        """Return S diag(scale)^2 S'."""
        rows, means = self.rows, self.means
        if not np.all(scale):
            there = np.flatnonzero(scale)
            rows, means, scale = rows[:, there], means[:, there], scale[there]
        if not sparse.issparse(rows) or _worth_dense(rows):
            return self._dense_gram(rows, means, scale)
        scaled = rows @ sparse.diags_array(scale)
        products = (scaled @ scaled.T).toarray()
        centres = means * scale
        crossed = (scaled @ centres.T) @ self.members.T
        products -= crossed
        products -= crossed.T
        products += self.members @ (centres @ centres.T) @ self.members.T
        products *= self.root[:, None]
        products *= self.root
        found: FloatArray = products
        return found

    def _dense_gram(self, rows: Matrix, means: FloatArray, scale: FloatArray) -> FloatArray:
        """The same from dense rows; in single precision where that keeps an added one."""
        dense = sparse.csr_array(rows).toarray() if sparse.issparse(rows) else np.asarray(rows)
        found = self._dense_rows(dense, means, scale, np.float64 if self.exact else np.float32)
        if not np.max(np.einsum("ij,ij->i", found, found), initial=0.0) <= _ROUNDED_UP_TO:
            found = self._dense_rows(dense, means, scale, np.float64)
        return np.asarray(found @ found.T, dtype=np.float64)

    def _dense_rows(
        self, rows: np.ndarray, means: FloatArray, scale: FloatArray, dtype: type
    ) -> np.ndarray:
        """S diag(scale)."""
        found: np.ndarray = rows.astype(dtype)
        found -= self.members.astype(dtype) @ means.astype(dtype)
        found *= scale.astype(dtype)
        found *= self.root.astype(dtype)[:, None]
        return found


def _worth_dense(rows: sparse.csr_array) -> bool:
    """Whether products of all pairs of rows are faster where the rows are made dense."""
    entries = rows.shape[0] * rows.shape[1]
    return bool(DENSE_SHARE * entries < rows.nnz and entries <= _DENSE_ENTRIES)


def curved_rows(
    data: LabelledData,
    slopes: FloatArray,
    tilts: tuple[float, float],
    most: int,
    few: int,
    alpha: float = 0.0,
    *,
    exact: bool = False,
) -> CurvedRows | None:
    """Return the heaviest rows; None where all that may be taken make little of the curvature.

    Parameters
    ----------
    data : LabelledData
    slopes : array of shape (n,)
        The gradient in the scores: less the weight for a positive, the weight for a negative.
    tilts : pair of floats
        Those of the positives and the negatives.
    most, few : int
        Rows, at the most. Where more than ``most`` bend the objective beside the penalty, only
        ``few`` are taken: they cannot tell all of the curvature, and every iteration takes longer
        for each of them.
    alpha : float
        The penalty: rows that bend the objective much less than this are left out.
    exact : bool
        Whether products are in double precision.
    """
    bends = np.where(slopes < 0, abs(tilts[0]), abs(tilts[1])) * np.abs(slopes)
    total = float(bends.sum())
    if not 0.0 < total < np.inf:
        return None
    spread = data.column_spread() ** 2
    telling = int(np.count_nonzero(bends * np.sum(spread) > _BESIDE_PENALTY * alpha))
    room = max(1, telling) if telling <= most else few
    found = heaviest_rows(bends, _LEFT_OUT, room)
    chosen = np.sort(np.argpartition(bends, -room)[-room:]) if found is None else found[0]
    bend = bends[chosen]
    if bend.sum() < _TELLING * total:
        return None
    rows = data.in_units(chosen)
    members = np.stack([slopes[chosen] < 0, slopes[chosen] > 0], axis=1).astype(np.float64)
    masses = bend @ members
    means = (rows.T @ (bend[:, None] * members)).T / np.where(masses > 0, masses, 1.0)[:, None]
    rest = max(0.0, total - float(bend.sum())) * spread
    return CurvedRows(rows, np.sqrt(bend), members, means, rest, exact)
