"""Every (p, alpha) of a grid on the same rows, for about the price of a few fits.

A grid is first solved on all rows: the path from each p and alpha to the next is walked on a
sample of them, where a fit is cheap, every solution the start of its neighbour. Then all settings
step together on all rows. Each step reads X once for the whole grid; its direction comes from
the Hessian on the sample, which the gradients seen since then put right (BFGS). The grid of a
fold starts from the solutions on all rows and from what has been learned of their Hessians.

What has not settled after a few steps is left to the solver of a single fit, from where it
stands, and so is every objective that `ManySwept` does not cover.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.blocks.design import design_of
from toprank.objective import LabelledData, ManySwept, TwoClassProblem, problem_of
from toprank.rankers.base import DEFAULT_ROUNDS, LinearRanker
from toprank.solvers import SOLVERS, minimise

#: Steps that the grid takes together, at the most.
_STEPS = 30
_SUFFICIENT_DECREASE = 1e-4


@dataclass(frozen=True)
class GridFit:
    """Coefficients of every setting of a grid, in the units that the source reads X in.

    Attributes
    ----------
    coefs : list of arrays
        One per setting; that of a logistic baseline ends with the intercept.
    inverses : list of arrays or None
        What is known of the inverse Hessians there.
    data : LabelledData
        The rows that were fitted.
    """

    coefs: list[FloatArray]
    inverses: list[FloatArray | None]
    data: LabelledData

    def scores(self, X: Any) -> FloatArray:
        """Return the scores of other rows, one line per setting, from one read of them."""
        design = design_of(X, self.data.units)
        coefs = np.array([coef[: design.n_features] for coef in self.coefs])
        scores = np.empty((len(coefs), design.n_rows))
        for rows, tile in design.tiles():
            scores[:, rows] = tile.scores(coefs)
        return scores


def fit_grid(
    templates: Sequence[LinearRanker],
    width: int,
    X: Any,
    positive: NDArray[np.bool_],
    weight: FloatArray | None,
    near: GridFit | None = None,
) -> GridFit:
    """Fit every template of a grid to the same rows.

    Parameters
    ----------
    templates : sequence of LinearRanker
        Unfitted rankers, line by line: one p per line, with `width` positive alphas, descending.
    width : int
        Number of settings in a line.
    X : ndarray or CSR matrix of shape (n, d)
        Rows, checked already.
    positive : array of bool
        Which rows are positive.
    weight : array, optional
        Repetition counts.
    near : GridFit, optional
        The same grid fitted to most of the same rows.
    """
    like = None if near is None else near.data
    tasks = [template._task() for template in templates]
    data = LabelledData.of_arrays(
        X, positive, weight, intercepts=max(task.intercepts for task in tasks), like=like
    )
    problems = [problem_of(data, task) for task in tasks]
    with data.source.start_threads(), np.errstate(over="ignore", under="ignore", invalid="ignore"):
        coefs, inverses = _solve_grid(templates, width, problems, near)
    return GridFit(coefs, inverses, data)


def _solve_grid(
    templates: Sequence[LinearRanker],
    width: int,
    problems: Sequence[TwoClassProblem],
    near: GridFit | None,
) -> tuple[list[FloatArray], list[FloatArray | None]]:
    """Solve the problems of a grid, or one that has nearly been solved."""
    none_settled = np.zeros(len(problems), dtype=bool)
    if near is None:
        samples = _samples(problems)
        coefs = [
            template._start(problem)[0]
            for template, problem in zip(templates, problems, strict=True)
        ]
        _walk_path(templates, width, samples, coefs, none_settled)
        if samples is problems:
            return coefs, [None] * len(problems)
        inverses: list[FloatArray | None] = [None] * len(problems)
    else:
        samples, coefs, inverses = problems, list(near.coefs), list(near.inverses)
    tried, settled = _step_together(templates, problems, samples, coefs, inverses)
    for i in map(int, np.flatnonzero(~tried)):
        coefs[i] = _single(templates[i], problems[i], coefs[i], warm=True)
    _walk_path(templates, width, problems, coefs, settled | ~tried)
    return coefs, inverses


def _samples(problems: Sequence[TwoClassProblem]) -> Sequence[TwoClassProblem]:
    """The problems on a sample of the rows; the problems themselves if there are few rows."""
    sample = problems[0].coarse()
    if sample is None:
        return problems
    return [problem.on_sample(sample.data) for problem in problems]


def _walk_path(
    templates: Sequence[LinearRanker],
    width: int,
    problems: Sequence[TwoClassProblem],
    coefs: list[FloatArray],
    settled: NDArray[np.bool_],
) -> None:
    """Solve what is not settled, one after the other, in place.

    Each starts from the best of what stands there and the solutions of its two neighbours, of
    the larger alpha and of the smaller p.
    """
    for i in map(int, np.flatnonzero(~settled)):
        starts = [coefs[i]]
        starts += [coefs[i - 1]] if i % width else []
        starts += [coefs[i - width]] if i >= width else []
        values = [problems[i].value(start) for start in starts] if len(starts) > 1 else [0]
        best = starts[int(np.nanargmin(np.where(np.isfinite(values), values, np.inf)))]
        coefs[i] = _single(templates[i], problems[i], best, warm=i > 0 or bool(np.any(best)))


def _single(
    template: LinearRanker, problem: TwoClassProblem, start: FloatArray, warm: bool
) -> FloatArray:
    solver = template._solver_for(problem)
    rounds = template.max_iter or DEFAULT_ROUNDS[solver]
    return minimise(
        problem, start, SOLVERS[solver], max_iter=rounds, tol=template.tol, warm=warm
    ).coef


def _step_together(
    templates: Sequence[LinearRanker],
    problems: Sequence[TwoClassProblem],
    samples: Sequence[TwoClassProblem],
    coefs: list[FloatArray],
    inverses: list[FloatArray | None],
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Move coefficients and inverses, in place; say which problems were tried, and are solved."""
    tried, settled = np.zeros((2, len(problems)), dtype=bool)
    covered = [
        i
        for i, (template, problem) in enumerate(zip(templates, problems, strict=True))
        if ManySwept.supports(problem) and template._solver_for(problem) == "newton"
    ]
    if not covered:
        return tried, settled
    known = [
        inverses[i] if inverses[i] is not None else _invert_hessian(samples[i].hessian(coefs[i]))
        for i in covered
    ]
    together = _Together([problems[i] for i in covered], np.array(known), templates[0].tol)
    stepped, done = together.run(np.array([coefs[i] for i in covered]))
    tried[covered], settled[covered] = True, done
    for i, coef, inverse in zip(covered, stepped, together.inverses, strict=True):
        coefs[i], inverses[i] = coef, inverse
    return tried, settled


class _Together:
    """Quasi-Newton steps of many settings, one read of X per step.

    ``inverses``, one per setting, are put right in place by the gradients that are seen.
    """

    def __init__(self, problems: Sequence[Any], inverses: FloatArray, tol: float):
        self.problems = problems
        self.inverses = inverses
        self.tol = tol

    def run(self, starts: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return the coefficients, and which of them satisfy the tolerance."""
        everyone = np.arange(len(self.problems))
        self.coefs = starts
        self.values, self.grads = self._evaluate(everyone, starts)
        steps = -np.einsum("ijk,ik->ij", self.inverses, self.grads)
        for _ in range(_STEPS):
            active = np.flatnonzero(self._residual() > self.tol)
            if len(active) == 0:
                break
            trials = self.coefs[active] + steps[active]
            self._accept(active, steps, trials, *self._evaluate(active, trials))
        return self.coefs, self._residual() <= self.tol

    def _evaluate(
        self, active: NDArray[np.intp], coefs: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        return ManySwept([self.problems[i] for i in active]).value_grad(coefs)

    def _residual(self) -> FloatArray:
        residual = np.max(np.abs(self.grads), axis=1)
        return np.asarray(np.where(np.isfinite(residual), residual, np.inf))

    def _accept(
        self,
        active: NDArray[np.intp],
        steps: FloatArray,
        trials: FloatArray,
        values: FloatArray,
        grads: FloatArray,
    ) -> None:
        """Move where the objective fell enough; elsewhere try half the step next time."""
        for i, coef, value, grad in zip(active, trials, values, grads, strict=True):
            slope = float(steps[i] @ self.grads[i])
            rounding = 1e-15 * max(1.0, abs(self.values[i]))
            fell = value <= self.values[i] + _SUFFICIENT_DECREASE * slope + rounding
            if not (fell and np.all(np.isfinite(grad))):
                steps[i] *= 0.5
                continue
            _bfgs(self.inverses[i], steps[i], grad - self.grads[i])
            self.coefs[i], self.values[i], self.grads[i] = coef, value, grad
            steps[i] = -self.inverses[i] @ grad


def _invert_hessian(hessian: FloatArray) -> FloatArray:
    """Inverse of a Hessian in units of unit diagonal, its small eigenvalues raised."""
    diagonal = np.diag(hessian)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(hessian * np.outer(scale, scale))
    floor = np.maximum(values, 1e-9 * max(1.0, float(values[-1])))
    return np.asarray(np.outer(scale, scale) * ((vectors / floor) @ vectors.T))


def _bfgs(inverse: FloatArray, step: FloatArray, change: FloatArray) -> None:
    """Make an inverse Hessian, in place, explain the change of the gradient along a step."""
    curvature = float(step @ change)
    if not curvature > 0:
        return
    bent = inverse @ change
    scale = (1.0 + float(change @ bent) / curvature) / curvature
    inverse += scale * np.outer(step, step)
    inverse -= (np.outer(step, bent) + np.outer(bent, step)) / curvature
