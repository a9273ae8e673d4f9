"""The discount of the places of a list, summed to any depth without a table of every place."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expi

from toprank._numerics import FloatArray
from toprank.blocks.tensors import OnDevice
from toprank.metrics.device import summed_on_device

_PLACES = np.arange(4097.0)
_SUMS = np.concatenate(([0.0], np.cumsum(1 / np.log1p(_PLACES[1:]))))
_LAST = len(_SUMS) - 1
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(9)


def summed_discount(depth: Any) -> Any:
    r"""The sum of 1 / ln(1 + r) over the places r = 1, ..., depth; between whole depths, linear."""
    if isinstance(depth, OnDevice):
        return summed_on_device(depth)
    return discount_within(np.zeros_like(depth, dtype=np.float64), depth)


def discount_within(above: Any, width: Any) -> Any:
    """The discounts of `width` units of weight that stand below `above` units.

    The discount of a place is spread evenly over its unit. It is not the difference of two sums
    from the top, in which a light tie below heavy ones would be lost.
    """
    if isinstance(above, OnDevice):
        return summed_on_device(above + width) - summed_on_device(above)
    place = np.floor(above) + 1.0
    head = np.minimum(width, place - above)
    rest = width - head
    count = np.floor(rest)
    summed = head / np.log1p(place) + (rest - count) / np.log1p(place + count + 1.0)
    several = np.flatnonzero(count > 0)
    summed[several] += _of_places(place[several], count[several])
    return summed


def _of_places(above: FloatArray, count: FloatArray) -> FloatArray:
    """The discounts of so many whole places below the first `above`, from a table or beyond it."""
    first, last = (np.minimum(at, _LAST).astype(np.intp) for at in (above, above + count))
    start = np.maximum(above, _LAST)
    beyond = count - (last - first)
    summed = _SUMS[last] - _SUMS[first]
    far = np.flatnonzero(beyond > 0)
    summed[far] += _beyond(start[far], beyond[far])
    return summed


def _beyond(above: FloatArray, count: FloatArray) -> FloatArray:
    """The Euler-Maclaurin formula; the first term left out is below 1e-14.

    Its integral is one of the logarithmic integral li(1 + place), by quadrature where the two
    ends are close.
    """
    last = above + count
    near = count < 0.5 * above
    half = count[near, None] / 2
    integral = expi(np.log1p(last)) - expi(np.log1p(above))
    nodes = above[near, None] + half * (1 + _NODES)
    integral[near] = np.sum(half * _NODE_WEIGHTS / np.log1p(nodes), axis=1)
    return np.asarray(integral + _correction(last) - _correction(above))


def _correction(place: FloatArray) -> FloatArray:
    """Half of a term and a twelfth of its slope."""
    log = np.log1p(place)
    return np.asarray(1 / (2 * log) - 1 / (12 * (1 + place) * log**2))
