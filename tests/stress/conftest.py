"""The folder `fuzz` lies in the checkout and is not installed; the attacks import it."""

import sys
from pathlib import Path

from quick_tables import pytest_runtest_setup, pytest_runtest_teardown  # noqa: F401

ROOT = str(Path(__file__).resolve().parents[2])
if ROOT not in sys.path:
    sys.path.append(ROOT)
