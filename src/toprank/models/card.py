"""The card of a model: what it is, what it was made of, and how good it is.

`make_card` writes it; `check_card` says whether what was read from a file, which may hold anything,
can be read, shown and watched as a card.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank import _version
from toprank._numerics import FloatArray
from toprank._text import plain
from toprank.models.errors import ModelError
from toprank.models.rows import ScoredRows, TrainingRows, measure, metric_settings
from toprank.models.sketch import RowSketch
from toprank.models.unseen import UnseenScores
from toprank.tuning import Scoring

#: Libraries whose versions a model depends on.
LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "skrub", "skops")
#: All whose versions a card can name.
VERSIONED = ("python", "toprank", *LIBRARIES, "lightgbm", "xgboost")
#: Where the distribution of a number is kept.
_SHARES = (
    *(0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    *(0.95, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999, 1.0),
)
#: The metrics on every card, besides the one that the model was chosen by.
_USUAL = ("precision_at", "recall_at", "lift_at", "auc", "average_precision", "positives_at_top")
#: Columns whose importance is kept.
_MOST_IMPORTANT = 50


@dataclass(frozen=True)
class HeldOutMetrics:
    """Intervals of metrics on rows held out, and what could not be measured."""

    rows: int = 0
    positives: int = 0
    intervals: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @classmethod
    def empty(cls) -> HeldOutMetrics:
        """No rows could be held out."""
        return cls(notes=["too few rows of one class, groups or times to hold some out"])

    @classmethod
    def measure(cls, rows: ScoredRows, scoring: Scoring) -> HeldOutMetrics:
        """Measure the metric that the model was chosen by and the usual ones."""
        k = scoring.kwargs.get("k")
        wanted = {scoring.name: scoring.kwargs}
        wanted |= {name: metric_settings(name, k) for name in _USUAL if name != scoring.name}
        found = list(measure(rows, wanted.items()))
        notes = [f"{one.name}: {one.why_not}" for one in found if one.interval is None]
        return cls(
            len(rows),
            int(np.count_nonzero(rows.y)),
            [plain(one.interval.as_dict()) for one in found if one.interval is not None],
            [*notes, *depth_notes([k], len(rows))],
        )


def depth_notes(tops: Iterable[Any], n: int) -> list[str]:
    """Return what counts of rows at the top mean in a list of n rows; nothing for shares.

    Examples
    --------
    >>> depth_notes([100, 0.1], 800)
    ['k = 100 is the first 12.5% of these 800 rows: of a list of another length, give that share.']
    """
    counts = [k for k in tops if isinstance(k, (int, np.integer)) and not isinstance(k, bool)]
    return [
        f"k = {k} is the first {100 * k / n:.3g}% of these {n} rows: of a list of another length, "
        "give that share."
        for k in counts
        if 0 < k <= n
    ]


def versions(ranker: Any) -> dict[str, str]:
    """Return the versions of toprank and of the libraries that a model needs."""
    wanted = ["python", "toprank", *LIBRARIES]
    for one in (ranker, *(member for _, member in getattr(ranker, "members_", ()))):
        if hasattr(one, "backend") and one.backend not in wanted:
            wanted.append(one.backend)
    return {name: found for name in wanted if (found := installed_version(name)) is not None}


def installed_version(name: str) -> str | None:
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


#: What users call the rankers.
_WORDS_OF = {
    "PNormPush": "a linear score, pushed to be right at the top",
    "IRPush": "a linear score under the IR push",
    "ProperRanker": "a linear model of the probability",
    "RankBoost": "boosted stumps (RankBoost)",
    "SmoothMarginRanker": "boosted stumps (smooth margin ranking)",
    "PushTrees": "boosted trees, pushed to be right at the top",
    "PushEnsemble": "a blend of several models, right at the top",
}


def describe_ranker(card: Mapping[str, Any]) -> str:
    """Return in users' words what kind of ranker a card is about.

    Examples
    --------
    >>> describe_ranker({"ranker": "ProperRanker", "parameters": {"loss": "logistic"}})
    'logistic regression'
    """
    name, settings = str(card.get("ranker", "")), card.get("parameters") or {}
    if not isinstance(settings, dict):
        settings = {}
    if name == "ProperRanker" and settings.get("loss", "logistic") == "logistic":
        return "logistic regression"
    if name == "PushTrees" and settings.get("p", 4.0) is None:
        return "boosted trees for the two classes"
    return _WORDS_OF.get(name, name)


def make_card(
    model: Any,
    rows: TrainingRows,
    Z: FloatArray,
    name: str,
    scoring: Scoring,
    held_out: HeldOutMetrics,
    choice: Any,
    notes: list[str],
    before: Any,
    unseen: UnseenScores,
) -> dict[str, Any]:
    """Return the card of a freshly fitted model, as plain values."""
    schema, ranker = model.schema, model.ranker
    found = int(np.count_nonzero(rows.y))
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(ranker),
        "model": name,
        "ranker": type(ranker).__name__,
        "parameters": plain(ranker.get_params()),
        "p": plain(getattr(ranker, "p_" if hasattr(ranker, "members_") else "p", None)),
        "chosen_by": scoring.label,
        "choice": "" if choice is None else str(choice),
        "refitted_from": None if before is None else before.card.get("made"),
        "target": {
            "column": model.target.column,
            "positive": model.target.positive,
            "negative": list(model.target.negative),
        },
        "training": {
            "rows": len(rows),
            "positives": found,
            "weight": None if rows.weight is None else float(np.sum(rows.weight)),
            "columns": _count_kinds(schema),
            "numbers": len(model.preparation.names),
            "left_out": dict(schema.left_out),
            "from": None if rows.time is None else str(np.min(rows.time)),
            "to": None if rows.time is None else str(np.max(rows.time)),
            "sketch": RowSketch.of(rows.X).as_dict(),
        },
        "metrics": {
            "how": _describe_holdout(rows, held_out, before),
            "rows": held_out.rows,
            "positives": held_out.positives,
            "intervals": held_out.intervals,
            "notes": held_out.notes,
        },
        "importances": _importances(model, Z, rows.weight),
        "reference": reference(model, rows.X, len(Z), unseen),
        "warnings": notes,
    }


def readable_card(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return a card for people and other programs: without the checksums of its rows."""
    training = {name: part for name, part in card["training"].items() if name != "sketch"}
    return {**card, "training": training}


def _describe_holdout(rows: TrainingRows, held_out: HeldOutMetrics, before: Any) -> str:
    if not held_out.rows:
        return "not measured"
    which = "drawn at random, class by class"
    if rows.time is not None:
        which = "the last ones in time"
    elif rows.groups is not None:
        which = "whole groups drawn at random"
    text = (
        f"on {held_out.rows} rows held out ({which}) from a first fit with the same settings; the "
        "model was then fitted to all rows"
    )
    if before is not None:
        text += "; the model it started from may have seen the rows held out"
    return text


def _count_kinds(schema: Any) -> dict[str, int]:
    kinds = [column.kind for column in schema.columns]
    return {kind: kinds.count(kind) for kind in sorted(set(kinds))}


def _importances(model: Any, Z: FloatArray, weight: FloatArray | None) -> dict[str, float]:
    """Mean absolute contribution of each column over the training rows, the largest first."""
    sizes = np.average(np.abs(model.column_contributions(Z)), axis=0, weights=weight)
    order = np.argsort(-sizes, kind="stable")[:_MOST_IMPORTANT]
    names = model.schema.names
    return {names[j]: float(sizes[j]) for j in order if sizes[j] > 0}


def reference(
    model: Any, values_of: Mapping[str, NDArray[Any]], n_rows: int, unseen: UnseenScores
) -> dict[str, Any]:
    """The distribution of the scores and of each column, for `toprank.models.monitor`."""
    columns = {}
    for column in model.schema.columns:
        values = values_of[column.name]
        if column.kind == "category":
            words, counts = np.unique(values, return_counts=True)
            shares = {str(w): float(c) / n_rows for w, c in zip(words, counts, strict=True)}
            columns[column.name] = {"kind": column.kind, "shares": shares}
        elif column.kind == "text":
            gaps = float(np.mean(values == ""))
            columns[column.name] = {"kind": column.kind, "missing": gaps}
        else:
            columns[column.name] = {"kind": column.kind, **_quantiles(values)}
    return {
        "rows": n_rows,
        "shares": list(_SHARES),
        "scores": _quantiles(unseen.scores),
        "scores_from": unseen.source,
        "scores_rows": len(unseen.scores),
        "scores_spread": unseen.spread,
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


_WORDS = ("inf", "-inf")  # what JSON has for the infinities
_COUNT, _TEXT, _NUMBER, _MAYBE = "count", "text", "number", "number or nothing"
_SHARE = "share"
_SPREAD_BEYOND = "number from 0 to 1e9"
_ANY_NAME = "*"
_SPREAD = {"missing": _SHARE, "quantiles": [_NUMBER], "at_most": [_SHARE]}
#: The parts of a card that are used. A list holds entries of one shape; "*" stands for any name.
_SHAPE: dict[str, Any] = {
    "made": _TEXT,
    "versions": {_ANY_NAME: _TEXT},
    "model": _TEXT,
    "ranker": _TEXT,
    "p": _MAYBE,
    "choice": _TEXT,
    "training": {"rows": _COUNT, "positives": _COUNT, "columns": {_ANY_NAME: _COUNT}},
    "metrics": {
        "how": _TEXT,
        "rows": _COUNT,
        "positives": _COUNT,
        "intervals": [
            {
                "metric": _TEXT,
                "estimate": _MAYBE,
                "low": _MAYBE,
                "high": _MAYBE,
                "level": _NUMBER,
            }
        ],
        "notes": [_TEXT],
    },
    "importances": {_ANY_NAME: _NUMBER},
    "reference": {
        "rows": _COUNT,
        "shares": [_SHARE],
        "scores": _SPREAD,
        "columns": {_ANY_NAME: {"kind": _TEXT}},
    },
    "warnings": [_TEXT],
}
#: Parts of the reference that the cards of earlier versions lack.
_NEWER = {"scores_from": _TEXT, "scores_rows": _COUNT, "scores_spread": _SPREAD_BEYOND}
#: What the reference holds of a column, by its kind.
_OF_KIND: dict[str, Any] = {
    "category": {"shares": {_ANY_NAME: _SHARE}},
    "text": {"missing": _SHARE},
}


def check_card(card: Any) -> dict[str, Any]:
    """Return a card that was read from a file; ModelError if a part of it cannot be used.

    Examples
    --------
    >>> check_card({"made": 3})
    Traceback (most recent call last):
    toprank.models.errors.ModelError: The card in the file cannot be used: 'made' is not a text.
    """
    _check_shape("", card, _SHAPE)
    known = card["reference"]
    _check_parts("reference", known, {name: _NEWER[name] for name in _NEWER if name in known})
    entries = {"scores": {"kind": "number", **known["scores"]}, **known["columns"]}
    for name, entry in entries.items():
        _check_shape(f"reference.{name}", entry, _OF_KIND.get(entry["kind"], _SPREAD))
        spread = [entry[part] for part in ("quantiles", "at_most") if part in entry]
        lengths = {len(part) for part in spread}
        if lengths - {0, len(known["shares"])} or len(lengths) > 1 or not _rise(*spread):
            raise _unusable(f"reference.{name}", "distribution")
    if not _rise(known["shares"]) or not known["scores"]["quantiles"]:
        raise _unusable("reference.shares", "distribution")
    return dict(card)


def _check_shape(place: str, value: Any, shape: Any) -> None:
    if isinstance(shape, dict):
        _check_parts(place, value, shape)
    elif isinstance(shape, list):
        if not isinstance(value, list):
            raise _unusable(place, "list")
        for entry in value:
            _check_shape(place, entry, shape[0])
    elif not _IS[shape](value):
        raise _unusable(place, shape)


def _check_parts(place: str, value: Any, shape: dict[str, Any]) -> None:
    if not isinstance(value, dict):
        raise _unusable(place or "all of it", "collection of named parts")
    for name, inner in shape.items():
        if name == _ANY_NAME:
            for key, entry in value.items():
                _check_shape(f"{place}.{key}", entry, inner)
        elif name not in value:
            raise ModelError(f"The card in the file cannot be used: it lacks {_at(place, name)!r}.")
        else:
            _check_shape(_at(place, name), value[name], inner)


def _at(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _unusable(place: str, wanted: str) -> ModelError:
    return ModelError(f"The card in the file cannot be used: {place!r} is not a {wanted}.")


def _rise(*lists: list[float]) -> bool:
    return all(a <= b + 1e-9 * (1 + abs(b)) for values in lists for a, b in pairwise(values))


def _is_finite_number(value: Any) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)  # JSON of strangers has NaN, and numbers of any length
    except OverflowError:
        return False


_IS = {
    _COUNT: lambda value: (
        isinstance(value, int) and _is_finite_number(value) and 0 <= value < 2**63
    ),
    _SHARE: lambda value: _is_finite_number(value) and 0 <= value <= 1 + 1e-9,
    _SPREAD_BEYOND: lambda value: _is_finite_number(value) and 0 <= value <= 1e9,
    _TEXT: lambda value: isinstance(value, str),
    _NUMBER: _is_finite_number,
    _MAYBE: lambda value: value is None or _is_finite_number(value) or value in _WORDS,
}
