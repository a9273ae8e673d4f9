"""The card of a model: what it is, what it was made of, and how good it is.

`make_card` writes it; `check_card` says whether what was read from a file, which may hold anything,
can be read, shown and watched as a card.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Unpack

import numpy as np

from toprank._arrays import AnyArray, JsonObject
from toprank._numerics import FloatArray
from toprank._text import plain
from toprank.inference.sample import kish
from toprank.models.bins import just_below
from toprank.models.expected import LabelShares
from toprank.models.model import ExplainedRows, TableModel
from toprank.models.read_card import LIBRARIES, installed_version
from toprank.models.rows import OpenLabels, ScoredRows, TrainingRows, measure, metric_settings
from toprank.models.sketch import RowSketch
from toprank.models.together import find_together
from toprank.models.unseen import UnseenScores, width_of_a_tie
from toprank.tuning import Scoring

if TYPE_CHECKING:
    from toprank.models.model import TableModel
    from toprank.models.schema import Schema

#: Where the distribution of a number is kept.
_SHARES = (
    *(0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    *(0.95, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999, 1.0),
)
#: Texts that are kept stand in so many rows and in such a share of them, and are no longer.
_FEWEST_ROWS, _FEWEST_SHARE, _LONGEST_TEXT = 3, 0.002, 60
#: The metrics on every card, besides the one that the model was chosen by.
_USUAL = ("precision_at", "recall_at", "lift_at", "auc", "average_precision", "positives_at_top")
#: Columns whose importance is kept.
_MOST_IMPORTANT = 50


@dataclass(frozen=True)
class HeldOutMetrics:
    """Intervals of metrics on rows held out, and what could not be measured.

    ``first_fit`` is the number of rows of the first fit where those were not all the others.
    """

    rows: int = 0
    positives: int = 0
    intervals: list[JsonObject] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    first_fit: int | None = None

    @classmethod
    def empty(cls) -> HeldOutMetrics:
        """No rows could be held out."""
        return cls(notes=["too few rows of one class, groups or times to hold some out"])

    @classmethod
    def measure(
        cls,
        rows: ScoredRows,
        scoring: Scoring,
        propensity: FloatArray | None = None,
        **more: Unpack[OpenLabels],
    ) -> HeldOutMetrics:
        """Measure the metric that the model was chosen by and the usual ones.

        ``more`` are ``unlabelled`` and ``hidden`` of `toprank.inference.interval`.
        """
        k = scoring.kwargs.get("k")
        wanted = {scoring.name: scoring.kwargs}
        wanted |= {name: metric_settings(name, k) for name in _USUAL if name != scoring.name}
        found = list(measure(rows, wanted.items(), label_propensity=propensity, **more))
        notes = [f"{one.name}: {one.why_not}" for one in found if one.interval is None]
        return cls(
            len(rows),
            int(np.count_nonzero(rows.y)),
            [plain(one.interval.as_dict()) for one in found if one.interval is not None],
            [*notes, *depth_notes([k], len(rows))],
        )


def depth_notes(tops: Iterable[object], n: int) -> list[str]:
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


def versions(ranker: object) -> dict[str, str]:
    """Return the versions of toprank and of the libraries that a model needs."""
    wanted = ["python", "toprank", *LIBRARIES]
    for one in (ranker, *(member for _, member in getattr(ranker, "members_", ()))):
        if hasattr(one, "backend") and one.backend not in wanted:
            wanted.append(one.backend)
    return {name: found for name in wanted if (found := installed_version(name)) is not None}


def make_card(
    model: TableModel,
    rows: TrainingRows,
    explained: ExplainedRows,
    name: str,
    scoring: Scoring,
    held_out: HeldOutMetrics,
    choice: object,
    notes: list[str],
    before: TableModel | None,
    unseen: UnseenScores,
) -> JsonObject:
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
            **_labels_seen(rows),
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
        **_importances(model, explained, rows),
        "reference": reference(model, rows.X, len(rows), unseen, rows),
        "warnings": notes,
    }


def _describe_holdout(rows: TrainingRows, held_out: HeldOutMetrics, before: object) -> str:
    if not held_out.rows:
        return "not measured"
    which = "drawn at random, class by class"
    if rows.time is not None:
        which = "the last ones in time"
    elif rows.groups is not None:
        which = "whole groups drawn at random"
    first = "" if held_out.first_fit is None else f" to {held_out.first_fit} rows"
    text = (
        f"on {held_out.rows} rows held out ({which}) from a first fit{first} with the same "
        "settings; the model was then fitted to all rows"
    )
    if before is not None:
        text += "; the model it started from may have seen the rows held out"
    return text


def _labels_seen(rows: TrainingRows) -> dict[str, float]:
    """How many rows the labels count as, where they were seen with known probabilities."""
    if rows.unlabelled is not None:
        return {"unlabelled": int(np.count_nonzero(rows.unlabelled))}
    weights = rows.label_weights
    if weights is None:
        return {}
    return {"effective_rows": weights.effective_rows, "clipped_weights": weights.clipped}


def _count_kinds(schema: Schema) -> dict[str, int]:
    kinds = [column.kind for column in schema.columns]
    return {kind: kinds.count(kind) for kind in sorted(set(kinds))}


def _importances(model: TableModel, explained: ExplainedRows, rows: TrainingRows) -> JsonObject:
    """Mean absolute contribution over the training rows, the largest first.

    Of each column, and of those together that rise and fall together.
    """
    own = rows.fit_weight
    weight = None if own is None else own[explained.rows]
    parts = model.per_column(explained.parts - model.centre)

    def mean_size(adds: FloatArray) -> FloatArray:
        return np.asarray(np.average(np.abs(adds), axis=0, weights=weight))

    sizes, names = mean_size(parts), model.schema.names
    order = np.argsort(-sizes, kind="stable")[:_MOST_IMPORTANT]
    together = [
        {
            "columns": list(group),
            "importance": float(mean_size(parts[:, list(map(names.index, group))].sum(axis=1))),
        }
        for group in find_together(model.schema.columns, rows.X)
    ]
    return {
        "importances": {names[j]: float(sizes[j]) for j in order if sizes[j] > 0},
        "together": together,
    }


def reference(
    model: TableModel,
    values_of: Mapping[str, np.ndarray],
    n_rows: int,
    unseen: UnseenScores,
    labelled: TrainingRows | None = None,
) -> JsonObject:
    """The distribution of the scores and of each column, for `toprank.models.monitor`.

    With labelled rows also how many positives there were between the quantiles of the scores.
    """
    weight = None if labelled is None else labelled.fit_weight
    own = None if weight is None or unseen.rows is None else weight[unseen.rows]
    columns: JsonObject = {}
    for column in model.schema.columns:
        values = values_of[column.name]
        if column.kind == "category":
            columns[column.name] = {"kind": column.kind, "shares": _shares(values, weight)}
        elif column.kind == "text":
            gaps = float(np.average(values == "", weights=weight))
            columns[column.name] = {
                "kind": column.kind,
                "missing": gaps,
                **_frequent_texts(values, weight),
            }
        else:
            columns[column.name] = {"kind": column.kind, **_quantiles(values, weight)}
    return {
        "rows": n_rows if weight is None else round(kish(weight)),
        "shares": list(_SHARES),
        "scores": _scores(unseen, labelled, own),
        "scores_from": unseen.source,
        "scores_rows": len(unseen.scores) if own is None else round(kish(own)),
        "scores_spread": unseen.spread,
        "columns": columns,
    }


def _scores(
    unseen: UnseenScores, labelled: TrainingRows | None, own: FloatArray | None
) -> JsonObject:
    tie = width_of_a_tie(unseen.scores)
    found = {**_quantiles(unseen.scores, own, tie), "tie": tie}
    if labelled is None or unseen.rows is None or labelled.unlabelled is not None:
        return found
    shares = LabelShares.of(unseen.scores, labelled.y[unseen.rows], found["quantiles"], own)
    return {**found, "labels": shares.as_dict()}


def _shares(words: AnyArray, weight: FloatArray | None) -> dict[str, float]:
    """The share of each word, by weight where rows have weights."""
    found, place = np.unique(words, return_inverse=True)
    counts = np.bincount(place.reshape(-1), weight, len(found))
    shares = counts / np.sum(counts)
    return {str(word): float(share) for word, share in zip(found, shares, strict=True)}


def _frequent_texts(values: AnyArray, weight: FloatArray | None) -> JsonObject:
    """The shares of texts that repeat in a half of the rows, in the other half."""
    mixed = np.random.default_rng(0).permutation(len(values))
    first, second = mixed[::2], mixed[1::2]
    fewest = max(_FEWEST_ROWS, _FEWEST_SHARE * len(first))
    counts = Counter(values[first].tolist())
    often = {text for text, n in counts.items() if n >= fewest and len(text) <= _LONGEST_TEXT}
    if not often - {""}:
        return {}
    own = None if weight is None else weight[second]
    shares = _shares(values[second], own)
    texts = {text: shares.get(text, 0.0) for text in sorted(often | {""})}
    return {"texts": texts, "rows": len(second) if own is None else round(kish(own))}


def _quantiles(
    values: np.ndarray, weight: FloatArray | None = None, tie: float = 0.0
) -> JsonObject:
    """Quantiles of what is there (dates as seconds since 1970), and the share that is missing.

    ``at_most`` and ``below`` are the shares of what is there up to each quantile, and below it:
    they differ where values repeat. Values so far beyond a quantile as a tie is wide equal it.
    """
    counts = np.ones(len(values)) if weight is None else weight
    if values.dtype.kind == "M":
        gaps = np.isnat(values)
        numbers = values[~gaps].astype("datetime64[us]").astype(np.int64) / 1e6
    else:
        gaps = np.isnan(values)
        numbers = values[~gaps]
    found, at_most, below = np.empty((3, 0))
    if len(numbers):
        order = np.argsort(numbers, kind="stable")
        numbers, rows = numbers[order], np.cumsum(counts[~gaps][order])
        up_to = np.append(0.0, rows / rows[-1])
        found = numbers[np.searchsorted(up_to[1:], _SHARES)].astype(np.float64) + tie
        at_most = up_to[np.searchsorted(numbers, found, side="right")]
        below = up_to[np.searchsorted(numbers, just_below(found, tie), side="right")]
    ends = {"quantiles": found, "at_most": at_most, "below": below}
    missing = float(np.average(gaps, weights=weight))
    return {"missing": missing, **{name: shares.tolist() for name, shares in ends.items()}}
