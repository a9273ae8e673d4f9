r"""Ranking rules that need not come from scores (Clémençon, Lugosi & Vayatis 2006, Section 2).

A rule r(x, x') in {-1, 1} says which of two rows is better. On a known population of n rows it is
judged by rho+ = P(Z > 0 | x, x') and rho- = P(Z < 0 | x, x'), where Z = (Y - Y')/2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._numerics import FloatArray


def ranking_rule_risk(
    rule: ArrayLike,
    rho_plus: ArrayLike,
    rho_minus: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""The ranking risk L(r) = P(Z r(X, X') < 0) of any rule on a known population.

    .. math:: L(r) = E\big[ 1[r(X, X') = 1]\, \rho_- + 1[r(X, X') = -1]\, \rho_+ \big]

    Parameters
    ----------
    rule : array-like of shape (n, n)
        1 where the first row is ranked above the second, -1 elsewhere.
    rho_plus, rho_minus : array-like of shape (n, n)
        The chances that the first label is larger, and that it is smaller.
    sample_weight : array-like of shape (n,), optional
        Probabilities of the rows, up to a factor. Pairs of a row with itself count: the two are
        independent draws that happen to be alike.

    Examples
    --------
    >>> from toprank.bounds import ranking_rule_risk
    >>> round(ranking_rule_risk([[1, 1], [-1, 1]], [[0, 0.9], [0.1, 0]], [[0, 0.1], [0.9, 0]]), 6)
    0.05
    """
    plus, minus, weight = _check_chances(rho_plus, rho_minus, sample_weight)
    ranks = np.asarray(rule)
    if ranks.shape != plus.shape or not np.all((ranks == 1) | (ranks == -1)):
        raise ValueError(
            f"rule has shape {ranks.shape}, expected {plus.shape}, each entry 1 or -1."
        )
    return float(weight @ np.where(ranks == 1, minus, plus) @ weight)


def best_ranking_rule(
    rho_plus: ArrayLike, rho_minus: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> tuple[NDArray[np.int64], float]:
    r"""The rule of least ranking risk, and that risk (Proposition 1), for any rho+ and rho-.

    .. math::
        r^*(x, x') = 2 \cdot 1[\rho_+ \ge \rho_-] - 1, \qquad L^* = E \min(\rho_+, \rho_-)

    It need not be the order of any score: where A beats B, B beats C and C beats A, each with a
    chance above one half, neither is the best rule.

    Parameters
    ----------
    rho_plus, rho_minus, sample_weight
        As in `ranking_rule_risk`.

    Returns
    -------
    rule : array of shape (n, n)
    risk : float

    Examples
    --------
    >>> from toprank.bounds import best_ranking_rule
    >>> beats = [[0.5, 0.6, 0.4], [0.4, 0.5, 0.6], [0.6, 0.4, 0.5]]  # a cycle
    >>> loses = [[0.5, 0.4, 0.6], [0.6, 0.5, 0.4], [0.4, 0.6, 0.5]]
    >>> rule, risk = best_ranking_rule(beats, loses)
    >>> rule.tolist(), round(risk, 6)
    ([[1, 1, -1], [-1, 1, 1], [1, -1, 1]], 0.433333)
    """
    plus, minus, weight = _check_chances(rho_plus, rho_minus, sample_weight)
    rule = np.where(plus >= minus, 1, -1).astype(np.int64)
    return rule, float(weight @ np.minimum(plus, minus) @ weight)


def _check_chances(
    rho_plus: ArrayLike, rho_minus: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    plus, minus = (np.asarray(rho, dtype=np.float64) for rho in (rho_plus, rho_minus))
    if plus.ndim != 2 or plus.shape[0] != plus.shape[1] or plus.shape != minus.shape:
        raise ValueError(
            f"rho_plus has shape {plus.shape} and rho_minus {minus.shape}; expected one (n, n) "
            "array each, a chance for every pair of rows."
        )
    if not (np.all(plus >= 0) and np.all(minus >= 0) and np.all(plus + minus <= 1 + 1e-12)):
        raise ValueError(
            "rho_plus and rho_minus are chances: none is negative, sums are at most 1."
        )
    if not np.allclose(plus, minus.T, atol=1e-9):
        raise ValueError(
            "rho_plus[i, j] differs from rho_minus[j, i]: both are the chance that row i has the "
            "larger label of the two."
        )
    weight = np.ones(len(plus)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if weight.shape != (len(plus),) or np.any(weight < 0) or not np.sum(weight) > 0:
        raise ValueError(f"sample_weight: expected {len(plus)} numbers, none negative, not all 0.")
    return plus, minus, weight / np.sum(weight)
