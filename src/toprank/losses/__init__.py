"""The pairwise margin losses l, one registry.

>>> from toprank.losses import get_loss
>>> get_loss("logistic")
Logistic()
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Any

import numpy as np

from toprank._numerics import ArrayMap, FloatArray, floats
from toprank.losses.margin import (
    Exponential,
    Hinge,
    Logistic,
    Loss,
    SmoothedHinge,
    SquaredHinge,
    ZeroOne,
)

#: Every loss by its name. What is added here is known to every ranker, metric and objective.
LOSSES: dict[str, type[Loss]] = {
    cls.name: cls for cls in (Exponential, Logistic, Hinge, SquaredHinge, ZeroOne)
}


class _TrainableNames(Set[str]):
    """The names in `LOSSES` of the losses that have a slope to follow, as the registry is now."""

    def __contains__(self, name: object) -> bool:
        return name in LOSSES and LOSSES[str(name)].trainable

    def __iter__(self) -> Iterator[str]:
        return (name for name in LOSSES if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @classmethod
    def _from_iterable(cls, names: Iterable[str]) -> set[str]:  # type: ignore[override]
        return set(names)  # what unions and differences with other sets come to


#: The names an estimator accepts: everything but the 0-1 loss, which has no slope.
TRAINABLE_LOSSES: Set[str] = _TrainableNames()

__all__ = [
    "LOSSES",
    "TRAINABLE_LOSSES",
    "Exponential",
    "Hinge",
    "Logistic",
    "Loss",
    "SmoothedHinge",
    "SquaredHinge",
    "ZeroOne",
    "check_convex",
    "from_callable",
    "get_loss",
    "get_trainable_loss",
]


class _CallableLoss(Loss):
    """A user's l, l' and perhaps l'', as plain callables of the margin."""

    def __init__(self, value: ArrayMap, slope: ArrayMap, curvature: ArrayMap | None = None):
        self._functions = (value, slope, curvature)

    @property
    def has_curvature(self) -> bool:
        return self._functions[2] is not None

    def value(self, r: FloatArray) -> FloatArray:
        return floats(self._functions[0](r))

    def slope(self, r: FloatArray) -> FloatArray:
        return floats(self._functions[1](r))

    def curvature(self, r: FloatArray) -> FloatArray:
        if self._functions[2] is None:
            return super().curvature(r)
        return floats(self._functions[2](r))


def from_callable(
    value: ArrayMap, slope: ArrayMap, curvature: ArrayMap | None = None, *, check: bool = False
) -> Loss:
    """Make a loss from callables of the margin r = f(positive) - f(negative).

    Parameters
    ----------
    value, slope, curvature : callable
        l(r), its first and (for Newton's method) second derivative, elementwise on arrays.
    check : bool, default=False
        Check on a grid that l is non-negative, non-increasing and convex, and that the
        derivatives given are its derivatives. See :func:`check_convex`.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.losses import from_callable
    >>> square = from_callable(lambda r: (1 - r) ** 2, lambda r: 2 * (r - 1))
    >>> float(square.value(np.array([0.0]))[0])
    1.0
    """
    loss = _CallableLoss(value, slope, curvature)
    if check:
        check_convex(loss)
    return loss


def check_convex(loss: Loss, low: float = -20.0, high: float = 20.0, n: int = 4001) -> None:
    """Raise ValueError unless l looks like a margin loss on a grid over [low, high].

    Checked: finite and non-negative values, a slope that is never positive and never falls
    (convexity), and derivatives that agree with differences of the values.
    """
    r = np.linspace(low, high, n)
    value, slope = loss.value(r), loss.slope(r)
    rounding = 1e-9 * max(1.0, float(np.max(np.abs(slope))))
    _require_property(
        bool(np.all(np.isfinite(value)) and np.all(value >= 0)), "finite and non-negative"
    )
    _require_property(bool(np.all(slope <= rounding)), "non-increasing (slope <= 0)")
    _require_property(bool(np.all(np.diff(slope) >= -rounding)), "convex (slope never falls)")
    # a convex function's chord slope lies between the slopes at its ends
    chord = np.diff(value) / np.diff(r)
    inside = (chord >= slope[:-1] - 1e-6 - rounding) & (chord <= slope[1:] + 1e-6 + rounding)
    _require_property(
        bool(np.all(inside)), "consistent: slope(r) must be the derivative of value(r)"
    )
    if loss.has_curvature and loss.smooth:
        _check_curvature(loss, r)


def _check_curvature(loss: Loss, r: FloatArray, step: float = 1e-5) -> None:
    """Raise ValueError unless the curvature is non-negative and the derivative of the slope."""
    curvature = loss.curvature(r)
    _require_property(bool(np.all(curvature >= 0)), "convex (curvature >= 0)")
    chord = (loss.slope(r + step) - loss.slope(r - step)) / (2 * step)
    apart = np.abs(chord - curvature) > 1e-4 * np.abs(curvature) + 1e-6
    # the curvature may jump, as the squared hinge's does, at a few points
    _require_property(
        float(np.mean(apart)) <= 0.01,
        "consistent: curvature(r) must be the derivative of slope(r)",
    )


def _require_property(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"The loss is not {what} on the grid it was checked on.")


def get_loss(loss: str | Loss | tuple[Any, ...]) -> Loss:
    """Return the loss for a name, a :class:`Loss`, or a tuple (value, slope[, curvature])."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, tuple) and len(loss) in (2, 3) and all(callable(part) for part in loss):
        return from_callable(*loss)
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]()
    raise ValueError(
        f"Unknown loss {loss!r}: expected one of {sorted(LOSSES)}, a toprank.losses.Loss, "
        "or a tuple of callables (value, slope[, curvature])."
    )


def get_trainable_loss(loss: str | Loss | tuple[Any, ...]) -> Loss:
    """Return the loss, or raise ValueError if it has no slope that a fit could follow."""
    found = get_loss(loss)
    if not found.trainable:
        names = ", ".join(repr(name) for name in TRAINABLE_LOSSES)
        raise ValueError(f"{found!r} has no slope to follow; use one of {names}.")
    return found
