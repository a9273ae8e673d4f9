"""Parquet files of several row groups: where a batch ends depends on which columns are read."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from toprank.cli.io import source as io_source
from toprank.cli.io.tables import open_table
from toprank.cli.io.text import TextTable

BATCH = 1_000  # the fewest rows of a batch


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(io_source, "_CELLS", 1)


def write(path, frame, dictionaries, rows_of_group):
    """Write row groups of so many rows, each with a dictionary of its own."""
    groups = []
    for start in range(0, len(frame), rows_of_group):
        rows = pa.Table.from_pandas(frame[start : start + rows_of_group], preserve_index=False)
        for name in dictionaries:
            place = rows.column_names.index(name)
            column = rows.column(name).combine_chunks().dictionary_encode()
            rows = rows.set_column(place, name, column)
        groups.append(rows)
    path.parent.mkdir(exist_ok=True)
    with pq.ParquetWriter(path, groups[0].schema) as file:
        for rows in groups:
            file.write_table(rows)
    return path


@pytest.mark.parametrize("dictionaries", [[], ["word"], ["name"], ["word", "name"]])
@pytest.mark.parametrize("rows_of_group", [300, BATCH, 1_700])
@pytest.mark.parametrize("files", [1, 2])
def test_carried_columns_are_of_the_same_rows(
    small_batches, tmp_path, files, rows_of_group, dictionaries
):
    n = 2_500
    frame = pd.DataFrame({"number": np.arange(n), "part": np.repeat([0, 1], n // 2)})
    frame["word"] = [f"w{i}" for i in range(n)]
    frame["name"] = [f"n{i}" for i in range(n)]
    place = tmp_path / "rows"
    for number, rows in enumerate([frame] if files == 1 else [frame[:1_400], frame[1_400:]]):
        write(place / f"{number}.parquet", rows, dictionaries, rows_of_group)
    with open_table(place if files > 1 else place / "0.parquet") as source:
        chunks = list(source.chunks(["word", "number"], {}, ["part", "name", "number"]))
    seen = 0
    for chunk in chunks:
        assert chunk.start == seen
        assert chunk.rows.column_names == ["word", "number"]
        assert chunk.carried.column_names == ["part", "name", "number"]
        numbers = chunk.rows.column("number").to_pylist()
        assert numbers == list(range(seen, seen + len(numbers)))
        assert chunk.rows.column("word").to_pylist() == [f"w{i}" for i in numbers]
        assert chunk.carried.column("name").to_pylist() == [f"n{i}" for i in numbers]
        assert chunk.carried.column("number").to_pylist() == numbers
        assert chunk.carried.num_rows == len(numbers) <= BATCH
        seen += len(numbers)
    assert seen == n


def test_names_of_folders_are_carried_beside_the_rows_of_their_files(small_batches, tmp_path):
    for day in (1, 2):
        rows = pd.DataFrame({"x": np.arange(1_500.0) + 1_500 * (day - 1)})
        write(tmp_path / f"day={day}" / "part.parquet", rows, [], 400)
    with open_table(tmp_path) as source:
        chunks = list(source.chunks(["x"], {}, ["day"]))
    for chunk in chunks:
        expected = [1 + (x >= 1_500) for x in chunk.rows.column("x").to_pylist()]
        assert chunk.carried.column("day").to_pylist() == expected
    assert sum(chunk.rows.num_rows for chunk in chunks) == 3_000


def test_readings_that_are_cut_at_different_rows_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,x\n2,y\n3,z\n")
    monkeypatch.setattr(TextTable, "_carried", lambda *_: iter([pa.table({"b": ["x", "y"]})]))
    with (
        open_table(path) as source,
        pytest.raises(RuntimeError, match=r"Two readings of '.*rows\.csv' were cut"),
    ):
        list(source.chunks(["a"], {}, ["b"]))


@pytest.fixture(scope="module")
def customers():
    rng = np.random.default_rng(0)
    n = 2_500
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "city": rng.choice(["Rome", "Oslo", "Bern"], n),
            "id": [f"c{i:04d}" for i in range(n)],
            "team": np.sort(rng.choice([f"t{i}" for i in range(90)], n)),
        }
    )
    return frame.assign(y=np.where(frame.x + rng.normal(size=n) > 1.4, "yes", "no"))


@pytest.mark.more
@pytest.mark.parametrize("dictionaries", [["id", "team", "y"], ["city"]])
@pytest.mark.parametrize("rows_of_group", [700, BATCH, 1_700])
def test_lists_and_figures_are_those_of_a_file_without_dictionaries(
    small_batches, customers, tmp_path, invoke, dictionaries, rows_of_group
):
    plain = write(tmp_path / "plain.parquet", customers, [], len(customers))
    several = write(tmp_path / "several.parquet", customers, dictionaries, rows_of_group)
    model = tmp_path / "model"
    given = ["-y", "y", "--positive", "yes", "--id", "id", "--groups", "team", "--p", 4]
    done = invoke("fit", plain, *given, "-o", model, "-q")
    assert done.exit_code == 0, done.output
    found = []
    for path in (plain, several):
        answers = []
        for limits in ([], ["--per-group", "team"], ["--limit-by", "city", "--at-most", "Rome=3"]):
            listed = tmp_path / "list.csv"
            done = invoke("rank", model, path, "--top", 9, "--id", "team", *limits, "-o", listed)
            assert done.exit_code == 0, done.output
            answers.append(listed.read_text())
        for memory in ([], ["--memory", "100kB"]):  # all rows; a sample of whole teams
            done = invoke("evaluate", model, path, "--metric", "auc", "--json", "-q", *memory)
            assert done.exit_code == 0, done.output
            figures = json.loads(done.stdout)
            answers.append([figures[name] for name in ("rows", "positives", "metrics")])
        found.append(answers)
    assert found[0] == found[1]
    assert found[0][-2][0] == len(customers) > found[0][-1][0]
