"""How much each row moves a metric: the first-order expansion behind an interval.

A metric of the order of the rows, brought to a share u from 0 to 1, is expanded as

    u(sample) - u(population)  =  mean over positives of phi+  +  mean over negatives of phi-  + ...

`curve_expansions` has those of shares of pairs and of the curve, where phi is known in closed form;
`left_out_expansions` those that are found by leaving out one row at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

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
class PairShare:
    """A share of pairs of a positive and a negative: what a score interval asks of it.

    Attributes
    ----------
    of_positives, of_negatives : float
        The share of each class that the pairs are taken from.
    wide : bool
        Whether one class may carry all of the noise, as it does in a part of the curve.
    errors_to_trust : float
        How many errors must be seen until a variance below the model's is half believed.
    hits_to_trust : float, optional
        The same beyond the first error, or hit, for the end of the interval that need not fear
        those that the sample has missed (see `sooner`); None: both ends believe alike.
    groups_to_trust : float
        Degrees of freedom of a variance over groups at which that end goes half of the way there.
    scale : float
        What the model's variance is multiplied by.
    freedom_of_model : float
        Degrees of freedom that the model adds to those of the variance that was seen.
    freedom_over_groups : float, optional
        The same where the variance is one over groups; None: the model has no say in it.
    bias_taken : float
        Share of the estimated bias that is taken off; the rest would cost more than it mends.
    shortfall : float
        Over the rows of the smaller class: the share by which the variance seen is too small.
    """

    of_positives: float = 1.0
    of_negatives: float = 1.0
    wide: bool = False
    errors_to_trust: float = 80.0
    hits_to_trust: float | None = 0.5
    groups_to_trust: float = 0.0
    scale: float = 1.0
    freedom_of_model: float = 8.0
    freedom_over_groups: float | None = 4.0
    bias_taken: float = 1.0
    shortfall: float = 0.0

    def rows(self, units: tuple[float, float]) -> tuple[float, float]:
        """Positives and negatives that the pairs are taken from."""
        return units[0] * self.of_positives, units[1] * self.of_negatives

    def narrowest(self, units: tuple[float, float]) -> tuple[float, str]:
        """How many rows a part of the curve is as wide as, and of which class; all: no end."""
        of = zip(self.rows(units), (self.of_positives, self.of_negatives), strict=True)
        named = zip(of, ("positives", "negatives"), strict=True)
        return min(((rows, kind) for (rows, part), kind in named if part < 1), default=(np.inf, ""))

    def bound_from_below(self, units: tuple[float, float]) -> float:
        """How far the rows bound a part of the curve from below: 0 not at all, 1 as all others.

        Where a part is as narrow as the place of one row, no row need lie in it, and what rows
        beyond it show is not the curve there.
        """
        return float(np.clip(self.narrowest(units)[0] - 1, 0.0, 1.0))

    def sooner(self, share: float, units: tuple[float, float]) -> tuple[float, float]:
        """How far the lower and the upper end go by `hits_to_trust`: 0 not at all, 1 wholly.

        Rows that the sample has missed are mostly errors if the share is near 1 and hits if it is
        near 0: of all pairs, the end that is nearer to 0 or 1 need not fear them. In a part of the
        curve no hit is worth more than the rest, and the upper end need not; but a part as narrow
        as the place of one row may hold none.
        """
        if self.narrowest(units)[0] < np.inf:
            return 0.0, self.bound_from_below(units)
        return float(np.clip(2 - 4 * share, 0.0, 1.0)), float(np.clip(4 * share - 2, 0.0, 1.0))


@dataclass(frozen=True)
class TopRows:
    """What rows that the sample has missed could do to a share, and how small it can be.

    Attributes
    ----------
    error, hit : float
        How much one more negative above all rows would take from the share, and one more positive
        there would add to it.
    least : float
        The smallest share that an endless list can have.
    least_seen : float
        The smallest that a list of so many rows can have, or somewhat more.
    tied_error : float
        What one more error would take, a negative above all rows or a positive below them, times
        the share of the positives that are tied with the first one: then errors are much alike.
    """

    error: float = 0.0
    hit: float = 0.0
    least: float = 0.0
    least_seen: float = 0.0
    tied_error: float = 0.0


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
    pairs : PairShare, optional
        Which pairs the share is of; it then has a score interval.
    power : float, optional
        The share is the root of a mean over negatives of this power of their heights.
    misplaced : float
        The mean of that power for a negative that is put where any of the positives is.
    top : TopRows, optional
        For shares that single rows at the top move far: how far, and how small the share can be.
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
    share_settings: Mapping[str, object] = field(default_factory=dict)
    unit: float = 1.0
    pairs: PairShare | None = None
    power: float | None = None
    misplaced: float = 0.0
    top: TopRows | None = None

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
