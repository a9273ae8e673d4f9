"""R_{g,l} as a function of scores: value, gradient, curvature. All that trees and torch need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.losses import Loss, get_loss
from toprank.pair_sums import PairSum, pair_sum
from toprank.pairs import Sides, orient
from toprank.prices import Max, Power, Price, get_price


@dataclass(frozen=True)
class PushObjective:
    """The objective F(f) that stands for R_{g,l}(f), over one end of the list or both.

    The outer rows of both ends are priced together, so that for the power price
    end="both" is (1/p) log[R_top/(K I^p) + balance R_bottom/(I K^p)].
    """

    sides: tuple[Sides, ...]
    price: Price
    loss: Loss
    balance: float = 1.0

    @property
    def form(self) -> str:
        """How the objective stands for the risk: "log", "root" or "sum"."""
        if not self.price.homogeneous:
            return "log" if self.price.name == "exponential" else "sum"
        return "root" if getattr(self.price, "root", False) else "log"

    @property
    def smooth(self) -> bool:
        return self.price.smooth and self.loss.smooth

    @property
    def has_curvature(self) -> bool:
        return self.price.has_curvature and self.loss.has_curvature

    @property
    def scale(self) -> float:
        """The size of a natural gradient: 1 where normalised, else the outer (inner) weight."""
        if self.price.homogeneous:
            return 1.0
        side = self.sides[0]
        if self.price.name == "exponential":
            return max(1.0, side.total_inner_weight)
        return max(1.0, float(np.exp(side.log_total_outer_weight)))

    @cached_property
    def log_outer_weight(self) -> FloatArray:
        """Log weights of all outer rows, the bottom's after the top's, times the balance."""
        parts = [side.log_outer_weight for side in self.sides]
        if len(parts) == 2:
            parts[1] = parts[1] + np.log(self.balance)
        return np.concatenate(parts)

    def smoothed(self, level: float) -> PushObjective:
        """Return a smooth objective that lies below this one and meets it as level -> 0."""
        price = self.price
        if isinstance(price, Max):
            price = Power(1.0 / level, root=price.root)
        return replace(self, price=price, loss=self.loss.smoothed(level))

    def _sums(self, scores: FloatArray) -> list[PairSum]:
        return [
            pair_sum(self.loss, s.sign * scores[s.inner], s.sign * scores[s.outer])
            for s in self.sides
        ]

    def value(self, scores: FloatArray) -> float:
        """Return F(scores)."""
        log_s = np.concatenate(
            [
                sums.log_heights(side.inner_weight)
                for sums, side in zip(self._sums(scores), self.sides, strict=True)
            ]
        )
        return self.price.value_slope(log_s, self.log_outer_weight)[0]

    def log_risk(self, scores: FloatArray) -> float:
        """Return the logarithm of the paper's sum R_{g,l} (with the weights as they are)."""
        log_s = [
            sums.log_heights(side.inner_weight)
            for sums, side in zip(self._sums(scores), self.sides, strict=True)
        ]
        return self.price.log_risk(np.concatenate(log_s), self.log_outer_weight)

    def value_grad(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return F and its gradient in the scores."""
        state = _State(self, scores)
        return state.value, state.gradient()

    def hessian_map(self, scores: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the map v -> H v, H the Hessian of F in the scores."""
        return _State(self, scores).hessian_times


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
        for end, slope in zip(self.ends, self.slopes, strict=True):
            end.add(total, *end.pull_back(end.per_height(slope)))
        return total

    @cached_property
    def _change(self) -> Callable[[FloatArray], FloatArray]:
        objective = self.objective
        return objective.price.slope_change(self.log_s, objective.log_outer_weight)

    def hessian_times(self, v: FloatArray) -> FloatArray:
        lifts = [end.lift(v) for end in self.ends]
        bends = self._split(self._change(np.concatenate(lifts)))
        total = np.zeros(self.n)
        for end, slope, lift, bend in zip(self.ends, self.slopes, lifts, bends, strict=True):
            inner, outer = end.pull_back(end.per_height(bend - slope * lift))
            inner2, outer2 = end.pair_curvature(end.per_height(slope), v)
            end.add(total, inner + inner2, outer + outer2)
        return total


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

    def per_height(self, slope: FloatArray) -> FloatArray:
        """dF/dS (scaled) from dF/dlog S; a height of zero has no active pair and no slope."""
        out = np.zeros_like(slope)
        np.divide(slope, self.height, out=out, where=self.height > 0)
        return out

    def pull_back(self, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """From dF/dS to the gradient in the oriented inner and outer scores."""
        (inner,) = self.sums.to_inner((1,), c)
        return self.weight * inner, -c * self.tilt

    def lift(self, v: FloatArray) -> FloatArray:
        """The change of log S along a direction in the scores."""
        da, db = self._oriented(v)
        (pushed,) = self.sums.to_outer((1,), self.weight * da)
        return self.per_height(pushed - db * self.tilt)

    @cached_property
    def _curved_outer(self) -> FloatArray:
        (curved,) = self.sums.to_outer((2,), self.weight)
        return curved

    def pair_curvature(self, c: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The part of H v that comes from the curvature of the loss."""
        da, db = self._oriented(v)
        (own,) = self.sums.to_inner((2,), c)
        (cross_inner,) = self.sums.to_inner((2,), c * db)
        (cross_outer,) = self.sums.to_outer((2,), self.weight * da)
        return (
            self.weight * (da * own - cross_inner),
            c * (db * self._curved_outer - cross_outer),
        )

    def _oriented(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        side = self.side
        return side.sign * v[side.inner], side.sign * v[side.outer]

    def add(self, total: FloatArray, inner: FloatArray, outer: FloatArray) -> None:
        """Add a gradient in oriented scores to one in scores."""
        total[self.side.inner] += self.side.sign * inner
        total[self.side.outer] += self.side.sign * outer


def push_objective(
    positive: NDArray[np.bool_],
    sample_weight: FloatArray | None = None,
    *,
    price: Any = "power",
    p: float = 4.0,
    loss: Any = "exponential",
    end: str = "top",
    balance: float = 1.0,
) -> PushObjective:
    """Build the objective for labelled rows, in the form that is convex for this loss."""
    loss = get_loss(loss)
    price = get_price(price, p, root=not loss.factorises)
    if price.name == "log1p" and not loss.factorises:
        raise ValueError(
            "The log1p price (IR Push) is convex with the exponential loss only; "
            f"got {loss!r}. Use loss='exponential', or price='power'."
        )
    sides = orient(positive, sample_weight, end=end, outer=price.outer)
    if price.homogeneous:
        sides = tuple(side.normalised() for side in sides)
    return PushObjective(sides, price, loss, balance)
