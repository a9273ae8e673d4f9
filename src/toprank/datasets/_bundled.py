"""Loaders that need no network: three files of the package and one of scikit-learn.

`as_bunch` is the form that every loader returns.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.utils import Bunch

from toprank._arrays import Frame, Matrix
from toprank._extras import require

if TYPE_CHECKING:
    import pandas as pd


def as_bunch(
    data: Matrix | Frame,
    target: np.ndarray,
    *,
    feature_names: Sequence[str],
    target_names: Sequence[str],
    description: str,
    return_X_y: bool,
    as_frame: bool,
    **details: object,
) -> Bunch | tuple[np.ndarray | pd.DataFrame, np.ndarray | pd.Series]:
    """Hand over features and labels in the form the caller asked for.

    Parameters
    ----------
    data : array-like of shape (n_samples, n_features) or pandas.DataFrame
        The features.
    target : ndarray of shape (n_samples,)
        The labels, 1 for the class that belongs at the top.
    feature_names : sequence of str
        Names of the columns of `data`.
    target_names : sequence of str
        What label 0 and label 1 stand for, in this order.
    description : str
        The text that becomes `DESCR`.
    return_X_y : bool
        Whether to return only the pair (data, target).
    as_frame : bool
        Whether the features become a DataFrame and the labels a Series.
    **details
        More entries of the Bunch, such as `filename`.

    Returns
    -------
    Bunch or tuple
        The Bunch, or the pair when `return_X_y` is true.
    """
    labels: np.ndarray | pd.Series = target
    frame = None
    if as_frame:
        pandas = require("pandas", "frames")
        data = pandas.DataFrame(data, columns=list(feature_names))
        labels = pandas.Series(target, index=data.index, name="target")
        frame = pandas.concat([data, labels], axis=1)
    if return_X_y:
        return data, labels
    return Bunch(
        data=data,
        target=labels,
        frame=frame,
        feature_names=list(feature_names),
        target_names=np.array(target_names),
        DESCR=description,
        **details,
    )


_UCI = "UCI Machine Learning Repository"
_CHANGES = "Changes: labels written as 0 and 1 in a last column, stored as compressed CSV."

_MAGIC = f"""MAGIC gamma telescope

Simulated images of air showers in a Cherenkov telescope: ten numbers that describe the ellipse
of each image. The 12332 gamma (signal) events should rank above the 6688 hadron (background)
events.

Bock, R. (2004). MAGIC Gamma Telescope [Dataset]. {_UCI}. https://doi.org/10.24432/C52C8B
Licence: CC BY 4.0. {_CHANGES}"""

_IONOSPHERE = f"""Ionosphere

Radar returns from the ionosphere: 17 complex values each, written as 34 real ones. The 225 good
returns, which show structure, should rank above the 126 bad ones. The column V2 is constant.

Sigillito, V., Wing, S., Hutton, L. and Baker, K. (1989). Ionosphere [Dataset]. {_UCI}.
https://doi.org/10.24432/C5W01B
Licence: CC BY 4.0. {_CHANGES}"""

_SPAMBASE = f"""Spambase

Electronic mail: percentages of 48 words and 6 characters, and 3 lengths of runs of capitals.
The 1813 messages that are spam should rank above the 2788 that are not.

Hopkins, M., Reeber, E., Forman, G. and Suermondt, J. (1999). Spambase [Dataset]. {_UCI}.
https://doi.org/10.24432/C53G6X
Licence: CC BY 4.0. {_CHANGES}"""

_WDBC = f"""Wisconsin diagnostic breast cancer

Thirty measurements of cell nuclei in images of breast masses. The 212 malignant masses should
rank above the 357 benign ones. scikit-learn codes malignant as 0; here malignant is 1.

Wolberg, W., Mangasarian, O., Street, N. and Street, W. (1993). Breast Cancer Wisconsin
(Diagnostic) [Dataset]. {_UCI}. https://doi.org/10.24432/C5DW2B
Licence: CC BY 4.0. Read through scikit-learn's load_breast_cancer."""


def load_magic(
    *, return_X_y: bool = False, as_frame: bool = False
) -> Bunch | tuple[np.ndarray | pd.DataFrame, np.ndarray | pd.Series]:
    """Load the MAGIC gamma telescope data: 19020 events, 10 features, 12332 positives.

    Label 1 is a gamma (signal) event, label 0 a hadron (background) event.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return the pair (data, target) instead of a Bunch.
    as_frame : bool, default=False
        Return pandas objects; needs the extra `frames`.

    Returns
    -------
    Bunch or tuple
        A Bunch with `data`, `target`, `feature_names`, `target_names`, `frame`, `DESCR` and
        `filename`; or the pair (data, target).

    Notes
    -----
    R. Bock (2004), MAGIC Gamma Telescope, UCI Machine Learning Repository,
    doi:10.24432/C52C8B, licensed under CC BY 4.0. Changes: labels written as 0 and 1, stored
    as compressed CSV.

    Examples
    --------
    >>> from toprank.datasets import load_magic
    >>> magic = load_magic()
    >>> magic.data.shape, int(magic.target.sum())
    ((19020, 10), 12332)
    """
    return _load("magic.csv.gz", ("hadron", "gamma"), _MAGIC, return_X_y, as_frame)


def load_ionosphere(
    *, return_X_y: bool = False, as_frame: bool = False
) -> Bunch | tuple[np.ndarray | pd.DataFrame, np.ndarray | pd.Series]:
    """Load the ionosphere data: 351 radar returns, 34 features, 225 positives.

    Label 1 is a good return, label 0 a bad one.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return the pair (data, target) instead of a Bunch.
    as_frame : bool, default=False
        Return pandas objects; needs the extra `frames`.

    Returns
    -------
    Bunch or tuple
        A Bunch with `data`, `target`, `feature_names`, `target_names`, `frame`, `DESCR` and
        `filename`; or the pair (data, target).

    Notes
    -----
    V. Sigillito, S. Wing, L. Hutton and K. Baker (1989), Ionosphere, UCI Machine Learning
    Repository, doi:10.24432/C5W01B, licensed under CC BY 4.0. Changes: labels written as 0
    and 1, stored as compressed CSV.

    Examples
    --------
    >>> from toprank.datasets import load_ionosphere
    >>> X, y = load_ionosphere(return_X_y=True)
    >>> X.shape, int(y.sum())
    ((351, 34), 225)
    """
    return _load("ionosphere.csv.gz", ("bad", "good"), _IONOSPHERE, return_X_y, as_frame)


def load_spambase(
    *, return_X_y: bool = False, as_frame: bool = False
) -> Bunch | tuple[np.ndarray | pd.DataFrame, np.ndarray | pd.Series]:
    """Load the spambase data: 4601 messages, 57 features, 1813 positives.

    Label 1 is spam, label 0 is not.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return the pair (data, target) instead of a Bunch.
    as_frame : bool, default=False
        Return pandas objects; needs the extra `frames`.

    Returns
    -------
    Bunch or tuple
        A Bunch with `data`, `target`, `feature_names`, `target_names`, `frame`, `DESCR` and
        `filename`; or the pair (data, target).

    Notes
    -----
    M. Hopkins, E. Reeber, G. Forman and J. Suermondt (1999), Spambase, UCI Machine Learning
    Repository, doi:10.24432/C53G6X, licensed under CC BY 4.0. Changes: labels written as 0
    and 1, stored as compressed CSV.

    Examples
    --------
    >>> from toprank.datasets import load_spambase
    >>> X, y = load_spambase(return_X_y=True)
    >>> X.shape, int(y.sum())
    ((4601, 57), 1813)
    """
    return _load("spambase.csv.gz", ("not spam", "spam"), _SPAMBASE, return_X_y, as_frame)


def load_wdbc(
    *, return_X_y: bool = False, as_frame: bool = False
) -> Bunch | tuple[np.ndarray | pd.DataFrame, np.ndarray | pd.Series]:
    """Load the Wisconsin diagnostic breast cancer data: 569 masses, 30 features, 212 positives.

    The same rows as scikit-learn's `load_breast_cancer`, with the labels turned round:
    label 1 is malignant, label 0 is benign.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return the pair (data, target) instead of a Bunch.
    as_frame : bool, default=False
        Return pandas objects; needs the extra `frames`.

    Returns
    -------
    Bunch or tuple
        A Bunch with `data`, `target`, `feature_names`, `target_names`, `frame`, `DESCR` and
        `filename`; or the pair (data, target).

    Notes
    -----
    W. Wolberg, O. Mangasarian, N. Street and W. Street (1993), Breast Cancer Wisconsin
    (Diagnostic), UCI Machine Learning Repository, doi:10.24432/C5DW2B, licensed under
    CC BY 4.0.

    Examples
    --------
    >>> from toprank.datasets import load_wdbc
    >>> wdbc = load_wdbc()
    >>> wdbc.data.shape, int(wdbc.target.sum()), str(wdbc.target_names[1])
    ((569, 30), 212, 'malignant')
    """
    source = load_breast_cancer()
    return as_bunch(
        source.data,
        1 - source.target,
        feature_names=[str(name) for name in source.feature_names],
        target_names=("benign", "malignant"),
        description=_WDBC,
        return_X_y=return_X_y,
        as_frame=as_frame,
        filename=source.filename,
    )


def _load(
    filename: str,
    target_names: tuple[str, str],
    description: str,
    return_X_y: bool,
    as_frame: bool,
) -> Bunch | tuple[np.ndarray | pd.DataFrame, np.ndarray | pd.Series]:
    names, table = _read(filename)
    return as_bunch(
        np.ascontiguousarray(table[:, :-1]),
        table[:, -1].astype(np.int64),
        feature_names=names[:-1],
        target_names=target_names,
        description=description,
        return_X_y=return_X_y,
        as_frame=as_frame,
        filename=filename,
    )


def _read(filename: str) -> tuple[list[str], np.ndarray]:
    """Column names and numbers of a compressed CSV file of the package."""
    file = files("toprank.datasets").joinpath("data", filename)
    try:
        header, body = gzip.decompress(file.read_bytes()).decode("ascii").split("\n", 1)
    except (EOFError, OSError, ValueError, zlib.error) as error:
        raise OSError(f"{file} is damaged ({error}); install toprank again.") from error
    return header.strip().split(","), np.loadtxt(io.StringIO(body), delimiter=",")
