"""One hostile table, the report about it, and a browser to look at it."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from quick_tables import pytest_runtest_setup, pytest_runtest_teardown  # noqa: F401

from toprank.report import build

SCRIPT = "<script>document.title='taken';alert(1)</script>"
VALUE = "</script><img src=x onerror=\"document.title='taken'\">"
ID = "</td><b id=injected>"
POSITIVE = "<i>yes</i>"


def browser_files() -> tuple[str, str] | None:
    """Chromium and its driver, where they are installed."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    return None if found is None or driver is None else (found, driver)


@pytest.fixture(scope="session")
def frame():
    """Mixed columns whose names and values try to break out of the page."""
    pytest.importorskip("skrub", reason="the report prepares mixed columns with skrub")
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


@pytest.fixture(scope="session")
def new_browser():
    """Start a headless Chromium of a given width; all of them are closed at the end."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    files = browser_files()
    if files is None:
        pytest.skip("chromium and chromedriver are not installed")
    from selenium.webdriver.chrome.service import Service

    started = []

    def start(width=1280):
        options = webdriver.ChromeOptions()
        options.binary_location = files[0]
        for flag in (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-dev-shm-usage",
            "--no-first-run",
            f"--window-size={width},900",
        ):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(files[1]))
        driver.set_page_load_timeout(60)
        started.append(driver)
        return driver

    yield start
    for driver in started:
        driver.quit()
