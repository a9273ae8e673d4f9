r"""How far a ranking is from the best one, from the regret of a strongly proper loss.

Theorems and equations are those of Agarwal (2012). Regrets are expectations under the true
distribution; `toprank.bounds.known_eta` has them where that is known, for simulation.
"""

from __future__ import annotations

import math

from toprank.bounds.bound import Bound, above, at_least, share
from toprank.losses.proper import Exponential, Logistic, ProperLoss, get_proper_loss

#: Constants of Theorem 6 (Kotlowski et al. 2011): pairwise regret <= constant * balanced regret.
_BALANCED: dict[type[ProperLoss], float] = {Exponential: 9 / 4, Logistic: 2.0}

_CONDITIONAL = "prevalence is P(y = 1) under the same distribution as the regret"


def ranking_regret(
    loss: str | ProperLoss,
    surrogate_regret: float,
    prevalence: float,
    noise_exponent: float = 0.0,
    noise_constant: float | None = None,
    *,
    sharp: bool = False,
) -> Bound:
    r"""Bound the ranking regret of scores by the regret of a strongly proper loss.

    .. math::
        \mathrm{regret}^{rank}[f] \le \frac{\sqrt 2}{p(1-p)\sqrt\lambda}
        \sqrt{\mathrm{regret}^{\ell}[f]}

    (Theorem 13). Under NA(alpha), P(\|eta(X) - eta(x)\| <= t) <= C t^alpha for all x and t <= 1,

    .. math::
        \mathrm{regret}^{rank}[f] \le \frac{C_\alpha}{p(1-p)}
        \Big( \frac{2}{\lambda} \mathrm{regret}^{\ell}[f] \Big)^{(1+\alpha)/(2+\alpha)}

    (Theorem 15).

    Parameters
    ----------
    loss : str or ProperLoss
        A strongly proper loss of `toprank.losses.proper`, with its modulus lambda.
    surrogate_regret : float
        Expected loss of the scores minus the least possible one.
    prevalence : float
        p = P(y = 1), between 0 and 1.
    noise_exponent : float in [0, 1), default=0.0
        alpha. With 0, which assumes nothing, Theorem 13 is used.
    noise_constant : float, optional
        C_alpha, needed with a positive exponent. The paper does not give it; `low_noise_constant`
        derives one from the C of the assumption.
    sharp : bool, default=False
        Use the exponent (1 + alpha)/2 instead of (1 + alpha)/(2 + alpha), which the proof of
        `low_noise_constant` allows.

    Returns
    -------
    Bound
        Vacuous from 1 on: no ranking error is larger.

    Notes
    -----
    For a bounded prediction space the loss is that of the truncated scores. The bound then holds
    for the ranking by the truncated scores and by the scores themselves, because the proof of
    Corollary 12 already counts ties as errors.

    Examples
    --------
    >>> from toprank.bounds import ranking_regret
    >>> round(ranking_regret("logistic", 0.0002, prevalence=0.5).value, 10)
    0.04
    >>> ranking_regret("logistic", 0.1, prevalence=0.05).vacuous
    True
    """
    composite = _strongly_proper(loss)
    squared_error = (
        2.0 / composite.strong_properness * at_least("surrogate_regret", surrogate_regret)
    )
    bound = plug_in_regret(
        squared_error,
        prevalence,
        q=2.0,
        noise_exponent=noise_exponent,
        noise_constant=noise_constant,
        sharp=sharp,
    )
    theorem = "Theorem 15" if noise_exponent else "Theorem 13"
    statement = f"ranking regret <= {bound.value:.4g} ({theorem}, {composite!r})"
    regret = (
        f"the {composite!r} regret, under the true distribution, is at most {surrogate_regret:g}"
    )
    return Bound(bound.value, bound.vacuous, statement, (regret, *bound.assumes[1:]))


def plug_in_regret(
    error: float,
    prevalence: float,
    *,
    q: float = 1.0,
    noise_exponent: float = 0.0,
    noise_constant: float | None = None,
    sharp: bool = False,
) -> Bound:
    r"""Bound the ranking regret of estimated probabilities by their error.

    .. math::
        \mathrm{regret}^{rank}[\hat\eta] \le \frac{1}{p(1-p)}
        \big( E\,|\hat\eta(X) - \eta(X)|^q \big)^{1/q}

    (Corollary 12 for q = 1, by Jensen's inequality for q > 1), and under NA(alpha)

    .. math::
        \mathrm{regret}^{rank}[\hat\eta] \le \frac{C_{\alpha,q}}{p(1-p)}
        \big( E\,|\hat\eta(X) - \eta(X)|^q \big)^{(1+\alpha)/(q+\alpha)}

    (Theorem 14).

    Parameters
    ----------
    error : float
        The mean of the q-th power of the probabilities' absolute error.
    prevalence, noise_exponent, noise_constant, sharp
        As in `ranking_regret`; the sharp exponent is (1 + alpha)/q, for q >= 1 + alpha.
    q : float, default=1.0
        The power, at least 1.

    Returns
    -------
    Bound
        Vacuous from 1 on.

    Examples
    --------
    >>> from toprank.bounds import plug_in_regret
    >>> round(plug_in_regret(0.01, prevalence=0.5).value, 10)
    0.04
    """
    error, q = at_least("error", error), at_least("q", q, 1.0)
    p, alpha = _prevalence(prevalence), _exponent(noise_exponent)
    assumes = [f"the mean of |estimate - eta|^{q:g} is at most {error:g}", _CONDITIONAL]
    if alpha == 0.0:
        constant, exponent, theorem = 1.0, 1.0 / q, "Corollary 12"
    else:
        constant = _noise_constant(noise_constant)
        exponent, theorem = _sharp(alpha, q) if sharp else ((1 + alpha) / (q + alpha), "Theorem 14")
        assumes.append(f"NA({alpha:g}) holds, with a C_alpha of at most {constant:g}")
    value = constant * error**exponent / (p * (1.0 - p))  # zero for no error, whatever p is
    return _bound(value, theorem, *assumes)


def low_noise_constant(noise_exponent: float, constant: float) -> float:
    r"""Return a C_alpha for Theorems 14 and 15 from the constant C of NA(alpha): 2^(1+alpha) C.

    Where f ranks x and x' wrongly, \|eta - eta'\| is at most the sum of the two errors, so at most
    twice the larger one. With e the error at x, NA(alpha) gives

    .. math::
        E\,|\eta - \eta'|\, 1[\text{wrong}]
        \le 2\, E\,[\, 2e \cdot P(|\eta(X') - \eta(x)| \le 2e)\,]
        \le 2^{2+\alpha}\, C\, E\, e^{1+\alpha}

    which Theorem 11 divides by 2p(1-p). By Jensen's inequality E e^(1+alpha) is at most
    (E e^q)^((1+alpha)/q) for q >= 1 + alpha: the sharp exponent. Errors are at most one, so
    the paper's smaller exponent follows, for every q >= 1.

    Parameters
    ----------
    noise_exponent : float in [0, 1)
        alpha.
    constant : float
        C of the assumption, at least 1 because the probability at t = 1 is 1.

    Examples
    --------
    >>> from toprank.bounds import low_noise_constant
    >>> low_noise_constant(0.0, 1.0)
    2.0
    """
    return 2.0 ** (1.0 + _exponent(noise_exponent)) * at_least("constant", constant, 1.0)


def balanced_regret(loss: str | ProperLoss, surrogate_regret: float) -> Bound:
    r"""Bound the ranking regret by the balanced regret of the exponential or logistic loss.

    .. math::
        \mathrm{regret}^{rank}[f] \le \tfrac{3}{\sqrt 2} \sqrt{\mathrm{regret}^{exp,bal}[f]},
        \qquad
        \mathrm{regret}^{rank}[f] \le 2 \sqrt{\mathrm{regret}^{log,bal}[f]}

    (Kotlowski et al. 2011; equations 29 and 30). The balanced loss is `balanced` of
    `toprank.losses.proper`; it needs the true prevalence.

    Parameters
    ----------
    loss : {"exponential", "logistic"} or the loss itself
        The loss that was balanced.
    surrogate_regret : float
        Expected balanced loss of the scores minus the least possible one.

    Examples
    --------
    >>> from toprank.bounds import balanced_regret
    >>> round(balanced_regret("logistic", 0.01).value, 10)
    0.2
    """
    composite, regret = _balanced(loss, surrogate_regret, "Equations (29) and (30) are")
    equation = "equation 29" if isinstance(composite, Exponential) else "equation 30"
    value = math.sqrt(2.0 * _BALANCED[type(composite)] * regret)
    return _bound(value, equation, f"the balanced {composite!r} regret is at most {regret:g}")


def balanced_pairwise_regret(loss: str | ProperLoss, surrogate_regret: float) -> Bound:
    r"""Bound the regret over pairs by the balanced regret z of single rows (Theorem 6, corrected).

    .. math::
        \mathrm{regret}^{exp}_{\tilde D}[f_{diff}] \le (2 + z)\, z, \qquad
        \mathrm{regret}^{log}_{\tilde D}[f_{diff}] \le 2 z

    with f_diff(x, x') = f(x) - f(x') under the distribution of pairs (15). Theorem 6 (after
    Kotlowski et al. 2011) prints the constants 9/4 and 2 for every f. For the exponential loss that
    is false: two rows with eta = 1/2 and the scores c and -c have z = cosh c - 1 and a pairwise
    regret of sinh^2 c, which is cosh c + 1 times as large. It holds for z <= 1/4, and so do (29)
    and (30), which say nothing beyond. The bound given here is ours: with A = E[e^-f | y = 1] and
    B = E[e^f | y = -1] the pairwise risk is A B <= ((A + B)/2)^2, its least value is H^2, H <= 1
    being the least balanced risk, and (z + H)^2 - H^2 <= (2 + z) z.

    `pairwise_surrogate_regret`, and `surrogate_regret` of a `balanced` loss, compute the two sides
    where the truth is known.

    Parameters
    ----------
    loss : {"exponential", "logistic"} or the loss itself
        The loss that was balanced.
    surrogate_regret : float
        z, the expected balanced loss of the scores minus the least possible one.

    Returns
    -------
    Bound
        A regret has no largest value, so that the bound is never vacuous.

    Examples
    --------
    >>> from toprank.bounds import balanced_pairwise_regret
    >>> balanced_pairwise_regret("logistic", 0.04).value
    0.08
    >>> balanced_pairwise_regret("exponential", 0.25).value  # 9/4 of it
    0.5625
    """
    composite, regret = _balanced(loss, surrogate_regret, "Theorem 6 is")
    constant = 2.0 + regret if isinstance(composite, Exponential) else 2.0
    value = constant * regret
    statement = f"pairwise {composite!r} regret <= {value:.4g} (Theorem 6, corrected)"
    return Bound(value, False, statement, (f"the balanced regret is at most {regret:g}",))


def _balanced(
    loss: str | ProperLoss, surrogate_regret: float, subject: str
) -> tuple[ProperLoss, float]:
    composite = get_proper_loss(loss)
    if type(composite) not in _BALANCED:
        raise ValueError(
            f"{subject} about the exponential and the logistic loss, not {composite!r}. Use "
            "ranking_regret, or the balanced loss's own modulus in it."
        )
    return composite, at_least("surrogate_regret", surrogate_regret)


def pairwise_regret(loss: str | ProperLoss, surrogate_regret: float) -> Bound:
    r"""Bound the ranking regret by the regret of a loss of score differences over pairs.

    Under the distribution of pairs (15), the 0-1 regret of sign(f(x) - f(x')) is the ranking
    regret (24), and a margin loss bounds it by

    .. math::
        g(z) \le \sqrt{8 z / \lambda}

    which is sqrt(2z) for the exponential and the logistic loss (26, 27) and sqrt(z) for the
    squared ones: Definition 7 at estimate one half. `ranking_risk_from_convex` inverts the
    exact transform instead.

    Parameters
    ----------
    loss : str or ProperLoss
        A strongly proper loss whose link sends one half to zero.
    surrogate_regret : float
        z, the expected loss of f(x) - f(x') over pairs minus the least possible one.

    Examples
    --------
    >>> from toprank.bounds import pairwise_regret
    >>> round(pairwise_regret("exponential", 0.02).value, 10)
    0.2
    """
    composite = _strongly_proper(loss)
    if not math.isclose(float(composite.link(0.5)), 0.0, abs_tol=1e-12):
        raise ValueError(
            f"{composite!r} sends a probability of one half to {float(composite.link(0.5)):g}, not "
            "to 0, so that the sign of a score difference is not its decision. Use a margin loss."
        )
    regret = at_least("surrogate_regret", surrogate_regret)
    value = math.sqrt(8.0 * regret / composite.strong_properness)
    return _bound(value, "Theorem 5", f"the pairwise {composite!r} regret is at most {regret:g}")


def _bound(value: float, theorem: str, *assumes: str) -> Bound:
    statement = f"ranking regret <= {value:.4g} ({theorem})"
    return Bound(value, value >= 1.0, statement, assumes)


def _strongly_proper(loss: str | ProperLoss) -> ProperLoss:
    composite = get_proper_loss(loss)
    if not composite.strong_properness > 0:
        raise ValueError(
            f"{composite!r} is not strongly proper (its modulus is "
            f"{composite.strong_properness:g}), so that its regret bounds no ranking regret."
        )
    return composite


def _prevalence(p: float) -> float:
    if share("prevalence", p) == 1.0:
        raise ValueError("prevalence=1 leaves no negatives to rank: expected a number in (0, 1).")
    return float(p)


def _exponent(alpha: float) -> float:
    if at_least("noise_exponent", alpha, 0.0, 1.0) == 1.0:
        raise ValueError("noise_exponent=1 is beyond the theorems: expected a number in [0, 1).")
    return float(alpha)


def _noise_constant(constant: float | None) -> float:
    if constant is None:
        raise ValueError(
            "A positive noise_exponent needs noise_constant, the C_alpha of Theorem 14: "
            "toprank.bounds.low_noise_constant(noise_exponent, C) gives one from the C of NA."
        )
    return above("noise_constant", constant)


def _sharp(alpha: float, q: float) -> tuple[float, str]:
    if q < 1.0 + alpha:
        raise ValueError(f"The sharp exponent needs q >= 1 + noise_exponent; got q={q:g}.")
    return (1.0 + alpha) / q, "Theorem 14, sharper exponent"
