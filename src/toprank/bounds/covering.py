r"""Covering numbers: how many functions stand for all of a class F, to a given accuracy.

A bound takes ``log_covering_number`` as a number (ln N itself, if it does not depend on the
radius) or as a function that returns ln N for a radius. `FiniteClass` and `LinearClass` are such
functions for the :math:`L_\infty` distance :math:`\sup_x |f(x) - g(x)|`. `ConvexCombinations` is
a *sloppy* number, which depends on two radii and is of use to the margin bound only.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from toprank._numerics import is_number
from toprank.bounds.bound import TINY, above, at_least, log_count, log_sum


@dataclass(frozen=True)
class FiniteClass:
    r"""Covering number of finitely many functions: at most their number, at every radius.

    .. math:: \ln N_\infty(F, \text{radius}) \le \ln |F|

    Parameters
    ----------
    n_functions : int
        How many functions F has; for a grid search, how many models were compared.

    Examples
    --------
    >>> from toprank.bounds import FiniteClass
    >>> round(FiniteClass(30)(0.01), 4)
    3.4012
    """

    n_functions: float

    def __post_init__(self) -> None:
        log_count("n_functions", self.n_functions)

    def __call__(self, radius: float) -> float:
        return log_count("n_functions", self.n_functions)


@dataclass(frozen=True)
class LinearClass:
    r"""Covering number of the linear scores f(x) = w·x with bounded w, over bounded rows x.

    .. math:: \ln N_\infty(F, \text{radius})
        \le d \ln\left(1 + \frac{2 \|w\|_{\max} \|x\|_{\max}}{\text{radius}}\right)

    by volumes: \|w\| and \|x\| are dual norms, so :math:`|w \cdot x - v \cdot x| \le \|w - v\|
    \|x\|_{\max}`, and a ball of radius r in d dimensions is covered by :math:`(1 + 2r/s)^d` balls
    of radius s with centres inside it. An intercept moves all scores alike and does not count.

    Parameters
    ----------
    n_features : int
        d, the number of columns.
    coef_norm : float
        Largest norm of the coefficients that F allows.
    row_norm : float
        Largest dual norm of any row that can occur: Euclidean for the Euclidean norm of the
        coefficients, the largest absolute entry for the sum of their absolute values.

    Examples
    --------
    Ten columns scaled to [0, 1], coefficients whose absolute values sum to at most 1:

    >>> from toprank.bounds import LinearClass
    >>> round(LinearClass(10, coef_norm=1.0, row_norm=1.0)(0.02), 4)
    46.1512
    """

    n_features: float
    coef_norm: float
    row_norm: float

    def __post_init__(self) -> None:
        at_least("n_features", self.n_features, 1.0)
        above("coef_norm", self.coef_norm)
        above("row_norm", self.row_norm)

    def __call__(self, radius: float) -> float:
        # one ball, around f = 0, holds all of F when it reaches beyond every score
        log_reach = math.log(self.coef_norm) + math.log(self.row_norm) - math.log(radius)
        if log_reach < 0.0:
            return 0.0
        return self.n_features * log_sum(0.0, math.log(2.0) + log_reach)


class SloppyClass(ABC):
    """A class known by its sloppy covering number (Rudin & Schapire 2009, Definition 1).

    Subclass it to bring your own; only the margin bound takes it.
    """

    @abstractmethod
    def __call__(self, theta: float, epsilon: float) -> float:
        """Return ln N(F, theta, epsilon)."""


@dataclass(frozen=True)
class ConvexCombinations(SloppyClass):
    r"""Sloppy covering number of convex combinations of {0, 1} weak rankers.

    .. math:: \ln N(F, \theta, \varepsilon) \le \frac{\ln|H| \, \ln(2/\varepsilon)}{2 \theta^2}

    (Rudin & Schapire 2009, Lemma 3). As in the paper, the number of weak rankers averaged by a
    member of the cover, equation (20), is not rounded up to a whole number.

    Parameters
    ----------
    n_weak : int
        abs(H), the number of weak rankers: for stumps, thresholds times features.

    Examples
    --------
    >>> from toprank.bounds import ConvexCombinations
    >>> round(ConvexCombinations(100)(0.5, 0.02), 4)
    42.4152
    """

    n_weak: float

    def __post_init__(self) -> None:
        log_count("n_weak", self.n_weak)

    def __call__(self, theta: float, epsilon: float) -> float:
        # beyond epsilon = 2 the logarithm is negative, and one function is a cover
        log_accuracy = max(0.0, math.log(2.0) - math.log(epsilon))
        return log_count("n_weak", self.n_weak) * log_accuracy / theta / theta / 2.0


UniformNumber = float | Callable[[float], float]
CoveringNumber = UniformNumber | SloppyClass


def check_cover(cover: CoveringNumber, *, sloppy_allowed: bool) -> None:
    """Raise unless ``cover`` is ln N, a function of the radius or, where it may be, sloppy."""
    if isinstance(cover, SloppyClass) and not sloppy_allowed:
        raise TypeError(
            f"log_covering_number={cover!r} is a sloppy covering number, which Theorems 2 and 3 "
            "of the push do not hold for; expected an L-infinity one: LinearClass, FiniteClass, "
            "a number or a function of the radius."
        )
    if not callable(cover):
        _check_log(cover)


def log_uniform(cover: UniformNumber, radius: float) -> float:
    """Return ln N_infinity(F, radius) from a number or a function of the radius."""
    return _check_log(cover(max(radius, TINY))) if callable(cover) else float(cover)


def log_sloppy(cover: CoveringNumber, theta: float, epsilon: float) -> float:
    """Return ln N(F, theta, epsilon); an L-infinity number at radius theta bounds it."""
    if isinstance(cover, SloppyClass):
        return _check_log(cover(max(theta, TINY), max(epsilon, TINY)))
    return log_uniform(cover, theta)


def _check_log(log_number: float) -> float:
    if not (is_number(log_number) and 0.0 <= log_number < math.inf):
        raise ValueError(
            f"log_covering_number gave {log_number!r}, expected ln N: a finite number >= 0 "
            "(a class has at least one function), or a function of the radius that returns one."
        )
    return float(log_number)
