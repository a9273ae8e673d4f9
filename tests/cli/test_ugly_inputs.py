"""Every command on every ugly table: a sentence on stderr, exit code 2, nothing half-written."""

import csv
import gzip

import pytest

COMMANDS = [
    *("fit", "rank", "evaluate", "compare", "monitor", "report", "choose-p", "export", "select"),
    "diff",
]
LEARN = ["fit", "report", "choose-p"]
NEED_LABELS = ["fit", "evaluate", "compare", "report", "choose-p", "select"]


@pytest.fixture
def call(invoke, model, other, tmp_path):
    """Run a command on a table; give back the answer, and the files that it left behind."""

    def run(command, table, *options):
        out = tmp_path / "out"
        out.mkdir()
        target = ["--target", "bought"]
        arguments = {
            "fit": [table, *target, "--p", 4, "-o", out / "new"],
            "rank": [model, table, "-o", out / "ranked.csv"],
            "evaluate": [model, table],
            "compare": [model, other, table],
            "monitor": [model, table, "--max-drift", 1e9, "--max-volume-change", 1e9],
            "report": [table, *target, "-o", out / "report.html"],
            "choose-p": [table, *target, "--ps", "1", "--alphas", "1", "-o", out / "path.png"],
            "export": [model, "--onnx", out / "model.onnx", "--check", table],
            "diff": [table, table, "--id", "city"],
            "select": [model, table, "-c", table, "--fdr", 0.5, "-o", out / "list.csv"],
        }[command]
        answer = invoke(command, *arguments, *options)
        return answer, sorted(file.name for file in out.iterdir())

    return run


def rows(frame, n=40):
    return frame.head(n).to_csv(index=False)


def damaged(packed):
    return packed[:200] + bytes([packed[200] ^ 255]) + packed[201:]


UGLY = {
    "an empty file": (lambda frame: b"", "is empty"),
    "blank lines only": (lambda frame: b"\n\n \n", "is empty"),
    "a header only": (lambda frame: rows(frame, 0).encode(), "no rows"),
    "columns of one name": (
        lambda frame: rows(frame).replace("income", "age", 1).encode(),
        "several columns of the same name: 'age'",
    ),
    "bytes that are not UTF-8": (
        lambda frame: rows(frame).replace("Rome", "Köln").encode("latin-1"),
        "--encoding latin-1",
    ),
    "a line that is too long": (
        lambda frame: (rows(frame, 5) + "c9,1,Rome,2025-01-01,3,yes,more\n").encode(),
        "line 7: 7 field(s), but there are 6",
    ),
    "a line that is too short": (
        lambda frame: (rows(frame, 5) + "c9,1\n" + rows(frame, 3)).encode(),
        "line 7: 2 field(s), but there are 6",
    ),
    "a gzip file cut short": (
        lambda frame: gzip.compress(rows(frame).encode())[:60],
        "was it cut short?",
    ),
    "a gzip file with a wrong byte": (
        lambda frame: damaged(gzip.compress(rows(frame).encode())),
        "not a whole gzip file",
    ),
    "bytes of something else": (lambda frame: b"\x01\x00\x02\x00" * 50, "binary data"),
    "a zip archive": (lambda frame: b"PK\x03\x04" + bytes(50), "Excel workbook"),
    "half a Parquet file": (lambda frame: b"PAR1" + bytes(50), "could not be read"),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("what", UGLY)
def test_a_table_that_cannot_be_read_is_refused(call, frame, tmp_path, what, command, words):
    content, message = UGLY[what]
    table = tmp_path / "table.csv"
    table.write_bytes(content(frame))
    answer, left = call(command, table)
    assert answer.exit_code == 2, answer.output
    assert message in words(answer.stderr)
    assert str(table) in words(answer.stderr)
    assert answer.stdout == "" and left == []
    assert "Traceback" not in answer.output


@pytest.mark.sampled(4)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_is_not_there_is_refused_with_a_near_name(call, tmp_path, command, words):
    (tmp_path / "table.csv").touch()
    answer, left = call(command, tmp_path / "tables.csv")
    assert answer.exit_code == 2 and left == []
    assert "there is no file" in words(answer.stderr) and "did you mean" in words(answer.stderr)


def test_an_address_is_named_as_it_was_written(call, words):
    answer, left = call("fit", "nowhere://bucket/table.parquet")
    assert answer.exit_code == 2 and left == []
    assert "'nowhere://bucket/table.parquet': " in words(answer.stderr)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_in_place_of_a_table_is_refused(call, tmp_path, command, words):
    answer, left = call(command, tmp_path)
    assert answer.exit_code == 2 and left == [] and "is a folder" in words(answer.stderr)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("command", NEED_LABELS)
def test_a_missing_target_is_refused_with_a_near_name(call, frame, tmp_path, command, words):
    table = tmp_path / "table.csv"
    frame.rename(columns={"bought": "Bougt"}).to_csv(table, index=False)
    answer, left = call(command, table)
    assert answer.exit_code == 2 and left == [] and answer.stdout == ""
    assert "no column 'bought'" in words(answer.stderr)
    assert "did you mean 'Bougt'?" in words(answer.stderr)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("command", NEED_LABELS)
def test_labels_of_one_class_are_refused(call, frame, tmp_path, command, words):
    table = tmp_path / "table.csv"
    numbers = frame[["age", "income", "bought"]].fillna(0) if command == "choose-p" else frame
    numbers[frame.bought == "no"].to_csv(table, index=False)
    answer, left = call(command, table)
    assert answer.exit_code == 2 and left == [] and answer.stdout == ""
    assert "Traceback" not in answer.output
    assert any(
        text in words(answer.stderr)
        for text in ("one value only", "all rows are negative", "in every row")
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize("command", LEARN)
def test_learning_from_ten_thousand_columns_is_refused_unless_asked_for(
    call, frame, tmp_path, command, words
):
    table = tmp_path / "table.csv"
    names = ",".join([f"c{i}" for i in range(9_999)] + ["bought"])
    line = ",".join(["1"] * 9_999)
    table.write_text(f"{names}\n{line},yes\n{line},no\n")
    answer, left = call(command, table)
    assert answer.exit_code == 2 and left == [] and answer.stdout == ""
    assert "10000 columns" in words(answer.stderr)
    assert "--max-columns 10000" in words(answer.stderr)
    assert len(answer.stderr) < 1000


@pytest.mark.sampled(4)
@pytest.mark.parametrize("command", ["rank", "evaluate", "compare", "monitor"])
def test_a_model_picks_its_columns_out_of_ten_thousand(call, frame, tmp_path, command):
    table = tmp_path / "table.csv"
    names = ",".join(f"c{i}" for i in range(10_000))
    line = ",".join(["1"] * 10_000)
    head, *body = rows(frame).splitlines()
    table.write_text("\n".join([f"{names},{head}", *(f"{line},{one}" for one in body)]))
    answer, _ = call(command, table)
    assert answer.exit_code == 0, answer.output


def test_a_wrong_name_in_a_wide_table_does_not_list_every_column(call, tmp_path, words):
    table = tmp_path / "table.csv"
    table.write_text(",".join(f"c{i}" for i in range(10_000)) + "\n" + ",".join("1" * 10_000))
    answer, _ = call("fit", table)
    assert answer.exit_code == 2 and "and 9992 more" in words(answer.stderr)


#: How a table is written, and the encoding, the delimiter and the decimal sign of its list.
WRITTEN = {
    "a byte order mark": (lambda text: b"\xef\xbb\xbf" + text.encode(), "utf-8-sig", ",", "."),
    "semicolons": (
        lambda text: text.replace(",", ";").replace(".", ",").encode(),
        *("utf-8", ";", ","),
    ),
    "UTF-16": (lambda text: text.replace(",", "\t").encode("utf-16"), "utf-16", "\t", "."),
    "Windows line ends": (lambda text: text.replace("\n", "\r\n").encode(), "utf-8", ",", "."),
    "gzip": (lambda text: gzip.compress(text.encode()), "utf-8", ",", "."),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("command", ["rank", "evaluate", "compare", "monitor"])
@pytest.mark.parametrize("written", WRITTEN)
def test_tables_of_other_programs_are_read(call, frame, tmp_path, written, command):
    text, encoding, delimiter, decimal = WRITTEN[written]
    table = tmp_path / "table.csv"
    table.write_bytes(text(rows(frame, 60)))
    answer, left = call(command, table)
    assert answer.exit_code == 0, answer.output
    plain = tmp_path / "plain.csv"
    plain.write_text(rows(frame, 60))
    if left:
        ranked = tmp_path / "out" / "ranked.csv"
        own = ranked.read_bytes()
        assert own.startswith(b"\xef\xbb\xbf") == (encoding == "utf-8-sig")
        listed = list(csv.reader(own.decode(encoding).splitlines(), delimiter=delimiter))
        ranked.unlink()
        ranked.parent.rmdir()
        call("rank", plain)
        wanted = list(csv.reader(ranked.read_text().splitlines()))
        for row in wanted:
            row[1] = row[1].replace(".", decimal)
        assert listed == wanted and listed[0][1] == "score"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("command", ["fit", "choose-p"])
def test_learning_from_semicolons_and_a_byte_order_mark(call, frame, tmp_path, command, words):
    table = tmp_path / "table.csv"
    numbers = frame[["age", "bought"]]
    text = numbers.to_csv(index=False).replace(",", ";").replace(".", ",")
    table.write_bytes(b"\xef\xbb\xbf" + text.encode())
    answer, left = call(command, table)
    assert answer.exit_code == 0, answer.output
    assert left and "one and a half" in words(answer.stderr)


def test_a_table_that_does_not_match_the_model_is_named_column_by_column(call, frame, tmp_path):
    table = tmp_path / "table.csv"
    frame.drop(columns=["age", "city"]).to_csv(table, index=False)
    answer, left = call("rank", table)
    assert answer.exit_code == 2 and left == []
    assert "column 'age' (number) is missing" in answer.stderr
    assert "column 'city' (category) is missing" in answer.stderr


def test_a_parquet_table_of_other_kinds_is_named_column_by_column(call, frame, tmp_path):
    table = tmp_path / "table.parquet"
    frame.assign(income="rich", joined=1.5).to_parquet(table)
    answer, left = call("rank", table)
    assert answer.exit_code == 2 and left == []
    assert "column 'income': expected numbers" in answer.stderr
    assert "column 'joined': expected dates" in answer.stderr


def test_a_word_among_numbers_is_refused(call, frame, tmp_path):
    table = tmp_path / "table.csv"
    frame.assign(age=frame.age.astype(str)).replace({"age": {str(frame.age[7]): "old"}}).to_csv(
        table, index=False
    )
    answer, left = call("rank", table)
    assert answer.exit_code == 2 and left == []
    assert "column 'age' holds 'old', expected a number" in answer.stderr
    assert "--missing 'old'" in answer.stderr


@pytest.mark.sampled(4)
@pytest.mark.parametrize("command", ["rank", "evaluate", "monitor", "show", "export"])
@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"PK\x03\x04" + bytes(90)])
def test_a_file_that_is_no_model_is_refused(invoke, tmp_path, train, command, content):
    path = tmp_path / "model"
    path.write_bytes(content)
    table = [train] if command not in ("show", "export") else []
    more = ["--sql", tmp_path / "a.sql"] if command == "export" else []
    answer = invoke(command, path, *table, *more)
    assert answer.exit_code == 2 and answer.stdout == "", answer.output
    assert "Traceback" not in answer.output and str(path) in answer.stderr.replace("\n", "")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model"]


def test_a_table_in_the_place_of_the_model_is_told_its_place(invoke, model, tmp_path):
    table = tmp_path / "rows.csv"
    table.write_text("age,city\n30,Rome\n")
    for command in ("rank", "evaluate", "monitor"):
        answer = invoke(command, table, model)
        assert answer.exit_code == 2
        assert "name first the model that 'toprank fit' wrote" in " ".join(answer.stderr.split())


def test_a_report_of_a_model_speaks_of_the_target_of_the_model(invoke, model, tmp_path):
    table = tmp_path / "rows.csv"
    table.write_text("age,city\n30,Rome\n")
    answer = invoke("report", model, table, "-o", tmp_path / "page.html")
    assert answer.exit_code == 2
    said = " ".join(answer.stderr.split())
    assert "(the target of the model)" in said and "--target" not in said


def test_a_number_is_no_label(invoke, tmp_path):
    table = tmp_path / "rows.csv"
    table.write_text("age,city\n" + "".join(f"{age},Rome\n" for age in range(30)))
    answer = invoke("fit", table, "-y", "age", "-o", tmp_path / "m")
    assert answer.exit_code == 2
    assert "make a column of two values first" in " ".join(answer.stderr.split())
