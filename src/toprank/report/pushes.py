"""The push at every p, fitted to some rows of a table.

The fits to a fold start from those to all rows: their minima are unique, and so are their scores,
up to the tolerance of a fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toprank._numerics import FloatArray
from toprank.models.preparation import Preparation
from toprank.models.rows import TrainingRows
from toprank.rankers import PNormPush
from toprank.report.table import Table
from toprank.tuning.grid import GridFit, fit_grid
from toprank.tuning.rows import TuningRows

#: L2 penalty of the push, on its normalised objective.
ALPHA = 1e-3


@dataclass(frozen=True)
class Pushes:
    """One push per p, fitted to the same rows.

    Attributes
    ----------
    preparation : Preparation
        How the columns became numbers.
    rankers : list of PNormPush
    Z : array
        The rows that they were fitted to, prepared.
    grid : GridFit
        What later fits to most of the same rows start from.
    """

    preparation: Preparation
    rankers: list[PNormPush]
    Z: FloatArray
    grid: GridFit

    def scores(self, Z: FloatArray) -> FloatArray:
        """Scores of prepared rows, a line per p."""
        return np.array([ranker.decision_function(Z) for ranker in self.rankers])

    def resembles(self, preparation: Preparation) -> bool:
        """Whether its coefficients mean nearly the same as those of another preparation.

        The components of a text are others for other rows.
        """
        mine = self.preparation
        return len(mine.texts) == 0 and np.array_equal(mine.names, preparation.names)


def fit_pushes(
    table: Table,
    ps: Sequence[float],
    rows: TrainingRows,
    random_state: int,
    near: Pushes | None = None,
) -> Pushes:
    """Prepare some rows and fit the push at every p to them, from fits to most of the same rows."""
    preparation = Preparation("linear", random_state)
    Z = preparation.fit_transform(table.schema, table.for_lines(rows), rows.weight)
    light = TuningRows(Z, rows.y, rows.weight).in_lighter_form()
    templates = [PNormPush(p, alpha=ALPHA, warm_start=True) for p in ps]
    start = near.grid if near is not None and near.resembles(preparation) else None
    grid = fit_grid(templates, 1, light.X, light.y, light.weight, start)
    for ranker, coef in zip(templates, grid.coefs, strict=True):
        # from there a fit has little to do but to certify it, and to fit the link
        ranker.coef_ = coef.reshape(1, -1)
        ranker.fit(light.X, light.y, light.weight)
    return Pushes(preparation, templates, Z, grid)
