"""Tables that are too large for memory: read in blocks, or in samples that are stated."""

import json
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest

from toprank.cli.memory import free_memory, parse_memory
from toprank.cli.terminal import Failure
from toprank.models import fit_table, load


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(3)
    n = 600
    x = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "name": [f"c{i}" for i in range(n)],
            "x": np.where(rng.random(n) < 0.1, np.nan, x),
            "city": rng.choice(np.array(["Rome", "Oslo", None], dtype=object), n),
            "visits": rng.integers(0, 9, n),
        }
    )
    frame["y"] = (x + (frame.city == "Oslo") + rng.normal(size=n) > 1).astype(int)
    place = tmp_path_factory.mktemp("sizes") / "parts"
    place.mkdir()
    for part in range(3):
        file = place / f"{part}.parquet"
        frame[200 * part : 200 * part + 200].to_parquet(file, row_group_size=80)
    return place


def test_amounts_of_memory_are_read_as_people_write_them():
    assert parse_memory("4GB") == 4_000_000_000
    assert parse_memory("1.5 g") == 1_500_000_000
    assert parse_memory("500MiB") == 500_000_000
    assert 0 < parse_memory(None) <= free_memory()
    for wrong in ("much", "-3GB", "0", "4 GB RAM"):
        with pytest.raises(Failure, match="such as 4GB"):
            parse_memory(wrong)


def test_an_address_is_asked_for_and_named_with_both_its_slashes(tmp_path, monkeypatch, invoke):
    from toprank.blocks import places

    asked = []

    def no_such_bucket(place):
        asked.append(place)
        raise OSError("no such bucket")

    monkeypatch.setattr(places, "find_files", no_such_bucket)
    answer = invoke("fit", "s3://b/rows", "-y", "y", "-o", tmp_path / "model")
    assert answer.exit_code != 0
    assert asked == ["s3://b/rows"]
    assert "'s3://b/rows': no such bucket." in answer.stderr
    # an address without a host keeps its third slash, as one for the path begins there
    for place in ("hdfs:///user/rows", "HDFS://name:8020/user/rows", "file:///no/rows"):
        invoke("fit", place, "-y", "y", "-o", tmp_path / "model")
        assert asked[-1] == place


@pytest.mark.more
def test_a_folder_too_large_for_memory_is_fitted_in_blocks_and_says_so(folder, tmp_path, invoke):
    given = ("-y", "y", "--id", "name", "--p", "2")
    here, there = tmp_path / "here", tmp_path / "there"
    answer = invoke("fit", folder, *given, "-o", here)
    assert answer.exit_code == 0, answer.output
    assert "600 rows are read into memory" in answer.stderr
    answer = invoke("fit", folder, *given, "-o", there, "--memory", "100kB")
    assert answer.exit_code == 0, answer.output
    assert "600 rows are read in blocks" in answer.stderr
    assert "The model is that of a fit in memory" in answer.stderr
    one, other = load(here), load(there)
    assert one.schema == other.schema
    assert np.array_equal(one.ranker.coef_, other.ranker.coef_)
    assert np.array_equal(one.ranker.intercept_, other.ranker.intercept_)


@pytest.fixture(scope="module")
def small_model(folder, tmp_path_factory):
    """A model of the folder, and the folder's rows as a CSV file."""
    place = tmp_path_factory.mktemp("model")
    frame = pd.read_parquet(folder)
    fit_table(frame, "y", id="name", p=2, model="pnorm").save(place / "m")
    frame.to_csv(place / "rows.csv", index=False)
    return place / "m", place / "rows.csv"


@pytest.mark.more
def test_evaluate_beyond_memory_states_its_sample_and_takes_the_same_rows(
    small_model, folder, invoke
):
    given = ("evaluate", small_model[0], folder, "--json", "--resamples", "20")
    whole = json.loads(invoke(*given).stdout)
    assert whole["rows"] == 600
    assert not any("sample" in text for text in whole["notes"])
    answer = invoke(*given, "--memory", "40kB")
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.stdout)
    assert 120 < found["rows"] < 280
    assert f"Measured on a sample of {found['rows']} of the 600 rows" in found["notes"][0]
    again = json.loads(invoke(*given, "--memory", "40kB").stdout)
    assert again["metrics"] == found["metrics"]


def test_what_needs_all_rows_is_refused_beyond_memory(small_model, folder, invoke):
    answer = invoke("evaluate", small_model[0], folder, "--by-group", "city", "--memory", "40kB")
    assert answer.exit_code == 2
    assert "--by, --by-group and --propensity need all rows in memory" in answer.stderr
    answer = invoke("fit", small_model[1], "-y", "y", "-o", folder.parent / "no", "--memory", "1kB")
    assert answer.exit_code == 2
    said = " ".join(answer.stderr.split())
    assert "Write it as Parquet, which is read in blocks" in said
    assert "kB in memory, and 1 kB are allowed (--memory)" in said
    answer = invoke("monitor", small_model[0], folder, "--cluster", "ray://here")
    assert answer.exit_code == 2
    answer = invoke(
        *("fit", folder, "-y", "y", "-o", folder.parent / "no", "--cluster", "ray"),
    )
    assert answer.exit_code == 2
    assert "rows are read" not in answer.stderr
    assert "expected dask://HOST:PORT, dask, spark://HOST:PORT or spark" in answer.stderr
    assert not list(folder.parent.glob("no*"))


def test_a_cluster_takes_parquet_only(small_model, folder, invoke):
    pytest.importorskip("distributed")
    for command in (
        ("monitor", small_model[0], small_model[1]),
        ("evaluate", small_model[0], small_model[1]),
        ("report", small_model[0], small_model[1], "-o", folder.parent / "no.html"),
    ):
        answer = invoke(*command, "--cluster", "dask")
        assert answer.exit_code == 2
        assert "is not Parquet; write it as Parquet first" in answer.stderr
    assert not list(folder.parent.glob("no*"))


@pytest.mark.more
def test_monitor_and_report_beyond_memory_state_their_samples(
    small_model, folder, invoke, tmp_path
):
    answer = invoke(
        *("monitor", small_model[0], folder, "--reference", folder, "--memory", "40kB", "--json")
    )
    assert answer.exit_code in (0, 1), answer.output
    assert "compared with a sample of" in answer.stderr
    assert json.loads(answer.stdout)["rows"] == 600  # these are counted as they come
    page = tmp_path / "page.html"
    answer = invoke("report", small_model[0], folder, "-o", page, "--memory", "150kB")
    assert answer.exit_code == 0, answer.output
    assert "easured on a sample of" in page.read_text(encoding="utf-8")


@pytest.mark.more
def test_monitor_on_a_cluster_says_what_it_says_here(
    small_model, folder, invoke, monkeypatch, tmp_path
):
    # the blocks are read in this process; tests/cluster has workers
    monkeypatch.setattr("toprank.cli.memory.open_cluster", lambda address: nullcontext())
    here = json.loads(invoke("monitor", small_model[0], folder, "--json").stdout)
    there = ("monitor", small_model[0], folder, "--cluster", "dask", "--json")
    assert json.loads(invoke(*there, "--memory", "1GB").stdout) == here
    some = json.loads(invoke(*there, "--memory", "40kB").stdout)
    assert some["rows"] < 400
    assert f"a sample of {some['rows']} of the 600 rows" in some["notes"][-1]
    page = tmp_path / "page.html"
    answer = invoke(
        *("report", small_model[0], folder, "-o", page, "--memory", "150kB", "--cluster", "dask")
    )
    assert answer.exit_code == 0, answer.output
    assert "easured on a sample of" in page.read_text(encoding="utf-8")


@pytest.mark.more
def test_a_cluster_ranks_and_evaluates_as_this_machine_does(
    small_model, folder, invoke, monkeypatch
):
    # the blocks are read in this process; tests/cluster has workers
    for module in ("ranked_rows", "evaluate"):
        monkeypatch.setattr(f"toprank.cli.{module}.open_cluster", lambda address: nullcontext())
    for asked in (
        ("rank", small_model[0], folder, "--top", 25, "--id", "city"),
        ("rank", small_model[0], folder, "--top", "0.05", "--reasons", 0),
    ):
        here, there = (invoke(*asked, "--json", *more) for more in ((), ("--cluster", "dask")))
        assert there.exit_code == 0, there.output
        assert json.loads(there.stdout) == json.loads(here.stdout)
        assert len(json.loads(there.stdout)) in (25, 30)
    asked = ("evaluate", small_model[0], folder, "--json", "--resamples", "20")
    here, there = (json.loads(invoke(*asked, *more).stdout) for more in ((), ("--cluster", "dask")))
    assert there["metrics"] == here["metrics"] and there["notes"] == here["notes"]
    for more in (("--all",), ("--per-group", "city")):
        refused = invoke("rank", small_model[0], folder, "--cluster", "dask", *more)
        assert refused.exit_code == 2
        assert "--cluster is for the first rows of one list" in refused.stderr


@pytest.mark.more
def test_a_fit_in_blocks_says_what_is_fitted_to_a_sample(
    folder, tmp_path, invoke, words, monkeypatch
):
    monkeypatch.setattr("toprank.cli.memory._FEWEST", 200)  # rows
    asked = ("fit", folder, "-y", "y", "--id", "name", "--memory", "20kB", "-o", tmp_path / "m")
    others = invoke(*asked, "--model", "trees", "--p", "2", "--drop", "city")
    assert "sample of about 200" in words(others.stderr), others.output
    answer = invoke(*asked, "--p", "2")
    assert answer.exit_code == 0, answer.output
    assert "fitted to all rows; p is chosen, and the model measured, on a sample" in words(
        answer.stderr
    )
    shown = words(invoke("show", tmp_path / "m").stdout)
    assert "Fitted to 600 of them; chosen and measured on a sample of" in shown
    refused = invoke(*asked, "--propensity", "visits")
    assert refused.exit_code == 2
    assert "--propensity needs the table in memory" in words(refused.stderr)


def test_a_whole_list_needs_memory_for_every_row(small_model, folder, invoke, words):
    refused = invoke("rank", small_model[0], folder, "--all", "--memory", "1kB")
    assert refused.exit_code == 2
    said = words(refused.stderr)
    assert "--all holds every row of" in said and "Take the first rows with --top" in said


@pytest.mark.more
def test_a_fit_in_blocks_goes_on_from_a_folder(folder, tmp_path, invoke):
    kept = tmp_path / "kept"
    given = ("fit", folder, "-y", "y", "--p", "4", "--memory", "40kB")
    answer = invoke(*given, "-o", tmp_path / "one", "--checkpoint", kept)
    assert answer.exit_code == 0, answer.output
    passes = {file.name: file.stat().st_mtime_ns for file in kept.glob("*.pass")}
    assert passes
    answer = invoke(*given, "-o", tmp_path / "two", "--checkpoint", kept)
    assert answer.exit_code == 0, answer.output
    assert passes == {file.name: file.stat().st_mtime_ns for file in kept.glob("*.pass")}
    one, two = (load(tmp_path / name).ranker.coef_ for name in ("one", "two"))
    assert (one == two).all()
    answer = invoke(*given, "--alpha", "0.5", "-o", tmp_path / "no", "--checkpoint", kept)
    assert answer.exit_code != 0
    assert "is that of another fit" in answer.stderr
    answer = invoke(*given, "--model", "trees", "-o", tmp_path / "no", "--checkpoint", kept)
    assert answer.exit_code == 2
    assert "--model trees is fitted to a sample" in answer.stderr
    answer = invoke(*given[:-2], "-o", tmp_path / "three", "--checkpoint", kept)
    assert "nothing is kept" in answer.stderr
