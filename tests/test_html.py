"""Results in notebooks: tables of HTML, escaped, with a picture of the interval."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from toprank import PNormPushCV, PushEnsemble, select
from toprank._html import Markup, cell, interval_picture, table_html
from toprank.inference import compare, interval, period_interval, top_groups
from toprank.select import compare_lists, cut

BAD = "<script>alert(1)</script>&\x1b[31m"


def rows(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + rng.normal(size=n) > 0.8


def parse(markup):
    """The markup as a tree; it must be well-formed, so that no notebook shows half of it."""
    return ElementTree.fromstring(f"<div>{markup}</div>")


def text_of(markup):
    return " ".join(" ".join(parse(markup).itertext()).split())


def results():
    X, y = rows()
    s = X[:, 0]
    days = np.arange(len(y)) // 12
    yield "interval", interval("auc", y, s)
    yield "compare", compare("auc", y, s, X[:, 1])
    yield "comparisons", compare("auc", y, {"a": s, "b": X[:, 1], "c": X[:, 2]})
    yield "periods", period_interval("precision_at", y, s, days, k=3)
    yield "groups", top_groups(y, s, np.where(X[:, 1] > 0, BAD, "b"), 20)
    yield "choice", PNormPushCV(ps=(1, 4), test_size=None).fit(X, y).choice_
    yield "select", select(s + 1, calibration=(y, s), fdr=0.5)
    yield "difference", compare_lists([BAD, "b", "c"], ["b", "d", BAD], 2)
    yield "cut", cut(s, 10, entities=days, per_entity=1)


RESULTS = (
    *("interval", "compare", "comparisons", "periods", "groups", "choice", "select"),
    *("difference", "cut"),
)


@pytest.fixture(scope="module")
def shown():
    return {name: result._repr_html_() for name, result in results()}


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_is_a_whole_table_that_runs_nothing(shown, name):
    tree = parse(shown[name])
    assert tree.find(".//table") is not None or name == "cut"
    assert not tree.findall(".//script")
    assert "\x1b" not in shown[name]


def test_an_interval_shows_its_numbers_and_its_picture(shown):
    X, y = rows()
    found = interval("auc", y, X[:, 0])
    said = text_of(shown["interval"])
    for number in (found.estimate, found.low, found.high):
        assert f"{number:.4g}" in said
    assert "95% interval" in said
    assert "<svg" in shown["interval"]


def test_a_comparison_marks_no_difference(shown):
    assert "stroke-dasharray" in shown["compare"]
    assert shown["comparisons"].count("<svg") == 3


def test_words_of_the_user_are_escaped_and_control_signs_visible():
    markup = table_html([(BAD, BAD)], head=(BAD, BAD), caption=BAD, notes=[BAD])
    assert "<script>" not in markup and "\x1b" not in markup
    assert markup.count(r"&lt;script&gt;alert(1)&lt;/script&gt;&amp;\x1b[31m") == 6
    assert cell(Markup("<b>x</b>")) == "<b>x</b>"


@pytest.mark.parametrize("ends", [(0.5, 0.5, 0.5), (0.2, 0.0, 1.0), (7.0, -3.0, 900.0)])
def test_a_picture_keeps_inside_its_frame(ends):
    for mark in (None, 0.0):
        picture = interval_picture(*ends, mark=mark)
        places = [float(x) for x in re.findall(r"(?:x1|x2|cx)='([^']+)'", picture)]
        assert all(8 <= place <= 172 for place in places)
        parse(picture)


def test_an_estimator_shows_its_interval_below_the_diagram():
    X, y = rows()
    ranker = PNormPushCV(ps=(1, 4), test_size=0.3)
    assert "95% interval" not in ranker._repr_html_()
    ranker.fit(X, y)
    assert f"{ranker.score_interval_.low:.4g}" in ranker._repr_html_()
    assert "95% interval" in ranker._repr_mimebundle_()["text/html"]
    assert issubclass(PushEnsemble, PNormPushCV.__mro__[1])
