"""Models that were saved by earlier versions of toprank still load, and score as they did."""

import json
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from saved_models import RANKERS, SAVED, scores_of

from toprank.models import ModelWarning, load, load_ranker
from toprank.models.ranker_kinds import RANKER_KINDS

#: The scikit-learn that the files were saved with.
MADE_WITH = (1, 9)
VERSIONS = {path.parent.name: json.loads(path.read_text()) for path in SAVED.glob("*/scores.json")}
#: What a file needs that is not installed with everything.
NEEDED = dict.fromkeys(("trees", "auto", "ensemble", "scaled-trees"), "lightgbm")
NEEDED |= {f"trees-{library}": library for library in ("lightgbm", "xgboost")}
#: XGBoost before this version does not find where the scores of a newer one's file start.
OLDEST = {"xgboost": "3"}


def files(kind: str) -> list[tuple[str, str]]:
    return [(made_by, name) for made_by, found in VERSIONS.items() for name in found.get(kind, ())]


def read(loader, path: Path):
    if path.stem in NEEDED:
        library = NEEDED[path.stem]
        pytest.importorskip(library, minversion=OLDEST.get(library))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # the other libraries may be newer
        return loader(path)


@pytest.mark.parametrize(("made_by", "name"), files("models"))
def test_a_model_saved_before_scores_as_it_did(made_by, name):
    if tuple(map(int, version("scikit-learn").split(".")[:2])) != MADE_WITH:
        pytest.skip("its preparation was saved by another scikit-learn, which may not load it")
    model = read(load, SAVED / made_by / f"{name}.toprank")
    frame = pd.read_csv(SAVED / "table.csv")
    scores = VERSIONS[made_by]["models"][name]
    # texts are encoded in single precision, whose last digits are the processor's own
    np.testing.assert_allclose(model.score(frame), scores, rtol=0, atol=1e-6 * np.abs(scores).max())
    assert len(model.reasons(frame.head(3))) == 3


@pytest.mark.parametrize(("made_by", "name"), files("rankers"))
def test_a_ranker_saved_before_scores_as_it_did(made_by, name):
    ranker = read(load_ranker, SAVED / made_by / f"{name}.ranker")
    rows, scores = VERSIONS[made_by]["rows"], VERSIONS[made_by]["rankers"][name]
    np.testing.assert_allclose(scores_of(ranker, np.array(rows)), scores, rtol=1e-9, atol=1e-12)


def test_the_newest_of_them_are_of_every_kind():
    newest = max(VERSIONS, key=lambda made_by: tuple(map(int, made_by.split("."))))
    assert set(VERSIONS[newest]["models"]) == set(RANKER_KINDS)
    assert set(VERSIONS[newest]["rankers"]) == set(RANKERS)
