"""A small table, models fitted to it by the command line, and a way to call it."""

import re

import pytest

pytest.importorskip("typer", reason="the command line needs the extra cli")
pytest.importorskip("rich", reason="the command line needs the extra cli")
pytest.importorskip("pandas", reason="the command line reads tables with the extra frames")
pytest.importorskip("pyarrow", reason="the command line reads tables with the extra frames")

import numpy as np
import pandas as pd
from quick_tables import pytest_runtest_setup, pytest_runtest_teardown  # noqa: F401
from typer.testing import CliRunner

from toprank.cli.app import app


@pytest.fixture(scope="session")
def invoke():
    """Call the command line in this process."""

    def call(*arguments, columns="200", **given):
        arguments = [str(one) for one in arguments]
        learns = arguments[:1] == ["fit"] or (
            arguments[:1] == ["report"] and {"-y", "--target"} & set(arguments)
        )
        if learns and not {"--model", "--from", "--help"} & set(arguments):
            arguments += ["--model", "pnorm"]  # an ensemble, the default, takes seconds
        measures = arguments[:1] in (["evaluate"], ["compare"])
        if measures and not {"--resamples", "--by", "--help"} & set(arguments):
            arguments += ["--resamples", "50"]
        runner = CliRunner(env={"COLUMNS": columns, "TERM": "dumb"})
        return runner.invoke(app, arguments, **given)

    return call


@pytest.fixture(scope="session")
def words():
    """The words of an answer, without frames and line breaks."""
    return lambda text: " ".join(re.sub("[│╭╮╰╯─]", " ", text).split())


@pytest.fixture(scope="session")
def frame():
    """Customers of mixed columns, one in five of whom bought."""
    rng = np.random.default_rng(0)
    n = 300
    table = pd.DataFrame(
        {
            "customer": [f"c{i:04d}" for i in range(n)],
            "age": rng.normal(40, 10, n).round(1),
            "city": rng.choice(["Rome", "Oslo", "Bern"], n),
            "joined": pd.date_range("2025-01-01", periods=n, freq="D").astype(str),
            "income": rng.lognormal(10, 1, n).round(2),
        }
    )
    chance = table.age / 10 + (table.city == "Oslo") + rng.normal(0, 0.7, n)
    table.loc[rng.random(n) < 0.1, "income"] = np.nan
    table["bought"] = np.where(chance > np.quantile(chance, 0.8), "yes", "no")
    return table


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="session")
def train(frame, folder):
    path = folder / "train.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def model(train, folder, invoke):
    pytest.importorskip("skops", reason="models are written with the extra models")
    path = folder / "model"
    done = invoke("fit", train, "-y", "bought", "--id", "customer", "--p", 4, "-o", path)
    assert done.exit_code == 0, done.output
    return path


@pytest.fixture(scope="session")
def other(train, folder, invoke, model):
    """A second, poorer model: it does not know the age."""
    path = folder / "other"
    options = ["--model", "proper", "--drop", "age", "--drop", "joined", "--id", "customer"]
    done = invoke("fit", train, "-y", "bought", *options, "-o", path)
    assert done.exit_code == 0, done.output
    return path
