r"""Margins and the misranking probability (Rudin & Schapire 2009, Section 3).

For a ranking function f with values in [0, 1], every bound here has the form

.. math:: P_D\{\text{misrank}_f\} \le P_S\{\text{margin}_f \le \theta\} + \varepsilon
    \quad\text{for every } f \in F, \text{ with probability at least } 1 - \delta

where the right part is the share of the crucial pairs of the sample whose margin is at most
theta; `toprank.metrics.margin_error` computes it.
"""

from __future__ import annotations

import math

from toprank.bounds.bound import (
    TINY,
    Bound,
    above,
    at_least,
    in_words,
    inner_share,
    log_count,
    number_of,
    share,
    smallest_solution,
    solve,
    whole,
)
from toprank.bounds.covering import (
    ConvexCombinations,
    CoveringNumber,
    SloppyClass,
    check_cover,
    log_sloppy,
)

_ASSUMES = (
    "the rows are independent draws from one distribution",
    "which pairs are crucial is a function of the two rows, and never holds both ways round",
    "every f in F has values from 0 to 1",
)
_ASSUMES_WEAK = (
    "F is the convex combinations of n_weak weak rankers with values 0 and 1, fixed before the "
    "data were seen"
)
_ASSUMES_COVER = (
    "log_covering_number is ln of a covering number of F, fixed before the data were seen"
)
_SAYS_NOTHING = "; this says nothing, because neither a misranking nor a probability exceeds 1"


def margin(*, delta: float, theta: float, n: float, pair_fraction: float, n_weak: float) -> Bound:
    r"""Margin bound for convex combinations of binary weak rankers, equation (2).

    .. math:: \varepsilon = \sqrt{\frac{4}{m E^2} \left[ \frac{8 \ln|H|}{\theta^2}
        \ln\left(\frac{4 m E^2 \theta^2}{\ln|H|}\right) + 2 \ln\frac{2}{\delta} \right]}
        \quad\text{provided that}\quad m \theta^2 \ge \frac{64 \ln|H|}{E^2}

    (Rudin & Schapire 2009). `margin_cover` with `ConvexCombinations` solves their Corollary 4
    exactly instead; its epsilon is never larger.

    Parameters
    ----------
    delta : float
        Probability in (0, 1) that the statement may fail.
    theta : float
        Margin in (0, 1], for scores from 0 to 1.
    n : float
        m, the number of rows.
    pair_fraction : float
        E in (0, 1/2], the share of ordered pairs of rows that are crucial; for two classes the
        share of positives times the share of negatives.
    n_weak : int
        abs(H), the number of weak rankers.

    Returns
    -------
    Bound
        ``value`` is epsilon; vacuous from 1 on, and infinite where the condition fails.

    Examples
    --------
    >>> from toprank.bounds import margin
    >>> case = dict(delta=0.05, theta=0.5, pair_fraction=0.25, n_weak=100)
    >>> round(margin(n=1_000_000, **case).value, 3)
    0.3
    >>> margin(n=10_000, **case).value
    inf
    """
    delta, theta = inner_share("delta", delta), share("theta", theta)
    n, fraction = at_least("n", n, 1.0), share("pair_fraction", pair_fraction, 0.5)
    log_weak = log_count("n_weak", n_weak)
    assumes = (*_ASSUMES, _ASSUMES_WEAK)
    size = n * fraction**2
    if size * theta**2 < 64.0 * log_weak:
        needed = whole(64.0 * log_weak / max(TINY, (fraction * theta) ** 2))
        statement = (
            f"equation (2) needs m theta^2 >= 64 ln|H| / E^2, that is {needed:.15g} rows, and "
            f"there are {n:g}: it says nothing about this sample"
        )
        return Bound(math.inf, True, statement, assumes)
    # one weak ranker has ln|H| = 0, and the first term vanishes with it
    many = 8.0 * log_weak / theta**2 * math.log(4.0 * size * theta**2 / log_weak) if log_weak else 0
    epsilon = 2.0 / fraction * math.sqrt((many + 2.0 * (math.log(2.0) - math.log(delta))) / n)
    statement = _statement("equation (2)", theta, epsilon, f"{delta:.4g}", epsilon >= 1.0)
    return Bound(epsilon, epsilon >= 1.0, statement, assumes)


def margin_cover(
    *,
    epsilon: float | None = None,
    probability: float | None = None,
    theta: float,
    n: float,
    pair_fraction: float,
    log_covering_number: CoveringNumber,
) -> Bound:
    r"""Margin bound for any class with a covering number (Theorem 2, Corollaries 4 and 5).

    The probability that some f in F misranks more than its share of margins up to theta plus
    epsilon is at most

    .. math:: 2 N\left(F, \frac{\theta}{4}, \frac{\varepsilon}{8}\right)
        \exp\left[-\frac{m (\varepsilon E)^2}{8}\right]

    (Rudin & Schapire 2009, Theorem 2). With `ConvexCombinations` this is their Corollary 4, with
    an :math:`L_\infty` covering number, taken at radius theta/4, Corollary 5.

    Parameters
    ----------
    epsilon : float, optional
        The excess; give it to get the probability.
    probability : float, optional
        The probability in (0, 1]; give it to get the smallest epsilon that is exceeded with at
        most this probability. Exactly one of the two is given.
    theta : float
        Margin > 0.
    n, pair_fraction
        As in `margin`.
    log_covering_number : float, callable or SloppyClass
        ln N; a number, an L-infinity covering number as a function of the radius (`FiniteClass`,
        `LinearClass`), or a sloppy one (`ConvexCombinations`).

    Returns
    -------
    Bound
        ``value`` is the probability, at most 1, or epsilon, which may exceed 1. The bound is
        vacuous when either reaches 1.

    Examples
    --------
    >>> from toprank.bounds import ConvexCombinations, FiniteClass, margin_cover
    >>> case = dict(probability=0.05, theta=0.5, n=1_000_000, pair_fraction=0.25)
    >>> round(margin_cover(log_covering_number=ConvexCombinations(100), **case).value, 3)
    0.277
    >>> round(margin_cover(log_covering_number=FiniteClass(100), **case).value, 3)
    0.033
    """
    cover = log_covering_number
    theta, rate = _check_margin(theta, n, pair_fraction, cover)
    value, size, log_p = solve(
        lambda e: _log_functions(cover, theta, e) - e * e * rate, "epsilon", epsilon, probability
    )
    vacuous = log_p >= 0.0 or size >= 1.0
    statement = _statement(_name(cover), theta, size, in_words(log_p), vacuous)
    return Bound(value, vacuous, statement, (*_ASSUMES, _ASSUMES_COVER))


def margin_sample_size(
    *,
    epsilon: float,
    probability: float,
    theta: float,
    pair_fraction: float,
    log_covering_number: CoveringNumber,
) -> Bound:
    r"""Smallest number of rows for which `margin_cover` keeps epsilon.

    .. math:: m \ge \frac{8}{(\varepsilon E)^2} \left[\ln 2
        + \ln N\left(F, \frac\theta4, \frac\varepsilon8\right) + \ln\frac1\delta\right]

    Parameters
    ----------
    epsilon, probability, theta, pair_fraction, log_covering_number
        As in `margin_cover`; here both epsilon and the probability delta are given.

    Returns
    -------
    Bound
        ``value`` is a whole number.

    Examples
    --------
    >>> from toprank.bounds import ConvexCombinations, margin_sample_size
    >>> weak = ConvexCombinations(100)
    >>> margin_sample_size(epsilon=0.2, probability=0.05, theta=0.5, pair_fraction=0.25,
    ...                    log_covering_number=weak).value
    2078235.0
    """
    cover = log_covering_number
    theta, rate_of_one = _check_margin(theta, 1.0, pair_fraction, cover)
    log_p = math.log(share("probability", probability))
    epsilon = above("epsilon", epsilon)
    log_functions = _log_functions(cover, theta, epsilon)
    value = whole(
        smallest_solution(lambda n: log_functions - epsilon * epsilon * rate_of_one * n <= log_p)
    )
    vacuous = value == math.inf or epsilon >= 1.0
    statement = f"{number_of(value)} rows will do for this: " + _statement(
        _name(cover), theta, epsilon, in_words(log_p), epsilon >= 1.0
    )
    return Bound(value, vacuous, statement, (*_ASSUMES, _ASSUMES_COVER))


def _check_margin(
    theta: float, n: float, pair_fraction: float, cover: CoveringNumber
) -> tuple[float, float]:
    """Return theta and m E^2 / 8 for checked arguments."""
    check_cover(cover, sloppy_allowed=True)
    fraction = share("pair_fraction", pair_fraction, 0.5)
    return above("theta", theta), at_least("n", n, 1.0) * fraction**2 / 8.0


def _log_functions(cover: CoveringNumber, theta: float, epsilon: float) -> float:
    """Return ln 2 N(F, theta/4, epsilon/8)."""
    return math.log(2.0) + log_sloppy(cover, theta / 4.0, epsilon / 8.0)


def _name(cover: CoveringNumber) -> str:
    if isinstance(cover, ConvexCombinations):
        return "Corollary 4"
    return "Corollary 5" if callable(cover) and not isinstance(cover, SloppyClass) else "Theorem 2"


def _statement(name: str, theta: float, epsilon: float, chance: str, vacuous: bool) -> str:
    return (
        f"{name} of Rudin & Schapire 2009: P(some f in F misranks more than {epsilon:.4g} + its "
        f"share of margins <= {theta:g}) <= {chance}" + (_SAYS_NOTHING if vacuous else "")
    )
