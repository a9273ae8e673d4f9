"""The objective of a linear ranker: F(X coef) + (alpha/2) |coef|^2, ready for a solver.

Two ways through the data. ``SweptProblem`` reads X once per evaluation (exponential loss,
power price, dense X). ``ScoredProblem`` takes every price, loss and matrix: it keeps the
scores and reads X twice. Solvers see no difference.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray, log_of, log_sum_exp
from toprank.blocks import RowBlocks
from toprank.losses import Loss
from toprank.objective.histogram import Points, Standard, standard_points
from toprank.objective.risk import PushObjective, price_and_loss, push_objective, smooth_parts
from toprank.objective.sweep import EndPartial, TiltedSweep
from toprank.prices import Power, Price

#: A coarse problem keeps about this share of the rows, within the limits given.
_COARSE_SHARE = 1 / 32
_COARSE_ROWS = (5_000, 200_000)
_COARSE_ROWS_PER_FEATURE = 100
#: Rows of each class that a sampled Hessian is taken from, at the least.
_HESSIAN_ROWS = 10_000
_HESSIAN_ROWS_PER_FEATURE = 300
#: Rows from which a Hessian that is put together column by column is not thinned further.
_HESSIAN_ROWS_ENOUGH = 50_000
#: Bytes of dense columns held at once while a Hessian is put together.
_COLUMN_BYTES = 1 << 26


@dataclass(frozen=True)
class Task:
    """What is to be minimised: labelled rows, price, loss, end, penalty."""

    intercepts: ClassVar[int] = 0  #: coefficients beyond those of the columns

    positive: Any  #: which rows are positive; None where the labels lie with the blocks
    weight: FloatArray | None
    price: Price
    loss: Loss
    end: str = "top"
    balance: float = 1.0
    top: float = 1.0
    alpha: float = 0.0

    @classmethod
    def build(
        cls,
        positive: NDArray[np.bool_] | None,
        weight: FloatArray | None = None,
        *,
        price: Any = "power",
        p: float = 4.0,
        loss: Any = "exponential",
        **rest: Any,
    ) -> Task:
        """Resolve names into a price and a loss, in the form that is convex for the two."""
        return cls(positive, weight, *price_and_loss(price, p, loss), **rest)

    def objective(self) -> PushObjective:
        return push_objective(
            self.positive,
            self.weight,
            price=self.price,
            loss=self.loss,
            end=self.end,
            balance=self.balance,
            top=self.top,
        )

    def problem(self, source: RowBlocks) -> LinearProblem:
        """Return the problem, in coefficients, for rows to score."""
        return linear_problem(source, self)

    def smoothed(self, level: float) -> Task:
        """Return a smooth task that lies below this one and meets it as level -> 0."""
        parts = smooth_parts(self.price, self.loss, self.top, self.balance, level)
        return replace(self, **parts)


def coarse_rows(n: int, size: int) -> int | None:
    """Return about how many rows stand for n in a coarse problem; None if n is small anyway."""
    enough = _COARSE_ROWS_PER_FEATURE * size
    rows = int(max(enough, np.clip(n * _COARSE_SHARE, *_COARSE_ROWS)))
    return None if n < 4 * rows else rows


def coarse_step(members: int, rows: int) -> int:
    """Return the distance of the rows kept of a class of so many members."""
    return max(1, members // (rows // 2))


class LinearProblem(ABC):
    """A convex function of the coefficients, with the data behind it."""

    def __init__(self, source: RowBlocks, task: Task):
        self.source = source
        self.task = task
        self.alpha = task.alpha
        self.size = source.n_features
        scale = source.units.scale
        #: The penalty on each coefficient, in the units of the source.
        self.penalty: FloatArray | float = (
            self.alpha if scale is None else self.alpha / scale / scale
        )

    #: The size of a natural gradient; tolerances are relative to it.
    scale: float = 1.0
    #: Whether one maximum of linear scores is its only corner, but for the loss's own.
    peaked: bool = False

    @property
    def smooth(self) -> bool:
        return self.task.price.smooth and self.task.loss.smooth

    @property
    def has_curvature(self) -> bool:
        return self.task.price.has_curvature and self.task.loss.has_curvature

    @abstractmethod
    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray]:
        """Return the penalised objective and its gradient."""

    @abstractmethod
    def hessian(self, coef: FloatArray, *, exact: bool = True) -> FloatArray:
        """Return the penalised objective's Hessian, or an estimate from some of the rows."""

    def value(self, coef: FloatArray) -> float:
        """Return the penalised objective, also where it is not smooth."""
        objective = self.task.objective()
        return objective.value(self.source.scores(coef)) + self._cost(coef)

    def _cost(self, coef: FloatArray) -> float:
        return 0.5 * float(coef @ (self.penalty * coef))

    def penalised(
        self, value: float, grad: FloatArray, coef: FloatArray
    ) -> tuple[float, FloatArray]:
        """Add the penalty to an objective and its gradient."""
        return value + self._cost(coef), grad + self.penalty * coef

    def smoothed(self, level: float) -> LinearProblem:
        """Return a smooth problem that lies below this one and meets it as level -> 0."""
        return self._with(self.task.smoothed(level))

    def _with(self, task: Task) -> LinearProblem:
        """Return the problem of another task on the same rows."""
        return task.problem(self.source)

    def gentler(self, p: float) -> LinearProblem | None:
        """Return the problem with a power price of at most p; None if this one is as gentle."""
        price = self.task.price
        if not isinstance(price, Power) or price.p <= p:
            return None
        return self._with(replace(self.task, price=Power(p, root=price.root)))

    def scores(self, coef: FloatArray) -> FloatArray:
        """Return the scores X @ coef (less the source's centre)."""
        return self.source.scores(coef)

    def log_masses(self, coef: FloatArray) -> tuple[float, float]:
        """Return LSE(-f) over the positives and LSE(p f) over the negatives, p the price's."""
        scores, positive, weight = self.scores(coef), self.task.positive, self.task.weight
        logs = np.zeros(len(scores)) if weight is None else log_of(weight)
        p = getattr(self.task.price, "p", 1.0)
        return log_sum_exp((logs - scores)[positive]), log_sum_exp((logs + p * scores)[~positive])

    def standard_scores(self, coef: FloatArray) -> tuple[Standard, Points]:
        """Return where the scores lie, and all of them as weighted points."""
        return standard_points(self.scores(coef), self.task.positive, self.task.weight)

    def coarse(self) -> LinearProblem | None:
        """Return the same problem on a fixed sample of the rows; None if there are few."""
        return self._coarse

    @cached_property
    def _coarse(self) -> LinearProblem | None:
        """Thin the rows.

        Each class is thinned by itself to evenly spaced rows, whose weights make up for the
        others, so that a rare class stays whole.
        """
        rows = coarse_rows(self.source.n_rows, self.size)
        if rows is None:
            return None
        positive = self.task.positive
        kept, weights = [], []
        for members in (np.flatnonzero(positive), np.flatnonzero(~positive)):
            kept.append(members[:: coarse_step(len(members), rows)])
            weights.append(np.full(len(kept[-1]), len(members) / len(kept[-1])))
        chosen = np.concatenate(kept)
        weight = np.concatenate(weights)
        if self.task.weight is not None:
            weight *= self.task.weight[chosen]
            if not all(np.any(weight[positive[chosen] == side] > 0) for side in (True, False)):
                return None
        order = np.argsort(chosen)
        task = replace(self.task, positive=positive[chosen[order]], weight=weight[order])
        return task.problem(self.source.take(chosen[order]))

    def separates(self, coef: FloatArray) -> bool:
        """Whether the scores put every positive strictly above every negative."""
        scores = self.scores(coef)
        positive, weight = self.task.positive, self.task.weight
        present = np.ones(len(scores), dtype=bool) if weight is None else weight > 0
        lowest = np.min(scores, where=positive & present, initial=np.inf)
        highest = np.max(scores, where=~positive & present, initial=-np.inf)
        return bool(lowest > highest)

    def undetermined(self, coef: FloatArray) -> bool:
        """Whether no minimiser is finite, or none is unique: separated and unpenalised."""
        return self.alpha == 0 and self.separates(coef)

    def runs_away(self, coef: FloatArray) -> bool:
        """Whether the objective falls for ever along coef: separated, unpenalised, no hinge."""
        return self.alpha == 0 and not self.task.loss.pieces and self.separates(coef)

    def gradient_sizes(self, coef: FloatArray) -> FloatArray | None:
        """Return the size of what is added up in each entry of the gradient, the penalty's too.

        None where the rows are not at hand.
        """
        if not isinstance(self.source, RowBlocks):
            return None
        sizes = self.source.sizes(self._slopes(coef))
        pulls = np.abs(self.penalty * coef)
        pulls[: len(sizes)] += sizes
        return pulls

    def _slopes(self, coef: FloatArray) -> FloatArray:
        """The gradient of the objective in the scores."""
        return self.task.objective().value_grad(self.scores(coef))[1]

    def column_scale(self) -> FloatArray:
        """Return a positive scale for each coefficient: one over the column's spread."""
        n = self.source.n_rows
        mean = self.source.adjoint(np.full(n, 1.0 / n))
        square = self.source.squares() / n
        spread = np.sqrt(np.maximum(square - mean**2, 0.0))
        return 1.0 / np.where(spread > 0, spread, 1.0)


class ScoredProblem(LinearProblem):
    """Any price and loss: scores, then the objective in scores, then X' times its gradient."""

    @cached_property
    def objective(self) -> PushObjective:
        return self.task.objective()

    @property
    def scale(self) -> float:  # type: ignore[override]
        return self.objective.scale

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray]:
        value, in_scores = self.objective.value_grad(self.source.scores(coef))
        return self.penalised(value, self.source.adjoint(in_scores), coef)

    def value(self, coef: FloatArray) -> float:
        return self.objective.value(self.source.scores(coef)) + self._cost(coef)

    def hessian(self, coef: FloatArray, *, exact: bool = True) -> FloatArray:
        coarse = None if exact else self.coarse()
        if coarse is not None:
            return coarse.hessian(coef, exact=coarse.source.n_rows <= _HESSIAN_ROWS_ENOUGH)
        times = self.objective.hessian_map(self.source.scores(coef))
        width = max(1, _COLUMN_BYTES // (8 * self.source.n_rows))
        hessian = np.empty((self.size, self.size))
        for first in range(0, self.size, width):
            columns = self.source.columns(first, first + width)
            bent = np.column_stack([times(column) for column in columns.T])
            hessian[:, first : first + width] = self.source.adjoint(bent)
        hessian = 0.5 * (hessian + hessian.T)
        hessian[np.diag_indices(self.size)] += self.penalty
        return hessian


class SweptProblem(LinearProblem):
    """Exponential loss and power price on dense X: everything from one sweep over the rows."""

    @staticmethod
    def supports(source: RowBlocks, task: Task) -> bool:
        return (
            task.loss.factorises
            and isinstance(task.price, Power)
            and not task.price.root
            and not source.sparse
        )

    @cached_property
    def _p(self) -> float:
        return float(getattr(self.task.price, "p", np.inf))

    @cached_property
    def tilts(self) -> tuple[tuple[float, float], ...]:
        """(tilt of the positives, tilt of the negatives) at each end."""
        p = self._p
        tilts = {"top": ((-1.0, p),), "bottom": ((-p, 1.0),), "both": ((-1.0, p), (-p, 1.0))}
        return tilts[self.task.end]

    @cached_property
    def _sweep(self) -> TiltedSweep:
        weight = self.task.weight
        log_weight = None if weight is None else log_of(weight)
        return TiltedSweep(self.source, self.task.positive, log_weight, self.tilts)

    def scores(self, coef: FloatArray) -> FloatArray:
        return self._sweep.scores(coef)

    @cached_property
    def log_totals(self) -> tuple[float, float]:
        """Logarithms of the total weights of the positives and of the negatives."""
        positive, weight = self.task.positive, self.task.weight
        if weight is None:
            count = int(np.count_nonzero(positive))
            return float(np.log(count)), float(np.log(len(positive) - count))
        return (
            float(np.log(np.sum(weight, where=positive))),
            float(np.log(np.sum(weight, where=~positive))),
        )

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray]:
        ends = self._ends(coef)
        values = [self._end_value(end, tilts) for end, tilts in zip(ends, self.tilts, strict=True)]
        grads = [neg.mean - pos.mean for pos, neg in ends]
        value, shares = self._combine(values)
        grad = sum((s * g for s, g in zip(shares, grads, strict=True)), np.zeros(self.size))
        return self.penalised(value, grad, coef)

    def _ends(self, coef: FloatArray) -> list[EndPartial]:
        """The tilted sums of each end, means included."""
        return self._sweep.run(coef)

    def _curved_ends(self, coef: FloatArray, exact: bool) -> list[EndPartial]:
        """The same with second moments, or estimates of them from some of the rows."""
        enough = max(_HESSIAN_ROWS, _HESSIAN_ROWS_PER_FEATURE * self.size)
        if not exact and 3 * enough < self.source.n_rows and len(self.tilts) == 1:
            return self._sweep.sampled(coef, enough)
        return self._sweep.run(coef, order=2)

    def hessian(self, coef: FloatArray, *, exact: bool = True) -> FloatArray:
        ends, tilts = self._curved_ends(coef, exact), self.tilts
        _, shares = self._combine(
            [self._end_value(end, t) for end, t in zip(ends, tilts, strict=True)]
        )
        hessian = np.zeros((self.size, self.size))
        grads = []
        for share, (pos, neg), (of_pos, of_neg) in zip(shares, ends, tilts, strict=True):
            hessian += share * (abs(of_pos) * pos.covariance + abs(of_neg) * neg.covariance)
            grads.append(neg.mean - pos.mean)
        if len(ends) == 2:  # (1/p) log(e^{pA} + balance e^{pB}) adds p times a variance
            apart = grads[0] - grads[1]
            hessian += self._p * shares[0] * shares[1] * np.outer(apart, apart)
        hessian[np.diag_indices(self.size)] += self.penalty
        return hessian

    def _end_value(self, end: EndPartial, tilts: tuple[float, float]) -> float:
        return sum(
            (tilted.log_mass - log_total) / abs(tilt)
            for tilted, log_total, tilt in zip(end, self.log_totals, tilts, strict=True)
        )

    def _combine(self, values: list[float]) -> tuple[float, list[float]]:
        """F and the share of each end in it."""
        if len(values) == 1:
            return values[0], [1.0]
        top = self._p * values[0] + float(np.log(self.task.top))
        bottom = self._p * values[1] + float(np.log(self.task.balance))
        total = float(np.logaddexp(top, bottom))
        return total / self._p, [float(np.exp(top - total)), float(np.exp(bottom - total))]


def linear_problem(source: RowBlocks, task: Task) -> LinearProblem:
    """Return the problem that reads X the fewest times."""
    from toprank.objective.max_price import MaxProblem  # it builds on this module

    kinds = (SweptProblem, MaxProblem)
    return next((kind for kind in kinds if kind.supports(source, task)), ScoredProblem)(
        source, task
    )
