"""Pages of the built site in a real browser, on a wide screen and on a phone.

TOPRANK_SITE names the folder that ``sphinx-build -W docs FOLDER`` has written: `.ci/run` builds the
site and has the first and every fifth page opened. With TOPRANK_SITE_ALL=1, as in a night, all of
them are, and without a folder the site is built here. With neither the tests are skipped.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from browser import new_browser  # noqa: F401

DOCS = Path(__file__).parents[1] / "docs"
pytestmark = [
    pytest.mark.more,
    pytest.mark.skipif(
        not {"TOPRANK_SITE", "TOPRANK_SITE_ALL"} & {*os.environ},
        reason="TOPRANK_SITE names no site",
    ),
]
WIDTHS = (1280, 390)
#: What a page asks of other machines, pictures that did not come, and how far it is too wide.
LOOK = """
const address = node => node.getAttribute('src') || node.getAttribute('href') || '';
const far = node => /^(https?:)?\\/\\//.test(address(node));
return {
  far: [...document.querySelectorAll('script[src], img[src], iframe[src], link[rel=stylesheet]')]
    .filter(far).map(node => node.outerHTML.slice(0, 100)),
  missing: [...document.images].filter(image => !image.complete || image.naturalWidth === 0)
    .map(image => image.src),
  over: document.documentElement.scrollWidth - window.innerWidth,
  wide: [...document.querySelectorAll('article *')].filter(node =>
    node.getBoundingClientRect().right > window.innerWidth + 1 && !node.closest(
      'pre, .highlight, .table-wrapper, div.math, svg, math, .sd-scroll')).slice(0, 3)
    .map(node => node.outerHTML.slice(0, 100)),
  nameless: [...document.querySelectorAll('article img')]
    .filter(image => !image.hasAttribute('alt')).length,
};
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if "TOPRANK_SITE" in os.environ:
        return Path(os.environ["TOPRANK_SITE"])
    folder = tmp_path_factory.mktemp("site")
    build = ["-m", "sphinx", "-W", "--keep-going", "-q", str(DOCS), str(folder)]
    subprocess.run([sys.executable, *build], check=True)
    return folder


def pages(site):
    """The pages of the site; the small ones that only lead to a new address are opened by it."""
    found = [site / "index.html", *sorted({*site.rglob("*.html")} - {site / "index.html"})]
    found = [page for page in found if "This page has moved" not in page.read_text("utf-8")]
    return found if "TOPRANK_SITE_ALL" in os.environ else found[::5]


def test_pages_open_wide_and_on_a_phone(new_browser, site):  # noqa: F811
    driver = new_browser()
    faults = []
    for page in pages(site):
        name = page.relative_to(site).as_posix()
        driver.get(page.as_uri())
        for width in WIDTHS:
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            seen = driver.execute_script(LOOK)
            if seen["over"] > 1:
                faults.append(f"{name} at {width}: {seen['over']} pixels too wide: {seen['wide']}")
        for what in ("far", "missing", "nameless"):
            if seen[what]:
                faults.append(f"{name}: {what} {seen[what]}")
        said = [one["message"] for one in driver.get_log("browser") if one["level"] == "SEVERE"]
        faults += [f"{name} says {message}" for message in said]
    assert not faults, "\n".join(faults)


def test_the_search_finds_a_page(new_browser, site):  # noqa: F811
    driver = new_browser()
    driver.get((site / "search.html").as_uri() + "?q=resampling")
    driver.implicitly_wait(20)
    assert driver.find_element("css selector", "#search-results li a").text


def test_formulas_are_drawn_by_the_browser_itself(site):
    text = (site / "reference/generated/toprank.metrics.value_at.html").read_text("utf-8")
    assert "<math" in text and "mathjax" not in text.lower()


def test_names_and_examples_lead_to_each_other(site):
    page = (site / "reference/generated/toprank.metrics.best_k.html").read_text("utf-8")
    assert "plot_2_leads_to_call" in page
    tutorial = (site / "tutorials/by_job/plot_2_leads_to_call.html").read_text("utf-8")
    assert "toprank.metrics.best_k.html" in tutorial
