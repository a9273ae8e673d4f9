"""One read of X for many settings: the sweep with several coefficients and tilts at once.

A grid of p and alpha asks for value and gradient at as many coefficients. Their scores are one
product of matrices, and the tilted sums of each block another, so that the whole grid costs
little more than reading X once, with the same partial sums (top, mass, moment) as
`toprank.objective.sweep` and the same merge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toprank._numerics import FloatArray, log_of
from toprank.objective.linear import SweptProblem

#: e to this is nothing beside one, and far from the subnormal numbers, which are slow.
_NOTHING = -600.0


@dataclass
class _ManyTilted:
    """e^{tilt f} over the rows of one class for each setting: tops, masses and moments."""

    top: FloatArray
    mass: FloatArray
    moment: FloatArray

    @classmethod
    def empty(cls, n_settings: int, n_features: int) -> _ManyTilted:
        top = np.full(n_settings, -np.inf)
        return cls(top, np.zeros(n_settings), np.zeros((n_settings, n_features)))

    def raise_to(self, top: FloatArray) -> FloatArray:
        """Express masses and moments relative to higher tops; return the tops as finite numbers."""
        higher = np.maximum(self.top, top)
        floor = np.where(np.isfinite(higher), higher, 0.0)
        keep = np.exp(np.where(np.isfinite(self.top), self.top - floor, -np.inf))
        self.top = higher
        self.mass *= keep
        self.moment *= keep[:, None]
        return floor

    def add(self, block: FloatArray, exponents: FloatArray) -> None:
        """Add the rows of a block; exponents has one line a setting, and is overwritten."""
        floor = self.raise_to(np.max(exponents, axis=1, initial=-np.inf))
        exponents -= floor[:, None]
        np.maximum(exponents, _NOTHING, out=exponents)
        weight = np.exp(exponents, out=exponents)
        self.mass += np.sum(weight, axis=1)
        self.moment += weight @ block

    def merge(self, other: _ManyTilted) -> _ManyTilted:
        self.raise_to(other.top)
        other.raise_to(self.top)
        self.mass += other.mass
        self.moment += other.moment
        return self


Partial = tuple[_ManyTilted, _ManyTilted]


class ManySwept:
    """Problems that differ in p and alpha only, evaluated together.

    Parameters
    ----------
    problems : sequence of SweptProblem
        Of the same rows, at the top of the list.
    """

    def __init__(self, problems: Sequence[SweptProblem]):
        self.problems = problems
        first = problems[0]
        self.source = first.source
        self.positive = first.task.positive
        weight = first.task.weight
        self.log_weight = None if weight is None else log_of(weight)
        self.tilts = np.array([problem.tilts[0] for problem in problems])

    @staticmethod
    def supports(problem: object) -> bool:
        """Whether a problem can be evaluated together with others."""
        return isinstance(problem, SweptProblem) and problem.task.end == "top"

    def value_grad(self, coefs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the penalised objective and its gradient, one line a problem."""

        def local(start: int, stop: int) -> Partial:
            classes = (_ManyTilted.empty(*coefs.shape), _ManyTilted.empty(*coefs.shape))
            for rows, block in self.source.blocks(start, stop):
                self._add(classes, rows, block, coefs)
            return classes

        pos, neg = self.source.map_reduce(local, _merge)
        log_totals = np.array([problem.log_totals for problem in self.problems])
        masses = np.log([pos.mass, neg.mass]) + np.array([pos.top, neg.top])
        values = np.sum((masses.T - log_totals) / np.abs(self.tilts), axis=1)
        grads = neg.moment / neg.mass[:, None] - pos.moment / pos.mass[:, None]
        for i, problem in enumerate(self.problems):
            values[i], grads[i] = problem.penalised(float(values[i]), grads[i], coefs[i])
        return values, grads

    def _add(self, classes: Partial, rows: slice, block: FloatArray, coefs: FloatArray) -> None:
        positive = self.positive[rows]
        for column, members in enumerate((positive, ~positive)):
            inside = np.flatnonzero(members)
            if len(inside) == 0:
                continue
            part = block if len(inside) == len(block) else block.take(inside, axis=0)
            exponents = coefs @ part.T
            exponents *= self.tilts[:, column, None]
            if self.log_weight is not None:
                exponents += self.log_weight[rows][inside]
            classes[column].add(part, exponents)


def _merge(left: Partial, right: Partial) -> Partial:
    return left[0].merge(right[0]), left[1].merge(right[1])
