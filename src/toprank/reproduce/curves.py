"""ROC curves of several rankers on training and test rows, and what they find at the top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import roc_curve

from toprank._extras import require
from toprank.metrics import auc
from toprank.plots import TopRocDisplay
from toprank.reproduce.compare import claim
from toprank.reproduce.experiment import Result
from toprank.reproduce.page import Grid, Paragraph

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
        One a ranker.
    parts : mapping from str to row numbers
        Training and test rows.
    """
    curves: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for part, rows in parts.items():
        counts = [_counts(y[rows], s[rows]) for s in scores]
        curves[part] = [
            [_thin(fp, tp, fp).tolist(), _thin(fp, tp, tp).tolist()] for fp, tp in counts
        ]
        found[part] = {
            "top": [_found(fp, tp) for fp, tp in counts],
            "auc": [auc(y[rows], s[rows]) for s in scores],
        }
    return {"curves": curves, "found": found}


def _counts(y: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of negatives and of positives at or above each score."""
    fpr, tpr, _ = roc_curve(y, scores, drop_intermediate=False)
    positives = int(np.sum(y))
    return np.rint(fpr * (len(y) - positives)), np.rint(tpr * positives)


def _found(fp: np.ndarray, tp: np.ndarray) -> list[float]:
    """Share of the positives above all but so many of the highest negatives."""
    at = np.searchsorted(fp, np.floor(np.array(CUTS) * fp[-1]), side="right") - 1
    return (tp[at] / tp[-1]).tolist()


def _thin(fp: np.ndarray, tp: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values at a few points of the curve, finely at its beginning."""
    last = len(fp) - 1
    even = np.linspace(0, last, _POINTS)
    early = np.linspace(0, min(last, np.searchsorted(fp, 0.1 * fp[-1])), _POINTS)
    return values[np.unique(np.rint(np.concatenate([even, early])).astype(int))].astype(int)


def top_table(found: Sequence[dict[str, Any]]) -> Result:
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


def _push_claim(part: str, shares: np.ndarray) -> dict[str, Any]:
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
    """Return what is found at the top, one row a cut and part."""
    rows = []
    for part in PARTS:
        for c, cut in enumerate(CUTS):
            shares = [f"{100 * one[c]:.1f}" for one in result["top"][part]]
            rows.append([f"{part}, all but {cut:.0%}", *shares])
        rows.append([f"{part}, AUC", *(f"{value:.4f}" for value in result["auc"][part])])
    return Grid(["", *columns], rows)


def roc_figure(result: Result, columns: Sequence[str], title: str) -> Any:
    """Draw the curves: training above, test below, whole on the left, the top on the right."""
    figure = require("matplotlib.figure", "plots").Figure(figsize=(10, 8), layout="constrained")
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


def _zoom(curves: Sequence[Any]) -> float:
    """The top that is worth enlarging: eight negatives, and a fifth of the positives found."""
    negatives, positives = curves[0][0][-1], curves[0][1][-1]
    enough = [fp[int(np.argmax(np.array(tp) >= 0.2 * positives))] for fp, tp in curves]
    return float(min(1.0, max(0.05, 8 / negatives, 1.05 * min(enough) / negatives)))
