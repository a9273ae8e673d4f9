"""Scores as a column of a Spark frame: an expression of its own, or by Python, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank._arrays import Matrix
from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.blocks.spill import matrix

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame


def quoted(name: str) -> str:
    """A name of a column in which Spark sees nothing but a name."""
    return "`" + name.replace("`", "``") + "`"


def number_columns(df: DataFrame) -> DataFrame:
    """Give columns numbers for names: `mapInArrow` fails at a name with a dot or a backtick."""
    return df.toDF(*(f"c{place}" for place in range(len(df.columns))))


def linear_column(score: Any, features: Sequence[str]) -> Column:
    """The score x' coef plus an offset as a column; NaN where a feature is null, as in the fit."""
    functions = require("pyspark.sql.functions", "spark")
    centre = score.units.centre
    total = functions.lit(float(score.offset))
    for j, name in enumerate(features):
        value = functions.col(quoted(name)).cast("double")
        if centre is not None:
            value = value - float(centre[j])
        total = total + value * float(score.coef[j])
    # a sum with a null is null
    return functions.coalesce(total, functions.lit(float("nan")))


class AddScores:
    """Adds a column of scores, the last of the names, to Arrow batches of numbered columns."""

    def __init__(
        self, score: Callable[[Matrix], FloatArray], features: list[str], names: list[str]
    ):
        self.score = score
        self.features = features
        self.names = names

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrow = require("pyarrow", "spark")
        for batch in batches:
            scores = np.zeros(0)
            if batch.num_rows:
                rows = arrow.RecordBatch.from_arrays(batch.columns, self.names[:-1])
                X = matrix(rows, self.features)
                scores = np.asarray(self.score(X), dtype=np.float64)
            columns = [*batch.columns, arrow.array(scores, arrow.float64())]
            yield arrow.RecordBatch.from_arrays(columns, self.names)
