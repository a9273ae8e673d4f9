"""What a library of boosted trees is asked to do, and what it gives back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from toprank._numerics import FloatArray
from toprank.interop.team import Team
from toprank.pairs import Rows

#: Returns the metric of the held-out rows at their scores, larger is better.
Measure = Callable[[FloatArray], float]


@dataclass(frozen=True)
class TreeRows(Rows):
    """Rows for a tree library: numbers, NaN where missing, categories as codes 0, 1, ...

    ``start`` are the scores that the trees are added to.
    """

    start: FloatArray | None = None

    def of_all(self, team: Team) -> TreeRows:
        """Return the labels, weights and groups of all members' rows; the numbers stay."""

        def whole(values: Any) -> Any:
            return None if values is None else team.gather(values)

        return TreeRows(self.X, whole(self.y), whole(self.weight), whole(self.groups))


@dataclass(frozen=True)
class Watch:
    """Rows held out, the metric they are measured by, and how long to wait for it to improve."""

    rows: TreeRows
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
    def grow(cls, rows: TreeRows, plan: Plan, push: Any, watch: Watch | None) -> Grown:
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
