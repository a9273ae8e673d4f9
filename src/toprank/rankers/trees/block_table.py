"""Rows of a block source as a library of trees reads them: some at a time, pass after pass."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import AnyArray, Matrix
from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.blocks import Block
from toprank.rankers.trees.plan import TreePlan, TreeRows

if TYPE_CHECKING:
    import xgboost


@dataclass(frozen=True)
class BlockTable:
    """The features of chosen rows of a source; ``chosen`` has a truth value for every row.

    ``folder`` is where XGBoost may keep pages of its own.
    """

    source: Any
    chosen: NDArray[np.bool_]
    folder: str

    def parts(self) -> Iterator[np.ndarray]:
        """Yield the features of the chosen rows, block by block, where a block has any."""
        first = 0
        for block in self.source.read():
            here = self.chosen[first : first + block.n_rows]
            first += block.n_rows
            if here.any():
                yield block_numbers(block.X, np.flatnonzero(here))
        if first != len(self.chosen):
            raise RuntimeError(
                f"A pass brought {first} rows where an earlier one brought {len(self.chosen)}: "
                "every pass must bring the same rows in the same order."
            )


def block_numbers(X: Matrix, rows: NDArray[np.intp]) -> np.ndarray:
    """Return some rows of the X of a block, dense."""
    some = X[rows]
    return np.asarray(some.toarray() if hasattr(some, "toarray") else some)


def read_labels(source: Any) -> tuple[np.ndarray, FloatArray | None]:
    """Return the labels and weights of all rows of a source: nine bytes per row at the most."""
    labels: list[np.ndarray] = []
    weights: list[FloatArray] = []
    for block in source.read(features=False):
        _check_labelled(block)
        labels.append(np.asarray(block.y))
        if block.weight is not None:
            weights.append(np.asarray(block.weight, np.float64))
    return np.concatenate(labels), np.concatenate(weights) if weights else None


def _check_labelled(block: Block) -> None:
    if block.y is None:
        raise ValueError(
            "The source has no labels: it can be scored, not fitted. Pass y= (arrays) or target= "
            "(tables) when the source is made."
        )


def _check_sizes(part: AnyArray) -> None:
    """Refuse entries that XGBoost would take for infinity."""
    most = np.finfo(np.float32).max
    bad = np.flatnonzero(np.any(np.abs(part) > most, axis=0))
    if len(bad):
        raise ValueError(
            f"Column {bad[0]} has entries beyond {most:.2g} in size, or infinity, which XGBoost "
            "cannot read. Scale the column, or replace infinity."
        )


def external_matrix(
    rows: TreeRows, plan: TreePlan, names: list[str] | None, reference: object = None
) -> xgboost.DMatrix:
    """Return XGBoost's matrix of rows that stay where they are; it keeps its bins in a folder."""
    xgboost = require("xgboost", "xgboost")
    table: BlockTable = rows.X
    weight = None if rows.weight is None else rows.weight.astype(np.float32)
    label = rows.y.astype(np.float32)

    class Parts(xgboost.DataIter):  # type: ignore[name-defined]
        """Hands over one block after another."""

        def __init__(self) -> None:
            self.reset()
            name = f"pages-{len(os.listdir(table.folder))}"
            os.mkdir(os.path.join(table.folder, name))
            super().__init__(cache_prefix=os.path.join(table.folder, name, "page"))

        def reset(self) -> None:
            self._parts, self._first = table.parts(), 0

        def next(self, input_data: Callable[..., object]) -> bool:
            part = next(self._parts, None)
            if part is None:
                return False
            _check_sizes(part)
            here = slice(self._first, self._first + len(part))
            self._first += len(part)
            given = {} if weight is None else {"weight": weight[here]}
            input_data(data=part, label=label[here], feature_names=names, **given)
            return True

    options: dict[str, int] = {"nthread": plan.n_threads}
    if hasattr(xgboost, "ExtMemQuantileDMatrix"):
        return xgboost.ExtMemQuantileDMatrix(
            Parts(), max_bin=plan.max_bins, ref=reference, **options
        )
    return xgboost.DMatrix(Parts(), **options)
