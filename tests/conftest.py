"""Fixtures and settings for every test."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("toprank", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("toprank")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of larger data and reference figures that lies beside the checkout."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip("the folder ../shared (data and reference figures) is not here")
    return folder
