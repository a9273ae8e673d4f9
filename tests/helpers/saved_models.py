"""Write one small file of every kind of model and ranker, as this version saves them.

    python tests/helpers/saved_models.py

writes tests/models/saved/VERSION/. It is run once before a release; the files are committed and
never changed after it, and tests/models/test_saved_before.py reads them for ever.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import toprank
from toprank import (
    AdaBoostRanker,
    IRPush,
    LabelRanker,
    PairRanker,
    PNormPush,
    PNormPushCV,
    ProperRanker,
    PushEnsemble,
    PushRanker,
    PushTrees,
    RankBoost,
    SmoothMarginRanker,
)
from toprank.models import fit_table, save_ranker
from toprank.models.ranker_kinds import RANKER_KINDS

SAVED = Path(__file__).parents[1] / "models" / "saved"
RANKERS = {
    "pnorm": PNormPush(np.inf),
    "pnorm-cv": PNormPushCV(ps=(1, 4), test_size=None),
    "ir": IRPush(),
    "push": PushRanker(price="log1p"),
    "proper": ProperRanker("squared"),
    "rank-boost": RankBoost(5),
    "rank-boost-features": RankBoost(5, weak_rankers="features"),
    "smooth-margin": SmoothMarginRanker(5),
    "ada-boost": AdaBoostRanker(5),
    "pairs": PairRanker(),
    "pairs-kernel": PairRanker(kernel="rbf", n_components=5, random_state=0),
    "pairs-kernel-on-pairs": PairRanker(
        kernel="rbf", kernel_on="pairs", n_components=5, random_state=0
    ),
    "scaled": make_pipeline(StandardScaler(), PNormPush()),
    "scaled-trees": make_pipeline(StandardScaler(), PushTrees(2, n_estimators=3)),
    "trees-lightgbm": PushTrees(2, n_estimators=3),
    "trees-xgboost": PushTrees(2, n_estimators=3, backend="xgboost"),
    "ensemble": PushEnsemble(
        [("a", PNormPush()), ("b", PushTrees(n_estimators=3))], cv=2, random_state=0
    ),
    "labels": LabelRanker(3),
}


def scores_of(ranker, X):
    """What a ranker of arrays says of these rows, whatever it is called."""
    score = ranker.decision_function if hasattr(ranker, "decision_function") else ranker.predict
    return np.asarray(score(X))


def save_models(folder: Path, frame: pd.DataFrame) -> dict[str, list[float]]:
    """Save a model of the table of each kind; their scores of its rows."""
    scores = {}
    for kind in RANKER_KINDS:
        model = fit_table(frame, "bought", positive="yes", model=kind, quality="fast")
        model.save(folder / f"{kind}.toprank")
        scores[kind] = model.score(frame).tolist()
    return scores


def save_rankers(folder: Path, X: np.ndarray) -> dict[str, list[float]]:
    """Save a ranker of arrays of each kind; their scores of the rows `X`."""
    scores = {}
    for name, ranker in RANKERS.items():
        several = (X > 0.5).astype(int)
        ranker.fit(X, several if name == "labels" else several[:, 0])
        save_ranker(ranker, folder / f"{name}.ranker")
        scores[name] = scores_of(ranker, X).tolist()
    return scores


def main() -> None:
    """Write everything into the folder of this version."""
    folder = SAVED / toprank.__version__
    folder.mkdir(exist_ok=True)
    frame = pd.read_csv(SAVED / "table.csv")
    X = np.random.default_rng(0).random((40, 3)).round(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there are few rows
        found = {"models": save_models(folder, frame), "rankers": save_rankers(folder, X)}
    found["rows"] = X.tolist()
    (folder / "scores.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
