"""A model, preparation included, as SQL."""

from __future__ import annotations

import re

import numpy as np

from toprank.interop.additive import Additive, Line, Steps, additive_form, is_additive
from toprank.interop.sql_dialects import Dialect, bracketed_sum, finish, get_dialect
from toprank.interop.sql_rankers import score_sql
from toprank.interop.sql_steps import SqlColumns, SqlSteps, clip_sql, is_number, steps_sql
from toprank.models.columns import Column
from toprank.models.errors import ModelError
from toprank.models.preparation import FittedTable


def refuse_columns(model: FittedTable, language: str, used: set[int]) -> None:
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


def table_to_sql(model: FittedTable, table: str | None, dialect: str) -> str:
    """As `TableModel.to_sql`."""
    try:
        language = get_dialect(dialect)
        write = _sum_sql if is_additive(model.ranker) else _ranker_sql
        return finish(write(model, language), table, language)
    except ModelError:
        raise
    except ValueError as error:
        raise ModelError(str(error)) from error


def _sum_sql(model: FittedTable, language: Dialect) -> str:
    """The score of a ranker that adds up its columns: a term for each column of the table."""
    form = additive_form(model.ranker)
    refuse_columns(model, "SQL", set(form.terms))
    terms = [language.number(form.intercept)]
    place = {name: j for j, name in enumerate(model.preparation.numbers.tolist())}
    place |= {name: j for j, name in enumerate(model.preparation.categories.tolist())}
    for column, mine in zip(model.schema.columns, _numbers_by_column(model), strict=True):
        if any(j in form.terms for j in mine):
            terms.append(_Term(model, form, language, column, mine, place[column.name]).sql())
    return bracketed_sum(terms)


def _ranker_sql(model: FittedTable, language: Dialect) -> str:
    """The score of trees or an ensemble, over the columns as they were prepared."""
    owners = [model.schema.columns[j] for j in model.preparation.owner.tolist()]
    numbers = [_prepared_number(column, language) for column in owners]
    columns = SqlColumns(numbers, numbers)
    steps = SqlSteps(model.schema.names, language)
    score = score_sql(model.ranker, columns, steps)
    refuse_columns(model, "SQL", columns.used)
    return steps.finish(score)


def _prepared_number(column: Column, dialect: Dialect) -> str:
    """A column of the table as trees read it: a number, or the code of a category."""
    x = dialect.name(column.name)
    if column.kind == "category":
        tests = _word_tests(column, dialect)
        cases = " ".join(f"WHEN {test} THEN {code}" for code, (_, test) in enumerate(tests))
        others = f"ELSE {len(tests)} " if column.pooled else ""
        missing = f"WHEN {_is_missing(column, dialect)} THEN NULL " if column.pooled else ""
        return f"CASE {missing}{cases} {others}END" if column.categories else "NULL"
    if column.kind == "boolean":
        true = dialect.truth.format(x)
        return f"CASE WHEN {x} IS NULL THEN NULL WHEN {true} THEN 1e0 ELSE 0e0 END"
    if column.kind != "number":
        return "NULL"  # refused by name where the score asks for it
    value = x if column.clip is None else clip_sql(x, *column.clip, dialect)
    return f"CASE WHEN {is_number(x, dialect)} THEN {value} END"


def _word_tests(column: Column, dialect: Dialect) -> list[tuple[str, str]]:
    """The categories with the condition that a row has each; but that of all other words."""
    x, numbers = dialect.name(column.name), _holds_numbers(column)
    kept = column.categories[:-1] if column.pooled else column.categories
    literal = _number_literal if numbers else Dialect.word
    return [(word, f"{x} = {literal(dialect, word)}") for word in kept]


def _number_literal(dialect: Dialect, word: str) -> str:
    """A number that was read as a word, for a column of numbers: words would not compare."""
    return word if re.fullmatch(r"\d{1,18}", word) else dialect.number(float(word))


def _is_missing(column: Column, dialect: Dialect) -> str:
    x = dialect.name(column.name)
    return f"{x} IS NULL" if _holds_numbers(column) else f"{x} IS NULL OR {x} = ''"


def _holds_numbers(column: Column) -> bool:
    """Whether the table of the fit had numbers in a column that was read as words."""
    return re.match(r"u?int|float|double|decimal", column.dtype.lower()) is not None


def _numbers_by_column(model: FittedTable) -> list[list[int]]:
    """The numbers that each column of the schema becomes."""
    found: list[list[int]] = [[] for _ in model.schema.columns]
    for number, place in enumerate(model.preparation.owner.tolist()):
        found[place].append(number)
    return found


class _Term:
    """What one column of the table adds to the score, as SQL."""

    def __init__(
        self,
        model: FittedTable,
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
        missing = _is_missing(self.column, self.dialect)
        cases = [f"WHEN {missing} THEN {self._level(levels, '')}"]
        for word, test in _word_tests(self.column, self.dialect):
            cases.append(f"WHEN {test} THEN {self._level(levels, word)}")
        others = self.column.categories[-1] if self.column.pooled else None
        return f"CASE {' '.join(cases)} ELSE {self._level(levels, others)} END"

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
        return f"CASE WHEN {is_number(x, sql)} THEN {inside} ELSE {self._missing()} END"

    def _clipped(self) -> str:
        """The column, or what counts in its place where its tails are clipped."""
        if self.column.clip is None:
            return self.x
        return f"({clip_sql(self.x, *self.column.clip, self.dialect)})"

    def _standard(self) -> tuple[float, float]:
        scaler = self.preparation.scaler
        return float(scaler.mean_[self.place]), float(scaler.scale_[self.place])
