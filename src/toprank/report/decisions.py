"""From the list to what is done with it: promises, sure places, periods and groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from toprank._arrays import JsonObject
from toprank._numerics import FloatArray
from toprank._text import clean_text, count, percent
from toprank.inference import period_interval, top_groups
from toprank.models import frames
from toprank.models.errors import ModelError
from toprank.models.list_columns import read_entities, read_group_words, read_periods
from toprank.models.model import TableModel
from toprank.models.rows import read_propensity, read_weight
from toprank.models.sketch import SeenRows
from toprank.report.measures import LEVEL
from toprank.report.subjects import LabelledRows
from toprank.select import TooFewLabels, select
from toprank.select.membership import count_in_top
from toprank.select.refits import Refits

if TYPE_CHECKING:
    from toprank._arrays import IntArray
    from toprank.select.refits import Progress


#: Refits of models that must be fitted for each; linear ones need no fits.
_FITS = 20
#: A place is sure if a row keeps it in this share of refits.
SURE = 0.9
#: Groups that the page shows.
_MOST_GROUPS = 20
#: Rows beyond which promises are worked out from as many drawn ones.
_MOST_ROWS = 100_000


@dataclass(frozen=True)
class Parts:
    """What is asked of the list besides how good it is.

    Attributes
    ----------
    by_group : str, optional
        Column of groups whose share of the first rows is shown.
    by : str, optional
        Column of periods; each is a list of its own.
    per_entity : str, optional
        Column of entities, each once in the list of a period.
    """

    by_group: str | None = None
    by: str | None = None
    per_entity: str | None = None

    def __post_init__(self) -> None:
        if self.per_entity is not None and self.by is None:
            raise ModelError(f"per_entity={self.per_entity!r} needs by=, the column of periods.")

    def refuse_weights(self, weight: FloatArray | None) -> None:
        """Raise where groups or periods are asked for and rows have weights: before any fit."""
        if (self.by_group or self.by) and weight is not None:
            raise ModelError("by_group= and by= count rows, and these rows have weights.")

    def measure(self, scores: FloatArray, rows: LabelledRows, frame: object, k: int) -> JsonObject:
        """The groups and the periods of a list, where they are asked for."""
        self.refuse_weights(rows.weight)
        found: JsonObject = {}
        if self.by_group is not None:
            found["groups"] = _groups(scores, rows, frame, self.by_group, k)
        if self.by is not None:
            found["periods"] = _periods(scores, rows, frame, self.by, self.per_entity, k)
        return found


def _groups(
    scores: FloatArray, rows: LabelledRows, frame: object, column: str, k: int
) -> JsonObject:
    words = read_group_words(frame, column)
    try:
        found = top_groups(rows.y, scores, words, k, level=LEVEL)
    except ValueError as error:
        raise ModelError(f"by_group={column!r}: {error}") from error
    lines = [
        {
            "name": clean_text(one.name),
            "rows": one.rows,
            "listed": one.listed,
            **{name: list(getattr(one, name)) for name in ("selected", "precision", "recall")},
        }
        for one in found.groups[:_MOST_GROUPS]
    ]
    return {
        "column": clean_text(column),
        "lines": lines,
        "others": len(found.groups) - len(lines),
        "p_values": found.p_values,
        "adjusted_p_values": found.adjusted_p_values,
    }


def _periods(
    scores: FloatArray, rows: LabelledRows, frame: object, by: str, per_entity: str | None, k: int
) -> JsonObject:
    times = read_periods(frame, by)
    whose = None if per_entity is None else read_entities(frame, per_entity)
    try:
        found = period_interval("precision_at", rows.y, scores, times, entities=whose, k=k)
    except ValueError as error:
        raise ModelError(f"by={by!r}: {error}") from error
    return {
        "column": clean_text(by),
        "entity": None if per_entity is None else clean_text(per_entity),
        "names": [clean_text(str(period), 30) for period in found.periods],
        "values": found.values,
        "rows": found.rows,
        "mean": found.estimate,
        "low": found.low,
        "high": found.high,
        "method": found.method,
        "note": found.note,
    }


def promise_results(scores: FloatArray, rows: LabelledRows) -> list[JsonObject]:
    """What can be promised of a list from a new table with as many rows and scores like these.

    Rows that carry weights other than counts give no promise: an empty list.
    """
    weight = rows.weight
    if weight is not None and not np.array_equal(weight, np.round(weight)):
        return []
    if len(scores) > _MOST_ROWS:
        some = np.random.default_rng(0).choice(len(scores), _MOST_ROWS, replace=False)
    else:
        some = np.arange(len(scores))
    known = (rows.y[some], scores[some])
    counts = None if weight is None else weight[some]
    times = len(scores) / len(some)
    wishes: list[tuple[str, JsonObject]] = [
        ("at most one false alarm in ten, on average", {"fdr": 0.1}),
        ("at least 80% of the list right", {"precision_at_least": 0.8}),
        ("at least 80% of all there are", {"recall_at_least": 0.8}),
    ]
    return [
        {
            "wish": words,
            "option": _option(wish),
            **_promise(scores[some], known, counts, wish, times),
        }
        for words, wish in wishes
    ]


def _option(wish: Mapping[str, object]) -> str:
    """A wish as `toprank select` takes it."""
    return " ".join(f"--{name.removesuffix('_at_least')} {value}" for name, value in wish.items())


def _promise(
    new: FloatArray, known: object, counts: ArrayLike | None, wish: JsonObject, times: float
) -> JsonObject:
    try:
        found = select(new, calibration=known, sample_weight=counts, **wish)
    except TooFewLabels as error:
        return {"rows": None, "share": None, "needed": error.needed, "guarantee": ""}
    return {
        "rows": round(len(found) * times),
        "share": len(found) / len(new),
        "needed": None,
        "guarantee": found.guarantee if len(found) else "",
    }


def sure_results(
    model: TableModel, train: object, frame: object, k: int, progress: Progress | None = None
) -> JsonObject:
    """In what share of refits to rows drawn from the training table each row is among the first k.

    Parameters
    ----------
    model : TableModel
    train : table
        The table that the model has learned from.
    frame : table
        The rows of the list.
    k : int
        How long the top is.
    progress : callable, optional
        Called after each fit.
    """
    seen, schema = SeenRows(model), model.schema
    seen.add(train)
    if not seen.note:
        raise ModelError(
            "train= does not hold the rows that the model has learned from: give the table that it "
            "was fitted to."
        )
    there = set(frames.names_of(train))
    weight = schema.weight if schema.weight in there else None
    propensity = schema.propensity if schema.propensity in there else None
    refits = Refits.of(
        model.ranker,
        model.numbers(train),
        model.labels(train),
        sample_weight=read_weight(train, weight),
        label_propensity=read_propensity(train, propensity),
        n_fits=_FITS,
        progress=progress,
    )
    shares = count_in_top(refits.scores(model.numbers(frame)), k) / refits.n
    return {"shares": shares, "refits": refits.n, "method": refits.method}


def describe_sure(found: JsonObject, order: IntArray, k: int) -> JsonObject:
    """How many of the first k are sure, and how many others come in now and then, in a sentence."""
    shares = found["shares"]
    sure = int(np.count_nonzero(shares[order[:k]] >= SURE))
    close = int(np.count_nonzero(shares[order[k:]] > 1 - SURE))
    said = (
        f"Had the model learned from other rows like its own, {count(sure)} of the first "
        f"{count(k)} would still be there at least {percent(SURE)} of the time; {count(close)} "
        f"other rows would be there more than {percent(1 - SURE)} of the time."
    )
    return {"said": said, "sure": sure, "close": close, "refits": found["refits"]}
