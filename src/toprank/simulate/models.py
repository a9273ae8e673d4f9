"""Distributions whose best ranking is known, so that regret and rates can be seen.

Two kinds of models, each with ``sample(n, random_state)`` returning (X, y):

* `BipartiteModel`: labels 0 and 1 with P(y = 1 | x) = eta(x). Made by `linear_bipartite`,
  `power_eta` (its noise exponent is known) and `rare_reversal` (Rudin 2009, Section 10.1).
  The regret of scores for a known eta is `toprank.bounds.exact_ranking_regret`.
* `RegressionModel`: Y = m(X) + sigma(X) e with e standard normal. Made by `regression` (constant
  sigma; zero is the noiseless model) and `heteroscedastic`. The regret of scores is its method
  `excess_risk`.

Sections and examples without a name are those of Clémençon, Lugosi & Vayatis (2006).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import integrate, optimize
from scipy.special import expit

from toprank._numerics import FloatArray
from toprank.simulate.error_laws import ERROR_LAWS

#: Draws n rows with a generator.
Features = Callable[[np.random.Generator, int], FloatArray]
#: A value for each row.
OfRows = Callable[[FloatArray], FloatArray]

#: Pairs of rows compared at once, so that memory stays bounded.
_PAIRS_AT_ONCE = 1 << 21

__all__ = [
    "BipartiteModel",
    "RegressionModel",
    "heteroscedastic",
    "linear_bipartite",
    "power_eta",
    "rare_reversal",
    "regression",
]


@dataclass(frozen=True)
class BipartiteModel:
    """Rows X and labels in {0, 1} with P(y = 1 | x) = eta(x) (Example 1).

    The best ranking is by eta, or any increasing function of it.

    Parameters
    ----------
    features : callable (generator, n) -> array of shape (n, d)
        Draws rows.
    eta : callable (X) -> array of shape (n,)
        The probability of a positive label.
    noise_exponent, noise_constant : float
        alpha and C with P(abs(eta(X) - eta(x)) <= t) <= C t^alpha for all x and t <= 1:
        assumption NA(alpha) of Agarwal (2012, Section 6). The default holds for every model.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.simulate import BipartiteModel
    >>> model = BipartiteModel(lambda rng, n: rng.random((n, 1)), lambda X: X[:, 0])
    >>> X, y = model.sample(1000, random_state=0)
    >>> X.shape, np.unique(y).tolist()
    ((1000, 1), [0, 1])
    """

    features: Features
    eta: OfRows
    noise_exponent: float = 0.0
    noise_constant: float = 1.0

    def sample(
        self, n: int, random_state: int | Sequence[int] | np.random.Generator | None = None
    ) -> tuple[FloatArray, NDArray[np.int64]]:
        """Draw n independent rows and labels; random_state is a seed or a NumPy generator."""
        n, rng = _count(n), np.random.default_rng(random_state)
        X = self.features(rng, n)
        return X, (rng.random(n) < self.eta(X)).astype(np.int64)


@dataclass(frozen=True)
class RegressionModel:
    r"""Rows X and labels Y = m(X) + sigma(X) e, e standard normal by default (Section 5.3).

    The best ranking is by m. Of two rows the first has the larger label with probability
    Phi(Delta), where

    .. math::
        \Delta(x, x') = \frac{m(x) - m(x')}{\sqrt{\sigma^2(x) + \sigma^2(x')}}

    Parameters
    ----------
    features : callable (generator, n) -> array of shape (n, d)
        Draws rows.
    m : callable (X) -> array of shape (n,)
        The regression function.
    sigma : callable (X) -> array of shape (n,)
        The standard deviation of the label; zero everywhere is the noiseless model.
    errors : {"normal", "laplace", "cauchy"}, default="normal"
        The law of e, symmetric with a density that falls on both sides (Remark 5); sigma is the
        scale of the Cauchy law, which has no standard deviation. Phi(Delta) is then the chance
        that the difference of the two errors is below m(x) - m(x').

    Examples
    --------
    >>> from toprank.simulate import regression
    >>> model = regression(n_features=2, noise=0.5)
    >>> X, y = model.sample(500, random_state=0)
    >>> model.excess_risk(X, model.m(X)), model.excess_risk(X, -model.m(X)) > 0.5
    (0.0, True)
    """

    features: Features
    m: OfRows
    sigma: OfRows
    errors: str = "normal"

    def __post_init__(self) -> None:
        if self.errors not in ERROR_LAWS:
            raise ValueError(
                f"errors={self.errors!r} is unknown: expected one of {sorted(ERROR_LAWS)}."
            )

    def sample(
        self, n: int, random_state: int | Sequence[int] | np.random.Generator | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Draw n independent rows and labels; random_state is a seed or a NumPy generator."""
        n, rng = _count(n), np.random.default_rng(random_state)
        X = self.features(rng, n)
        return X, self.m(X) + self.sigma(X) * ERROR_LAWS[self.errors].draw(rng, n)

    def bayes_risk(self, X: FloatArray) -> float:
        """Return the least ranking risk E Phi(-abs(Delta(X, X'))) over the pairs of rows."""
        total = sum(float(np.sum(chance)) for _, _, chance in self._chances(X))
        return _per_pair(total - len(X) / 2, len(X))  # a row meets itself with Delta = 0

    def excess_risk(self, X: FloatArray, scores: ArrayLike) -> float:
        r"""Return by how much the ranking risk of scores exceeds the least one.

        .. math::
            L(s) - L^* = E\big[\, |2\Phi(\Delta(X, X')) - 1| \big(
            1[(m(X) - m(X'))(s(X) - s(X')) < 0] + \tfrac12\, 1[s(X) = s(X')] \big) \big]

        over the pairs of the rows of X, which stand for the distribution. Two rows of equal
        m cost nothing. Time grows with the square of the number of rows; memory does not.

        Parameters
        ----------
        X : array of shape (n, d)
            Rows drawn from the model, not those that the scores were learned from.
        scores : array-like of shape (n,)
            Their scores.
        """
        s = _one_per_row(scores, len(X))
        total = 0.0
        for rows, apart, chance in self._chances(X):
            here, there = s[rows, None], s[None, :]
            wrong = np.where(apart > 0, here < there, here > there) + 0.5 * (here == there)
            total += float(np.sum((1.0 - 2.0 * chance) * wrong))
        return _per_pair(total, len(X))

    def _chances(self, X: FloatArray) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """Yield rows, m(x) - m(x') for every x', and the chance that the label of less m wins."""
        if len(X) < 2:
            raise ValueError(f"X has {len(X)} row(s); a risk over pairs needs at least two.")
        m, sigma, law = self.m(X), self.sigma(X), ERROR_LAWS[self.errors]
        step = max(1, _PAIRS_AT_ONCE // len(X))
        for first in range(0, len(X), step):
            rows = slice(first, first + step)
            apart = m[rows, None] - m[None, :]
            yield rows, apart, law.chance(np.abs(apart), sigma[rows, None], sigma[None, :])


def linear_bipartite(
    n_features: int = 5,
    *,
    signal: float = 2.0,
    prevalence: float = 0.5,
    inverse_link: OfRows = expit,
) -> BipartiteModel:
    """Standard normal rows with eta(x) = inverse_link(b + x'c): a linear score ranks best.

    Parameters
    ----------
    n_features : int, default=5
        Number of columns; c has entries of equal size and alternating signs.
    signal : float, default=2.0
        The length of c.
    prevalence : float, default=0.5
        P(y = 1), which fixes b.
    inverse_link : callable, default: the logistic function
        An increasing function from the real line to [0, 1] that reaches every probability, such
        as the ``inverse_link`` of a loss of `toprank.losses.proper`.

    Examples
    --------
    >>> from toprank.simulate import linear_bipartite
    >>> X, y = linear_bipartite(3, prevalence=0.2).sample(20_000, random_state=0)
    >>> round(float(y.mean()), 2)
    0.2
    """
    if not 0 < prevalence < 1:
        raise ValueError(f"prevalence={prevalence!r} is not between 0 and 1.")
    coef = signal * _alternating_coef(n_features)
    shift = _intercept(inverse_link, abs(float(signal)), prevalence)
    return BipartiteModel(
        _normal(n_features), partial(_linked_probability, inverse_link, coef, shift)
    )


def power_eta(noise_exponent: float = 1.0) -> BipartiteModel:
    """One uniform column U with eta = U^(1/alpha), alpha the noise exponent (Section 5.1).

    eta(X) has the distribution function u^alpha: for alpha = 1 it is uniform, of bounded density
    (Corollary 8), and the smaller alpha the more rows have nearly the same eta. NA(alpha)
    of Agarwal (2012, Section 6) holds with the constant 2^alpha. P(y = 1) is alpha/(1 + alpha).

    Parameters
    ----------
    noise_exponent : float in (0, 1], default=1.0
        alpha.

    Examples
    --------
    >>> from toprank.simulate import power_eta
    >>> X, y = power_eta(0.5).sample(20_000, random_state=0)
    >>> round(float(y.mean()), 1)
    0.3
    """
    alpha = float(noise_exponent)
    if not 0 < alpha <= 1:
        raise ValueError(f"noise_exponent={noise_exponent!r} is not in (0, 1].")
    return BipartiteModel(_uniform, partial(_power, 1 / alpha), alpha, 2.0**alpha)


def rare_reversal(epsilon: float = 0.05) -> BipartiteModel:
    """The one-dimensional illustration of Rudin (2009, Section 10.1).

    Negatives on [-1, 0] and positives on [0, 1] make up 1 - epsilon of the rows, half and half;
    the rest are positives on [-2, -1] and negatives on [1, 2]. The score x has an AUC of
    (1 - epsilon)^2, yet its top is all negatives. A sample of n rows misses the ends, on which
    the top depends, with probability (1 - epsilon)^n.

    Parameters
    ----------
    epsilon : float in (0, 1), default=0.05
        Proportion of rows beyond -1 and 1.

    Examples
    --------
    >>> from toprank.simulate import rare_reversal
    >>> X, y = rare_reversal(0.1).sample(10_000, random_state=0)
    >>> float(y[X[:, 0] > 1].mean()), float(y[abs(X[:, 0] - 0.5) < 0.5].mean())
    (0.0, 1.0)
    """
    if not 0 < epsilon < 1:
        raise ValueError(f"epsilon={epsilon!r} is not between 0 and 1.")
    return BipartiteModel(partial(_with_ends, epsilon), _probability_reversed_at_ends)


def regression(
    n_features: int = 3, *, noise: float = 0.0, errors: str = "normal"
) -> RegressionModel:
    """Standard normal rows and Y = m(X) + noise e, m linear (Example 2); noiseless by default.

    Parameters
    ----------
    n_features : int, default=3
        Number of columns.
    noise : float, default=0.0
        Standard deviation of the error; 0 is the noiseless model of Section 5.2.
    errors : {"normal", "laplace", "cauchy"}, default="normal"
        Its law (Remark 5).

    Examples
    --------
    >>> from toprank.simulate import regression
    >>> model = regression()
    >>> X, y = model.sample(100, random_state=0)
    >>> model.bayes_risk(X)
    0.0
    """
    if not noise >= 0:
        raise ValueError(f"noise={noise!r} is not a standard deviation: expected 0 or more.")
    sigma = partial(_constant, noise)
    return RegressionModel(_normal(n_features), _linear(n_features), sigma, errors)


def heteroscedastic(
    n_features: int = 3, *, noise: float = 0.5, errors: str = "normal"
) -> RegressionModel:
    """Standard normal rows, m linear and an error that varies threefold (Section 5.3).

    sigma(x) = noise (1/2 + sigmoid(2 x_1)) is bounded and m(X) has a bounded density, so
    that the noise condition (4) holds for every exponent below one (Corollary 10).

    Parameters
    ----------
    n_features : int, default=3
        Number of columns.
    noise : float, default=0.5
        Standard deviation of the error where x_1 = 0.
    errors : {"normal", "laplace", "cauchy"}, default="normal"
        Its law (Remark 5).

    Examples
    --------
    >>> from toprank.simulate import heteroscedastic
    >>> model = heteroscedastic(noise=1.0)
    >>> X, y = model.sample(100, random_state=0)
    >>> 0 < model.bayes_risk(X) < 0.5
    True
    """
    if not noise > 0:
        raise ValueError(f"noise={noise!r} is not positive; regression(noise=0) has no error.")
    sigma = partial(_noise_by_row, noise)
    return RegressionModel(_normal(n_features), _linear(n_features), sigma, errors)


def _count(n: int) -> int:
    if n < 1 or n != int(n):
        raise ValueError(f"Expected a whole number of at least one, got {n!r}.")
    return int(n)


def _one_per_row(values: ArrayLike, n: int) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (n,) or not np.all(np.isfinite(array)):
        raise ValueError(
            f"scores must be {n} finite numbers, one per row; got shape {array.shape}."
        )
    return array


# What models are made of: functions with a name, so that a model travels to other processes.


def _normal(n_features: int) -> Features:
    return partial(_normal_rows, _count(n_features))


def _normal_rows(d: int, rng: np.random.Generator, n: int) -> FloatArray:
    return rng.standard_normal((n, d))


def _uniform(rng: np.random.Generator, n: int) -> FloatArray:
    return rng.random((n, 1))


def _with_ends(epsilon: float, rng: np.random.Generator, n: int) -> FloatArray:
    size = rng.random(n) + (rng.random(n) < epsilon)
    return (size * np.where(rng.random(n) < 0.5, -1.0, 1.0)).reshape(n, 1)


def _probability_reversed_at_ends(X: FloatArray) -> FloatArray:
    x = X[:, 0]
    return (((x >= 0) & (x < 1)) | (x <= -1)).astype(np.float64)


def _power(exponent: float, X: FloatArray) -> FloatArray:
    powers: FloatArray = X[:, 0] ** exponent
    return powers


def _linear(n_features: int) -> OfRows:
    """Scores of unit variance for standard normal rows."""
    return partial(_linear_scores, _alternating_coef(n_features))


def _alternating_coef(n_features: int) -> FloatArray:
    """Coefficients of equal size and alternating signs, of length one."""
    coef: FloatArray = (-1.0) ** np.arange(_count(n_features)) / np.sqrt(n_features)
    return coef


def _linear_scores(coef: FloatArray, X: FloatArray) -> FloatArray:
    scores: FloatArray = X @ coef
    return scores


def _linked_probability(
    inverse_link: OfRows, coef: FloatArray, shift: float, X: FloatArray
) -> FloatArray:
    return inverse_link(X @ coef + shift)


def _constant(noise: float, X: FloatArray) -> FloatArray:
    return np.full(len(X), float(noise))


def _noise_by_row(noise: float, X: FloatArray) -> FloatArray:
    spread: FloatArray = noise * (0.5 + expit(2.0 * X[:, 0]))
    return spread


def _intercept(inverse_link: OfRows, spread: float, prevalence: float) -> float:
    """The b at which inverse_link(b + spread Z), Z standard normal, has the given mean."""

    def excess(shift: float) -> float:
        def term(z: float) -> float:
            at = np.array([shift + spread * z])
            return float(inverse_link(at)[0]) * float(np.exp(-0.5 * z * z))

        mean = integrate.quad(term, -10.0, 10.0, limit=400)[0] / np.sqrt(2 * np.pi)
        return float(mean) - prevalence

    low, high = -1.0, 1.0
    while excess(low) > 0 and low > -1e6:
        low *= 2.0
    while excess(high) < 0 and high < 1e6:
        high *= 2.0
    if excess(low) > 0 or excess(high) < 0:
        raise ValueError(
            f"No intercept gives a prevalence of {prevalence:g}: inverse_link must go from 0 to 1."
        )
    return float(optimize.brentq(excess, low, high, xtol=1e-10))


def _per_pair(total: float, n: int) -> float:
    return max(0.0, total) / (n * (n - 1))
