"""Weighted scores, as weights at the nodes of boxes: sums that merge and do not grow with n.

The boxes of `toprank.pair_sums.interpolated` are laid out from zero, so that those of different
rows are the same. A box keeps the Chebyshev moments of its rows, sum v T_m(x). Moments of
different rows add up, and ``DEGREE`` weights at the nodes have the same moments: to every sum of a
smooth loss over the rows the nodes give the same answer, to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toprank._numerics import FloatArray
from toprank.pair_sums.interpolated import DEGREE, WIDTH, Boxes, nodes, spread


@dataclass(frozen=True)
class NodeSums:
    """Chebyshev moments of weighted scores, by box.

    Attributes
    ----------
    number : ndarray of shape (m,)
        The boxes that hold scores, ascending; box j goes from j to j + 1 widths.
    moments : ndarray of shape (DEGREE, m)
        Their moments.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.pair_sums.nodes import NodeSums
    >>> scores, weight = np.linspace(-3, 3, 1000), np.ones(1000)
    >>> halves = [NodeSums.of(scores[part::2], weight[part::2]) for part in (0, 1)]
    >>> at, v = halves[0].merge(halves[1]).points()
    >>> len(at), bool(np.isclose(v @ np.logaddexp(0, -at), np.logaddexp(0, -scores).sum()))
    (143, True)
    """

    number: FloatArray
    moments: FloatArray

    @classmethod
    def of(cls, scores: FloatArray, weight: FloatArray) -> NodeSums:
        """Spread the weights of some scores."""
        if len(scores) == 0:
            return cls(np.empty(0), np.empty((DEGREE, 0)))
        boxes = Boxes(scores, 0.0)
        return cls(boxes.number, spread(boxes, weight))

    def merge(self, other: NodeSums) -> NodeSums:
        """Add the weights of other scores."""
        number, place = np.unique(np.concatenate([self.number, other.number]), return_inverse=True)
        moments = np.zeros((DEGREE, len(number)))
        for part, at in zip((self, other), np.split(place, [len(self.number)]), strict=True):
            moments[:, at] += part.moments
        return NodeSums(number, moments)

    def times(self, factor: float) -> NodeSums:
        """Multiply all weights."""
        return NodeSums(self.number, factor * self.moments)

    def points(self) -> tuple[FloatArray, FloatArray]:
        """Return the nodes, as scores, and their weights, which may be negative."""
        at, to_series = nodes()
        place = (self.number[:, None] + 0.5 + 0.5 * at) * WIDTH
        return place.ravel(), (to_series.T @ self.moments).T.ravel()
