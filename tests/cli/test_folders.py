"""Tables in several Parquet files: folders, patterns, addresses, names of folders as columns."""

import numpy as np
import pandas as pd
import pytest

from toprank.cli.io.tables import open_table
from toprank.cli.terminal import Failure


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + rng.normal(size=400) > 0.8).astype(int)
    frame = pd.DataFrame(X, columns=list("abc"))
    return frame.assign(kind=np.where(rng.random(400) < 0.5, "x", "z"), y=y)


@pytest.fixture
def folder(table, tmp_path):
    place = tmp_path / "parts"
    place.mkdir()
    for number in range(4):
        table[100 * number : 100 * number + 100].to_parquet(place / f"{number}.parquet")
    return place


def read(path):
    with open_table(path) as source:
        return source.read().to_pandas()


def test_a_folder_is_the_table_of_its_files(table, folder):
    pd.testing.assert_frame_equal(read(folder), table)
    pd.testing.assert_frame_equal(
        read(folder / "[12].parquet"), table[100:300].reset_index(drop=True)
    )
    with open_table(folder) as source:
        assert source.count_rows() == 400
        chunks = list(source.chunks(["a", "kind"], {}))
    assert sum(chunk.rows.num_rows for chunk in chunks) == 400
    assert chunks[-1].done == chunks[-1].total == 400


def test_names_of_folders_are_columns(table, tmp_path):
    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
        table[:50].to_parquet(tmp_path / f"day={day}" / "part.parquet")
    found = read(tmp_path)
    assert found["day"].tolist() == [1] * 50 + [2] * 50


@pytest.mark.more
def test_models_and_lists_are_those_of_one_file(table, folder, tmp_path, invoke):
    table.to_parquet(tmp_path / "one.parquet")
    lists = []
    for name, rows in (("one", tmp_path / "one.parquet"), ("many", folder)):
        model, listed = tmp_path / name, tmp_path / f"{name}.csv"
        answer = invoke("fit", rows, "-y", "y", "-o", model, "-q")
        assert answer.exit_code == 0, answer.output
        answer = invoke("rank", model, rows, "--top", 20, "-o", listed)
        assert answer.exit_code == 0, answer.output
        lists.append(listed.read_text())
        assert invoke("evaluate", model, rows).exit_code == 0
    assert lists[0] == lists[1]


def test_an_address_in_a_store(table):
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    store = fsspec.filesystem("memory")
    with store.open("/lists/part.parquet", "wb") as file:
        table.to_parquet(file)
    from pathlib import Path

    pd.testing.assert_frame_equal(read(Path("memory://lists")), table)
    store.rm("/lists", recursive=True)


def test_an_address_of_a_file_keeps_its_root(table, tmp_path):
    place = tmp_path / "rows"
    place.mkdir()
    table.to_parquet(place / "part.parquet")
    # the command line has a Path of it, which keeps one slash of three
    pd.testing.assert_frame_equal(read(type(tmp_path)(f"file://{place}")), table)


def test_types_are_those_of_the_first_file(table, folder):
    table[:100].assign(a=1).to_parquet(folder / "4.parquet")  # whole numbers
    assert read(folder)["a"].dtype == np.float64


class TestBadInput:
    def test_other_columns(self, table, folder):
        table[:10].drop(columns="b").to_parquet(folder / "4.parquet")
        with pytest.raises(Failure, match=r"has the column 'b' and .*4\.parquet' has not"):
            read(folder)

    def test_other_types(self, table, folder):
        table[:10].assign(b="word").to_parquet(folder / "4.parquet")
        with pytest.raises(Failure, match=r"4\.parquet' has other types than"):
            read(folder)

    def test_no_files(self, tmp_path):
        with pytest.raises(Failure, match="is a folder without Parquet files"):
            read(tmp_path)
        with pytest.raises(Failure, match="stands for no Parquet files"):
            read(tmp_path / "*.parquet")

    def test_a_damaged_file(self, folder):
        (folder / "2.parquet").write_bytes(b"PAR1 and no more")
        with pytest.raises(Failure, match=r"2\.parquet cannot be read as Parquet"):
            read(folder)

    def test_a_file_that_changes_while_it_is_read(self, table, folder):
        with open_table(folder) as source:
            table[:99].to_parquet(folder / "3.parquet")
            with pytest.raises(Failure, match="has changed since"):
                source.read()

    def test_files_without_rows(self, table, folder):
        for file in folder.iterdir():
            table[:0].to_parquet(file)
        with pytest.raises(Failure, match="has column names but no rows"):
            read(folder)

    def test_a_file_that_announces_a_row_more_than_it_has(self, tmp_path):
        file = tmp_path / "1.parquet"
        pd.DataFrame({"x": range(1000)}).to_parquet(file)
        data = file.read_bytes()
        at = data.rindex(b"\x16\xd0\x0f")  # the rows of its group, 1000, as Thrift writes them
        file.write_bytes(data[:at] + b"\x16\xd2\x0f" + data[at + 3 :])
        with pytest.raises(Failure, match="has 1000 of the 1001 rows that its files announce"):
            read(tmp_path)


def test_names_of_files_in_the_place_of_a_pattern_are_explained(invoke, tmp_path):
    files = [tmp_path / f"{number}.parquet" for number in range(3)]
    answer = invoke("fit", *files, "-y", "bought", "-o", tmp_path / "m")
    assert answer.exit_code == 2
    said = " ".join(answer.stderr.replace("│", " ").split())
    assert "is quoted: 'folder/*.parquet'" in said
