"""Types that many files share: arrays and tables, as they come and as they are worked with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import torch
    from scipy import sparse

FloatArray: TypeAlias = NDArray[np.float64]
#: Row numbers and ranks, as NumPy's sorts and searches return them.
IntArray: TypeAlias = NDArray[np.intp]
BoolArray: TypeAlias = NDArray[np.bool_]
#: Entries of one type, whichever: labels, names, numbers as they came.
AnyArray: TypeAlias = NDArray[np.generic]


class SparseTable(Protocol):
    """What is asked of SciPy's sparse arrays and matrices."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def tocsr(self) -> Any: ...


#: Rows of X as users hand them over: arrays, lists of lists, frames of pandas and polars, tensors
#: of the host (all of these are arrays to NumPy), and sparse tables.
TableLike: TypeAlias = ArrayLike | SparseTable

#: Rows of numbers as they are worked with: dense, or sparse by rows.
Matrix: TypeAlias = "np.ndarray | sparse.csr_array"

#: Named columns, as the libraries of tables hold them.
Frame: TypeAlias = "pd.DataFrame | pl.DataFrame | pa.Table"

#: What is returned where the rows lie: an array, or a tensor of their device.
ArrayOrTensor: TypeAlias = "np.ndarray | torch.Tensor"

#: An object as JSON holds it: the card of a model, the facts of a report.
JsonObject: TypeAlias = dict[str, Any]

#: Where random numbers come from, as scikit-learn takes it.
RandomState: TypeAlias = int | np.random.RandomState | None
