"""The examples in the docstrings of the installed package run and print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import toprank

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = ["toprank"] + [
    module.name
    for module in pkgutil.walk_packages(toprank.__path__, prefix="toprank.")
    if not module.name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_say(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)
    assert result.failed == 0, f"{result.failed} of {result.attempted} examples failed; see above"
