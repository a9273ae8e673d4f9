"""Tables of columns of any kind in blocks: what is read, and what is refused."""

import datetime
import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from toprank.blocks import from_tables
from toprank.models import ModelError, fit_table_blocks

DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(days=day) for day in range(60)]


def leads(rows=slice(None)):
    frame = pd.DataFrame({"city": ["Rome", "Oslo", None] * 20, "visits": range(60), "day": DAYS})
    return frame.assign(bought=(frame.visits % 7 > 3).astype(int))[rows]


@pytest.fixture
def folder(tmp_path):
    """Two files below folders that are a column, in row groups of 20."""
    for name, rows in (("year=1", slice(0, 40)), ("year=2", slice(40, 60))):
        (tmp_path / name).mkdir()
        table = pa.Table.from_pandas(leads(rows), preserve_index=False)
        pq.write_table(table, tmp_path / name / "part.parquet", row_group_size=20)
    return tmp_path


def test_row_groups_are_read_one_by_one_with_the_columns_of_folders_and_dates_as_times(folder):
    source = from_tables(folder)
    assert source.groups == [(0, 0), (0, 1), (1, 0)]
    groups = [source.read_group(*place) for place in source.groups]
    assert [group.num_rows for group in groups] == [20, 20, 20]
    whole = pa.concat_tables(groups)
    assert whole.column_names == ["city", "visits", "day", "bought", "year"]
    assert whole["visits"].to_pylist() == list(range(60))
    assert whole["year"].to_pylist() == [1] * 40 + [2] * 20
    assert [time.date() for time in whole["day"].to_pylist()] == DAYS
    blocks = pa.concat_tables([block.X for block in source.read()])
    assert blocks.equals(whole)


@pytest.mark.parametrize("rows", ["files", "batches"])
def test_scores_of_tables_are_an_array_in_the_order_of_the_rows(folder, rows):
    source = from_tables(folder if rows == "files" else lambda: [leads()], block_rows=15)
    scores = source.write_scores(lambda table: 2.0 * table["visits"].to_numpy())
    np.testing.assert_array_equal(scores, 2.0 * np.arange(60))


def test_tables_without_rows_or_without_anything_are_refused(tmp_path):
    empty = leads(slice(0, 0))
    pq.write_table(pa.Table.from_pandas(empty, preserve_index=False), tmp_path / "a.parquet")
    for source in (from_tables(tmp_path), from_tables(lambda: [empty])):
        with pytest.raises(ModelError, match="no rows of positive weight"):
            fit_table_blocks(source, "bought")
    with pytest.raises(ValueError, match="no rows, and no names of columns either"):
        from_tables(list)


def test_columns_that_a_file_lacks_are_named(folder):
    with pytest.raises(ValueError, match=r"part\.parquet has no column 'age'"):
        from_tables(folder, columns=["age"])
    pq.write_table(pa.table({"city": ["Bern"]}), folder / "year=2" / "part.parquet")
    with pytest.raises(ValueError, match=r"year=2.* has no column 'visits', which .*year=1"):
        from_tables(folder)
    assert from_tables(folder, columns=["city"]).names == ["city"]


def test_blocks_need_rows(folder):
    for rows in (folder, lambda: [leads()]):
        with pytest.raises(ValueError, match="block_rows=-1: expected a number of rows"):
            from_tables(rows, block_rows=-1)


def test_a_table_that_grows_before_its_numbers_are_written_is_refused():
    source = from_tables(lambda: [leads()])
    numbers = (np.ones((60, 1)), np.ones(60, dtype=bool), None)
    with (
        pytest.raises(RuntimeError, match="more rows than the 59 of an earlier one"),
        source.numbers(lambda table: numbers, 59, 1),
    ):
        pass


@pytest.mark.parametrize("system", ["here", "without advice"])
def test_numbers_are_read_again_and_again_on_every_system(monkeypatch, system):
    if system == "without advice":  # as Windows is
        monkeypatch.delattr("mmap.MADV_DONTNEED", raising=False)
    source = from_tables(lambda: (leads(slice(i, i + 20)) for i in (0, 20, 40)), block_rows=20)

    def prepare(table):
        x = np.asarray(table["visits"], dtype=float)
        return x[:, None], x > 30, None

    with source.numbers(prepare, 60, 1) as made:
        for _ in range(2):
            parts = list(made.map(lambda block: float(np.sum(block.X[:]))))
            assert sum(parts) == sum(range(60))


def test_a_disk_without_room_for_the_numbers_is_named_with_the_ways_out(monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=10))
    with pytest.raises(OSError, match=r"has 0\.0 GB left\. Name another folder.* TMPDIR"):
        fit_table_blocks(from_tables(lambda: [leads()]), "bought", model="pnorm")
