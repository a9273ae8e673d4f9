"""From models and a test table to a page about them."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from toprank._arrays import FloatArray, JsonObject
from toprank._text import clean_text, count, percent, plain
from toprank._version import __version__
from toprank.models.errors import ModelError
from toprank.models.model import TableModel
from toprank.models.sketch import SeenRows
from toprank.report.decisions import Parts, describe_sure, promise_results, sure_results
from toprank.report.front import front_results
from toprank.report.report import SMALLEST, Report
from toprank.report.subjects import (
    describe_model,
    importances_of,
    read_test_rows,
    subject_of,
    subject_today,
)

if TYPE_CHECKING:
    from toprank.select.refits import Progress


def describe(
    models: TableModel | Mapping[str, TableModel],
    frame: object = None,
    *,
    k: int = 50,
    id: str | None = None,
    weight: str | None = None,
    groups: str | None = None,
    value_positive: float | None = None,
    cost: float | None = None,
    today: str | None = None,
    by_group: str | None = None,
    by: str | None = None,
    per_entity: str | None = None,
    train: object = None,
    files: Mapping[str, str] | None = None,
    data: str | None = None,
    notes: tuple[str, ...] = (),
    progress: Progress | None = None,
) -> Report:
    """Write a page about models: how good the top of their lists is, on rows you give.

    Parameters
    ----------
    models : TableModel or mapping
        One model, or several by name. The headline is about the first.
    frame : data frame of pandas or polars, or pyarrow Table, optional
        Labelled rows that the models have not seen. Without them the page shows what the cards
        say of the rows held out in training.
    k : int, default=50
        How many rows the top of the list has; at most half of the rows.
    id, weight, groups : str, optional
        Columns of the table; by default those of the training, where the table has them.
    value_positive, cost : float, optional
        What a positive brings and what taking a row costs: the page then says how many rows to
        take.
    today : str, optional
        Column of numbers that the rows are ordered by today, the highest first; the models are
        compared with it.
    by_group : str, optional
        Column of groups: the page shows the share, precision and recall of each in the first rows.
    by : str, optional
        Column of periods, such as days: the page shows the precision of each one's own list.
    per_entity : str, optional
        With `by`: column of entities, each once in the list of a period.
    train : data frame, optional
        The table that the first model was fitted to: the page then says how sure each place of its
        list is, by refits to rows drawn from it.
    files : mapping, optional
        The file of each model, to be named on the page.
    data : str, optional
        What the table is called on the page.
    notes : tuple of str
        What else the reader should know.
    progress : callable, optional
        Called as ``progress(step, done, total)``.

    Returns
    -------
    Report
        ``.save(path)``, ``.html``, ``.to_dict()``.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from toprank.models import fit_table
    >>> from toprank.report import describe
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame(rng.normal(size=(600, 2)), columns=["age", "income"])
    >>> frame["bought"] = np.where(frame.age + rng.normal(size=600) > 1.5, "yes", "no")
    >>> model = fit_table(frame[:400], "bought", p=4)
    >>> describe(model, frame[400:], k=20).to_dict()["front"]["rows"]
    200
    """
    named = {"the model": models} if isinstance(models, TableModel) else dict(models)
    if not named:
        raise ModelError("There is no model to describe.")
    _check_same_target(named)
    tell = progress or (lambda *_: None)
    files = files or {}
    first = next(iter(named.values()))
    made: JsonObject = {
        "table": {"target": clean_text(first.target.column)},
        "made": {
            "toprank": __version__,
            "made": clock.strftime("%Y-%m-%d %H:%M UTC", clock.gmtime()),
        },
        "notes": [clean_text(note, 400) for note in notes],
    }
    if frame is None:
        cards = {name: (model, files.get(name)) for name, model in named.items()}
        return Report(plain(made | _of_cards(cards), digits=6, infinities=False, smallest=SMALLEST))
    rows = read_test_rows(first, frame, id=id, weight=weight, groups=groups)
    subjects = []
    for done, (name, model) in enumerate(named.items()):
        tell(f"scoring with {name}", done, len(named) + 1)
        subjects.append(subject_of(name, model, frame, files.get(name)))
    tell("measuring", len(named), len(named) + 1)
    parts = Parts(by_group, by, per_entity)
    before = None if today is None else subject_today(frame, today)
    shown = front_results(subjects, rows, k, value=value_positive, cost=cost, today=before)
    where = "the rows given" if data is None else clean_text(data)
    shown["how"] = f"Measured on the {count(len(rows))} rows of {where}."
    seen = _seen(named, frame)
    shown["notes"] += [f"{name}: {text}" for name, text in seen.items()]
    shown |= parts.measure(subjects[0].scores, rows, frame, shown["k"])
    if subjects[0].name not in seen:
        shown["promises"] = promise_results(subjects[0].scores, rows)
    if train is not None:
        tell("fitting again", len(named), len(named) + 1)
        _add_sure(shown, sure_results(first, train, frame, shown["k"]), subjects[0].scores)
    made["front"] = shown
    made["verdict"] = {"headline": shown["said"]["headline"]}
    tell("done", len(named) + 1, len(named) + 1)
    return Report(plain(made, digits=6, infinities=False, smallest=SMALLEST))


def _add_sure(shown: JsonObject, found: JsonObject, scores: FloatArray) -> None:
    """Say how sure the places of the first list are, in a sentence and row by row."""
    order = np.argsort(-scores, kind="stable")
    shown["sure"] = describe_sure(found, order, shown["k"])
    for one, place in zip(shown["models"][0]["list"], order, strict=False):
        one["sure"] = float(found["shares"][place])


def _seen(models: Mapping[str, TableModel], frame: object) -> dict[str, str]:
    """What to say of the models that have learned from some of the rows."""
    found = {}
    for name, model in models.items():
        seen = SeenRows(model)
        seen.add(frame)
        if seen.note:
            found[name] = seen.note
    return found


def _check_same_target(models: Mapping[str, TableModel]) -> None:
    goals = {(model.target.column, model.target.positive) for model in models.values()}
    if len(goals) > 1:
        listed = " and ".join(f"{column!r} = {value!r}" for column, value in sorted(goals))
        raise ModelError(f"The models rank for different things: {listed}.")


def _of_cards(models: Mapping[str, tuple[TableModel, str | None]]) -> JsonObject:
    """What the cards say of the models: figures on the rows held out in training."""
    cards = []
    for name, (model, file) in models.items():
        metrics = model.card.get("metrics", {})
        columns = sorted(importances_of(model.card).items(), key=lambda pair: -pair[1])[:12]
        total = sum(importances_of(model.card).values()) or 1.0
        cards.append(
            {
                "name": clean_text(name),
                "facts": describe_model(model, file),
                "intervals": metrics.get("intervals", []),
                "how": clean_text(metrics.get("how", ""), 400),
                "columns": [{"column": c, "share": size / total} for c, size in columns],
                "warnings": [clean_text(text, 400) for text in model.card.get("warnings", ())],
            }
        )
    return {"cards": cards, "verdict": {"headline": _card_headline(next(iter(models.values()))[0])}}


def _card_headline(model: TableModel) -> str:
    found = {
        one["metric"].split("(")[0]: one
        for one in model.card.get("metrics", {}).get("intervals", [])
    }
    one, lift = found.get("precision_at"), found.get("lift_at")
    word = f"\u201c{clean_text(model.target.positive)}\u201d"
    if one is None or one.get("estimate") is None:
        return f"This model puts {word} at the top of the list; it was not measured."
    at = one["metric"].removeprefix("precision_at(k=").removesuffix(")")
    top = f"first {percent(float(at))}" if at.startswith("0.") else f"first {at} rows"
    said = f"Of the {top} of the list, {percent(one['estimate'])} were {word}"
    if one.get("low") is not None:
        said += f" (between {percent(one['low'])} and {percent(one['high'])})"
    if lift is not None and lift.get("estimate") is not None:
        said += f", {lift['estimate']:.3g} times as many as a random order has there"
    return f"{said}. These are rows that were held out when the model was made."
