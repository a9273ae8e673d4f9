"""Rudin (2006): the ROC curves of the conference paper, Figures 2 to 5, over many splits.

200 rounds; the features, scaled to [0, 1], are the weak rankers, but for pima (Figure 2), where
four thresholds are taken from each. The paper draws one split of each and prints no numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.reproduce import facts
from toprank.reproduce.compare import claim, claims_part
from toprank.reproduce.curves import describe_trade, roc_counts, roc_figure, top_grid, top_table
from toprank.reproduce.experiment import Experiment, Result, Setup
from toprank.reproduce.page import Paragraph, Part
from toprank.reproduce.push_tables import coordinate_descent
from toprank.reproduce.sources import in_unit_interval

ROUNDS = 200
THRESHOLDS = 4
COLUMNS = facts.COLUMNS[:-1]


def threshold_features(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Four columns 1[x > threshold] for each column of X, no two alike on the training rows.

    The thresholds are at the fifths of the distinct training values, so that a value that many
    rows share takes up one threshold only.
    """
    columns = []
    for x in X.T:
        values = np.unique(x[train])
        places = np.arange(1, THRESHOLDS + 1) * len(values) // (THRESHOLDS + 1) - 1
        columns += [x > values[place] for place in np.unique(np.maximum(places, 0))]
    return np.column_stack(columns).astype(np.float64)


def one_split(
    X: np.ndarray, y: np.ndarray, rows: int, rounds: int, thresholds: bool, seed: int, repeat: int
) -> Result:
    """Train on so many random rows and measure on the rest, for every p."""
    shuffled = np.random.default_rng([seed, repeat]).permutation(len(y))
    train, test = np.sort(shuffled[:rows]), np.sort(shuffled[rows:])
    weak = "binary" if thresholds else "features"
    H = threshold_features(X, train) if thresholds else in_unit_interval(X)
    scores = [
        coordinate_descent(p, rounds, weak).fit(H[train], y[train]).decision_function(H)
        for p in facts.POWERS
    ]
    return roc_counts(y, scores, {"training": train, "test": test})


def _splits(setup: Setup) -> list[Result]:
    ((_, (X, y)),) = setup.data.items()
    s = setup.settings
    n = s["repeats"]
    same = (X[:, : s["columns"]], y, s["rows"], s["rounds"], s["thresholds"], setup.seed)
    return setup.map(one_split, *([one] * n for one in same), range(n))


def _push(setup: Setup) -> Result:
    found = _splits(setup)
    return {"curves": found[0]["curves"], **top_table([one["found"] for one in found])}


def _limits(setup: Setup) -> Result:
    """Figure 5: with 50 rows the training curve says nothing of the test curve at large p."""
    result = _push(setup)
    top = np.array(result["top"]["test"])[:, 2]
    area = np.array(result["auc"]["test"])
    training = np.array(result["top"]["training"])[:, 2]
    claims = [
        claim(
            "On the 50 training rows the top of the list gets better with p.",
            training[-1] > training[0],
            f"Positives above all but 5% of the negatives: {training[0]:.1%} at p = 1, "
            f"{training[-1]:.1%} at p = 64.",
        ),
        *(
            claim(
                f"Above a certain p the {name} on the test rows degrades as p increases.",
                np.argmax(values) < len(values) - 1 and values[-1] < np.max(values),
                f"Best at {COLUMNS[int(np.argmax(values))]}: {np.max(values):.4f}; at p = 64: "
                f"{values[-1]:.4f}.",
            )
            for name, values in (
                ("share of positives above all but 5% of the negatives", top),
                ("AUC", area),
            )
        ),
    ]
    return result | {"claims": claims}


_TEXTS = {
    "colt-pima": "Pima diabetes, four thresholds of each of the eight features, 300 of 768 rows to "
    "train on.",
    "colt-wdbc": "Wisconsin breast cancer, the first six features, 200 of 569 rows to train on.",
    "colt-housing": "Boston housing, 13 features, 300 of 506 rows to train on. The paper calls the "
    "trend of R_max from p = 1 to p = 64 clear and nearly monotonic.",
    "colt-limits": "Pima diabetes, the eight features themselves, only 50 rows to train on: the "
    "paper's warning that a large p needs many rows.",
}


def _describe(result: Result) -> list[Part]:
    return [
        Paragraph(
            f"{_TEXTS[result['name']]} {result['settings']['rounds']} rounds. The paper draws one "
            f"split and prints no numbers; the table has the means of {result['n_repeats']} "
            "splits: the share of the positives, in %, ranked above all but so many of the "
            "negatives. “All but 0%” are the positives above every negative."
        ),
        top_grid(result, COLUMNS),
        describe_trade(result),
        claims_part(result["claims"]),
    ]


def _experiment(
    name: str, figure: int, title: str, data: str, compute: Any = _push, **settings: Any
) -> Experiment:
    settings = {"columns": None, "thresholds": False, "rounds": ROUNDS} | settings
    return Experiment(
        name,
        f"COLT 2006, Figure {figure}: {title}",
        compute,
        _describe,
        lambda result: roc_figure(result, COLUMNS, f"{title}, one split"),
        f"ROC curves for p from 1 to 64 on {title}, training above, test below",
        full=settings | {"repeats": 15},
        quick=settings | {"repeats": 5},
        data=(data,),
    )


EXPERIMENTS = (
    _experiment("colt-pima", 2, "pima with thresholds", "pima", rows=300, thresholds=True),
    _experiment("colt-wdbc", 3, "wdbc", "wdbc", rows=200, columns=6),
    _experiment("colt-housing", 4, "housing", "housing", rows=300),
    _experiment("colt-limits", 5, "pima with 50 rows", "pima", _limits, rows=50),
)
