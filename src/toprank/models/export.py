"""A model, preparation included, in other languages: ONNX and SQL."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from toprank.interop.additive import Additive, Line, Steps, additive_form, is_additive
from toprank.interop.onnx import Graph, OnnxExport, add_ranker, check_export
from toprank.interop.sql import Dialect, bracketed_sum, finish, get_dialect, steps_sql
from toprank.models import frames
from toprank.models.columns import Column
from toprank.models.errors import ModelError

#: A TableModel, which imports this file.
Model = Any
#: The largest number; what is beyond counts as missing.
_LARGEST = float(np.finfo(np.float64).max)


def table_to_onnx(
    model: Model, path: str | PathLike[str] | None, check: Any, tolerance: float
) -> OnnxExport:
    """As `TableModel.to_onnx`."""
    _refuse_columns(model, "ONNX", set(range(len(model.preparation.names))))
    graph = Graph(model.schema.names)
    try:
        proto = graph.finish(add_ranker(graph, model.ranker, _add_preparation(graph, model)))
        export = OnnxExport(proto)
        if check is not None:
            export = check_export(proto, onnx_inputs(model, check), model.score(check), tolerance)
    except ValueError as error:
        raise ModelError(str(error)) from error
    if path is not None:
        export.save(path)
    return export


def onnx_inputs(model: Model, frame: Any) -> dict[str, Any]:
    """Return a table as the inputs of the model's ONNX form: one array (rows, 1) per column."""
    values, match = model.schema.read(frame)
    match.ensure_ok()
    rows = frames.n_rows(frame)
    return {name: array.reshape(rows, 1) for name, array in values.items()}


def _refuse_columns(model: Model, language: str, used: set[int]) -> None:
    """ModelError if numbers in use come from columns that the language cannot prepare."""
    owners = {int(model.preparation.owner[j]) for j in used}
    columns = [c for j, c in enumerate(model.schema.columns) if j in owners]
    odd = [c.name for c in columns if c.tidy or (c.decimal is not None and language == "SQL")]
    if odd:
        raise ModelError(
            f"The model reads {', '.join(map(repr, odd))} as tidy words or as numbers with signs, "
            f"which cannot be written as {language}; write them so in the table, and fit it again."
        )
    bad = [c for c in columns if c.kind in ("date", "text")]
    if bad:
        named = ", ".join(f"{c.name!r} ({c.kind})" for c in bad)
        raise ModelError(
            f"The model reads {named}, whose preparation cannot be written as {language}; fit it "
            f"with drop={[c.name for c in bad]!r}, or turn them into numbers first."
        )


def _add_preparation(graph: Graph, model: Model) -> str:
    """Append the preparation: inputs by the names of the columns, one matrix of numbers out."""
    parts, preparation = [], model.preparation
    if len(preparation.numbers):
        inputs = [graph.input(name, graph.double, 1) for name in preparation.numbers.tolist()]
        parts += _add_numbers(graph, model, graph.add("Concat", *inputs, axis=1))
    for place, name in enumerate(preparation.categories.tolist()):
        words = graph.input(name, graph.onnx.TensorProto.STRING, 1)
        parts.append(_add_category(graph, model, words, preparation.encoder.categories_[place]))
    return parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=1)


def _add_numbers(graph: Graph, model: Model, x: str) -> list[str]:
    """Standardised, missing as the mean, and which were missing; or as they are."""
    preparation = model.preparation
    gap = graph.add("Or", graph.add("IsNaN", x), graph.add("IsInf", x))
    clips = {column.name: column.clip for column in model.schema.columns if column.clip}
    if clips:
        ends = [clips.get(name, (-np.inf, np.inf)) for name in preparation.numbers.tolist()]
        for operator, values in zip(("Max", "Min"), zip(*ends, strict=True), strict=True):
            x = graph.add(operator, x, graph.constant(np.array(values)))
    if preparation.scaler is None:
        return [graph.add("Where", gap, graph.constant(np.array(np.nan)), x)]
    z = graph.add("Sub", x, graph.constant(preparation.scaler.mean_))
    z = graph.add("Div", z, graph.constant(preparation.scaler.scale_))
    parts = [graph.add("Where", gap, graph.constant(np.array(0.0)), z)]
    if preparation.gaps:
        places = graph.constant(np.array(preparation.gaps, dtype=np.int64))
        shown = graph.add("Gather", graph.add("Cast", gap, to=graph.double), places, axis=1)
        parts.append(shown)
    return parts


def _add_category(graph: Graph, model: Model, words: str, known: Any) -> str:
    """A column of 0 and 1 for each category; for trees its code, NaN if it was never seen."""
    code = graph.add(
        "LabelEncoder",
        words,
        domain="ai.onnx.ml",
        keys_strings=[str(word) for word in known],
        values_int64s=list(range(len(known))),
        default_int64=-1,
    )
    if model.preparation.style == "trees":
        unknown = graph.add("Less", code, graph.constant(np.array(0, dtype=np.int64)))
        number = graph.add("Cast", code, to=graph.double)
        return graph.add("Where", unknown, graph.constant(np.array(np.nan)), number)
    places = graph.constant(np.arange(len(known), dtype=np.int64)[None, :])
    return graph.add("Cast", graph.add("Equal", code, places), to=graph.double)


def table_to_sql(model: Model, table: str | None, dialect: str) -> str:
    """As `TableModel.to_sql`."""
    if not is_additive(model.ranker):
        raise ModelError(
            f"{type(model.ranker).__name__} adds up trees, not columns: as SQL it would be a page "
            "for every tree. Export it as ONNX, or fit another model."
        )
    form = additive_form(model.ranker)
    _refuse_columns(model, "SQL", set(form.terms))
    try:
        language = get_dialect(dialect)
        terms = [language.number(form.intercept)]
        place = {name: j for j, name in enumerate(model.preparation.numbers.tolist())}
        place |= {name: j for j, name in enumerate(model.preparation.categories.tolist())}
        for column, mine in zip(model.schema.columns, _numbers_by_column(model), strict=True):
            if any(j in form.terms for j in mine):
                term = _Term(model, form, language, column, mine, place[column.name])
                terms.append(term.sql())
        return finish(bracketed_sum(terms), table, language)
    except ModelError:
        raise
    except ValueError as error:
        raise ModelError(str(error)) from error


def _numbers_by_column(model: Model) -> list[list[int]]:
    """The numbers that each column of the schema becomes."""
    found: list[list[int]] = [[] for _ in model.schema.columns]
    for number, place in enumerate(model.preparation.owner.tolist()):
        found[place].append(number)
    return found


class _Term:
    """What one column of the table adds to the score, as SQL."""

    def __init__(
        self,
        model: Model,
        form: Additive,
        dialect: Dialect,
        column: Column,
        mine: list[int],
        place: int,
    ):
        self.preparation, self.form, self.dialect = model.preparation, form, dialect
        self.column, self.mine, self.place = column, mine, place
        self.x = dialect.name(column.name)

    def sql(self) -> str:
        """Return the term."""
        if self.column.kind == "category":
            return self._category()
        return self._boolean() if self.column.kind == "boolean" else self._number()

    def _at(self, numbers: list[float]) -> str:
        """The term where the preparation makes the given numbers of the column."""
        terms = [self.form.terms.get(j, Line(0.0)) for j in self.mine]
        pairs = zip(terms, numbers, strict=True)
        return self.dialect.number(sum(float(t.of(np.array([z]))[0]) for t, z in pairs))

    def _category(self) -> str:
        levels = list(self.preparation.encoder.categories_[self.place])
        x, sql = self.x, self.dialect
        cases = [f"WHEN {x} IS NULL OR {x} = '' THEN {self._level(levels, '')}"]
        for word in self.column.categories:
            cases.append(f"WHEN {x} = {sql.word(word)} THEN {self._level(levels, word)}")
        return f"CASE {' '.join(cases)} ELSE {self._level(levels, None)} END"

    def _level(self, levels: list[str], word: str | None) -> str:
        return self._at([float(level == word) for level in levels])

    def _boolean(self) -> str:
        true = self.dialect.truth.format(self.x)
        return (
            f"CASE WHEN {self.x} IS NULL THEN {self._missing()} WHEN {true} THEN "
            f"{self._present(1.0)} ELSE {self._present(0.0)} END"
        )

    def _present(self, value: float) -> str:
        if self.preparation.scaler is not None:
            mean, spread = self._standard()
            value = (value - mean) / spread
        return self._at([value, *([0.0] * (len(self.mine) - 1))])

    def _missing(self) -> str:
        """Standardised it is the mean, with a number that says so where training had some."""
        lost = np.nan if self.preparation.scaler is None else 0.0
        return self._at([lost, *([1.0] * (len(self.mine) - 1))])

    def _number(self) -> str:
        """A line through standardised values, or steps; elsewhere what a missing value adds."""
        sql, x, value = self.dialect, self.x, self._clipped()
        term = self.form.terms.get(self.mine[0], Line(0.0))
        if isinstance(term, Steps):
            first = sql.number(float(term.values[0]))
            inside = f"CASE {' '.join(steps_sql(term, value, sql))} ELSE {first} END"
        else:
            mean, spread = (sql.number(value) for value in self._standard())
            inside = f"{sql.number(term.slope)} * (({value} - {mean}) / {spread})"
        within = f"{x} BETWEEN {sql.number(-_LARGEST)} AND {sql.number(_LARGEST)}"
        return f"CASE WHEN {within} THEN {inside} ELSE {self._missing()} END"

    def _clipped(self) -> str:
        """The column, or what counts in its place where its tails are clipped."""
        if self.column.clip is None:
            return self.x
        low, high = map(self.dialect.number, self.column.clip)
        x = self.x
        return f"(CASE WHEN {x} < {low} THEN {low} WHEN {x} > {high} THEN {high} ELSE {x} END)"

    def _standard(self) -> tuple[float, float]:
        scaler = self.preparation.scaler
        return float(scaler.mean_[self.place]), float(scaler.scale_[self.place])
