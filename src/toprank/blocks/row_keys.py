"""A number for every row that depends on what the row holds alone, wherever it lies.

Folds of rows that no machine holds together are drawn by such numbers: every engine, every pass and
every order of the rows gives a row the same one, and rows that are alike stay together.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from toprank._arrays import AnyArray, Matrix
from toprank._numerics import scramble_bits


def hash_rows(X: Any, seed: int) -> NDArray[np.uint64]:
    """Return a number for each row that depends on its entries alone, dense or sparse.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.blocks.row_keys import hash_rows
    >>> keys = hash_rows(np.array([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0]]), seed=0)
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    rng = np.random.default_rng(seed)
    odd = rng.integers(0, 1 << 63, size=X.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    keys = np.zeros(X.shape[0], dtype=np.uint64)
    if sparse.issparse(X):
        entries = scramble_bits(_bits_of_numbers(X.data)) * odd[X.indices]
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        np.add.at(keys, rows, entries)
    else:
        for j in range(X.shape[1]):
            keys += scramble_bits(_bits_of_numbers(_column(X, j))) * odd[j]
    return scramble_bits(keys)


def hash_values(values: object, seed: int) -> NDArray[np.uint64]:
    """Return a number for each value of a column (numbers, text or dates) that depends on it alone.

    Examples
    --------
    >>> from toprank.blocks.row_keys import hash_values
    >>> keys = hash_values(["ann", "bob", "ann"], seed=0)
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    values = np.asarray(values)
    start = scramble_bits(np.array([seed + 1], dtype=np.uint64))
    if values.dtype.kind in "biufmM":
        numbers = values.astype("int64") if values.dtype.kind in "mM" else values
        return scramble_bits(scramble_bits(_bits_of_numbers(numbers)) + start)
    distinct, place = np.unique(values.astype(str), return_inverse=True)
    digests = [hashlib.blake2b(text.encode(), digest_size=8).digest() for text in distinct]
    bits = np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
    return scramble_bits(bits[place.reshape(-1)] + start)


def _column(X: Matrix, j: int) -> AnyArray:
    columns = getattr(X, "columns", None)
    return np.asarray(columns[j] if isinstance(columns, list | tuple) else X[:, j])


def _bits_of_numbers(values: AnyArray) -> NDArray[np.uint64]:
    numbers = values.astype(np.float64) + 0.0  # minus zero is zero
    return numbers.view(np.uint64)
