"""Data sets from OpenML, through scikit-learn's cached download."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from gzip import BadGzipFile
from json import JSONDecodeError
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import issparse
from sklearn.datasets import fetch_openml, get_data_home
from sklearn.utils import Bunch

from toprank._arrays import AnyArray, Frame, Matrix
from toprank._extras import require
from toprank.datasets._bundled import as_bunch

if TYPE_CHECKING:
    import pandas as pd
    from scipy import sparse


@dataclass(frozen=True)
class OpenMLSource:
    """An OpenML data set and what makes it a two-class problem.

    `target` None is the data set's own target; `negative` None is every value but `positive`.
    `counts`, negatives then positives, guards against a data set that is not the one meant.
    """

    data_id: int
    positive: object
    negative: object | None = None
    target: str | None = None
    target_names: tuple[str, str] | None = None
    counts: tuple[int, int] | None = None


SOURCES = {
    "covertype": OpenMLSource(
        data_id=1596,
        positive="4",
        negative="2",
        target_names=("lodgepole pine", "cottonwood/willow"),
        counts=(283301, 2747),
    ),
    "creditcard": OpenMLSource(
        data_id=1597, positive="1", target_names=("genuine", "fraud"), counts=(284315, 492)
    ),
    "housing": OpenMLSource(
        data_id=531,
        target="CHAS",
        positive="1",
        target_names=("elsewhere", "on the river"),
        counts=(471, 35),
    ),
    "mammography": OpenMLSource(
        data_id=310,
        positive="1",
        target_names=("no microcalcification", "microcalcification"),
        counts=(10923, 260),
    ),
    "pima": OpenMLSource(
        data_id=37,
        positive="tested_positive",
        target_names=("no diabetes", "diabetes"),
        counts=(500, 268),
    ),
}


def fetch(
    name: str | None = None,
    *,
    data_id: int | None = None,
    target: str | None = None,
    positive: object = None,
    negative: object = None,
    data_home: str | PathLike[str] | None = None,
    cache: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Bunch | tuple[Matrix | Frame, np.ndarray | pd.Series]:
    """Fetch a two-class data set from OpenML, by name or by OpenML number.

    The first call downloads; later calls read scikit-learn's cache. Needs the extra `frames`.

    ============= ================================== ===========================
    name          label 1                            label 0
    ============= ================================== ===========================
    `covertype`   cottonwood/willow (type 4), 2747   lodgepole pine (type 2)
    `creditcard`  fraudulent payment, 492            genuine payment
    `housing`     tract on the Charles River, 35     any other tract of Boston
    `mammography` microcalcification, 260            any other region
    `pima`        diabetes, 268                      no diabetes
    ============= ================================== ===========================

    Parameters
    ----------
    name : str, optional
        A name of the table above.
    data_id : int, optional
        OpenML number of any other data set; `positive` is then needed.
    target : str, optional
        With `data_id`: the column that holds the label. Default: the data set's own target.
    positive : object, optional
        With `data_id`: the value of the target that becomes label 1.
    negative : object, optional
        With `data_id`: the value that becomes label 0; rows with neither value are left out.
        Default: every value but `positive`.
    data_home : str or path, optional
        Folder of the cache. Default: scikit-learn's.
    cache : bool, default=True
        Whether to keep what is downloaded.
    return_X_y : bool, default=False
        Return the pair (data, target) instead of a Bunch.
    as_frame : bool, default=False
        Return pandas objects, categorical columns included. Without it every feature has to be
        a number.

    Returns
    -------
    Bunch or tuple
        A Bunch with `data`, `target`, `feature_names`, `target_names`, `frame`, `DESCR`,
        `filename` (None) and `url`; or the pair (data, target).

    Raises
    ------
    ValueError
        For an unknown name, a value that does not occur, labels that are missing, a data set
        that is not the one expected, features that are not numbers, or a cache whose files do not
        belong together. A file that is damaged is downloaded again, with a RuntimeWarning;
        with older scikit-learn it may be refused instead.
    ConnectionError
        If the data set is not in the cache, or damaged there, and cannot be downloaded.
    OSError
        If the cache cannot be read or written.

    Examples
    --------
    >>> from toprank.datasets import fetch
    >>> X, y = fetch("mammography", return_X_y=True)  # doctest: +SKIP
    >>> X, y = fetch(data_id=37, positive="tested_positive", return_X_y=True)  # doctest: +SKIP
    >>> fetch("titanic")
    Traceback (most recent call last):
    ...
    ValueError: unknown data set 'titanic'; known: covertype, creditcard, housing, \
mammography, pima. For any other, pass data_id= (its OpenML number) and positive=.
    """
    source = _openml_source(name, data_id, target, positive, negative)
    bunch = _download(source, data_home=data_home, cache=cache, as_frame=as_frame)
    rows, labels = _binary_labels(bunch.target, source)
    _check_counts(labels, source)
    data = _tidy_frame(bunch.data[rows])
    return as_bunch(
        data if as_frame else _number_columns(data),
        labels,
        feature_names=[str(feature) for feature in bunch.feature_names],
        target_names=source.target_names or _default_names(source),
        description=bunch.DESCR,
        return_X_y=return_X_y,
        as_frame=as_frame,
        filename=None,
        url=bunch.url,
    )


def _openml_source(
    name: str | None, data_id: int | None, target: str | None, positive: object, negative: object
) -> OpenMLSource:
    if (name is None) == (data_id is None):
        raise ValueError(f"pass either a name or data_id; got {name=}, {data_id=}.")
    if data_id is not None:
        if positive is None:
            raise ValueError(
                "data_id needs positive=, the value of the target that belongs at the top."
            )
        return OpenMLSource(data_id, positive, negative, target)
    if name not in SOURCES:
        raise ValueError(
            f"unknown data set {name!r}; known: {', '.join(sorted(SOURCES))}. "
            "For any other, pass data_id= (its OpenML number) and positive=."
        )
    source = SOURCES[name]
    if not (target is None and positive is None and negative is None):
        raise ValueError(
            f"the name {name!r} fixes target, positive and negative; "
            f"to choose them, pass data_id={source.data_id} instead of the name."
        )
    return source


def _download(
    source: OpenMLSource, *, data_home: str | PathLike[str] | None, cache: bool, as_frame: bool
) -> Bunch:
    require("pandas", "frames")
    folder = Path(get_data_home(data_home), "openml") if cache else None
    try:
        bunch = fetch_openml(
            data_id=source.data_id,
            target_column=source.target or "default-target",
            data_home=data_home,
            cache=cache,
            as_frame=True if as_frame else "auto",
            # The types are inferred from the values, not from the declaration: categories that
            # are declared but are numbers become numbers, whatever the version of pandas.
            read_csv_kwargs={"dtype": None, "low_memory": False},
        )
    except (BadGzipFile, EOFError, zlib.error) as error:
        raise _damage_error(error, source, folder) from error
    except OSError as error:
        raise _connection_error(error, source) from error
    except (AttributeError, LookupError, TypeError) as error:
        raise _content_error(error, source, folder) from error
    except ValueError as error:
        if isinstance(error, UnicodeError | JSONDecodeError) or "md5" in str(error):
            raise _damage_error(error, source, folder) from error
        raise
    return bunch


def _try_again(folder: Path | None) -> str:
    """What to do about files that cannot be used; they lie in a cache, or came just now."""
    return "Try again later." if folder is None else f"Remove the folder {folder}; fetch again."


def _connection_error(error: OSError, source: OpenMLSource) -> OSError:
    """The error for a network that fails, or for a cache that cannot be used."""
    if error.errno is None or error.filename is None:  # errors of the network name no file
        return ConnectionError(
            f"could not fetch OpenML data set {source.data_id}: {error}. Check the network and "
            "try again, or point data_home= at a cache that already holds the data set. "
            "load_magic, load_ionosphere, load_spambase and load_wdbc need no network."
        )
    return OSError(
        f"the cache of OpenML data set {source.data_id} cannot be used: {error}. Remove "
        f"{error.filename}, allow it to be read and written, or point data_home= at another folder."
    )


def _damage_error(error: Exception, source: OpenMLSource, folder: Path | None) -> ValueError:
    """The error for files that are not whole, which older scikit-learn does not fetch again."""
    return ValueError(
        f"the files of OpenML data set {source.data_id} are damaged ({error}). {_try_again(folder)}"
    )


def _content_error(error: Exception, source: OpenMLSource, folder: Path | None) -> ValueError:
    """The error for files that are whole, and not what OpenML sends."""
    if "target_column" in str(error):
        return ValueError(
            f"OpenML data set {source.data_id} has no column {source.target!r}; pass target=, the "
            "name of one that it has."
        )
    return ValueError(
        f"the files of OpenML data set {source.data_id} are not what OpenML sends "
        f"({type(error).__name__}: {error}). {_try_again(folder)}"
    )


def _binary_labels(
    target: AnyArray | pd.Series, source: OpenMLSource
) -> tuple[np.ndarray, np.ndarray]:
    """The rows that carry a label, as a mask, and their labels."""
    pandas = require("pandas", "frames")
    if target is None or np.ndim(target) != 1:
        raise ValueError(
            f"OpenML data set {source.data_id} has no single target; pass target=, a column name."
        )
    column = _tidy_column(pandas.Series(target))
    is_positive = _equals(column, source.positive)
    if source.negative is None:
        is_negative = ~is_positive
    else:
        is_negative = _equals(column, source.negative)
    if not (is_positive.any() and is_negative.any()):
        raise ValueError(
            f"OpenML data set {source.data_id}: {source.positive=} and {source.negative=} do not "
            f"give two classes; values of the target: {column.unique().tolist()[:10]}."
        )
    rows = is_positive | is_negative
    return rows, is_positive[rows].astype(np.int64)


def _equals(column: pd.Series, value: object) -> np.ndarray:
    """Where a column has a value: as a number in numeric columns, as text in the others."""
    if not require("pandas", "frames").api.types.is_numeric_dtype(column):
        return (column.astype(str) == str(value)).to_numpy(bool)
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return np.zeros(len(column), bool)
    return (column == number).to_numpy(bool)


def _check_counts(labels: np.ndarray, source: OpenMLSource) -> None:
    positives = int(labels.sum())
    found = (len(labels) - positives, positives)
    if source.counts is not None and found != source.counts:
        raise ValueError(
            f"OpenML data set {source.data_id} is not the one expected: "
            f"{source.counts[0]} negatives and {source.counts[1]} positives wanted, "
            f"{found[0]} and {found[1]} found. To use it as it is, pass "
            f"data_id={source.data_id}, target= and positive= instead of the name."
        )


def _default_names(source: OpenMLSource) -> tuple[str, str]:
    negative = f"not {source.positive}" if source.negative is None else str(source.negative)
    return negative, str(source.positive)


def _tidy_frame(data: sparse.spmatrix | pd.DataFrame) -> Matrix | Frame:
    """A frame whose columns are numbers or categories; sparse data stay as they are."""
    if issparse(data):
        return data
    pandas = require("pandas", "frames")
    return pandas.DataFrame({name: _tidy_column(column) for name, column in data.items()})


def _tidy_column(column: pd.Series) -> pd.Series:
    pandas = require("pandas", "frames")
    if pandas.api.types.is_numeric_dtype(column):
        return column
    words = column.str.strip("'")  # the format allows quotes that pandas does not take off
    try:
        return pandas.to_numeric(words)
    except ValueError:
        return words.astype("category")


def _number_columns(data: sparse.spmatrix | pd.DataFrame) -> Matrix:
    """A float64 matrix; sparse data stay as they are."""
    if issparse(data):
        return data
    words = [str(name) for name in data.select_dtypes("category").columns]
    if words:
        raise ValueError(
            f"columns {', '.join(words)} hold words, not numbers; "
            "pass as_frame=True and encode them, for example with OneHotEncoder."
        )
    return np.ascontiguousarray(data.to_numpy(np.float64, na_value=np.nan))
