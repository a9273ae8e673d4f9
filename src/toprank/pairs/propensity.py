"""Weights of rows whose labels were seen only with some probability: one over it, within reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from toprank._arrays import AnyArray
from toprank._columns import numbers, to_numpy
from toprank._numerics import FloatArray
from toprank.pairs.row_columns import repetition_counts

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.base import BaseEstimator


@dataclass(frozen=True)
class LabelWeights:
    """Weights by label propensities; print it.

    Attributes
    ----------
    weight : ndarray of shape (n,)
        One over the propensity, times the sample weight, clipped; their mean is that of the
        sample weights, so that a penalty sees as many rows as have labels.
    effective_rows : float
        Kish's effective number of rows: as many equally weighted rows say as much.
    clipped : int
        Rows whose weight was cut.
    """

    weight: FloatArray
    effective_rows: float
    clipped: int

    def __str__(self) -> str:
        cut = f", {self.clipped} weights clipped" if self.clipped else ""
        return f"{len(self.weight)} rows count as {self.effective_rows:.4g}{cut}."

    __repr__ = __str__


def label_weights(
    label_propensity: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    n: int | None = None,
    clip: bool = True,
) -> LabelWeights:
    r"""Weights for rows that have a label because someone looked at them, with a known probability.

    A row that was looked at with probability :math:`\pi` stands for :math:`1 / \pi` rows. Few rows
    of tiny propensity would decide everything, so weights above :math:`\sqrt n` times their mean
    are cut to that (Ionides 2008): the bias this brings vanishes with more rows.

    Parameters
    ----------
    label_propensity : float or array-like of shape (n,)
        Probability that the row's label was seen, in (0, 1], such as `LimitedList.propensity`.
    sample_weight : array-like of shape (n,), optional
        Repetition counts that the weights are multiplied by.
    n : int, optional
        How many rows there are, where one propensity is for all.
    clip : bool, default=True
        Whether to cut the weights.

    Returns
    -------
    LabelWeights
        ``.weight .effective_rows .clipped``; prints as a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.select import label_weights
    >>> print(label_weights(np.repeat([1.0, 0.01], [90, 10])))
    100 rows count as 11.87.
    """
    seen = numbers("label_propensity", to_numpy(label_propensity))
    if seen.ndim == 0:
        count = n if n is not None else 1 if sample_weight is None else np.size(sample_weight)
        seen = np.full(count, float(seen))
    if seen.ndim != 1 or (n is not None and len(seen) != n):
        raise ValueError(
            f"label_propensity has shape {seen.shape}, expected one number or one per row"
            f"{'' if n is None else f': ({n},)'}."
        )
    if not np.all((seen > 0) & (seen <= 1)):
        raise ValueError(
            f"label_propensity goes from {seen.min():g} to {seen.max():g}, expected "
            "probabilities in (0, 1]: a row that could not have been labelled cannot be weighted."
        )
    size = len(seen)
    base = np.ones(size) if sample_weight is None else repetition_counts(sample_weight, size)
    weight = base / seen
    clipped = 0
    if clip and size:
        most = np.sqrt(size) * float(np.mean(weight))
        clipped = int(np.count_nonzero(weight > most))
        weight = np.minimum(weight, most)
    total = float(np.sum(weight))
    effective = total**2 / float(np.sum(weight**2)) if total > 0 else 0.0
    if total > 0:
        weight = weight * (float(np.sum(base)) / total)
    return LabelWeights(weight, effective, clipped)


def keep_label_weights(
    estimator: BaseEstimator,
    y: AnyArray | pd.Series,
    sample_weight: ArrayLike | None,
    label_propensity: ArrayLike | None,
) -> ArrayLike | None:
    """Return the weights to fit with; the estimator remembers the effective number of rows."""
    if label_propensity is None:
        vars(estimator).pop("effective_rows_", None)  # of an earlier fit
        return sample_weight
    found = label_weights(label_propensity, sample_weight, n=len(y) if np.ndim(y) else None)
    estimator.effective_rows_ = found.effective_rows
    return found.weight
