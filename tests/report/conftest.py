"""One hostile table, the report about it, and a browser to look at it."""

from pathlib import Path

import numpy as np
import pytest
from browser import new_browser  # noqa: F401
from quick_tables import pytest_runtest_setup, pytest_runtest_teardown  # noqa: F401

from toprank.report import build

SCRIPT = "<script>document.title='taken';alert(1)</script>"
VALUE = "</script><img src=x onerror=\"document.title='taken'\">"
ID = "</td><b id=injected>"
POSITIVE = "<i>yes</i>"


@pytest.fixture(scope="session")
def frame():
    """Mixed columns whose names and values try to break out of the page."""
    pytest.importorskip("skops", reason="models are saved with skops")
    pandas = pytest.importorskip("pandas", reason="the table is a pandas data frame")
    rng = np.random.default_rng(1)
    n = 420
    x, z = rng.normal(size=(2, n))
    y = x + 0.7 * z + rng.normal(size=n) > 1.2
    return pandas.DataFrame(
        {
            SCRIPT: x,
            "\"'><svg onload=alert(2)>": z,
            "עברית \u202e gnp.exe": rng.normal(size=n),
            "a\x00b\nc": rng.integers(0, 5, n),
            "L" * 500: rng.choice([VALUE, "b & c", "\u2028"], n),
            "always": 1,
            "never": np.nan,
            "when": pandas.date_range("2024-01-01", periods=n, freq="h"),
            "gap": np.where(rng.random(n) < 0.3, np.nan, x),
            "who": [f"{ID}{i}" for i in range(n)],
            "label": np.where(y, POSITIVE, "no & never"),
        }
    )


@pytest.fixture(scope="session")
def report(frame):
    return build(frame, "label", positive=POSITIVE, id="who", k=30, ps=(1, 4, 64), cv=4)


@pytest.fixture(scope="session")
def saved(report, tmp_path_factory) -> Path:
    return report.save(tmp_path_factory.mktemp("report") / "report.html")
