"""Where a command runs: a cluster that is not there, one that is running, one that is started."""

from functools import partial
from types import SimpleNamespace

import pytest

from toprank import blocks
from toprank.cli.clusters import open_cluster
from toprank.cli.terminal import Failure

# the libraries of clusters take a second to import
pytestmark = pytest.mark.more


def test_a_scheduler_of_dask_that_does_not_answer_is_named(monkeypatch):
    distributed = pytest.importorskip("distributed", reason="needs pip install 'toprank[dask]'")
    hurried = partial(distributed.Client, timeout="0.2s")
    monkeypatch.setattr(distributed, "Client", lambda address, timeout: hurried(address))
    with (
        pytest.raises(Failure, match=r"--cluster dask://127.0.0.1:9: no scheduler of Dask answers"),
        open_cluster("dask://127.0.0.1:9"),
    ):
        pass


@pytest.fixture
def active(monkeypatch):
    """The session of Spark that this process has; None until a test says otherwise."""
    sql = pytest.importorskip("pyspark.sql", reason="needs pip install 'toprank[spark]'")
    found = SimpleNamespace(session=None)
    monkeypatch.setattr(sql.SparkSession, "getActiveSession", lambda: found.session)
    return found


def test_spark_without_java_says_what_is_missing(active, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(Failure, match=r"--cluster spark: .*Java"), open_cluster("spark"):
        pass


@pytest.mark.parametrize(
    ("address", "master"),
    [
        ("spark", "local[*]"),
        ("spark:local[2]", "local[2]"),
        ("spark://host:7077", "spark://host:7077"),
    ],
)
def test_a_session_is_ended_where_it_was_started(active, monkeypatch, address, master):
    done = []
    mine = SimpleNamespace(stop=lambda: done.append("stopped"))
    monkeypatch.setattr(blocks, "spark_session", lambda at, **_: done.append(at) or mine)
    with open_cluster(address) as session:
        assert session is mine
    assert done == [master, "stopped"]
    active.session = SimpleNamespace()  # one of the user's own, which has no stop
    with open_cluster(address) as session:
        assert session is active.session
    assert done == [master, "stopped"]
