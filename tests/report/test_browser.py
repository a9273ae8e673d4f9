"""The page in a real browser: it renders, the slider works, and nothing in the table breaks out."""

import base64
import json
from itertools import pairwise

import pytest

keys = pytest.importorskip("selenium.webdriver.common.keys", reason="selenium is not installed")


@pytest.fixture(scope="module")
def driver(new_browser):
    return new_browser()


@pytest.fixture
def opened(driver, saved):
    driver.get("about:blank")
    driver.get_log("browser"), driver.get_log("performance")
    driver.get(saved.as_uri())
    return driver


def text(driver, where):
    return driver.find_element("css selector", where).text


def set_slider(driver, place):
    driver.execute_script(
        "const p = document.getElementById('p'); p.value = arguments[0];"
        "p.dispatchEvent(new Event('input'))",
        place,
    )


def shown_state(driver):
    """The numbers that depend on p."""
    return tuple(text(driver, where) for where in ("#p-value", "#state", "#figures", "#near"))


def test_the_page_renders_without_an_error_in_the_console(opened):
    assert opened.get_log("browser") == []
    assert len(opened.find_elements("css selector", "#charts svg[role=img]")) == 3
    assert opened.find_elements("css selector", "#forest svg circle")
    for place in range(3):
        set_slider(opened, place)
    assert opened.get_log("browser") == []


def test_no_request_leaves_the_page(opened, saved):
    set_slider(opened, 2)
    messages = [json.loads(one["message"])["message"] for one in opened.get_log("performance")]
    asked = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert [url for url in asked if not url.startswith("data:")] == [saved.as_uri()]


def test_the_slider_changes_the_numbers_to_those_of_its_p(opened, report):
    data = report.to_dict()
    states = []
    for place, label in enumerate(data["labels"]):
        set_slider(opened, place)
        states.append(shown_state(opened))
        assert text(opened, "#p-value") == label
        slider = opened.find_element("id", "p")
        assert slider.get_attribute("aria-valuetext") == label
        found = data["pushes"][place]["figures"]["precision"]["value"] * data["k"]
        assert f"At {label}, {found:.3g} of the first 30 rows are positive" in states[-1][1]
        first = data["items"][data["pushes"][place]["near"][0]]
        assert first["id"] in text(opened, "#near tbody tr")
    assert len(set(states)) == len(states)


@pytest.mark.more
def test_the_script_writes_figures_as_the_page_does(opened):
    opened.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    for place in range(3):
        set_slider(opened, place)
        line = f".all tbody tr:nth-child({place + 1}) td"
        static = [one.text for one in opened.find_elements("css selector", line)]
        drawn = [
            f"{value.text} {ends.text}"
            for value, ends in zip(
                opened.find_elements("css selector", "#figures td:nth-child(2)"),
                opened.find_elements("css selector", "#figures td:nth-child(3)"),
                strict=True,
            )
        ]
        assert [" ".join(one.split()) for one in static] == drawn


@pytest.mark.more
def test_the_slider_works_by_keyboard(opened):
    slider = opened.find_element("id", "p")
    set_slider(opened, 0)
    before = shown_state(opened)
    slider.send_keys(keys.Keys.ARROW_RIGHT)
    assert text(opened, "#p-value") == "strength 4" and shown_state(opened) != before
    slider.send_keys(keys.Keys.END)
    assert text(opened, "#p-value") == "strength 64"
    slider.send_keys(keys.Keys.HOME)
    assert shown_state(opened) == before


def test_who_enters_and_leaves_is_the_difference_of_the_lists(opened, report):
    data = report.to_dict()
    set_slider(opened, 2)
    entering = set(data["pushes"][2]["top"]) - set(data["pushes"][0]["top"])
    opened.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    shown = opened.find_elements("css selector", "#changes > div:first-child li bdi")
    assert {one.text for one in shown} == {data["items"][row]["id"] for row in entering}
    assert len(entering) == len(shown) > 0


@pytest.mark.more
def test_hostile_names_and_values_are_shown_as_text(opened, frame):
    for place in range(3):
        set_slider(opened, place)
    opened.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    page = text(opened, "body")
    script = next(name for name in frame.columns if name.startswith("<script>"))
    assert script in page and "</td><b id=injected>" in page and "<i>yes</i>" in page
    assert "</script><img src=x onerror=" in page
    assert opened.title == "The top of the list: label"
    assert not opened.find_elements("css selector", "#injected, img, i, svg[onload], iframe")
    scripts = opened.find_elements("css selector", "script")
    assert [one.get_attribute("type") for one in scripts] == ["application/json", ""]
    handlers = "return [...document.querySelectorAll('*')].filter(e => [...e.attributes].some("
    handlers += "a => a.name.startsWith('on'))).length"
    assert opened.execute_script(handlers) == 0


def test_a_script_that_got_in_would_not_run(opened):
    opened.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
        "document.body.append(s);"
        "const b = document.createElement('b'); b.setAttribute('onclick', 'window.ran = 2');"
        "document.body.append(b); b.click();"
    )
    assert opened.execute_script("return window.ran === undefined")


@pytest.mark.more
@pytest.mark.parametrize("width", [320, 375, 768])
def test_a_phone_needs_no_sideways_scrolling(opened, width):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        opened.refresh()
        for place in range(3):
            set_slider(opened, place)
            wide = "return document.documentElement.scrollWidth"
            assert opened.execute_script(wide) <= width
        assert opened.find_element("id", "p").size["width"] > 0.5 * width
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.more
def test_the_page_prints_with_everything_unfolded(opened):
    printed = base64.b64decode(opened.print_page())
    assert printed.startswith(b"%PDF") and len(printed) > 20_000
    assert (
        opened.execute_script("return document.querySelectorAll('details:not([open])').length") == 0
    )


def test_every_picture_and_control_has_a_name(opened):
    unnamed = (
        "return [...document.querySelectorAll('svg')].filter(s => !s.closest('[aria-hidden=true]')"
        " && !(s.getAttribute('role') === 'img' && s.querySelector('title').textContent"
        " && s.querySelector('desc').textContent)).length"
    )
    assert opened.execute_script(unnamed) == 0
    assert opened.find_element("css selector", "label[for=p]").text
    levels = [int(e.tag_name[1]) for e in opened.find_elements("css selector", "h1, h2, h3, h4")]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert opened.find_element("css selector", "html").get_attribute("lang") == "en"


@pytest.mark.more
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_words_stand_out_from_the_paper(opened, scheme):
    feature = {"name": "prefers-color-scheme", "value": scheme}
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    colours = opened.execute_script(
        "const of = (e) => getComputedStyle(e).color; const d = document;"
        "return [getComputedStyle(d.body).backgroundColor, ...['body', '.small', 'summary', "
        "'#p-value', 'tr.cut td'].map(s => of(d.querySelector(s)))]"
    )
    paper, *inks = (luminance(colour) for colour in colours)
    for ink in inks:
        high, low = max(ink, paper), min(ink, paper)
        assert (high + 0.05) / (low + 0.05) >= 4.5
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def luminance(colour):
    """Relative luminance of rgb(r, g, b), as WCAG defines it."""
    parts = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
