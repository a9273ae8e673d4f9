"""The notebook that ships is that of its tutorial, with the outputs of these cells."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAKE = "run: python benchmarks/notebook.py"


@pytest.fixture(scope="module")
def maker():
    spec = importlib.util.spec_from_file_location("notebook", ROOT / "benchmarks" / "notebook.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def kept(maker):
    return json.loads(maker.NOTEBOOK.read_text(encoding="utf-8"))


def test_the_notebook_is_that_of_the_tutorial_and_has_its_outputs(maker, kept):
    script = maker.SCRIPT.read_text(encoding="utf-8")
    assert kept["metadata"]["toprank"]["sha256"] == maker.fingerprint(script), MAKE
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in kept["cells"]]
    assert cells == maker.cells_of(script), MAKE
    outputs = [out for cell in kept["cells"] for out in cell.get("outputs", [])]
    kinds = {out["output_type"] for out in outputs}
    assert kinds == {"stream", "display_data"}
    assert len(json.dumps(kept)) < 200_000


def test_the_notebook_is_valid(kept):
    nbformat = pytest.importorskip("nbformat", reason="the format is checked by nbformat")
    nbformat.validate(nbformat.from_dict(kept))


@pytest.mark.more
# the oldest LightGBM gives arrays names when it is fitted, and misses them later
@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
def test_the_cells_print_again_what_the_notebook_says(maker, kept):
    again = maker.run(maker.cells_of(maker.SCRIPT.read_text(encoding="utf-8")))
    said = [cell.get("outputs", []) for cell in kept["cells"]]
    for now, before in zip(again, said, strict=True):
        assert [out.get("text") for out in now] == [out.get("text") for out in before], MAKE
