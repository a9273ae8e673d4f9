"""Which columns a model reads, which label belongs at the top, and how well a table matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import AnyArray, Frame, JsonObject
from toprank._numerics import LARGEST_SIZE
from toprank._text import counted
from toprank.models import frames
from toprank.models.columns import (
    KINDS,
    OTHERS,
    Column,
    Unreadable,
    are_words,
    as_words,
    is_missing,
    tidy_word,
    tidy_words,
)
from toprank.models.errors import ModelError
from toprank.models.summary import FrameLook, SecondLook, TableSummary
from toprank.models.wishes import Wishes

#: What rows say whose label is not known, in the target of a table of positives and such rows.
UNLABELLED = "(unlabelled)"
#: How many unexpected categories a message names.
_NAMED = 3


@dataclass(frozen=True)
class Match:
    """How a table fits a schema, column by column.

    Attributes
    ----------
    missing : dict
        Columns that are not there, and the kind expected.
    unreadable : dict
        Columns that hold something else, and what.
    new_categories : dict
        Columns with categories never seen in training: (rows, some of the categories).
    extra : tuple of str
        Columns that the model does not read.
    """

    missing: dict[str, str] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    new_categories: dict[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)
    extra: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the table can be scored."""
        return not self.missing and not self.unreadable

    def ensure_ok(self, what: str = "The table does not match the model") -> None:
        """Raise ModelError unless the table can be read; `what` begins its message."""
        if not self.ok:
            raise ModelError(f"{what}: {'; '.join(self.problems)}.")

    @property
    def problems(self) -> list[str]:
        """A sentence for each column that keeps the table from being scored."""
        return [
            *(f"column {name!r} ({kind}) is missing" for name, kind in self.missing.items()),
            *(f"column {name!r}: {text}" for name, text in self.unreadable.items()),
        ]

    @property
    def notes(self) -> list[str]:
        """A sentence for each column with new categories."""
        lines = []
        for name, (rows, seen) in self.new_categories.items():
            shown = ", ".join(map(repr, seen[:_NAMED])) + (", ..." if len(seen) > _NAMED else "")
            lines.append(
                f"column {name!r}: {counted(rows, 'row holds', 'rows hold')} "
                f"{counted(len(seen), 'category', 'categories')} never seen in training ({shown}); "
                "they count as none of the known ones"
            )
        return lines

    def __str__(self) -> str:
        extra = [f"column {name!r} is not used" for name in self.extra]
        return "\n".join([*self.problems, *self.notes, *extra]) or "every column matches"


@dataclass(frozen=True)
class Schema:
    """The columns of a training table and their parts in the model.

    Attributes
    ----------
    columns : tuple of Column
        The columns that the model reads, in the order of the training table.
    target : str
        Column of the labels.
    id, time, weight, groups, propensity : str or None
        Columns with other roles; never read as features.
    left_out : dict
        Columns that are not read, and why.

    Examples
    --------
    >>> import pandas as pd
    >>> from toprank.models import Schema
    >>> frame = pd.DataFrame({"age": [31, 45, None], "city": ["Rome", "Oslo", "Rome"]})
    >>> schema = Schema.learn(frame)
    >>> [(column.name, column.kind) for column in schema.columns]
    [('age', 'number'), ('city', 'category')]
    >>> print(schema.match(pd.DataFrame({"city": ["Bern"]})))
    column 'age' (number) is missing
    column 'city': 1 row holds 1 category never seen in training ('Bern'); they count as none of \
the known ones
    """

    columns: tuple[Column, ...]
    target: str = ""
    id: str | None = None
    time: str | None = None
    weight: str | None = None
    groups: str | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    propensity: str | None = None

    @property
    def names(self) -> list[str]:
        """The names of the columns that the model reads."""
        return [column.name for column in self.columns]

    @property
    def roles(self) -> dict[str, str]:
        """The columns with other roles: the role, and the name of its column."""
        given = {
            "target": self.target or None,
            "id": self.id,
            "time": self.time,
            "weight": self.weight,
            "groups": self.groups,
            "propensity": self.propensity,
        }
        return {role: name for role, name in given.items() if name is not None}

    @classmethod
    def learn(
        cls,
        frame: Frame,
        drop: Sequence[str] = (),
        *,
        as_text: Sequence[str] = (),
        as_number: Sequence[str] = (),
        clip: Sequence[str] = (),
        tidy: Sequence[str] = (),
        pool: Sequence[str] = (),
        **roles: str | None,
    ) -> Schema:
        """Find out what the columns of a training table hold.

        Parameters
        ----------
        frame : data frame or Table
        drop : sequence of str
            Columns to leave out.
        as_text, as_number, clip, tidy, pool : sequence of str
            Columns that are read in another way than their values suggest, as in `fit_table`.
        **roles
            ``target=``, ``id=``, ``time=``, ``weight=``, ``groups=``, ``propensity=``: names of
            columns.
        """
        names = frames.names_of(frame)
        given = {role: name for role, name in roles.items() if name is not None}
        frames.require_columns(frame, given)
        wish = Wishes(as_text, as_number, clip, tidy, pool)
        for argument, wished in {"drop": drop, **vars(wish)}.items():
            for name in wished:
                frames.require_columns(frame, {argument: name})
                if argument != "drop" and name in given.values():
                    raise ModelError(f"{argument}={name!r}: that column is not a feature.")
        wanted = [n for n in names if n not in drop and n not in given.values()]
        summary = TableSummary.of(frame, wanted, wish)
        schema = cls.from_summary(summary, wish, FrameLook(frame), drop, **given)
        _refuse_huge_numbers(schema.columns, summary, frame)
        return schema

    @classmethod
    def from_summary(
        cls,
        summary: TableSummary,
        wishes: Wishes,
        look: SecondLook,
        drop: Sequence[str] = (),
        **roles: str,
    ) -> Schema:
        """Return the schema of a training table that was described, whole or block by block.

        Parameters
        ----------
        summary : TableSummary
        wishes : Wishes
            Columns that are read in another way than their values suggest.
        look : SecondLook
            The rows once more, where the summary does not tell enough.
        drop : sequence of str
            Columns that were left out.
        **roles
            As in `learn`.
        """
        columns, why = summary.learn_columns(wishes, look)
        left_out = {name: "as asked" for name in drop}
        return cls(columns, left_out=left_out | why, **roles)

    def with_roles(self, frame: object, target: str, roles: Mapping[str, str | None]) -> Schema:
        """Return the schema for another training table, with its roles where they are given."""
        names = frames.names_of(frame)
        frames.require_columns(frame, roles)
        kept: JsonObject = {
            role: name or (was if (was := getattr(self, role)) in names else None)
            for role, name in roles.items()
        }
        return replace(self, target=target, **kept)

    def read(self, frame: object) -> tuple[dict[str, np.ndarray], Match]:
        """Return the columns that can be read, and how the table matches."""
        there = frames.names_of(frame)
        known = set(there)
        missing = {c.name: c.kind for c in self.columns if c.name not in known}
        used = {*self.names, *self.roles.values()}
        extra = [name for name in there if name not in used]
        raw = frames.columns(frame, [c.name for c in self.columns if c.name in known])
        values, unreadable, new = {}, {}, {}
        for column in self.columns:
            if column.name not in known:
                continue
            try:
                values[column.name] = column.read(raw[column.name])
            except Unreadable as error:
                unreadable[column.name] = str(error)
                continue
            if column.kind == "category":
                unseen = _count_unseen(column, values[column.name])
                if unseen[0]:
                    new[column.name] = unseen
        return values, Match(missing, unreadable, new, tuple(extra))

    def match(self, frame: object) -> Match:
        """Return how a table matches, without keeping its values."""
        return self.read(frame)[1]

    def as_dict(self) -> JsonObject:
        """Return the schema as plain values, as the file of a model holds it."""
        plain = asdict(self)
        if self.propensity is None:  # earlier versions, which do not know it, read the file too
            del plain["propensity"]
        for column in plain["columns"]:
            if not column["pooled"]:
                del column["pooled"]
        return plain

    @classmethod
    def from_dict(cls, given: JsonObject) -> Schema:
        """Return the schema of such values; ModelError if they are not a schema."""
        try:
            columns = tuple(
                Column(**{**column, **_as_tuples(column, "categories", "clip")})
                for column in given["columns"]
            )
            schema = cls(**{**given, "columns": columns})
        except (TypeError, KeyError) as error:
            raise ModelError(f"The schema in the file cannot be used: {error}.") from error
        if any(column.kind not in KINDS for column in columns):
            raise ModelError(f"The schema in the file has kinds other than {KINDS}.")
        if not all(map(_is_readable, columns)):
            raise ModelError("The schema in the file cannot be used: how it reads is not known.")
        if not isinstance(schema.left_out, dict) or not schema._names_are_words():
            raise ModelError("The schema in the file cannot be used: a name in it is not text.")
        return schema

    def _names_are_words(self) -> bool:
        words = [self.target, *self.names, *self.left_out, *self.left_out.values()]
        words += [word for column in self.columns for word in column.categories]
        return are_words([*words, *self.roles.values()])


def _as_tuples(column: JsonObject, *names: str) -> dict[str, object]:
    return {name: tuple(column[name]) for name in names if column.get(name) is not None}


def _is_readable(column: Column) -> bool:
    """Whether what a file says of the reading of a column can be used."""
    clip = () if column.clip is None else column.clip
    ends = all(type(end) in (int, float) and abs(end) <= LARGEST_SIZE for end in clip)
    known = column.decimal in (None, ".", ",") and type(column.tidy) is bool
    known = known and type(column.pooled) is bool and type(column.missing) in (int, float)
    known = known and are_words([column.dtype, column.date_format or ""])
    known = known and (not column.pooled or column.categories[-1:] == (OTHERS,))
    return known and ends and (column.clip is None or (len(clip) == 2 and clip[0] <= clip[1]))


def _count_unseen(column: Column, words: AnyArray) -> tuple[int, tuple[str, ...]]:
    unseen = set(words.tolist()).difference(column.categories, [""])
    return (int(np.isin(words, list(unseen)).sum()) if unseen else 0), tuple(sorted(unseen))


@dataclass(frozen=True)
class Target:
    """The values of a target, as words: the one that belongs at the top, and the others.

    Attributes
    ----------
    column : str
        Its name in the table.
    positive : str
    negative : tuple of str
        One value; or several, where the positive one was named.
    tidy : bool
        Whether labels are read in small letters and without needless spaces.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.models import Target
    >>> target = Target.learn("bought", np.array(["no", "yes", "no"], dtype=object))
    >>> target.positive, target.of(np.array(["yes", "no"], dtype=object)).tolist()
    ('yes', [True, False])
    """

    column: str
    positive: str
    negative: tuple[str, ...]
    tidy: bool = False

    @classmethod
    def learn(
        cls, column: str, values: AnyArray, positive: object = None, *, tidy: bool = False
    ) -> Target:
        """Find out which value belongs at the top; ModelError where it must be named."""
        return cls.of_words(
            column, set(_target_words(column, values, tidy).tolist()), positive, tidy
        )

    @classmethod
    def of_words(cls, column: str, words: set[str], positive: object, tidy: bool) -> Target:
        """Find out which of the labels belongs at the top."""
        # here, because a card is read without it
        from toprank.pairs.labels import LabelError, positive_label

        if not tidy:
            _refuse_spellings(column, words)
        elif isinstance(positive, str):
            positive = tidy_word(positive)
        try:
            chosen = positive_label(words, positive, name=column)
        except LabelError as error:
            raise ModelError(str(error)) from error
        return cls(column, chosen, tuple(sorted(words - {chosen})), tidy)

    def with_column(self, column: str) -> Target:
        """Return the same values in a column of another name."""
        return replace(self, column=column)

    def of(self, values: np.ndarray) -> NDArray[np.bool_]:
        """Return which rows are positive; ModelError for values never seen."""
        words = _target_words(self.column, values, self.tidy)
        positive = np.asarray(words == self.positive, dtype=bool)
        if len(self.negative) == 1 and self.negative[0] != UNLABELLED:
            strange = ~positive & (words != self.negative[0]) & (words != UNLABELLED)
            if np.any(strange):
                raise ModelError(
                    f"{self.column!r} is {_quote_some(sorted(set(words[strange].tolist())))} in "
                    f"{counted(np.count_nonzero(strange), 'row')}; the model knows "
                    f"{self.positive!r} (positive) and {self.negative[0]!r}."
                )
        return positive


def _refuse_huge_numbers(columns: Sequence[Column], summary: TableSummary, frame: object) -> None:
    """ModelError if a column holds numbers that `match` would refuse in the same table."""
    for column in columns:
        if column.kind != "number" or not summary.columns[column.name].may_be_huge:
            continue
        try:
            column.read(frames.column(frame, column.name))
        except Unreadable as error:
            raise ModelError(
                f"The table cannot be used: column {column.name!r}: {error}."
            ) from error


def _refuse_spellings(column: str, words: set[str]) -> None:
    """ModelError if one label is spelled in several ways, which would be different labels."""
    alike: dict[str, list[str]] = {}
    for word in sorted(words):
        alike.setdefault(tidy_word(word), []).append(word)
    several = [spelled for spelled in alike.values() if len(spelled) > 1]
    if several:
        raise ModelError(
            f"{column!r} spells one label in several ways ({' / '.join(map(repr, several[0]))}); "
            f"to read them as one: tidy={column!r}."
        )


def _target_words(column: str, values: AnyArray, tidy: bool = False) -> NDArray[np.object_]:
    gaps = is_missing(values)
    if np.any(gaps):
        from toprank.pairs.labels import missing_labels

        raise ModelError(missing_labels(column, int(np.count_nonzero(gaps)), len(values)))
    try:
        return tidy_words(values) if tidy else as_words(values)
    except Unreadable as error:
        raise ModelError(f"{column!r} cannot be the target: {error}.") from error


def _quote_some(words: list[str], most: int = 6) -> str:
    shown = ", ".join(map(repr, words[:most]))
    return shown if len(words) <= most else f"{shown}, ..."
