"""ROC curves: Figures 5 to 7 of Rudin (2009) and Figures 2 to 5 of Rudin (2006), over many splits.

The conference paper of 2006 runs 200 rounds; the features, scaled to [0, 1], are the weak rankers,
but for pima (its Figure 2), where four thresholds are taken from each. Both papers draw one split
of each data set; the conference paper prints no numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from sklearn.metrics import roc_curve

from toprank._arrays import JsonObject
from toprank.metrics import auc
from toprank.plots import TopRocDisplay
from toprank.reproduce import facts
from toprank.reproduce.experiment import Experiment, Result, Setup, claim, claims_part, new_figure
from toprank.reproduce.page import Grid, Paragraph, Part
from toprank.reproduce.push_tables import (
    ROUNDS,
    TRAINING_ROWS,
    coordinate_descent,
    draw_folds,
    draw_training_rows,
    in_unit_interval,
    scale_features,
    score_all_rows,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Shares of the negatives that may be let through.
CUTS = (0.0, 0.01, 0.05, 0.1)
#: Points of a curve that are kept for its picture.
_POINTS = 300
PARTS = ("training", "test")


def roc_counts(
    y: np.ndarray, scores: Sequence[np.ndarray], parts: Mapping[str, np.ndarray]
) -> Result:
    """Return the curves of each part and ranker, in counts, and what is found at `CUTS`.

    Parameters
    ----------
    y : array of shape (n,)
        Labels 0 and 1.
    scores : sequence of arrays of shape (n,)
        One per ranker.
    parts : mapping from str to row numbers
        Training and test rows.
    """
    curves: JsonObject = {}
    found: JsonObject = {}
    for part, rows in parts.items():
        counts = [_counts(y[rows], s[rows]) for s in scores]
        curves[part] = [
            [_thin(fp, tp, fp).tolist(), _thin(fp, tp, tp).tolist()] for fp, tp in counts
        ]
        found[part] = {
            "top": [_share_found(fp, tp) for fp, tp in counts],
            "auc": [auc(y[rows], s[rows]) for s in scores],
        }
    return {"curves": curves, "found": found}


def _counts(y: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of negatives and of positives at or above each score."""
    fpr, tpr, _ = roc_curve(y, scores, drop_intermediate=False)
    positives = int(np.sum(y))
    return np.rint(fpr * (len(y) - positives)), np.rint(tpr * positives)


def _share_found(fp: np.ndarray, tp: np.ndarray) -> list[float]:
    """Share of the positives above all but so many of the highest negatives."""
    at = np.searchsorted(fp, np.floor(np.array(CUTS) * fp[-1]), side="right") - 1
    return (tp[at] / tp[-1]).tolist()


def _thin(fp: np.ndarray, tp: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values at a few points of the curve, finely at its beginning."""
    last = len(fp) - 1
    even = np.linspace(0, last, _POINTS)
    early = np.linspace(0, min(last, np.searchsorted(fp, 0.1 * fp[-1])), _POINTS)
    return values[np.unique(np.rint(np.concatenate([even, early])).astype(int))].astype(int)


def top_table(found: Sequence[JsonObject]) -> Result:
    """Return means over repeats of what is found at the top, and the claims about them."""
    result: Result = {"n_repeats": len(found), "top": {}, "auc": {}}
    claims = []
    for part in PARTS:
        top = np.array([one[part]["top"] for one in found])
        area = np.array([one[part]["auc"] for one in found])
        result["top"][part] = np.mean(top, axis=0).tolist()
        result["auc"][part] = np.mean(area, axis=0).tolist()
        claims.append(_push_claim(part, top[:, :, 0]))
    result["claims"] = claims
    return result


#: Column of p = 64, the last power.
_LAST = 5


def _push_claim(part: str, shares: np.ndarray) -> dict[str, object]:
    """Set p = 64 against p = 1: the means, and in how many repeats it gains and loses."""
    change = shares[:, _LAST] - shares[:, 0]
    before, after = np.mean(shares[:, 0]), np.mean(shares[:, _LAST])
    return claim(
        f"R_max: on the {part} rows more positives are above every negative at p = 64 than at "
        "p = 1.",
        np.mean(change) > 0,
        f"{before:.1%} → {after:.1%} in the mean; more in {np.mean(change > 0):.0%} of the "
        f"repeats, fewer in {np.mean(change < 0):.0%}.",
    )


def describe_trade(result: Result) -> Paragraph:
    """Say what p = 64 gains and gives up against p = 1 at each cut."""
    parts = []
    for part in PARTS:
        top = np.array(result["top"][part])
        changes = ", ".join(f"{100 * change:+.1f}" for change in top[_LAST] - top[0])
        area = result["auc"][part][_LAST] - result["auc"][part][0]
        parts.append(f"{part} rows {changes} points (AUC {area:+.4f})")
    cuts = ", ".join(f"{cut:.0%}" for cut in CUTS)
    return Paragraph(f"From p = 1 to p = 64, at {cuts}: {'; '.join(parts)}.")


def top_grid(result: Result, columns: Sequence[str]) -> Grid:
    """Return what is found at the top, one row per cut and part."""
    rows = []
    for part in PARTS:
        for c, cut in enumerate(CUTS):
            shares = [f"{100 * one[c]:.1f}" for one in result["top"][part]]
            rows.append([f"{part}, all but {cut:.0%}", *shares])
        rows.append([f"{part}, AUC", *(f"{value:.4f}" for value in result["auc"][part])])
    return Grid(["", *columns], rows)


def roc_figure(result: Result, columns: Sequence[str], title: str) -> Figure:
    """Draw the curves: training above, test below, whole on the left, the top on the right."""
    figure = new_figure(10, 8)
    axes = figure.subplots(2, 2)
    for part, row in zip(PARTS, axes, strict=True):
        curves = result["curves"][part]
        zoom = _zoom(curves)
        for name, (fp, tp) in zip(columns, curves, strict=True):
            display = TopRocDisplay(fpr=np.array(fp) / fp[-1], tpr=np.array(tp) / tp[-1], name=name)
            display.plot(row, max_fpr=zoom)
        row[0].set_title(f"{part.capitalize()}: {tp[-1]:,} positives, {fp[-1]:,} negatives")
        row[1].set_title(f"{part.capitalize()}, the top of the list")
    figure.suptitle(title)
    return figure


def _zoom(curves: Sequence[tuple[Sequence[float], Sequence[float]]]) -> float:
    """The top that is worth enlarging: eight negatives, and a fifth of the positives found."""
    negatives, positives = curves[0][0][-1], curves[0][1][-1]
    enough = [fp[int(np.argmax(np.array(tp) >= 0.2 * positives))] for fp, tp in curves]
    return float(min(1.0, max(0.05, 8 / negatives, 1.05 * min(enough) / negatives)))


def _roc_curves(setup: Setup) -> Result:
    """ROC curves of one split, training and test, and what is found at the top in many."""
    ((name, table),) = setup.data.items()
    X, y = scale_features(table, slice(-5, None) if name == "ionosphere" else slice(None))
    y = 1 - y if name == "ionosphere" else y  # as in Table 4
    n, rounds = setup.settings["repeats"], setup.settings["rounds"]
    drawn = setup.map(one_roc, [(X, y, rounds, setup.seed, repeat) for repeat in range(n)])
    result = {"curves": drawn[0]["curves"], **top_table([one["found"] for one in drawn])}
    if name == "magic":
        top = np.array(result["top"]["test"])
        apart = float(np.max(np.abs(top[5] - top[6])))
        text = "The curves of the IR Push and of p = 64 are almost on top of each other."
        detail = f"Test rows: at most {100 * apart:.2f} points apart at the four cuts, in the mean."
        result["claims"].append(claim(text, apart < 0.01, detail))
    return result


def one_roc(X: np.ndarray, y: np.ndarray, rounds: int, seed: int, repeat: int) -> Result:
    """Curves of a training and a test part, and the share of positives found at the top."""
    few = len(y) <= TRAINING_ROWS
    train = draw_folds(y, seed, repeat)[0] if few else draw_training_rows(y, seed, repeat)
    test = np.setdiff1d(np.arange(len(y)), train)
    return roc_counts(y, score_all_rows(X, y, train, rounds), {"training": train, "test": test})


def _describe_roc_curves(result: Result) -> list[Part]:
    return [
        Paragraph(
            f"The picture has one split; the table {result['n_repeats']} of them: the mean share "
            "of the positives, in %, that are ranked above all but the first 0%, 1%, 5% and 10% "
            "of the negatives."
        ),
        top_grid(result, facts.COLUMNS),
        describe_trade(result),
        claims_part(result["claims"]),
    ]


def _roc_experiment(number: int, table: int, name: str, data: str, repeats: int) -> Experiment:
    return Experiment(
        f"figure{number}",
        f"Figure {number}: ROC curves of Table {table} ({name})",
        _roc_curves,
        _describe_roc_curves,
        lambda result: roc_figure(result, facts.COLUMNS, f"{name}, one split"),
        f"ROC curves of the P-Norm Push and the IR Push on {name}, training above, test below",
        full={"repeats": repeats, "rounds": ROUNDS},
        quick={"repeats": 3, "rounds": ROUNDS},
        data=(data,),
    )


COLT_ROUNDS = 200
COLT_THRESHOLDS = 4
COLT_COLUMNS = facts.COLUMNS[:-1]


def threshold_features(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Four columns 1[x > threshold] for each column of X, no two alike on the training rows.

    The thresholds are at the fifths of the distinct training values, so that a value that many
    rows share takes up one threshold only.
    """
    columns = []
    for x in X.T:
        values = np.unique(x[train])
        places = np.arange(1, COLT_THRESHOLDS + 1) * len(values) // (COLT_THRESHOLDS + 1) - 1
        columns += [x > values[place] for place in np.unique(np.maximum(places, 0))]
    return np.column_stack(columns).astype(np.float64)


def one_colt_split(
    X: np.ndarray, y: np.ndarray, rows: int, rounds: int, thresholds: bool, seed: int, repeat: int
) -> Result:
    """Train on `rows` random rows and measure on the rest, for every p."""
    shuffled = np.random.default_rng([seed, repeat]).permutation(len(y))
    train, test = np.sort(shuffled[:rows]), np.sort(shuffled[rows:])
    weak = "binary" if thresholds else "features"
    H = threshold_features(X, train) if thresholds else in_unit_interval(X)
    scores = [
        coordinate_descent(p, rounds, weak).fit(H[train], y[train]).decision_function(H)
        for p in facts.POWERS
    ]
    return roc_counts(y, scores, {"training": train, "test": test})


def _colt_splits(setup: Setup) -> list[Result]:
    ((_, (X, y)),) = setup.data.items()
    s = setup.settings
    y = 1 - y if s.get("reversed") else y
    same = (X[:, : s["columns"]], y, s["rows"], s["rounds"], s["thresholds"], setup.seed)
    return setup.map(one_colt_split, [(*same, repeat) for repeat in range(s["repeats"])])


def _colt(setup: Setup) -> Result:
    found = _colt_splits(setup)
    return {"curves": found[0]["curves"], **top_table([one["found"] for one in found])}


def _colt_limits(setup: Setup) -> Result:
    """Figure 5: with 50 rows the training curve tells nothing about the test curve at large p."""
    result = _colt(setup)
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
                f"Best at {COLT_COLUMNS[int(np.argmax(values))]}: {np.max(values):.4f}; at p = 64: "
                f"{values[-1]:.4f}.",
            )
            for name, values in (
                ("share of positives above all but 5% of the negatives", top),
                ("AUC", area),
            )
        ),
    ]
    return result | {"claims": claims}


_COLT_TEXTS = {
    "colt-pima": "Pima diabetes, four thresholds of each of the eight features, 300 of 768 rows to "
    "train on.",
    "colt-wdbc": "Wisconsin breast cancer, the first six features, 200 of 569 rows to train on. "
    "The malignant are the positives; the paper does not say which are.",
    "colt-wdbc-benign": "The same with the benign as the positives.",
    "colt-housing": "Boston housing, 13 features, 300 of 506 rows to train on. The paper calls the "
    "trend of R_max from p = 1 to p = 64 clear and nearly monotonic.",
    "colt-limits": "Pima diabetes, the eight features themselves, only 50 rows to train on: the "
    "paper's warning that a large p needs many rows.",
}


def _describe_colt(result: Result) -> list[Part]:
    return [
        Paragraph(
            f"{_COLT_TEXTS[result['name']]} {result['settings']['rounds']} rounds. The paper draws "
            f"one split and prints no numbers; the table has the means of {result['n_repeats']} "
            "splits: the share of the positives, in %, ranked above all but so many of the "
            "negatives. “All but 0%” are the positives above every negative."
        ),
        top_grid(result, COLT_COLUMNS),
        describe_trade(result),
        claims_part(result["claims"]),
    ]


def _colt_figure(
    name: str,
    figure: int,
    title: str,
    data: str,
    compute: Callable[[Setup], Result] = _colt,
    **settings: object,
) -> Experiment:
    settings = {"columns": None, "thresholds": False, "rounds": COLT_ROUNDS} | settings
    return Experiment(
        name,
        f"COLT 2006, Figure {figure}: {title}",
        compute,
        _describe_colt,
        lambda result: roc_figure(result, COLT_COLUMNS, f"{title}, one split"),
        f"ROC curves for p from 1 to 64 on {title}, training above, test below",
        full=settings | {"repeats": 15},
        quick=settings | {"repeats": 5},
        data=(data,),
    )


EXPERIMENTS = (
    _roc_experiment(5, 3, "MAGIC", "magic", 6),
    _roc_experiment(6, 4, "ionosphere", "ionosphere", 10),
    _roc_experiment(7, 5, "Boston housing", "housing", 10),
    _colt_figure("colt-pima", 2, "pima with thresholds", "pima", rows=300, thresholds=True),
    _colt_figure("colt-wdbc", 3, "wdbc", "wdbc", rows=200, columns=6),
    _colt_figure(
        "colt-wdbc-benign",
        3,
        "wdbc, the benign as positives",
        "wdbc",
        rows=200,
        columns=6,
        reversed=True,
    ),
    _colt_figure("colt-housing", 4, "housing", "housing", rows=300),
    _colt_figure("colt-limits", 5, "pima with 50 rows", "pima", _colt_limits, rows=50),
)
