"""Weak rankers: stumps, columns in [0, 1] or {0, 1}, functions, fitted estimators; their sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from toprank._arrays import AnyArray, JsonObject, TableLike
from toprank._numerics import FloatArray
from toprank.blocks import Workers
from toprank.rankers.boosting.line_search import ColumnMasses, loss_along
from toprank.rankers.boosting.rounds import EQUAL

if TYPE_CHECKING:
    import pandas as pd

#: The weak rankers that have a name.
WEAK_RANKERS = ("stumps", "features", "binary")
#: Rows that are scored at once.
_BLOCK_ROWS = 4096


def weak_outputs(weak_rankers: Any, X: TableLike, n: int) -> FloatArray:
    """Return the values of each weak ranker of a list at the n rows of X, one column each."""
    if isinstance(weak_rankers, type):
        raise ValueError(
            f"weak_rankers is the class {weak_rankers.__name__}, expected an estimator: "
            f"{weak_rankers.__name__}()."
        )
    if len(weak_rankers) == 0:
        raise ValueError("weak_rankers is empty; give at least one function or fitted estimator.")
    return np.column_stack([_values_of(weak, j, X, n) for j, weak in enumerate(weak_rankers)])


def _values_of(weak: object, j: int, X: TableLike, n: int) -> FloatArray:
    return check_values(_call(weak, j, X), f"weak_rankers[{j}]", n)


def check_values(returned: object, name: str, n: int) -> FloatArray:
    """Return what a weak ranker says about n rows, one finite number each, or raise ValueError."""
    try:
        values = np.asarray(returned, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} returned values of type {np.asarray(returned).dtype}, expected one "
            "number per row. For a classifier with named classes give a function, such as its "
            "decision_function."
        ) from None
    if values.shape not in ((n,), (n, 1)):
        raise ValueError(
            f"{name} returned an array of shape {values.shape}, expected ({n},): one number per "
            "row."
        )
    if not np.all(np.isfinite(values)):
        raise ValueError(f"{name} returned NaN or infinity; expected finite numbers.")
    return values.reshape(n)


def _call(weak: Any, j: int, X: object) -> AnyArray | pd.Series:
    predicts = hasattr(weak, "predict")
    if isinstance(weak, type) or not (predicts or callable(weak)):
        raise ValueError(
            f"weak_rankers[{j}] is {weak!r}, expected a function of X or a fitted estimator."
        )
    try:
        return weak.predict(X) if predicts else weak(X)
    except NotFittedError as error:
        raise NotFittedError(
            f"weak_rankers[{j}] is not fitted: {type(weak).__name__}. scikit-learn's clone (and so "
            "cross-validation) forgets the fit of estimators in a list: give its method, "
            "estimator.predict, or wrap it in sklearn.frozen.FrozenEstimator."
        ) from error


def are_binary(weak_rankers: object, Z: np.ndarray) -> bool:
    """Whether the weak rankers take the values 0 and 1 only, so that steps have a closed form.

    ValueError if columns are not what the name promises.
    """
    if isinstance(weak_rankers, str) and weak_rankers == "stumps":
        return True
    in_two = bool(np.all((Z == 0) | (Z == 1)))
    if isinstance(weak_rankers, str):
        wanted = "{0, 1}" if weak_rankers == "binary" else "[0, 1]"
        fits = (Z == 0) | (Z == 1) if weak_rankers == "binary" else (Z >= 0) & (Z <= 1)
        wrong = np.flatnonzero(~np.all(fits, axis=0))
        if wrong.size:
            low, high = np.min(Z[:, wrong[0]]), np.max(Z[:, wrong[0]])
            raise ValueError(
                f"weak_rankers={weak_rankers!r} needs columns in {wanted}; column {wrong[0]} "
                f"holds values from {low:g} to {high:g}. Scale the columns (for example with "
                "MinMaxScaler), or use weak_rankers='stumps'."
            )
    return in_two and weak_rankers != "features"


@dataclass(frozen=True)
class ColumnChoice:
    """The weak ranker whose value is a column as it is."""

    column: int
    gain: float

    @property
    def key(self) -> int:
        """What makes two of them the same weak ranker."""
        return self.column

    def outputs(self, Z: FloatArray) -> FloatArray:
        """Return h of each row."""
        return np.asarray(Z[:, self.column], dtype=np.float64)

    def facts(self) -> JsonObject:
        """What the history says about it."""
        return {"feature": self.column}


class ColumnRankers:
    """Scores that move along one column per round.

    Parameters
    ----------
    pairs : object with ``potentials``, ``order`` and ``p``
    H : array of shape (n, m)
        The value of each weak ranker at each row.
    """

    def __init__(self, pairs: Any, H: FloatArray):
        self.pairs = pairs
        self.H = np.asfortranarray(H[pairs.order])
        self.scores = np.zeros(len(H))
        self._spreads = np.ptp(self.H, axis=0) if H.size else np.zeros(H.shape[1])
        self._refresh()

    def _refresh(self) -> None:
        self.log_loss, self._potentials = self.pairs.potentials(self.scores)

    def best(self, selection: str) -> ColumnChoice | None:
        """Return the column that lowers the loss most, or the steepest."""
        edges = self.H.T @ self._potentials
        if selection == "slope":
            gains = np.abs(edges)
        else:
            gains = np.array([self._gain(j, float(edge)) for j, edge in enumerate(edges)])
        if gains.size == 0 or not np.isfinite(self.log_loss):
            return None
        best = float(np.max(gains))
        return ColumnChoice(int(np.argmax(gains >= best - EQUAL)), best)

    def _gain(self, j: int, edge: float) -> float:
        """Root of the decrease; the slope, which is smaller, where the decrease is all rounding."""
        if abs(edge) <= EQUAL:
            return 0.0
        decrease = 1.0 - self._along(j, edge).factor
        return float(np.sqrt(max(decrease, 0.0))) if decrease > 1e-10 else abs(edge)

    @property
    def _start(self) -> FloatArray:
        """Where line searches begin."""
        return self.scores

    def _along(self, j: int, edge: float) -> ColumnMasses:
        loss = loss_along(self.pairs, self._start, self.H[:, j])
        return ColumnMasses(loss, edge, float(self._spreads[j]))

    def masses(self, choice: ColumnChoice) -> ColumnMasses:
        """Return the loss along the column."""
        edge = float(self.H[:, choice.column] @ self._potentials)
        return self._along(choice.column, edge)

    def move(self, choice: ColumnChoice, step: float) -> None:
        """Add step · h to the scores."""
        self.scores += step * self.H[:, choice.column]
        self._refresh()


class WeakSum(ABC):
    """f(x) = sum_t alpha_t h_t(x) over the rounds t."""

    def __init__(self, choices: list[Any], steps: list[float]):
        self.choices = choices
        self.columns = np.array([choice.column for choice in choices], dtype=np.intp)
        self.steps = np.array(steps, dtype=np.float64)

    def staged_scores(self, Z: np.ndarray) -> Iterator[FloatArray]:
        """Yield the scores after each round."""
        scores = np.zeros(len(Z))
        for choice, step in zip(self.choices, self.steps, strict=True):
            scores = scores + step * choice.outputs(Z)
            yield scores

    @abstractmethod
    def scores(self, Z: np.ndarray, workers: Workers) -> FloatArray:
        """Return f of each row."""


class StumpSum(WeakSum):
    """A sum of stumps, kept as one step function per column."""

    def __init__(self, choices: list[Any], steps: list[float]):
        super().__init__(choices, steps)
        self.thresholds = np.array([stump.threshold for stump in choices], dtype=np.float64)
        self.missing = np.array([stump.missing for stump in choices], dtype=np.int8)
        self.used = np.unique(self.columns)
        tables = [self._table(column) for column in self.used]
        width = 1 << max((len(edges) for edges, _ in tables), default=1).bit_length()
        self._edges = np.full((len(tables), width), np.inf)
        self._values = np.zeros((len(tables), width))
        for q, (edges, values) in enumerate(tables):
            self._edges[q, : len(edges)] = edges
            self._values[q, : len(values)] = values
        self._missing = np.array(
            [np.sum(self.steps[(self.columns == c) & (self.missing == 1)]) for c in self.used]
        )

    def _table(self, column: int) -> tuple[FloatArray, FloatArray]:
        """Thresholds in order, and the sum of the steps below, for each interval."""
        mine = self.columns == column
        edges, place = np.unique(self.thresholds[mine], return_inverse=True)
        heights = np.bincount(place.reshape(-1), self.steps[mine], minlength=len(edges))
        return edges, np.concatenate([[0.0], np.cumsum(heights)])

    def scores(self, Z: np.ndarray, workers: Workers) -> FloatArray:
        """Return f of each row."""
        from toprank.rankers.boosting.kernels import add_steps

        out = np.zeros(len(Z))

        def fill(start: int) -> None:
            rows = slice(start, start + _BLOCK_ROWS)
            block = np.ascontiguousarray(Z[rows], dtype=np.float64)
            add_steps(block, self.used, self._edges, self._values, self._missing, out[rows])

        if len(self.used):
            list(workers.map(fill, range(0, len(Z), _BLOCK_ROWS)))
        return out


class ColumnSum(WeakSum):
    """A sum of columns: a linear score."""

    def coef(self, n_columns: int) -> FloatArray:
        """Coefficient of each column."""
        sums: np.ndarray = np.bincount(self.columns, self.steps, minlength=n_columns)
        return sums

    def scores(self, Z: np.ndarray, workers: Workers) -> FloatArray:
        """Return f of each row."""
        return np.asarray(Z, dtype=np.float64) @ self.coef(Z.shape[1])


def column_importances(columns: NDArray[np.intp], coef: FloatArray, d: int) -> FloatArray:
    """Share of each column in the sum of the absolute coefficients."""
    sizes: np.ndarray = np.bincount(columns, np.abs(coef), minlength=d)
    total = float(np.sum(sizes))
    return sizes / total if total > 0 else sizes
