"""Few rows of many columns, turned into as many columns as there are rows.

Scores and the penalty |coef|^2 stay what they are when the columns are turned, and the minimum lies
in the span of the rows. With X' = Q R (Householder, so that each row is exact to its own size), the
rows R' have the same minimum in coordinates of which Q makes the coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from toprank._numerics import FloatArray
from toprank.blocks.memory import ArraySource
from toprank.objective.data import LabelledData
from toprank.objective.forms import problem_of
from toprank.objective.problem import TwoClassProblem

#: Columns from which turning repays its price, and how many there must be of them for each row.
_COLUMNS, _COLUMNS_PER_ROW = 256, 1.2
#: The most rows, and entries, that are turned.
_ROWS, _ENTRIES = 2000, 1 << 24
#: How much larger than most a column may be: rounding to a row's size must leave digits to all.
_LARGER = 1e6


@dataclass(frozen=True)
class Turned:
    """Rows in coordinates of the space that they span, and the way back to all columns.

    Attributes
    ----------
    data : LabelledData
        The rows there.
    reflectors, factors : arrays
        Householder's form of Q, as LAPACK's geqrf leaves it.
    """

    data: LabelledData
    reflectors: FloatArray
    factors: FloatArray

    @classmethod
    def of(cls, data: LabelledData) -> Turned | None:
        """Turn dense rows in memory; None where that saves no time, or costs digits."""
        d = data.n_features
        few = _COLUMNS_PER_ROW * data.n_rows <= d and data.n_rows <= _ROWS
        dense = isinstance(data.source, ArraySource) and not data.sparse
        if not (few and dense and d > _COLUMNS and data.entries <= _ENTRIES):
            return None
        spread = data.column_spread()
        spread = spread[spread > 0]
        if not len(spread) or not np.max(spread) <= _LARGER * np.median(spread):
            return None
        (reflectors, factors), triangle = linalg.qr(
            data.dense(np.arange(data.n_rows)).T,
            mode="raw",
            overwrite_a=True,
            check_finite=False,
        )
        rows = np.ascontiguousarray(triangle[: data.n_rows].T)
        return cls(_like(data, rows), reflectors, factors)

    def others(self, data: LabelledData) -> Turned:
        """Turn other rows in the same span, such as some of those that made it."""
        rows = self._times(data.dense(np.arange(data.n_rows)).T, "T")[: self.data.n_features]
        return replace(self, data=_like(data, np.ascontiguousarray(rows.T)))

    def problem(self, problem: TwoClassProblem) -> TwoClassProblem:
        """Return the same problem on the turned rows."""
        return problem_of(self.data, problem.task)

    def into(self, coef: FloatArray) -> FloatArray:
        """Return coefficients in the turned coordinates, less the part that changes no score."""
        d = len(self.reflectors)
        turned = self._times(coef[:d, None], "T")[: self.data.n_features, 0]
        return np.append(turned, coef[d:] + self.data.units.shift(turned))

    def back(self, turned: FloatArray) -> FloatArray:
        """Return coefficients of the columns as they were, also of several lines at once."""
        of_rows, intercepts = np.split(np.atleast_2d(turned), [self.data.n_features], axis=1)
        shifts = np.array([[self.data.units.shift(line)] for line in of_rows])
        found = np.hstack([self._out(of_rows.T).T, intercepts - shifts])
        return found.reshape(*turned.shape[:-1], -1)

    def gradient_back(self, gradient: FloatArray) -> FloatArray:
        """Return a gradient in the turned coordinates as one of the columns as they were."""
        of_rows, intercepts = np.split(gradient, [self.data.n_features])
        if len(intercepts) and self.data.units.centre is not None:
            of_rows = of_rows + self.data.units.centre * intercepts
        return np.append(self._out(of_rows[:, None]), intercepts)

    def _out(self, columns: FloatArray) -> FloatArray:
        padded = np.zeros((len(self.reflectors), columns.shape[1]))
        padded[: len(columns)] = columns
        return self._times(padded, "N")

    def _times(self, columns: FloatArray, transposed: str) -> FloatArray:
        """Return Q, or its transpose, times columns."""
        ormqr, given = linalg.lapack.dormqr, (self.reflectors, self.factors)
        work = int(ormqr("L", transposed, *given, columns, -1)[1][0])
        found: FloatArray = ormqr("L", transposed, *given, columns, work)[0]
        return found


def _like(data: LabelledData, rows: FloatArray) -> LabelledData:
    """The same labels and weights on other columns."""
    intercepts = data.size - data.n_features
    return LabelledData.of_arrays(
        rows, *data.labels, intercepts=intercepts, n_jobs=data.source.n_jobs
    )
