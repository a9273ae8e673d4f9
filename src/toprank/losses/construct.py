"""New proper losses from old ones, or from a concave function (Agarwal 2012, Section 5.3)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit

from toprank._numerics import ArrayMap, FloatArray
from toprank.losses.composite import LinkedLoss, ProperLoss, times

#: Cells of each grid on which a modulus is sought, and how often the best cell is looked into.
_CELLS = 2000
_ZOOMS = 2
#: Steps of false position from the table; a dozen reach the last digit.
_STEPS = 12
#: Log-odds at which a canonical link is tabulated; beyond lie 0 and 1 in floating point.
_NODES = np.concatenate(
    [np.arange(-745.0, -40.0), np.linspace(-40.0, 40.0, 1601), np.arange(41.0, 746.0)]
)


def from_bayes_risk(H: ArrayMap, dH: ArrayMap, d2H: ArrayMap | None = None) -> ProperLoss:
    r"""Build the proper loss whose conditional Bayes risk is a given concave function.

    .. math::
        c(1, q) = H(q) + (1 - q) H'(q), \qquad c(-1, q) = H(q) - q H'(q)

    (equations 31 and 32). Its link is the identity; `canonical` attaches one that makes it
    convex. Its ``strong_properness`` is estimated: the least value of -H'' that a grid finds.

    Parameters
    ----------
    H, dH : callable
        A concave function on [0, 1], finite and not negative, and its derivative (at a kink any
        superderivative), elementwise on arrays. At 0 and 1 the derivative may be infinite.
    d2H : callable, optional
        The second derivative of H, which Newton's method needs.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.losses.proper import from_bayes_risk
    >>> boosting = from_bayes_risk(
    ...     lambda q: 2 * np.sqrt(q * (1 - q)), lambda q: (1 - 2 * q) / np.sqrt(q * (1 - q))
    ... )
    >>> float(boosting.partial(1, 0.2)), round(boosting.strong_properness, 4)
    (2.0, 4.0)
    """
    return _FromBayesRisk(H, dH, d2H)


def canonical(c: ProperLoss | Callable[..., FloatArray]) -> ProperLoss:
    r"""Attach to a proper loss its canonical link (equation 33).

    .. math::
        \psi(q) = c(-1, q) - c(1, q) = -H'(q)

    The composite loss is convex in the score; beyond a bounded prediction space it goes on along
    its tangents. Its slope is q - 1 for a positive and q for a negative.

    Parameters
    ----------
    c : ProperLoss or callable
        The loss, whose own link is dropped; or its partial losses as a callable c(y, q) with y = 1
        or -1 and an array q.

    Examples
    --------
    >>> from toprank.losses.proper import Exponential, Squared, canonical
    >>> canonical(Exponential())
    CanonicalExponential()
    >>> canonical(Squared()).prediction_space
    (-4.0, 4.0)
    """
    if not isinstance(c, ProperLoss):
        c = _from_partials(c)
    return c.closed_canonical() or _Canonical(c)


def balanced(loss: ProperLoss, prevalence: float) -> ProperLoss:
    r"""Weigh the two classes of a loss so that each counts one half (equation 28).

    .. math::
        \ell_{bal}(y, v) = \frac{\ell(1, v)}{2p} 1[y = 1] + \frac{\ell(-1, v)}{2(1-p)} 1[y = -1]

    It is proper composite again: its link is that of the loss after the prior odds are taken
    out, so that ``inverse_link`` still gives probabilities under the prevalence p.

    Parameters
    ----------
    loss : ProperLoss
        The loss to balance.
    prevalence : float in (0, 1)
        p = P(y = 1).

    Examples
    --------
    >>> from toprank.losses.proper import Logistic, balanced
    >>> float(balanced(Logistic(), 0.1).inverse_link(0.0).round(12))
    0.1
    """
    if not 0 < prevalence < 1:
        raise ValueError(f"prevalence={prevalence!r} is not between 0 and 1.")
    return _Balanced(loss, float(prevalence))


class _FromBayesRisk(ProperLoss):
    """A proper loss given by H and its derivatives, as plain callables."""

    def __init__(self, H: ArrayMap, dH: ArrayMap, d2H: ArrayMap | None = None):
        self._functions = (H, dH, d2H)
        _check_concave(self._bayes_risk, self._slope)
        self.strong_properness = modulus(self._slope, self._curvature if d2H else None)

    @property
    def has_risk_curvature(self) -> bool:
        return self._functions[2] is not None

    def _bayes_risk(self, eta: FloatArray) -> FloatArray:
        return _evaluate_at(self._functions[0], eta)

    def _slope(self, eta: FloatArray) -> FloatArray:
        return _evaluate_at(self._functions[1], eta)

    def _curvature(self, eta: FloatArray) -> FloatArray:
        if self._functions[2] is None:
            return super()._curvature(eta)
        return _evaluate_at(self._functions[2], eta)


class _Canonical(LinkedLoss):
    """A proper loss with its canonical link, inverted from a table and by false position."""

    convex = True

    def __init__(self, c: ProperLoss):
        super().__init__(c)
        low, high = (float(end) for end in self.link([0.0, 1.0]))
        self.prediction_space = (low, high)
        with np.errstate(divide="ignore", over="ignore"):
            self._links = np.maximum.accumulate(self._link(expit(_NODES)))
        inside = self.link(np.linspace(0.0, 1.0, _CELLS + 1))
        if np.any(np.isnan(inside)) or not np.all(np.diff(inside) > 0):
            raise ValueError(
                "The loss is proper but not strictly so: H has straight pieces, on which its "
                "canonical link -H' stands still and cannot be inverted. Use a strictly concave H."
            )

    @property
    def has_curvature(self) -> bool:
        return self.c.has_risk_curvature

    def _link(self, eta: FloatArray) -> FloatArray:
        return -self.c._slope(eta)

    def _inverse_link(self, v: FloatArray) -> FloatArray:
        v = np.asarray(v)
        cell = np.clip(np.searchsorted(self._links, v), 1, len(_NODES) - 1)
        low, high = ((_NODES[k], self._links[k] - v) for k in (cell - 1, cell))
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            q = expit(_zero(lambda t: self._link(expit(t)) - v, low, high))
        ends = self.prediction_space
        return np.where(v <= ends[0], 0.0, np.where(v >= ends[1], 1.0, q))

    def derivative(self, order: int, sign: FloatArray, v: FloatArray) -> FloatArray:
        if order < 2:
            return self.value_slope(sign, v)[order]
        inside = np.clip(v, *self.prediction_space)
        with np.errstate(divide="ignore"):
            return np.where(inside == v, -1.0 / self._curvature(self._inverse_link(inside)), 0.0)

    def value_slope(self, sign: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        inside = np.clip(v, *self.prediction_space)
        q = self._inverse_link(inside)
        slope = q - (sign > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            beyond = np.where(inside == v, 0.0, (v - inside) * slope)
            return np.where(sign > 0, *self._partials(q)) + beyond, slope

    def __repr__(self) -> str:
        return f"canonical({self.c!r})"


class _Balanced(ProperLoss):
    """A composite loss whose classes are weighed by 1/(2p) and 1/(2(1-p))."""

    def __init__(self, loss: ProperLoss, prevalence: float):
        self.base = loss
        self.prevalence = prevalence
        self.weights = (0.5 / prevalence, 0.5 / (1.0 - prevalence))
        self.prediction_space = loss.prediction_space
        self.convex, self.monotone = loss.convex, loss.monotone
        curvature = self._curvature if loss.has_risk_curvature else None
        self.strong_properness = modulus(self._slope, curvature)

    @property
    def has_risk_curvature(self) -> bool:
        return self.base.has_risk_curvature

    @property
    def has_curvature(self) -> bool:
        return self.base.has_curvature

    def _reweigh(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The probability once the classes are weighed, and the total weight."""
        positive, negative = self.weights[0] * eta, self.weights[1] * (1.0 - eta)
        return positive / (positive + negative), positive + negative

    def _bayes_risk(self, eta: FloatArray) -> FloatArray:
        even, total = self._reweigh(eta)
        return total * self.base._bayes_risk(even)

    def _slope(self, eta: FloatArray) -> FloatArray:
        positive, negative = self._partials(eta)
        return positive - negative

    def _curvature(self, eta: FloatArray) -> FloatArray:
        even, total = self._reweigh(eta)
        return self.base._curvature(even) * (self.weights[0] * self.weights[1]) ** 2 / total**3

    def _partials(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        positive, negative = self.base._partials(self._reweigh(eta)[0])
        return self.weights[0] * positive, self.weights[1] * negative

    def _link(self, eta: FloatArray) -> FloatArray:
        return self.base._link(self._reweigh(eta)[0])

    def _inverse_link(self, v: FloatArray) -> FloatArray:
        even = self.base._inverse_link(v)
        positive, negative = even / self.weights[0], (1.0 - even) / self.weights[1]
        return positive / (positive + negative)

    def derivative(self, order: int, sign: FloatArray, v: FloatArray) -> FloatArray:
        return np.where(sign > 0, *self.weights) * self.base.derivative(order, sign, v)

    def value_slope(self, sign: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        weight = np.where(sign > 0, *self.weights)
        value, slope = self.base.value_slope(sign, v)
        return weight * value, weight * slope

    def __repr__(self) -> str:
        return f"balanced({self.base!r}, {self.prevalence!r})"


def modulus(slope: ArrayMap, curvature: ArrayMap | None = None) -> float:
    """Return the least value of -H'' on [0, 1], from H' or better from H'' itself.

    By Theorem 10 it is the lambda of Definition 7. Sought on a grid, then on finer grids
    around the best cell; without H'' it is a difference quotient of H' over the finest cell.
    Bounds divide by it, so it is rounded down: by what it differs from the cells beside it, which
    the least value between two points can lie below it, and by what differences of H' lose.
    """
    low, high = 0.0, 1.0
    for _ in range(1 + _ZOOMS):
        q = np.linspace(low, high, _CELLS + 1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            bend = -np.diff(slope(q)) / np.diff(q) if curvature is None else -curvature(q)
        best = int(np.nanargmin(bend))
        low, high = float(q[max(0, best - 1)]), float(q[min(_CELLS, best + 2)])
        if curvature is None and high - low < 1e-4:  # finer differences would be rounding
            break
    beside = bend[max(0, best - 1) : best + 2]
    lower = float(np.max(beside[np.isfinite(beside)], initial=bend[best]) - bend[best])
    if curvature is None:
        ends = slope(q[best : best + 2])
        lower += float(4e-16 * np.max(np.abs(ends)) / (q[best + 1] - q[best]))
    elif q[best] in (0.0, 1.0):  # at an end of the interval there is nothing beyond
        lower = 0.0
    return max(0.0, float(bend[best]) - lower)


def _zero(
    function: ArrayMap, low: tuple[FloatArray, FloatArray], high: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """Return where increasing functions are zero, each between two points with their values.

    False position in Anderson and Björck's version: the end that stays is trusted less and less,
    so that both ends close in. A step that is not a number is replaced by the middle.
    """
    (a, at_a), (b, at_b) = low, high
    x, side = a, np.zeros_like(a)
    for _ in range(_STEPS):
        before, step = x, b - at_b * (b - a) / (at_b - at_a)
        x = np.where((step >= a) & (step <= b), step, 0.5 * (a + b))
        at_x = function(x)
        if np.all((np.abs(x - before) <= 1e-14 * (1.0 + np.abs(x))) | (at_x == 0)):
            break
        now = np.sign(at_x)
        trust = 1.0 - at_x / np.where(now < 0, at_a, at_b)
        trust = np.where(now == side, np.where(trust > 0, trust, 0.5), 1.0)
        a, at_a = np.where(now < 0, x, a), np.where(now < 0, at_x, trust * at_a)
        b, at_b = np.where(now > 0, x, b), np.where(now > 0, at_x, trust * at_b)
        side = now
    return x


def _evaluate_at(function: ArrayMap, eta: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(function(eta), dtype=np.float64)


def _check_concave(H: ArrayMap, dH: ArrayMap) -> None:
    q = np.linspace(0.0, 1.0, _CELLS + 1)
    risk, slope = H(q), dH(q)
    if risk.shape != q.shape or slope.shape != q.shape:
        raise ValueError(
            "H and dH must work elementwise: expected an array of the shape of their input."
        )
    if not np.all(np.isfinite(risk)) or np.any(np.isnan(slope)):
        raise ValueError(
            "H must be finite on [0, 1] and dH must not be NaN there; write their limits at 0 and "
            f"1 (H(0) = {risk[0]}, H(1) = {risk[-1]}, dH(0) = {slope[0]}, dH(1) = {slope[-1]})."
        )
    rounding = 1e-9 * max(1.0, float(np.max(np.abs(risk))))
    if np.any(risk < -rounding):
        raise ValueError(f"H is negative ({float(np.min(risk)):.3g}); a loss is never negative.")
    # a concave function's chord slope lies between the slopes at its ends
    chord = np.diff(risk) / np.diff(q)
    slack = 1e-6 * (1.0 + np.abs(chord))
    if np.any(chord > slope[:-1] + slack) or np.any(chord < slope[1:] - slack):
        raise ValueError("H is not concave, or dH is not its derivative, on a grid over [0, 1].")


def _from_partials(c: Callable[..., FloatArray]) -> ProperLoss:
    """A proper loss from c(y, q): H = q c(1, q) + (1-q) c(-1, q), H' = c(1, q) - c(-1, q)."""
    if not callable(c):
        raise TypeError(f"Expected a ProperLoss or a callable c(y, q), got {c!r}.")
    return _FromBayesRisk(_Risk(c), _Slope(c))


class _Risk:
    def __init__(self, c: Callable[..., FloatArray]):
        self.c = c

    def __call__(self, q: FloatArray) -> FloatArray:
        return times(q, self.c(1, q)) + times(1.0 - q, self.c(-1, q))


class _Slope(_Risk):
    def __call__(self, q: FloatArray) -> FloatArray:
        return self.c(1, q) - self.c(-1, q)
