"""A matrix as the columns it was stored in; its rows are put together when they are asked for.

Files of columns are decoded column by column. Copied into a matrix at once, every number would go
to memory and back; a few thousand rows at a time stay in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Columns:
    """Columns of equal length that are indexed like a matrix: ``X[rows]``, ``X[rows, first:last]``.

    Parameters
    ----------
    columns : sequence of arrays of shape (n,)
    n_rows : int
    dtype : dtype
        Of the matrices that indexing gives.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.blocks.columns import Columns
    >>> X = Columns([np.array([1, 2, 3]), np.array([0.5, 1.5, 2.5])], 3, np.dtype(np.float64))
    >>> X[1:]
    array([[2. , 1.5],
           [3. , 2.5]])
    """

    ndim = 2

    def __init__(self, columns: Sequence[NDArray[Any]], n_rows: int, dtype: np.dtype[Any]):
        self.columns = columns
        self.shape = (n_rows, len(columns))
        self.dtype = dtype

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> NDArray[Any]:
        rows, which = key if isinstance(key, tuple) else (key, slice(None))
        parts = [column[rows] for column in self.columns[which]]
        n = len(parts[0]) if parts else len(np.empty(self.shape[0])[rows])
        matrix = np.empty((n, len(parts)), dtype=self.dtype, order="F")
        for j, part in enumerate(parts):
            matrix[:, j] = part
        return matrix

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self[:].astype(self.dtype if dtype is None else dtype, copy=False)
