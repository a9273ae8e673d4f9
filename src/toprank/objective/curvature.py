"""Gradient and diagonal curvature of R_{g,l} in the scores: what a boosted tree asks for.

A tree gives all rows of a leaf one step, v = -sum g / (sum h + lambda), so the diagonal h must
make sense summed over a leaf, where the diagonal of the Hessian does not: the rows of a leaf
move together and its off-diagonal part, as large as the diagonal, is lost. For every pair (i, k)
with c_k = dF/dS_k, height S_k, slope T_k = sum_i w_i l'(r_ik) and elasticity e_k of the price, let

    kappa_ik = c_k w_i [ l''(r_ik) + ((e_k - 1)/2) (|T_k| / S_k) |l'(r_ik)| ]
    h_i = sum_k kappa_ik,    h_k = sum_i kappa_ik

The first term is the curvature of the loss, with (v_i - v_k)^2 taken as v_i^2 + v_k^2; the second
the bend of the price, by Cauchy's inequality, shared evenly between the two rows of the pair. The
hinge, which has no curvature, counts as a parabola: |l'| stands for l''.

For the exponential loss and the power price this is h = ((1 + p)/2) |g|, and the step of a leaf
that holds the shares s of the positives' and t of the negatives' gradient is

    v = (2/(1+p)) (s - t)/(s + t).

It never passes the best step of that leaf in the pointwise form of the push (Ertekin & Rudin 2011:
sum_i e^-(f_i+b) + (1/p) sum_k e^{p(f_k+b)}), which is ln(s/t)/(1+p): the logarithmic mean of s and
t is at most their arithmetic mean. Newton's step in the pointwise form, (s - t)/(s + p t), passes
it by a factor that grows with p: 9 at p = 64, s = 0.3, t = 0.001.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray, log_of
from toprank.losses import get_trainable_loss
from toprank.objective.risk import PushObjective, _End, _State
from toprank.prices import Max, Power

Derivatives = Callable[[FloatArray], tuple[FloatArray, FloatArray]]

#: The power that stands for the maximum: one row with a slope gives no tree to grow.
LARGEST_POWER = 64.0
#: Share of the rows up to which a class is few: the other is then computed where it stands.
_FEW = 0.2


def boostable(objective: PushObjective) -> PushObjective:
    """Return the objective with a price that has curvature: a power for the maximum."""
    get_trainable_loss(objective.loss)
    if isinstance(objective.price, Max):
        return replace(objective, price=objective.price.smoothed(1.0 / LARGEST_POWER))
    return objective


def grad_curvature(objective: PushObjective, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the gradient of F and a diagonal curvature that keeps the steps of leaves short.

    Parameters
    ----------
    objective : PushObjective
        With a price other than the maximum, see `boostable`.
    scores : array of shape (n,)

    Returns
    -------
    gradient, curvature : arrays of shape (n,)
        The curvature is never negative; it is zero where a row has no part in F.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.objective import build_objective
    >>> from toprank.objective.curvature import grad_curvature
    >>> F = build_objective(np.array([True, False, False]), p=3.0)
    >>> gradient, curvature = grad_curvature(F, np.zeros(3))
    >>> gradient.tolist(), curvature.tolist()
    ([-1.0, 0.5, 0.5], [2.0, 1.0, 1.0])
    """
    return derivatives_of(objective)(scores)


def derivatives_of(objective: PushObjective) -> Derivatives:
    """Return `grad_curvature` of the objective as a function of the scores, prepared once."""
    if _is_factorised_power(objective):
        return _FactorisedPower(objective)
    return lambda scores: _by_pair_sums(objective, scores)


def scaled(derivatives: Derivatives, factor: float) -> Derivatives:
    """Return gradient and curvature times a number."""
    if isinstance(derivatives, _FactorisedPower):
        return derivatives.times(factor)

    def times(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        gradient, curvature = derivatives(scores)
        return factor * gradient, factor * curvature

    return times


def _by_pair_sums(objective: PushObjective, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    state = _State(objective, scores)
    curvature = np.zeros(len(scores))
    if state.value < np.inf:
        elasticity = objective.price.elasticity(state.log_s, objective.log_outer_weight)
        for end, slope, e in zip(state.ends, state.slopes, state._split(elasticity), strict=True):
            inner, outer = _end_curvature(end, slope, e)
            curvature[end.side.inner] += inner
            curvature[end.side.outer] += outer
    return state.gradient(), curvature


def _end_curvature(
    end: _End, slope: FloatArray, elasticity: FloatArray
) -> tuple[FloatArray, FloatArray]:
    c, loss = end.per_height(slope), end.sums.loss
    bend = 0.5 * np.maximum(elasticity - 1.0, 0.0) * end.per_height(c * np.abs(end.tilt))
    order, sign = (2, 1.0) if loss.smooth and loss.has_curvature else (1, -1.0)
    (inner,) = end.sums.to_inner((order,), c)
    (push,) = end.sums.to_inner((1,), bend)
    (outer,) = end.sums.to_outer((order,), end.weight)
    # sums of signed terms can leave a zero at -1e-17
    return (
        np.maximum(end.weight * (sign * inner - push), 0.0),
        np.maximum(c * sign * outer + bend * np.abs(end.tilt), 0.0),
    )


def _is_factorised_power(objective: PushObjective) -> bool:
    """Whether e^-r and S^p meet in one list, where everything is two softmaxes."""
    return (
        type(objective) is PushObjective
        and len(objective.sides) == 1
        and objective.loss.factorises
        and isinstance(objective.price, Power)
        and not objective.price.root
    )


def tilts_of(objective: PushObjective) -> tuple[tuple[float, float], ...] | None:
    """Return (tilt, sign) of the first and of the second row of an objective for two rows.

    The gradient of a class is sign times the softmax of tilt times its scores, for any number of
    rows. None where it is not: for other losses and prices, and for both ends at once.
    """
    if not _is_factorised_power(objective):
        return None
    classes = sorted(_FactorisedPower(objective).classes, key=lambda of: int(of.rows[0]))
    return tuple((of.tilt, of.sign) for of in classes)


@dataclass(frozen=True)
class _ClassOfRows:
    """The rows of one class, each with its share of a gradient: a softmax."""

    rows: NDArray[np.intp]
    tilt: float  # what scores are multiplied by
    log_weight: FloatArray | None
    sign: float  # of the gradient
    scale: float = 1.0  # what the gradient is multiplied by

    def share_out(self, exponents: FloatArray) -> FloatArray:
        """Turn exponents into parts of the gradient, in place; -inf has no share."""
        exponents -= np.max(exponents)
        np.exp(exponents, out=exponents)
        exponents *= self.sign * self.scale / np.sum(exponents)
        return exponents

    def parts(self, scores: FloatArray) -> FloatArray:
        """Return the parts of these rows, given the scores of all rows."""
        exponents = scores.take(self.rows)
        exponents *= self.tilt
        if self.log_weight is not None:
            exponents += self.log_weight
        return self.share_out(exponents)


class _FactorisedPower:
    """The same at the speed of one exponential per row, because trees ask every round."""

    def __init__(self, objective: PushObjective):
        (side,), p = objective.sides, float(getattr(objective.price, "p", np.nan))
        self.curvature = 0.5 * (1.0 + p)
        inner_weight = _unequal_weight(log_of(side.inner_weight))
        outer_weight = _unequal_weight(side.log_outer_weight)
        self.classes = (
            _ClassOfRows(side.inner, -side.sign, inner_weight, -side.sign),
            _ClassOfRows(side.outer, side.sign * p, outer_weight, side.sign),
        )

    def times(self, factor: float) -> _FactorisedPower:
        """Return the same times a number, at no price."""
        scaled = copy(self)
        first, second = self.classes
        scaled.classes = (
            replace(first, scale=factor * first.scale),
            replace(second, scale=factor * second.scale),
        )
        return scaled

    def __call__(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        few, many = sorted(self.classes, key=lambda of: len(of.rows))
        n = len(scores)
        if many.log_weight is None and n - len(many.rows) == len(few.rows) <= _FEW * n:
            gradient = many.tilt * scores  # it takes a while to pick out nearly all rows
            gradient[few.rows] = -np.inf
            many.share_out(gradient)
        else:
            gradient = np.zeros(n)
            gradient[many.rows] = many.parts(scores)
        gradient[few.rows] = few.parts(scores)
        curvature = np.abs(gradient)
        curvature *= self.curvature
        return gradient, curvature


def _unequal_weight(log_weight: FloatArray) -> FloatArray | None:
    """None for weights that are all equal: a softmax does not see them."""
    return None if np.ptp(log_weight) == 0 else log_weight
