"""How many rows the bound of the P-Norm Push asks for (Rudin 2009, Theorems 2 and 3)."""

from __future__ import annotations

import math

from toprank.bounds._inputs import above, at_least, exactly_one, inner_share, share
from toprank.bounds._logs import exp_or_inf, number_of, smallest_solution, whole
from toprank.bounds._result import Bound
from toprank.bounds.covering import UniformNumber
from toprank.bounds.push import PushTheorem, push_theorem


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
