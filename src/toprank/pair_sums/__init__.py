"""Scores in, sums over all pairs out, and the adjoint: no room for an I x K matrix.

:func:`pair_sum` picks the fastest way that is exact for a loss. All of them are tested
against :class:`Reference`, the double loop.
"""

from __future__ import annotations

from toprank._numerics import FloatArray
from toprank.losses import Loss
from toprank.pair_sums.base import PairSum
from toprank.pair_sums.blocked import Blocked
from toprank.pair_sums.factorised import Factorised
from toprank.pair_sums.interpolated import Interpolated
from toprank.pair_sums.reference import Reference
from toprank.pair_sums.sorted import Sorted

#: Fast ways first; ``Blocked`` takes whatever is left.
PAIR_SUMS: tuple[type[PairSum], ...] = (Factorised, Sorted, Interpolated, Blocked)

__all__ = [
    "PAIR_SUMS",
    "Blocked",
    "Factorised",
    "Interpolated",
    "PairSum",
    "Reference",
    "Sorted",
    "pair_sum",
]


def pair_sum(loss: Loss, inner: FloatArray, outer: FloatArray) -> PairSum:
    """Return the fastest exact pair sum for the loss, prepared at the oriented scores."""
    kind = next(kind for kind in PAIR_SUMS if kind.supports(loss))
    return kind(loss, inner, outer)
