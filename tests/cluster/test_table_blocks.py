"""Tables of words, dates and missing values on clusters, to the end: fit, save, rank, evaluate."""

import json
import os
import signal

import numpy as np
import pandas as pd
import pytest

from toprank import blocks
from toprank.models import fit_table, fit_table_blocks, load


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(11)
    n = 900
    x = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "name": [f"c{i:04d}" for i in range(n)],
            "x": np.where(rng.random(n) < 0.1, np.nan, x),
            "visits": rng.integers(0, 9, n),
            "member": rng.choice(np.array([True, False, None], dtype=object), n),
            "since": pd.Timestamp("2021-03-01")
            + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "city": rng.choice(np.array(["Rome", "Oslo", "Bern", None], dtype=object), n),
        }
    )
    good = x + (frame.city == "Oslo") + rng.normal(size=n) > 0.9
    frame["bought"] = np.where(good, "yes", "no")
    return frame


@pytest.fixture(scope="module")
def folder(mixed, tmp_path_factory):
    place = tmp_path_factory.mktemp("tables") / "leads"
    for day in range(3):
        file = place / f"day={day}" / "rows.parquet"
        file.parent.mkdir(parents=True)
        mixed[300 * day : 300 * day + 300].to_parquet(file, row_group_size=110, index=False)
    return place


@pytest.fixture(scope="module")
def in_memory(mixed):
    frame = mixed.assign(day=np.repeat([0, 1, 2], 300))
    return frame, fit_table(frame, "bought", id="name", p=4, model="pnorm")


def check_same(model, in_memory):
    """The same preparation, bit by bit; coefficients to the tolerance of the solver."""
    assert model.target == in_memory.target
    ours, theirs = (
        [(c.name, c.kind, c.categories, c.missing, c.clip) for c in one.schema.columns]
        for one in (model, in_memory)
    )
    assert ours == theirs
    assert model.preparation.names.tolist() == in_memory.preparation.names.tolist()
    for part in ("mean_", "var_", "scale_"):
        expected = getattr(in_memory.preparation.scaler, part)
        assert np.array_equal(getattr(model.preparation.scaler, part), expected)
    np.testing.assert_allclose(model.ranker.coef_, in_memory.ranker.coef_, atol=1e-5)


@pytest.mark.more
def test_a_dask_frame_of_mixed_columns_is_fitted_as_in_memory(client, in_memory):
    import dask.dataframe as dd

    frame, expected = in_memory
    # Dask makes text of columns of objects, which truth values with gaps are in pandas
    frame = frame.astype({"member": "boolean"})
    source = blocks.from_tables(dd.from_pandas(frame, npartitions=4), cluster=client)
    model = fit_table_blocks(source, "bought", id="name", p=4, model="pnorm")
    check_same(model, expected)
    scores = source.write_scores(model.score).compute()
    np.testing.assert_allclose(scores, expected.score(frame), atol=1e-4)


@pytest.mark.more
def test_a_spark_frame_of_mixed_columns_is_fitted_as_in_memory(spark, in_memory, folder):
    frame, expected = in_memory
    rows = spark.read.parquet(str(folder)).orderBy("name").coalesce(3)
    source = blocks.from_tables(rows)
    model = fit_table_blocks(source, "bought", id="name", p=4, model="pnorm")
    check_same(model, expected)
    found = source.write_scores(model.score).orderBy("name").toPandas()
    np.testing.assert_allclose(found["score"], expected.score(frame), atol=1e-4)


def call(*arguments):
    from typer.testing import CliRunner

    from toprank.cli.app import app

    runner = CliRunner(env={"COLUMNS": "200", "TERM": "dumb"})
    answer = runner.invoke(app, [str(one) for one in arguments])
    assert answer.exit_code == 0, answer.output
    return answer


def run_all(folder, cluster, tmp_path, in_memory):
    """Fit, save, rank and evaluate by the command line on a cluster, and in memory beside it."""
    model = tmp_path / "there.toprank"
    answer = call(
        *("fit", folder, "-y", "bought", "--id", "name", "--p", "4", "--model", "pnorm"),
        *("-o", model, "--cluster", cluster),
    )
    assert "rows are read on the cluster" in answer.stderr
    frame, expected = in_memory
    check_same(load(model), expected)
    here = tmp_path / "here.toprank"
    expected.save(here)
    lists = [
        json.loads(call("rank", one, folder, "--top", "25", "--json", *more).stdout)
        for one, more in ((model, ("--cluster", cluster)), (here, ()))
    ]
    assert [row["name"] for row in lists[0]] == [row["name"] for row in lists[1]]
    assert lists[0][0]["reasons"][0]["column"] == lists[1][0]["reasons"][0]["column"]
    measured = [
        json.loads(call("evaluate", one, folder, "--json", "--resamples", "50", *more).stdout)
        for one, more in ((model, ("--cluster", cluster)), (here, ()))
    ]
    assert measured[0]["rows"] == measured[1]["rows"] == len(frame)
    assert measured[0]["notes"] == measured[1]["notes"]
    for ours, theirs in zip(measured[0]["metrics"], measured[1]["metrics"], strict=True):
        assert ours["value"] == pytest.approx(theirs["value"], abs=5e-3)
    watched = [
        json.loads(call("monitor", here, folder, "--json", *more).stdout)
        for more in (("--cluster", cluster), ())
    ]
    assert watched[0]["rows"] == watched[1]["rows"] == len(frame)
    assert watched[0]["alerts"] == watched[1]["alerts"]
    page = tmp_path / "page.html"
    call("report", here, folder, "-o", page, "--cluster", cluster, "--memory", "200kB")
    assert "easured on a sample of" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_command_line_on_three_dask_workers_one_of_which_is_killed(
    folder, tmp_path, in_memory, monkeypatch
):
    distributed = pytest.importorskip("distributed", reason="needs pip install 'toprank[dask]'")
    from toprank.blocks.dask import DaskBlocks

    passes, own = [], DaskBlocks.map_reduce

    def kill_on_the_way(self, sweep, state):
        passes.append(type(sweep).__name__)
        if len(passes) == 5:  # in the fit itself: its numbers lie with the workers
            os.kill(next(iter(self._client.run(os.getpid).values())), signal.SIGKILL)
        return own(self, sweep, state)

    monkeypatch.setattr(DaskBlocks, "map_reduce", kill_on_the_way)
    with distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, memory_limit="1GiB", dashboard_address=":0"
    ) as cluster:
        address = cluster.scheduler_address.replace("tcp://", "dask://")
        run_all(folder, address, tmp_path, in_memory)
    assert len(passes) > 5


@pytest.mark.slow
def test_the_command_line_on_a_spark_cluster_one_executor_of_which_is_killed(
    folder, tmp_path, in_memory, spark, monkeypatch
):
    psutil = pytest.importorskip("psutil")
    from toprank.blocks.spark import SparkBlocks

    passes, own = [], SparkBlocks.map_reduce

    def kill_on_the_way(self, sweep, state):
        passes.append(type(sweep).__name__)
        if len(passes) == 3:
            gone = psutil.STATUS_ZOMBIE
            mine = [c for c in psutil.Process().children(recursive=True) if c.status() != gone]
            executors = [
                one for one in mine if any("ExecutorBackend" in word for word in one.cmdline())
            ]
            executors[0].kill()
        return own(self, sweep, state)

    monkeypatch.setattr(SparkBlocks, "map_reduce", kill_on_the_way)
    run_all(folder, "spark", tmp_path, in_memory)
    assert len(passes) > 3


def test_tables_of_dask_and_their_numbers_are_passed_over_in_one_process_too(mixed):
    dd = pytest.importorskip("dask.dataframe")
    dask = pytest.importorskip("dask")
    frame = mixed[["x", "visits", "bought"]].fillna(0.0)
    with dask.config.set(scheduler="synchronous"):
        source = blocks.from_tables(dd.from_pandas(frame, npartitions=3))
        model = fit_table_blocks(source, "bought", p=4, model="pnorm")
    np.testing.assert_allclose(
        model.score(frame), fit_table(frame, "bought", p=4, model="pnorm").score(frame), atol=1e-4
    )
