"""The price g of a height, and how the prices of all outer rows become one number.

A price acts on log S, so that heights may exceed any floating-point range. For outer rows
with heights S and log weights lw it returns the objective's value, its slope in log S, and
the change of that slope along a direction (for Newton's method):

=============  ==============================  ==============================================
price          risk R (the paper's sum)        objective minimised
=============  ==============================  ==============================================
power, log     sum w S^p                       (1/p) log sum w S^p    (exponential loss)
power, root    sum w S^p                       (sum w S^p)^(1/p)      (any other loss)
exponential    sum w e^S                       log sum w e^S
log1p          sum w log(1 + S)                the same
max            max S                           the same, through power with growing p
your own g     sum w g(S)                      the same
=============  ==============================  ==============================================

``homogeneous`` prices see mean heights and weights that sum to one; the others see the
weights as they are (a weight is a repetition count, and log(1 + S) notices).

Where the objective exceeds every float its value is infinity and its slope is given as zero.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from toprank._numerics import ArrayMap, FloatArray, log_of, log_sum_and_shares, log_sum_exp, softmax


class Price:
    """How heights are priced. Subclass it, or use :func:`from_callable`, to bring your own."""

    name: ClassVar[str] = "custom"
    #: How the objective stands for the risk R: "log" of it, its p-th "root", or the "sum" itself.
    form: str = "sum"
    homogeneous: bool = False
    smooth: bool = True
    #: The side whose heights are priced, for end="top": "losers" (negatives) or "winners".
    outer: str = "losers"
    #: Whether the objective is convex with the exponential loss only, as log(1 + S) is.
    exponential_loss_only: bool = False
    #: Whether g is convex and non-decreasing; None: look at the heights that a fit meets.
    convex: bool | None = None

    @classmethod
    def at(cls, p: float) -> Price:
        """Return the price for an estimator's parameter p, which only "power" depends on."""
        return cls()

    def log_risk(self, log_s: FloatArray, log_w: FloatArray) -> float:
        """Return log of the paper's sum, sum_o w g(S)."""
        if self.form != "sum":
            raise TypeError(f"{type(self).__name__} must define log_risk")
        return float(log_of(np.asarray(self.value_slope(log_s, log_w)[0])))

    def value_slope(self, log_s: FloatArray, log_w: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective F and dF/dlog S."""
        raise TypeError(f"{type(self).__name__} must define value_slope")

    def slope_change(self, log_s: FloatArray, log_w: FloatArray) -> ArrayMap:
        """Return the map from a direction in log S to the change of dF/dlog S along it."""
        raise TypeError(f"{type(self).__name__} has no curvature; use solver='lbfgs'")

    def elasticity(self, log_s: FloatArray, log_w: FloatArray) -> FloatArray:
        """Return an upper bound of d2F/d(log S)2 over dF/dlog S, one number per outer row.

        How fast the push on a row grows with its height: p for the power price. For prices
        that are summed row by row, as here, it is the ratio itself; one where there is no
        curvature to tell.
        """
        if not self.has_curvature:
            return np.ones_like(log_s)
        slope = self.value_slope(log_s, log_w)[1]
        bend = self.slope_change(log_s, log_w)(np.ones_like(log_s))
        return np.divide(bend, slope, out=np.ones_like(log_s), where=slope > 0)

    @property
    def has_curvature(self) -> bool:
        """Whether ``slope_change`` is available, which Newton's method needs."""
        return type(self).slope_change is not Price.slope_change

    def smoothed(self, level: float) -> Price:
        """Return a smooth price that lies below this one and meets it as level -> 0."""
        return self

    def with_form(self, *, root: bool) -> Price:
        """Return the price in its log or root form, where it has two."""
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Power(Price):
    """g(S) = S^p, p >= 1: the P-Norm Push (Rudin 2009, Section 2)."""

    name = "power"
    convex = True
    homogeneous = True

    def __init__(self, p: float = 4.0, *, root: bool = False):
        self.p = float(p)
        self.root = root
        self.form = "root" if root else "log"

    @classmethod
    def at(cls, p: float) -> Price:
        if not (isinstance(p, int | float | np.number) and p >= 1):
            raise ValueError(
                f"p={p!r} is not a push: expected a number >= 1 or infinity. Use p=1 for no push "
                "(the ranking objective of AUC) and larger p to concentrate on the top."
            )
        return Max() if np.isinf(p) else cls(p)

    def log_risk(self, log_s: FloatArray, log_w: FloatArray) -> float:
        return log_sum_exp(log_w + self.p * log_s)

    def value_slope(self, log_s: FloatArray, log_w: FloatArray) -> tuple[float, FloatArray]:
        log_risk, share = log_sum_and_shares(log_w + self.p * log_s)
        log_norm = log_risk / self.p
        if not self.root or log_norm == np.inf:
            return log_norm, share
        norm = float(np.exp(log_norm))
        return norm, norm * share

    def slope_change(self, log_s: FloatArray, log_w: FloatArray) -> ArrayMap:
        log_risk, share = log_sum_and_shares(log_w + self.p * log_s)
        if log_risk == np.inf:
            return np.zeros_like
        norm = float(np.exp(log_risk / self.p)) if self.root else 1.0

        def change(z: FloatArray) -> FloatArray:
            mean = float(share @ z)
            bent = self.p * share * (z - mean)
            return norm * (bent + share * mean) if self.root else bent

        return change

    def elasticity(self, log_s: FloatArray, log_w: FloatArray) -> FloatArray:
        return np.full_like(log_s, self.p)

    def with_form(self, *, root: bool) -> Price:
        return Power(self.p, root=root)

    def __repr__(self) -> str:
        return f"Power(p={self.p!r}, root={self.root!r})"


class Identity(Power):
    """g(S) = S: every pair counts alike, the ranking objective of RankBoost and of the AUC."""

    name = "identity"

    def __init__(self, *, root: bool = False):
        super().__init__(1.0, root=root)

    @classmethod
    def at(cls, p: float) -> Price:
        return cls()

    def with_form(self, *, root: bool) -> Price:
        return Identity(root=root)

    def __repr__(self) -> str:
        return f"Identity(root={self.root!r})"


class Exponential(Price):
    """g(S) = e^S, steeper than any power; minimised as log sum w e^S."""

    name = "exponential"
    convex = True
    form = "log"

    def log_risk(self, log_s: FloatArray, log_w: FloatArray) -> float:
        return log_sum_exp(log_w + self._heights(log_s))

    def value_slope(self, log_s: FloatArray, log_w: FloatArray) -> tuple[float, FloatArray]:
        heights = self._heights(log_s)
        if np.any(np.isinf(heights)):
            return np.inf, np.zeros_like(heights)
        value, share = log_sum_and_shares(log_w + heights)
        return value, share * heights

    def slope_change(self, log_s: FloatArray, log_w: FloatArray) -> ArrayMap:
        heights = self._heights(log_s)
        if np.any(np.isinf(heights)):
            return np.zeros_like
        share = softmax(log_w + heights)

        def change(z: FloatArray) -> FloatArray:
            lift = heights * z
            return share * heights * (z + lift - float(share @ lift))

        return change

    def elasticity(self, log_s: FloatArray, log_w: FloatArray) -> FloatArray:
        return 1.0 + self._heights(log_s)

    @staticmethod
    def _heights(log_s: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.exp(log_s)


class Log1p(Price):
    """g(S) = log(1 + S) over the positives' reverse heights: the IR Push (equation 2)."""

    name = "log1p"
    convex = True
    outer = "winners"
    exponential_loss_only = True

    def log_risk(self, log_s: FloatArray, log_w: FloatArray) -> float:
        return float(log_of(np.exp(log_w) @ np.logaddexp(0.0, log_s)))

    def value_slope(self, log_s: FloatArray, log_w: FloatArray) -> tuple[float, FloatArray]:
        weights = np.exp(log_w)
        return float(weights @ np.logaddexp(0.0, log_s)), weights * expit(log_s)

    def slope_change(self, log_s: FloatArray, log_w: FloatArray) -> ArrayMap:
        bend = np.exp(log_w) * expit(log_s) * expit(-log_s)
        return lambda z: bend * z


class Max(Price):
    """The p = inf limit: only the highest height counts (Rmax of Rudin 2009, Section 2)."""

    name = "max"
    convex = True
    homogeneous = True
    smooth = False
    has_curvature = True  #: of the smooth versions that it is fitted through

    def __init__(self, *, root: bool = False):
        self.root = root
        self.form = "root" if root else "log"

    def log_risk(self, log_s: FloatArray, log_w: FloatArray) -> float:
        return float(np.max(log_s, where=log_w > -np.inf, initial=-np.inf))

    def value_slope(self, log_s: FloatArray, log_w: FloatArray) -> tuple[float, FloatArray]:
        top = self.log_risk(log_s, log_w)
        if top == np.inf:
            return np.inf, np.zeros_like(log_s)
        highest = (log_s == top) & (log_w > -np.inf)
        share = highest / np.sum(highest)
        if not self.root:
            return top, share
        return float(np.exp(top)), float(np.exp(top)) * share

    def smoothed(self, level: float) -> Price:
        return Power(1.0 / level, root=self.root)

    def with_form(self, *, root: bool) -> Price:
        return Max(root=root)

    def __repr__(self) -> str:
        return f"Max(root={self.root!r})"


class _CallablePrice(Price):
    """A user's g, g' and perhaps g'', as plain callables of the height."""

    def __init__(self, value: Any, slope: Any, curvature: Any = None, convex: bool | None = None):
        self._functions = (value, slope, curvature)
        self.convex = convex

    @property
    def has_curvature(self) -> bool:
        return self._functions[2] is not None

    def value_slope(self, log_s: FloatArray, log_w: FloatArray) -> tuple[float, FloatArray]:
        with np.errstate(over="ignore"):
            heights, weights = np.exp(log_s), np.exp(log_w)
            value = float(weights @ self._functions[0](heights))
            if value == np.inf:
                return value, np.zeros_like(heights)
            return value, weights * self._functions[1](heights) * heights

    def slope_change(self, log_s: FloatArray, log_w: FloatArray) -> ArrayMap:
        if self._functions[2] is None:
            return super().slope_change(log_s, log_w)
        with np.errstate(over="ignore"):
            heights, weights = np.exp(log_s), np.exp(log_w)
            bend = weights * (
                self._functions[1](heights) * heights + self._functions[2](heights) * heights**2
            )
        return lambda z: bend * z


#: Every price by its name. What is added here is known to every ranker, loss and objective.
PRICES: dict[str, type[Price]] = {
    cls.name: cls for cls in (Identity, Power, Exponential, Log1p, Max)
}


def from_callable(
    value: object,
    slope: object,
    curvature: object = None,
    *,
    check: bool = False,
    convex: bool | None = None,
) -> Price:
    """Make a price from callables of the height S >= 0.

    Parameters
    ----------
    value, slope, curvature : callable
        g(S), g'(S) and (for Newton's method) g''(S), elementwise on arrays. Heights are sums
        over all positives of the loss, so they grow with the data.
    check : bool, default=False
        Check on a grid of heights that g is non-negative, non-decreasing and convex, and
        that the slope given is its derivative. See :func:`check_convex`.
    convex : bool, optional
        Whether g is convex and non-decreasing. If you do not say, a fit looks at g on the
        heights it meets; see :func:`bend_in_price`. Where g is not, a fit tries several starts
        and certifies nothing.

    Examples
    --------
    >>> from toprank.prices import from_callable
    >>> cubic = from_callable(lambda s: s**3, lambda s: 3 * s**2, check=True)
    """
    price = _CallablePrice(value, slope, curvature, convex)
    if check:
        check_convex(price)
    return price


def check_convex(price: Price, highest: float = 100.0, n: int = 2001) -> None:
    """Raise ValueError unless g is non-negative, non-decreasing and convex on [0, highest]."""
    heights = np.linspace(1e-9, highest, n)
    one = np.zeros(1)
    log_heights = np.log(heights)
    pairs = [price.value_slope(log_heights[j : j + 1], one) for j in range(n)]
    value = np.array([v for v, _ in pairs])
    slope = np.array([s[0] for _, s in pairs]) / heights
    rounding = 1e-9 * max(1.0, float(np.max(np.abs(slope))))
    # a convex function's chord slope lies between the slopes at its ends
    chord = np.diff(value) / np.diff(heights)
    slack = rounding + 1e-6 * np.maximum(1.0, np.abs(chord))
    inside = (chord >= slope[:-1] - slack) & (chord <= slope[1:] + slack)
    for holds, what in (
        (np.all(np.isfinite(value)) and np.all(value >= 0), "finite and non-negative"),
        (np.all(slope >= -rounding), "non-decreasing"),
        (np.all(np.diff(slope) >= -rounding), "convex"),
        (np.all(inside), "consistent: slope(S) must be the derivative of value(S)"),
    ):
        if not holds:
            raise ValueError(f"The price is not {what} on heights from 0 to {highest:g}.")


def bend_in_price(
    price: Price, low: float, high: float, *, in_log: bool = False, n: int = 513
) -> str | None:
    """Say where g is not convex and non-decreasing between two heights; None if it is.

    With the exponential loss log S is convex in the scores too, so that g need only be convex in
    log S (``in_log``), as log(1 + S) is.

    Examples
    --------
    >>> from toprank.prices import bend_in_price, from_callable
    >>> saturates = from_callable(lambda s: s**2 / (1 + s**2), lambda s: 2 * s / (1 + s**2) ** 2)
    >>> bend_in_price(saturates, 0.01, 100.0)
    'its slope falls from 0.6495 at height 0.5725 to 0.6495 at height 0.5829'
    """
    log_s = np.linspace(np.log(low), np.log(high), n)
    if price.form == "sum":
        slope = price.value_slope(log_s, np.zeros(n))[1]
    else:
        slope = np.array([price.value_slope(one, np.zeros(1))[1][0] for one in log_s[:, None]])
    if not in_log:
        slope = slope / np.exp(log_s)
    if np.any(np.isnan(slope)):
        return (
            f"its slope is not a number at height {np.exp(log_s[np.argmax(np.isnan(slope))]):.4g}"
        )
    rounding = 1e-9 * max(float(np.max(np.abs(slope))), np.finfo(float).tiny)
    if np.any(slope < -rounding):
        return f"it falls at height {np.exp(log_s[np.argmax(slope < -rounding)]):.4g}"
    falls = np.diff(slope) < -rounding
    if not np.any(falls):
        return None
    first = int(np.argmax(falls))
    (s, t), (here, there) = np.exp(log_s[first : first + 2]), slope[first : first + 2]
    return f"its slope falls from {here:.4g} at height {s:.4g} to {there:.4g} at height {t:.4g}"


def get_price(
    price: str | Price | tuple[object, ...], p: float = 1.0, *, root: bool = False
) -> Price:
    """Return the price for a name, a :class:`Price`, or a tuple (value, slope[, curvature]).

    ``p`` is used by "power" (p = inf is "max"); ``root`` asks for the root form of the
    homogeneous prices, which stays convex for every loss.
    """
    if isinstance(price, tuple) and len(price) in (2, 3) and all(callable(f) for f in price):
        price = from_callable(*price)
    elif isinstance(price, str) and price in PRICES:
        price = PRICES[price].at(p)
    if isinstance(price, Price):
        return price.with_form(root=root)
    raise ValueError(
        f"Unknown price {price!r}: expected one of {sorted(PRICES)}, a "
        "toprank.prices.Price, or a tuple of callables (value, slope[, curvature])."
    )
