"""The rows of a list within limits, from a table in a file."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.cli.io.source import Source
from toprank.cli.limits import ListLimits, number_in, parse_counts
from toprank.cli.terminal import Failure
from toprank.models import ModelWarning, TableModel, frames
from toprank.models.columns import Unreadable, as_numbers, as_words, is_missing
from toprank.select import LimitedList, cut, keep_rows
from toprank.select.stay import FEWEST_MOVES

if TYPE_CHECKING:
    import pyarrow as pa

    from toprank._arrays import AnyArray, BoolArray, IntArray


#: Words for yes and for no in a column of rows that must be in, or out.
_YES = ("1", "true", "yes", "y", "t", "x", "+")
_NO = ("0", "false", "no", "n", "f", "-", "")


class RowsBefore(TypedDict, total=False):
    """The rows of an earlier list, as `keep_rows` takes them."""

    previous: list[int]
    old_scores: list[float]
    noise: float


class HeldTop(ABC):
    """All rows of a table, and the list that is chosen of them; attributes as `RunningTop` has."""

    def __init__(self) -> None:
        self.n = self.tied_out = 0
        self.said = ""
        self.extra_columns: dict[str, AnyArray] = {}
        self._parts: list[tuple[FloatArray, pa.Table, FloatArray | None]] = []

    def add(self, scores: FloatArray, rows: pa.Table, chance: FloatArray | None = None) -> None:
        """Offer the next rows, with their scores and probabilities."""
        self._parts.append((scores, rows, chance))
        self.n += len(scores)

    def settle(self) -> None:
        """Choose the rows of the list."""
        scores = np.concatenate([part[0] for part in self._parts] or [np.empty(0)])
        chances = [part[2] for part in self._parts if part[2] is not None]
        tables = [part[1] for part in self._parts]
        merged = require("pyarrow", "frames").concat_tables(tables, promote_options="permissive")
        chance = np.concatenate(chances) if chances else None
        self.places = self._choose(scores, chance, merged)
        self.scores = scores[self.places]
        self.ranks = np.arange(1, len(self.places) + 1)
        self.tied = np.zeros(len(self.places), dtype=bool)
        self.rows = merged.take(self.places)

    @abstractmethod
    def _choose(self, scores: FloatArray, chance: FloatArray | None, rows: pa.Table) -> IntArray:
        """Return the places of the rows on the list, in its order."""


class CutTop(HeldTop):
    """The rows of a list within limits, each of which may reach down to any row."""

    def __init__(
        self, limits: ListLimits, k: int | float, source: Source, stay: StayRows | None = None
    ) -> None:
        super().__init__()
        self.limits, self.k, self.source, self.stay = limits, k, source, stay

    def _choose(self, scores: FloatArray, chance: FloatArray | None, rows: pa.Table) -> IntArray:
        before: RowsBefore = {} if self.stay is None else self.stay.find(rows)
        found = _cut(self.limits, self.source, scores, self.k, chance, before)
        if self.limits.explore:
            self.extra_columns = {"drawn": found.explored, "propensity": found.propensity}
        if self.stay is not None:
            self.extra_columns["stays"] = np.isin(found.rows, found.kept)
        self.said = str(found)
        return found.rows


class StayTop(HeldTop):
    """The first rows of a list in which those of an earlier list stay, within noise."""

    def __init__(self, k: int, stay: StayRows) -> None:
        super().__init__()
        self.k, self.stay = k, stay

    def _choose(self, scores: FloatArray, chance: FloatArray | None, rows: pa.Table) -> IntArray:
        found = keep_rows(scores, self.k, **self.stay.find(rows))
        self.extra_columns = {"stays": np.isin(found.rows, found.kept)}
        self.said = str(found)
        return found.rows


@dataclass(frozen=True)
class StayRows:
    """The rows of an earlier list, to be found in a table by the column of their names."""

    names: str
    earlier: EarlierList
    noise: float | None = None

    def find(self, rows: pa.Table) -> RowsBefore:
        """Their places, and what says how much scores move, as `keep_rows` takes them."""
        words = map(str, rows.column(self.names).to_pylist())
        place = {name: row for row, name in enumerate(words)}
        there = [(place[n], s) for n, s in self.earlier.scores.items() if n in place]
        if not there:
            raise Failure("--stay: no row of that list is in the table; are the ids the same?")
        rows_before, scores_before = (list(column) for column in zip(*there, strict=True))
        if self.noise is None and len(there) < FEWEST_MOVES:
            raise Failure(
                f"--stay: only {len(there)} of its rows are in the table, too few to see how much "
                "scores move; give --noise."
            )
        if self.noise is None:
            return {"previous": rows_before, "old_scores": scores_before}
        return {"previous": rows_before, "noise": self.noise}


@dataclass(frozen=True)
class EarlierList:
    """The rows of an earlier list, and what they scored then."""

    scores: dict[str, float]

    @classmethod
    def read(cls, source: Source, name: str) -> EarlierList:
        """Read a list that `toprank rank` wrote."""
        source.check_columns({name: "--stay, the id", "score": "--stay"})
        names: list[object] = []
        for chunk in source.chunks([name], {}, [name]):
            names += chunk.carried.column(0).to_pylist()
        try:
            scores = as_numbers(frames.column(source.read(["score"]), "score"))
        except Unreadable as error:
            raise Failure(f"--stay: the column 'score': {error}.") from error
        if np.any(np.isnan(scores)):
            raise Failure("--stay: some rows of that list have no score.")
        return cls(dict(zip(map(str, names), scores.tolist(), strict=True)))


def row_chances(model: TableModel, rows: pa.Table) -> FloatArray:
    """The model's probabilities of some rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # shown when the rows were scored
        return np.clip(np.asarray(model.predict_proba(rows), dtype=np.float64)[:, 1], 0.0, 1.0)


def _words(values: AnyArray) -> AnyArray:
    """Entities as words; None where one is missing."""
    words = as_words(values).astype(object)
    words[is_missing(values)] = None
    return words


def _group_words(values: AnyArray) -> AnyArray:
    """Groups as words; rows without one are a group that is called (missing)."""
    words = _words(values)
    return np.array(["(missing)" if word is None else word for word in words], dtype=object)


def _amounts(
    given: str | None, values: Callable[[str], AnyArray], option: str
) -> FloatArray | float | None:
    number = number_in(given)
    if given is None or number is not None:
        return number
    try:
        amounts = as_numbers(values(given))
    except Unreadable as error:
        raise Failure(f"{option} {given}: {error}.") from error
    if np.any(np.isnan(amounts)):
        missing = int(np.count_nonzero(np.isnan(amounts)))
        raise Failure(f"{option} {given}: {missing} row(s) have no number there.")
    return amounts


def _yes_rows(
    column: str | None, values: Callable[[str], AnyArray], option: str
) -> BoolArray | None:
    if column is None:
        return None
    words = [
        "" if word is None else str(word).strip().lower().removesuffix(".0")
        for word in _words(values(column))
    ]
    strange = [word for word in words if word not in _YES and word not in _NO]
    if strange:
        raise Failure(f"{option} {column}: '{strange[0]}' is neither yes nor no.")
    return np.array([word in _YES for word in words])


def _cut(
    limits: ListLimits,
    source: Source,
    scores: FloatArray,
    k: int | float | None,
    chance: FloatArray | None,
    before: RowsBefore,
) -> LimitedList:
    """Cut the list; Failure where columns cannot be read or limits clash."""
    wanted = list(limits.columns())
    table = source.read(wanted) if wanted else None

    def values(name: str) -> AnyArray:
        return frames.column(table, name)

    found = cut(
        scores,
        k,
        probability=chance,
        entities=None if limits.per_entity is None else _words(values(limits.per_entity)),
        per_entity=limits.most_per_entity or 1,
        groups=None if limits.limit_by is None else _group_words(values(limits.limit_by)),
        at_most=parse_counts(limits.at_most, "--at-most"),
        at_least=parse_counts(limits.at_least, "--at-least"),
        cost=_amounts(limits.cost, values, "--cost"),
        budget=limits.budget,
        value=_amounts(limits.value, values, "--value"),
        include=_yes_rows(limits.include, values, "--include"),
        exclude=_yes_rows(limits.exclude, values, "--exclude"),
        explore=limits.explore,
        random_state=limits.seed,
        **before,
    )
    return replace(found, chances="the model's probabilities") if found.chances else found
