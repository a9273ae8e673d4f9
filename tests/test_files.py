"""Files and modules that are not there, may not be written, or fail for another reason."""

import os

import pytest

from toprank import _imports
from toprank._files import _target, check_folder
from toprank._lazy import cached_property


def test_a_folder_that_is_not_there_is_told_before_the_work(tmp_path):
    check_folder(tmp_path)
    with pytest.raises(OSError, match="Make the folder first, or name another") as error:
        check_folder(tmp_path / "none")
    assert error.value.filename == str(tmp_path / "none")


def test_a_file_that_is_protected_is_not_replaced(tmp_path, monkeypatch):
    (tmp_path / "kept").write_text("1")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # whoever runs the tests
    with pytest.raises(PermissionError, match="protected against writing"):
        _target(tmp_path / "kept")


def test_a_module_whose_own_import_fails_says_so(monkeypatch):
    def fail(name):
        raise ModuleNotFoundError("No module named 'other'", name="other")

    monkeypatch.setattr(_imports, "import_module", fail)
    with pytest.raises(ModuleNotFoundError, match="other"):
        _imports.import_name("toprank.rankers", "linear", {})


def test_a_lazy_attribute_is_computed_once_and_found_on_the_class():
    class Counts:
        asked = 0

        @cached_property
        def number(self):
            """Return a number."""
            self.asked += 1
            return 7

    one = Counts()
    assert (one.number, one.number, one.asked) == (7, 7, 1)
    assert Counts.number.__doc__ == "Return a number."
