"""Jobs of Spark that can be interrupted.

An interrupt (Ctrl-C) in the middle of a call to the Java side of Spark breaks the line to it and
leaves the job running. So the call is made in a thread, and whoever asked for it waits in Python.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from toprank._extras import require

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

Result = TypeVar("Result")

#: Seconds that Spark has to cancel a job, and between two requests to do so.
_GRACE, _LOOK = 10.0, 0.2


def run_job(session: SparkSession, job: Callable[[], Result]) -> Result:
    """Return what a job returns; cancel it where the wait for it is interrupted.

    Parameters
    ----------
    session : pyspark.sql.SparkSession
    job : callable
        An action of Spark, such as the ``collect`` of a data frame.
    """
    context, tag = session.sparkContext, f"toprank-{uuid4().hex[:12]}"
    answer: Future[Result] = Future()

    def tagged() -> None:
        try:
            context.addJobTag(tag)  # a property of this thread, as the next one
            context.setInterruptOnCancel(True)
            answer.set_result(job())
        except BaseException as problem:
            answer.set_exception(problem)

    inherited = require("pyspark", "spark").inheritable_thread_target(session)
    Thread(target=inherited(tagged), name="toprank-spark", daemon=True).start()
    try:
        return answer.result()
    except BaseException:
        _cancel(context, tag, answer)
        raise


def _cancel(context: SparkContext, tag: str, answer: Future[Result]) -> None:
    until = time.monotonic() + _GRACE
    # again and again: the job may only be about to start
    while not answer.done() and time.monotonic() < until:
        with suppress(Exception):  # the session may be gone
            context.cancelJobsWithTag(tag)
        wait([answer], _LOOK)


def run_everywhere(session: SparkSession, action: Callable[[], None]) -> None:
    """Run something on every executor, once what runs there has ended.

    A barrier stage with a task for each core starts when all cores are free.
    """
    context = session.sparkContext
    cores = max(1, int(context.defaultParallelism))

    def task(_: object) -> Iterator[object]:
        action()
        return iter(())

    slots = context.parallelize(range(cores), cores)
    run_job(session, slots.barrier().mapPartitions(task).count)
