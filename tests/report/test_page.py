"""The page as a file: complete in itself, escaped, small, and written whole or not at all."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank._text import clean_text, percent
from toprank.report.page import json_for_script


class Elements(HTMLParser):
    """Collects the elements of a page."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


OWN = set(
    """html head meta title style body a header main footer section h1 h2 h3 p dl dt dd div strong
    span ul li label input output noscript details summary table caption thead tbody tr th td bdi
    small script""".split()
)


def test_the_page_has_no_element_of_the_table_s_and_no_address(report):
    elements = Elements(report.html).found
    assert {tag for tag, _ in elements} <= OWN
    for tag, attributes in elements:
        assert not any(name.startswith("on") or name in ("src", "style") for name in attributes)
        assert attributes.get("href", "#").startswith("#"), tag
    assert [tag for tag, _ in elements].count("script") == 2
    assert "http://" not in report.html.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in report.html


def test_the_policy_allows_the_page_s_own_script_and_style_alone(report):
    policy = next(
        a["content"]
        for tag, a in Elements(report.html).found
        if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'")
    for tag, source in (("script", "script-src"), ("style", "style-src")):
        body = re.search(rf"<{tag}>(.*?)</{tag}>", report.html, re.DOTALL).group(1)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{source} 'sha256-{digest}'" in policy


def test_the_results_travel_inside_the_page(report):
    inside = re.search(r'id="data">(.*?)</script>', report.html, re.DOTALL).group(1)
    assert json.loads(inside) == report.to_dict()
    assert inside.isascii() and "<" not in inside


def test_the_page_is_small(report):
    assert len(report.html.encode()) < 400_000


@given(st.text())
def test_any_text_can_be_shown_and_embedded(text):
    safe = clean_text(text)
    assert len(safe) <= 120
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000 for c in safe)
    written = json_for_script({text: [safe]})
    assert json.loads(written) == {text: [safe]}
    assert written.isascii() and not set("<>&") & set(written)


@pytest.mark.parametrize(
    ("share", "said"),
    [(0, "0%"), (1, "100%"), (0.9999, ">99.9%"), (0.995, "99.5%"), (0.0001, "0.01%"), (0.4, "40%")],
)
def test_shares_are_written_with_the_digits_they_deserve(share, said):
    assert percent(share) == said


def test_an_interrupted_save_leaves_the_old_page(report, tmp_path):
    path = report.save(tmp_path / "page.html")
    old = path.read_bytes()
    broken = type(report)({"not": "a report"})
    with pytest.raises(KeyError):
        broken.save(path)
    assert path.read_bytes() == old
    assert [one.name for one in tmp_path.iterdir()] == ["page.html"]


def test_the_verdict_is_what_a_notebook_shows(report):
    said = report.to_dict()["verdict"]["headline"]
    assert said in repr(report) and said in report._repr_html_()
