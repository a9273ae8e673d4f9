"""Trees on Spark: a barrier stage whose tasks train together, each on its partition.

The tasks speak through XGBoost's communicator, which the first of them sets up. The rows go from
Spark to the tasks once, as Arrow batches; what was learned comes back as one row.
"""

from __future__ import annotations

import json
import pickle  # nosec B403
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank._arrays import Frame
from toprank._extras import require
from toprank.blocks.spark import check_frame
from toprank.blocks.spark_jobs import run_job
from toprank.interop.team import xgboost_team
from toprank.rankers.trees.distributed import (
    Learned,
    Part,
    grow_together,
    ready_to_ship,
    with_start,
)
from toprank.rankers.trees.distributed_dask import start_tracker

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark import BarrierTaskContext
    from pyspark.sql import DataFrame


#: The column that tells rows to stop by from rows to train on.
_HELD = "__toprank_held"


def fit_spark(
    trees: Any,
    data: DataFrame,
    features: list[str],
    roles: dict[str, str | None],
    eval_data: DataFrame | None,
    num_workers: int | None,
) -> Any:
    """Fit a `PushTrees` that is prepared to a Spark data frame; see `PushTrees.fit_spark`."""
    require("xgboost", "xgboost")
    columns = [*features, *(name for name in roles.values() if name is not None)]
    for frame in (data, eval_data):
        if frame is not None:
            check_frame(frame, columns)
    trees.n_features_in_ = len(features)
    trees.feature_names_in_ = np.array(features, dtype=object)
    workers = _task_count(data, num_workers)
    rows = _flag_rows(data, columns, eval_data)
    if rows.rdd.getNumPartitions() != workers:
        rows = rows.repartition(workers)
    task = _Task(ready_to_ship(trees), features, roles, eval_data is not None)
    grown = rows.mapInArrow(task, "error boolean, what binary", barrier=True)
    answers = run_job(data.sparkSession, grown.collect)
    # from the tasks of this very job: Spark itself unpickles whatever they send
    answer = pickle.loads(bytes(answers[0]["what"]))  # nosec B301
    if answers[0]["error"]:
        raise answer
    return answer.hand_to(trees)


def _task_count(data: DataFrame, num_workers: int | None) -> int:
    if num_workers is None:
        return max(1, int(data.sparkSession.sparkContext.defaultParallelism))
    if num_workers < 1:
        raise ValueError(f"num_workers={num_workers} is not a number of tasks; expected 1 or more.")
    return int(num_workers)


def _flag_rows(data: DataFrame, columns: list[str], eval_data: DataFrame | None) -> DataFrame:
    """All rows in one frame, those to stop by marked."""
    literal = require("pyspark.sql.functions", "spark").lit
    rows = data.select(*columns).withColumn(_HELD, literal(False))
    if eval_data is None:
        return rows
    return rows.union(eval_data.select(*columns).withColumn(_HELD, literal(True)))


class _Task:
    """What one task of the barrier stage does; called with the batches of its partition."""

    def __init__(
        self, trees: object, features: list[str], roles: dict[str, str | None], evaluates: bool
    ):
        self.trees = trees
        self.features = features
        self.roles = roles
        self.evaluates = evaluates

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import BarrierTaskContext
        from xgboost.collective import CommunicatorContext

        context = BarrierTaskContext.get()
        frame = self._frame(batches)
        held = frame.pop(_HELD).to_numpy(dtype=bool)
        mine = self._parts(context.partitionId(), frame[~held])
        theirs = self._parts(context.partitionId(), frame[held]) if self.evaluates else None
        error = False
        with CommunicatorContext(**_communicator(context)):
            try:
                answer: Learned | Exception = grow_together(
                    self.trees, mine, theirs, xgboost_team()
                )
            except (TypeError, ValueError) as problem:  # the same on every worker
                error, answer = True, problem
        if context.partitionId() == 0:
            yield _answer_row(error, answer)

    def _frame(self, batches: Iterator[pa.RecordBatch]) -> pd.DataFrame:
        arrow = require("pyarrow", "spark")
        tables = [arrow.Table.from_batches([batch]) for batch in batches]
        if tables:
            return arrow.concat_tables(tables).to_pandas()
        columns = [*self.features, *(name for name in self.roles.values() if name), _HELD]
        return require("pandas", "spark").DataFrame({name: np.zeros(0) for name in columns})

    def _parts(self, index: int, frame: Frame) -> list[Part]:
        columns = {
            role: frame[name].to_numpy() for role, name in self.roles.items() if name is not None
        }
        return with_start(self.trees, [Part.of(index, frame[self.features], **columns)])


def _answer_row(error: bool, answer: object) -> pa.RecordBatch:
    arrow = require("pyarrow", "spark")
    return arrow.RecordBatch.from_pydict({"error": [error], "what": [pickle.dumps(answer)]})


def _communicator(context: BarrierTaskContext) -> dict[str, str | int]:
    """The first task sets up the meeting point and tells the others where it is."""
    mine = ""
    if context.partitionId() == 0:
        infos = context.getTaskInfos()
        mine = json.dumps(start_tracker(len(infos), infos[0].address.split(":")[0], "spark"))
    arguments = json.loads(context.allGather(mine)[0])
    return {**arguments, "dmlc_task_id": f"{context.partitionId():06d}"}
