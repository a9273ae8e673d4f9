"""Columns at the door: one entry per row, read by position, none of them missing.

Labels, scores, weights and groups come as lists, arrays of any type, or columns of pandas, polars
and Arrow. A missing entry (masked, None, NaN, NA, NaT) is refused here, before NumPy makes a number
or the text "nan" of it. The index of a pandas column is not read, as in
scikit-learn: the first entry belongs to the first row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import AnyArray

#: Different whole numbers up to this size are different as float64.
_EXACT = 1 << 53


def one_column(name: str, values: object) -> AnyArray:
    """Return an array with one entry per row, or raise ValueError."""
    array = _refuse_masked(name, values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(
            f"{name} should be a 1d array with one entry per row, got an array of shape "
            f"{array.shape} instead."
        )
    return array


def labels_column(name: str, values: object, rule: str = "a label must be known") -> AnyArray:
    """Return one label per row: numbers, text or dates, none of them missing."""
    array = one_column(name, values)
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        given = one_column(name, np.asarray(values, dtype=object))
        if not all(isinstance(value, (str, bytes)) for value in given):
            array = given  # NumPy has written numbers, and NaN, as text
    missing = which_missing(array)
    if np.any(missing):
        raise ValueError(
            f"{name} contains NaN or infinity, or a missing value, in {np.count_nonzero(missing)} "
            f"of {len(array)} rows, first in row {int(np.argmax(missing))}; {rule}: leave these "
            "rows out, or say what they are."
        )
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} holds complex numbers.")
    return array


def numbers(name: str, values: object) -> NDArray[np.float64]:
    """Return float64 numbers of any shape, finite or not, or raise ValueError."""
    array = _refuse_masked(name, values)
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} holds complex numbers.")
    if array.dtype.kind in "mM":
        raise ValueError(
            f"{name} holds dates or durations ({array.dtype}), expected numbers: convert them, for "
            "example to days since the first."
        )
    try:
        with np.errstate(over="ignore"):  # what is too large for float64 is infinite, and seen
            return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"{name} holds {_first_non_number(array)}, expected numbers: {error}."
        ) from error


def amounts_of_rows(name: str, values: object, n: int) -> NDArray[np.float64]:
    """Return numbers of shape () or (n,): one for all rows, or one for each."""
    amounts = numbers(name, values)
    if amounts.shape not in ((), (n,)):
        raise ValueError(
            f"{name} has shape {amounts.shape}, expected one number or one number per row, ({n},)."
        )
    return amounts


def finite_column(name: str, values: object) -> NDArray[np.float64]:
    """Return one finite float64 number per row, and no two different ones as the same."""
    given = one_column(name, values)
    column = numbers(name, given)
    with np.errstate(over="ignore", invalid="ignore"):  # a sum may overflow where no term does
        known = bool(np.isfinite(np.sum(column)))
    if not known and np.any(np.isnan(column)):
        raise ValueError(f"{name} contains NaN or missing values; expected one number per row.")
    if not known and np.any(np.isinf(column)):
        raise ValueError(
            f"{name} contains infinity or a value too large for float64; expected finite numbers."
        )
    _check_distinct(name, given, column)
    return column


def _refuse_masked(name: str, values: object) -> AnyArray:
    """Return the values as an array; entries behind a mask are unknown."""
    if isinstance(values, np.ma.MaskedArray) and np.any(np.ma.getmaskarray(values)):
        hidden = int(np.count_nonzero(np.ma.getmaskarray(values)))
        raise ValueError(
            f"{name} has {hidden} masked entries, whose values are unknown: leave these rows out, "
            "or fill them with .filled(...)."
        )
    try:
        return np.asarray(values)
    except ValueError as error:  # rows of unequal length
        raise ValueError(f"{name} is not an array: {error}") from error


def which_missing(array: AnyArray) -> NDArray[np.bool_]:
    """Which entries are missing or infinite."""
    if array.dtype.kind == "f":
        return np.asarray(~np.isfinite(array))
    if array.dtype.kind in "mM":
        return np.asarray(np.isnat(array))
    if array.dtype.kind == "O":
        return np.fromiter((_is_missing(value) for value in array), dtype=bool, count=len(array))
    return np.zeros(len(array), dtype=bool)


def _is_missing(value: object) -> bool:
    """Whether an entry is None, NaN, infinite, NaT or pandas' NA."""
    if value is None:
        return True
    try:
        return bool(value != value) or value in (float("inf"), -float("inf"))
    except (TypeError, ValueError):  # NA is neither equal nor unequal to itself
        return True


def _first_non_number(array: AnyArray) -> str:
    """Describe the first entry that is not a number."""
    value = next((value for value in array.ravel() if not _is_number(value)), array)
    return f"{str(value)[:60]!r} ({type(value).__name__})"


def _is_number(value: Any) -> bool:
    """Whether Python makes a float of an entry."""
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _check_distinct(name: str, given: AnyArray, column: NDArray[np.float64]) -> None:
    """Refuse numbers that are different as they came and equal as float64."""
    kind = given.dtype.kind
    if kind in "iu" and given.dtype.itemsize == 8:
        if len(given) == 0 or max(int(given.max()), -int(given.min())) <= _EXACT:
            return
        before = len(np.unique(given))
    elif kind == "f" and given.dtype.itemsize > 8:
        if np.all(given == column):
            return
        before = len(np.unique(given))
    elif kind == "O" and not any(isinstance(value, (str, bytes)) for value in given):
        before = len(set(given.tolist()))
    else:
        return
    after = len(np.unique(column))
    if after < before:
        raise ValueError(
            f"{name} has {before} different values, of which float64 can tell only {after} apart: "
            "subtract a constant, scale them, or pass their ranks."
        )


def to_numpy(values: Any) -> Any:
    """Return a torch tensor as a NumPy array, copied from its device; anything else as it is.

    A sparse CSR tensor becomes SciPy's CSR array.
    """
    if type(values).__module__.partition(".")[0] != "torch" or not hasattr(values, "detach"):
        return values
    if str(values.layout) == "torch.sparse_csr" and values.ndim == 2:
        from scipy.sparse import csr_array

        stored = (values.values(), values.col_indices(), values.crow_indices())
        return csr_array(tuple(map(to_numpy, stored)), shape=tuple(values.shape))
    if str(values.layout) != "torch.strided":
        raise ValueError(
            f"A tensor has the layout {values.layout}: call .to_sparse_csr() or .to_dense() first."
        )
    tensor = values.detach().cpu()
    # NumPy has no bfloat16
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
