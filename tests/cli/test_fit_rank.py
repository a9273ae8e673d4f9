"""`toprank fit` and `toprank rank`: from a table to a list, and back in another process."""

import json
import os
import subprocess
import sys
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import toprank
from toprank.models import load


def run(*arguments, **given):
    """Call the command line in another process."""
    return subprocess.run(
        [sys.executable, "-m", "toprank.cli", *map(str, arguments)],
        capture_output=True,
        check=False,
        env=os.environ | {"COLUMNS": "200"},
        **given,
    )


def test_fit_writes_one_file_and_shows_its_card(model, train, tmp_path, invoke, words):
    path = tmp_path / "model"
    done = invoke("fit", train, "-y", "bought", "--id", "customer", "--p", 4, "-o", path)
    assert done.exit_code == 0, done.output
    assert [file.name for file in tmp_path.iterdir()] == ["model"]
    text = words(done.stdout)
    assert "right at the top (p = 4). It puts bought = yes at the top" in text
    assert "300 rows, 60 of them positive" in text and "precision_at(k=0.1)" in text
    assert done.stderr == ""


@pytest.mark.parametrize("positives", [60, 9])
def test_fit_and_show_say_how_the_p_of_trees_was_found(frame, positives, tmp_path, invoke, words):
    pytest.importorskip("lightgbm", reason="trees need LightGBM")
    few = frame.assign(bought=np.where(frame.age >= np.sort(frame.age)[-positives], "yes", "no"))
    few.drop(columns=["customer", "joined", "age"]).to_csv(tmp_path / "t.csv", index=False)
    path = tmp_path / "model"
    options = ["-y", "bought", "--model", "trees", "--jobs", 1]
    done = invoke("fit", tmp_path / "t.csv", *options, "-o", path)
    assert done.exit_code == 0, done.output
    p = load(path).ranker.p
    for said in (done.stdout, invoke("show", path).stdout):
        if positives == 60:
            assert f"Push with p = {p:g}. Its mean average_precision over 3 folds is" in words(said)
        else:
            assert p == 4 and "Note: p = 4 was taken without a comparison" in words(said)


def test_fit_prints_its_card_as_json(train, tmp_path, invoke):
    options = ["--model", "ir", "--metric", "recall_at", "--k", "50", "--drop", "customer"]
    done = invoke("fit", train, "-y", "bought", *options, "-o", tmp_path / "m", "--json", "-q")
    card = json.loads(done.stdout)
    assert done.exit_code == 0 and card["model"] == "ir" and card["ranker"] == "IRPush"
    assert card["metrics"]["intervals"][0]["metric"] == "recall_at(k=50)"
    assert card["training"]["left_out"]["customer"] == "as asked"


@pytest.mark.more
def test_roles_reach_the_model(frame, tmp_path, invoke):
    table = tmp_path / "t.parquet"
    n = len(frame)
    frame.assign(times=1 + np.arange(n) % 3, home=np.arange(n) // 5).to_parquet(table)
    roles = ["--id", "customer", "--weight", "times", "--groups", "home", "--time", "joined"]
    done = invoke("fit", table, "-y", "bought", *roles, "--p", "2", "-o", tmp_path / "m")
    assert done.exit_code == 0, done.output
    schema = load(tmp_path / "m").schema
    assert schema.roles == {
        "target": "bought",
        "id": "customer",
        "time": "joined",
        "weight": "times",
        "groups": "home",
    }
    assert schema.names == ["age", "city", "income"]


def test_the_positive_value_is_asked_for_only_where_it_is_not_plain(frame, tmp_path, invoke, words):
    table = tmp_path / "t.csv"
    frame.assign(bought=np.where(frame.bought == "yes", "ill", "well")).to_csv(table, index=False)
    options = ["-y", "bought", "--p", "2", "--drop", "customer", "-o", tmp_path / "m"]
    refused = invoke("fit", table, *options)
    assert refused.exit_code == 2 and not (tmp_path / "m").exists()
    assert "add --positive 'ill' or --positive 'well'" in words(refused.stderr)
    with mock.patch("toprank.cli.training_tables.can_ask", return_value=True):
        asked = invoke("fit", table, *options, input="sick\nwell\n")
    assert asked.exit_code == 0, asked.output
    assert load(tmp_path / "m").target.positive == "well"
    named = invoke("fit", table, *options, "--positive", "ill")
    assert named.exit_code == 0 and load(tmp_path / "m").target.positive == "ill"
    strange = invoke("fit", table, *options, "--positive", "dead")
    assert strange.exit_code == 2 and "--positive 'dead'" in words(strange.stderr)


def test_a_fit_may_start_from_a_model(model, train, tmp_path, invoke):
    path = tmp_path / "again"
    done = invoke("fit", train, "--from", model, "-o", path, "--json")
    assert done.exit_code == 0, done.output
    card = json.loads(done.stdout)
    assert card["p"] == 4 and card["refitted_from"] is not None
    assert load(path).schema.names == load(model).schema.names


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-y", "bought", "--p", "much"], "expected auto, or a number"),
        (["-y", "bought", "--p", "0.5"], "expected 'auto' or a number from 1"),
        (["-y", "bought", "--metric", "speed"], "expected one of"),
        (["-y", "bought", "--metric", "auc", "--k", "5"], "has no k"),
        (["-y", "bought", "--k", "five"], "expected a count such as 100"),
        (["-y", "bought", "--id", "Customer"], "did you mean 'customer'?"),
        (["-y", "bought", "--drop", "x"], "no column 'x'"),
        (["-y", "bought", "--time", "city"], "expected dates or numbers"),
        (["-y", "bought", "--id", "bought"], "already"),
        (["-y", "bought", "--from", "nowhere"], "there is no file"),
        (["-y", "bought", "--delimiter", "::"], "expected one sign"),
        (["-y", "bought", "--decimal", "x"], "a point or a comma"),
        ([], "--target is missing"),
        (["-y", "city"], "has 3 different values"),
    ],
)
def test_what_cannot_be_fitted_is_said_in_a_sentence(
    train, model, tmp_path, invoke, words, options, message
):
    done = invoke("fit", train, *options, "-o", tmp_path / "m")
    assert done.exit_code == 2 and message in words(done.stderr), done.output
    assert done.stdout == "" and list(tmp_path.iterdir()) == []
    assert "Traceback" not in done.output


def test_a_place_that_cannot_be_written_is_said_before_the_work(train, model, tmp_path, invoke):
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", tmp_path / "no" / "model", train):
        before = train.read_bytes()
        done = invoke("fit", train, "-y", "bought", "-o", path)
        assert done.exit_code == 2 and "--output" in done.stderr
        assert train.read_bytes() == before
    done = invoke("rank", model, train, "-o", tmp_path / "list.xyz")
    assert done.exit_code == 2 and "should end in one of" in done.stderr
    done = invoke("rank", model, train, "-o", tmp_path / "list.parquet.gz")
    assert done.exit_code == 2 and "should end in one of" in done.stderr
    done = invoke("rank", model, train, "-o", train)
    assert done.exit_code == 2 and "is read by this command" in done.stderr


def test_the_list_is_that_of_toprank_top(model, frame, train, tmp_path, invoke):
    path = tmp_path / "ranked.csv"
    done = invoke("rank", model, train, "--top", "20", "-o", path)
    assert done.exit_code == 0, done.output
    # Python's own numbers: the reader of pandas 2 is off by a last digit
    found = pd.read_csv(path, converters={"score": float})
    expected = toprank.top(load(model), frame, 20)
    assert list(found.columns) == list(expected.columns)
    assert found.customer.tolist() == expected.customer.tolist()
    np.testing.assert_array_equal(found.score, expected.score)
    assert found["rank"].tolist() == list(range(1, 21))
    assert all("age = " in text for text in found.reasons)
    assert not found.tied_at_the_cut.any()
    assert "wrote the first 20 of 300 rows" in done.stderr


@pytest.mark.more
def test_another_process_gives_the_same_scores_with_columns_in_another_order(
    model, frame, train, tmp_path, invoke
):
    here, there = tmp_path / "here.parquet", tmp_path / "there.parquet"
    invoke("rank", model, train, "--all", "-o", here)
    shuffled = tmp_path / "shuffled.parquet"
    frame[frame.columns[::-1]].assign(more=1).to_parquet(shuffled)
    done = run("rank", model, shuffled, "--all", "-o", there)
    assert done.returncode == 0, done.stderr
    pd.testing.assert_frame_equal(pd.read_parquet(here), pd.read_parquet(there))
    assert len(pd.read_parquet(there)) == len(frame)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "ending", ["csv", "tsv", "csv.gz", "jsonl", "jsonl.gz", "parquet", "feather"]
)
def test_the_ending_says_the_format(model, train, tmp_path, invoke, ending):
    path = tmp_path / f"ranked.{ending}"
    done = invoke("rank", model, train, "--top", "0.1", "-o", path, "-q")
    assert done.exit_code == 0 and done.output == "", done.output
    reader = {
        "csv": pd.read_csv,
        "tsv": lambda p: pd.read_csv(p, sep="\t"),
        "jsonl": lambda p: pd.read_json(p, lines=True),
        "parquet": pd.read_parquet,
        "feather": pd.read_feather,
    }[ending.removesuffix(".gz")]
    found = reader(path)
    assert len(found) == 30 and found.score.is_monotonic_decreasing
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_the_list_goes_to_stdout_alone(model, train, invoke):
    done = invoke("rank", model, "-", "--top", "5", "-o", "-", input=train.read_bytes())
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == "customer,score,rank,reasons,tied_at_the_cut" and len(lines) == 6
    assert done.stderr == ""


@pytest.mark.more
def test_the_list_goes_to_stdout_and_nothing_else_does(model, train):
    with train.open("rb") as table:
        done = run("rank", model, "-", "--top", "5", "-o", "-", stdin=table)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "customer,score,rank,reasons,tied_at_the_cut" and len(lines) == 6
    assert done.stderr == b""


def test_the_list_as_json_and_as_a_table(model, train, invoke, words):
    found = json.loads(invoke("rank", model, train, "--top", "3", "--json").stdout)
    assert [row["rank"] for row in found] == [1, 2, 3]
    assert found[0]["reasons"][0]["column"] == "age"
    assert isinstance(found[0]["reasons"][0]["contribution"], float)
    shown = words(invoke("rank", model, train, "--top", "3").stdout)
    assert found[0]["customer"] in shown and "tied_at_the_cut" in shown
    both = invoke("rank", model, train, "--json", "-o", "x.csv")
    assert both.exit_code == 2 and "not both" in both.stderr


def test_columns_may_be_carried_along_as_they_are_written(model, frame, tmp_path, invoke):
    table = tmp_path / "t.csv"
    frame.assign(code=[f"00{i}" for i in range(len(frame))]).to_csv(table, index=False)
    path = tmp_path / "ranked.csv"
    done = invoke("rank", model, table, "--top", 4, "--id", "code", "--reasons", 0, "-o", path)
    assert done.exit_code == 0, done.output
    found = pd.read_csv(path, dtype=str)
    assert list(found.columns) == ["customer", "code", "score", "rank", "tied_at_the_cut"]
    assert found.code.str.startswith("00").all()


def test_rows_without_a_name_are_numbered_as_in_the_file(model, frame, tmp_path, invoke):
    table = tmp_path / "t.csv"
    frame.drop(columns="customer").to_csv(table, index=False)
    found = json.loads(invoke("rank", model, table, "--top", "1", "--json").stdout)
    best = int(np.argmax(load(model).score(frame)))
    assert found[0]["row"] == best + 1


def test_rows_tied_at_the_cut_are_flagged(model, frame, tmp_path, invoke):
    table = tmp_path / "t.csv"
    best = frame.iloc[[int(np.argmax(load(model).score(frame)))]]
    pd.concat([best] * 5 + [frame]).to_csv(table, index=False)
    answer = invoke("rank", model, table, "--top", "4", "--json")
    assert [row["tied_at_the_cut"] for row in json.loads(answer.stdout)] == [True] * 4
    assert "2 rows with the last score" in answer.stderr


def test_formulas_can_be_kept_out_of_spreadsheets(model, frame, tmp_path, invoke):
    table, path = tmp_path / "t.csv", tmp_path / "r.csv"
    names = [f"=cmd|{i}" for i in range(len(frame))]
    frame.assign(customer=names).to_csv(table, index=False)
    invoke("rank", model, table, "--top", 3, "-o", path)
    assert pd.read_csv(path).customer.str.startswith("=").all()
    invoke("rank", model, table, "--top", 3, "-o", path, "--excel-safe")
    assert pd.read_csv(path).customer.str.startswith("'=").all()


def test_new_categories_are_said_once(model, frame, tmp_path, invoke, words):
    table = tmp_path / "t.csv"
    frame.assign(city="Lima").to_csv(table, index=False)
    done = invoke("rank", model, table, "--top", 1, "--json")
    assert done.exit_code == 0 and done.stderr.count("Lima") == 1
    assert invoke("rank", model, table, "--top", 1, "--json", "-q").stderr == ""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("zone", ["", "Z", "+02:00"])
def test_times_are_read_with_and_without_a_zone(frame, tmp_path, invoke, zone):
    table, path = tmp_path / "t.csv", tmp_path / "m"
    frame.assign(joined=frame.joined + "T10:30:00" + zone).to_csv(table, index=False)
    fitted = invoke("fit", table, "-y", "bought", "--id", "customer", "--p", "2", "-o", path)
    assert fitted.exit_code == 0, fitted.output
    kinds = {column.name: column.kind for column in load(path).schema.columns}
    assert kinds["joined"] == "date"
    found = json.loads(invoke("rank", path, table, "--top", "1", "--json").stdout)
    again = load(path).score(frame.assign(joined=pd.to_datetime(frame.joined + "T10:30:00" + zone)))
    assert found[0]["score"] == pytest.approx(again.max())


def test_a_list_longer_than_the_table_is_the_table(model, train, invoke):
    found = json.loads(invoke("rank", model, train, "--top", "1000", "--json").stdout)
    assert len(found) == 300 and not any(row["tied_at_the_cut"] for row in found)


def peak_of_ranking(model, table, output):
    """Megabytes that ranking takes in a process of its own."""
    arguments = ["rank", str(model), str(table), "-o", str(output), "-q"]
    code = (
        "import resource, sys; from toprank.cli.app import app\n"
        f"app({arguments!r}, standalone_mode=False)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


def write_long(frame, path, rows):
    """The same rows again and again, in groups as other programs write them."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    part = pa.Table.from_pandas(frame, preserve_index=False)
    times = rows // len(frame)
    with parquet.ParquetWriter(path, part.schema) as writer:
        many = pa.concat_tables([part] * min(times, 1_000)).combine_chunks()
        for _ in range(max(1, times // 1_000)):
            writer.write_table(many)


@pytest.mark.more
def test_memory_does_not_grow_with_the_table(model, frame, tmp_path):
    pytest.importorskip("resource", reason="peak memory is measured on Unix only")
    short, long = tmp_path / "short.parquet", tmp_path / "long.parquet"
    write_long(frame, short, 300_000)
    write_long(frame, long, 900_000)
    few, many = (peak_of_ranking(model, path, tmp_path / "r.csv") for path in (short, long))
    # two thirds of a million rows of six columns would be 60 MB and more
    assert many - few < 40


@pytest.mark.slow
def test_five_million_rows_are_ranked_in_bounded_memory(model, frame, tmp_path):
    pytest.importorskip("resource", reason="peak memory is measured on Unix only")
    write_long(frame, tmp_path / "big.parquet", 5_100_000)
    assert peak_of_ranking(model, tmp_path / "big.parquet", tmp_path / "r.csv") < 1_500
    assert len(pd.read_csv(tmp_path / "r.csv")) == 100


def ugly_ids(n=60):
    """Zip codes, long numbers and words that other columns would miss; zip and account are read."""
    rng = np.random.default_rng(3)
    zips = [f"{number:05d}" for number in rng.integers(500, 9000, n)]
    accounts = [str(10**17 + number) for number in range(16, 16 + n)]
    country = ["NA" if number % 7 == 0 else f" {number % 5}0 " for number in range(n)]
    noise = rng.normal(size=n).round(3)
    bought = (noise + rng.normal(size=n) > 0.3).astype(int)
    return pd.DataFrame(
        {"zip": zips, "account": accounts, "country": country, "noise": noise, "bought": bought}
    )


def test_a_list_carries_the_text_of_the_input_byte_for_byte(tmp_path, invoke):
    frame = ugly_ids()
    frame.to_csv(tmp_path / "t.csv", index=False)
    done = invoke("fit", tmp_path / "t.csv", "-y", "bought", "--p", "2", "-o", tmp_path / "m")
    assert done.exit_code == 0, done.output
    assert {"zip", "account"} <= set(load(tmp_path / "m").schema.names)
    carried = ["zip", "account", "country", "noise"]
    options = [word for name in carried for word in ("--id", name)]
    out = tmp_path / "list.csv"
    done = invoke("rank", tmp_path / "m", tmp_path / "t.csv", "--all", *options, "-o", out)
    assert done.exit_code == 0, done.output
    as_text = {"dtype": str, "keep_default_na": False}
    written = pd.read_csv(tmp_path / "t.csv", **as_text)[carried]
    listed = pd.read_csv(out, **as_text)[carried]
    order = ["account"]
    pd.testing.assert_frame_equal(
        listed.sort_values(order, ignore_index=True), written.sort_values(order, ignore_index=True)
    )


def test_a_list_carries_the_values_of_a_parquet_file_as_they_are(tmp_path, invoke):
    frame = ugly_ids().assign(day=pd.Timestamp("2026-01-31").date())
    frame["account"] = frame.account.astype("int64")
    frame.loc[5, "noise"] = np.nan
    frame["account"] = frame.account.astype("Int64").where(frame.index != 5)
    frame.to_parquet(tmp_path / "t.parquet")
    done = invoke("fit", tmp_path / "t.parquet", "-y", "bought", "--p", "2", "-o", tmp_path / "m")
    assert done.exit_code == 0, done.output
    options = ["--id", "account", "--id", "day", "--json", "--all", "-q"]
    done = invoke("rank", tmp_path / "m", tmp_path / "t.parquet", *options)
    rows = json.loads(done.stdout)
    assert {row["account"] for row in rows} == {
        None if pd.isna(value) else int(value) for value in frame.account
    }
    assert {row["day"] for row in rows} == {"2026-01-31"}


def test_a_list_can_be_limited_for_each_group_and_to_one_row_for_each_entity(
    frame, model, tmp_path, invoke, words
):
    table = tmp_path / "t.csv"
    frame.assign(home=np.arange(len(frame)) // 3).to_csv(table, index=False)
    done = invoke("rank", model, table, "--top", "4", "--per-group", "city", "--json", "-q")
    rows = json.loads(done.stdout)
    assert [row["rank"] for row in rows] == [1, 2, 3, 4] * 3
    assert len({row["city"] for row in rows}) == 3 and len({r["city"] for r in rows[:4]}) == 1
    done = invoke("rank", model, table, "--top", "20", "--per-entity", "home", "--json", "-q")
    rows = json.loads(done.stdout)
    assert len({row["home"] for row in rows}) == len(rows) == 20
    assert [row["score"] for row in rows] == sorted((r["score"] for r in rows), reverse=True)
    refused = invoke("rank", model, table, "--top", "0.1", "--per-group", "city")
    assert refused.exit_code == 2 and "with --per-group it is a count" in words(refused.stderr)
    refused = invoke("rank", model, table, "--per-entity", "hone")
    assert refused.exit_code == 2 and "did you mean 'home'" in words(refused.stderr)


def test_fit_says_how_it_reads_dates_that_can_be_read_in_two_ways(frame, tmp_path, invoke, words):
    rng = np.random.default_rng(0)
    days = [f"{m:02d}/{d:02d}/2026" for m, d in rng.integers(1, 13, (len(frame), 2))]
    frame.assign(joined=days).to_csv(tmp_path / "t.csv", index=False)
    options = ["-y", "bought", "--id", "customer", "--p", 2, "-o", tmp_path / "m"]
    done = invoke("fit", tmp_path / "t.csv", *options)
    assert done.exit_code == 0, done.output
    assert "column 'joined' holds dates" in words(done.stderr)
    assert "they are read month first" in words(done.stderr)
    frame.assign(joined="25/01/2026").to_csv(tmp_path / "odd.csv", index=False)
    odd = invoke("rank", tmp_path / "m", tmp_path / "odd.csv")
    assert "column 'joined': expected dates like 01/25/2026 (month/day/year)" in words(odd.stderr)


@pytest.mark.parametrize("minutes", ["0", "-1.5", "nan"])
def test_minutes_that_are_no_time_are_refused_by_the_name_of_the_option(
    minutes, train, tmp_path, invoke, words
):
    done = invoke("fit", train, "-y", "bought", f"--minutes={minutes}", "-o", tmp_path / "m")
    assert done.exit_code == 2 and "max_seconds" not in done.stderr
    said = f"--minutes {minutes}: expected a number of minutes above 0"
    assert said in words(done.stderr)
