"""What is to be minimised: a price, a loss, the ends of the list, a penalty. No rows yet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.losses import Loss
from toprank.losses.proper import ProperLoss
from toprank.objective.risk import PushObjective, price_and_loss, push_objective, smooth_parts
from toprank.prices import Power, Price


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
        cls, *, price: Any = "power", p: float = 4.0, loss: Any = "exponential", **rest: Any
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
        return push_objective(
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
