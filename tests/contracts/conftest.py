"""The contracts of tables are tried on small models."""

from quick_tables import pytest_runtest_setup, pytest_runtest_teardown  # noqa: F401
