"""Filters of a Spark frame, read from its plan and applied to Arrow batches by Spark's rules.

A row stays where its filter is true, and goes where it is false or null. In Spark NaN equals NaN
and is larger than any other number; to Arrow it is neither equal, larger nor smaller. A filter is
understood where it compares columns with literals, or asks whether they are null or NaN, joined by
and, or and not. A condition is one of

    ("and", one, other), ("or", one, other), ("not", one), ("true", column), ("null", column),
    ("nan", column), ("=", column, text), and so with < <= > >=, ("in", column, texts)

with literals as the texts that Spark prints and Arrow reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

from toprank._extras import require

if TYPE_CHECKING:
    import pyarrow as pa

#: Something of Java: an expression, a plan, a sequence of Scala.
JavaObject: TypeAlias = Any
Condition: TypeAlias = "tuple[Any, ...]"
#: Columns, and their types in Spark, by the numbers that a plan has for them.
Attributes: TypeAlias = "Mapping[int, tuple[str, str]]"


class NotUnderstood(Exception):
    """A part of a plan that is left to Spark."""


#: Spark's comparisons; and what they are with the sides exchanged.
_COMPARISONS = {
    "EqualTo": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_EXCHANGED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ARROW = {
    "=": "equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
_NUMBERS_WITH_NAN = ("float", "double")
#: Of these a set holds an entry exactly where one of its members equals it.
_IN_SETS = ("tinyint", "smallint", "int", "bigint", "string")
#: Conditions inside one another, at the most.
_DEPTH = 100
#: 15 October 1582, in days from 1970: Spark may count older days by another calendar.
_FIRST_DAY = -141427


def kind_of(expression: JavaObject) -> str:
    """The class of an object of Java, without its package."""
    return str(expression.getClass().getSimpleName())


def read_condition(expression: JavaObject, columns: Attributes, depth: int = 0) -> Condition:
    """Return the condition that an expression of Spark is; NotUnderstood where it is none.

    Parameters
    ----------
    expression : object of Java
        A boolean expression of the optimised plan.
    columns : dict
        From the numbers of its attributes to (column, type in Spark).
    depth : int
        In how many conditions it lies.
    """
    kind = kind_of(expression)
    if kind in ("And", "Or", "Not") and depth < _DEPTH:
        inner = (read_condition(one, columns, depth + 1) for one in items(expression.children()))
        return (kind.lower(), *inner)
    if kind == "AttributeReference":
        return ("true", _column(expression, columns)[0])
    if kind in ("IsNull", "IsNotNull", "IsNaN"):
        column, _ = _column(expression.child(), columns)
        one = ("nan" if kind == "IsNaN" else "null", column)
        return ("not", one) if kind == "IsNotNull" else one
    if kind in _COMPARISONS:
        return _read_comparison(expression, _COMPARISONS[kind], columns)
    if kind in ("In", "InSet"):
        return _read_set(expression, kind, columns)
    if kind == "AtLeastNNonNulls":
        return _read_dropna(expression, columns)
    raise NotUnderstood(kind)


def _column(expression: JavaObject, columns: Attributes) -> tuple[str, str]:
    if kind_of(expression) != "AttributeReference":
        raise NotUnderstood(kind_of(expression))
    number = expression.exprId().id()
    if number not in columns:
        raise NotUnderstood("a column that is computed")
    return columns[number]


def _literal(expression: JavaObject, kind: str) -> str:
    """The text of a literal of the type of its column."""
    if kind_of(expression) != "Literal" or expression.value() is None:
        raise NotUnderstood(kind_of(expression))
    text = str(expression.toString())
    if expression.dataType().simpleString() != kind or text.lower() == "nan":
        raise NotUnderstood(f"a literal {text}")
    return text


def _read_comparison(expression: JavaObject, sign: str, columns: Attributes) -> Condition:
    left, right = expression.left(), expression.right()
    if kind_of(left) == "Literal":
        left, right, sign = right, left, _EXCHANGED[sign]
    column, kind = _column(left, columns)
    return (sign, column, _literal(right, kind))


def _read_set(expression: JavaObject, kind: str, columns: Attributes) -> Condition:
    children = items(expression.children())
    column, of_column = _column(children[0], columns)
    if of_column not in _IN_SETS:
        raise NotUnderstood(f"a set of {of_column}")
    if kind == "In":
        return ("in", column, tuple(_literal(one, of_column) for one in children[1:]))
    members = items(expression.hset().toSeq())
    if None in members:
        raise NotUnderstood("a set with null")
    return ("in", column, tuple(str(one) for one in members))


def _read_dropna(expression: JavaObject, columns: Attributes) -> Condition:
    """``dropna``: every one of some columns is there, and no NaN."""
    children = items(expression.children())
    if expression.n() != len(children):
        raise NotUnderstood("some of several columns")
    found: list[Condition] = []
    for column, kind in (_column(one, columns) for one in children):
        found.append(("not", ("null", column)))
        if kind in _NUMBERS_WITH_NAN:
            found.append(("not", ("nan", column)))
    return reduce(lambda one, other: ("and", one, other), found)


def items(sequence: JavaObject) -> list[JavaObject]:
    """The members of a sequence of Scala."""
    return [sequence.apply(place) for place in range(sequence.size())]


def columns_of(condition: Condition) -> set[str]:
    """The columns that a condition looks at."""
    if condition[0] in ("and", "or", "not"):
        return set().union(*(columns_of(one) for one in condition[1:]))
    return {condition[1]}


def keep_rows(condition: Condition, rows: Mapping[str, pa.Array]) -> pa.Array:
    """Return for every row whether a condition is true, false or null, as in Spark.

    Parameters
    ----------
    condition : tuple
    rows : dict
        The columns of `columns_of`, by name.
    """
    compute = require("pyarrow.compute", "spark")
    sign = condition[0]
    if sign in ("and", "or"):
        sides = (keep_rows(one, rows) for one in condition[1:])
        return getattr(compute, f"{sign}_kleene")(*sides)
    if sign == "not":
        return compute.invert(keep_rows(condition[1], rows))
    column = rows[condition[1]]
    if sign == "true":
        return column
    if sign == "null":
        return compute.is_null(column)
    if sign == "nan":
        return compute.fill_null(compute.is_nan(column), False)
    return _compare(sign, column, condition[2])


def _compare(sign: str, column: pa.Array, given: str | Sequence[str]) -> pa.Array:
    arrow, compute = require("pyarrow", "spark"), require("pyarrow.compute", "spark")
    literal = arrow.array([given] if isinstance(given, str) else given, "string")
    literal = literal.cast(column.type)
    if sign == "in":
        found = compute.is_in(column, value_set=literal)  # null is in no set, and not outside
        return compute.if_else(compute.is_valid(column), found, None)
    found = getattr(compute, _ARROW[sign])(column, literal[0])
    if sign in (">", ">=") and arrow.types.is_floating(column.type):
        return compute.or_kleene(found, compute.is_nan(column))
    return found


def has_old_days(column: pa.Array) -> bool:
    """Whether dates of a file lie so far back that Spark may read them otherwise."""
    arrow, compute = require("pyarrow", "spark"), require("pyarrow.compute", "spark")
    if not arrow.types.is_date32(column.type):
        return False
    first = compute.min(column.cast("int32")).as_py()
    return first is not None and first < _FIRST_DAY
