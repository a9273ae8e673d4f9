"""The page about choosing p says what the code does."""

import doctest
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how_to" / "choosing_p.md"


def test_the_examples_of_the_page_run():
    result = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert result.attempted > 5 and result.failed == 0


def test_the_picture_of_the_page_is_there():
    assert (PAGE.parents[1] / "images" / "pima_push.png").stat().st_size > 10_000
