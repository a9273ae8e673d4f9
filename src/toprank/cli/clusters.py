"""Where a command runs: in this process, or on the workers of Dask or Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from toprank._extras import require
from toprank.cli.terminal import Failure

if TYPE_CHECKING:
    from distributed import Client
    from pyspark.sql import SparkSession


def _check_engine(address: str | None) -> str | None:
    """Refuse what is no address of Dask or Spark, before anything is read or said."""
    if address is not None and address.partition(":")[0] not in ("dask", "spark"):
        raise Failure(
            f"--cluster {address!r}: expected dask://HOST:PORT, dask, spark://HOST:PORT or spark."
        )
    return address


Cluster = Annotated[
    str | None,
    typer.Option(
        help="Run on a cluster: dask://HOST:PORT, dask for processes of this machine; "
        "spark://HOST:PORT, spark, or spark:MASTER for another of its masters. Its workers must "
        "reach the files under the same paths.",
        callback=_check_engine,
    ),
]


@contextmanager
def open_cluster(address: str) -> Iterator[Client | SparkSession]:
    """A client of Dask or a session of Spark; ended afterwards if it was started here."""
    engine, _, rest = address.partition(":")
    if engine == "dask":
        with _open_dask(rest.removeprefix("//")) as client:
            yield client
    else:
        with _open_spark(address, rest) as session:
            yield session


@contextmanager
def _open_dask(host: str) -> Iterator[Client]:
    distributed = require("distributed", "dask")
    try:
        client = distributed.Client(f"tcp://{host}" if host else None, timeout="20s")
    except OSError as error:
        raise Failure(
            f"--cluster dask://{host}: no scheduler of Dask answers there ({error})."
        ) from error
    with client:
        yield client


@contextmanager
def _open_spark(address: str, rest: str) -> Iterator[SparkSession]:
    from toprank.blocks import spark_session

    running = require("pyspark.sql", "spark").SparkSession.getActiveSession()
    master = address if rest.startswith("//") else rest or "local[*]"
    try:
        session = running or spark_session(master, spark__ui__showConsoleProgress="false")
    except RuntimeError as error:
        raise Failure(f"--cluster {address}: {error}") from error
    try:
        yield session
    finally:
        if running is None:
            session.stop()
