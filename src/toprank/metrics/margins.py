"""Margins of ranked pairs (Rudin & Schapire 2009): metrics that read the scores, not the order.

The margin of a positive i and a negative k is f_i - f_k. These metrics change when the scores
are stretched, so compare them between rankers only after bringing the scores to one scale.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from sklearn.utils import check_array

from toprank._numerics import FloatArray, is_number, log_of, log_sum_exp
from toprank.blocks.tensors import OnDevice
from toprank.metrics._inputs import check_ranking
from toprank.metrics.order import RankedList
from toprank.metrics.sorted_classes import SortedClasses, SortedRows

#: How many terms are summed at once.
_BLOCK = 2**14


def ranking_margin(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    norm: float = 1.0,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Margin of the ranking: the smallest margin of any pair.

    .. math:: \mu(f) = \frac{1}{\mathrm{norm}} \min_{i, k} (f_i - f_k)

    It is positive when every positive is ranked above every negative (Rudin & Schapire 2009,
    Section 2).

    Parameters
    ----------
    y_true, y_score, sample_weight, label_propensity, pos_label
        As in `auc`. Only whether a weight is zero matters.
    norm : float, default=1.0
        What to divide by; for a combination of weak rankers, the sum of the absolute
        coefficients.

    Returns
    -------
    float
        The margin; plus or minus infinity where it exceeds the largest float.

    Examples
    --------
    >>> from toprank.metrics import ranking_margin
    >>> ranking_margin([0, 1, 0, 1], [0.0, 0.75, 0.5, 1.0])
    0.25
    """
    ranked = RankedList.of(y_true, y_score, sample_weight, label_propensity, pos_label)
    return ranking_margin_of(ranked, norm)


def ranking_margin_of(ranked: RankedList, norm: float = 1.0) -> float:
    """`ranking_margin` of a ranked list."""
    if not (is_number(norm) and 0 < norm < np.inf):
        raise ValueError(f"norm={norm!r} cannot scale a margin: expected a number > 0.")
    if ranked.edges is not None:
        return _scaled_gap(*ranked.edges, norm)
    lowest_positive = float(ranked.scores[ranked.last_positive])
    return _scaled_gap(lowest_positive, float(ranked.scores[ranked.first_negative]), norm)


def _scaled_gap(high: float, low: float, norm: float) -> float:
    """(high - low) / norm; infinite only where that exceeds the largest float."""
    gap = high - low
    return gap / norm if np.isfinite(gap) else high / norm - low / norm


def margin_distribution(
    y_true: ArrayLike,
    y_score: ArrayLike,
    thetas: ArrayLike | None = None,
    *,
    norm: float = 1.0,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
) -> tuple[FloatArray, FloatArray]:
    r"""Distribution of the margins of all pairs: the share that is at most theta, for each theta.

    .. math::
        \frac{1}{W_+ W_-} \sum_i \sum_k w_i w_k\, 1[f_i - f_k \le \theta\,\mathrm{norm}]

    the left part of the margin bound of Rudin & Schapire (2009, Theorem 2) as a function of
    theta. No pair is listed: each theta costs O(n log n).

    Parameters
    ----------
    y_true, y_score, sample_weight, label_propensity, pos_label
        As in `auc`.
    thetas : array-like of shape (m,), optional
        Where to evaluate it; by default 101 even steps from the smallest to the largest margin.
    norm : float, default=1.0
        What to divide margins by; for a combination of weak rankers, the sum of the absolute
        coefficients.

    Returns
    -------
    thetas, shares : arrays of shape (m,)

    Examples
    --------
    >>> from toprank.metrics import margin_distribution
    >>> thetas, shares = margin_distribution([0, 1, 0, 1], [0.0, 0.75, 0.5, 1.0], [0.25, 0.5, 1.0])
    >>> shares
    array([0.25, 0.5 , 1.  ])
    """
    ranked = RankedList.of(y_true, y_score, sample_weight, label_propensity, pos_label)
    smallest = ranking_margin_of(ranked, norm)
    if thetas is not None:
        grid = np.asarray(thetas, dtype=np.float64).reshape(-1)
        with np.errstate(over="ignore"):  # an infinite margin is refused below
            margins = grid * norm
    else:
        highest = ranked.scores[int(np.argmax(ranked.positive > 0))]
        lowest = ranked.scores[ranked.negative > 0][-1]
        ends = ranking_margin_of(ranked), float(highest) - float(lowest)
        if not np.isfinite(ends[1] - ends[0]):
            raise ValueError(
                f"The margins go from {ends[0]:g} to {ends[1]:g}, beyond the range of floats: "
                "divide the scores, or pass thetas."
            )
        grid = np.linspace(smallest, ends[1] / norm, 101)
        # a hair more, so that rounding does not leave out the pairs at either end
        margins = grid * norm + 16 * np.spacing(np.max(np.abs(ranked.scores)) / 2)
    return grid, np.array([margin_error_of(ranked, float(margin)) for margin in margins])


def max_margin(M: ArrayLike, *, signed: bool = False) -> float:
    r"""The largest margin that any combination of the weak rankers has, by linear programming.

    .. math::
        \rho = \max_{\lambda \ge 0,\ |\lambda|_1 = 1} \min_{ik} (M \lambda)_{ik}
             = \min_d \max_j (d^\top M)_j

    (Rudin & Schapire 2009, Section 4.2). Exact, for problems whose pairs can be listed.

    Parameters
    ----------
    M : array-like of shape (pairs, weak rankers)
        What each weak ranker says about each crucial pair, h_j(x_i) - h_j(x_k).
    signed : bool, default=False
        Whether coefficients may be negative, a weak ranker and its reverse being one.

    Returns
    -------
    float
        The margin; positive if the pairs can be separated.

    Examples
    --------
    >>> from toprank.metrics import max_margin
    >>> round(max_margin([[1, 0], [0, 1]]), 12)
    0.5
    """
    matrix = check_array(M, dtype=np.float64, input_name="M")
    if signed:
        matrix = np.hstack([matrix, -matrix])
    # the solver takes entries below 1e-9 for zero and refuses those above 1e15
    size = float(np.max(np.abs(matrix))) or 1.0
    matrix = matrix / size
    pairs, rankers = matrix.shape
    result = linprog(
        np.append(np.zeros(rankers), -1.0),
        A_ub=np.hstack([-matrix, np.ones((pairs, 1))]),
        b_ub=np.zeros(pairs),
        A_eq=np.append(np.ones(rankers), 0.0).reshape(1, -1),
        b_eq=[1.0],
        bounds=[(0.0, None)] * rankers + [(None, None)],
        method="highs",
    )
    assert result.status == 0, result.message  # it has solutions, and none is unbounded
    return float(-result.fun) * size


def margin_error(
    y_true: ArrayLike,
    y_score: ArrayLike,
    theta: float,
    *,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Share of the pairs whose margin is at most theta.

    .. math::
        \frac{1}{W_+ W_-} \sum_i \sum_k w_i w_k\, 1[f_i - f_k \le \theta]

    the left part of the margin bound of Rudin & Schapire (2009, Section 3). At theta = 0 it is
    the misranking error with ties counted as errors. The pairs are compared as
    f_i <= f_k + theta.

    Parameters
    ----------
    y_true, y_score, sample_weight, label_propensity, pos_label
        As in `auc`.
    theta : float
        The margin asked for.

    Returns
    -------
    float
        The share, from 0 to 1.

    Examples
    --------
    >>> from toprank.metrics import margin_error
    >>> margin_error([0, 1, 0, 1], [0.0, 0.75, 0.5, 1.0], 0.25)
    0.25
    """
    ranked = RankedList.of(y_true, y_score, sample_weight, label_propensity, pos_label)
    return margin_error_of(ranked, theta)


def margin_error_of(ranked: RankedList, theta: float) -> float:
    """`margin_error` of a ranked list."""
    check_margin("theta", theta)
    wrong = ranked.misranked
    if theta != 0:
        wrong = float(np.dot(ranked.negative, ranked.heights_within(theta)))
    return min(1.0, wrong / (ranked.positives * ranked.negatives))


def f_skew(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""F-skew: how much more the positives add to AdaBoost's objective than the negatives.

    .. math:: \text{F-skew}(f) = F_+ - F_- = \sum_i w_i\, e^{-f_i} - \sum_k w_k\, e^{f_k}

    (Rudin & Schapire 2009, equation 15). Where it is zero, a minimiser of AdaBoost's objective
    F+ + F- also minimises RankBoost's, F+ F- (their Theorem 10); adding
    (log F+ - log F-) / 2 to every score makes it so (Corollary 13).

    Parameters
    ----------
    y_true, y_score, sample_weight, label_propensity, pos_label
        As in `auc`.

    Returns
    -------
    float
        The F-skew; plus or minus infinity where it exceeds the largest float.

    Examples
    --------
    >>> from toprank.metrics import f_skew
    >>> f_skew([0, 1, 0, 1], [-1.0, 1.0, 0.0, 0.0])
    0.0
    """
    checked = check_ranking(y_true, y_score, sample_weight, pos_label, label_propensity)
    if isinstance(checked[1], OnDevice):
        return f_skew_of(RankedList.rank(*checked))
    return f_skew_of_sorted(SortedClasses.of(*checked))


def f_skew_of(ranked: RankedList) -> float:
    """`f_skew` of a ranked list."""
    with np.errstate(over="ignore"):  # terms too small or too large to count
        high, low = ranked.positive > 0, ranked.negative > 0
        plus = log_sum_exp(log_of(ranked.positive[high]) - ranked.scores[high])
        minus = log_sum_exp(log_of(ranked.negative[low]) + ranked.scores[low])
    return exp_difference(plus, minus)


def f_skew_of_sorted(classes: SortedClasses) -> float:
    """`f_skew` of the two classes, each sorted."""
    return exp_difference(_log_mass(classes.high, 1.0), _log_mass(classes.low, -1.0))


def _log_mass(rows: SortedRows, sign: float) -> float:
    """Logarithm of the sum of w exp(sign depth) over the rows of one class."""
    depths = rows.depths
    with np.errstate(over="ignore"):  # a term too small or too large to count
        if rows.weight is not None:
            return log_sum_exp(log_of(rows.weight) + sign * depths)
        top = max(sign * float(depths[0]), sign * float(depths[-1]))
        mass = 0.0
        for first in range(0, len(depths), _BLOCK):  # a block stays in the cache
            mass += float(np.sum(np.exp(sign * depths[first : first + _BLOCK] - top)))
    return top + float(np.log(mass))


def exp_difference(plus: float, minus: float) -> float:
    """Return e^plus - e^minus; infinite where it exceeds the largest float."""
    if plus == minus:
        return 0.0
    larger, gap = max(plus, minus), -abs(plus - minus)
    with np.errstate(over="ignore"):
        size = np.exp(larger) * -np.expm1(gap)
    return float(np.copysign(size, plus - minus))


def check_margin(name: str, theta: float) -> None:
    """Raise ValueError unless theta is a finite number."""
    if not (is_number(theta) and np.isfinite(theta)):
        raise ValueError(f"{name}={theta!r} is not a margin: expected a finite number.")
