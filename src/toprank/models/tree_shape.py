"""Whether nodes that name their children are one tree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Splits one below the other; explaining a score takes memory in the square of it.
DEEPEST = 4096


def is_tree(left: NDArray[np.int64], right: NDArray[np.int64]) -> bool:
    """Whether every node is reached once from the first, and none is too deep.

    Parameters
    ----------
    left, right : array of int
        The children of each node; -1 and -1 for a leaf.

    Examples
    --------
    >>> import numpy as np
    >>> is_tree(np.array([1, -1, -1]), np.array([2, -1, -1]))
    True
    >>> is_tree(np.array([1, 0, -1]), np.array([2, 2, -1]))  # goes round in a circle
    False
    """
    split = left >= 0
    below = np.sort(np.concatenate([left[split], right[split]]))
    if not np.array_equal(split, right >= 0) or not np.array_equal(below, np.arange(1, len(left))):
        return False
    # every node but the first has one parent, so only circles apart from the first are left
    seen, level, depth = 0, np.zeros(min(1, len(left)), dtype=np.int64), 0
    while len(level) and depth <= DEEPEST:
        seen, depth = seen + len(level), depth + 1
        inner = level[split[level]]
        level = np.concatenate([left[inner], right[inner]])
    return seen == len(left) > 0
