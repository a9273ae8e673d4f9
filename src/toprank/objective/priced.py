"""Prices that are not powers, with the exponential loss, in two passes over the rows.

The exponential loss factorises: with s = 1 where negatives are priced and s = -1 where
positives are,

    log S_o = s f_o + C,    C = log sum_i w_i e^{-s f_i} over the inner rows.

The first pass gives C with the mean m and the covariance V of its softmax; the second sums
value, slope g' and bend g'' of the price in log S over the outer rows. With u_o = s (x_o - m)

    gradient = sum_o g'_o u_o,    Hessian = sum_o g''_o u_o u_o' + (sum_o g'_o) V.

The exponential price is minimised as log sum w e^S: its sums are kept relative to their
largest term, and merge as an online softmax does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toprank._lazy import cached_property
from toprank._numerics import FloatArray, log_of
from toprank.blocks.design import Tile
from toprank.blocks.source import Block
from toprank.objective.labelled import View, open_block
from toprank.objective.problem import HESSIAN_ROWS_ENOUGH, TwoClassProblem, gradient_in_scores
from toprank.objective.risk import PushObjective, Task
from toprank.objective.sums import RowSums, Tilted
from toprank.objective.sweeps import Evaluate
from toprank.prices import Exponential, Price


@dataclass(frozen=True)
class End:
    """One end: whether positives are priced, and the log weight of the end."""

    prices_positives: bool
    log_weight: float = 0.0

    @property
    def sign(self) -> float:
        return -1.0 if self.prices_positives else 1.0


def ends_of(task: Task) -> tuple[End, ...]:
    """Return the ends that a task prices, the top first."""
    at_top = task.price.outer == "winners"
    if task.end != "both":
        return (End(at_top if task.end == "top" else not at_top),)
    weights = log_of(np.array([task.top, task.balance]))
    return End(at_top, float(weights[0])), End(not at_top, float(weights[1]))


@dataclass(frozen=True)
class Priced:
    """Prices summed over the outer rows; the state is (coef, C of each end)."""

    view: View
    price: Price
    ends: tuple[End, ...]
    order: int = 1

    def local(self, block: Block, state: tuple[FloatArray, list[float]]) -> list[RowSums]:
        coef, inner = state
        opened = open_block(block, self.view)
        total = [self._nothing(opened.design.n_features) for _ in self.ends]
        positive, logs = opened.positive, opened.log_weight
        for rows, tile, scores in opened.scored_tiles(coef):
            log_weight = np.zeros_like(scores) if logs is None else logs[rows]
            for place, (end, c) in enumerate(zip(self.ends, inner, strict=True)):
                log_s = end.sign * scores + c
                sums = self._end(tile, end, log_s, positive[rows], log_weight + end.log_weight)
                total[place].merge(sums)
        return total

    def _nothing(self, n_features: int) -> RowSums:
        sums = RowSums.empty(n_features, self.order)
        if isinstance(self.price, Exponential):
            sums.top = -np.inf
        return sums

    def _end(
        self,
        tile: Tile,
        end: End,
        log_s: FloatArray,
        positive: NDArray[np.bool_],
        log_weight: FloatArray,
    ) -> RowSums:
        outer = positive == end.prices_positives
        slope, bend = np.zeros_like(log_s), np.zeros_like(log_s)
        with np.errstate(over="ignore", invalid="ignore"):
            value, slope[outer], bend[outer], top = _prices(
                self.price, log_s[outer], log_weight[outer], self.order
            )
            return RowSums.of(tile, value, slope, bend if self.order == 2 else None, top)

    def merge(self, left: list[RowSums], right: list[RowSums]) -> list[RowSums]:
        return [a.merge(b) for a, b in zip(left, right, strict=True)]


def _prices(
    price: Price, log_s: FloatArray, log_w: FloatArray, order: int
) -> tuple[float, FloatArray, FloatArray, float]:
    """Return the sum of g, and g' and g'' in log S of each row, over e^top."""
    if isinstance(price, Exponential):
        heights = np.exp(log_s)
        exponents = np.where(log_w > -np.inf, log_w + heights, -np.inf)
        top = float(np.max(exponents, initial=-np.inf))
        if not np.isfinite(top):  # no rows, or a height beyond every float
            none = np.zeros_like(log_w)
            return (0.0 if top < 0 else np.inf), none, none, top
        share = np.exp(exponents - top)
        lift = np.where(share > 0, share * heights, 0.0)
        return float(np.sum(share)), lift, np.where(share > 0, lift * (1.0 + heights), 0.0), top
    value, slope = price.value_slope(log_s, log_w)
    bend = price.slope_change(log_s, log_w)(np.ones_like(log_s)) if order == 2 else slope
    return value, slope, bend, 0.0


class PricedProblem(TwoClassProblem):
    """Exponential loss with the log1p price, the exponential price or a price of your own."""

    @cached_property
    def ends(self) -> tuple[End, ...]:
        return ends_of(self.task)

    @cached_property
    def scale(self) -> float:  # type: ignore[override]
        """The size of a natural gradient: the sum of slopes where all scores are equal."""
        of_pos, of_neg = self.data.log_totals
        log_s, log_w = [], []
        for end in self.ends:
            inner, outer = (of_neg, of_pos) if end.prices_positives else (of_pos, of_neg)
            log_s.append(inner)
            log_w.append(outer + end.log_weight)
        value, slope = self.task.price.value_slope(np.array(log_s), np.array(log_w))
        return float(np.sum(slope)) or max(1.0, value)

    @cached_property
    def _in_scores(self) -> PushObjective:
        objective: PushObjective = self.task.objective(*self.data.labels)
        return objective

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray]:
        if self.data.source.in_memory:  # the scores cost no memory to speak of, and no merging
            return self.add_penalty(*gradient_in_scores(self.data, self._in_scores, coef), coef)
        inner, sums = self._sums(coef, 1)
        value, factor = self._total(sums)
        if not np.isfinite(value):
            return self.add_penalty(np.inf, np.zeros(self.size), coef)
        grad = np.zeros(self.size)
        for part, of_inner, end in zip(sums, inner, self.ends, strict=True):
            grad += end.sign * (part.slope[:-1] - part.slope[-1] * of_inner.mean) * factor
        return self.add_penalty(value, grad, coef)

    def hessian(self, coef: FloatArray, *, exact: bool = True) -> FloatArray:
        coarse = None if exact or self.cheap_curvature else self.coarse()
        if coarse is not None:
            return coarse.hessian(coef, exact=coarse.n_rows <= HESSIAN_ROWS_ENOUGH)
        inner, sums = self._sums(coef, 2)
        value, factor = self._total(sums)
        hessian = np.zeros((self.size, self.size))
        slope = np.zeros(self.size)
        for part, of_inner, end in zip(sums, inner, self.ends, strict=True):
            if not np.isfinite(value) or part.bend is None or part.second is None:
                continue
            m, first, total = of_inner.mean, part.bend[:-1], part.bend[-1]
            cross = np.outer(first, m)
            hessian += factor * (part.second - cross - cross.T + total * np.outer(m, m))
            hessian += factor * part.slope[-1] * of_inner.covariance
            slope += end.sign * (part.slope[:-1] - part.slope[-1] * m) * factor
        if isinstance(self.task.price, Exponential):  # of a logarithm: less the square of its slope
            hessian -= np.outer(slope, slope)
        hessian[np.diag_indices(self.size)] += self.penalty
        return hessian

    def _sums(self, coef: FloatArray, order: int) -> tuple[list[Tilted], list[RowSums]]:
        """Both passes: the inner sums of each end, then the prices of its outer rows."""
        view = self.data.view

        def first_pass() -> object:
            return self.data.run(Evaluate(view, ((-1.0, 1.0),), order), coef)

        ((pos, neg),) = self._last.at(coef, order, first_pass).ends
        inner = [neg if end.prices_positives else pos for end in self.ends]
        second_pass = Priced(view, self.task.price, self.ends, order)
        return inner, self.data.run(second_pass, (coef, [float(part.log_mass) for part in inner]))

    def _total(self, sums: list[RowSums]) -> tuple[float, float]:
        """F, and what multiplies the sums in its gradient."""
        if not isinstance(self.task.price, Exponential):
            return float(sum(part.value for part in sums)), 1.0
        top = max(part.top for part in sums)
        if not np.isfinite(top):
            return np.inf, 0.0
        for part in sums:
            part.raise_to(top)
        mass = sum(part.value for part in sums)
        return top + float(np.log(mass)), 1.0 / mass
