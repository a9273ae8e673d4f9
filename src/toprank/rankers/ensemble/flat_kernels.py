"""Compiled walks through trees that lie in arrays. Imported when such trees score rows.

Serial and without the GIL: threads are the caller's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toprank._extras import jit
from toprank._numerics import FloatArray

NodeNumbers = NDArray[np.int64]

_jit = jit(nogil=True, cache=True)

#: Rows that walk down one tree before the next: the tree stays near the core, and so do they.
_AT_A_TIME = 2048


@_jit
def add_leaves(
    X: FloatArray,
    roots: NodeNumbers,
    left: NodeNumbers,
    right: NodeNumbers,
    feature: NodeNumbers,
    threshold: FloatArray,
    values: FloatArray,
    out: FloatArray,
) -> None:
    """Add the values of the leaf that each row reaches in each tree, one column per value.

    A missing value goes to the left.
    """
    n, k = X.shape[0], values.shape[1]
    for first in range(0, n, _AT_A_TIME):
        last = min(n, first + _AT_A_TIME)
        for root in roots:
            for r in range(first, last):
                node = root
                while left[node] >= 0:
                    x = X[r, feature[node]]
                    node = right[node] if x > threshold[node] else left[node]
                for j in range(k):
                    out[r, j] += values[node, j]


@_jit
def add_paths(
    X: FloatArray,
    roots: NodeNumbers,
    left: NodeNumbers,
    right: NodeNumbers,
    feature: NodeNumbers,
    threshold: FloatArray,
    value: FloatArray,
    out: FloatArray,
) -> None:
    """Add to a column of ``out`` what its splits change on the way down, to the last the roots."""
    n, rest = X.shape[0], np.int64(out.shape[1] - 1)
    for first in range(0, n, _AT_A_TIME):
        last = min(n, first + _AT_A_TIME)
        for root in roots:
            for r in range(first, last):
                node = root
                out[r, rest] += value[node]
                while left[node] >= 0:
                    column = feature[node]
                    child = right[node] if X[r, column] > threshold[node] else left[node]
                    out[r, column] += value[child] - value[node]
                    node = child
