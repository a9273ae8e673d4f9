"""What a list is worth: figures with their intervals, and curves with their bands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import JsonObject
from toprank._numerics import FloatArray
from toprank._text import format_figure, percent
from toprank.inference import compare, lift_band, roc_band
from toprank.metrics.registry import METRICS
from toprank.models.rows import Measurement, ScoredRows, measure
from toprank.tuning import corrected_difference

LEVEL = 0.95
_POINTS = 61


@dataclass(frozen=True)
class Figure:
    """One figure of a list, and how it is written."""

    key: str
    label: str
    explained: str
    metric: str
    unit: str  # "share", "times" or "area"
    settings: Mapping[str, Any] = field(default_factory=dict)

    def format(self, value: float) -> str:
        """The value as the page has it."""
        return format_figure(value, self.unit)


def figures(k: int, max_fpr: float) -> tuple[Figure, ...]:
    """The figures of a report about the first k rows."""
    at = {"k": k}
    return (
        Figure(
            "precision",
            f"Positives among the first {k}",
            f"Share of positives in the first {k} rows.",
            "precision_at",
            "share",
            at,
        ),
        Figure(
            "lift",
            f"Lift at {k}",
            "How many times more positives than a random order would put there.",
            "lift_at",
            "times",
            at,
        ),
        Figure(
            "recall",
            f"Found in the first {k}",
            f"Share of all positives that stand in the first {k} rows.",
            "recall_at",
            "share",
            at,
        ),
        Figure(
            "clean",
            "Above every negative",
            "Share of the positives that stand above the highest negative.",
            "positives_at_top",
            "share",
        ),
        Figure(
            "partial",
            "Partial AUC",
            f"Area under the ROC curve where at most {percent(max_fpr)} of the negatives are let "
            "through, rescaled: 0.5 is a random order, 1 a perfect one.",
            "partial_auc",
            "area",
            {"max_fpr": max_fpr},
        ),
        Figure(
            "auc",
            "AUC",
            "How often a random positive stands above a random negative.",
            "auc",
            "area",
        ),
    )


def measure_figures(which: tuple[Figure, ...], rows: ScoredRows) -> JsonObject:
    """Every figure of a list with its interval; without one where none is valid."""
    wanted = [(figure.metric, figure.settings) for figure in which]
    return {
        figure.key: _with_interval(figure, rows, one)
        for figure, one in zip(which, measure(rows, wanted, level=LEVEL), strict=True)
    }


def _with_interval(figure: Figure, rows: ScoredRows, one: Measurement) -> JsonObject:
    if one.interval is not None:
        found = one.interval
        return {"value": found.estimate, "low": found.low, "high": found.high}
    value = METRICS[figure.metric].function(
        rows.y, rows.scores, sample_weight=rows.weight, **figure.settings
    )
    return {"value": value, "low": None, "high": None, "note": one.why_not}


def curves(rows: ScoredRows, k: int, max_fpr: float) -> JsonObject:
    """The zoomed ROC curve, the precision of the first rows and the lift, with bands."""
    n, what = len(rows), (rows.y, rows.scores, LEVEL)
    depth = np.unique(np.round(np.linspace(max(1, min(k, 50) // 10), min(n, 4 * k), _POINTS)))
    top = np.geomspace(min(1.0, max(k / 5, 5) / n), 1.0, _POINTS)
    share = float(np.average(rows.y, weights=rows.weight))
    precision = lift_band(*what, top=depth / n, sample_weight=rows.weight)
    bands = {
        "roc": roc_band(
            *what, fpr=np.linspace(0, 1, _POINTS) ** 2 * max_fpr, sample_weight=rows.weight
        ),
        "lift": lift_band(*what, top=top, sample_weight=rows.weight),
    }
    drawn = {
        name: {"x": band.x, "y": band.estimate, "low": band.low, "high": band.high}
        for name, band in bands.items()
    }
    by_depth = (precision.estimate, precision.low, precision.high)
    y, low, high = (np.clip(share * one, 0, 1) for one in by_depth)
    return drawn | {"precision": {"x": depth, "y": y, "low": low, "high": high}}


def in_folds(
    figure: Figure, positive: NDArray[np.bool_], scores: FloatArray, fold: NDArray[np.intp]
) -> FloatArray:
    """The figure of each fold; a number of rows becomes the same share of the fold."""
    settings = dict(figure.settings)
    if "k" in settings:
        settings["k"] = min(1.0, settings["k"] / len(positive))
    function = METRICS[figure.metric].function
    return np.array(
        [
            function(positive[fold == j], scores[fold == j], **settings)
            for j in range(int(fold.max()) + 1)
        ]
    )


def compare_rankers(
    which: tuple[Figure, ...],
    rows: ScoredRows,
    scores: Mapping[str, FloatArray],
    fold: NDArray[np.intp],
    test_to_train: float,
) -> list[JsonObject]:
    """Every pair of rankers on the same rows: difference, intervals, corrected p-value.

    Intervals and p-values allow for the number of pairs alike (Bonferroni), so that one and the
    same correction says whether a difference is clear.

    Two intervals answer two questions. That of `toprank.inference.compare` is about other rows
    for these rankers; the other one, over the folds and corrected for what their training rows
    share (Nadeau & Bengio 2003), is also about other training rows, and wider.
    """
    lines = []
    n_pairs = len(scores) * (len(scores) - 1) // 2
    level = 1 - (1 - LEVEL) / max(1, n_pairs)
    for figure in which:
        by_fold = {name: in_folds(figure, rows.y, s, fold) for name, s in scores.items()}
        try:
            pairs = compare(
                figure.metric,
                rows.y,
                dict(scores),
                level=level,
                **rows.inference_options,
                **figure.settings,
            )
        except ValueError:
            continue
        for pair in pairs:
            a, b = (by_fold[name] for name in pair.names)
            folds = corrected_difference(a - b, test_to_train, level=level)
            lines.append(
                {
                    "figure": figure.key,
                    "label": figure.label,
                    "unit": figure.unit,
                    "names": list(pair.names),
                    "values": list(pair.estimates),
                    "difference": pair.difference,
                    "low": pair.low,
                    "high": pair.high,
                    "p_value": pair.p_value,
                    "adjusted_p_value": min(1.0, n_pairs * pair.p_value),
                    "folds_low": folds.low,
                    "folds_high": folds.high,
                    "folds": len(a),
                    "folds_agree": int(np.sum(np.sign(a - b) == np.sign(pair.difference))),
                }
            )
    return lines
