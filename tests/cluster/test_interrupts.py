"""An interrupted fit (Ctrl-C) on a cluster stops there too: no task, lock, job or file is left.

Interrupts are raised where the driver waits, once the workers are at work. Real signals are sent
to processes of their own, which take a cluster with them.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from toprank import PNormPush, PushTrees, blocks
from toprank.blocks import spark_jobs
from toprank.rankers.trees import distributed_dask

#: Seconds; on an idle machine a tenth of it.
LATEST = 20.0


def endless():
    """Trees that would grow for an hour."""
    return PushTrees(
        4,
        backend="xgboost",
        n_estimators=1_000_000,
        subsample=1.0,
        max_leaves=4,
        random_state=0,
        early_stopping=False,
    )


def check_unfitted(ranker):
    assert not set(vars(ranker)) - set(ranker._get_param_names())
    with pytest.raises(NotFittedError):
        check_is_fitted(ranker)


def until(true, seconds=60.0):
    """Wait for something, but not for ever."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


# ---- Dask --------------------------------------------------------------------------------------


def on_workers():
    """What tells a worker's fits and meeting points; made here, so that it travels by value."""

    def busy():
        from toprank.rankers.trees.distributed_dask import RUNS

        return [*RUNS._busy, *RUNS._trackers]

    return busy


def on_scheduler():
    def ours(dask_scheduler):
        return [key for key in dask_scheduler.tasks if "toprank" in str(key)]

    return ours


def check_idle(client):
    until(lambda: not any(client.run(on_workers()).values()), 2.0)  # a meeting point is closing
    until(lambda: not client.run_on_scheduler(on_scheduler()))


@pytest.fixture
def cut(client, binned):
    da = pytest.importorskip("dask.array", reason="needs pip install 'toprank[dask]'")
    pytest.importorskip("xgboost", reason="needs pip install 'toprank[xgboost]'")
    X, y, _ = binned
    return da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100)


def check_usable(trees, client, cut, binned):
    trees.set_params(n_estimators=3).fit_dask(client, *cut)
    alone = endless().set_params(n_estimators=3).fit(*binned[:2])
    assert trees.booster_.get_dump() == alone.booster_.get_dump()


@pytest.mark.more
def test_trees_went_on_growing_on_dask_after_an_interrupt(client, cut, binned, monkeypatch):
    def wait(client, futures, workers):
        until(lambda: all(client.run(on_workers(), workers=workers).values()))
        time.sleep(0.2)  # some rounds
        raise KeyboardInterrupt

    trees = endless()
    with monkeypatch.context() as patched:
        patched.setattr(distributed_dask, "_wait", wait)
        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            trees.fit_dask(client, *cut)
    assert time.monotonic() - begun < LATEST
    check_unfitted(trees)
    check_idle(client)
    check_usable(trees, client, cut, binned)


@pytest.mark.more
def test_a_worker_waited_for_ever_for_one_that_had_not_begun(client, cut, monkeypatch):
    first, second = sorted(client.nthreads())
    trees, blockers = endless(), []
    start = distributed_dask._start

    def start_behind(*given):
        blockers.append(client.submit(time.sleep, 3, workers=[second], pure=False, priority=9))
        until(lambda: client.processing()[second])
        return start(*given)

    def wait(client, futures, workers):
        until(lambda: len(client.run(on_workers(), workers=[first])[first]) == 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(distributed_dask, "_start", start_behind)
    monkeypatch.setattr(distributed_dask, "_wait", wait)
    monkeypatch.setattr(distributed_dask, "_PATIENCE", 0.2)
    with pytest.raises(KeyboardInterrupt):
        trees.fit_dask(client, *cut)
    check_unfitted(trees)
    check_idle(client)


@pytest.mark.more
@pytest.mark.parametrize("granted", [True, False])
def test_an_interrupted_wait_for_the_workers_kept_them_for_ever(
    client, cut, binned, monkeypatch, granted
):
    distributed = pytest.importorskip("distributed")
    acquire, other = distributed.MultiLock.acquire, None
    if not granted:
        other = distributed.MultiLock(names=sorted(client.nthreads()), client=client)
        other.acquire()

    def interrupted(lock, *given, **named):
        if granted:
            acquire(lock)
            lock._locked = False  # the answer was on its way
        else:
            acquire(lock, timeout=0.1)
        raise KeyboardInterrupt

    trees = endless()
    with monkeypatch.context() as patched:
        patched.setattr(distributed.MultiLock, "acquire", interrupted)
        with pytest.raises(KeyboardInterrupt):
            trees.fit_dask(client, *cut)
    check_unfitted(trees)
    if other is not None:
        other.release()
    check_idle(client)
    check_usable(trees, client, cut, binned)


def test_an_interrupted_pass_over_dask_blocks_is_cancelled(client, cut, binned, monkeypatch):
    distributed = pytest.importorskip("distributed")
    result, waited = distributed.Future.result, []

    def interrupted(future, *given, **named):
        waited.append(future)
        if len(waited) > 3:
            raise KeyboardInterrupt
        return result(future, *given, **named)

    ranker = PNormPush(p=4, tol=1e-10)
    with blocks.from_dask(*cut, client=client) as source:
        with monkeypatch.context() as patched:
            patched.setattr(distributed.Future, "result", interrupted)
            with pytest.raises(KeyboardInterrupt):
                ranker.fit_blocks(source)
        check_unfitted(ranker)
        assert waited[-1].status == "cancelled" and len(waited) == 4
        expected = PNormPush(p=4, tol=1e-10).fit(*binned[:2])
        np.testing.assert_allclose(ranker.fit_blocks(source).coef_, expected.coef_, rtol=1e-7)


# ---- Spark -------------------------------------------------------------------------------------


def interrupted_once(at_work):
    """Return an answer that is not waited for, once the job is at work; the next ones are."""
    left = [KeyboardInterrupt]

    class Interrupted(spark_jobs.Future):
        raised = None

        def result(self, timeout=None):
            if left:
                until(lambda: at_work() or self.done())
                Interrupted.raised = time.monotonic()
                raise left.pop()
            return super().result(timeout)

    return Interrupted


class Session:
    """A stand-in for Spark: a job that runs until it is cancelled by its tag."""

    def __init__(self):
        self.sparkContext, self.ended, self.tags, self.cancelled = self, Event(), [], []

    def addJobTag(self, tag):
        self.tags.append(tag)

    def setInterruptOnCancel(self, yes):
        assert yes

    def cancelJobsWithTag(self, tag):
        self.cancelled.append(tag)
        if len(self.cancelled) > 1:  # the first request came before the job had started
            self.ended.set()

    def job(self):
        assert self.ended.wait(60)
        raise RuntimeError("cancelled")


@pytest.fixture
def session(monkeypatch):
    pyspark = pytest.importorskip("pyspark", reason="needs pip install 'toprank[spark]'")
    monkeypatch.setattr(pyspark, "inheritable_thread_target", lambda _: lambda function: function)
    return Session()


def test_a_job_of_spark_went_on_after_an_interrupt(session, monkeypatch):
    monkeypatch.setattr(spark_jobs, "Future", interrupted_once(lambda: bool(session.tags)))
    with pytest.raises(KeyboardInterrupt):
        spark_jobs.run_job(session, session.job)
    assert session.ended.is_set() and set(session.cancelled) == set(session.tags)
    assert len(session.tags) == 1


def test_the_answer_and_the_error_of_a_job_come_back_from_its_thread(session):
    assert spark_jobs.run_job(session, lambda: 7) == 7
    session.ended.set()
    with pytest.raises(RuntimeError, match="cancelled"):
        spark_jobs.run_job(session, session.job)
    assert session.cancelled == []


def jobs(spark):
    return spark.sparkContext.statusTracker().getActiveJobsIds()


@pytest.mark.slow
def test_an_interrupted_spill_left_its_files_and_its_job(spark, tmp_path, monkeypatch):
    def slowly(batches):
        for batch in batches:
            yield batch
            time.sleep(600)

    rows = spark.range(100).selectExpr("cast(id as double) a", "id % 2 y").repartition(2)
    slow = rows.mapInArrow(slowly, rows.schema)
    answer = interrupted_once(lambda: len(list(tmp_path.iterdir())) == 2)
    with monkeypatch.context() as patched:
        patched.setattr(spark_jobs, "Future", answer)
        with pytest.raises(KeyboardInterrupt):
            blocks.from_spark(slow, features=["a"], target="y", spill_dir=str(tmp_path))
    assert time.monotonic() - answer.raised < 3 * LATEST  # before, Spark has to start
    assert list(tmp_path.iterdir()) == [] and jobs(spark) == []


# ---- real signals ------------------------------------------------------------------------------

PROGRAM = """
import json, os, signal, sys, threading, time
import numpy as np
import pandas as pd
from toprank import PushTrees

def fits(engine):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 20, size=(6000, 4)).astype(float)
    y = (X[:, 0] + rng.normal(size=6000) * 5 > 15).astype(int)
    if engine == "dask":
        import dask.array as da
        import distributed
        cluster = distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=":0")
        client = distributed.Client(cluster)
        cut = da.from_array(X, chunks=(3000, -1))
        def left():
            from toprank.rankers.trees.distributed_dask import RUNS
            return len(RUNS._busy) + len(RUNS._trackers)
        return (lambda t: t.fit_dask(client, cut, y)), lambda: sum(client.run(left).values()), X, y
    from toprank.blocks import spark_session
    spark = spark_session("local-cluster[2,1,1024]", spark__ui__enabled="false",
                          spark__executor__memory="512m", spark__log__level="OFF",
                          spark__driver__host="127.0.0.1", spark__driver__bindAddress="127.0.0.1")
    X = pd.DataFrame(X, columns=list("abcd"))
    frame = spark.createDataFrame(X.assign(y=y)).cache()
    frame.count()
    def fit(trees):
        return trees.fit_spark(frame, features=list("abcd"), target="y", num_workers=2)
    return fit, lambda: len(spark.sparkContext.statusTracker().getActiveJobsIds()), X, y

if __name__ == "__main__":
    engine, *moments = sys.argv[1:]
    fit, left, X, y = fits(engine)
    def trees(n):
        return PushTrees(4, backend="xgboost", n_estimators=n, max_leaves=4, early_stopping=False,
                         subsample=1.0, random_state=0)
    expected = trees(3).fit(X, y).booster_.get_dump()
    fit(trees(3))
    found = []
    for after in map(float, moments):
        ranker, sent = trees(1_000_000), []
        def interrupt():
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
        threading.Timer(after, interrupt).start()
        try:
            fit(ranker)
        except KeyboardInterrupt:
            seconds = time.monotonic() - sent[0]
        fitted = sorted(set(vars(ranker)) - set(ranker.get_params()))
        at_work = left()
        again = fit(ranker.set_params(n_estimators=3)).booster_.get_dump() == expected
        found.append({"seconds": seconds, "fitted": fitted, "left": at_work, "again": again})
    print(json.dumps(found), flush=True)
    os._exit(0)  # the cluster goes with its parent, and says a lot
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
@pytest.mark.parametrize(("engine", "moments"), [("dask", 12), ("spark", 4)])
def test_ctrl_c_stops_trees_on_a_cluster(engine, moments, tmp_path, request, record_property):
    if engine == "spark":
        pytest.importorskip("pyspark", reason="needs pip install 'toprank[spark]'")
    pytest.importorskip("distributed", reason="needs pip install 'toprank[dask]'")
    program = Path(tmp_path, "fits.py")
    program.write_text(PROGRAM)
    after = np.random.default_rng(0).uniform(0.0, 3.0, moments).round(3).astype(str)
    done = subprocess.run(
        [sys.executable, str(program), engine, *after],
        capture_output=True,
        text=True,
        timeout=500,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    record_property("cases", len(found))
    print(f"\n{engine}: {[round(one['seconds'], 2) for one in found]} seconds")
    assert len(found) == moments
    for one in found:
        assert (one["fitted"], one["left"], one["again"]) == ([], 0, True), one
        assert one["seconds"] < LATEST
