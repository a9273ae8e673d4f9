"""Metrics of positive-unlabelled data with their intervals."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from toprank.inference.hidden_positives import interval_with_hidden
from toprank.inference.intervals import interval
from toprank.inference.result import Interval, check_resamples
from toprank.inference.shares import check_level
from toprank.metrics.hidden import OpenLabels


def unlabelled_interval(
    metric: str,
    labelled: ArrayLike,
    s: ArrayLike,
    hidden: float | tuple[float, float] | None = None,
    *,
    unlabelled: object = None,
    level: float = 0.95,
    n_resamples: int = 1000,
    random_state: int | np.random.Generator | None = 0,
    **metric_kwargs: Any,
) -> Interval:
    r"""A metric of positive-unlabelled data, corrected for the hidden positives, with its interval.

    With :math:`\alpha` the share of hidden positives among the unlabelled rows, ranking positives
    against unlabelled rows has an area of :math:`A' = (1 - \alpha) A + \alpha / 2`, since hidden
    and labelled positives are alike. So

    .. math:: A = \frac{A' - \alpha / 2}{1 - \alpha}.

    The first k rows hold a share q' of labelled positives, which are a share
    :math:`c = n_L / (n_L + \alpha n_U)` of all positives: the precision is q' / c. The
    recall of the labelled positives is that of all. The normalised p-norm risk is
    :math:`\big((R'_p - \alpha R^+_p) / (1 - \alpha)\big)^{1/p}`, where :math:`R'_p` is the
    mean of the p-th power of the heights of unlabelled rows, and :math:`R^+_p` that of the
    labelled positives, each among the others; `push_risk` in the same way, as the sum over the
    negatives of a table whose hidden positives are known (`toprank.metrics.unlabelled_value` says
    for which prices).

    ``interval(metric, y, s, unlabelled=..., hidden=...)`` is the same.

    Parameters
    ----------
    metric : {"auc", "precision_at", "recall_at", "pnorm_risk", "push_risk"}
    labelled : array-like of shape (n,)
        1 (the larger value) where a row is known to be positive, 0 where it is unlabelled; or
        labels of three kinds, with `unlabelled`.
    s : array-like of shape (n,)
        Scores; of rows that had no part in the fit where the share is estimated.
    hidden : float or (float, float), optional
        Share of positives among the unlabelled rows, in [0, 1); or the least and the largest that
        it may be: the interval then holds for every share between them. By default it is estimated
        from the same rows by `hidden_share`, and the interval includes the error of that.
    unlabelled : value or array-like of bool of shape (n,), optional
        The label of rows whose label is not known (NaN for missing labels), or which rows those
        are; others that are not positive are then known to be negative.
    level : float, default=0.95
        Confidence level.
    n_resamples : int, default=1000
        Resamples of the bootstrap, for `pnorm_risk` and `push_risk`; at most 200 beyond 200,000
        rows.
    random_state : int, Generator or None, default=0
    **metric_kwargs
        Parameters of the metric: ``k``; ``p``; ``price``, ``p``, ``loss``.

    Returns
    -------
    Interval

    Notes
    -----
    If some positives are easier to find than others, labelled ones score higher than hidden ones,
    and nothing here corrects for that.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.inference import unlabelled_interval
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(5000) < 0.2
    >>> s = rng.normal(size=5000) + 1.5 * y
    >>> labelled = y & (rng.random(5000) < 0.4)
    >>> print(unlabelled_interval("auc", labelled, s, hidden=0.13))
    auc = 0.8617, 95% interval 0.8376 to 0.8831 (score interval, Hoeffding projection (DeLong))
    Note: Corrected for a share of 0.13 hidden positives; without that it is 0.8147.
    """
    check_level(level)
    check_resamples(n_resamples)
    rows = OpenLabels.read(labelled, s, unlabelled)
    naive = partial(interval, metric, **metric_kwargs)
    drawn_by = (n_resamples, random_state)
    return interval_with_hidden(metric, rows, hidden, level, naive, drawn_by, metric_kwargs)
