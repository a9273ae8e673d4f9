"""The examples in the docstrings of the installed package run and print what they say."""

import doctest
import importlib
import pkgutil
from importlib.util import find_spec

import pytest

import toprank

FINDER = doctest.DocTestFinder()
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = ["toprank"] + [
    module.name
    for module in pkgutil.walk_packages(toprank.__path__, prefix="toprank.")
    if not module.name.endswith("__main__")
]


#: Libraries that an example may import and a user need not have.
OPTIONAL = ("dask", "pyspark", "torch", "xgboost")


def missing(test):
    """The optional library that an example imports and that is not here, if any."""
    lines = [line.split() for example in test.examples for line in example.source.splitlines()]
    # a module of ours that is called like a library, such as toprank.interop.xgboost, needs it
    imported = {
        part
        for words in lines
        if words[:1] in (["import"], ["from"])
        for part in words[1].split(".")
    }
    source = "".join(example.source for example in test.examples)
    imported |= {name for name in OPTIONAL if f'backend="{name}"' in source}
    absent = [name for name in OPTIONAL if name in imported and not find_spec(name)]
    return absent[0] if absent else None


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_say(name):
    tests = [test for test in FINDER.find(importlib.import_module(name), name) if test.examples]
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    skipped = [library for library in map(missing, tests) if library]
    for test in tests:
        if missing(test) is None:
            runner.run(test)
    assert runner.failures == 0, f"{runner.failures} of {runner.tries} examples failed; see above"
    if skipped and not runner.tries:
        pytest.skip(f"{skipped[0]} is not installed")
