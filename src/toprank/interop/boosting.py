"""The push as gradient, curvature and metric for any library of boosted trees.

`toprank.interop.lightgbm` and `toprank.interop.xgboost` only say how their library hands over
labels, weights and groups, and which processes train together.
"""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._arrays import AnyArray, IntArray
from toprank._numerics import FloatArray
from toprank.interop.team import ALONE, Team, derivatives_together, team_positives, team_weights
from toprank.metrics.metric import Metric
from toprank.metrics.registry import get_metric
from toprank.objective import PushObjective, boostable, build_objective, derivatives_of
from toprank.objective.curvature import Derivatives, scaled, tilts_of
from toprank.objective.pairwise import PairTask
from toprank.pairs import relation_of

if TYPE_CHECKING:
    from toprank.interop.boosting_kernels import CompiledPush

#: Curvature that a row has at least, as a share of the mean: rows far from the top have none of
#: their own, and a leaf of them alone would divide zero by zero.
LEAST_CURVATURE = 1e-6
#: Rows from which compiled loops, which save 14 ns of each, repay being loaded, half a second, and
#: from which they repay that of Numba too, nearly as much.
_COMPILED_FROM, _LOADED_FROM = 35_000_000, 60_000_000
#: Where they are: once loaded, they cost nothing.
_KERNELS = "toprank.interop.boosting_kernels"
#: Rounds of boosting to expect of a first one.
_USUAL_ROUNDS = 100


class PushGradients:
    """Gradient and curvature of the push at given labels, weights and groups, times the weight.

    The libraries' regularisers (min_child_weight, min_sum_hessian_in_leaf, lambda) are absolute
    numbers, to be compared with sums of curvature over rows. So gradient and curvature are both
    multiplied by a number in proportion to the total weight W: the one with which the curvature
    of all rows, where all scores are equal, sums to W+ W- / W, as it does for the binary
    objective at its start, sum w q (1 - q) with q = W+ / W. (Multiplied by W itself, the
    regularisers would still be weaker by (1 + p) / (q (1 - q)): XGBoost would give single rows
    leaves of their own.)

    What depends on the labels only, the two classes, their weights, the groups, is kept from one
    call to the next and built anew when the labels, weights or groups change.
    """

    def __init__(
        self,
        p: float = 4.0,
        *,
        price: Any = "power",
        loss: Any = "exponential",
        end: str = "top",
        balance: float = 1.0,
        groups: ArrayLike | None = None,
    ):
        self.p = p
        self.price = price
        self.loss = loss
        self.end = end
        self.balance = balance
        self.groups = groups
        self._built: _Built | None = None
        # unusable settings are refused here, not in the middle of training
        self._prototype = self._objective(np.array([True, False]), None, None)

    def __repr__(self) -> str:
        return f"push_objective(p={self.p!r}, price={self.price!r}, loss={self.loss!r})"

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_built": None}

    def _team(self) -> Team:
        """The processes whose rows are ranked together."""
        return ALONE

    def _objective(
        self, positive: NDArray[np.bool_], weight: FloatArray | None, groups: IntArray | None
    ) -> PushObjective:
        names = {"price": self.price, "p": self.p, "loss": self.loss}
        if groups is None:
            return boostable(
                build_objective(positive, weight, end=self.end, balance=self.balance, **names)
            )
        if self.end != "top":
            raise ValueError(f"end={self.end!r} is not available with groups; use end='top'.")
        of_row = np.ones(len(positive)) if weight is None else weight
        relation = relation_of(positive, groups, weight=weight)
        return boostable(PairTask.build(relation, of_row, **names).objective())

    def at(
        self,
        labels: np.ndarray,
        scores: object,
        weight: AnyArray | None = None,
        group_sizes: AnyArray | None = None,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return gradient and curvature in the scores, as float32.

        Parameters
        ----------
        labels : array of shape (n,)
            Two distinct values; the larger one belongs at the top.
        scores : array of shape (n,)
        weight : array of shape (n,), optional
            Repetition counts.
        group_sizes : array of int, optional
            Sizes of consecutive groups of rows, as ranking data sets keep them; where None,
            ``groups`` as given to the constructor, if it was.
        """
        built, team = self._built, self._team()
        given = (labels, weight, group_sizes, team.rank)
        # all build anew or none does: what they build from is shared
        if team.any(built is None or not built.holds_for(*given)):
            built = self._built = self._build(team, *given)
        assert built is not None
        compiled = built.compiled()
        found = None if compiled is None else compiled(np.asarray(scores))
        if found is not None:
            return found
        gradient, curvature = built.derivatives(np.asarray(scores, dtype=np.float64))
        mean = float(team.sum(np.sum(curvature))) / built.total_weight
        np.maximum(curvature, _least_curvature(mean) * built.weight, out=curvature)
        return _round_per_unit(gradient, built.weight), _round_per_unit(curvature, built.weight)

    def _build(
        self,
        team: Team,
        labels: AnyArray,
        weight: AnyArray | None,
        group_sizes: AnyArray | None,
        rank: int,
    ) -> _Built:
        positive = team_positives(team, np.asarray(labels))
        counts = team_weights(team, positive, weight)
        groups = self._groups(team, group_sizes, len(positive))
        derivatives: Derivatives
        tilts = None
        if team.size == 1:
            derivatives = derivatives_of(self._objective(positive, counts, groups))
            tilts = tilts_of(self._prototype) if groups is None else None
        else:
            one_list = self._prototype if groups is None else None
            derivatives = derivatives_together(
                team, one_list, lambda y, w: self._objective(y, w, groups), positive, counts
            )
        given = (np.array(labels), _copy(weight), _copy(group_sizes), rank)
        return _Built(team, derivatives, given, positive, counts, tilts)

    def _groups(self, team: Team, sizes: AnyArray | None, n: int) -> IntArray | None:
        """The group of every row of the team, as a number."""
        own = _sizes(sizes)
        if team.any(len(own) > 0):
            everyone = team.gather(own)
            return np.repeat(np.arange(len(everyone)), everyone)
        if self.groups is None:
            return None
        groups = np.asarray(self.groups)
        if team.any(len(groups) != n):
            raise ValueError(
                f"groups has {len(groups)} rows, the training data {n}; give one group per row."
            )
        return np.unique(team.gather(groups), return_inverse=True)[1]


def _least_curvature(mean: float) -> float:
    """Return the least curvature per unit of weight, given the mean."""
    return LEAST_CURVATURE * max(mean, LEAST_CURVATURE)  # of no loss at all the mean is no measure


def _round_per_unit(values: FloatArray, weight: float | FloatArray) -> NDArray[np.float32]:
    """Return float32 with 20 significant bits per unit of weight.

    A row of weight 3 then counts exactly as three rows do. With all 24 bits, 3 g would be rounded,
    and a split or a leaf could differ.
    """
    weighted = np.ndim(weight) > 0
    if weighted:
        values = np.divide(values, weight, out=np.zeros_like(values), where=weight > 0)
    unit = values.astype(np.float32)
    bits = unit.view(np.int32)
    bits += 8
    bits &= -16
    return unit * np.asarray(weight, dtype=np.float32) if weighted else unit


def _sizes(group_sizes: AnyArray | None) -> NDArray[np.int64]:
    return np.asarray([] if group_sizes is None else group_sizes, dtype=np.int64)


def _copy(values: AnyArray | None) -> AnyArray | None:
    return None if values is None else np.array(values)


class _RowsSoFar:
    """How many rows this process was asked for, one by one: those to come are likely as many."""

    count = 0


def _repays_compiler(n: int) -> bool:
    """Whether compiled loops repay loading them, by the rows so far or by rounds of n to come."""
    if _KERNELS in sys.modules:
        return True
    _RowsSoFar.count += n
    expected = max(_RowsSoFar.count, _USUAL_ROUNDS * n)
    return expected >= (_COMPILED_FROM if "numba" in sys.modules else _LOADED_FROM)


class _Built:
    """Derivatives, multiplied as `PushGradients` says, and what they were built from."""

    def __init__(
        self,
        team: Team,
        derivatives: Derivatives,
        given: tuple[AnyArray, AnyArray | None, AnyArray | None, int],
        positive: NDArray[np.bool_],
        counts: FloatArray | None,
        tilts: tuple[tuple[float, float], ...] | None,
    ):
        self._given = given
        self.weight: float | FloatArray = 1.0 if counts is None else counts
        of_row = np.broadcast_to(self.weight, positive.shape)
        undecided = derivatives(np.zeros(len(positive)))[1]
        sums = [np.sum(of_row), np.sum(of_row, where=positive), np.sum(undecided)]
        total, plus, curvature = (float(value) for value in team.sum(np.array(sums)))
        self.total_weight, share = total, plus / total
        factor = total * share * (1.0 - share) / (curvature or 1.0)
        self.derivatives = scaled(derivatives, factor)
        self._of_compiled = None if tilts is None else (positive, counts, tilts, factor)
        self._compiled: CompiledPush | None = None

    def compiled(self) -> CompiledPush | None:
        """The same by compiled loops; None where there are none, or too few rows to load them."""
        if self._compiled is None and self._of_compiled is not None:
            positive, counts, tilts, factor = self._of_compiled
            if _repays_compiler(len(positive)):
                from toprank.interop.boosting_kernels import CompiledPush  # loads Numba

                bend = 0.5 * sum(abs(tilt) for tilt, _ in tilts)
                least = _least_curvature(2.0 * factor * bend / self.total_weight)
                self._compiled = CompiledPush(positive, counts, tilts, factor, bend, least)
        return self._compiled

    def holds_for(self, *given: AnyArray | int | None) -> bool:
        return all(_same(kept, now) for kept, now in zip(self._given, given, strict=True))


def _same(kept: AnyArray | int | None, now: AnyArray | int | None) -> bool:
    return now is None if kept is None else now is not None and np.array_equal(kept, now)


class PushMetric:
    """A metric of `toprank.metrics` with its parameters, as a function of labels and scores."""

    def __init__(self, name: str, **kwargs: object):
        self.metric: Metric = get_metric(name)
        parameters = inspect.signature(self.metric.function).parameters
        unknown = sorted(set(kwargs) - set(parameters))
        if unknown:
            raise ValueError(f"The metric {name!r} does not know {', '.join(unknown)}.")
        self.kwargs = {**self.metric.settings, **kwargs}
        self.takes_groups = "groups" in parameters
        self.__name__ = self.label

    @property
    def higher_is_better(self) -> bool:
        """Whether a better ranking has the larger value."""
        return self.metric.higher_is_better

    @property
    def label(self) -> str:
        """Name and parameters, as the libraries print it."""
        settings = ", ".join(f"{name}={value!r}" for name, value in self.kwargs.items())
        return f"{self.metric.name}({settings})" if settings else self.metric.name

    def __repr__(self) -> str:
        return f"push_metric({self.label!r})"

    def _team(self) -> Team:
        """The processes whose rows are ranked together."""
        return ALONE

    def of(
        self,
        labels: AnyArray,
        scores: ArrayLike,
        weight: AnyArray | None = None,
        group_sizes: AnyArray | None = None,
    ) -> float:
        """Return the value; with groups the mean over them, for metrics that have one.

        Processes that train together see all their rows: labels and scores are gathered.
        """
        team, given = self._team(), dict(self.kwargs)
        labels, scores = np.asarray(labels), np.asarray(scores)
        counts, sizes = None, _sizes(group_sizes)
        if self.takes_groups and team.any(len(sizes) > 0):
            sizes = team.gather(sizes)
            given["groups"] = np.repeat(np.arange(len(sizes)), sizes)
        if team.any(weight is not None and len(weight) > 0):
            weight = np.ones(len(labels)) if weight is None else np.asarray(weight, np.float64)
            counts = team.gather(weight)
        labels, scores = team.gather(labels), team.gather(scores).astype(np.float64)
        return float(self.metric.function(labels, scores, sample_weight=counts, **given))
