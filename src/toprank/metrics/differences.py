"""What each tie holds, from the sums down to its end, computed where it is asked for."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike, NDArray

from toprank._numerics import FloatArray

#: Up to this length all differences are taken at once: they fit into the cache.
_SHORT = 1 << 16


class Differences(NDArrayOperatorsMixin):
    """The differences of successive sums, as an array of which slices are made when asked for.

    A list of ten million ties needs no memory for them. What asks for all of them gets an array.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.metrics.differences import Differences
    >>> held = Differences(np.array([0.0, 1.0, 1.0, 4.0]))
    >>> held[1:3].tolist(), float(held[-1]), len(held)
    ([0.0, 3.0], 3.0, 3)
    """

    def __init__(self, sums: FloatArray):
        self.sums = sums

    def __len__(self) -> int:
        return len(self.sums) - 1

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    def __getitem__(self, key: slice | int | NDArray[np.intp]) -> FloatArray:
        if isinstance(key, slice):
            first, stop, step = key.indices(len(self))
            if step == 1:
                stop = max(first, stop)
                return self.sums[first + 1 : stop + 1] - self.sums[first:stop]
        elif np.ndim(key) == 0:
            at = range(len(self))[int(key)]
            return self.sums[at + 1] - self.sums[at]
        return np.asarray(self)[key]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> FloatArray:
        return np.diff(self.sums).astype(dtype or np.float64, copy=False)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: object, **kwargs: object
    ) -> object:
        arrays = (np.asarray(one) if isinstance(one, Differences) else one for one in inputs)
        return getattr(ufunc, method)(*arrays, **kwargs)

    def tolist(self) -> list[float]:
        return np.asarray(self).tolist()


def differences(sums: FloatArray) -> FloatArray:
    """The differences of successive sums; of long ones, as they are asked for."""
    if len(sums) <= _SHORT:
        return np.diff(sums)
    return cast(FloatArray, Differences(sums))
