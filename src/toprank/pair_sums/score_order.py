"""The order of the scores by their leading digits: a fit sorts as often as it evaluates."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank._extras import compiled

#: Digits of eleven bits: three of them hold the upper half of a float64.
_BITS, _DIGITS = 11, 3
_MASK, _SHIFT = np.uint32((1 << _BITS) - 1), np.uint32(_BITS)
#: Places that rows may be moved, on average, where the upper halves agree.
_MOVES = 8


def score_order(x: Any) -> Any:
    """Return the places in order of score, equal scores in any order."""
    order, sorted_ = _by_upper_half(np.ascontiguousarray(x))
    return order if sorted_ else np.argsort(x)


@compiled(nogil=True, cache=True)
def _by_digit(key: Any, order: Any, shift: Any, count: Any, new_key: Any, new_order: Any) -> None:
    filled = np.cumsum(count) - count
    for i in range(len(key)):
        digit = (key[i] >> shift) & _MASK
        at = filled[digit]
        new_key[at], new_order[at] = key[i], order[i]
        filled[digit] = at + 1


@compiled(nogil=True, cache=True)
def _by_upper_half(x: Any) -> Any:
    """Sort by the upper halves, digit by digit, and the rest by insertion if that is little."""
    n = len(x)
    bits, key, order = x.view(np.int64), np.empty(n, np.uint32), np.arange(n).astype(np.uint32)
    count = np.zeros((_DIGITS, 1 << _BITS), np.int64)
    for i in range(n):
        # so that keys are ordered as the numbers are: negative ones have all their bits turned
        key[i] = np.uint32((bits[i] ^ ((bits[i] >> 63) | np.int64(-(2**63)))) >> 32)
        count[0, key[i] & _MASK] += 1
        count[1, (key[i] >> _SHIFT) & _MASK] += 1
        count[2, key[i] >> (_SHIFT + _SHIFT)] += 1
    new_key, new_order = np.empty_like(key), np.empty_like(order)
    for digit in range(_DIGITS):
        _by_digit(key, order, np.uint32(digit) * _SHIFT, count[digit], new_key, new_order)
        key, new_key, order, new_order = new_key, key, new_order, order
    moves = _MOVES * n
    for i in range(1, n):
        place, score, at = order[i], x[order[i]], i
        while at > 0 and x[order[at - 1]] > score:
            order[at] = order[at - 1]
            at -= 1
        order[at] = place
        moves -= i - at
        if moves < 0:
            return order, False
    return order, True
