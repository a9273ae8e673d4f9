"""The package as a whole: its version, what importing it brings, and its extras."""

import importlib.metadata
import importlib.resources
import subprocess
import sys

import pytest

import toprank
from toprank._extras import require

OPTIONAL = (
    *("lightgbm", "matplotlib", "numba", "pandas", "polars"),
    *("pyarrow", "rich", "typer", "xgboost", "skops", "skrub", "onnx", "onnxruntime"),
    *("dask", "pyspark"),
)


def run(code: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_version_is_the_one_in_the_metadata():
    assert toprank.__version__ == importlib.metadata.version("toprank")


def test_importing_the_package_brings_no_optional_library():
    # scikit-learn itself loads pandas where it is installed
    anyway = "sklearn.base, sklearn.datasets, sklearn.utils.validation"
    loaded = f"print(*[m for m in {OPTIONAL!r} if m in sys.modules])"
    told = run(f"import sys, {anyway}\n{loaded}\nimport toprank, toprank.datasets\n{loaded}")
    before, after = told.splitlines()
    assert set(after.split()) <= set(before.split())


def test_the_package_imports_where_no_optional_library_is_installed():
    run(f"import sys; sys.modules.update(dict.fromkeys({OPTIONAL!r})); import toprank")


def test_the_package_carries_its_type_information():
    assert importlib.resources.files("toprank").joinpath("py.typed").is_file()


@pytest.mark.parametrize("licence", ["LICENSE", "DATA-LICENSES.md"])
def test_the_distribution_carries_its_licences(licence):
    metadata = importlib.metadata.metadata("toprank")
    assert licence in metadata.get_all("License-File")


def test_require_returns_the_module():
    assert require("json", "frames").loads("[1]") == [1]


def test_require_names_the_extra_that_brings_a_missing_module(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'toprank\[frames\]'") as caught:
        require("pandas", "frames")
    assert caught.value.name == "pandas"
