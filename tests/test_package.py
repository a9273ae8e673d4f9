"""The package as a whole: its version, what importing it brings, and its extras."""

import importlib.metadata
import importlib.resources
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import toprank
from toprank import _extras
from toprank._extras import require

OPTIONAL = (
    *("lightgbm", "matplotlib", "numba", "pandas", "polars"),
    *("pyarrow", "rich", "typer", "xgboost", "skops", "onnx", "onnxruntime"),
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


def test_an_interrupt_while_a_library_is_imported_arrives_once_it_is_whole(tmp_path, monkeypatch):
    (tmp_path / "slow_library.py").write_text(
        "import signal\nsignal.raise_signal(signal.SIGINT)\nwhole = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    # where tests run in the background, the shell has told them to ignore interrupts
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            require("slow_library", "frames")
    finally:
        signal.signal(signal.SIGINT, before)
    assert sys.modules.pop("slow_library").whole


def test_the_names_of_the_package_are_the_product_alone():
    names = dir(toprank)
    assert set(toprank.__all__) <= set(names)
    private = [name for name in names if name.startswith("_") and name != "__version__"]
    assert private == []
    assert not {"Any", "TYPE_CHECKING", "import_module", "annotations", "choose", "cli"} & set(
        names
    )
    for name in names:
        assert getattr(toprank, name) is not None


def test_the_hint_names_the_folder_of_a_checkout_that_is_not_installed(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    assert _extras.install_command("onnx") == "pip install 'toprank[onnx]'"
    monkeypatch.setattr(_extras, "distribution", missing)
    with pytest.raises(ImportError, match="pip install ") as caught:
        require("no_such_module", "frames")
    folder = Path(_extras.__file__).resolve().parents[2]
    if (folder / "pyproject.toml").is_file():
        assert f"{folder}[frames]" in str(caught.value)


def test_require_names_the_extra_that_brings_a_missing_module(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'toprank\[frames\]'") as caught:
        require("pandas", "frames")
    assert caught.value.name == "pandas"
