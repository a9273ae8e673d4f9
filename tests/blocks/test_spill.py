"""What an executor of Spark writes of a partition, without Spark."""

import gc
import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from toprank.blocks import spill


def batch(**others):
    columns = {"price": [Decimal("1.50"), Decimal("2.25")], "member": [True, False], "y": [0, 1]}
    return pa.RecordBatch.from_pydict({**columns, **others})


def job(folder, **others):
    given = {"target": "y", "weight": None, "directory": folder, "token": "toprank-test"}
    return spill.Spill(["price", "member"], **{**given, **others})


def test_decimals_and_truth_values_are_numbers_and_come_back_as_written(tmp_path):
    path, kept = job(str(tmp_path)).write(iter([batch(), batch(y=[1, 1])]), 3)
    block = spill.open_spilled(3, path, spill.as_text(kept))
    np.testing.assert_array_equal(block.X, [[1.5, 1.0], [2.25, 0.0]] * 2)
    assert block.y.tolist() == [0, 1, 1, 1] and block.weight is None


def test_a_block_that_is_gone_is_forgotten_when_the_next_one_is_opened(tmp_path):
    work = job(str(tmp_path))
    first, kept = work.write(iter([batch()]), 0)
    spill.open_spilled(0, first, spill.as_text(kept))
    work.clear()
    assert list(tmp_path.iterdir()) == []
    second, kept = work.write(iter([batch()]), 1)
    spill.open_spilled(1, second, spill.as_text(kept))
    assert second in spill._OPEN and first not in spill._OPEN


def test_the_folder_is_that_of_spark_where_there_is_one(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/elsewhere")
    work = job(None)
    path, _ = work.write(iter([batch()]), 0)
    assert path.startswith(str(tmp_path))
    work.clear()
    assert list(tmp_path.iterdir()) == []


def test_a_task_tells_the_driver_where_the_files_are_or_what_went_wrong(tmp_path):
    pytest.importorskip("pyspark")
    (told,) = job(str(tmp_path))(iter([batch()]))
    (row,) = told.to_pylist()
    block = spill.open_spilled(row["index"], row["path"], row["files"])
    assert row["error"] is None and block.y.tolist() == [0, 1]
    (told,) = job(str(tmp_path))(iter([batch(y=[None, 1])]))
    (row,) = told.to_pylist()
    problem = spill.spill_error(row["error"])
    assert isinstance(problem, ValueError) and row["path"] is None
    assert str(problem) == "The column 'y' holds 1 nulls; drop those rows."
    (told,) = job(str(tmp_path / "nowhere"))(iter([batch()]))
    kind, text = json.loads(told.to_pylist()[0]["error"])
    assert kind == "OSError" and "point spill_dir= to a larger disk" in text


def test_what_a_worker_has_imported_is_left_out_of_its_next_collection(monkeypatch):
    monkeypatch.setitem(spill._FROZEN, "modules", 0)
    try:
        before = len(gc.get_objects())
        spill.spare_collector()
        assert len(gc.get_objects()) < before / 10
        later = [[] for _ in range(1000)]
        spill.spare_collector()  # nothing was imported in between
        assert len(gc.get_objects()) > len(later)
    finally:
        gc.unfreeze()
