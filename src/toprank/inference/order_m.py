r"""U-statistics of any order, and the risk of ranking m observations at once.

Clémençon, Lugosi & Vayatis (2006), Remark 2: a rule that orders m rows is judged by a loss of its
permutation against the one by labels, and the natural estimate of its risk is a U-statistic of
order m. For m = 2 and the share of pairs out of order it is the ranking risk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._arrays import AnyArray, BoolArray
from toprank._numerics import FloatArray
from toprank.pairs import check_grades, check_scores

#: Tuples that are evaluated at most; beyond it they are drawn.
MOST_TUPLES = 200_000
_AT_ONCE = 20_000

TupleKernel = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class OrderedUStatistic:
    """A U-statistic of order m.

    Attributes
    ----------
    value : float
        The mean of the kernel over the tuples.
    variance : float
        Of the value, by the jackknife over rows.
    order, n_rows, n_tuples : int
        m, the rows, and the tuples that were evaluated.
    complete : bool
        Whether that is all of them; otherwise they were drawn at random.
    """

    value: float
    variance: float
    order: int
    n_rows: int
    n_tuples: int
    complete: bool

    @property
    def standard_error(self) -> float:
        """Root of the variance."""
        return float(np.sqrt(self.variance))


def u_statistic_of_order(
    kernel: TupleKernel,
    Z: ArrayLike,
    order: int,
    *,
    most_tuples: int = MOST_TUPLES,
    random_state: int | np.random.Generator | None = 0,
) -> OrderedUStatistic:
    r"""U-statistic of any order (Clémençon, Lugosi & Vayatis 2006, Remark 2).

    .. math:: U_n = \binom{n}{m}^{-1} \sum_{i_1 < \dots < i_m} q(Z_{i_1}, \dots, Z_{i_m})

    Parameters
    ----------
    kernel : callable
        Takes an array of shape (tuples, m) or, where Z has d columns, (tuples, m, d), and returns
        one number per tuple. It has to be symmetric in the m rows of a tuple.
    Z : array-like of shape (n,) or (n, d)
        The sample.
    order : int
        m, at least 1 and less than n.
    most_tuples : int, default=200_000
        If there are more tuples, so many are drawn, and the variance has their noise in it.
    random_state : seed or generator
        For tuples that are drawn.

    Returns
    -------
    OrderedUStatistic
        ``.value .variance .standard_error .complete``

    Examples
    --------
    The third cumulant of a sample is a U-statistic of order three; so is a mean of order one:

    >>> import numpy as np
    >>> from toprank.inference import u_statistic_of_order
    >>> x = np.array([1.0, 2.0, 4.0, 7.0, 11.0])
    >>> mean = u_statistic_of_order(lambda z: z[:, 0], x, 1)
    >>> mean.value, round(mean.standard_error, 6), round(float(np.std(x, ddof=1) / 5**0.5), 6)
    (5.0, 1.81659, 1.81659)
    """
    data = np.asarray(Z)
    n = len(data)
    if not 1 <= order < n:
        raise ValueError(f"order={order!r}: expected from 1 to {n - 1}, one less than the rows.")
    complete = comb(n, order) <= most_tuples
    tuples = _all_tuples(n, order) if complete else _drawn(n, order, most_tuples, random_state)
    if not complete:  # which rows are drawn must not depend on their order in the table
        data = data[_order_by_value(data)]
    parts = np.array_split(tuples, -(-len(tuples) // _AT_ONCE))
    values = np.concatenate([_values(kernel, data, part) for part in parts])
    total, count = float(np.sum(values)), len(values)
    # leave out each row in turn, and the tuples that it is in
    with_row = np.bincount(tuples.ravel(), np.repeat(values, order), minlength=n)
    tuples_of = np.bincount(tuples.ravel(), minlength=n)
    left = (total - with_row) / np.maximum(count - tuples_of, 1)
    variance = (n - 1) / n * float(np.sum((left - np.mean(left)) ** 2))
    return OrderedUStatistic(total / count, variance, order, n, count, complete)


def _order_by_value(data: AnyArray) -> NDArray[np.intp]:
    columns = data.reshape(len(data), -1).T
    return np.lexsort(columns) if data.dtype.kind in "biuf" else np.arange(len(data))


def _all_tuples(n: int, order: int) -> NDArray[np.intp]:
    return np.array(list(combinations(range(n), order)), dtype=np.intp)


def _drawn(
    n: int, order: int, count: int, random_state: int | np.random.Generator | None
) -> NDArray[np.intp]:
    rng = np.random.default_rng(random_state)
    drawn = rng.integers(0, n, size=(count, order))
    while True:
        ordered = np.sort(drawn, axis=1)
        again = np.any(ordered[:, 1:] == ordered[:, :-1], axis=1)
        if not np.any(again):
            return drawn.astype(np.intp)
        drawn[again] = rng.integers(0, n, size=(int(np.sum(again)), order))


def _values(kernel: TupleKernel, data: AnyArray, tuples: NDArray[np.intp]) -> FloatArray:
    values = np.asarray(kernel(data[tuples]), dtype=np.float64)
    if values.shape != (len(tuples),):
        raise ValueError(
            f"kernel returned an array of shape {values.shape} for {len(tuples)} tuples; expected "
            "one number per tuple."
        )
    return values


def permutation_risk(
    y_real: ArrayLike,
    y_score: ArrayLike,
    m: int,
    *,
    loss: str | Callable[[AnyArray, AnyArray], np.ndarray] = "pairs",
    most_tuples: int = MOST_TUPLES,
    random_state: int | np.random.Generator | None = 0,
) -> OrderedUStatistic:
    r"""The risk of ordering m observations by their scores: a U-statistic of order m (Remark 2).

    .. math:: L(r) = E\, \ell\big(r(X^{(1)}, \dots, X^{(m)}), \pi\big)

    pi being the order by labels.

    Parameters
    ----------
    y_real : array-like of shape (n,)
        Labels; larger belongs nearer the top.
    y_score : array-like of shape (n,)
        Scores.
    m : int
        How many rows are ordered at once.
    loss : {"pairs", "order", "top"} or callable
        "pairs": the share of the m(m-1)/2 pairs that are in the wrong order, a tie in score one
        half (for every m its risk is `toprank.metrics.ranking_risk`). "order": whether any pair is
        not in order, pairs of equal labels aside. "top": whether the row of the highest score does
        not have the highest label. Or a function of (labels, scores), arrays of shape (tuples, m),
        that returns one number in [0, 1] per tuple.
    most_tuples, random_state
        As in `u_statistic_of_order`.

    Examples
    --------
    >>> from toprank.inference import permutation_risk
    >>> y, s = [1.5, 2.0, 3.5, 9.0], [0.1, 0.3, 0.2, 0.4]
    >>> permutation_risk(y, s, 3, loss="order").value  # two of the four triples
    0.5
    """
    if isinstance(loss, str) and loss not in _LOSSES:
        raise ValueError(f"loss={loss!r}: expected one of {sorted(_LOSSES)}, or a function.")
    judge = _LOSSES[loss] if isinstance(loss, str) else loss
    scores = check_scores(y_score)
    rows = np.column_stack([check_grades(y_real, len(scores), name="y_real"), scores])
    return u_statistic_of_order(
        lambda z: judge(z[..., 0], z[..., 1]),
        rows,
        m,
        most_tuples=most_tuples,
        random_state=random_state,
    )


def _pairs_apart(labels: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    i, j = np.triu_indices(labels.shape[1], 1)
    return np.sign(labels[:, i] - labels[:, j]), np.sign(scores[:, i] - scores[:, j])


def _share_of_pairs(labels: np.ndarray, scores: np.ndarray) -> FloatArray:
    of_labels, of_scores = _pairs_apart(labels, scores)
    wrong = (of_labels * of_scores < 0) + 0.5 * ((of_scores == 0) & (of_labels != 0))
    return np.mean(wrong, axis=1)


def _any_pair(labels: np.ndarray, scores: np.ndarray) -> BoolArray:
    of_labels, of_scores = _pairs_apart(labels, scores)
    return np.any((of_labels != 0) & (of_labels != of_scores), axis=1)


def _top_missed(labels: AnyArray, scores: AnyArray) -> FloatArray:
    """Expected over random orders of tied scores."""
    first = scores == np.max(scores, axis=1, keepdims=True)
    best = labels == np.max(labels, axis=1, keepdims=True)
    return 1.0 - np.sum(first & best, axis=1) / np.sum(first, axis=1)


_LOSSES = {"pairs": _share_of_pairs, "order": _any_pair, "top": _top_missed}
