"""The design matrix of one block, wherever it lies: all that a sweep may ask of X.

`design_of` looks at the type of X: NumPy arrays and CSR matrices become a `HostDesign`; another
library's arrays the class that `KINDS` names for it. A new kind of array is one subclass of
`Design` and one of `Tile`; nothing else knows what X is made of.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.blocks.source import Block
from toprank.blocks.statistics import ColumnStatistics, LabelCounts, Units

#: Where the class for arrays of another library is found: the library's top-level module, and
#: "module:class" of a subclass of `Design`, imported when the first such block is opened.
KINDS: dict[str, str] = {"torch": "toprank.blocks.device:DeviceDesign"}


class Tile(ABC):
    """Rows few enough to be read several times while they are at hand, in their units.

    Coefficients and sums are float64 arrays of the host; what there is one of per row lies
    beside the rows.
    """

    #: Whether rows of one class are worth gathering before they are summed.
    gathers: bool = False

    @abstractmethod
    def scores(self, coef: FloatArray) -> Any:
        """Return X @ coef; for coefficients of shape (m, d), one line for each of the m."""

    def score_into(self, coef: FloatArray, scores: Any, rows: slice) -> Any:
        """Write X @ coef into some rows of a vector, and return them."""
        scores[rows] = self.scores(coef)
        return scores[rows]

    @abstractmethod
    def adjoint(self, v: Any) -> FloatArray:
        """Return X.T @ v, for v of shape (n,) or (n, m)."""

    @abstractmethod
    def second_moments(self, weight: Any) -> FloatArray:
        """Return X.T @ diag(weight) @ X, for weights that are not negative."""

    @abstractmethod
    def sizes(self, v: Any) -> FloatArray:
        """Return |X|.T @ |v|: the size of what is added up in X.T @ v."""

    @abstractmethod
    def squares(self) -> FloatArray:
        """Return the sum of squares of each column."""

    def take(self, rows: NDArray[np.intp]) -> Tile:
        """Return copies of some rows."""
        raise TypeError(f"{type(self).__name__} does not gather rows")


class Design(ABC):
    """The rows of one block, read tile by tile."""

    #: The compiled code that can read such a matrix: "numba", "triton" or None.
    kernel: str | None = None
    #: Where vectors lie that have one number per row: "host" or "device".
    place: str = "host"

    def __init__(self, X: Any, units: Units):
        self.X = X
        self.units = units
        self.n_rows, self.n_features = (int(size) for size in X.shape)

    @staticmethod
    @abstractmethod
    def count_labels(block: Block) -> LabelCounts:
        """Count the labels and weights of a block; asked first, before there are units."""

    @staticmethod
    @abstractmethod
    def describe(block: Block, start: int, step: int, check: bool) -> ColumnStatistics:
        """Describe the columns of the rows start, start + step, ...; check every entry if asked."""

    @abstractmethod
    def tiles(self) -> Iterator[tuple[slice, Tile]]:
        """Yield (rows, tile) over all rows."""

    @abstractmethod
    def vector(self, values: Any) -> Any:
        """Return labels or numbers, one per row, beside the rows."""

    @abstractmethod
    def floats(self, values: Any) -> Any:
        """Return numbers, one per row, as float64 beside the rows."""

    @abstractmethod
    def empty(self) -> Any:
        """Return a vector of as many float64 numbers as there are rows, beside them."""

    @abstractmethod
    def take(self, rows: Any) -> Any:
        """Return some rows as a NumPy array or CSR matrix, raw and in the dtype they have."""

    @abstractmethod
    def thinned(self, rows: Any) -> Any:
        """Return some rows where they lie, as a matrix of the same library."""

    @abstractmethod
    def columns(self, first: int, last: int) -> FloatArray:
        """Return the dense columns first:last on the host, in their units."""

    @abstractmethod
    def to_host(self, values: Any) -> Any:
        """Return a vector as NumPy's array."""

    def scores(self, coef: FloatArray) -> Any:
        """Return X @ coef beside the rows."""
        scores = self.empty()
        for rows, tile in self.tiles():
            tile.score_into(coef, scores, rows)
        return scores

    def adjoint(self, v: Any) -> FloatArray:
        """Return X.T @ v, for v of shape (n,) or (n, m)."""
        total = np.zeros((self.n_features, *v.shape[1:]))
        for rows, tile in self.tiles():
            total += tile.adjoint(v[rows])
        return total

    def second_moments(self, weight: Any) -> FloatArray:
        """Return X.T @ diag(weight) @ X, for weights that are not negative."""
        total = np.zeros((self.n_features, self.n_features))
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, tile in self.tiles():
                total += tile.second_moments(weight[rows])
        return total

    def sizes(self, v: Any) -> FloatArray:
        """Return |X|.T @ |v|: the size of what is added up in X.T @ v."""
        total = np.zeros(self.n_features)
        for rows, tile in self.tiles():
            total += tile.sizes(v[rows])
        return total

    def squares(self) -> FloatArray:
        """Return the sum of squares of each column."""
        total = np.zeros(self.n_features)
        for _, tile in self.tiles():
            total += tile.squares()
        return total


def design_kind(X: Any) -> type[Design]:
    """Return the class that can read such a matrix."""
    place = KINDS.get(type(X).__module__.partition(".")[0], "toprank.blocks.host:HostDesign")
    module, _, name = place.partition(":")
    kind: type[Design] = getattr(import_module(module), name)
    return kind


def design_of(X: Any, units: Units) -> Design:
    """Return the design of a block's matrix."""
    return design_kind(X)(X, units)
