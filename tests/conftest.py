"""Fixtures and settings for every test."""

import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import find, settings
from hypothesis.strategies import none

if "PYTEST_XDIST_WORKER" in os.environ:
    # there is a worker for every core: more threads in each would wait for one another
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# how many examples hypothesis draws for a test that names no number: level 1 draws a few, level 2
# more, and a night many, with a seed that it prints. `pytest --hypothesis-profile=NAME` chooses.
LEVEL_1, LEVEL_2, NIGHT = "level-1", "level-2", "night"
settings.register_profile(LEVEL_1, max_examples=10, deadline=None, derandomize="CI" in os.environ)
settings.register_profile(LEVEL_2, settings.get_profile(LEVEL_1), max_examples=50)
settings.register_profile(NIGHT, settings.get_profile(LEVEL_1), max_examples=500, derandomize=False)
settings.register_profile("few", settings.get_profile(LEVEL_1))  # what level 1 was asked for once
# whether a library's other version will do is no question of numbers: each property, twice
settings.register_profile("versions", settings.get_profile(LEVEL_1), max_examples=2)


def pytest_configure(config: pytest.Config) -> None:
    """Choose hypothesis' profile by the level that is run."""
    if config.getoption("--hypothesis-profile", None) is None:
        settings.load_profile(LEVEL_1 if is_level_1(config) else LEVEL_2)


def is_level_1(config: pytest.Config) -> bool:
    """Whether the tests marked `more` are left out."""
    return "not more" in config.getoption("markexpr", "")


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass by the libraries and the tests themselves, which stay."""
    # Hypothesis takes NumPy's state on with its first example, and old versions ask the collector
    # who else holds it: that must come before, or they warn of a state that nobody holds
    find(none(), lambda _: True)
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Make no cases that level 1 leaves out: to make ten thousand takes seconds in each worker."""
    test = metafunc.definition
    if is_level_1(metafunc.config) and any(map(test.get_closest_marker, ("more", "slow"))):
        # it stays, to be counted as left out, but its cases are not written out
        test.own_markers[:] = [mark for mark in test.own_markers if mark.name != "parametrize"]
    yield
    sampled = test.get_closest_marker("sampled")
    if sampled is not None and is_level_1(metafunc.config):
        metafunc._calls[:] = metafunc._calls[:: sampled.args[0]]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort the tests into levels: a sampled test leaves most of its cases to level 2."""
    cases: Counter[str] = Counter()
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.timeout(0))  # it may take its time
        sampled = item.get_closest_marker("sampled")
        if sampled is not None and not is_level_1(config):
            test = item.nodeid.partition("[")[0]
            if cases[test] % sampled.args[0]:
                item.add_marker(pytest.mark.more)
            cases[test] += 1


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Item) -> Iterator[None]:
    """Skip what asks for XGBoost where it is not installed: no extra of the tests brings it."""
    try:
        return (yield)
    except ImportError as error:
        if (error.name or "").split(".")[0] != "xgboost" or find_spec("xgboost") is not None:
            raise
        pytest.skip("XGBoost is not here: pip install '.[xgboost]', or '.[xgboost-cpu]'")


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    """Leave no figure open: pyplot keeps each, and warns from the twentieth on."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of larger data and reference figures that lies beside the checkout."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip("the folder ../shared (data and reference figures) is not here")
    return folder
