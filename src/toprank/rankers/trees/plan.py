"""What a library of boosted trees is asked to do, and what it gives back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.interop.team import Team

#: Returns the metric of the held-out rows at their scores, larger is better.
Measure = Callable[[FloatArray], float]


@dataclass(frozen=True)
class Table:
    """Rows ready for a library: numbers, missing as NaN, categories as codes 0, 1, ..."""

    Z: FloatArray
    positive: NDArray[np.bool_]
    weight: FloatArray | None = None
    groups: NDArray[np.intp] | None = None
    start: FloatArray | None = None

    def take(self, rows: NDArray[np.intp]) -> Table:
        """Return the table of some of the rows."""

        def part(values: Any) -> Any:
            return None if values is None else values[rows]

        return Table(
            self.Z[rows],
            self.positive[rows],
            part(self.weight),
            part(self.groups),
            part(self.start),
        )

    def of_all(self, team: Team) -> Table:
        """Return the labels, weights and groups of all members' rows; the numbers stay."""

        def whole(values: Any) -> Any:
            return None if values is None else team.gather(values)

        return Table(self.Z, whole(self.positive), whole(self.weight), whole(self.groups))

    def present(self) -> Table:
        """Return the table without rows of weight zero."""
        if self.weight is None or np.all(self.weight > 0):
            return self
        return self.take(np.flatnonzero(self.weight > 0))


@dataclass(frozen=True)
class Watch:
    """Rows held out, the metric they are measured by, and how long to wait for it to improve."""

    table: Table
    measure: Measure
    patience: int


@dataclass(frozen=True)
class Plan:
    """How trees are grown, in the words of `PushTrees`."""

    n_estimators: int
    learning_rate: float
    max_leaves: int
    max_depth: int | None
    min_samples_leaf: int
    min_child_weight: float
    reg_lambda: float
    subsample: float
    colsample: float
    max_bins: int
    seed: int
    n_threads: int
    verbose: int = 0
    monotone: tuple[int, ...] | None = None
    interactions: tuple[tuple[int, ...], ...] | None = None
    categorical: tuple[int, ...] = ()
    names: tuple[str, ...] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Grown:
    """An ensemble, and the metric of the held-out rows after each round."""

    trees: Trees
    values: FloatArray


class Trees(ABC):
    """A grown ensemble: scores, shares of the score, importances."""

    #: The library, and the extra of toprank that brings it.
    library: ClassVar[str]
    n_rounds: int
    booster: Any

    @classmethod
    @abstractmethod
    def grow(cls, table: Table, plan: Plan, push: Any, watch: Watch | None) -> Grown:
        """Grow trees under the push, or under the library's binary objective if it is None."""

    @abstractmethod
    def scores(self, Z: FloatArray, n_rounds: int | None = None) -> FloatArray:
        """Return the raw scores after so many rounds, all by default."""

    @abstractmethod
    def staged(self, Z: FloatArray) -> Iterator[FloatArray]:
        """Yield the raw scores after each round."""

    @abstractmethod
    def contributions(self, Z: FloatArray) -> FloatArray:
        """Return SHAP values of shape (n, d + 1), the expected score last; rows sum to scores."""

    @abstractmethod
    def gains(self) -> FloatArray:
        """Return the total gain of the splits of each feature."""
