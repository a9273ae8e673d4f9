"""The path of smooth problems that leads to one with corners.

An objective that is not smooth (hinge, max price) is approached from below: each problem on the
path is smooth, lies under the objective F and starts where the last one ended. With F_s the smooth
one and alpha > 0,

    F(coef) - min F  <=  [F(coef) - F_s(coef)] + |grad F_s|^2 / (2 alpha)

is a certificate, and the path ends when it is small enough. For the max price F - F_s is the
paper's limit p -> inf with gap log(K)/p - [LSE(p f)/p - max f]. There the weights of the outer rows
in F_s bound the minimum from below more sharply (`Problem.bound_by`). Where rows are wide, so that
a level takes dozens of passes, or many and nothing is to be learned from the highest, the best of
these bounds is kept, and the path is left for the point it leads to once that is known to be close.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.solvers.bounded import after_gentler_price
from toprank.solvers.lbfgs import lbfgs
from toprank.solvers.newton import newton
from toprank.solvers.result import SEPARABLE, Callback, Result
from toprank.solvers.smooth import (
    Minimiser,
    is_boosting,
    looks_ahead,
    solve_smooth,
    takes_hessians,
)

if TYPE_CHECKING:
    from toprank.solvers.result import Problem

#: The smooth problems' levels shrink by this factor, so many times.
_FACTOR = 0.25
_LEVELS = 13
#: The least share of the coefficients of a level that stands for those of the limit.
_SHORTEST = 1 / 32
#: After so few iterations a level is left out.
_EASY = 3
#: Levels among which a fixed number of coordinate rounds is shared out.
_ROUND_LEVELS = (1 / 8, 1 / 64, 1 / 512, 1 / 4096)
#: The certified gap that ends the path, relative to max(1, |F|), and the iterations after it.
_GAP = 1e-4
_POLISH = 200
#: Newton's method gains digits at the price of a gradient: so much less of a gap is left to them.
_NEWTON_SHARE = 0.05


def narrow(
    problem: Any,
    smoothed: Callable[[float], Any],
    coef: FloatArray,
    minimiser: Minimiser,
    *,
    max_iter: int,
    tol: float,
    callback: Callback | None,
    warm: bool,
) -> Result:
    """Follow the smooth problems down until the certificate is small enough."""
    history: list[dict[str, object]] = []
    best: Result | None = None
    levels, rounds = _path(problem, minimiser, max_iter)
    # the corners of a loss are walked exactly from the first level on, those of a maximum are not
    steep = problem.first_level < 1.0 and not is_boosting(minimiser)
    ladder = _Ladder(problem, tol, not steep, _NEWTON_SHARE if minimiser is newton else 1.0)
    passed = [(0.0, np.zeros_like(coef))] if steep else []
    easy, slow, bound, before = False, False, -np.inf, None
    for level in levels:
        if easy:  # then every other level will do
            easy = False
            continue
        budget = min(rounds, max_iter - len(history))
        if budget <= 0:
            break
        smooth, inner = smoothed(level), ladder.tolerance
        settings: dict[str, Any] = {"max_iter": budget, "tol": inner, "callback": callback}
        led = len(passed) > 1 and not is_boosting(minimiser)
        look = before is not None and (looks_ahead(smooth, minimiser) or slow)
        known = {"hessian": smooth.hessian_ahead(before, coef)} if look else {}
        if led:
            coef = _look_ahead(smooth, level, passed)
        solver = after_gentler_price(minimiser) if before is not None else minimiser
        result = solve_smooth(smooth, coef, solver, warm=warm, **settings, **known)
        before, taken = smooth, len(result.history)
        # a level that takes longer than a Hessian is worth one
        slow = takes_hessians(smooth, minimiser) and taken > smooth.hessian_repaid_by
        result = _certify(problem, result)
        if _leaves_early(problem, result, minimiser):
            bound = max(bound, problem.bound_by(smooth, result.coef))
            result.gap = min(result.gap, result.value - bound)
        coef, warm = result.coef, True
        passed.append((level, coef))
        ladder.come_down(result.above)
        easy = led and len(result.history) <= _EASY and level > levels[-2]
        history += result.history
        close = _is_close(problem, result, tol)
        if not close and bound > -np.inf:
            ahead = _end_of_path(problem, result, passed, bound, tol)
            if ahead is not None:
                best, close = ahead, True
                break
        if close and inner > tol and not is_boosting(minimiser):
            polished = minimiser(smooth, coef, max_iter=_POLISH, tol=tol, warm=True, **known)
            result = _certify(problem, polished, bound)
            history += result.history
        best = result if close else _better(best, result)
        if close or result.message == SEPARABLE:
            break
    return _close_result(best, history, close)


class _Ladder:
    """How exactly the problem of each level is solved."""

    def __init__(self, problem: Problem, tol: float, exact: bool, share: float):
        # at the end a fortieth of the gap may come from the gradient, shared by all its entries
        self.tolerance = self.last = max(tol, _share_of_gap(problem, 0.025 * share * _GAP))
        self.problem = problem
        self.exact = exact
        self.share = share
        self.come_down(max(1.0, problem.first_level))

    def come_down(self, above: float) -> None:
        """Go to the next level, whose objective is a share of that much above its smooth one.

        A minimum on the way need not be known better than it differs from the next; its weights
        tell the next one's Hessian, and want some more.
        """
        if not self.exact:
            gap = self.share * _FACTOR**2 * above
            self.tolerance = max(self.last, _share_of_gap(self.problem, gap))


def _share_of_gap(problem: Problem, gap: float) -> float:
    """The entries of a gradient, all alike, that certify a gap."""
    return float(np.sqrt(2.0 * max(gap, 0.0) * problem.alpha / problem.size))


def _look_ahead(smooth: Any, level: float, passed: list[tuple[float, FloatArray]]) -> FloatArray:
    """Return the point where the line through the last two minima leads, if it is the better start.

    In the level the minima lie nearly on a line; where a maximum leaves nothing to learn, they
    shrink towards zero in proportion to it, so that zero at level zero is the first of them.
    """
    ahead, coef = _line_through(passed[-2:], level), passed[-1][1]
    here = smooth.value_grad(coef)[0]
    return ahead if smooth.value_grad(ahead)[0] < here else coef


def _leaves_early(problem: Problem, result: Result, minimiser: Minimiser) -> bool:
    """Whether a bound may end the path: levels take long, or there is nothing left to learn.

    Newton's method takes few steps per level, and ends at a minimum that is known more exactly.
    """
    if minimiser is newton and problem.has_sample:
        return result.value >= problem.value(np.zeros_like(result.coef))
    return minimiser is lbfgs


def _end_of_path(
    problem: Problem,
    result: Result,
    passed: list[tuple[float, FloatArray]],
    bound: float,
    tol: float,
) -> Result | None:
    """Return the point where the path leads, if it is known to be close to the minimum already.

    A lower bound comes nearer to the minimum than the minima of the smooth problems do. Where
    they fall below what zero coefficients reach, the line through the last two of them is
    followed to level zero. Where they do not, there is nothing to learn at the limit, and they
    shrink towards zero: the last one is shortened, which keeps its ranking.
    """
    zero = problem.value(np.zeros_like(result.coef))
    target = _gap_target(problem, result.value, tol)
    if result.value < zero:
        coef = _line_through(passed[-2:], 0.0) if len(passed) > 2 else result.coef
    else:  # by convexity the value of a share lies below the same share of the values
        share = (0.9 * target + bound - zero) / max(result.value - zero, np.finfo(float).tiny)
        coef = min(share, 1.0) * result.coef if share >= _SHORTEST else result.coef
    if coef is result.coef:
        return None
    value = problem.value(coef)
    learned = result.value >= zero or value < zero - target
    if not (learned and value - bound <= target):
        return None
    return replace(result, coef=coef, value=value, gap=value - bound)


def _line_through(points: list[tuple[float, FloatArray]], level: float) -> FloatArray:
    """The point of a level on the line through two others."""
    (before, older), (last, coef) = points
    ahead: FloatArray = coef + (coef - older) * ((level - last) / (last - before))
    return ahead


def _certify(problem: Problem, result: Result, bound: float = -np.inf) -> Result:
    """Turn a result for a smooth problem into one for the problem above it, of a known bound."""
    value = problem.value(result.coef)
    result.above = value - result.value
    result.gap, result.value = min(result.above + result.gap, value - bound), value
    return result


def _better(best: Result | None, result: Result) -> Result:
    """The smaller certified gap; without a penalty every gap is infinite, and the value decides."""
    if best is None or (result.gap, result.value) < (best.gap, best.value):
        return result
    return best


def _is_close(problem: Problem, result: Result, tol: float) -> bool:
    """Whether the gap is small enough; without a penalty, whether each smooth problem is solved."""
    target = _gap_target(problem, result.value, tol)
    return result.gap <= target or (result.converged and result.above <= target)


def _gap_target(problem: Problem, value: float, tol: float) -> float:
    """The gap at which the path ends."""
    return max(_GAP, 100.0 * tol) * max(problem.scale, abs(value))


def _path(problem: Problem, minimiser: Minimiser, max_iter: int) -> tuple[list[float], int]:
    """The levels to pass through, and the most iterations to spend on each."""
    if is_boosting(minimiser):  # a fixed number of rounds, shared out
        return list(_ROUND_LEVELS), max(1, max_iter // len(_ROUND_LEVELS))
    levels = [_FACTOR**k for k in range(_LEVELS)]
    return [level for level in levels if level <= problem.first_level], max_iter


def _close_result(result: Result | None, history: list[dict[str, object]], close: bool) -> Result:
    assert result is not None  # there is a level
    result.history, result.n_iter = history, len(history)
    if result.message != SEPARABLE:
        result.converged = close
        result.message = "" if close else f"the certified gap is still {result.gap:.2g}"
    return result
