"""The benchmarks as modules, where the checkout is at hand."""

import importlib
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def benchmarks():
    """The modules by their names, which they import each other by."""
    if not BENCHMARKS.is_dir():
        pytest.skip("benchmarks lie in the checkout and are not installed")
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module
    finally:
        sys.path.remove(str(BENCHMARKS))
