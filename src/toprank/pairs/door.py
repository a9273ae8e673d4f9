"""The door: whatever users hand over is checked here, once; behind it code trusts its inputs.

Every public entry that takes data calls these functions, so that the same mistake is refused
everywhere in the same words:

- `check_rows`: all that an estimator is fitted to; gives a `Rows`.
- `check_related_rows`: the same with grades, groups and listed pairs; gives a `RelatedRows`.
- `check_table`: features alone.

Labels are checked by `toprank.pairs.labels`; sample weights, groups, times and scores by
`toprank.pairs.row_columns`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse as scipy_sparse
from sklearn.utils import (
    check_array,
    check_consistent_length,
)
from sklearn.utils.validation import column_or_1d, validate_data

from toprank._arrays import AnyArray, Matrix, TableLike
from toprank._columns import to_numpy
from toprank._numerics import LARGEST_SIZE, sum_of_squares
from toprank.pairs.labels import check_grades, check_labels, split_classes
from toprank.pairs.relations import Pairs, check_pairs
from toprank.pairs.row_columns import check_counts, check_groups, check_weights
from toprank.pairs.rows import RelatedRows, Rows

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

#: Columns that one sentence names.
_NAMED = 3


def check_rows(
    estimator: BaseEstimator,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    *,
    target: str | None = "binary",
    sparse: bool = False,
    missing: bool = False,
    frames: bool = False,
    infinite: bool = False,
    dtype: Any = "numeric",
) -> tuple[Rows, Any]:
    """Return all that an estimator is fitted to, and its classes; ValueError where it is wrong.

    Parameters
    ----------
    estimator : estimator or None
        It is told the number and the names of the columns, as by scikit-learn's `validate_data`.
        None where a function takes the rows.
    X, y, sample_weight, groups
        As the user has given them.
    target : {"binary", "graded", None}
        Two classes, of which the larger label is the positive one; numbers in order; or None,
        where there are no labels.
    sparse : bool
        Whether X may be a sparse matrix; it is then a CSR matrix.
    missing : bool
        Whether NaN in X is a missing value.
    infinite : bool
        Whether infinity, and any other size, is a value: where columns are only compared.
    frames : bool
        Whether a data frame stays as it is, for a reader of columns that are no numbers.
    dtype : "numeric" or None
        None leaves the entries of X as they are, for readers of their own.

    Returns
    -------
    rows : Rows
        With truth values as labels for two classes, float64 for grades.
    classes : array of shape (2,) or None
        None unless there are two classes.
    """
    expected = {
        "sparse": sparse,
        "missing": missing,
        "infinite": infinite,
        "frames": frames,
        "dtype": dtype,
    }
    if target is None:
        X = check_table(X, estimator=estimator, **expected)
        n = X.shape[0]
        return Rows(X, None, check_counts(sample_weight, n), check_groups(groups, n)), None
    X, labels = _table_and_labels(estimator, X, y, **expected)
    n = X.shape[0]
    if target == "graded":
        grades, weight = check_grades(labels), check_counts(sample_weight, n)
        return Rows(X, grades, weight, check_groups(groups, n)), None
    classes, positive = split_classes(labels)
    weight = check_weights(positive, sample_weight)
    return Rows(X, positive, weight, check_groups(groups, n)), classes


def relate(rows: Rows, pairs: ArrayLike | Pairs | None) -> RelatedRows:
    """Return rows with the pairs that the user has listed, or raise ValueError."""
    listed = None
    if pairs is not None:
        if rows.groups is not None:
            raise ValueError(
                "Give groups or pairs, not both: pairs say by themselves which rows are compared."
            )
        weight = pairs.weight if isinstance(pairs, Pairs) else None
        listed = Pairs(check_pairs(pairs, len(rows)), len(rows), weight)
    return RelatedRows(rows.X, rows.y, rows.weight, rows.groups, listed)


def check_related_rows(
    estimator: BaseEstimator,
    table: Any,
    y: ArrayLike | None,
    groups: ArrayLike | None,
    pairs: ArrayLike | Pairs | None,
    sample_weight: ArrayLike | None,
) -> RelatedRows:
    """Return a checked table with its grades, groups, pairs and weights as the user gave them.

    ValueError where they are wrong, or where neither grades nor pairs say what to compare.
    """
    if y is None and pairs is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None; give "
            "labels as y, or pairs=."
        )
    n = table.shape[0]
    grades = None if y is None else check_grades(y, n)
    rows = Rows(table, grades, check_counts(sample_weight, n), check_groups(groups, n))
    return relate(rows, pairs)


def check_table(
    X: Matrix,
    *,
    estimator: BaseEstimator | None = None,
    reset: bool = True,
    sparse: bool = False,
    missing: bool = False,
    frames: bool = False,
    infinite: bool = False,
    dtype: Any = "numeric",
) -> Any:
    """Return features as a matrix of numbers, or raise ValueError saying what is wrong.

    Parameters
    ----------
    X : array, data frame, sparse matrix or tensor
    estimator : estimator, optional
        If it is given, the columns are kept in it (``reset``) or compared with those of its fit.
    sparse, missing, infinite, frames, dtype
        As in `check_rows`.
    """
    if frames and is_frame(X):
        _refuse_same_names(X)
        if estimator is not None:
            validate_data(estimator, X, reset=reset, skip_check_array=True)
        return X
    X = read_table(X)
    accepted = {"accept_sparse": "csr" if sparse else False, "dtype": dtype}
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            if estimator is None:
                table = check_array(X, ensure_all_finite=False, input_name="X", **accepted)
            else:
                table = validate_data(
                    estimator, X, reset=reset, ensure_all_finite=False, **accepted
                )
            return _check_numbers(table, estimator, missing, infinite, dtype)
    except ValueError as error:
        if "could not convert string" not in str(error) and "bytes/strings" not in str(error):
            raise
        raise ValueError(_words_refused(X, str(error))) from error


#: Where words belong.
FOR_WORDS = (
    "TableRanker (of toprank.models) ranks tables with words, dates and missing values as they "
    "are; or encode the words, for example with scikit-learn's OneHotEncoder."
)


def _words_refused(X: Any, error: str) -> str:
    """What to do with words, which are no numbers."""
    _, known, word = error.partition("to float: ")
    word = word if known else _first_word(X)
    where = ""
    if is_frame(X):
        held = [str(n) for n in X.columns if word.strip("'\"") in set(map(str, X[n]))]
        where = f" in the column {held[0]!r}" if held else ""
    return f"X holds words, such as {word}{where}, expected numbers. {FOR_WORDS}"


def _first_word(X: TableLike) -> str:
    """The first entry of an array of text that is no number; the first if all are."""
    entries = [str(entry) for entry in np.asarray(X).reshape(-1)[:1000]]
    words = [entry for entry in entries if not _is_number(entry)]
    return repr((words or entries or [""])[0])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _table_and_labels(
    estimator: object, X: TableLike, y: ArrayLike, **expected: Any
) -> tuple[Any, np.ndarray]:
    """The same with labels, whose number must be that of the rows."""
    y = to_numpy(y)
    if y is None:
        name = "This function" if estimator is None else type(estimator).__name__
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    table = check_table(X, estimator=estimator, **expected)
    # scikit-learn would make the text "nan" of a missing name, and a class of it
    labels = check_labels(y)
    if np.asarray(y).ndim == 2:
        column_or_1d(y, warn=True)
    check_consistent_length(table, labels)
    return table, labels


def read_table(X: TableLike) -> TableLike:
    """Return a table as it is, in the memory of the host; ValueError if NumPy would invent numbers.

    What lies behind a mask is unknown, and a date is no number.
    """
    X = read_any_table(X)
    names, types = getattr(X, "columns", ()), getattr(X, "dtypes", None)
    if isinstance(X, np.ndarray):
        names, types = ("X",), (X.dtype,)
    for name, kind in zip(names, () if types is None else types, strict=False):
        if _is_time(kind):
            raise ValueError(
                f"{name!r} holds dates or times; say what about them counts, as a number: an "
                "hour, a weekday, days since an event."
            )
    return X


def read_any_table(X: TableLike) -> TableLike:
    """Return a table for a reader of its own, in the memory of the host, its values all known."""
    X = to_numpy(X)
    _refuse_same_names(X)
    if isinstance(X, np.ma.MaskedArray) and np.any(np.ma.getmaskarray(X)):
        raise ValueError(
            f"X has {np.count_nonzero(np.ma.getmaskarray(X))} masked entries, whose values are "
            "unknown: impute them, or leave these rows out."
        )
    return X


def _refuse_same_names(X: TableLike) -> None:
    """Refuse a table of pandas or Arrow with several columns of one name."""
    names = list(getattr(X, "columns" if is_frame(X) else "column_names", ()))
    counts = Counter(names)
    if len(counts) < len(names):
        twice = [repr(name) for name, count in counts.items() if count > 1]
        more = f" and {len(twice) - _NAMED} more" if len(twice) > _NAMED else ""
        raise ValueError(
            f"X has several columns of the same name: {', '.join(twice[:_NAMED])}{more}. Rename "
            "them, or keep the first of each: X.loc[:, ~X.columns.duplicated()]."
        )


def is_frame(X: TableLike) -> bool:
    """Whether X is a data frame, of pandas or polars."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def _is_time(kind: object) -> bool:
    """Whether the type of a column of pandas or polars, or of an array, is one of times."""
    temporal = getattr(kind, "is_temporal", None)
    return getattr(kind, "kind", "") in ("m", "M") or (callable(temporal) and bool(temporal()))


def _check_numbers(
    table: Matrix, estimator: object, missing: bool, infinite: bool, dtype: DTypeLike | None
) -> Matrix:
    """NaN, infinity and huge entries are seen."""
    if dtype is not None and not (missing and infinite):
        check_entries(table, estimator=estimator, missing=missing)
    return table


def check_entries(table: Any, *, estimator: object = None, missing: bool = False) -> None:
    """Refuse infinite and huge entries of a matrix, and NaN unless it is a missing value."""
    entries = table.data if scipy_sparse.issparse(table) else table
    if _are_small(entries):
        return
    if not missing and np.isnan(entries).any():
        where = _where_found(np.isnan(entries), estimator)
        raise ValueError(f"Input X contains NaN{where}. {_FOR_GAPS}")
    if np.isinf(entries).any():
        where = _where_found(np.isinf(entries), estimator)
        raise ValueError(
            f"Input X contains infinity or a value too large for {entries.dtype!r}{where}. "
            "Replace it by the largest number that makes sense, or by a missing value where it "
            "stands for one."
        )
    refuse_huge(entries)


#: Where gaps belong.
_FOR_GAPS = (
    "Fill the gaps (scikit-learn's SimpleImputer, in a pipeline), leave these rows or columns out, "
    "or take a ranker that reads missing values: TableRanker (of toprank.models), PushTrees, "
    "PushEnsemble."
)


def _where_found(found: NDArray[np.bool_], estimator: object) -> str:
    """Where entries of a matrix were found: how many, and in which columns."""
    if found.ndim != 2:  # the entries of a sparse matrix, which do not know their columns
        return f": {np.count_nonzero(found)} of its entries"
    columns = np.flatnonzero(found.any(axis=0))
    known: Any = getattr(estimator, "feature_names_in_", ())
    named = len(known) == found.shape[1]
    shown = [repr(str(known[j])) if named else str(j) for j in columns[:_NAMED].tolist()]
    more = f" and {len(columns) - _NAMED} more" if len(columns) > _NAMED else ""
    rows = np.count_nonzero(found.any(axis=1))
    what = "column" if len(columns) == 1 else "columns"
    return f", in {rows} of {len(found)} rows, {what} {', '.join(shown)}{more}"


def refuse_huge(table: Any) -> None:
    """Refuse huge entries of a matrix; NaN and infinity are left to others."""
    entries = table.data if scipy_sparse.issparse(table) else table
    if _are_small(entries):
        return
    finite = np.isfinite(entries)
    highest = np.max(entries, where=finite, initial=0.0)
    largest = float(max(highest, -np.min(entries, where=finite, initial=0.0)))
    if largest > LARGEST_SIZE:
        raise ValueError(
            f"X has entries of up to {largest:.3g} in size, expected at most {LARGEST_SIZE:g}: if "
            "they stand for missing values, replace them; else scale the column, or clip it."
        )


def _are_small(entries: AnyArray) -> bool:
    """Whether all entries are known to be finite and of a usual size, from one read of them."""
    if entries.dtype.kind != "f" or entries.size == 0:
        return True
    return sum_of_squares(entries) < LARGEST_SIZE**2
