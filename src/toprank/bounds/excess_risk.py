r"""Excess risk of rankers that minimise a risk over pairs (Clémençon, Lugosi & Vayatis 2006).

The ranking risk on a sample is a U-statistic of order two,
:math:`U_n = \frac{1}{n(n-1)} \sum_{i \ne j} q(X_i, X_j)`, an average over pairs that share rows.
References are to the report *Ranking and empirical minimization of U-statistics* of 2006.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from toprank.bounds.bound import (
    Bound,
    above,
    at_least,
    in_words,
    inner_share,
    solve,
)
from toprank.losses import Loss, get_loss

INDEPENDENT = "the rows are independent draws from one distribution"
_RANGE = "the kernel q is symmetric, and its values lie in an interval of length kernel_range"


@dataclass(frozen=True)
class _Tail:
    """P(|U - EU| > t) <= front · exp(-n t^2 / (quadratic + linear t)), t in units of the range."""

    front: float
    n: float
    quadratic: float
    linear: float
    assumes: tuple[str, ...]

    def log_probability(self, t: float) -> float:
        t = min(max(t, 1e-100), 1e100)  # beyond, t^2 is no float, and the bound is vacuous
        return math.log(self.front) - self.n * t / (self.quadratic / t + self.linear)


def _hoeffding(n: float, variance: float | None, constant: float | None) -> _Tail:
    _refuse_unused("hoeffding", variance=variance, constant=constant)
    return _Tail(2.0, 2.0 * (n // 2), 1.0, 0.0, (INDEPENDENT, _RANGE))


def _bernstein(n: float, variance: float | None, constant: float | None) -> _Tail:
    _refuse_unused("bernstein", constant=constant)
    sigma2 = _require_argument("bernstein", "variance", variance)
    assumes = (INDEPENDENT, _RANGE, "the variance of q(X, X') is at most the variance given")
    return _Tail(2.0, n // 2, 2.0 * sigma2, 2.0 / 3.0, assumes)


def _projection(n: float, variance: float | None, constant: float | None) -> _Tail:
    s2 = _require_argument("projection", "variance", variance)
    c = above("constant", _require_argument("projection", "constant", constant))
    assumes = (
        INDEPENDENT,
        _RANGE,
        "the variance of the projection E[q(X, X') | X] is at most the variance given",
        f"the unknown universal constant c of the inequality is at most {c:g}",
    )
    return _Tail(4.0, n, 8.0 * s2, c, assumes)


_TAILS: dict[str, Callable[[float, float | None, float | None], _Tail]] = {
    "hoeffding": _hoeffding,
    "bernstein": _bernstein,
    "projection": _projection,
}


def u_statistic(
    *,
    deviation: float | None = None,
    probability: float | None = None,
    n: float,
    method: str = "hoeffding",
    variance: float | None = None,
    constant: float | None = None,
    kernel_range: float = 1.0,
) -> Bound:
    r"""How far a U-statistic of order two can be from its expectation (Appendix 1).

    For a kernel with values in an interval of length 1, P(abs(U_n - EU_n) > t) is at most

    ==============  =====================================================================
    "hoeffding"     :math:`2 \exp(-2 \lfloor n/2 \rfloor t^2)`
    "bernstein"     :math:`2 \exp(-\lfloor n/2 \rfloor t^2 / (2\sigma^2 + 2t/3))`, equation (5),
                    with the variance :math:`\sigma^2` of q(X, X')
    "projection"    :math:`4 \exp(-n t^2 / (8 s^2 + c t))` with the variance :math:`s^2` of the
                    projection E[q(X, X') | X] and a universal constant c that is not known
    ==============  =====================================================================

    Parameters
    ----------
    deviation : float, optional
        t; give it to get the probability.
    probability : float, optional
        The probability in (0, 1]; give it to get t. Exactly one of the two is given.
    n : int
        Number of rows, at least 2.
    method : {"hoeffding", "bernstein", "projection"}, default="hoeffding"
        Which inequality.
    variance : float, optional
        :math:`\sigma^2` or :math:`s^2`, in the kernel's units; for "bernstein" and "projection".
    constant : float, optional
        c, for "projection". The literature gives no value; the bound is as good as yours.
    kernel_range : float, default=1.0
        Length of the interval that holds the kernel's values.

    Returns
    -------
    Bound
        ``value`` is the probability, at most 1, or the deviation. The bound is vacuous when the
        probability reaches 1 or the deviation the kernel's range.

    Examples
    --------
    >>> from toprank.bounds import u_statistic
    >>> round(u_statistic(probability=0.05, n=1000).value, 4)
    0.0607
    >>> round(u_statistic(probability=0.05, n=1000, method="bernstein", variance=0.05).value, 4)
    0.0297
    """
    if method not in _TAILS:
        raise ValueError(f"method={method!r} is unknown: expected one of {list(_TAILS)}.")
    unit = above("kernel_range", kernel_range)
    n = at_least("n", n, 2.0)
    scaled = None if variance is None else at_least("variance", variance) / unit / unit
    tail = _TAILS[method](n, scaled, constant)
    value, t, log_p = solve(
        lambda t: tail.log_probability(t / unit), "deviation", deviation, probability
    )
    vacuous = log_p >= 0.0 or t >= unit
    statement = f"P(|U_n - EU_n| > {t:.4g}) <= {in_words(log_p)} by {method} with n = {n:g}"
    if vacuous:
        statement += (
            f"; this says nothing, because no deviation exceeds {unit:g} and no probability 1"
        )
    return Bound(value, vacuous, statement, tail.assumes)


def excess_ranking_risk(*, delta: float, n: float, rademacher: float) -> Bound:
    r"""Excess ranking risk of the minimiser of the empirical ranking risk (Corollary 3).

    With probability at least 1 - delta,

    .. math:: L(r_n) - \inf_{r \in R} L(r) \le 4 E R_n + 4 \sqrt{\frac{\ln(1/\delta)}{n - 1}}

    Parameters
    ----------
    delta : float
        Probability in (0, 1) that the statement may fail.
    n : int
        Number of rows, at least 2.
    rademacher : float
        E R_n of Proposition 2, or an upper bound of it: the expected Rademacher average of the
        misranking indicators over floor(n/2) separate pairs. See `rademacher_average` and
        `vc_rademacher`.

    Returns
    -------
    Bound
        ``value`` is the excess risk; vacuous from 1 on.

    Examples
    --------
    >>> from toprank.bounds import excess_ranking_risk
    >>> round(excess_ranking_risk(delta=0.05, n=10_000, rademacher=0.02).value, 4)
    0.1492
    """
    delta, n = inner_share("delta", delta), at_least("n", n, 2.0)
    # bounded differences before symmetrisation would give 2 in place of the second 4
    value = 4.0 * at_least("rademacher", rademacher) + 4.0 * math.sqrt(-math.log(delta) / (n - 1.0))
    assumed = "rademacher is at least the expected Rademacher average E R_n of R"
    return minimiser_bound("Corollary 3", "inf L", value, delta, n, assumed)


def minimiser_bound(
    where: str, best: str, value: float, delta: float, n: float, *assumed: str
) -> Bound:
    """Return a bound on the ranking risk of the empirical minimiser, less that of the best."""
    statement = (
        f"{where}: P(L(r_n) - {best} > {value:.4g}) <= {delta:.4g} for the minimiser r_n of the "
        f"empirical ranking risk of {n:g} rows"
    )
    if value >= 1.0:
        statement += "; this says nothing, because no risk exceeds 1"
    chosen = (
        "r_n minimises the empirical ranking risk over the class R, fixed before the data were seen"
    )
    return Bound(value, value >= 1.0, statement, (INDEPENDENT, chosen, *assumed))


def excess_convex_risk(
    *, delta: float, n: float, rademacher: float, loss: str | Loss, score_bound: float
) -> Bound:
    r"""Excess convex risk of the minimiser of an empirical convex risk (Proposition 12).

    With probability at least 1 - delta, for functions of pairs with values in [-B, B] and the
    cost :math:`\phi(x) = \ell(-x)`,

    .. math:: A(f_n) - \inf_{f \in F} A(f) \le 8 B \phi'(B) R_n(F)
        + 2 \sqrt{\frac{2 \phi(B)^2 \ln(1/\delta)}{n}}

    The printed proposition has B in place of :math:`\phi(B)`, the largest cost, and lacks the
    factor 2 of its own first step. Its factor 8 B of the first term is a bound only from
    B = 1/2 on; below, the contraction inequality's 4 is used.

    Parameters
    ----------
    delta : float
        Probability in (0, 1) that the statement may fail.
    n : int
        Number of rows, at least 2.
    rademacher : float
        R_n(F), the expected Rademacher average of the functions f over floor(n/2) separate
        pairs, or an upper bound of it. See `rkhs_rademacher` and `rademacher_average`.
    loss : str or toprank.losses.Loss
        The margin loss, convex.
    score_bound : float
        B > 0.

    Returns
    -------
    Bound
        ``value`` is the excess risk; vacuous from :math:`\phi(B) - \phi(-B)` on, the range of
        the cost.

    Examples
    --------
    >>> from toprank.bounds import excess_convex_risk
    >>> case = dict(delta=0.05, rademacher=0.001, loss="hinge", score_bound=1.0)
    >>> round(excess_convex_risk(n=100_000, **case).value, 4)
    0.039
    """
    delta, n = inner_share("delta", delta), at_least("n", n, 2.0)
    reach = above("score_bound", score_bound)
    average = at_least("rademacher", rademacher)
    margin_loss = get_loss(loss)
    largest, smallest, slope = _cost(margin_loss, reach)
    contraction = 8.0 * max(reach, 0.5) * slope * average if average else 0.0
    value = contraction + 2.0 * largest * math.sqrt(-2.0 * math.log(delta) / n)
    vacuous = not value < largest - smallest
    statement = (
        f"Proposition 12 (corrected): P(A(f_n) - inf A > {value:.4g}) <= {delta:.4g} for the "
        f"minimiser f_n of the empirical {margin_loss.name} risk of {n:g} rows"
    )
    if vacuous:
        statement += f"; this says nothing, because the cost varies by {largest - smallest:.4g}"
    assumes = (
        INDEPENDENT,
        f"f_n minimises the empirical risk over a class F of functions with |f| <= {reach:g}, "
        "fixed before the data were seen",
        "rademacher is at least the expected Rademacher average R_n(F)",
        "the loss is convex, non-negative and non-increasing",
    )
    return Bound(value, vacuous, statement, assumes)


def _cost(loss: Loss, reach: float) -> tuple[float, float, float]:
    """Return phi(B), phi(-B) and phi'(B) for phi(x) = l(-x)."""
    if not loss.trainable:
        raise ValueError(
            f"loss={loss!r} is not convex: Proposition 12 is about convex costs. "
            "Use excess_ranking_risk for the 0-1 loss."
        )
    value, slope = loss.value(np.array([-reach, reach])), loss.slope(np.array([-reach]))
    return float(value[0]), float(value[1]), -float(slope[0])


def _require_argument(method: str, name: str, value: float | None) -> float:
    if value is None:
        raise ValueError(f"method={method!r} needs {name}: it is a part of the inequality.")
    return value


def _refuse_unused(method: str, **given: float | None) -> None:
    names = [name for name, value in given.items() if value is not None]
    if names:
        raise ValueError(f"method={method!r} does not use {' and '.join(names)}; leave it out.")
