"""A Dask cluster of two processes and a Spark cluster of two executors, started once."""

import os
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pytest

#: What the engines themselves warn of, here and nowhere else.
_TOLERATED = [
    # of Python, about clusters that start processes from a process with threads
    "ignore:This process .* is multi-threaded:DeprecationWarning",
    # of PySpark, about the version of pandas
    "ignore:PySpark does not yet fully support pandas:FutureWarning",
    "ignore:The copy keyword is deprecated:DeprecationWarning:pyspark",
    # sockets of py4j and of distributed are closed by the garbage collector
    "ignore:unclosed:ResourceWarning",
    "ignore:Exception ignored in.*socket:pytest.PytestUnraisableExceptionWarning",
]

#: Where `.ci/nightly` measures lines, Spark's workers write down which they reached.
_HELPERS = Path(__file__).resolve().parents[1] / "helpers"
_MEASURED = {
    "spark__python__daemon__module": "measured_spark",
    "spark__executorEnv__PYTHONPATH": os.pathsep.join(
        filter(None, (os.environ.get("PYTHONPATH"), str(_HELPERS)))
    ),
}

_LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def pytest_collection_modifyitems(items):
    for item in items:
        if "cluster" in item.path.parts:
            for line in _TOLERATED:
                item.add_marker(pytest.mark.filterwarnings(line))
            # with --dist loadgroup one process runs all of a kind: each cluster is started once
            kind = "spark" if "spark" in item.nodeid else "dask"
            item.add_marker(pytest.mark.xdist_group(kind))


@pytest.fixture(scope="session")
def dask_cluster():
    """Two worker processes of one thread."""
    distributed = pytest.importorskip("distributed", reason="needs pip install 'toprank[dask]'")

    def write_coverage():  # now: a worker that takes seconds to end is killed
        import coverage

        coverage.Coverage.current().save()

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, memory_limit="1GiB", dashboard_address=":0"
    ) as cluster:
        yield cluster
        if _measured():
            with distributed.Client(cluster) as client:
                client.run(write_coverage)


def _measured():
    """Whether coverage follows the processes that this one starts."""
    return "COVERAGE_PROCESS_CONFIG" in os.environ


@pytest.fixture
def client(dask_cluster):
    import distributed

    with distributed.Client(dask_cluster) as client:
        client.wait_for_workers(2, timeout=90)
        yield client


@pytest.fixture(scope="session")
def spark_cluster():
    """Two executors of one core: processes of their own, as on a cluster."""
    pytest.importorskip("pyspark", reason="needs pip install 'toprank[spark]'")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, and there is none on the PATH")
    from toprank.blocks.spark import spark_session

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = spark_session(
        "local-cluster[2,1,1024]",
        spark__ui__enabled="false",
        spark__ui__showConsoleProgress="false",
        spark__sql__shuffle__partitions="2",
        spark__executor__memory="512m",
        # a short life: compile little
        spark__driver__extraJavaOptions=_LIGHT,
        spark__executor__extraJavaOptions=_LIGHT,
        spark__sql__codegen__wholeStage="false",
        spark__sql__adaptive__enabled="false",
        # a barrier stage that lacks an executor is refused after seconds, not after ten minutes
        spark__scheduler__barrier__maxConcurrentTasksCheck__interval="2s",
        spark__scheduler__barrier__maxConcurrentTasksCheck__maxFailures="15",
        spark__log__level="ERROR",
        spark__driver__bindAddress="127.0.0.1",
        spark__driver__host="127.0.0.1",
        **(_MEASURED if _measured() else {}),
    )
    yield session
    session.stop()


@pytest.fixture
def spark(spark_cluster):
    """The session, once both executors are there: a test before may have killed one."""
    end = time.monotonic() + 90.0
    registered = spark_cluster.sparkContext._jsc.sc().getExecutorMemoryStatus
    while registered().size() != 3:  # with the driver
        assert time.monotonic() < end, f"{registered().size() - 1} of 2 executors after 90 seconds"
        time.sleep(0.1)
    return spark_cluster


@pytest.fixture
def binned():
    """Features of few values, so that any cut of the rows gives the same histogram bins."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 20, size=(1200, 4)).astype(float)
    y = (X[:, 0] + X[:, 1] * X[:, 2] / 10 + rng.normal(size=1200) * 5 > 30).astype(int)
    weight = rng.integers(0, 4, size=1200).astype(float)
    return X, y, weight
