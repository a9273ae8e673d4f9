"""Columns that their owner wants read in another way than their values suggest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from toprank._arrays import AnyArray, JsonObject
from toprank._numerics import FloatArray
from toprank.models.columns import (
    MOST_CATEGORIES,
    Finding,
    as_words,
    number_signs,
    signed_numbers,
    tidy_words,
)
from toprank.models.errors import ModelError
from toprank.models.kinds import ColumnSummary
from toprank.models.words import MOST_WORDS, Words, are_numbers, is_number_text

#: Shares of the training rows beyond which clipped numbers are not told apart.
CLIPPED = (0.005, 0.995)


@dataclass(frozen=True)
class Wishes:
    """The columns that are to be read in another way than their values suggest."""

    as_text: Sequence[str] = ()
    as_number: Sequence[str] = ()
    clip: Sequence[str] = ()
    tidy: Sequence[str] = ()
    pool: Sequence[str] = ()

    def describe(self, name: str, values: AnyArray, declared: bool) -> ColumnSummary:
        """What some values of a column are, read as they are to be read."""
        if name in self.tidy:
            values = tidy_words(values)
        if name in self.as_text or name in self.as_number or name in self.pool:
            words = ColumnSummary.of(as_words(values), declared=True)
            return replace(words, dtype=str(values.dtype))
        return ColumnSummary.of(values, declared=declared)

    def find(
        self, name: str, summary: ColumnSummary, *, dates: bool = True
    ) -> tuple[ColumnSummary, Finding, JsonObject]:
        """The description of a column, what it holds, and how such a column is read."""
        more: JsonObject = {"tidy": True} if name in self.tidy else {}
        if name in self.as_number and name not in self.as_text:
            summary, more["decimal"] = _read_signs(name, summary)
        finding = summary.find(dates=dates)
        if name in self.pool:
            finding, more = _pool_rare(name, summary, finding, more)
        if name in self.clip and finding.kind != "number":
            raise ModelError(f"clip={name!r}: the column holds no numbers ({finding.kind}).")
        return summary, finding, more


def _pool_rare(
    name: str, summary: ColumnSummary, finding: Finding, more: JsonObject
) -> tuple[Finding, JsonObject]:
    """A column of categories, however many words it has; with few of them nothing is pooled."""
    words = summary.words or Words({})
    if not words.whole:
        raise ModelError(
            f"pool={name!r}: the column has more than {MOST_WORDS:,} different words, of which "
            "the commonest are not known. Leave pool= out, and it is read as text; or drop it."
        )
    if finding.left_out is not None or len(words.counts) <= MOST_CATEGORIES:
        return finding, more
    return Finding("category"), {**more, "pooled": True}


def _read_signs(name: str, summary: ColumnSummary) -> tuple[ColumnSummary, str | None]:
    """The description of the numbers that words with signs stand for, and their decimal sign."""
    words = summary.words or Words({})
    seen = words.distinct
    decimal = number_signs(seen)
    if decimal is None and not are_numbers(seen):
        odd = [word for word in seen if number_signs([word]) is None and not is_number_text(word)]
        example = (odd or seen)[0]
        raise ModelError(
            f"as_number={name!r}: {example!r} is no number, with or without signs. If it stands "
            "for a missing value, leave it empty."
        )
    held = np.array(seen, dtype=object)
    numbers = held.astype(np.float64) if decimal is None else signed_numbers(held, decimal)
    none = int(sum(words.counts[word] for word in held[np.isnan(numbers)].tolist()))
    there = numbers[~np.isnan(numbers)]
    if not len(there):
        return ColumnSummary(summary.rows, summary.rows, "float64"), decimal
    ends = np.min(there), np.max(there)
    kind = frozenset({"number"})
    return ColumnSummary(
        summary.rows, summary.missing + none, "float64", False, kind, *ends
    ), decimal


def find_ends(numbers: FloatArray) -> tuple[float, float] | None:
    """Where the tails begin; where most numbers are the same, among the different ones.

    None where there is no number; NaN stands for a missing one.
    """
    there = numbers[~np.isnan(numbers)]
    if not len(there):
        return None
    low, high = np.quantile(there, CLIPPED)
    if low == high:
        low, high = np.quantile(np.unique(there), CLIPPED)
    return float(low), float(high)
