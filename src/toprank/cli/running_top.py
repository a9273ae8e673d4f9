"""The first k rows of a list that is never held whole."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._extras import require
from toprank._numerics import FloatArray

_LEAST = 100_000  # rows that wait together, so that short lists are not sorted all the time


class RunningTop:
    """Keeps the k highest scores and their rows; among equal scores the earlier rows stay.

    Parameters
    ----------
    k : int or None
        How many rows to keep; None for all.

    Attributes
    ----------
    scores : array
        The scores kept; after `settle`, the highest first.
    places : array of int
        Where their rows stand in the whole list, counted from 0.
    rows : pyarrow.Table
        The rows themselves, in the same order.
    tied_out : int
        How many rows have the last score that is kept, and were left out.
    n : int
        How many rows were offered.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa
    >>> top = RunningTop(2)
    >>> top.add(np.array([1.0, 3.0]), pa.table({"name": ["a", "b"]}))
    >>> top.add(np.array([1.0, 0.0]), pa.table({"name": ["c", "d"]}))
    >>> top.settle()
    >>> top.rows.column("name").to_pylist(), top.tied_out
    (['b', 'a'], 1)
    """

    def __init__(self, k: int | None) -> None:
        self.k = k
        self.scores: FloatArray = np.empty(0)
        self.places: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self.rows: Any = None
        self.tied_out = self.n = 0
        self._waiting: list[tuple[FloatArray, NDArray[np.intp], Any]] = []
        self._n_waiting = 0

    @property
    def cut(self) -> float:
        """The last score that is kept, once there are k rows; before, everything is kept."""
        full = self.k is not None and len(self.scores) == self.k
        return float(self.scores[-1]) if full else -np.inf

    def add(self, scores: FloatArray, rows: Any) -> None:
        """Offer the next rows of the list and their scores."""
        cut = self.cut
        better = np.flatnonzero(scores > cut) if cut > -np.inf else np.arange(len(scores))
        self.tied_out += int(np.count_nonzero(scores == cut))
        if len(better):
            self._waiting.append((scores[better], self.n + better, rows.take(better)))
            self._n_waiting += len(better)
        self.n += len(scores)
        if self.k is not None and self._n_waiting >= max(self.k, _LEAST):
            self.settle()

    def settle(self) -> None:
        """Put the rows that wait in their places, and let go of those beyond k."""
        if not self._waiting:
            return
        before = self.cut
        kept = [] if self.rows is None else [(self.scores, self.places, self.rows)]
        scores, places, tables = zip(*kept, *self._waiting, strict=True)
        self._waiting, self._n_waiting = [], 0
        both = np.concatenate(scores)
        order = np.argsort(-both, kind="stable")  # what came first stays first
        chosen, left = order[: self.k], order[len(order) if self.k is None else self.k :]
        self.scores, self.places = both[chosen], np.concatenate(places)[chosen]
        merged = require("pyarrow", "frames").concat_tables(tables, promote_options="permissive")
        self.rows = merged.take(chosen)
        if self.cut != before:
            self.tied_out = 0
        self.tied_out += int(np.count_nonzero(both[left] == self.cut))
