"""A ranker together with everything it needs to read a table, and the reasons of its scores."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._arrays import JsonObject
from toprank._html import interval_picture, table_html
from toprank._numerics import FloatArray
from toprank._text import number_text
from toprank.interop.additive import additive_form, is_additive
from toprank.models import frames
from toprank.models.columns import as_words, is_missing
from toprank.models.errors import ModelError, ModelWarning
from toprank.models.export import table_to_onnx
from toprank.models.export_sql import table_to_sql
from toprank.models.preparation import Preparation
from toprank.models.schema import Match, Schema, Target
from toprank.models.sketch import SeenRows
from toprank.models.storage import save
from toprank.models.together import ShownValues, Together, groups_on_card

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from toprank.interop.onnx import OnnxExport

#: Rows at most that the mean contribution and the importance of columns are taken from, for
#: rankers that are explained by walks through trees; it takes longer than the fit otherwise.
_MOST_EXPLAINED = 500


class Reason(NamedTuple):
    """What one column adds to the score of a row, against the mean of the training rows.

    Examples
    --------
    >>> from toprank.models import Reason
    >>> print(Reason("age", 0.8312, "41"))
    age = 41 (+0.831)
    """

    column: str
    contribution: float
    value: str

    def __str__(self) -> str:
        value = f"= {self.value}" if self.value else "missing"
        return f"{self.column} {value} ({self.contribution:+.3g})"


def contributions(ranker: BaseEstimator, Z: FloatArray) -> FloatArray:
    """Return what each number adds to each score: for trees their SHAP values.

    For linear rankers and stumps these are the terms of the sum; whoever explains takes a mean
    off. ValueError for other rankers.
    """
    if hasattr(ranker, "explain"):
        parts = ranker.explain(Z)[:, :-1]
        before = getattr(ranker, "init_model_", None)
        if before is not None and explains(before):
            parts = parts + ranker.init_scale_ * contributions(before, Z)
        return parts
    return additive_form(ranker).contributions(Z)


def explains(ranker: object) -> bool:
    """Whether `contributions` has an answer for a fitted ranker; an ensemble asks its members."""
    if not hasattr(ranker, "explain"):
        return is_additive(ranker)
    members = [member for _, member in getattr(ranker, "members_", ())]
    return all(hasattr(member, "explain") and explains(member) for member in members)


def rows_to_explain(ranker: object, n: int) -> NDArray[np.intp] | slice:
    """Which of n training rows stand for all where contributions are averaged.

    All for linear rankers and stumps; for others, of many rows, as many as the mean needs, drawn
    always in the same way.
    """
    if n <= _MOST_EXPLAINED or not hasattr(ranker, "explain"):
        return slice(None)
    return np.sort(np.random.default_rng(0).choice(n, _MOST_EXPLAINED, replace=False))


class ExplainedRows(NamedTuple):
    """Some training rows that stand for all, and what each number adds to their scores."""

    rows: NDArray[np.intp] | slice
    parts: FloatArray

    @classmethod
    def of(cls, ranker: BaseEstimator, Z: FloatArray) -> ExplainedRows:
        """Explain prepared training rows, or some of many."""
        rows = rows_to_explain(ranker, len(Z))
        return cls(rows, contributions(ranker, Z[rows]))

    def mean(self, weight: FloatArray | None) -> FloatArray:
        """The mean contribution of each number."""
        weight = None if weight is None else weight[self.rows]
        return np.asarray(np.average(self.parts, axis=0, weights=weight))


def per_column(parts: FloatArray, owner: NDArray[np.intp], n_columns: int) -> FloatArray:
    """Sum contributions of numbers over the columns of the table that they came from."""
    order = np.argsort(owner, kind="stable")
    out = np.zeros((len(parts), n_columns))
    if len(order):
        starts = np.flatnonzero(np.diff(owner[order], prepend=-1))
        out[:, owner[order][starts]] = np.add.reduceat(parts[:, order], starts, axis=1)
    return out


def column_texts(values: np.ndarray) -> Sequence[str]:
    """Return the values of a column for people to read; a missing one is the empty word."""
    if values.dtype.kind == "f":
        return ShownValues(values, lambda x: "" if np.isnan(x) else number_text(float(x)))
    if values.dtype.kind == "M":
        words = np.datetime_as_string(values, unit="s").tolist()
        there = ["" if word == "NaT" else word for word in words]
        return [word.replace("T", " ").removesuffix(" 00:00:00") for word in there]
    return as_words(values).tolist()


def largest_reasons(
    parts: FloatArray, names: list[str], values: Sequence[object], n: int
) -> list[list[Reason]]:
    """Return the n largest contributions to each row, in absolute value; none that is zero.

    Parameters
    ----------
    parts : array of shape (rows, columns)
    names : list of str
        The columns.
    values : list of sequences
        The values of each column, as words.
    n : int
        How many.
    """
    order = np.argsort(-np.abs(parts), axis=1, kind="stable")[:, :n]
    return [
        [
            Reason(names[j], float(parts[i, j]), values[j][i])
            for j in chosen.tolist()
            if parts[i, j] != 0
        ]
        for i, chosen in enumerate(order)
    ]


@dataclass(frozen=True, eq=False)
class TableModel:
    """A fitted ranker with its preparation, schema and card; `fit_table` makes one.

    Attributes
    ----------
    schema : Schema
        The columns it reads, and those with other roles in training.
    target : Target
        The label that belongs at the top, and the others.
    preparation : Preparation
        How columns become numbers.
    ranker : estimator
        The ranker of these numbers.
    card : dict
        What the model is: when and how it was made, from what, with which versions, and the
        intervals of its metrics on rows held out.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from toprank.models import fit_table, load
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"x": rng.normal(size=300), "city": rng.choice(["Rome", "Oslo"], 300)})
    >>> frame["y"] = (frame.x + rng.normal(size=300) > 1.5).astype(int)
    >>> model = fit_table(frame, "y", p=4)
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "sales.toprank")
    ...     model.save(path)
    ...     again = load(path)
    >>> bool(np.array_equal(again.score(frame), model.score(frame)))
    True
    """

    schema: Schema
    target: Target
    preparation: Preparation
    ranker: BaseEstimator
    card: JsonObject
    centre: FloatArray

    def with_card(self, card: JsonObject) -> TableModel:
        """Return the model with another card."""
        return replace(self, card=card)

    def check(self, frame: object) -> Match:
        """Return how a table matches the schema, column by column, without scoring it."""
        return self.schema.match(frame)

    def numbers(self, frame: object) -> FloatArray:
        """Return a table prepared for the ranker; ModelError if it does not match the schema."""
        values, match = self.schema.read(frame)
        match.ensure_ok()
        if match.notes:
            warnings.warn("; ".join(match.notes) + ".", ModelWarning, stacklevel=3)
        if frames.n_rows(frame) == 0:
            return np.empty((0, len(self.preparation.names)))
        return self.preparation.transform(values)

    def score(self, frame: object) -> FloatArray:
        """Return the ranking score of each row; zero is a probability of one half.

        Parameters
        ----------
        frame : data frame of pandas or polars, or pyarrow Table
            With the columns of the schema, in any order; others are ignored.
        """
        Z = self.numbers(frame)
        return self.ranker.decision_function(Z) if len(Z) else np.empty(0)

    def predict_proba(self, frame: object) -> FloatArray:
        """Return, for each row, the probabilities of the negative and of the positive label."""
        Z = self.numbers(frame)
        return self.ranker.predict_proba(Z) if len(Z) else np.empty((0, 2))

    def labels(self, frame: object) -> NDArray[np.bool_]:
        """Return which rows of a labelled table are positive; ModelError if labels are missing."""
        if self.target.column not in frames.names_of(frame):
            raise ModelError(f"The table has no column {self.target.column!r}, the target.")
        return self.target.of(frames.column(frame, self.target.column))

    def labelled(self, frame: object) -> NDArray[np.bool_]:
        """Return which rows of a table have a label; none where the target is not a column."""
        if self.target.column not in frames.names_of(frame):
            return np.zeros(frames.n_rows(frame), dtype=bool)
        return ~is_missing(frames.column(frame, self.target.column))

    def share_learned_from(self, frame: object) -> float:
        """Return the share of a table's rows that the model has learned from; 0 if only by chance.

        From the checksums on its card, which are those of a sample of the training rows.
        """
        seen = SeenRows(self)
        seen.add(frame)
        return seen.share if seen.note else 0.0

    def column_contributions(self, Z: FloatArray) -> FloatArray:
        """Return what each column of the schema adds to the scores of prepared rows.

        Against the mean over the training rows, so that an ordinary value adds nothing: an array
        of shape (n, columns).
        """
        return self.per_column(contributions(self.ranker, Z) - self.centre)

    def per_column(self, parts: FloatArray) -> FloatArray:
        """Return contributions of the ranker's numbers summed over the columns they came from."""
        return per_column(parts, self.preparation.owner, len(self.schema.columns))

    def reasons(self, frame: object, n: int = 3) -> list[list[Reason]]:
        """Return, for each row, the n columns that add most to its score, in absolute value.

        Columns that rise and fall together in training count as one, named by all of them.

        Parameters
        ----------
        frame : data frame of pandas or polars, or pyarrow Table
        n : int, default=3

        Returns
        -------
        list of lists of Reason
            (column, contribution, value), the largest contribution first.
        """
        if frames.n_rows(frame) == 0:
            return []
        together = self.together
        parts = together.sums(self.column_contributions(self.numbers(frame)))
        raw = frames.columns(frame, self.schema.names)
        words = together.words([column_texts(raw[name]) for name in self.schema.names])
        return largest_reasons(parts, together.names, words, n)

    @property
    def together(self) -> Together:
        """The columns, with those that rise and fall together as one."""
        names = self.schema.names
        return Together(names, groups_on_card(self.card, names))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to one file, whole or not at all; `load` reads it."""
        save(self, path)

    def to_onnx(
        self,
        path: str | PathLike[str] | None = None,
        *,
        check: object = None,
        tolerance: float = 1e-5,
    ) -> OnnxExport:
        """Return the model, preparation included, as ONNX, and write it to a file if one is named.

        Parameters
        ----------
        path : str or path, optional
            Where to write it, whole or not at all.
        check : data frame or Table, optional
            Rows that ONNX Runtime must give the same scores.
        tolerance : float, default=1e-5
            The largest difference allowed, relative to the largest score.

        Returns
        -------
        OnnxExport
            ``.model`` (an ``onnx.ModelProto``), ``.largest_difference`` on the rows checked.
        """
        return table_to_onnx(self, path, check, tolerance)

    def to_sql(self, table: str | None = None, *, dialect: str = "ansi") -> str:
        """Return the score as SQL: an expression, or a query over a table if one is named.

        Parameters
        ----------
        table : str, optional
            Name of the table to select from.
        dialect : str, default="ansi"
            One of `toprank.interop.sql.DIALECTS`.

        Raises
        ------
        ModelError
            For models that read dates or text, and for trees too many for one query.
        """
        return table_to_sql(self, table, dialect)

    def __repr__(self) -> str:
        card = self.card
        training = card.get("training", {})
        return (
            f"<TableModel {card.get('model')} for {self.target.column!r} = "
            f"{self.target.positive!r}, {len(self.schema.columns)} columns, "
            f"{training.get('rows')} training rows>"
        )

    def _repr_html_(self) -> str:
        return _model_html(self)


def _model_html(model: TableModel) -> str:
    """Return a small table: what the model is, how good, and its most important columns."""
    card = model.card
    training, metrics = card.get("training", {}), card.get("metrics", {})
    p = card.get("p")
    rows: list[tuple[object, ...]] = [
        ("ranker", f"{card.get('ranker')}{'' if p is None else f', p = {p}'}"),
        ("top is", f"{model.target.column} = {model.target.positive}"),
        ("trained on", f"{training.get('rows')} rows, {training.get('positives')} positive"),
        ("columns", ", ".join(f"{n} {kind}" for kind, n in training.get("columns", {}).items())),
        ("made", f"{card.get('made')}, toprank {card.get('versions', {}).get('toprank')}"),
    ]
    for found in metrics.get("intervals", []):
        level = f"{100 * found['level']:g}%"
        ends = [found[part] for part in ("estimate", "low", "high")]
        estimate, low, high = map(_number_text, ends)
        rows.append((found["metric"], f"{estimate}, {level} interval {low} to {high}"))
        if all(isinstance(end, int | float) for end in ends):
            rows.append(("", interval_picture(*ends)))
    leading = list(card.get("importances", {}).items())[:5]
    rows.append(("leading columns", ", ".join(f"{name} ({size:.3g})" for name, size in leading)))
    caption = f"TableModel: {card.get('model')}"
    return table_html(rows, caption=caption, notes=[metrics.get("how", "")])


def _number_text(value: ArrayLike) -> str:
    if value is None:
        return "unknown"
    return value if isinstance(value, str) else f"{value:.4g}"  # infinity is a word on a card
