"""One way out for every loader: a Bunch, a pair of arrays, or pandas objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from toprank._extras import require


def as_bunch(
    data: Any,
    target: np.ndarray,
    *,
    feature_names: Sequence[str],
    target_names: Sequence[str],
    description: str,
    return_X_y: bool,
    as_frame: bool,
    **details: Any,
) -> Bunch | tuple[Any, Any]:
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
    labels: Any = target
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
