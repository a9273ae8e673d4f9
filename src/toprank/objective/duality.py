"""The dual of the P-Norm Push (Rudin 2009, Theorem 4 and Section 11), in its factorised form.

For the exponential loss and the power price, with tilts s of the positives and t of the
negatives (-1 and p at the top), the convex dual of

    F(coef) = (1/|s|) log sum_pos w e^{s f} + (1/t) log sum_neg w e^{t f}

over weights u of the positives and v of the negatives, each summing to one, is

    maximise  -(1/|s|) KL(u, w_pos) - (1/t) KL(v, w_neg)   with   sum u x = sum v x:

among the weights that give both classes the same mean, those closest to the given ones. The
product u v' is, normalised, the weight of a pair: e^{-M lambda} times the price's
share. It is strictly concave, which is why the minimising pair weights are unique even where
the coefficients are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from toprank._numerics import FloatArray, log_of, log_sum_exp
from toprank.blocks.source import Block
from toprank.objective.labelled import View, open_block

#: The least factor of a weight, and the sum that makes up the dual value.
Terms = tuple[float, float]


class DualProblem(Protocol):
    """A problem of the factorised form, at one end of the list."""

    alpha: float
    penalty: FloatArray | float
    has_dual: bool

    @property
    def tilts(self) -> tuple[tuple[float, float], ...]: ...

    @property
    def labels(self) -> tuple[NDArray[np.bool_], FloatArray | None]: ...

    def scores(self, coef: FloatArray) -> FloatArray: ...

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray]: ...

    def hessian(self, coef: FloatArray, *, exact: bool = True) -> FloatArray: ...

    def dual_terms(self, coef: FloatArray, step: FloatArray) -> Terms: ...


@dataclass(frozen=True)
class DualPoint:
    """Weights of one class relative to its given weights, at a primal point."""

    rows: NDArray[np.intp]  # the class's rows, as indices
    log_ratio: FloatArray  # log(u / w) for each row
    weight: FloatArray  # u, summing to one


def pair_weights(problem: DualProblem, coef: FloatArray) -> tuple[DualPoint, DualPoint]:
    """Return the dual points of the positives and of the negatives at the coefficients.

    The weight of the pair (i, k) is the product of theirs.
    """
    if not problem.has_dual:
        raise ValueError(
            "The dual is available for the exponential loss with a finite power price, at one "
            "end of the list."
        )
    scores, (positive, weight) = problem.scores(coef), problem.labels
    points = []
    for tilt, members in zip(problem.tilts[0], (positive, ~positive), strict=True):
        present = members if weight is None else members & (weight > 0)
        rows = np.flatnonzero(present)
        log_w = np.zeros(len(rows)) if weight is None else log_of(weight[rows])
        log_w = log_w - log_sum_exp(log_w)
        exponent = tilt * scores[rows]
        log_ratio = exponent - log_sum_exp(log_w + exponent)
        points.append(DualPoint(rows, log_ratio, np.exp(log_w + log_ratio)))
    return points[0], points[1]


def primal_dual_gap(problem: DualProblem, coef: FloatArray) -> float:
    """Return F(coef) minus the dual value of a feasible point near the one coef defines.

    An upper bound on F(coef) - min F. With a penalty it is |gradient|^2 / (2 alpha). Without
    one the weights are first moved, by the first-order effect of a Newton step, to where
    both classes have the same mean; infinite when that takes a weight below zero, which
    it does far from the minimum, and on separable data always.
    """
    value, grad = problem.value_grad(coef)
    if problem.alpha > 0:
        return float(np.sum(grad**2 / (2.0 * problem.penalty)))
    hessian = problem.hessian(coef)
    if not (np.all(np.isfinite(hessian)) and np.all(np.isfinite(grad))):
        return np.inf
    step = linalg.lstsq(hessian, grad, check_finite=False)[0]
    if np.max(np.abs(hessian @ step - grad)) > 1e-8 * max(1e-8, float(np.max(np.abs(grad)))):
        return np.inf
    least, entropy = problem.dual_terms(coef, step)
    return max(0.0, value + entropy) if least >= 0 else np.inf


def moved_terms(
    log_ratio: FloatArray,
    weight: FloatArray,
    along: FloatArray,
    tilt: float,
    mean: float | None = None,
) -> Terms:
    """What rows of one class contribute to the dual value at weights moved by a step.

    Moving along -step tilts each weight by its row's score ``along`` the step, relative to the
    class's mean. Returns the least factor and sum of share log(share / given) / |tilt|.
    """
    mean = float(weight @ along) if mean is None else mean
    factor = 1.0 - tilt * (along - mean)
    share = weight * factor
    terms = np.where(share > 0, share * (log_ratio + log_of(np.maximum(factor, 0.0))), 0.0)
    return float(np.min(factor, initial=np.inf)), float(np.sum(terms)) / abs(tilt)


def merged_terms(left: Terms, right: Terms) -> Terms:
    """Join the contributions of different rows."""
    return min(left[0], right[0]), left[1] + right[1]


@dataclass(frozen=True)
class DualState:
    """A point, a step, and of each class its tilt, log mass, log total and mean along the step."""

    coef: FloatArray
    step: FloatArray
    classes: tuple[tuple[float, float, float, float], tuple[float, float, float, float]]


@dataclass(frozen=True)
class Dual:
    """Terms of the dual value, for positives and negatives; the state is a `DualState`."""

    view: View

    def local(self, block: Block, state: DualState) -> Terms:
        opened = open_block(block, self.view)
        scores, along = opened.scores(state.coef), opened.scores(state.step)
        positive, weight = opened.labels()
        total: Terms = (np.inf, 0.0)
        for members, of_class in zip((positive, ~positive), state.classes, strict=True):
            tilt, log_mass, log_total, mean = of_class
            present = members if weight is None else members & (weight > 0)
            exponent = tilt * scores[present] - log_mass
            log_weight = 0.0 if weight is None else log_of(weight[present])
            terms = moved_terms(
                exponent + log_total, np.exp(log_weight + exponent), along[present], tilt, mean
            )
            total = merged_terms(total, terms)
        return total

    def merge(self, left: Terms, right: Terms) -> Terms:
        return merged_terms(left, right)
