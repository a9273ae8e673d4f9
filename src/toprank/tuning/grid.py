"""Every (p, alpha) of a grid on the same rows, for about the price of a few fits.

A grid is first solved on all rows, line by line of p, on a sample of them where there are many:
the first setting alone, the rest of its line from there, and each line after it from the solutions
of the line before, all alphas of a line together. One Hessian serves a line, with the penalty of
each setting. Where a sample was walked, all settings then step together on all rows. Each step of
`toprank.tuning.together` reads X once for all of them. The grid of a fold starts from the solutions
on all rows and from what has been learned of their Hessians.

What has not settled after a few steps is left to the solver of a single fit, from where it
stands, and so is every objective that cannot step together, or has too many coefficients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import TableLike
from toprank._numerics import FloatArray
from toprank.blocks.design import design_of
from toprank.objective import (
    LabelledData,
    ManySwept,
    PointwiseProblem,
    TwoClassProblem,
    problem_of,
)
from toprank.objective.turned import Turned
from toprank.rankers.base import LinearRanker
from toprank.rankers.minimiser import DEFAULT_ROUNDS
from toprank.solvers import SOLVERS, lbfgs, minimise
from toprank.solvers.result import Log
from toprank.solvers.separated import Minimum, along_penalties, curvature_of
from toprank.tuning.together import STEPS, InverseHessian, Together

#: Steps of a line from the line before it; what needs more has another Hessian.
_STEPS_OF_LINE = 20
#: Bytes that the inverse Hessians of all settings may take together.
_INVERSE_BYTES = 1 << 28

#: One per setting; None where none is known.
_Inverses = list[InverseHessian | None]


@dataclass(frozen=True)
class GridFit:
    """Coefficients of every setting of a grid, in the units that the source reads X in.

    Attributes
    ----------
    coefs : list of arrays
        One per setting; that of a logistic baseline ends with the intercept.
    inverses : list of InverseHessian or None
        What is known of the inverse Hessians there.
    data : LabelledData
        The rows that were fitted.
    turned : pair of Turned and GridFit, optional
        These rows in fewer columns, and the grid fitted to them, where that was done.
    """

    coefs: list[FloatArray]
    inverses: _Inverses
    data: LabelledData
    turned: tuple[Turned, GridFit] | None = None

    def scores(self, X: TableLike) -> FloatArray:
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
    X: TableLike,
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
    intercepts = max(template._task().intercepts for template in templates)
    data = LabelledData.of_arrays(X, positive, weight, intercepts=intercepts, like=like)
    return fit_grid_to(templates, width, data, near)


def fit_grid_to(
    templates: Sequence[LinearRanker],
    width: int,
    data: LabelledData,
    near: GridFit | None = None,
) -> GridFit:
    """Fit every template of a grid to rows that have been looked at, wherever they lie."""
    turned = _turned(templates, data, near)
    if turned is not None:
        inner = near.turned[1] if near is not None and near.turned is not None else None
        found = fit_grid_to(templates, width, turned.data, inner)
        coefs = [*turned.back(np.array(found.coefs))]
        return GridFit(coefs, [], data, (turned, found))
    problems = [problem_of(data, template._task()) for template in templates]
    with data.source.start_threads(), np.errstate(over="ignore", under="ignore", invalid="ignore"):
        coefs, inverses = _solve_grid(templates, width, problems, near)
    return GridFit(coefs, inverses, data)


def _turned(
    templates: Sequence[LinearRanker], data: LabelledData, near: GridFit | None
) -> Turned | None:
    """The rows in fewer columns, those of ``near`` where there is one; None if left as they are."""
    if any(template._single_columns for template in templates):
        return None
    if near is not None:
        return None if near.turned is None else near.turned[0].others(data)
    return Turned.of(data)


def _solve_grid(
    templates: Sequence[LinearRanker],
    width: int,
    problems: Sequence[TwoClassProblem],
    near: GridFit | None,
) -> tuple[list[FloatArray], _Inverses]:
    """Solve the problems of a grid, or one that has nearly been solved."""
    covered = _covered(templates, problems)
    if near is None:
        samples = _samples(problems)
        coefs, inverses = _walk_lines(templates, width, samples, covered)
        if samples is problems:
            return coefs, inverses
    else:
        coefs = list(near.coefs)
        inverses = [None if known is None else known.copy() for known in near.inverses]
    settled = np.zeros(len(problems), dtype=bool)
    places = np.flatnonzero(covered)
    settled[places] = _step_together(templates, problems, coefs, inverses, places)
    _walk_path(templates, width, problems, coefs, np.flatnonzero(~settled))
    return coefs, inverses


def _covered(
    templates: Sequence[LinearRanker], problems: Sequence[TwoClassProblem]
) -> NDArray[np.bool_]:
    """Which problems can step together with others."""
    room = _INVERSE_BYTES // (8 * len(problems))
    return np.array(
        [
            template.solver in ("auto", "newton")
            and problem.size**2 <= room
            and problem.has_curvature
            and (ManySwept.supports(problem) or isinstance(problem, PointwiseProblem))
            for template, problem in zip(templates, problems, strict=True)
        ]
    )


def _samples(problems: Sequence[TwoClassProblem]) -> Sequence[TwoClassProblem]:
    """The problems on a sample of the rows; the problems themselves if there are few rows."""
    sample = problems[0].coarse()
    if sample is None:
        return problems
    return [problem.on_sample(sample.data) for problem in problems]


def _walk_lines(
    templates: Sequence[LinearRanker],
    width: int,
    problems: Sequence[TwoClassProblem],
    covered: NDArray[np.bool_],
) -> tuple[list[FloatArray], _Inverses]:
    """Solve a grid of which nothing is known, each line from the solutions of the one before."""
    coefs = [
        template._start(problem)[0] for template, problem in zip(templates, problems, strict=True)
    ]
    inverses: _Inverses = [None] * len(problems)
    for first in range(0, len(problems), width):
        line = np.arange(first, min(first + width, len(problems)))
        together = line[covered[line]]
        if first == 0 and len(together) < len(line):
            _walk_path(templates, width, problems, coefs, line)
            continue
        if first == 0:
            _walk_path(templates, width, problems, coefs, line[:1])
        for i in line:
            coefs[i] = coefs[i - width if first else 0]
        settled = _step_line(templates, problems, coefs, inverses, together, width)
        left = np.setdiff1d(line, together[settled])
        _walk_path(templates, width, problems, coefs, left)
        for i in left[covered[left]]:  # what was known did not lead there, nor will it in a fold
            apart = problems[i].value(coefs[i]) < problems[i].apart_below
            known = None if apart else problems[i].hessian(coefs[i], exact=False)
            inverses[i] = None if known is None else InverseHessian.of(known)
    return coefs, inverses


def _step_line(
    templates: Sequence[LinearRanker],
    problems: Sequence[TwoClassProblem],
    coefs: list[FloatArray],
    inverses: _Inverses,
    line: NDArray[np.intp],
    width: int,
) -> NDArray[np.bool_]:
    """Step from the solutions of the line before; say which settings are settled.

    A setting whose gradient is within the tolerance at its neighbour's solution is certified there
    and not fitted again. Where all of a line are, they share the neighbours' Hessians too.
    """
    if len(line) == 0:
        return np.zeros(0, dtype=bool)
    start = np.array([coefs[i] for i in line])
    together = Together([problems[i] for i in line], start, templates[0].tol)
    if line[0] >= width and np.all(together.settled):
        for i in line:
            inverses[i] = inverses[i - width]
        if all(inverses[i] is not None for i in line):
            return together.settled
    _take_inverses(problems, coefs, inverses, line[~together.apart])
    return _run_together(together, coefs, inverses, line, _STEPS_OF_LINE)


def _take_inverses(
    problems: Sequence[TwoClassProblem],
    coefs: list[FloatArray],
    inverses: _Inverses,
    line: NDArray[np.intp],
) -> None:
    """Take the inverse Hessians of a line from one Hessian, with the penalty of each setting.

    A Hessian costs many gradients, and its part that comes from the rows changes slowly along a
    line: the first steps learn how.
    """
    if len(line) == 0:
        return
    middle = line[len(line) // 2]
    hessian = problems[middle].hessian(coefs[middle], exact=False)
    diagonal = hessian.diagonal() - problems[middle].penalty
    for i in line:
        own = hessian.copy()
        np.fill_diagonal(own, diagonal + problems[i].penalty)
        inverses[i] = InverseHessian.of(own)


def _walk_path(
    templates: Sequence[LinearRanker],
    width: int,
    problems: Sequence[TwoClassProblem],
    coefs: list[FloatArray],
    places: NDArray[np.intp],
) -> None:
    """Solve the problems at some places of the grid, one after the other, in place.

    Each starts from the best of what stands there, the solutions of its two neighbours, of the
    larger alpha and of the smaller p, and where these lead on.
    """
    for i in map(int, places):
        near = [i - 1] if i % width else []
        near += [i - width] if i >= width else []
        starts = [(i, coefs[i]), *((k, coefs[k]) for k in near)]
        starts += _ahead(problems, coefs, i, width)
        begun = bool(near) or bool(np.any(coefs[i]))
        values = [problems[i].value(start) for _, start in starts] if begun else [0]
        best = int(np.nanargmin(np.where(np.isfinite(values), values, np.inf)))
        k, start = starts[best]
        if begun and values[best] < problems[i].apart_below:
            step = width if i >= width else 1  # p changes less than alpha does
            passed = [
                Minimum(problems[k].alpha, problems[k].power, coefs[k])
                for k in (i - 2 * step, i - step)
                if k >= (0 if step == width else i - i % width)
            ]
            known = [start for _, start in starts]
            coefs[i] = _along(templates[i], problems[i], passed, known)
            continue
        warm = i > 0 or bool(np.any(start))
        coefs[i] = _single(templates[i], problems[i], start, (problems[k], coefs[k]), warm=warm)


def _ahead(
    problems: Sequence[TwoClassProblem], coefs: Sequence[FloatArray], i: int, width: int
) -> Iterator[tuple[int, FloatArray]]:
    """Yield where solutions before a place lead, each after the place that is nearest.

    Where the classes are told apart, a solution is nearly a part that 1/alpha stretches, and a part
    that depends on p.
    """
    above = i - width
    if above >= 0 and i % width:
        yield above, coefs[above] + (coefs[i - 1] - coefs[above - 1])
    if above >= width and np.isfinite(problems[i].power):
        before, last = (
            Minimum(problems[k].alpha, problems[k].power, coefs[k]) for k in (above - width, above)
        )
        ahead = last.along(before, problems[i].alpha, problems[i].power)
        if ahead is not None:
            yield above, ahead


def _along(
    template: LinearRanker,
    problem: TwoClassProblem,
    passed: list[Minimum],
    known: list[FloatArray],
) -> FloatArray:
    """Solve where the classes are told apart, on the way that leads on from neighbours' minima."""
    solver = template._solver_for(problem)
    found = along_penalties(
        problem,
        SOLVERS[solver],
        max_iter=template.max_iter or DEFAULT_ROUNDS[solver],
        tol=template.tol,
        log=Log(),
        passed=passed,
        known=known,
    )
    return found.coef


def _single(
    template: LinearRanker,
    problem: TwoClassProblem,
    start: FloatArray,
    near: tuple[TwoClassProblem, FloatArray],
    warm: bool,
) -> FloatArray:
    """Solve one problem from a start; ``near`` are a problem nearby and about its minimum."""
    solver = template._solver_for(problem)
    rounds = template.max_iter or DEFAULT_ROUNDS[solver]
    if solver == "lbfgs" and warm and problem.smooth:  # gradients have been tried
        known = curvature_of(problem, *near)
        return lbfgs(
            problem, start, max_iter=rounds, tol=template.tol, hessian_first=True, hessian=known
        ).coef
    return minimise(
        problem, start, SOLVERS[solver], max_iter=rounds, tol=template.tol, warm=warm
    ).coef


def _step_together(
    templates: Sequence[LinearRanker],
    problems: Sequence[TwoClassProblem],
    coefs: list[FloatArray],
    inverses: _Inverses,
    places: NDArray[np.intp],
) -> NDArray[np.bool_]:
    """Move coefficients and inverses at some places, in place; say which of them are settled."""
    if len(places) == 0:
        return np.zeros(0, dtype=bool)
    starts = np.array([coefs[i] for i in places])
    together = Together([problems[i] for i in places], starts, templates[0].tol)
    return _run_together(together, coefs, inverses, places, STEPS)


def _run_together(
    together: Together,
    coefs: list[FloatArray],
    inverses: _Inverses,
    places: NDArray[np.intp],
    most: int,
) -> NDArray[np.bool_]:
    """Take steps from where settings have been evaluated, and keep where they lead."""
    stepped, settled = together.run([inverses[i] for i in places], most)
    for i, coef in zip(places, stepped, strict=True):
        coefs[i] = coef
    return settled
