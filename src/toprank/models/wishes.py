"""Columns that their owner wants read in another way than their values suggest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.models.columns import (
    Finding,
    as_numbers,
    as_words,
    find_kind,
    is_number_text,
    number_signs,
    signed_numbers,
    tidy_words,
)
from toprank.models.errors import ModelError

#: Shares of the training rows beyond which clipped numbers are not told apart.
_CLIPPED = (0.005, 0.995)


@dataclass(frozen=True)
class Wishes:
    """The columns that are to be read in another way than their values suggest."""

    as_text: Sequence[str]
    as_number: Sequence[str]
    clip: Sequence[str]
    tidy: Sequence[str]

    def read(
        self, name: str, values: NDArray[Any], declared: bool
    ) -> tuple[NDArray[Any], Finding, dict[str, Any]]:
        """The values, what they hold, and how a column of them is read."""
        more: dict[str, Any] = {}
        if name in self.tidy:
            values, more["tidy"] = tidy_words(values), True
        if name in self.as_text:
            finding = find_kind(as_words(values), declared_category=True)
        elif name in self.as_number:
            values, more["decimal"] = _read_signs(name, values)
            finding = find_kind(values)
        else:
            finding = find_kind(values, declared_category=declared)
        if name in self.clip:
            if finding.kind != "number":
                raise ModelError(f"clip={name!r}: the column holds no numbers ({finding.kind}).")
            numbers = as_numbers(values)
            if not np.all(np.isnan(numbers)):
                more["clip"] = _ends(numbers[~np.isnan(numbers)])
        return values, finding, more


def _read_signs(name: str, values: NDArray[Any]) -> tuple[NDArray[Any], str | None]:
    """The numbers that words with signs stand for, and their decimal sign."""
    words = as_words(values)
    seen = sorted(set(words.tolist()) - {""})
    decimal = number_signs(seen)
    if decimal is None and not all(map(is_number_text, seen)):
        odd = [word for word in seen if number_signs([word]) is None and not is_number_text(word)]
        example = (odd or seen)[0]
        raise ModelError(
            f"as_number={name!r}: {example!r} is no number, with or without signs. If it stands "
            "for a missing value, leave it empty."
        )
    if decimal is None:
        return as_numbers(values), None
    return signed_numbers(words, decimal), decimal


def _ends(numbers: FloatArray) -> tuple[float, float]:
    """Where the tails begin; where most numbers are the same, among the different ones."""
    low, high = np.quantile(numbers, _CLIPPED)
    if low == high:
        low, high = np.quantile(np.unique(numbers), _CLIPPED)
    return float(low), float(high)
