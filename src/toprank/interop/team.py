"""Processes that train together, each on its own rows: what they tell each other, and the push.

A row's gradient under the push needs a few sums over all rows. Wherever they lie, the sums are
the same: a `Team` adds up what every process contributes. A process that trains by itself is a
team of one.

With the exponential loss and the power price a row needs two numbers of the others, the
log-sum-exps of the two classes (equivalently the intercept b of the pointwise form,
Ertekin & Rudin 2011, b = [LSE(-f_pos) - LSE(p f_neg)]/(1 + p), given which every row's gradient
is its own affair): a maximum and a sum over the team, a few bytes per round.

Every other price, loss and end, and groups, need all scores: they are gathered, eight bytes per row
and round, and every process evaluates the whole list and keeps its own rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._arrays import AnyArray
from toprank._numerics import FloatArray, log_of
from toprank.objective import PushObjective, derivatives_of
from toprank.objective.curvature import Derivatives, tilts_of
from toprank.pairs import check_weights, distinct_labels

if TYPE_CHECKING:
    from types import ModuleType


class Team:
    """A team of one. Every method is called by all members at once, or by none."""

    size = 1
    rank = 0

    def sum(self, values: object) -> FloatArray:
        """Return the sum over the members of numbers or arrays of one shape."""
        return np.asarray(values, dtype=np.float64)

    def max(self, values: object) -> FloatArray:
        """Return the largest over the members of numbers or arrays of one shape."""
        return np.asarray(values, dtype=np.float64)

    def any(self, truth: bool) -> bool:
        """Whether it is true of any member."""
        return bool(self.max(float(truth)) > 0)

    def objects(self, thing: object) -> list[Any]:
        """Return the things of all members, in order of rank."""
        return [thing]

    def first(self, thing: object) -> Any:
        """Return the first member's thing."""
        return thing

    def gather(self, rows: AnyArray) -> np.ndarray:
        """Return the rows of all members, in order of rank."""
        return rows

    def own(self, rows: AnyArray, n: int) -> np.ndarray:
        """Return, of rows that were gathered, this member's n."""
        return rows


ALONE = Team()


class XGBoostTeam(Team):
    """The members of XGBoost's communicator: all-reduces of a few numbers take about 0.2 ms."""

    def __init__(self, collective: ModuleType):
        self._collective = collective
        self.size = collective.get_world_size()
        self.rank = collective.get_rank()

    def _reduce(self, values: object, operation: object) -> np.ndarray:
        array = np.asarray(values)
        if array.size == 0:  # the same shape, so empty for everyone
            return array
        return self._collective.allreduce(array, operation).reshape(array.shape)

    def sum(self, values: object) -> FloatArray:
        return self._reduce(np.asarray(values, dtype=np.float64), self._collective.Op.SUM)

    def max(self, values: object) -> FloatArray:
        return self._reduce(np.asarray(values, dtype=np.float64), self._collective.Op.MAX)

    def objects(self, thing: object) -> list[Any]:
        # the communicator takes no None
        return [self._collective.broadcast((thing,), root)[0] for root in range(self.size)]

    def first(self, thing: object) -> Any:
        return self._collective.broadcast((thing,), 0)[0]

    def _sizes(self, n: int) -> NDArray[np.intp]:
        mine = np.zeros(self.size)
        mine[self.rank] = n
        return self.sum(mine).astype(np.intp)

    def gather(self, rows: AnyArray) -> np.ndarray:
        if rows.dtype.kind not in "biuf":
            parts = [part for part in self.objects(rows) if len(part)]
            return np.concatenate(parts) if parts else rows
        kind = np.uint8 if rows.dtype == bool else rows.dtype
        ends = np.cumsum(self._sizes(len(rows)))
        everyone = np.zeros(ends[-1], dtype=kind)
        everyone[ends[self.rank] - len(rows) : ends[self.rank]] = rows
        # every place is zero for all members but one, so that the sum is exact
        return self._reduce(everyone, self._collective.Op.SUM).astype(rows.dtype, copy=False)

    def own(self, rows: AnyArray, n: int) -> np.ndarray:
        end = int(np.cumsum(self._sizes(n))[self.rank])
        return rows[end - n : end]


def xgboost_team() -> Team:
    """Return the members of XGBoost's communicator, if this thread is inside one."""
    if "xgboost" not in sys.modules:
        return ALONE
    from xgboost import collective

    return XGBoostTeam(collective) if collective.is_distributed() else ALONE


def team_positives(team: Team, labels: AnyArray) -> NDArray[np.bool_]:
    """Return which of this process's rows are positive; the team has two classes or none may."""
    parts = [part for part in team.objects(distinct_labels(labels)) if len(part)]
    classes = np.unique(np.concatenate(parts)) if parts else labels
    if len(classes) != 2:
        raise ValueError(
            f"The push ranks rows of two classes; the labels have {len(classes)} distinct "
            "values. Pass y == the class that belongs at the top."
        )
    return np.asarray(labels == classes[1])


def team_weights(
    team: Team, positive: NDArray[np.bool_], weight: ArrayLike | None
) -> FloatArray | None:
    """Return this process's weights as float64, or raise ValueError in every process at once."""
    if not team.any(weight is not None):
        return None
    if team.size == 1:
        return check_weights(positive, weight)
    counts = np.ones(len(positive)) if weight is None else np.asarray(weight, dtype=np.float64)
    if team.any(counts.shape != positive.shape):
        raise ValueError(
            f"sample_weight has shape {counts.shape}, expected {positive.shape}: one weight per "
            "row."
        )
    # the least and the largest weight of each class say all there is to refuse
    extremes = [
        (label, extreme(counts[positive == label]))
        for label in (False, True)
        for extreme in (np.min, np.max)
        if np.any(positive == label)
    ]
    everyone = [pair for part in team.objects(extremes) for pair in part]
    check_weights(
        np.array([label for label, _ in everyone], dtype=bool),
        np.array([value for _, value in everyone]),
    )
    return counts


def derivatives_together(
    team: Team,
    one_list: PushObjective | None,
    build: Callable[[NDArray[np.bool_], FloatArray | None], PushObjective],
    positive: NDArray[np.bool_],
    weight: FloatArray | None,
) -> Derivatives:
    """Return gradient and curvature of this process's rows as a function of their scores.

    Parameters
    ----------
    team : Team
    one_list : PushObjective or None
        The objective for one positive and one negative row, in this order; None with groups.
    build : callable
        Returns the objective for the labels and weights of all rows of the team.
    positive, weight : arrays of shape (n,)
        Of this process's rows.
    """
    tilts = None if one_list is None else tilts_of(one_list)
    if tilts is not None:
        return _Factorised(team, tilts, positive, weight)
    weights = None if weight is None else team.gather(weight)
    return _Gathered(team, build(team.gather(positive), weights))


class _Factorised:
    """Two softmaxes over the rows of all processes."""

    def __init__(
        self,
        team: Team,
        tilts: tuple[tuple[float, float], ...],
        positive: NDArray[np.bool_],
        weight: FloatArray | None,
    ):
        self.team = team
        # one class is tilted by 1, the other by p: (1 + p)/2
        self.curvature = 0.5 * sum(abs(tilt) for tilt, _ in tilts)
        log_weight = np.zeros(len(positive)) if weight is None else log_of(weight)
        rows = (np.flatnonzero(positive), np.flatnonzero(~positive))
        self.classes = [
            (members, tilt, log_weight[members], sign)
            for members, (tilt, sign) in zip(rows, tilts, strict=True)
        ]

    def __call__(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        exponents = [
            tilt * scores.take(rows) + log_weight for rows, tilt, log_weight, _ in self.classes
        ]
        tops = self.team.max([np.max(part, initial=-np.inf) for part in exponents])
        shares = [np.exp(part - top) for part, top in zip(exponents, tops, strict=True)]
        masses = self.team.sum([np.sum(share) for share in shares])
        gradient = np.zeros(len(scores))
        for (rows, _, _, sign), share, mass in zip(self.classes, shares, masses, strict=True):
            gradient[rows] = share * (sign / mass)
        return gradient, self.curvature * np.abs(gradient)


class _Gathered:
    """The whole list in every process."""

    def __init__(self, team: Team, objective: PushObjective):
        self.team = team
        self.derivatives = derivatives_of(objective)

    def __call__(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        gradient, curvature = self.derivatives(self.team.gather(scores))
        n = len(scores)
        return self.team.own(gradient, n).copy(), self.team.own(curvature, n).copy()
