"""Models that were saved by earlier versions of toprank still load, and score as they did."""

import json
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from toprank.models import ModelWarning, load

SAVED = Path(__file__).parent / "saved"
#: The scikit-learn that the files were saved with.
MADE_WITH = (1, 9)
SCORES = json.loads((SAVED / "scores.json").read_text())


@pytest.mark.parametrize("name", SCORES)
def test_a_model_saved_before_scores_as_it_did(name):
    path = SAVED / f"{name}.toprank"
    if name == "trees":
        pytest.importorskip("lightgbm")
    if tuple(map(int, version("scikit-learn").split(".")[:2])) != MADE_WITH:
        pytest.skip("its preparation was saved by another scikit-learn, which may not load it")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # the other libraries may be newer
        model = load(path)
    frame = pd.read_csv(SAVED / "table.csv")
    # texts are encoded in single precision, whose last digits are the processor's own
    near = 1e-6 * np.abs(SCORES[name]).max()
    np.testing.assert_allclose(model.score(frame), SCORES[name], rtol=0, atol=near)
    assert len(model.reasons(frame.head(3))) == 3
