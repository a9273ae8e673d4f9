"""The root of a power price at one end of the list, in scores, with little memory.

With inner rows a and outer rows b, r = a - b and weights that sum to one on either side,

    S_o = sum_i w_i l(a_i - b_o),    F = (sum_o w_o S_o^p)^{1/p}.

What `toprank.objective.risk` does with arrays of every quantity, compiled loops do here with one
vector beside the scores: it holds the heights first and the gradient in the end. The logistic loss
is summed over boxes, the squared hinge along the sorted scores.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.losses import Loss
from toprank.pair_sums.interpolated import DEGREE, REACH, WIDTH, Interactions, Numbers
from toprank.prices import Power

#: Boxes beyond which rows are summed one by one elsewhere: scores so far apart are rare.
MOST_BOXES = 1 << 16


class PowerRoot:
    """F and its gradient for labelled rows.

    Parameters
    ----------
    positive : bool array of shape (n,)
    weight : array of shape (n,) or None
    price : Power
        In the form of a root.
    loss : Loss
        One that `suits`.
    prices_positives : bool
        Whether the positives are the outer rows.
    """

    def __init__(
        self,
        positive: NDArray[np.bool_],
        weight: FloatArray | None,
        price: Power,
        loss: Loss,
        prices_positives: bool,
    ):
        self.kind = np.ascontiguousarray(positive).view(np.uint8)
        self.weight = np.empty(0) if weight is None else weight
        self.p = price.p
        self.loss = loss
        self.inner = 0 if prices_positives else 1
        self.sign = -1.0 if prices_positives else 1.0
        self.inner_share = self._share(positive != prices_positives)
        self.outer_share = self._share(positive == prices_positives)

    @staticmethod
    def suits(price: object, loss: Loss) -> bool:
        """Whether there are loops for a price and a loss."""
        return isinstance(price, Power) and price.root and (loss.logistic_tails or is_square(loss))

    def _share(self, members: NDArray[np.bool_]) -> float:
        """What makes the weights of a class sum to one."""
        if not len(self.weight):
            return 1.0 / int(np.count_nonzero(members))
        heaviest = float(np.max(self.weight, where=members, initial=0.0))
        total = float(np.sum(self.weight / heaviest, where=members))  # no such total overflows
        return 1.0 / heaviest / total

    def value_grad(self, scores: FloatArray) -> tuple[float, FloatArray] | None:
        """Return F and its gradient; None where scores are so far apart that loops are no use."""
        from toprank.pair_sums.two_class_kernels import ends_of_scores

        ends = ends_of_scores(scores, self.kind, self.weight)
        if not np.all(np.isfinite(ends)):
            return None
        if self.sign < 0:
            ends = -ends[:, ::-1]
        inner, outer = ends[self.inner], ends[1 - self.inner]
        if is_square(self.loss):
            return self._squares(scores)
        far = inner[0] - outer[0] > REACH  # some see e^-r alone, however small
        wide = max(inner[1], outer[1]) - min(inner[0], outer[0]) > MOST_BOXES * WIDTH
        return None if far or wide else self._logistic(scores, inner, outer)

    def _logistic(
        self, scores: FloatArray, inner: FloatArray, outer: FloatArray
    ) -> tuple[float, FloatArray]:
        from toprank.pair_sums import two_class_kernels as kernels

        rows = scores, self.kind, self.inner, self.sign, self.weight
        source, target = Axis(inner, inner[0]), Axis(outer, inner[0])
        kernels.spread_weights(*rows, self.inner_share, source.grid, source.table)
        forward = Interactions(source.numbers, target.numbers)
        moments = source.moments
        gradient = np.zeros(len(scores))
        heights = series_of(forward, 0, moments)
        largest = kernels.evaluate_heights(*rows, target.grid, heights, gradient)
        total = kernels.price_heights(
            self.kind, self.inner, self.weight, self.outer_share, self.p, largest, gradient
        )
        value, factor = self._root(total, largest)
        back_of_outer, back_of_inner = (Axis(-ends[::-1], -outer[1]) for ends in (outer, inner))
        kernels.pull_outer(
            *rows, self.outer_share, self.p, largest, factor,
            target.grid, series_of(forward, 1, moments), back_of_outer.grid, back_of_outer.table,
            gradient,
        )  # fmt: skip
        backward = Interactions(back_of_outer.numbers, back_of_inner.numbers)
        slopes = series_of(backward, 1, back_of_outer.moments)
        kernels.pull_inner(*rows, self.inner_share, back_of_inner.grid, slopes, gradient)
        return value, gradient

    def _squares(self, scores: FloatArray) -> tuple[float, FloatArray]:
        from toprank.pair_sums import two_class_kernels as kernels
        from toprank.pair_sums.sorted_kernels import score_order

        ((knot, (*_, square)),) = self.loss.pieces
        weight, n = self.weight, len(scores)
        order = score_order(scores)
        row, place = np.empty(n, dtype=np.uint32), np.empty(n)
        counts: tuple[int, int] = kernels.part_classes(
            scores, order, self.kind, self.inner, self.sign, weight, row, place
        )
        del order
        inner_share, walked = square * self.inner_share, np.empty(n)
        rows = row, place, *counts, weight
        largest = kernels.square_heights(*rows, inner_share, knot, walked)
        if largest == 0.0:
            return 0.0, np.zeros(n)
        total = kernels.price_squares(
            row, *counts, weight, self.outer_share, self.p, largest, walked
        )
        value, factor = self._root(total, largest)
        shares = inner_share, self.outer_share
        kernels.square_pulls(*rows, *shares, knot, self.p, largest, factor, walked)
        gradient = place  # the places are no longer needed
        kernels.scatter(row, sum(counts), self.sign, walked, gradient)
        return value, gradient

    def _root(self, total: float, largest: float) -> tuple[float, float]:
        """F and F / total, from the sum of the powers of the heights relative to the largest."""
        value = largest * float(np.exp(np.log(total) / self.p))
        return value, value / total


def is_square(loss: Loss) -> bool:
    """Whether the loss is c (knot - r)_+^2."""
    return (
        len(loss.pieces) == 1
        and loss.bend is None
        and loss.smooth
        and len(loss.pieces[0][1]) == 3
        and not any(loss.pieces[0][1][:2])
        and loss.pieces[0][1][2] > 0
    )


class Axis:
    """The boxes from the lowest to the highest of some scores, and a table for their moments."""

    def __init__(self, ends: FloatArray, origin: float):
        first, last = np.floor((ends - origin) / WIDTH)
        self.grid = (float(origin), WIDTH, float(first))
        self.table = np.zeros((int(last - first) + 1, DEGREE))
        self.numbers = Numbers(np.arange(first, last + 1.0))
        #: The first box, and how many there are.
        self.boxes = float(first), len(self.table)

    @property
    def moments(self) -> FloatArray:
        """Chebyshev moments of the boxes, from those of powers."""
        return powers_of_polynomials() @ self.table.T


@cache
def powers_of_polynomials() -> FloatArray:
    """The powers of x in each of Chebyshev's polynomials, one line per polynomial."""
    from toprank.pair_sums.two_class_kernels import power_matrix

    return power_matrix()


def series_of(interactions: Interactions, k: int, moments: FloatArray) -> FloatArray:
    """The series of the target boxes in powers, one line per box."""
    return np.ascontiguousarray(interactions.series(k, moments).T @ powers_of_polynomials())
