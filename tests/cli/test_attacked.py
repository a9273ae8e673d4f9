"""What careless and hostile users found: each test is named after what went wrong."""

import csv
import json

import numpy as np
import pytest


@pytest.mark.more
def test_a_push_of_infinity_is_printed(invoke, train, tmp_path):
    options = ["-y", "bought", "--p", "inf", "--drop", "customer", "-o", tmp_path / "m"]
    answer = invoke("fit", train, *options)
    assert answer.exit_code == 0, answer.output
    assert "(p = inf" in answer.output


def test_an_option_named_in_passing_has_no_gap_behind_it(invoke, train, tmp_path):
    answer = invoke("fit", train, "-y", "city", "-o", tmp_path / "m")
    assert answer.exit_code == 2
    assert "Pass --positive to name" in answer.stderr


@pytest.mark.more
def test_unknown_categories_are_told_once_not_for_every_run_of_the_clock(
    invoke, frame, model, tmp_path
):
    frame.assign(city="Paris").to_csv(tmp_path / "t.csv", index=False)
    answer = invoke("evaluate", model, tmp_path / "t.csv", "--resamples", 20)
    assert answer.exit_code == 0, answer.output
    assert answer.stderr.count("never seen in training") == 1


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_return_in_a_value_starts_no_new_row(invoke, frame, model, tmp_path, ending):
    ids = [f"c{i}\r=HYPERLINK()" for i in range(len(frame))]
    table, out = tmp_path / "t.csv", tmp_path / f"out.{ending}"
    frame.assign(customer=ids).to_csv(table, index=False, quoting=csv.QUOTE_ALL)
    answer = invoke("rank", model, table, "--top", 5, "--excel-safe", "-o", out)
    assert answer.exit_code == 0, answer.output
    text = out.read_bytes().decode()
    assert "\r\n" not in text
    with out.open(newline="") as file:
        rows = list(csv.reader(file, delimiter="\t" if ending == "tsv" else ","))
    assert len(rows) == 6
    # the apostrophe is for spreadsheets that do not know the quotes of another country
    assert all(row[0].replace("\r'", "\r") in ids and "\r'" in row[0] for row in rows[1:])


@pytest.mark.more
def test_a_line_break_in_a_column_name_makes_no_line_of_its_own(invoke, frame, tmp_path):
    named, new = tmp_path / "named.csv", tmp_path / "new.csv"
    frame.rename(columns={"age": "age\ntoprank: all is well"}).to_csv(named, index=False)
    frame[["city"]].to_csv(new, index=False)
    done = invoke("fit", named, "-y", "bought", "--p", 2, "-o", tmp_path / "m")
    assert done.exit_code == 0, done.output
    answer = invoke("rank", tmp_path / "m", new)
    assert answer.exit_code == 2
    assert r"age\ntoprank: all is well" in answer.stderr


def test_the_table_to_check_by_is_not_written_over(invoke, frame, model, tmp_path):
    table = tmp_path / "t.csv"
    frame.to_csv(table, index=False)
    before = table.read_bytes()
    for kind in ("--sql", "--onnx"):
        answer = invoke("export", model, kind, table, "--check", table)
        assert answer.exit_code == 2
        assert "is read by this command" in answer.stderr
    assert table.read_bytes() == before


def test_a_device_is_not_replaced_by_a_model(invoke, train, tmp_path):
    import os

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    answer = invoke("fit", train, "-y", "bought", "--p", 2, "-o", pipe)
    assert answer.exit_code == 2
    assert "device or a pipe" in answer.stderr
    assert pipe.is_fifo()


def test_a_parquet_file_with_lists_and_structs_is_read(invoke, frame, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    n = len(frame)
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    table = table.append_column("lists", [[[j] for j in range(n)]])
    table = table.append_column("structs", [[{"a": j} for j in range(n)]])
    table = table.append_column("half", [np.arange(n) % 50])
    parquet.write_table(table, tmp_path / "t.parquet")
    options = ["-y", "bought", "--id", "customer", "--p", 2, "-o", tmp_path / "m", "--json"]
    answer = invoke("fit", tmp_path / "t.parquet", *options)
    assert answer.exit_code == 0, answer.output
    assert set(json.loads(answer.stdout)["training"]["left_out"]) == {"lists", "structs"}


def test_a_table_with_everything_in_quotes_may_have_missing_numbers(
    invoke, frame, train, model, tmp_path
):
    quoted = tmp_path / "quoted.csv"
    frame.to_csv(quoted, index=False, quoting=csv.QUOTE_ALL)
    assert ',"",' in quoted.read_text()
    plain, told = (invoke("rank", model, table, "--json") for table in (train, quoted))
    assert told.exit_code == 0, told.output
    assert told.stdout == plain.stdout


def test_a_target_of_structs_is_named_in_the_message(invoke, frame, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    table = table.append_column("odd", [[{"a": j} for j in range(len(frame))]])
    parquet.write_table(table, tmp_path / "t.parquet")
    answer = invoke("fit", tmp_path / "t.parquet", "-y", "odd", "-o", tmp_path / "m")
    assert answer.exit_code == 2
    assert "'odd' cannot be the target" in answer.stderr


@pytest.mark.parametrize("encoding", ["rot13", "base64", "klingon"])
def test_a_codec_that_is_no_encoding_is_refused(invoke, model, train, encoding):
    answer = invoke("rank", model, train, "--encoding", encoding)
    assert answer.exit_code == 2
    assert f"there is no encoding '{encoding}'" in answer.stderr
