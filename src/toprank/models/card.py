"""The card of a model: what it is, what it was made of, and how good it is."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank import _version
from toprank._numerics import FloatArray
from toprank.models.measure import Measured
from toprank.models.plain import plain
from toprank.models.recipes import Wish
from toprank.models.rows import TrainingRows

#: Libraries whose versions a model depends on.
LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "skrub", "skops")
#: All whose versions a card can name.
VERSIONED = ("python", "toprank", *LIBRARIES, "lightgbm", "xgboost")
#: Where the distribution of a number is kept.
_SHARES = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0)
#: Columns whose importance is kept.
_MOST_IMPORTANT = 50


def versions(ranker: Any) -> dict[str, str]:
    """Return the versions of toprank and of the libraries that a model needs."""
    wanted = ["python", "toprank", *LIBRARIES]
    if hasattr(ranker, "backend"):
        wanted.append(ranker.backend)
    return {name: found for name in wanted if (found := installed(name)) is not None}


def installed(name: str) -> str | None:
    """Return the version of a library, or of Python without its last number; None if not here."""
    if name == "python":
        return ".".join(platform.python_version_tuple()[:2])
    if name == "toprank":
        return _version.__version__
    for distribution in (name, f"{name}-cpu"):  # xgboost has two names
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return None


def make_card(
    model: Any,
    rows: TrainingRows,
    Z: FloatArray,
    name: str,
    wish: Wish,
    measured: Measured,
    choice: Any,
    notes: list[str],
    before: Any,
) -> dict[str, Any]:
    """Return the card of a freshly fitted model, as plain values."""
    schema, ranker = model.schema, model.ranker
    found = int(np.count_nonzero(rows.positive))
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(ranker),
        "model": name,
        "ranker": type(ranker).__name__,
        "parameters": plain(ranker.get_params()),
        "p": plain(getattr(ranker, "p", None)),
        "chosen_by": wish.scoring.label,
        "choice": "" if choice is None else str(choice),
        "refitted_from": None if before is None else before.card.get("made"),
        "target": {
            "column": model.target.column,
            "positive": model.target.positive,
            "negative": list(model.target.negative),
        },
        "training": {
            "rows": rows.n,
            "positives": found,
            "weight": None if rows.weight is None else float(np.sum(rows.weight)),
            "columns": _count_kinds(schema),
            "numbers": len(model.preparation.names),
            "left_out": dict(schema.left_out),
            "from": None if rows.time is None else str(np.min(rows.time)),
            "to": None if rows.time is None else str(np.max(rows.time)),
        },
        "metrics": {
            "how": _how(rows, measured, before),
            "rows": measured.rows,
            "positives": measured.positives,
            "intervals": measured.intervals,
            "notes": measured.notes,
        },
        "importances": _importances(model, Z, rows.weight),
        "reference": reference(model, rows.values, Z),
        "warnings": notes,
    }


def _how(rows: TrainingRows, measured: Measured, before: Any) -> str:
    if not measured.rows:
        return "not measured"
    which = "drawn at random, class by class"
    if rows.time is not None:
        which = "the last ones in time"
    elif rows.groups is not None:
        which = "whole groups drawn at random"
    said = (
        f"on {measured.rows} rows held out ({which}) from a first fit with the same settings; the "
        "model was then fitted to all rows"
    )
    if before is not None:
        said += "; the model it started from may have seen the rows held out"
    return said


def _count_kinds(schema: Any) -> dict[str, int]:
    kinds = [column.kind for column in schema.columns]
    return {kind: kinds.count(kind) for kind in sorted(set(kinds))}


def _importances(model: Any, Z: FloatArray, weight: FloatArray | None) -> dict[str, float]:
    """Mean absolute contribution of each column over the training rows, the largest first."""
    sizes = np.average(np.abs(model.column_contributions(Z)), axis=0, weights=weight)
    order = np.argsort(-sizes, kind="stable")[:_MOST_IMPORTANT]
    names = model.schema.names
    return {names[j]: float(sizes[j]) for j in order if sizes[j] > 0}


def reference(model: Any, values_of: Mapping[str, NDArray[Any]], Z: FloatArray) -> dict[str, Any]:
    """The distribution of the scores and of each column, for `toprank.models.drift`."""
    scores = model.ranker.decision_function(Z)
    columns = {}
    for column in model.schema.columns:
        values = values_of[column.name]
        if column.kind == "category":
            words, counts = np.unique(values, return_counts=True)
            shares = {str(w): float(c) / len(Z) for w, c in zip(words, counts, strict=True)}
            columns[column.name] = {"kind": column.kind, "shares": shares}
        elif column.kind == "text":
            gaps = float(np.mean(values == ""))
            columns[column.name] = {"kind": column.kind, "missing": gaps}
        else:
            columns[column.name] = {"kind": column.kind, **_quantiles(values)}
    return {
        "rows": len(Z),
        "shares": list(_SHARES),
        "scores": _quantiles(scores),
        "columns": columns,
    }


def _quantiles(values: Any) -> dict[str, Any]:
    """Quantiles of what is there (dates as seconds since 1970), and the share that is missing.

    ``at_most`` is the share of what is there up to each quantile: more than asked for where
    values repeat.
    """
    if values.dtype.kind == "M":
        gaps = np.isnat(values)
        numbers = values[~gaps].astype("datetime64[us]").astype(np.int64) / 1e6
    else:
        gaps = np.isnan(values)
        numbers = values[~gaps]
    found = [float(q) for q in np.quantile(numbers, _SHARES)] if len(numbers) else []
    up_to = [float(np.mean(numbers <= q)) for q in found]
    return {"missing": float(np.mean(gaps)), "quantiles": found, "at_most": up_to}
