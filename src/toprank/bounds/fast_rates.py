r"""Fast rates for the minimiser of the ranking risk (Clémençon, Lugosi & Vayatis 2006, Section 4).

The empirical ranking risk is a U-statistic, whose variance is small. Where Assumption 4 holds
(see `toprank.bounds.noise_condition`), the excess risk of its minimiser falls faster than
:math:`1/\sqrt n`. What degenerates in its Hoeffding decomposition is bounded by Theorem 11.
Universal constants that the report does not give are arguments, with its symbols.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from toprank._numerics import FloatArray
from toprank.bounds.bound import (
    Bound,
    above,
    at_least,
    in_words,
    inner_share,
    smallest_solution,
    solve,
)
from toprank.bounds.convex_costs import ranking_risk_from_convex
from toprank.bounds.excess_risk import INDEPENDENT, excess_convex_risk, minimiser_bound
from toprank.losses import Loss

#: The factors of EZ_eps, q^1/2 EU_eps, q EM, q F n, q^3/2 F n^1/2 and q^2 F in Theorem 11's proof.
_OF_PROOF = (12 * 128.0, 12 * 12.0, 12 * 320.0, 12 * 4.0, 12 * 30.0, 12 * 800.0)
#: Moments that are tried for a tail.
_MOMENTS = 2.0 * np.geomspace(1.0, 1e6, 400)


@dataclass(frozen=True)
class Chaos:
    r"""The expected sizes of a class of degenerate kernels that Theorems 5 and 11 ask for.

    Parameters
    ----------
    Z, U, M : float
        :math:`E Z_\epsilon`, :math:`E U_\epsilon` and :math:`E M`, or upper bounds of them.
    F : float
        The largest absolute value of a kernel.
    n : int
        Number of rows.
    """

    Z: float
    U: float
    M: float
    F: float
    n: int

    @classmethod
    def of(cls, kernels: Sequence[ArrayLike], *, draws: int = 200, random_state: int = 0) -> Chaos:
        """Estimate the three from kernels on a sample, by drawing random signs.

        Parameters
        ----------
        kernels : sequence of arrays of shape (n, n)
            f(X_i, X_j) of each kernel of the class; the diagonal is taken for zero.
        draws : int, default=200
            How many vectors of signs.
        random_state : int, default=0
            The seed.

        Examples
        --------
        >>> import numpy as np
        >>> from toprank.bounds import Chaos
        >>> x = np.array([-1.0, 1.0, -1.0, 1.0])
        >>> chaos = Chaos.of([np.outer(x, x)])
        >>> chaos.F, chaos.n
        (1.0, 4)
        """
        matrices = [np.array(kernel, dtype=np.float64) for kernel in kernels]
        if not matrices or any(f.ndim != 2 or f.shape != (len(f), len(f)) for f in matrices):
            raise ValueError("kernels must be square arrays, one per kernel, and at least one.")
        n = len(matrices[0])
        if any(len(f) != n or not np.all(np.isfinite(f)) for f in matrices):
            raise ValueError("kernels must be finite and of the same rows.")
        for f in matrices:
            np.fill_diagonal(f, 0.0)
        signs = np.random.default_rng(random_state).choice([-1.0, 1.0], size=(draws, n))
        pulls = [signs @ f for f in matrices]
        Z = np.max([np.abs(np.sum(pull * signs, axis=1)) for pull in pulls], axis=0)
        U = np.max([np.linalg.norm(pull, axis=1) for pull in pulls], axis=0)
        M = np.max([np.max(np.abs(pull), axis=1) for pull in pulls], axis=0)
        largest = max(float(np.max(np.abs(f))) for f in matrices)
        return cls(float(Z.mean()), float(U.mean()), float(M.mean()), largest, n)

    def checked(self) -> tuple[float, float, float, float, float]:
        """Return Z, U, M, F and n, or raise ValueError."""
        return (
            at_least("Z", self.Z),
            at_least("U", self.U),
            at_least("M", self.M),
            at_least("F", self.F),
            at_least("n", self.n, 2.0),
        )


def degenerate_moment(chaos: Chaos, q: float, *, constant: float | None = None) -> float:
    r"""The bound of Theorem 11 on a moment of a degenerate U-process.

    .. math:: (E Z^q)^{1/q} \le C \big( E Z_\epsilon + q^{1/2} E U_\epsilon + q (E M + F n)
        + q^{3/2} F n^{1/2} + q^2 F \big)

    Parameters
    ----------
    chaos : Chaos
        The expected sizes of the class.
    q : float
        The moment, at least 2.
    constant : float, optional
        C. Without it each term takes the factor that the proof arrives at (Remark 6: generously
        overestimated).

    Examples
    --------
    >>> from toprank.bounds import Chaos, degenerate_moment
    >>> chaos = Chaos(Z=10.0, U=10.0, M=5.0, F=1.0, n=100)
    >>> degenerate_moment(chaos, 2.0, constant=1.0) < degenerate_moment(chaos, 2.0)
    True
    """
    Z, U, M, F, n = chaos.checked()
    q = at_least("q", q, 2.0)
    factors = _OF_PROOF if constant is None else (above("constant", constant),) * 6
    terms = (Z, math.sqrt(q) * U, q * M, q * F * n, q**1.5 * F * math.sqrt(n), q * q * F)
    return float(sum(factor * term for factor, term in zip(factors, terms, strict=True)))


def degenerate_process(
    chaos: Chaos, *, deviation: float | None = None, probability: float | None = None
) -> Bound:
    r"""How large a degenerate U-process can be, from the moments of Theorem 11.

    P(Z > t) is at most the least of :math:`(\|Z\|_q / t)^q` over q >= 2, with the constants of the
    proof: :math:`Z = \sup_f |\sum_{i,j} f(X_i, X_j)|`.

    Parameters
    ----------
    chaos : Chaos
        The expected sizes of the class.
    deviation : float, optional
        t; give it to get the probability.
    probability : float, optional
        Give it to get t. Exactly one of the two is given.

    Returns
    -------
    Bound
        Vacuous when the probability reaches 1, or t the largest possible sum, F n (n - 1).

    Examples
    --------
    >>> from toprank.bounds import Chaos, degenerate_process
    >>> chaos = Chaos(Z=1e5, U=1e5, M=300.0, F=1.0, n=100_000)
    >>> degenerate_process(chaos, probability=0.05).vacuous
    False
    """
    _, _, _, F, n = chaos.checked()
    log_norms = np.log([max(degenerate_moment(chaos, q), 5e-324) for q in _MOMENTS])

    def log_probability(t: float) -> float:
        return float(min(0.0, np.min(_MOMENTS * (log_norms - math.log(t)))))

    value, t, log_p = solve(log_probability, "deviation", deviation, probability)
    vacuous = log_p >= 0.0 or t >= F * n * (n - 1.0)
    statement = f"Theorem 11: P(Z > {t:.4g}) <= {in_words(log_p)} with n = {n:g}"
    if vacuous:
        statement += f"; this says nothing, because no sum exceeds {F * n * (n - 1.0):.4g}"
    assumes = (
        INDEPENDENT,
        "the kernels are degenerate, E f(X, x) = 0 for every x, and zero on the diagonal",
        "Z, U and M are at least the expectations of the class, and F its largest value",
    )
    return Bound(value, vacuous, statement, assumes)


def local_radius(phi: Callable[[float], float], *, n: float, alpha: float) -> float:
    r"""The solution rho of :math:`\sqrt n\,\rho^2 = \phi(\rho^\alpha)` (Theorem 5).

    Parameters
    ----------
    phi : callable
        The modulus of continuity of the ordinary empirical process; non-decreasing, with
        phi(x)/x non-increasing and phi(1) >= 1.
    n : int
        Number of rows.
    alpha : float
        Of Assumption 4.

    Examples
    --------
    >>> from toprank.bounds import local_radius
    >>> round(local_radius(lambda x: 2.0 * x, n=10_000, alpha=1.0), 6)
    0.02
    """
    size, alpha = at_least("n", n, 2.0), at_least("alpha", alpha, 0.0, 1.0)
    if not phi(1.0) >= 1.0:
        raise ValueError(f"phi(1) = {phi(1.0):g}: the theorem asks for at least 1.")
    return smallest_solution(lambda rho: math.sqrt(size) * rho * rho >= phi(rho**alpha))


def fast_excess_risk(
    *,
    delta: float,
    chaos: Chaos,
    rho: float,
    constant: float,
    approximation: float = 0.0,
) -> Bound:
    r"""Excess ranking risk of the empirical minimiser, at a fast rate (Theorem 5).

    With probability at least 1 - delta,

    .. math:: L(r_n) - L^* \le 2 \big(\inf_R L(r) - L^*\big) + C \Big(
        \frac{E Z_\epsilon}{n^2} + \frac{E U_\epsilon \sqrt{\ln(1/\delta)}}{n^2}
        + \frac{E M \ln(1/\delta)}{n^2} + \frac{\ln(1/\delta)}{n} + \rho^2 \ln(1/\delta) \Big)

    Parameters
    ----------
    delta : float
        Probability in (0, 1) that the statement may fail.
    chaos : Chaos
        The expected sizes of the degenerate kernels of the class.
    rho : float
        From `local_radius`.
    constant : float
        C. The report gives no value; the bound is as good as yours.
    approximation : float, default=0.0
        inf L(r) - L* over the class.

    Examples
    --------
    >>> from toprank.bounds import Chaos, fast_excess_risk
    >>> chaos = Chaos(Z=1e4, U=1e4, M=100.0, F=2.0, n=10_000)
    >>> round(fast_excess_risk(delta=0.05, chaos=chaos, rho=0.02, constant=1.0).value, 5)
    0.00177
    """
    Z, U, M, _, n = chaos.checked()
    log = -math.log(inner_share("delta", delta))
    rho, C = at_least("rho", rho), above("constant", constant)
    chaotic = (Z + U * math.sqrt(log) + M * log) / (n * n)
    bias = 2.0 * at_least("approximation", approximation, 0.0, 1.0)
    value = bias + C * (chaotic + log / n + rho * rho * log)
    return _excess("Theorem 5", value, delta, n, C)


def fast_rate(
    *,
    delta: float,
    n: float,
    vc_dimension: float,
    alpha: float,
    constant: float,
    approximation: float = 0.0,
) -> Bound:
    r"""Excess ranking risk for a class of finite VC dimension, at a fast rate (Corollary 6).

    With probability at least 1 - delta,

    .. math:: L(r_n) - L^* \le 2 \big(\inf_R L(r) - L^*\big)
        + C \Big( \frac{V \ln(n/\delta)}{n} \Big)^{1/(2 - \alpha)}

    Without noise (Section 5.2) alpha is 1; with a bounded density of eta(X) or m(X) it is any
    number below 1 (Corollaries 8 and 10), and C grows like 1/(1 - alpha).

    Parameters
    ----------
    delta : float
        Probability in (0, 1) that the statement may fail.
    n : int
        Number of rows, at least 2.
    vc_dimension : float
        V of the class of ranking rules.
    alpha : float
        Of Assumption 4; see `noise_condition`.
    constant : float
        C, which holds the constant c of Assumption 4 too. The report gives no value.
    approximation : float, default=0.0
        inf L(r) - L* over the class.

    Examples
    --------
    >>> from toprank.bounds import fast_rate
    >>> settings = dict(delta=0.05, n=100_000, vc_dimension=10, constant=1.0)
    >>> slow, fast = fast_rate(alpha=0.0, **settings), fast_rate(alpha=1.0, **settings)
    >>> round(slow.value, 4), round(fast.value, 4)
    (0.0381, 0.0015)
    """
    delta, n = inner_share("delta", delta), at_least("n", n, 2.0)
    V, C = above("vc_dimension", vc_dimension), above("constant", constant)
    alpha = at_least("alpha", alpha, 0.0, 1.0)
    rate = (V * math.log(n / delta) / n) ** (1.0 / (2.0 - alpha))
    bias = 2.0 * at_least("approximation", approximation, 0.0, 1.0)
    return _excess("Corollary 6", bias + C * rate, delta, n, C)


def _excess(where: str, value: float, delta: float, n: float, constant: float) -> Bound:
    return minimiser_bound(
        where,
        "L*",
        value,
        delta,
        n,
        "Assumption 4: Var(h_r) <= c (L(r) - L*)^alpha for every r of the class",
        f"the unknown universal constant C is at most {constant:g}",
    )


def combination_rademacher(rademacher: float, *, weight: float) -> float:
    r"""R_n(F_B) <= B R_n(R), for weighted sums of ranking rules with total weight B (Section 7).

    The report goes on with const B V / sqrt(n); its Section 3, which this builds on, gives
    sqrt(V/n) for R_n(R) (see `vc_rademacher`).

    Parameters
    ----------
    rademacher : float
        R_n(R) of the rules that are combined.
    weight : float
        B, the sum of the absolute weights.

    Examples
    --------
    >>> from toprank.bounds import combination_rademacher
    >>> combination_rademacher(0.02, weight=5.0)
    0.1
    """
    return above("weight", weight) * at_least("rademacher", rademacher)


def convex_excess_ranking_risk(
    *,
    delta: float,
    n: float,
    rademacher: float,
    loss: str | Loss,
    score_bound: float,
    approximation: float = 0.0,
) -> Bound:
    r"""Excess ranking risk of the minimiser of a convex risk, assembled (Section 7).

    .. math:: L(f_n) - L^* \le \psi^{-1}\big( [A(f_n) - \inf_F A] + [\inf_F A - A^*] \big)

    with the estimation error of Proposition 12 (`excess_convex_risk`) and the approximation error
    given. Letting B grow with n so that B^2 phi'(B) / sqrt(n) goes to zero makes the first go to
    zero; if the class is rich the second does too, and the ranking risk reaches L* (Corollary 13).

    Parameters
    ----------
    delta, n, rademacher, loss, score_bound
        As in `excess_convex_risk`.
    approximation : float, default=0.0
        inf A - A* over the class.

    Examples
    --------
    >>> from toprank.bounds import convex_excess_ranking_risk
    >>> settings = dict(delta=0.05, n=1_000_000, rademacher=1e-4, loss="hinge", score_bound=1.0)
    >>> round(convex_excess_ranking_risk(**settings).value, 4)
    0.0106
    """
    estimation = excess_convex_risk(
        delta=delta, n=n, rademacher=rademacher, loss=loss, score_bound=score_bound
    )
    total = estimation.value + at_least("approximation", approximation)
    reached = ranking_risk_from_convex(loss=loss, excess=total)
    statement = f"with probability {1.0 - delta:g}, {reached.statement}"
    return Bound(reached.value, reached.vacuous, statement, estimation.assumes + reached.assumes)


def degenerate_kernel(q: ArrayLike) -> FloatArray:
    r"""The degenerate part of a kernel on a sample: q less its row and column means (Section 4).

    :math:`\hat h(x, x') = q - \Lambda - h(x) - h(x')` with empirical means, for `Chaos.of`.

    Parameters
    ----------
    q : array-like of shape (n, n)
        A symmetric kernel on the sample.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.bounds import degenerate_kernel
    >>> q = np.add.outer([0.0, 1.0, 5.0], [0.0, 1.0, 5.0])  # a sum has no degenerate part
    >>> bool(np.allclose(degenerate_kernel(q), 0.0))
    True
    """
    kernel = np.asarray(q, dtype=np.float64)
    rows = kernel.mean(axis=1)
    return kernel - rows[:, None] - kernel.mean(axis=0) + rows.mean()
