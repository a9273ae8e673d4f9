"""What every way of summing over pairs offers: all pairs of two classes, or those of a relation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

import numpy as np

from toprank._numerics import FloatArray, log_of
from toprank.blocks import Workers
from toprank.losses import Loss
from toprank.pairs import Graded, Relation


class PairSum(ABC):
    """Sums over all pairs (inner, outer) of a loss or of one of its derivatives.

    Inner rows have oriented scores a, outer rows b, and the margin of a pair is r = a - b.
    With l0 = l, l1 = l', l2 = l'':

        to_outer(k, v)[o] = e^{-log_scale[o]} sum_i v[i] l_k(a[i] - b[o])
        to_inner(k, u)[i] = sum_o u[o] e^{-log_scale[o]} l_k(a[i] - b[o])

    ``log_scale`` (one number per outer row) keeps the sums inside the range of floating point
    where every pair of an outer row is far on the right side of the margin.
    """

    log_scale: FloatArray | float

    def __init__(self, loss: Loss, inner: FloatArray, outer: FloatArray):
        self.loss = loss
        self.inner = inner
        self.outer = outer
        self.log_scale = 0.0

    @staticmethod
    def supports(loss: Loss) -> bool:
        """Whether this way of summing is exact (to rounding) for the loss."""
        return True

    @abstractmethod
    def to_outer(self, orders: tuple[int, ...], v: FloatArray) -> list[FloatArray]:
        """Sum over the inner rows, for each order of derivative asked for."""

    @abstractmethod
    def to_inner(self, orders: tuple[int, ...], u: FloatArray) -> list[FloatArray]:
        """Sum over the outer rows, for each order of derivative asked for."""

    def columns_to_outer(self, orders: tuple[int, ...], v: FloatArray) -> list[FloatArray]:
        """`to_outer` of every column of ``v``."""
        return _stack_columns(self.to_outer(orders, column) for column in v.T)

    def columns_to_inner(self, orders: tuple[int, ...], u: FloatArray) -> list[FloatArray]:
        """`to_inner` of every column of ``u``."""
        return _stack_columns(self.to_inner(orders, column) for column in u.T)

    def log_heights(self, weights: FloatArray) -> FloatArray:
        """Return log S[o], S[o] = sum_i weights[i] l(a[i] - b[o]); minus infinity where S = 0."""
        (scaled,) = self.to_outer((0,), weights)
        # cancellation in signed node sums can leave a zero height at -1e-17
        return log_of(np.maximum(scaled, 0.0)) + self.log_scale

    def log_heights_of_any(self, weights: FloatArray) -> FloatArray:
        """`log_heights` of weights however small: where products lose digits they are lifted."""
        lift = _lift_of(weights)
        if not lift:
            return self.log_heights(weights)
        return self.log_heights(np.ldexp(weights, lift)) - lift * np.log(2.0)


def _lift_of(weights: FloatArray) -> int:
    """The power of two that brings the smallest weights to where their products keep digits."""
    smallest = np.min(weights, where=weights > 0, initial=1.0)
    return _LIFT if smallest < _SMALL else 0


#: Weights below lose digits when a loss below one multiplies them; none is above 1e100.
_SMALL, _LIFT = 1e-250, 500


def _stack_columns(sums: Iterable[list[FloatArray]]) -> list[FloatArray]:
    """From the sums of each column, by order, to one table for each order."""
    return [np.stack(of_order, axis=1) for of_order in zip(*sums, strict=True)]


class RelatedSum(PairSum):
    """A way of summing over the pairs of a relation, at the oriented scores of all rows."""

    relation: Relation
    n_rows: int

    def __init__(
        self, loss: Loss, relation: Relation, scores: FloatArray, workers: Workers | None = None
    ):
        super().__init__(loss, scores[relation.inner], scores[relation.outer])
        self.relation, self.n_rows = relation, len(scores)

    @staticmethod
    def accepts(relation: Relation) -> bool:
        """Whether this way can follow the relation at all."""
        return True

    def value_grad(self, v: FloatArray, u: FloatArray) -> tuple[float, FloatArray]:
        """Return the sum of v u l(r) over the pairs, and its gradient in the scores of all rows.

        For losses without a ``log_scale``.
        """
        height, tilt = self.to_outer((0, 1), v)
        (pull,) = self.to_inner((1,), u)
        grad = np.zeros(self.n_rows)
        grad[self.relation.inner] += v * pull
        grad[self.relation.outer] -= u * tilt
        return float(u @ height), grad


class GradedSum(RelatedSum):
    """Sums over the pairs of graded labels, with everything in order of place."""

    relation: Graded

    def __init__(
        self, loss: Loss, relation: Graded, scores: FloatArray, workers: Workers | None = None
    ):
        self.relation, self.n_rows = relation, len(scores)
        self.workers = Workers() if workers is None else workers
        self.x = scores[relation.rows]
        self.loss, self.log_scale = loss, 0.0

    @staticmethod
    def accepts(relation: Relation) -> bool:
        return isinstance(relation, Graded)

    def to_outer(self, orders: tuple[int, ...], v: FloatArray) -> list[FloatArray]:
        full = np.zeros(len(self.x))
        full[self.relation.inner_places] = v
        places = self.relation.outer_places
        return [total[places] for total in self._sums(orders, full, inward=False)]

    def to_inner(self, orders: tuple[int, ...], u: FloatArray) -> list[FloatArray]:
        full = np.zeros(len(self.x))
        full[self.relation.outer_places] = u
        places = self.relation.inner_places
        return [total[places] for total in self._sums(orders, full, inward=True)]

    @abstractmethod
    def _sums(self, orders: tuple[int, ...], v: FloatArray, *, inward: bool) -> list[FloatArray]:
        """Sums over the winners of each place; inward, over its losers."""
