"""Centres of a cover with large risks: Theorem 3 of Rudin 2009, tightened (Section 10)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._numerics import FloatArray


def choose_centres(
    scores: ArrayLike, risks: ArrayLike, *, radius: float
) -> tuple[NDArray[np.intp], float]:
    r"""Choose balls that cover a finite class, the least risk of their centres being the largest.

    Theorem 3 holds with the least true risk of the centres in the place of that of the whole class,
    and the centres are ours to choose (Rudin 2009, the end of the proof in Section 10). A ball
    around a bad ranker covers a good one beside it, so that the good one's small risk no longer
    weakens the bound. Among the largest r for which the rankers of a risk of at least r cover the
    class, the balls are then taken greedily, the widest first.

    Parameters
    ----------
    scores : array-like of shape (rankers, n)
        What each ranker of the class says about the rows; distances are the largest over rows.
        They stand for the sup norm over all x where the rows are all that can be met.
    risks : array-like of shape (rankers,)
        True normalised risks R_p of the rankers, or lower bounds of them.
    radius : float
        epsilon theta / 8, as the theorem has it.

    Returns
    -------
    centres : int array
        Numbers of the rankers at the centres; ln of how many there are is log_covering_number.
    r_min : float
        Their least risk, for ``pnorm_push(..., r_min=r_min, of_centres=True)``.

    Examples
    --------
    >>> from toprank.bounds import choose_centres
    >>> centres, r_min = choose_centres([[0.0, 1.0], [0.0, 1.1], [5.0, 0.0]], [0.1, 0.3, 0.4],
    ...                                 radius=0.2)
    >>> centres.tolist(), r_min
    ([1, 2], 0.3)
    """
    table, risk = np.asarray(scores, dtype=np.float64), np.asarray(risks, dtype=np.float64)
    if table.ndim != 2 or risk.shape != (len(table),) or not len(table):
        raise ValueError(
            f"scores has shape {table.shape} and risks {risk.shape}; expected (rankers, n) and "
            "(rankers,)."
        )
    if not radius > 0:
        raise ValueError(f"radius={radius!r}: expected a number above 0.")
    near = np.array([np.max(np.abs(table - one), axis=1) <= radius for one in table])
    # each ranker needs a centre near it: the best it can have decides
    r_min = float(np.min(np.max(np.where(near, risk, -np.inf), axis=1)))
    return _greedy_cover(near, risk >= r_min), r_min


def _greedy_cover(near: NDArray[np.bool_], allowed: NDArray[np.bool_]) -> NDArray[np.intp]:
    left, chosen = np.ones(len(near), dtype=bool), []
    while np.any(left):
        gains: FloatArray = np.sum(near & left, axis=1) * allowed
        chosen.append(int(np.argmax(gains)))
        left &= ~near[chosen[-1]]
    return np.array(sorted(chosen), dtype=np.intp)
