"""Prices that are not convex: where they bend, and the starts from which a fit tries its luck.

With a convex, non-decreasing price the objective is convex and one start finds its minimum. A
price that saturates, or falls (Rudin 2009, Section 9.3), leaves local minima: then nothing is
certified, and the lowest of several starts is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from toprank._numerics import FloatArray
from toprank.objective import PushObjective, Task, TwoClassProblem, problem_of
from toprank.objective.pairwise import PairProblem
from toprank.prices import Identity, Power, Price, bend_in_price
from toprank.solvers import Result

#: Random starts beside zero and those of convex prices.
_RANDOM_STARTS = 4
#: How far beyond the heights met a price is looked at.
_BELOW, _BEYOND = 1e-3, 10.0


def bend_of(problem: TwoClassProblem | PairProblem, coef: FloatArray) -> str | None:
    """Say where the price of a problem is not convex on the heights met; None if it is.

    Looked at are heights from a little below the lowest to well above the highest of the scores
    given and of equal scores, where a fit starts. A price that says it is convex is believed.
    """
    task = problem.task
    of_pairs = isinstance(problem, PairProblem)
    # labels that lie in blocks elsewhere are not gathered for a price that is known to be convex
    if not (of_pairs or isinstance(task, Task)) or task.price.convex:
        return None
    objective: PushObjective = (
        problem.objective if isinstance(problem, PairProblem) else task.objective(*problem.labels)
    )
    scores = problem.scores(coef)
    met = np.concatenate([objective.log_heights(scores), objective.log_heights(0.0 * scores)])
    met = met[np.isfinite(met)]
    low, high = np.exp(np.clip([met.min(), met.max()], -600.0, 600.0))
    in_log = task.loss.factorises
    found = bend_in_price(task.price, _BELOW * low, _BEYOND * high, in_log=in_log)
    return "it was declared not convex" if found is None and task.price.convex is False else found


def lowest_of_starts(
    problem: TwoClassProblem | PairProblem,
    first: Result,
    minimise_from: Callable[[TwoClassProblem | PairProblem, FloatArray], Result],
) -> Result:
    """Return the lowest result of several starts, certified by nothing."""
    best = first
    for start in _starts(problem, first.coef, minimise_from):
        result = minimise_from(problem, start)
        if result.value < best.value:
            best = result
    best.gap = np.inf
    return best


def _starts(
    problem: TwoClassProblem | PairProblem,
    found: FloatArray,
    minimise_from: Callable[[TwoClassProblem | PairProblem, FloatArray], Result],
) -> Iterator[FloatArray]:
    """Yield zero, the minimisers of convex prices with the same loss, and random directions."""
    yield np.zeros(problem.size)
    length = float(np.linalg.norm(found))
    for price in (Identity(), Power(4.0), Power(16.0)):
        gentle = _with_price(problem, price.with_form(root=not problem.task.loss.factorises))
        start = minimise_from(gentle, np.zeros(problem.size)).coef
        length = max(length, float(np.linalg.norm(start)))
        yield start
    rng = np.random.default_rng(0)
    for _ in range(_RANDOM_STARTS):
        direction = rng.standard_normal(problem.size)
        yield direction * length * rng.uniform(0.3, 3.0) / np.linalg.norm(direction)


def _with_price(
    problem: TwoClassProblem | PairProblem, price: Price
) -> TwoClassProblem | PairProblem:
    if isinstance(problem, PairProblem):
        return problem.with_task(problem.task.with_price(price))
    return problem_of(problem.data, replace(problem.task, price=price))


def bend_warning(bend: str) -> str:
    """Say what follows from a price that is not convex."""
    return (
        f"The price is not convex: {bend}. There may be lower minima than the one found, the "
        "lowest of several starts, so that optimality_gap_ is infinite. Use a convex price to be "
        "sure of the minimum; if yours is convex, say so with toprank.prices.from_callable(..., "
        "convex=True)."
    )
