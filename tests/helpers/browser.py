"""A headless Chromium, for the tests that look at pages."""

import shutil

import pytest


def browser_files() -> tuple[str, str] | None:
    """Chromium and its driver, where they are installed."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    return None if found is None or driver is None else (found, driver)


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
