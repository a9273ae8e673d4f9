"""From the columns of a table to the numbers a ranker takes.

The encoders are scikit-learn's, and those of `toprank.models.encoders`; this file only decides
which column goes to which, and remembers which numbers came from which column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import AnyArray, JsonObject
from toprank._numerics import LARGEST_SIZE, FloatArray
from toprank.models.columns import Column
from toprank.models.encoders import DateEncoder, TextEncoder
from toprank.models.moments import Moments
from toprank.models.schema import Schema, Target
from toprank.models.words import Words

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

#: What a ranker needs of its numbers.
STYLES = ("linear", "stumps", "trees")

Values = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class ColumnFacts:
    """What rows tell of how columns become numbers; facts of other rows merge with them.

    Attributes
    ----------
    moments : dict
        Means and deviations of numbers and parts of dates, for linear rankers.
    timed : frozenset of str
        The columns of dates that have times of day.
    texts : dict
        The words of columns of text.
    """

    moments: dict[str, Moments]
    timed: frozenset[str]
    texts: dict[str, Words]

    def merge(self, other: ColumnFacts) -> ColumnFacts:
        """Join the facts of other rows."""
        return ColumnFacts(
            {name: one.merge(other.moments[name]) for name, one in self.moments.items()},
            self.timed | other.timed,
            {name: one.merge(other.texts[name]) for name, one in self.texts.items()},
        )


class Preparation:
    """How columns become numbers: fitted on a training table, then the same for every table.

    ========  =====================================  ==========================  ===============
    kind      linear                                 stumps                      trees
    ========  =====================================  ==========================  ===============
    number,   standardised; missing is the mean,     as it is, missing is NaN    as for stumps
    boolean   with a column that says so
    date      year, month, day, hour, weekday and    the same, as they are       as for stumps
              seconds since 1970, then as numbers
    category  a column of 0 and 1 for each, for      as for linear               a code for each
              missing too if training had it
    text      at most 30 components of the n-grams   as for linear               as for linear
              of its letters (TF-IDF, SVD),
              learned from 10,000 different
              texts at most
    ========  =====================================  ==========================  ===============

    Parameters
    ----------
    style : {"linear", "stumps", "trees"}
        What the ranker needs.

    Attributes
    ----------
    names : array of str
        What each number is called.
    owner : array of int
        The place of its column in the schema.
    categorical : list of int
        The numbers that are codes of categories; for trees.
    """

    def __init__(self, style: str = "linear", random_state: int = 0):
        self.style = style
        self.random_state = random_state

    def fit_transform(
        self,
        schema: Schema,
        values: Values,
        weight: FloatArray | None = None,
        *,
        texts_of: Preparation | None = None,
    ) -> FloatArray:
        """Learn how to prepare the columns, and return them prepared.

        ``texts_of`` is a preparation of another style that has learned from the same texts.
        """
        facts = self.describe(schema, values, weight)
        return self.finish(schema, facts, texts_of).transform(values)

    def describe(
        self, schema: Schema, values: Values, weight: FloatArray | None = None
    ) -> ColumnFacts:
        """Return what some rows tell of the preparation; that of other rows merges with it."""
        _, dates, _, texts = self._by_kind(schema)
        moments: dict[str, Moments] = {}
        if self.style == "linear":
            moments = Moments.of_columns(self._numbers_and_parts(schema, values), weight)
        return ColumnFacts(
            moments,
            frozenset(name for name in dates if _has_times(values[name])),
            {name: Words.of(values[name]) for name in texts},
        )

    def _numbers_and_parts(
        self, schema: Schema, values: Values
    ) -> Iterator[tuple[str, FloatArray]]:
        """The numbers, and all that can be made of dates, by name and one at a time."""
        numbers, dates, _, _ = self._by_kind(schema)
        for name in numbers:
            yield name, values[name]
        for name in dates:
            encoder = DateEncoder(name, with_times=True)
            yield from zip(encoder.names, encoder.transform(values[name]).T, strict=True)

    def finish(
        self, schema: Schema, facts: ColumnFacts, texts_of: Preparation | None = None
    ) -> Preparation:
        """Settle the preparation by what all rows told."""
        # as arrays, which files hold in one piece
        self.numbers, self.dates, self.categories, self.texts = (
            np.array(names, dtype=np.str_) for names in self._by_kind(schema)
        )
        self.date_encoders: list[Any] = [
            DateEncoder(name, with_times=name in facts.timed) for name in self.dates.tolist()
        ]
        known = {} if texts_of is None else texts_of._encoders_of_texts
        self.text_encoders: list[Any] = [
            known.get(name) or TextEncoder(name).fit(facts.texts[name].distinct, self.random_state)
            for name in self.texts.tolist()
        ]
        self.scaler: Any = None
        self.imputer: Any = None
        self.encoder: Any = None
        made = [*self.numbers.tolist()]
        for encoder in self.date_encoders:
            made += encoder.names
        if self.style == "linear" and made:
            moments = [facts.moments[name] for name in made]
            self.scaler = _make_scaler(moments)
            self.imputer = _make_imputer([one.missing > 0 for one in moments])
        columns = [c for c in schema.columns if c.kind == "category"]
        if columns:
            self.encoder = _category_encoder(self.style, columns)
            # the categories are given: one row of them is enough
            self.encoder.fit(np.array([[_levels(c)[0] for c in columns]], dtype=object))
        self._name(schema)
        return self

    @property
    def _encoders_of_texts(self) -> dict[str, Any]:
        return dict(zip(self.texts.tolist(), self.text_encoders, strict=True))

    def transform(self, values: Values) -> FloatArray:
        """Return the columns prepared: a matrix of shape (n, len(names))."""
        plain = self._plain(values)
        if self.scaler is not None:
            with np.errstate(over="ignore"):  # numbers far beyond any of training
                plain = np.clip(self.scaler.transform(plain), -LARGEST_SIZE, LARGEST_SIZE)
            plain = self.imputer.transform(plain)
        parts = [plain]
        if self.encoder is not None:
            parts.append(self.encoder.transform(self._words(values)))
        for name, encoder in zip(self.texts.tolist(), self.text_encoders, strict=True):
            parts.append(encoder.transform(values[name]))
        return np.hstack(parts, dtype=np.float64)

    def _plain(self, values: Values) -> FloatArray:
        """The numbers and those made of dates, missing as NaN."""
        n = len(next(iter(values.values()))) if values else 0
        parts = [values[name].reshape(n, 1) for name in self.numbers.tolist()]
        for name, encoder in zip(self.dates.tolist(), self.date_encoders, strict=True):
            parts.append(encoder.transform(values[name]))
        return np.hstack([np.empty((n, 0)), *parts], dtype=np.float64)

    def _words(self, values: Values) -> NDArray[np.object_]:
        return np.column_stack([values[name] for name in self.categories.tolist()])

    def _name(self, schema: Schema) -> None:
        """Say what each number is called, and which column it came from."""
        made = [(name, name) for name in self.numbers.tolist()]
        for column, encoder in zip(self.dates.tolist(), self.date_encoders, strict=True):
            made += [(column, name) for name in encoder.names]
        if self.imputer is not None:
            made += [(made[j][0], f"{made[j][1]} is missing") for j in self.gaps]
        first = len(made)
        if self.encoder is not None:
            for column, levels in zip(
                self.categories.tolist(), self.encoder.categories_, strict=True
            ):
                names = [column] if self.style == "trees" else [f"{column} = {w}" for w in levels]
                made += [(column, name) for name in names]
        self.categorical = list(range(first, len(made))) if self.style == "trees" else []
        for column, encoder in zip(self.texts.tolist(), self.text_encoders, strict=True):
            made += [(column, name) for name in encoder.names]
        place = {name: j for j, name in enumerate(schema.names)}
        self.names = np.array([name for _, name in made], dtype=np.str_)
        self.owner = np.array([place[column] for column, _ in made], dtype=np.intp)

    def fits(self, schema: Schema) -> bool:
        """Whether this is a preparation of the schema's columns."""
        return self._by_kind(schema) == [
            part.tolist() for part in (self.numbers, self.dates, self.categories, self.texts)
        ] and len(self.owner) == len(self.names)

    @staticmethod
    def _by_kind(schema: Schema) -> list[list[str]]:
        groups = (("number", "boolean"), ("date",), ("category",), ("text",))
        return [[c.name for c in schema.columns if c.kind in kinds] for kinds in groups]

    @property
    def gaps(self) -> list[int]:
        """The numbers for which another one says whether they were missing; for linear rankers."""
        return [] if self.imputer is None else self.imputer.indicator_.features_.tolist()


def _levels(column: Column) -> list[str]:
    """The categories of a column, and the empty word where training had missing values."""
    return [*column.categories, *([""] if column.missing > 0 else [])]


def _category_encoder(style: str, columns: list[Column]) -> BaseEstimator:
    # here, because a fitted preparation brings those that it needs
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

    if style == "trees":
        levels = [np.array(column.categories, dtype=object) for column in columns]
        return OrdinalEncoder(
            categories=levels, handle_unknown="use_encoded_value", unknown_value=np.nan
        )
    levels = [np.array(_levels(column), dtype=object) for column in columns]
    return OneHotEncoder(categories=levels, handle_unknown="ignore", sparse_output=False)


def _make_imputer(missing: list[bool]) -> BaseEstimator:
    """Missing numbers are 0, the mean, and another number says where they were."""
    from sklearn.impute import SimpleImputer

    filled = SimpleImputer(
        strategy="constant", fill_value=0.0, add_indicator=True, keep_empty_features=True
    )
    gaps = np.where(missing, np.nan, 0.0)
    return filled.fit(np.vstack([np.zeros(len(missing)), gaps]))


def _make_scaler(moments: list[Moments]) -> BaseEstimator:
    """A scaler with these means and deviations; a column without any is left as it is."""
    from sklearn.preprocessing import StandardScaler

    means = np.array([one.mean for one in moments])
    variances = np.array([one.variance for one in moments])
    scaler = StandardScaler().fit(np.zeros((2, len(moments))))
    scaler.mean_, scaler.var_ = means, variances
    scaler.scale_ = np.where(variances > 0, np.sqrt(variances), 1.0)
    scaler.n_samples_seen_ = moments[0].rows
    return scaler


def _has_times(dates: AnyArray) -> bool:
    """Whether some dates have a time of day."""
    there = dates[~np.isnat(dates)].astype("datetime64[us]")
    return bool(np.any(there != there.astype("datetime64[D]")))


class FittedTable(Protocol):
    """What saving and exporting ask of a `TableModel`, which imports the files that do it."""

    @property
    def schema(self) -> Schema: ...

    @property
    def target(self) -> Target: ...

    @property
    def preparation(self) -> Preparation: ...

    @property
    def ranker(self) -> BaseEstimator: ...

    @property
    def card(self) -> JsonObject: ...

    @property
    def centre(self) -> FloatArray: ...

    def score(self, frame: object) -> FloatArray: ...
