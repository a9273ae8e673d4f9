"""Newton's method for a smooth function of (coef, t) with t above every outer score.

Each step minimises the second-order model of G under those of the constraints t >= b_k that
matter, a small quadratic programme in its dual: the multipliers are the weights of the outer
rows, and they certify the result. Rows that a step would leave above t join the programme
(cutting planes); the model of the maximum is then exact, and the method converges as Newton's
does, in ten or twenty steps. TopPush's own solver climbs the same dual by gradients.

The dual is a problem of non-negative least squares. From SciPy 1.15 on ``scipy.optimize.nnls``
may return, without a word, a point that is not the minimum (scipy issue 25389). A point is the
minimum exactly where the residual stands at right angles to every column in use and at no acute
angle to any other (Karush, Kuhn and Tucker), so that the answer is checked, and a plain
active-set method stands in where it fails.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize

from toprank._numerics import FloatArray
from toprank.solvers.result import STUCK, Callback, Log, Problem, Result

#: A step is taken when it gains this share of what the model promises.
_SUFFICIENT = 0.1
#: Rounds of cutting planes for one model, and the share of the features that one round may add.
_ROUNDS = 30
_CUTS_PER_FEATURE = 0.5
_FEWEST_CUTS = 20
#: Rows beyond this multiple of the features that carry no weight leave the programme.
_KEPT_PER_FEATURE = 3
#: The shortest step that is tried.
_SHORTEST = 1e-10


class Peak(Protocol):
    """A point: coefficients, their scores, the value, t, and the pull of the inner rows on t."""

    @property
    def coef(self) -> FloatArray: ...

    @property
    def scores(self) -> FloatArray: ...

    @property
    def value(self) -> float: ...

    @property
    def top(self) -> float: ...

    @property
    def force(self) -> float: ...


class PeakedProblem(Problem, Protocol):
    """G(coef, t), t at least the highest outer score; points know value, t and weights."""

    @property
    def n_outer(self) -> int: ...

    def scores(self, coef: FloatArray) -> FloatArray: ...

    def outer_scores(self, scores: FloatArray) -> FloatArray: ...

    def outer_rows(self, which: NDArray[np.intp]) -> FloatArray: ...

    def peak(self, coef: FloatArray, scores: FloatArray) -> Peak: ...

    def slope(self, at: Peak) -> FloatArray: ...

    def bend(self, at: Peak) -> FloatArray: ...

    def gap(self, at: Peak, slope: FloatArray, which: NDArray[np.intp], u: FloatArray) -> float: ...

    def at_rounding(
        self, at: Peak, slope: FloatArray, which: NDArray[np.intp], u: FloatArray
    ) -> bool: ...


def newton_max(
    problem: PeakedProblem,
    start: FloatArray,
    *,
    max_iter: int = 1000,
    tol: float = 1e-6,
    callback: Callback | None = None,
    warm: bool = False,
) -> Result:
    """Minimise until the certified gap is at most tol, relative to max(1, F)."""
    log = Log(callback)
    at = problem.peak(start, problem.scores(start))
    cuts = _Cuts(problem, at)
    slope = problem.slope(at)
    gap = cuts.certify(at, slope)
    message = f"no convergence in {max_iter} Newton iterations"
    while gap > tol * max(1.0, at.value) and len(log.history) < max_iter:
        trial, lower = _step(problem, at, slope, cuts), at.value - gap
        if trial is not None:
            at, slope = trial, problem.slope(trial)
        gap = min(cuts.certify(at, slope), at.value - lower)
        if trial is None:  # the weights may be better all the same
            message = STUCK
            break
        log.add(at.coef, objective=at.value, gap=gap, rows=len(cuts.rows))
    done = gap <= tol * max(1.0, at.value) or cuts.at_rounding(at, slope)
    residual = cuts.residual(slope)
    message = "" if done else message
    return Result(at.coef, at.value, residual, len(log.history), done, message, log.history, gap)


def _step(problem: PeakedProblem, at: Peak, slope: FloatArray, cuts: _Cuts) -> Peak | None:
    """Return the next point, lower than this one; None if there is none."""
    hessian = problem.bend(at)
    if not (np.all(np.isfinite(hessian)) and np.all(np.isfinite(slope))):
        return None
    model = _Model(slope, hessian)
    for _ in range(_ROUNDS):
        try:
            step, promised = cuts.solve(model, at)
        except RuntimeError:  # non-negative least squares ran in circles
            return None
        if not promised < 0:
            return None
        along = problem.scores(step[:-1])
        trial = problem.peak(at.coef + step[:-1], at.scores + along)
        if trial.value <= at.value + _SUFFICIENT * promised:
            cuts.add(trial, trial.top)
            return trial
        if not cuts.add(trial, at.top + step[-1]):
            break
    share = 0.5  # the model of the maximum is exact, that of the loss is not
    while share > _SHORTEST:
        trial = problem.peak(at.coef + share * step[:-1], at.scores + share * along)
        if trial.value < at.value + _SUFFICIENT * share * promised:
            return trial
        share *= 0.5
    return None


class _Model:
    """The quadratic model of G: its slope, its Hessian's Cholesky factor."""

    def __init__(self, slope: FloatArray, hessian: FloatArray):
        diagonal = np.diag(hessian).copy()
        # far above every inner row G is flat in t: a trifle keeps the step finite
        diagonal[diagonal <= 0] = 1.0
        self.scale = 1.0 / np.sqrt(diagonal)
        scaled = hessian * np.outer(self.scale, self.scale)
        lift = 1e-14
        while True:
            scaled[np.diag_indices_from(scaled)] = 1.0 + lift
            try:
                self.root = linalg.cholesky(scaled, check_finite=False)
                break
            except linalg.LinAlgError:
                lift *= 10.0
        self.slope = self.scale * slope
        self.origin = self._back(self.slope)  # where the model's minimum would be, y = 0

    def _back(self, v: FloatArray) -> FloatArray:
        return linalg.solve_triangular(self.root, v, trans="T", check_finite=False)

    def least_distance(self, rows: FloatArray, slack: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Minimise the model over steps with rows @ step <= slack; return the step and duals.

        In y = R step + R^-T slope the model is |y|^2/2, and the programme is Lawson and
        Hanson's least distance under inequalities, solved by non-negative least squares. The
        step zero is feasible, so that in units of its y the answer is no longer than one.
        """
        unit = float(np.linalg.norm(self.origin))
        through = self._back((rows * self.scale).T)  # R^-T A', one column per row
        reach = (slack + through.T @ self.origin) / unit
        stacked = np.vstack([-through, -reach])
        target = np.zeros(len(stacked))
        target[-1] = 1.0
        weight = non_negative_least_squares(stacked, target)
        dual = unit * weight / (1.0 + float(reach @ weight))
        y = -through @ dual
        step = linalg.solve_triangular(self.root, y - self.origin, check_finite=False)
        return self.scale * step, dual

    def promise(self, step: FloatArray) -> float:
        """Return the model's change along a step."""
        z = step / self.scale
        bent = self.root @ z
        return float(self.slope @ z + 0.5 * (bent @ bent))


class _Cuts:
    """The outer rows whose constraints are looked at, and their weights."""

    def __init__(self, problem: PeakedProblem, at: Peak):
        self.problem = problem
        self.most = max(_FEWEST_CUTS, int(_CUTS_PER_FEATURE * problem.size))
        highest = int(np.argmax(problem.outer_scores(at.scores)))
        self.rows: NDArray[np.intp] = np.array([highest])
        self.features = problem.outer_rows(self.rows)
        self.weight = np.ones(1)
        self._add(_spread(np.arange(problem.n_outer), self.most))

    def solve(self, model: _Model, at: Peak) -> tuple[FloatArray, float]:
        slack = at.top - self.problem.outer_scores(at.scores)[self.rows]
        constraints = np.column_stack([self.features, np.full(len(self.rows), -1.0)])
        step, self.weight = model.least_distance(constraints, slack)
        return step, model.promise(step)

    def add(self, trial: Peak, allowed: float) -> bool:
        """Let in the rows of the trial point that stand highest above what was allowed."""
        outer = self.problem.outer_scores(trial.scores)
        excess = outer - allowed
        excess[self.rows] = -np.inf
        above = np.flatnonzero(excess >= 0.0)
        if len(above) > self.most:
            above = above[np.argpartition(excess[above], -self.most)[-self.most :]]
        if len(above):
            self._drop()
        self._add(above)
        return len(above) > 0

    def _drop(self) -> None:
        if len(self.rows) > _KEPT_PER_FEATURE * (self.problem.size + 1) + self.most:
            self._keep(self.weight > 0)

    def _keep(self, which: NDArray[np.bool_]) -> None:
        self.rows, self.weight = self.rows[which], self.weight[which]
        self.features = self.features[which]

    def _add(self, rows: NDArray[np.intp]) -> None:
        rows = rows[~np.isin(rows, self.rows)]
        self.rows = np.concatenate([self.rows, rows])
        self.weight = np.concatenate([self.weight, np.zeros(len(rows))])
        self.features = np.vstack([self.features, self.problem.outer_rows(rows)])

    def _balanced_weights(self, force: float) -> FloatArray:
        total = float(np.sum(self.weight))
        return self.weight * (force / total) if total > 0 else self.weight

    def certify(self, at: Peak, slope: FloatArray) -> float:
        """The gap that the present weights certify, scaled to sum to the inner rows' pull."""
        return float(self.problem.gap(at, slope, self.rows, self._balanced_weights(at.force)))

    def at_rounding(self, at: Peak, slope: FloatArray) -> bool:
        """Whether floating point leaves nothing to gain."""
        weight = self._balanced_weights(at.force)
        return bool(self.problem.at_rounding(at, slope, self.rows, weight))

    def residual(self, slope: FloatArray) -> FloatArray:
        """The gradient that the present weights leave over."""
        return slope[:-1] + self.features.T @ self._balanced_weights(float(slope[-1]))


def _spread(rows: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """About so many rows, evenly spaced."""
    return rows[:: max(1, len(rows) // count)]


#: Cosines of angles between residual and columns that count as nothing.
_TOLERANCE = 1e-10


def non_negative_least_squares(columns: FloatArray, target: FloatArray) -> FloatArray:
    """Return the x >= 0 that minimises |columns @ x - target|.

    Raises RuntimeError where floating point does not let the active set come to rest.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.solvers.max_price import non_negative_least_squares
    >>> columns = np.array([[1.0, 1.0], [0.0, 1.0]])
    >>> non_negative_least_squares(columns, np.array([1.0, -1.0]))
    array([1., 0.])
    """
    lengths = np.linalg.norm(columns, axis=0)
    lengths[lengths == 0.0] = 1.0
    unit = columns / lengths
    try:
        x, _ = optimize.nnls(unit, target, maxiter=50 * unit.shape[1] + 1000)
    except RuntimeError:  # it ran in circles
        x = np.zeros(unit.shape[1])
    if not is_minimum(unit, target, x):
        x = _active_set(unit, target)
    return x / lengths


def is_minimum(unit: FloatArray, target: FloatArray, x: FloatArray) -> bool:
    """Whether no feasible direction leads closer to the target, for columns of length one."""
    pull = unit.T @ (target - unit @ x)
    nothing = _TOLERANCE * max(float(np.linalg.norm(target)), np.finfo(float).tiny)
    return bool(np.all(pull <= nothing) and np.all(np.abs(pull[x > 0.0]) <= nothing))


def _active_set(unit: FloatArray, target: FloatArray) -> FloatArray:
    """Lawson and Hanson's method: columns enter one by one, and leave at zero."""
    size = unit.shape[1]
    x, used, barred = np.zeros(size), np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
    nothing = _TOLERANCE * float(np.linalg.norm(target))
    for _ in range(10 * size + 100):
        pull = np.where(used | barred, -np.inf, unit.T @ (target - unit @ x))
        enters = int(np.argmax(pull))
        if pull[enters] <= nothing:
            return x
        used[enters] = True
        z = _least_squares(unit, target, used)
        if z[enters] <= 0.0:  # rounding alone lets it in: it would leave at once
            used[enters], barred[enters] = False, True
            continue
        barred[:] = False
        while np.any(z[used] <= 0.0):
            falling = used & (z <= 0.0)
            share = float(np.min(x[falling] / (x[falling] - z[falling])))
            x = np.where(used, x + share * (z - x), 0.0)
            used &= x > np.finfo(float).eps * np.max(x)
            x[~used] = 0.0
            z = _least_squares(unit, target, used)
        x = z
    raise RuntimeError("Non-negative least squares did not converge.")


def _least_squares(unit: FloatArray, target: FloatArray, used: NDArray[np.bool_]) -> FloatArray:
    """Plain least squares over the columns in use."""
    z = np.zeros(unit.shape[1])
    z[used] = np.linalg.lstsq(unit[:, used], target, rcond=None)[0]
    return z
