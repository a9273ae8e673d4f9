"""What is minimised: R_{g,l} as a function of scores, and the task that asks for it.

The objective in scores (value, gradient, curvature) is all that trees and torch need. A task is
a price, a loss, the ends of the list and a penalty, without rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from toprank._lazy import cached_property
from toprank._numerics import FloatArray, log_of
from toprank.losses import Loss, get_loss
from toprank.losses.proper import ProperLoss
from toprank.pair_sums import PairSum, pair_sum
from toprank.pairs import Sides, orient
from toprank.prices import Max, Power, Price, get_price


@dataclass(frozen=True)
class PushObjective:
    """The objective F(f) that stands for R_{g,l}(f), over one end of the list or both.

    Where F exceeds every float its value is infinity and its gradient is given as zero.

    The outer rows of both ends are priced together, so that for the power price
    end="both" is (1/p) log[top R_top/(K I^p) + balance R_bottom/(I K^p)], top = 1.
    """

    sides: tuple[Sides, ...]
    price: Price
    loss: Loss
    balance: float = 1.0
    top: float = 1.0

    @property
    def form(self) -> str:
        """How the objective stands for the risk: "log", "root" or "sum"."""
        return self.price.form

    @property
    def smooth(self) -> bool:
        return self.price.smooth and self.loss.smooth

    @property
    def has_curvature(self) -> bool:
        return self.price.has_curvature and self.loss.has_curvature

    @cached_property
    def scale(self) -> float:
        """The size of a natural gradient: 1 where normalised, else that of equal scores."""
        if self.price.homogeneous:
            return 1.0
        undecided = float(self.loss.log_value(np.zeros(1))[0])
        log_s = [
            np.full(len(side.outer), undecided + np.log(side.total_inner_weight))
            for side in self.sides
        ]
        value, slope = self.price.value_slope(np.concatenate(log_s), self.log_outer_weight)
        return float(np.sum(slope)) or max(1.0, value)

    @cached_property
    def log_outer_weight(self) -> FloatArray:
        """Log weights of all outer rows, the bottom's after the top's."""
        if len(self.sides) == 1:
            return self.sides[0].log_outer_weight
        ends = log_of(np.array([self.top, self.balance]))  # a balance of zero leaves the top alone
        return np.concatenate(
            [side.log_outer_weight + end for side, end in zip(self.sides, ends, strict=True)]
        )

    def smoothed(self, level: float) -> PushObjective:
        """Return a smooth objective that lies below this one and meets it as level -> 0."""
        return replace(self, **smooth_parts(self.price, self.loss, self.top, self.balance, level))

    def _sums(self, scores: FloatArray) -> list[PairSum]:
        return [
            pair_sum(self.loss, s.sign * scores[s.inner], s.sign * scores[s.outer])
            for s in self.sides
        ]

    def log_heights(self, scores: FloatArray) -> FloatArray:
        """Return log S of all outer rows, the bottom's after the top's."""
        return np.concatenate(
            [
                sums.log_heights(side.inner_weight)
                for sums, side in zip(self._sums(scores), self.sides, strict=True)
            ]
        )

    def value(self, scores: FloatArray) -> float:
        """Return F(scores)."""
        return self.price.value_slope(self.log_heights(scores), self.log_outer_weight)[0]

    def log_risk(self, scores: FloatArray) -> float:
        """Return the logarithm of the paper's sum R_{g,l} (with the weights as they are)."""
        ends = zip(self._sums(scores), self.sides, strict=True)
        log_s = np.concatenate([sums.log_heights_of_any(side.inner_weight) for sums, side in ends])
        return self.price.log_risk(log_s, self.log_outer_weight)

    def value_grad(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return F and its gradient in the scores."""
        state = _State(self, scores)
        return state.value, state.gradient()

    def hessian_map(self, scores: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the map v -> H v, H the Hessian of F in the scores; v is one column or several."""
        return _State(self, scores).hessian_times


def smooth_parts(
    price: Price, loss: Loss, top: float, balance: float, level: float
) -> dict[str, Any]:
    """Return the parts of an objective that make it smooth and keep it below its limit.

    A mean of powers lies below a maximum, a sum does not: where the price is one, the weights
    of the two ends are made to sum to one.
    """
    parts: dict[str, Any] = {"price": price.smoothed(level), "loss": loss.smoothed(level)}
    if isinstance(price, Max):
        parts.update(top=top / (top + balance), balance=balance / (top + balance))
    return parts


class _State:
    """Everything known about the objective at one vector of scores."""

    def __init__(self, objective: PushObjective, scores: FloatArray):
        self.objective = objective
        self.n = len(scores)
        self.ends = [
            _End(sums, side)
            for sums, side in zip(objective._sums(scores), objective.sides, strict=True)
        ]
        self.log_s = np.concatenate([end.log_s for end in self.ends])
        self.value, slope = objective.price.value_slope(self.log_s, objective.log_outer_weight)
        self.slopes = self._split(slope)

    def _split(self, values: FloatArray) -> list[FloatArray]:
        cuts = np.cumsum([len(end.side.outer) for end in self.ends])[:-1]
        return np.split(values, cuts)

    def gradient(self) -> FloatArray:
        total = np.zeros(self.n)
        if self.value == np.inf:  # no slope there that could be represented
            return total
        for end, slope in zip(self.ends, self.slopes, strict=True):
            end.add(total, *end.pull_back(end.per_height(slope)))
        return total

    @cached_property
    def _change(self) -> Callable[[FloatArray], FloatArray]:
        objective = self.objective
        return objective.price.slope_change(self.log_s, objective.log_outer_weight)

    def _bend(self, lift: FloatArray) -> FloatArray:
        """The change of dF/dlog S along a direction in log S, or along each of several."""
        if lift.ndim == 1:
            return self._change(lift)
        return np.stack([self._change(column) for column in lift.T], axis=1)

    def hessian_times(self, v: FloatArray) -> FloatArray:
        if self.value == np.inf:
            return np.zeros(v.shape)
        pushes = [end.push(v) for end in self.ends]
        lifts = [end.per_height(push.height) for end, push in zip(self.ends, pushes, strict=True)]
        bends = self._split(self._bend(np.concatenate(lifts)))
        total = np.zeros(v.shape)
        for end, slope, push, lift, bend in zip(
            self.ends, self.slopes, pushes, lifts, bends, strict=True
        ):
            inner, outer = end.pull_back(end.per_height(bend - _beside(slope, v) * lift))
            inner2, outer2 = end.pair_curvature(slope, push)
            end.add(total, inner + inner2, outer + outer2)
        return total


@dataclass(frozen=True)
class _Push:
    """A direction in the scores as one end sees it."""

    inner: FloatArray
    outer: FloatArray
    height: FloatArray  # the change of the scaled S
    curved: FloatArray  # sum over the inner rows of l'' times their part of the direction


class _End:
    """One end of the list: its pair sums, heights, and the chain rule through them."""

    def __init__(self, sums: PairSum, side: Sides):
        self.sums = sums
        self.side = side
        self.weight = side.inner_weight
        self.height, self.tilt = sums.to_outer((0, 1), self.weight)  # scaled S and dS/dr
        self.height = np.maximum(self.height, 0.0)
        with np.errstate(divide="ignore"):
            self.log_s: FloatArray = np.log(self.height) + sums.log_scale
        self._kept_curvature: FloatArray | None = None

    def per_height(self, slope: FloatArray) -> FloatArray:
        """dF/dS (scaled) from dF/dlog S; a height of zero has no active pair and no slope."""
        out = np.zeros_like(slope)
        height = _beside(self.height, slope)
        np.divide(slope, height, out=out, where=height > 0)
        return out

    def _to_outer(self, orders: tuple[int, ...], v: FloatArray) -> list[FloatArray]:
        weighed = _beside(self.weight, v) * v
        sums = self.sums
        return (sums.to_outer if v.ndim == 1 else sums.columns_to_outer)(orders, weighed)

    def _to_inner(self, order: int, c: FloatArray) -> FloatArray:
        sums = self.sums
        (total,) = (sums.to_inner if c.ndim == 1 else sums.columns_to_inner)((order,), c)
        return total

    def pull_back(self, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """From dF/dS to the gradient in the oriented inner and outer scores."""
        inner = self._to_inner(1, c)
        return _beside(self.weight, c) * inner, -c * _beside(self.tilt, c)

    def push(self, v: FloatArray) -> _Push:
        """Change of the heights along a direction in the scores."""
        side = self.side
        da, db = side.sign * v[side.inner], side.sign * v[side.outer]
        tilted, curved = self._to_outer((1, 2), da)
        return _Push(da, db, tilted - db * _beside(self.tilt, v), curved)

    @cached_property
    def _outer_curvature(self) -> FloatArray:
        return self.sums.to_outer((2,), self.weight)[0]

    def _inner_curvature(self, c: FloatArray) -> FloatArray:
        """The same for every direction, so computed for the first one only."""
        if self._kept_curvature is None:
            self._kept_curvature = self.sums.to_inner((2,), c)[0]
        return self._kept_curvature

    def pair_curvature(self, slope: FloatArray, push: _Push) -> tuple[FloatArray, FloatArray]:
        """The part of H v that comes from the curvature of the loss."""
        single = self.per_height(slope)
        c, weight = _beside(single, push.outer), _beside(self.weight, push.inner)
        cross = self._to_inner(2, c * push.outer)
        inner = _beside(self._inner_curvature(single), push.inner)
        outer = _beside(self._outer_curvature, push.outer)
        return (
            weight * (push.inner * inner - cross),
            c * (push.outer * outer - push.curved),
        )

    def add(self, total: FloatArray, inner: FloatArray, outer: FloatArray) -> None:
        """Add a gradient in oriented scores to one in scores."""
        total[self.side.inner] += self.side.sign * inner
        total[self.side.outer] += self.side.sign * outer


def _beside(values: FloatArray, v: FloatArray) -> FloatArray:
    """One number per row in a shape that multiplies ``v``, one column or several."""
    return values if v.ndim == 1 else values[:, None]


def price_and_loss(price: Any, p: float, loss: Any) -> tuple[Price, Loss]:
    """Resolve names into a price and a loss, in the form that is convex for the two."""
    of_margin = get_loss(loss)
    of_height = get_price(price, p, root=not of_margin.factorises)
    if of_height.exponential_loss_only and not of_margin.factorises:
        raise ValueError(
            f"The {of_height.name} price is convex with the exponential loss only; got "
            f"{of_margin!r}. Use loss='exponential', or price='power'."
        )
    return of_height, of_margin


def build_objective(
    positive: NDArray[np.bool_],
    sample_weight: FloatArray | None = None,
    *,
    price: object = "power",
    p: float = 4.0,
    loss: object = "exponential",
    end: str = "top",
    balance: float = 1.0,
    top: float = 1.0,
) -> PushObjective:
    """Build the objective for labelled rows, in the form that is convex for this loss."""
    price, loss = price_and_loss(price, p, loss)
    sides = orient(positive, sample_weight, end=end, outer=price.outer)
    if price.homogeneous:
        sides = tuple(side.normalise() for side in sides)
    return PushObjective(sides, price, loss, balance, top)


class AnyTask(Protocol):
    """What every problem must know of its task."""

    @property
    def alpha(self) -> float: ...

    @property
    def smooth(self) -> bool: ...

    @property
    def has_curvature(self) -> bool: ...

    def smoothed(self, level: float) -> Any: ...

    def gentler(self, p: float) -> Any: ...


@dataclass(frozen=True)
class Task:
    """A price of the heights of one class, at one end of the list or both."""

    intercepts: ClassVar[int] = 0  #: coefficients beyond those of the columns

    price: Price
    loss: Loss
    end: str = "top"
    balance: float = 1.0
    top: float = 1.0
    alpha: float = 0.0

    @classmethod
    def build(
        cls,
        *,
        price: str | Price | tuple[object, ...] = "power",
        p: float = 4.0,
        loss: str | Loss | tuple[object, ...] = "exponential",
        **rest: Any,
    ) -> Task:
        """Resolve names into a price and a loss, in the form that is convex for the two."""
        return cls(*price_and_loss(price, p, loss), **rest)

    @property
    def smooth(self) -> bool:
        return self.price.smooth and self.loss.smooth

    @property
    def has_curvature(self) -> bool:
        return self.price.has_curvature and self.loss.has_curvature

    @property
    def p(self) -> float:
        """The power of the price; NaN if it has none."""
        return float(getattr(self.price, "p", np.nan))

    def objective(
        self, positive: NDArray[np.bool_], weight: FloatArray | None = None
    ) -> PushObjective:
        """Return the objective in scores of labelled rows."""
        return build_objective(
            positive,
            weight,
            price=self.price,
            loss=self.loss,
            end=self.end,
            balance=self.balance,
            top=self.top,
        )

    def smoothed(self, level: float) -> Task:
        """Return a smooth task that lies below this one and meets it as level -> 0."""
        parts = smooth_parts(self.price, self.loss, self.top, self.balance, level)
        return replace(self, **parts)

    def gentler(self, p: float) -> Task | None:
        """Return the task with a power price of at most p; None if this one is as gentle."""
        price = gentler_price(self.price, p)
        return None if price is None else replace(self, price=price)


def gentler_price(price: Price, p: float) -> Price | None:
    """Return a power price of at most p; None if this price is as gentle, or no power."""
    if not isinstance(price, Power) or price.p <= p:
        return None
    return Power(p, root=price.root)


@dataclass(frozen=True)
class PointwiseTask:
    """A composite loss of each row's score, with a free intercept."""

    intercepts: ClassVar[int] = 1  #: coefficients beyond those of the columns

    loss: ProperLoss
    alpha: float = 0.0
    smooth: ClassVar[bool] = True

    @property
    def has_curvature(self) -> bool:
        return self.loss.has_curvature

    def smoothed(self, level: float) -> PointwiseTask:
        return self

    def gentler(self, p: float) -> None:
        return None
