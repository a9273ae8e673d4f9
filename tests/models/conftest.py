"""Tables of mixed columns, and models fitted to them once."""

import warnings

import numpy as np
import pandas as pd
import pytest
from quick_tables import pytest_runtest_setup, pytest_runtest_teardown  # noqa: F401

from toprank.models import fit_table


@pytest.fixture(scope="session", autouse=True)
def libraries():
    """What models need besides pandas."""
    pytest.importorskip("skops", reason="models are saved with skops")


def make_table(n=240, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "customer": [f"c{i:05d}" for i in range(n)],
            "age": rng.normal(40, 12, n).round(1),
            "member": rng.random(n) > 0.5,
            "city": rng.choice(["Rome", "Oslo", "Bern"], n, p=[0.5, 0.3, 0.2]),
            "spent": rng.exponential(100, n),
        }
    )
    frame.loc[::7, "age"] = np.nan
    frame.loc[::11, "city"] = None
    latent = frame.age.fillna(40) / 12 + 1.5 * (frame.city == "Rome") + rng.normal(size=n)
    frame["bought"] = np.where(latent > np.quantile(latent, 0.7), "yes", "no")
    return frame


@pytest.fixture(scope="session")
def table():
    """Numbers, booleans, categories, missing values; an id and a target."""
    return make_table()


@pytest.fixture(scope="session")
def full_table():
    """The same with a date and a text."""
    frame, rng = make_table(), np.random.default_rng(1)
    days = rng.integers(0, 500, len(frame)).astype("timedelta64[D]")
    frame["since"] = np.datetime64("2024-03-01", "us") + days
    words = ["quick", "slow", "red", "blue", "house", "garden", "cat", "dog"]
    frame["note"] = [" ".join(rng.choice(words, 4)) + f" {i}" for i in range(len(frame))]
    frame.loc[::9, "since"] = pd.NaT
    frame.loc[::13, "note"] = None
    return frame


def quickly(frame, name, **kwargs):
    given = {"p": 4} if name in ("pnorm", "rankboost", "trees") else {}
    return fit_table(frame, "bought", id="customer", model=name, **{**given, **kwargs})


@pytest.fixture(scope="session")
def fitted(table):
    """Models of the plain table by name, each fitted when first asked for."""
    kept = {}

    def model(name):
        if name not in kept:
            if name == "trees":
                pytest.importorskip("lightgbm", reason="trees need LightGBM")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # smooth margin ranking says what is not separable
                kept[name] = quickly(table, name)
        return kept[name]

    return model


@pytest.fixture(scope="session")
def full_model(full_table):
    return quickly(full_table, "pnorm")
