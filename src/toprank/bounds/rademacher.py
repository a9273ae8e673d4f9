r"""Rademacher averages: how well the best function of a class follows random signs.

:math:`R_m(F) = E \sup_{f \in F} \frac1m \sum_{i=1}^m \sigma_i f(w_i)` with independent signs
:math:`\sigma_i = \pm 1`. In ranking the points w are :math:`m = \lfloor n/2 \rfloor` separate
pairs of rows, (1, m+1), (2, m+2), ... (Clémençon, Lugosi & Vayatis 2006, Proposition 2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array, check_random_state, column_or_1d

from toprank._numerics import FloatArray
from toprank.bounds.bound import Bound, above, at_least

#: Up to this many points all sign vectors are tried, and the average is exact.
EXACT_POINTS = 12
#: Entries of the products of signs and functions that are held at once.
_BLOCK = 2_000_000

Supremum = Callable[[FloatArray], FloatArray]


def rademacher_average(
    values: ArrayLike | Supremum,
    *,
    n_points: int | None = None,
    absolute: bool = True,
    n_draws: int = 1000,
    random_state: int | np.random.RandomState | None = None,
) -> Bound:
    r"""Rademacher average of a class on the points of the sample.

    .. math:: \hat R(F) = E_\sigma \sup_{f \in F} \left| \frac1m \sum_i \sigma_i f(w_i) \right|

    Parameters
    ----------
    values : array of shape (n_functions, n_points) or callable
        A finite class by its values at the points, for instance `separate_pair_errors`; or a
        function that takes signs of shape (draws, n_points) and returns, for each draw, the
        supremum over the class.
    n_points : int, optional
        Number of points m; needed for a callable, and only then.
    absolute : bool, default=True
        With the absolute value (Proposition 2 and Corollary 3) or without (Proposition 12). A
        callable returns its own supremum, and this is not used.
    n_draws : int, default=1000
        Number of sign vectors drawn. With up to 12 points all of them are used instead.
    random_state : int, RandomState instance or None, default=None
        Seed of the signs.

    Returns
    -------
    Bound
        ``value`` is the average; its standard error over the draws is in the statement. It is
        vacuous when the class follows any signs, the largest value it could have.

    Examples
    --------
    Two functions on three points, and the linear functions with coefficients of norm at most 2:

    >>> import numpy as np
    >>> from toprank.bounds import rademacher_average
    >>> round(rademacher_average([[1, 1, 1], [1, 0, 1]]).value, 4)
    0.5833
    >>> X = np.array([[3.0, 4.0], [0.0, 1.0]])
    >>> ball = lambda signs: 2.0 * np.linalg.norm(signs @ X, axis=1) / len(X)
    >>> round(rademacher_average(ball, n_points=2).value, 4)
    5.0368
    """
    at_least("n_draws", n_draws, 2.0)
    supremum, m, n_functions, limit = _class_of(values, n_points, absolute)
    exact = m <= EXACT_POINTS
    blocks = _all_signs(m) if exact else _random_signs(m, int(n_draws), n_functions, random_state)
    suprema = np.concatenate([_checked_supremum(supremum, signs) for signs in blocks])
    value = float(np.mean(suprema))
    how = f"all {2**m} sign vectors"
    if not exact:
        error = float(np.std(suprema, ddof=1)) / math.sqrt(len(suprema))
        how = f"{len(suprema)} random sign vectors, standard error {error:.2g}"
    vacuous = value >= limit > 0.0
    statement = f"Rademacher average of the class on {m} points = {value:.4g} ({how})"
    if vacuous:
        statement += "; the class follows any signs, so this says nothing"
    return Bound(value, vacuous, statement, ("the points are independent of one another",))


def separate_pair_errors(y: ArrayLike, scores: ArrayLike) -> FloatArray:
    """Misrankings of each scoring function on separate pairs of rows, for `rademacher_average`.

    The pairs are rows i and m + i with m = floor(n/2). A pair is misranked when the row with the
    smaller label has the larger score; of tied scores the first row counts as the larger.

    Parameters
    ----------
    y : array of shape (n,)
        Labels or real values, in random order: neighbours must not depend on each other.
    scores : array of shape (n_functions, n) or (n,)
        One scoring function per row.

    Returns
    -------
    array of shape (n_functions, m)
        1.0 where the pair is misranked, else 0.0.

    Examples
    --------
    >>> from toprank.bounds import separate_pair_errors
    >>> separate_pair_errors([1, 0, 0, 1], [[0.3, 0.2, 0.1, 0.4], [0.1, 0.4, 0.3, 0.2]])
    array([[0., 0.],
           [1., 1.]])
    """
    labels = check_array(column_or_1d(y), ensure_2d=False, dtype=np.float64, input_name="y")
    table = check_array(np.atleast_2d(np.asarray(scores)), dtype=np.float64, input_name="scores")
    n = len(labels)
    if table.shape[1] != n or n < 2:
        raise ValueError(
            f"scores has shape {table.shape} for {n} labels; expected (n_functions, {n}) and at "
            "least two rows."
        )
    m = n // 2
    better = np.sign(labels[:m] - labels[m : 2 * m])
    rule = np.where(table[:, :m] >= table[:, m : 2 * m], 1.0, -1.0)
    return np.asarray(better * rule < 0, dtype=np.float64)


def rkhs_rademacher(*, radius: float, kernel_diagonal: ArrayLike, n: float | None = None) -> Bound:
    r"""Rademacher average of a ball in a reproducing kernel Hilbert space.

    .. math:: R_n(F_B) \le \frac{B}{m} E \sqrt{\sum_{i=1}^{m} k(w_i, w_i)}, \quad
        m = \lfloor n/2 \rfloor

    (Clémençon, Lugosi & Vayatis 2006, Section 7, where 1/m is written 2/n, the same for even n).

    Parameters
    ----------
    radius : float
        B, the radius of the ball.
    kernel_diagonal : float or array of shape (m,)
        k(w, w) at the separate pairs w of the sample; or one number, its largest value, for a
        bound that holds whatever the distribution.
    n : int, optional
        Number of rows; needed for one number, and only then.

    Returns
    -------
    Bound
        ``value`` bounds the Rademacher average. It is vacuous when it reaches the largest value
        of abs(f), B times the root of the largest k(w, w).

    Examples
    --------
    >>> from toprank.bounds import rkhs_rademacher
    >>> rkhs_rademacher(radius=2.0, kernel_diagonal=1.0, n=800).value
    0.1
    """
    radius = above("radius", radius)
    diagonal = np.asarray(kernel_diagonal, dtype=np.float64)
    if diagonal.ndim > 1 or not (np.all(np.isfinite(diagonal)) and np.all(diagonal >= 0)):
        raise ValueError(
            "kernel_diagonal must be one number or one per pair, finite and not negative: k(w, w) "
            f"of a positive definite kernel. Got an array of shape {diagonal.shape}."
        )
    if (diagonal.ndim == 0) != (n is not None) or diagonal.size == 0:
        raise ValueError(
            "Expected kernel_diagonal as one number together with n, or as an array of k(w, w) "
            "at the floor(n/2) separate pairs without n."
        )
    m = int(at_least("n", n, 2.0)) // 2 if n is not None else len(diagonal)
    largest = float(np.max(diagonal))
    if n is not None:
        value, source = radius * math.sqrt(largest / m), "k(w, w) is at most kernel_diagonal"
    else:
        with np.errstate(over="ignore"):
            value = radius * math.sqrt(float(np.mean(diagonal)) / m)
        source = "the pairs of the sample stand for the expectation over pairs"
    vacuous = value >= radius * math.sqrt(largest) > 0.0
    statement = f"Rademacher average of the ball of radius {radius:g} on {m} pairs <= {value:.4g}"
    if vacuous:
        statement += "; this says nothing, because no |f| is larger"
    return Bound(value, vacuous, statement, ("the rows are independent draws", source))


def vc_rademacher(*, vc_dimension: float, n: float, constant: float) -> Bound:
    r"""Rademacher average of a class of finite VC dimension, :math:`E R_n \le c \sqrt{V/n}`.

    (Clémençon, Lugosi & Vayatis 2006, Section 3.)

    Parameters
    ----------
    vc_dimension : float
        V, of the misranking indicators of the class.
    n : int
        Number of rows, at least 2.
    constant : float
        The universal constant c, which the paper does not give.

    Returns
    -------
    Bound
        ``value`` bounds E R_n; vacuous from 1 on, the largest value of an indicator.

    Examples
    --------
    >>> from toprank.bounds import vc_rademacher
    >>> vc_rademacher(vc_dimension=9, n=90_000, constant=2.0).value
    0.02
    """
    c = above("constant", constant)
    dimension, n = above("vc_dimension", vc_dimension), at_least("n", n, 2.0)
    value = c * math.sqrt(dimension / n)
    statement = f"E R_n <= c sqrt(V/n) = {value:.4g} for c = {c:g}, V = {dimension:g}, n = {n:g}"
    if value >= 1.0:
        statement += "; this says nothing, because indicators are at most 1"
    assumes = (
        "the rows are independent draws from one distribution",
        "the class of misranking indicators has VC dimension at most vc_dimension",
        f"the unknown universal constant c of the inequality is at most {c:g}",
    )
    return Bound(value, value >= 1.0, statement, assumes)


def _class_of(
    values: ArrayLike | Supremum, n_points: int | None, absolute: bool
) -> tuple[Supremum, int, int, float]:
    """Return the class's supremum, its points, its functions and its largest possible average."""
    if callable(values):
        if n_points is None:
            raise ValueError(
                "values is a function, so n_points is needed: the number of points it is drawn at."
            )
        return values, int(at_least("n_points", n_points, 1.0)), 1, math.inf
    if n_points is not None:
        raise ValueError(f"n_points={n_points!r} is not needed: values is an array.")
    table: FloatArray = check_array(values, dtype=np.float64, input_name="values")
    if np.max(np.abs(table)) > 1e150:
        raise ValueError(
            "values exceed 1e150, and their sums may exceed every float: rescale them."
        )

    def supremum(signs: FloatArray) -> FloatArray:
        sums = signs @ table.T
        return np.asarray(np.max(np.abs(sums) if absolute else sums, axis=1)) / table.shape[1]

    return supremum, table.shape[1], len(table), float(np.mean(np.max(np.abs(table), axis=0)))


def _checked_supremum(supremum: Supremum, signs: FloatArray) -> FloatArray:
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.asarray(supremum(signs), dtype=np.float64)
    if values.shape != (len(signs),) or not np.all(np.isfinite(values)):
        raise ValueError(
            f"The supremum for {len(signs)} sign vectors has shape {values.shape}, expected one "
            f"finite number for each: ({len(signs)},)."
        )
    return values


def _all_signs(m: int) -> Iterator[FloatArray]:
    codes = np.arange(2**m)[:, np.newaxis] >> np.arange(m)
    yield np.where(codes & 1, 1.0, -1.0)


def _random_signs(
    m: int, n_draws: int, n_functions: int, random_state: int | np.random.RandomState | None
) -> Iterator[FloatArray]:
    generator = check_random_state(random_state)
    step = max(1, _BLOCK // (m + n_functions))
    for start in range(0, n_draws, step):
        shape = (min(step, n_draws - start), m)
        yield generator.choice(np.array([-1.0, 1.0]), size=shape)
