"""The discount of the places of a list, summed to any depth without a table of every place."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expi

from toprank._numerics import FloatArray
from toprank.blocks.on_device import OnDevice
from toprank.metrics.device import summed_on_device

_PLACES = np.arange(4097.0)
_SUMS = np.concatenate(([0.0], np.cumsum(1 / np.log1p(_PLACES[1:]))))


def summed_discount(depth: Any) -> Any:
    r"""The sum of 1 / ln(1 + r) over the places r = 1, ..., depth.

    Between whole depths it is linear. Beyond a table it is the Euler-Maclaurin formula, whose
    integral is the logarithmic integral li(1 + depth); the first term left out is below 1e-14.
    """
    if isinstance(depth, OnDevice):
        return summed_on_device(depth)
    last = _PLACES[-1]
    beyond = _smooth(np.maximum(depth, last)) - _smooth(np.array([last]))
    return np.asarray(np.interp(depth, _PLACES, _SUMS) + beyond)


def _smooth(depth: FloatArray) -> FloatArray:
    """Integral, half of the last term and a twelfth of its slope, up to a constant."""
    log = np.log1p(depth)
    return np.asarray(expi(log) + 1 / (2 * log) - 1 / (12 * (1 + depth) * log**2))
