"""What the ways of summing over graded pairs share."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from toprank._numerics import FloatArray
from toprank.blocks import Workers
from toprank.losses import Loss
from toprank.pair_sums.related import RelatedSum
from toprank.pairs import Graded, Relation


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
