"""How much each row moves a metric: the first-order expansion behind an interval.

A metric of the order of the rows, brought to a share u from 0 to 1, is expanded as

    u(sample) - u(population)  =  mean over positives of phi+  +  mean over negatives of phi-  + ...

For the AUC and its kin, which are two-sample U-statistics, phi is the Hoeffding projection, and its
variance is DeLong's (`toprank.metrics.roc_expansions`). The p-norm risk and the average precision
are expanded by leaving out one row at a time, which also gives their bias
(`toprank.metrics.left_out`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.metrics.order import RankedList

PROJECTION = "Hoeffding projection (DeLong)"
INFLUENCE = "influence function"
LEFT_OUT = "leave-one-out"


def identity(share: float) -> float:
    """The metric of a share that is the metric itself."""
    return share


def disjoint_pairs(ranked: RankedList) -> float:
    """How many pairs of a positive and a negative share no row."""
    return min(ranked.positives, ranked.negatives)


@dataclass(frozen=True)
class Expansion:
    """A share u, and what a positive and a negative in each tie add to it.

    Attributes
    ----------
    share : float
        The metric as a share from 0 to 1.
    on_positive, on_negative : ndarray of shape (m,)
        phi+ and phi-, by tie, up to a constant.
    trials : float
        How many independent pairs the sample holds, for shares that no row contradicts.
    report : callable
        From the share to the metric.
    bias : float
        Estimated bias of the share.
    on_logit : tuple, optional
        Centre, phi+ and phi- on the logit scale, where they are known better than by the slope.
    corrected : callable, optional
        The share with its bias taken off, for weights of the ties given as rows of two matrices.
    method : str
        How phi was found.
    normal : bool
        Whether the interval needs no allowance for the doubt in its variance.
    share_settings : mapping
        Settings with which the metric is `unit` times the share.
    unit : float
        See `share_settings`.
    """

    share: float
    on_positive: FloatArray
    on_negative: FloatArray
    trials: float
    report: Callable[[float], float] = identity
    bias: float = 0.0
    on_logit: tuple[float, FloatArray, FloatArray] | None = None
    corrected: Callable[[FloatArray, FloatArray], FloatArray] | None = None
    method: str = PROJECTION
    normal: bool = False
    share_settings: Mapping[str, Any] = field(default_factory=dict)
    unit: float = 1.0

    @property
    def needs_copies(self) -> bool:
        """Whether phi is known only where rows of one class and score are copies of each other."""
        return self.method == LEFT_OUT

    @property
    def centre(self) -> float:
        """The share with its bias taken off, but within (0, 1)."""
        centre = self.share - self.bias
        if not 0 < self.share < 1:
            return self.share
        return float(np.clip(centre, self.share / 2, (1 + self.share) / 2))


def quenouille_bias(value: Any, count: FloatArray, without: FloatArray) -> Any:
    """Quenouille's estimate of the bias that one class causes."""
    units = np.sum(count, axis=-1)
    mean = np.sum(np.where(count > 0, count * without, 0.0), axis=-1) / units
    return (units - 1) * (mean - value)


def without_one(
    ranked: RankedList, statistic: Callable[[FloatArray, FloatArray], FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """phi+ and phi- of any statistic of the tie weights, by leaving out one row at a time."""
    high, low = ranked.positive, ranked.negative

    def left_out(taken: FloatArray, takes_high: bool) -> FloatArray:
        holding = np.flatnonzero(taken > 0)
        less = -np.eye(len(taken))[holding]
        kept = 0 * less
        rest = (high + less, low + kept) if takes_high else (high + kept, low + less)
        result = np.zeros(len(taken))
        result[holding] = -(np.sum(taken) - 1) * statistic(*rest)
        return result

    return left_out(high, True), left_out(low, False)
