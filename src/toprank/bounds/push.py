r"""How far the true p-norm risk can exceed the one on the sample (Rudin 2009, Section 4).

The risk here is the normalised one, from 0 to 1,

.. math:: R_p(f) = \Bigl(\frac1K \sum_k \bigl(\frac1I \sum_i
    1[f(x_i) - f(\tilde x_k) \le \theta]\bigr)^p\Bigr)^{1/p},

the true one with expectations and theta = 0. `toprank.metrics.pnorm_risk` computes it with
``normalize=True, margin=theta``. `pnorm_push_sample_size` solves the same bound for the number
of rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from toprank.bounds.bound import (
    Bound,
    above,
    at_least,
    exactly_one,
    exp_or_inf,
    in_words,
    inner_share,
    log_sum,
    number_of,
    push_power,
    share,
    smallest_solution,
    solve,
    whole,
)
from toprank.bounds.covering import UniformNumber, check_cover, log_uniform

_ASSUMES = (
    "the positives are independent draws from one distribution, and so are the negatives",
    "log_covering_number is ln of an L-infinity covering number of the class F, fixed before "
    "the data were seen",
)
_ASSUMES_R_MIN = (
    "no f in F has a true R_p below r_min, and the centres of the covering balls lie in F"
)
_ASSUMES_CENTRES = (
    "log_covering_number counts the balls around these centres, and none of the centres has a true "
    "R_p below r_min; the centres may be chosen by what is known of the risks, not by this sample"
)
_SUPERSEDED = (
    "superseded by Theorem 2 of Rudin 2009: the union over the negatives, ln K, is left out"
)


@dataclass(frozen=True)
class PushTheorem:
    """Theorems 2 and 3 of Rudin 2009, and the form of 2006, as one formula.

    2 N(F, epsilon theta/8) (exp[-2 K rate] + exp[-epsilon^2 I/8 + ln K]) with
    rate = max{(epsilon^2/16) r_min^(2(p-1)), (epsilon/4)^(2p)}; Theorem 2 is r_min = 0.
    """

    theta: float
    p: float
    cover: UniformNumber
    r_min: float = 0.0
    counts_negatives: bool = True
    fixed: bool = False  #: Lemma 9: one ranker, whose epsilon counts twice
    of_centres: bool = False  #: r_min is that of the centres of the cover, not of all of F

    @property
    def name(self) -> str:
        if self.fixed:
            return "Lemma 9 of Rudin 2009"
        if not self.counts_negatives:
            return "Theorem 2 of Rudin 2006 (superseded)"
        if self.r_min == 0:
            return "Theorem 2 of Rudin 2009"
        return "Theorem 3 of Rudin 2009" + (" by choice of centres" if self.of_centres else "")

    @property
    def assumes(self) -> tuple[str, ...]:
        if self.fixed:
            return (_ASSUMES[0], "the ranker was fixed before the data were seen")
        if not self.counts_negatives:
            return (*_ASSUMES, _SUPERSEDED)
        if self.r_min == 0:
            return _ASSUMES
        return (*_ASSUMES, _ASSUMES_CENTRES if self.of_centres else _ASSUMES_R_MIN)

    def log_rate(self, epsilon: float) -> float:
        """Return ln max{(epsilon^2/16) r_min^(2(p-1)), (epsilon/4)^(2p)}."""
        log_quarter = math.log(epsilon) - math.log(4.0)
        log_r_min = math.log(self.r_min) if self.r_min > 0 else -math.inf
        return 2.0 * max(
            log_quarter + _log_power(log_r_min, self.p - 1.0), _log_power(log_quarter, self.p)
        )

    def log_negatives(self, epsilon: float, n_neg: float) -> float:
        """Return -2 K rate, minus infinity where K rate exceeds every float."""
        return -exp_or_inf(math.log(2.0) + math.log(n_neg) + self.log_rate(epsilon))

    def log_positives(self, epsilon: float, n_pos: float, n_neg: float) -> float:
        """Return -epsilon^2 I/8 + ln K."""
        union = math.log(n_neg) if self.counts_negatives else 0.0
        return union - epsilon * epsilon * n_pos / 8.0

    def log_terms(self, epsilon: float, n_pos: float, n_neg: float) -> float:
        """Return ln(exp[-2 K rate] + exp[-epsilon^2 I/8 + ln K])."""
        return log_sum(
            self.log_negatives(epsilon, n_neg), self.log_positives(epsilon, n_pos, n_neg)
        )

    def log_functions(self, epsilon: float) -> float:
        """Return ln 2 N(F, epsilon theta/8)."""
        return math.log(2.0) + log_uniform(self.cover, epsilon * self.theta / 8.0)

    def log_probability(self, epsilon: float, n_pos: float, n_neg: float) -> float:
        """Return ln of the bound on P(some f in F has true R_p >= empirical R_p + epsilon)."""
        if self.fixed:
            return math.log(2.0) + self.log_terms(2.0 * epsilon, n_pos, n_neg)
        return self.log_functions(epsilon) + self.log_terms(epsilon, n_pos, n_neg)


def _log_power(log_base: float, exponent: float) -> float:
    """Return ln base^exponent with base^0 = 1 and 1^inf = 1."""
    return 0.0 if exponent == 0.0 or log_base == 0.0 else exponent * log_base


def pnorm_push(
    *,
    epsilon: float | None = None,
    probability: float | None = None,
    theta: float,
    n_pos: float,
    n_neg: float,
    p: float,
    log_covering_number: UniformNumber,
    r_min: float = 0.0,
    of_centres: bool = False,
) -> Bound:
    r"""Generalisation bound of the P-Norm Push (Rudin 2009, Theorems 2 and 3).

    The probability that some f in F has a true risk of at least its empirical risk at margin
    theta plus epsilon is at most

    .. math::
        2 N\left(F, \frac{\varepsilon\theta}{8}\right) \left(
        \exp\left[-2K \max\left\{\frac{\varepsilon^2}{16} R_{\min}^{2(p-1)},
        \left(\frac{\varepsilon}{4}\right)^{2p}\right\}\right]
        + \exp\left[-\frac{\varepsilon^2}{8} I + \ln K\right] \right).

    With ``r_min = 0`` this is Theorem 2, with ``r_min > 0`` Theorem 3, which is never looser.
    The bound falls with epsilon and with the number of positives I, and rises with p. It is not
    monotone in the number of negatives K, because of ln K.

    Parameters
    ----------
    epsilon : float, optional
        The excess; give it to get the probability.
    probability : float, optional
        The probability in (0, 1]; give it to get the smallest epsilon that is exceeded with at
        most this probability. Exactly one of the two is given.
    theta : float
        Margin > 0 of the empirical risk, in units of the scores.
    n_pos, n_neg : float
        I and K, the numbers of positives and negatives.
    p : float
        Power of the push, at least 1. At infinity the theorems say nothing, whatever the sample
        (except for ``r_min = 1``).
    log_covering_number : float or callable
        ln N(F, radius), a number or a function of the radius: `LinearClass`, `FiniteClass`.
    r_min : float, default=0.0
        A lower bound, from 0 to 1, of the true normalised risk of every f in F.
    of_centres : bool, default=False
        Whether r_min is that of the centres of the covering balls only, which may be chosen to
        make it large: the tighter bound at the end of the proof (equation 9). `choose_centres`
        chooses them.

    Returns
    -------
    Bound
        ``value`` is the probability, at most 1, or epsilon, which may exceed 1. The bound is
        vacuous when either reaches 1: no risk exceeds another by more. A probability below the
        smallest positive float is rounded up to it.

    Examples
    --------
    One fixed ranker, 2000 positives and 5000 negatives:

    >>> from toprank.bounds import LinearClass, pnorm_push
    >>> sample = dict(theta=0.1, n_pos=2000, n_neg=5000)
    >>> bound = pnorm_push(probability=0.05, p=1, log_covering_number=0.0, **sample)
    >>> round(bound.value, 3), bound.vacuous
    (0.221, False)

    A ranker that was fixed before the data has half the excess by Lemma 9: `pnorm_push_fixed`.

    Any linear ranker of ten columns, and p = 4: this sample says nothing.

    >>> linear = LinearClass(10, coef_norm=1.0, row_norm=1.0)
    >>> pnorm_push(epsilon=0.3, p=4, log_covering_number=linear, **sample).vacuous
    True
    """
    theorem = push_theorem(theta, p, log_covering_number, r_min)
    theorem = replace(theorem, of_centres=of_centres)
    return _push_bound(theorem, epsilon, probability, n_pos, n_neg)


def pnorm_push_fixed(
    *,
    epsilon: float | None = None,
    probability: float | None = None,
    n_pos: float,
    n_neg: float,
    p: float,
    r_true: float = 0.0,
) -> Bound:
    r"""How far the true risk of one fixed ranker exceeds its empirical one (Rudin 2009, Lemma 9).

    .. math::
        P\bigl(R_p^{true} \ge R_p^{empirical} + \varepsilon\bigr) \le
        2 \exp\left[-2K \max\left\{\frac{\varepsilon^2}{4} (R_p^{true})^{2(p-1)},
        \left(\frac{\varepsilon}{2}\right)^{2p}\right\}\right]
        + 2 \exp\left[-\frac{\varepsilon^2}{2} I + \ln K\right]

    For a ranker that was chosen before these rows were seen, on a held-out part for instance: no
    class to cover, no margin to give away, and half the epsilon of Theorem 2 for a single ranker.

    Parameters
    ----------
    epsilon, probability, n_pos, n_neg, p
        As in `pnorm_push`. The empirical risk may be the 0-1 risk, with ties as misranks.
    r_true : float, default=0.0
        A lower bound, from 0 to 1, of the true normalised risk of the ranker.

    Returns
    -------
    Bound
        As in `pnorm_push`.

    Examples
    --------
    >>> from toprank.bounds import pnorm_push_fixed
    >>> bound = pnorm_push_fixed(probability=0.05, n_pos=2000, n_neg=5000, p=1)
    >>> round(bound.value, 3), bound.vacuous
    (0.11, False)
    """
    theorem = PushTheorem(1.0, push_power(p), 0.0, at_least("r_true", r_true, 0.0, 1.0), fixed=True)
    return _push_bound(theorem, epsilon, probability, n_pos, n_neg)


def pnorm_push_2006(
    *,
    epsilon: float | None = None,
    probability: float | None = None,
    theta: float,
    n_pos: float,
    n_neg: float,
    p: float,
    log_covering_number: UniformNumber,
) -> Bound:
    r"""The bound of the conference paper (Rudin 2006, Theorem 2). Superseded: use `pnorm_push`.

    .. math::
        2 N\left(F, \frac{\varepsilon\theta}{8}\right) \left(
        \exp\left[-2 \left(\frac{\varepsilon}{4}\right)^{2p} K\right]
        + \exp\left[-\frac{\varepsilon^2}{8} I\right] \right)

    Its proof bounds a supremum over the negatives by the bound for a single one; the journal
    version pays for the supremum with ln K. It is here to compare with the older paper.

    Parameters
    ----------
    epsilon, probability, theta, n_pos, n_neg, p, log_covering_number
        As in `pnorm_push`.

    Returns
    -------
    Bound
        As in `pnorm_push`; the statement says that it is superseded.

    Examples
    --------
    >>> from toprank.bounds import pnorm_push, pnorm_push_2006
    >>> case = dict(probability=0.05, theta=0.1, n_pos=900, n_neg=9000, p=1,
    ...             log_covering_number=0.0)
    >>> round(pnorm_push_2006(**case).value, 3), round(pnorm_push(**case).value, 3)
    (0.181, 0.337)
    """
    theorem = replace(push_theorem(theta, p, log_covering_number, 0.0), counts_negatives=False)
    return _push_bound(theorem, epsilon, probability, n_pos, n_neg)


def push_theorem(theta: float, p: float, cover: UniformNumber, r_min: float) -> PushTheorem:
    """Return the theorem for checked arguments."""
    check_cover(cover, sloppy_allowed=False)
    return PushTheorem(
        above("theta", theta), push_power(p), cover, at_least("r_min", r_min, 0.0, 1.0)
    )


def _push_bound(
    theorem: PushTheorem,
    epsilon: float | None,
    probability: float | None,
    n_pos: float,
    n_neg: float,
) -> Bound:
    """Solve the theorem for whichever of epsilon and the probability is left out."""
    n_pos, n_neg = at_least("n_pos", n_pos, 1.0), at_least("n_neg", n_neg, 1.0)
    value, size, log_p = solve(
        lambda e: theorem.log_probability(e, n_pos, n_neg), "epsilon", epsilon, probability
    )
    vacuous = log_p >= 0.0 or size >= 1.0
    subject = "f has" if theorem.fixed else "some f in F has"
    where = "" if theorem.fixed else f" at margin {theorem.theta:g}"
    statement = (
        f"{theorem.name}: P({subject} true R_{theorem.p:g} >= {size:.4g} + empirical "
        f"R_{theorem.p:g}{where}) <= {in_words(log_p)}"
    )
    if vacuous:
        statement += (
            f"; this says nothing about {n_pos:g} positives and {n_neg:g} negatives, because "
            "neither a risk nor a probability exceeds 1"
        )
    return Bound(value, vacuous, statement, theorem.assumes)


def pnorm_push_sample_size(
    *,
    epsilon: float,
    probability: float,
    theta: float,
    p: float,
    log_covering_number: UniformNumber,
    r_min: float = 0.0,
    n_pos: float | None = None,
    n_neg: float | None = None,
    prevalence: float | None = None,
) -> Bound:
    """Smallest sample for which `pnorm_push` keeps epsilon with the probability asked for.

    Give exactly one of ``n_pos``, ``n_neg`` and ``prevalence``; the answer is the number of
    negatives, of positives, or of all rows.

    Parameters
    ----------
    epsilon, probability, theta, p, log_covering_number, r_min
        As in `pnorm_push`; here both epsilon and the probability are given.
    n_pos : float, optional
        Number of positives, to ask for the negatives. There may be no answer: with too few
        positives no number of negatives will do, and too many make the bound worse again.
    n_neg : float, optional
        Number of negatives, to ask for the positives. There may be no answer either.
    prevalence : float, optional
        Share of positives in (0, 1), to ask for the number of rows from which on every larger
        sample of the same composition will do. The sizes of the classes are not rounded.

    Returns
    -------
    Bound
        ``value`` is a whole number, or infinity (vacuous) where no number that a float can hold
        is enough.

    Examples
    --------
    >>> from toprank.bounds import pnorm_push_sample_size
    >>> wish = dict(epsilon=0.2, probability=0.05, theta=0.1, log_covering_number=0.0)
    >>> [pnorm_push_sample_size(prevalence=0.5, p=p, **wish).value for p in (1, 2)]
    [4570.0, 590221.0]
    >>> pnorm_push_sample_size(prevalence=0.5, p=2, r_min=0.2, **wish).value
    36889.0
    """
    theorem = push_theorem(theta, p, log_covering_number, r_min)
    epsilon = above("epsilon", epsilon)
    log_target = math.log(share("probability", probability)) - theorem.log_functions(epsilon)
    exactly_one(n_pos=n_pos, n_neg=n_neg, prevalence=prevalence)
    if n_neg is not None:
        size = _positives_needed(theorem, epsilon, at_least("n_neg", n_neg, 1.0), log_target)
        what = f"positives beside {n_neg:g} negatives"
    elif n_pos is not None:
        size = _negatives_needed(theorem, epsilon, at_least("n_pos", n_pos, 1.0), log_target)
        what = f"negatives beside {n_pos:g} positives"
    else:
        size = _rows_needed(theorem, epsilon, inner_share("prevalence", prevalence), log_target)
        what = f"rows, a share of {prevalence:g} of them positive,"
    statement = (
        f"{theorem.name}: {number_of(size)} {what} will do for epsilon = {epsilon:g} with "
        f"probability {probability:g} at p = {theorem.p:g} and margin {theorem.theta:g}"
    )
    if epsilon >= 1.0:
        statement += "; this says nothing, because no risk exceeds another by more than 1"
    return Bound(size, size == math.inf or epsilon >= 1.0, statement, theorem.assumes)


def _positives_needed(
    theorem: PushTheorem, epsilon: float, n_neg: float, log_target: float
) -> float:
    return whole(smallest_solution(lambda n: theorem.log_terms(epsilon, n, n_neg) <= log_target))


def _negatives_needed(
    theorem: PushTheorem, epsilon: float, n_pos: float, log_target: float
) -> float:
    """Return K; the terms e^(-2 K rate) + K e^(-epsilon^2 I/8) fall up to a best K, then rise."""

    def enough(n: float) -> bool:
        return theorem.log_terms(epsilon, n_pos, n) <= log_target

    log_slope = math.log(2.0) + theorem.log_rate(epsilon)
    height = log_slope + epsilon * epsilon * n_pos / 8.0
    # where the derivative in K vanishes: K = height / (2 rate)
    best = max(1.0, exp_or_inf(math.log(height) - log_slope)) if height > 0.0 else 1.0
    size = whole(smallest_solution(lambda n: n >= best or enough(n)))
    return size if enough(size) else math.inf


def _rows_needed(
    theorem: PushTheorem, epsilon: float, prevalence: float, log_target: float
) -> float:
    # the terms may rise with n at first, but until both fall they exceed every target below 1/2
    return whole(
        smallest_solution(
            lambda n: (
                theorem.log_terms(epsilon, prevalence * n, (1.0 - prevalence) * n) <= log_target
            )
        )
    )
