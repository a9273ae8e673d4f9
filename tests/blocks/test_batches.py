"""Rows that something else reads: the same fit as of an array, whatever hands them over."""

import sqlite3
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import ipc

from toprank import PNormPush, blocks


def table(n=900, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = (X[:, 0] + rng.normal(size=n) > 0.8).astype(int)
    return pd.DataFrame(X, columns=list("abcd")).assign(bought=y)


def assert_same_fit(source, frame):
    want = PNormPush(p=4).fit(frame[list("abcd")].to_numpy(), frame["bought"].to_numpy())
    got = PNormPush(p=4).fit_blocks(source)
    np.testing.assert_allclose(got.coef_, want.coef_, rtol=1e-9, atol=1e-12)
    scores = source.write_scores(lambda X: np.asarray(X) @ got.coef_[0])
    assert len(scores) == len(frame)
    np.testing.assert_allclose(scores, frame[list("abcd")] @ got.coef_[0])


def pieces(frame, size):
    return lambda: (frame[i : i + size] for i in range(0, len(frame), size))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [9, 64, 5000])
def test_frames_of_pandas_in_pieces(size):
    frame = table(200 if size == 9 else 900)
    assert_same_fit(blocks.from_batches(pieces(frame, size), "bought", block_rows=128), frame)


def test_blocks_do_not_depend_on_the_size_of_the_batches():
    frame = table()
    fits = [
        PNormPush().fit_blocks(blocks.from_batches(pieces(frame, size), "bought", block_rows=100))
        for size in (70, 100, 450)
    ]
    assert all((fit.coef_ == fits[0].coef_).all() for fit in fits)


def test_frames_of_polars():
    polars = pytest.importorskip("polars")
    frame = table()
    source = blocks.from_batches(lambda: [polars.from_pandas(frame)], "bought")
    assert_same_fit(source, frame)


def test_files_of_arrow(tmp_path):
    frame = table()
    with ipc.new_file(tmp_path / "rows.arrow", pa.Schema.from_pandas(frame)) as file:
        for first in range(0, len(frame), 250):
            file.write_table(pa.Table.from_pandas(frame[first : first + 250]))

    def read():
        with ipc.open_file(tmp_path / "rows.arrow") as file:
            yield from (file.get_batch(i) for i in range(file.num_record_batches))

    assert_same_fit(blocks.from_batches(read, "bought", columns=list("abcd")), frame)


def database(tmp_path, frame):
    path = tmp_path / "leads.db"
    with sqlite3.connect(path) as connection:
        frame.to_sql("leads", connection, index=False)
    connection.close()
    return lambda: sqlite3.connect(path)


def test_a_query_to_sqlite(tmp_path):
    frame = table()
    connect = database(tmp_path, frame)
    query = "select * from leads order by rowid"
    assert_same_fit(blocks.from_query(query, connect, "bought", block_rows=200), frame)


def test_whole_numbers_that_become_fractions_further_down(tmp_path):
    frame = table()
    frame["a"] = np.where(np.arange(900) < 500, np.round(frame["a"]), frame["a"])
    connect = database(tmp_path, frame)
    assert_same_fit(
        blocks.from_query("select * from leads order by rowid", connect, "bought"), frame
    )
    frame.to_csv(tmp_path / "leads.csv", index=False)
    assert_same_fit(blocks.from_csv(tmp_path / "leads.csv", "bought"), frame)


def test_a_query_to_duckdb(tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    frame = table()
    path = str(tmp_path / "leads.duckdb")
    with duckdb.connect(path) as connection:
        connection.execute("create table leads as select * from frame")
    source = blocks.from_query("from leads", lambda: duckdb.connect(path, read_only=True), "bought")
    assert_same_fit(source, frame)


def test_rows_of_duckdb_become_no_python_objects():
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    if not hasattr(duckdb.connect().sql("select 1"), "to_arrow_reader"):
        pytest.skip("DuckDB before 2.0 hands over batches by its cursor")

    class Connection:
        def __init__(self):
            self.database = duckdb.connect()

        def sql(self, query):
            return self.database.sql(query)

        def close(self):
            self.database.close()

    query = "select range % 7 as a, range % 3 = 0 as b, range % 2 as y from range(500)"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        source = blocks.from_query(query, Connection, "y")
        assert [block.n_rows for block in source.read()] == [500]


def test_a_csv_file_in_another_dialect_and_compressed(tmp_path):
    frame = table()
    frame.to_csv(tmp_path / "leads.csv.gz", index=False, sep=";", decimal=",")
    source = blocks.from_csv(
        tmp_path / "leads.csv.gz", "bought", delimiter=";", decimal=",", block_rows=333
    )
    assert_same_fit(source, frame)


def test_older_ways_to_hand_over_arrow():
    frame = table()

    class Frame:
        """Of a library that has not heard of the stream of Arrow's C interface."""

        def to_arrow(self):
            return pa.Table.from_pandas(frame)

    assert_same_fit(blocks.from_batches(lambda: [Frame()], "bought"), frame)

    class Connection:
        """As DuckDB before 2.0: what was asked hands over batches."""

        def cursor(self):
            return self

        def execute(self, query):
            return self

        def fetch_record_batch(self, rows):
            return iter(pa.Table.from_pandas(frame).to_batches(max_chunksize=200))

        def close(self):
            pass

    assert_same_fit(blocks.from_query("select *", lambda: Connection(), "bought"), frame)


def test_scores_are_written_to_a_file(tmp_path):
    frame = table()
    source = blocks.from_batches(pieces(frame, 100), "bought")
    ranker = PNormPush().fit_blocks(source)
    ranker.score_blocks(source, to=tmp_path / "scores.parquet")
    written = pd.read_parquet(tmp_path / "scores.parquet")["score"]
    np.testing.assert_allclose(written, ranker.decision_function(frame[list("abcd")]))
    with pytest.raises(ValueError, match=r"expected the name of a \.parquet file"):
        ranker.score_blocks(source, to=tmp_path / "scores.csv")


def test_weights_are_repetitions():
    frame = table()
    times = np.random.default_rng(1).integers(0, 3, len(frame))
    repeated = frame.loc[frame.index.repeat(times)]
    source = blocks.from_batches(pieces(frame.assign(w=times), 100), "bought", weight="w")
    got = PNormPush().fit_blocks(source)
    want = PNormPush().fit(repeated[list("abcd")].to_numpy(), repeated["bought"].to_numpy())
    np.testing.assert_allclose(got.coef_, want.coef_, rtol=1e-7)


class TestBadInput:
    def test_a_reader_instead_of_a_function(self):
        with pytest.raises(TypeError, match="a function that starts a new pass"):
            blocks.from_batches(iter([table()]), "bought")

    def test_a_connection_instead_of_a_function(self, tmp_path):
        connection = database(tmp_path, table())()
        with pytest.raises(TypeError, match="a function that opens a connection"):
            blocks.from_query("select * from leads", connection, "bought")
        connection.close()

    def test_a_pass_with_other_rows(self):
        frame, shrink = table(), iter(range(0, 900, 10))
        source = blocks.from_batches(lambda: [frame[next(shrink) :]], "bought")
        with pytest.raises(RuntimeError, match="rows where an earlier one brought"):
            PNormPush().fit_blocks(source)

    def test_a_pass_in_another_order(self):
        frame, seeds = table(), iter(range(100))
        source = blocks.from_batches(
            lambda: [frame.sample(frac=1.0, random_state=next(seeds))], "bought"
        )
        with pytest.raises(RuntimeError, match="or in another order"):
            PNormPush().fit_blocks(source)

    def test_no_rows(self, tmp_path):
        connect = database(tmp_path, table())
        with pytest.raises(ValueError, match="the query: a pass brought no rows"):
            blocks.from_query("select * from leads where a > 1e9", connect, "bought")

    def test_missing_values_and_words_name_the_column(self, tmp_path):
        frame = table()
        frame.loc[7, "b"] = None
        source = blocks.from_batches(pieces(frame, 100), "bought")
        with pytest.raises(
            ValueError, match="Column 'b' has 1 missing values in the batches, rows"
        ):
            PNormPush().fit_blocks(source)
        words = table().assign(c="x")
        with pytest.raises(ValueError, match="Column 'c' of the batches is text"):
            blocks.from_batches(pieces(words, 100), "bought")
        words.to_csv(tmp_path / "words.csv", index=False)
        with pytest.raises(ValueError, match=r"words\.csv is text"):
            blocks.from_csv(tmp_path / "words.csv", "bought")

    def test_a_later_table_without_a_column_or_of_another_type(self):
        frame = table()
        for later, message in (
            (frame.drop(columns="c"), "a later table has no column 'c'"),
            (frame.assign(c="x"), "other types than the first"),
        ):
            source = blocks.from_batches(lambda later=later: [frame, later], "bought")
            with pytest.raises(ValueError, match=message):
                PNormPush().fit_blocks(source)

    def test_blocks_need_rows(self):
        with pytest.raises(ValueError, match="block_rows=0: expected a number of rows"):
            blocks.from_batches(pieces(table(), 100), "bought", block_rows=0)

    def test_batches_without_rows(self):
        source = blocks.from_batches(lambda: [table()[:0]], "bought", weight="d", group="c")
        (block,) = source.read()
        assert block.X.shape == (0, 2) and len(block.y) == len(block.weight) == 0
        with pytest.raises(ValueError, match="The source has no rows"):
            PNormPush().fit_blocks(source)

    def test_a_csv_file_without_rows_or_with_lines_of_other_lengths(self, tmp_path):
        file = tmp_path / "leads.csv"
        file.write_text("a,bought\n")
        with pytest.raises(ValueError, match=r"leads\.csv has no rows"):
            blocks.from_csv(file, "bought")
        file.write_text("a,bought\n1,0\n2;1\n")
        with pytest.raises(ValueError, match=r"leads\.csv cannot be read: .*Check the delimiter"):
            blocks.from_csv(file, "bought")

    def test_what_is_no_table(self):
        with pytest.raises(TypeError, match="expected tables or record batches"):
            blocks.from_batches(lambda: [[1, 2]], "bought")

    def test_a_file_that_is_not_there(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="There is no file"):
            blocks.from_csv(tmp_path / "no.csv", "bought")


def test_missing_numbers_may_be_nan_and_whole_ones_become_fractions():
    frame = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "y": [0, 1]})
    (block,) = blocks.from_batches(lambda: [frame], "y", nulls="nan").read()
    np.testing.assert_array_equal(block.X[:], [[1.0], [np.nan]])
    with pytest.raises(ValueError, match="nulls='drop': expected 'refuse' or 'nan'"):
        blocks.from_batches(lambda: [frame], "y", nulls="drop")
