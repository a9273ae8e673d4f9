"""The different words of a column, counted: all of them, or a fair sample of many.

A sketch of some rows merges with that of other rows, in any order, to the sketch of all of them, so
that a table in memory and one that is read in blocks are described alike. Of many words those with
the smallest checksums are kept: which ones depends on the words alone, and their counts are whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._extras import require

#: Different words that are kept at most.
MOST_WORDS = 10_000


@dataclass(frozen=True)
class Words:
    """Different words and how often each occurs.

    Attributes
    ----------
    counts : dict
        The words kept, and in how many rows each stands.
    whole : bool
        Whether all words are kept.
    numbers : bool
        Whether every word, kept or not, is a number as programs write it.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.models.words import Words
    >>> first = Words.of(np.array(["Rome", "Oslo"], dtype=object))
    >>> both = first.merge(Words.of(np.array(["Oslo"], dtype=object)))
    >>> both.distinct, both.counts["Oslo"], both.numbers
    (['Oslo', 'Rome'], 2, False)
    """

    counts: dict[str, int]
    whole: bool = True
    numbers: bool = True

    @classmethod
    def of(cls, words: np.ndarray) -> Words:
        """Count the words of a column that are not empty."""
        codes, distinct = require("pandas", "models").factorize(words)
        times = np.bincount(codes, minlength=len(distinct)).tolist()
        counts = dict(zip(distinct.tolist(), times, strict=True))
        counts.pop("", None)
        return cls(counts, True, are_numbers(counts))._trim()

    def merge(self, other: Words) -> Words:
        """Join the words of other rows."""
        counts = dict(self.counts)
        for word, times in other.counts.items():
            counts[word] = counts.get(word, 0) + times
        whole, numbers = self.whole and other.whole, self.numbers and other.numbers
        return Words(counts, whole, numbers)._trim()

    def _trim(self) -> Words:
        """Keep the words of the smallest checksums, where there are too many."""
        if len(self.counts) <= MOST_WORDS:
            return self
        words = np.array(list(self.counts), dtype=object)
        sums = _checksums(words)
        last = np.partition(sums, MOST_WORDS)[MOST_WORDS]
        near = sorted((int(sums[j]), words[j]) for j in np.flatnonzero(sums <= last))
        kept = {word: self.counts[word] for _, word in near[:MOST_WORDS]}
        return Words(kept, False, self.numbers)

    @property
    def distinct(self) -> list[str]:
        """The words kept, in order."""
        return sorted(self.counts)


def are_numbers(words: Iterable[object]) -> bool:
    """Whether all words are numbers as programs write them."""
    return all(map(is_number_text, words))


def is_number_text(word: Any) -> bool:
    """Whether a word, or any other value, is a number as programs write it."""
    try:
        float(word)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _checksums(words: NDArray[np.object_]) -> NDArray[np.uint64]:
    hashed = require("pandas", "models").util.hash_array
    try:
        return np.asarray(hashed(words), dtype=np.uint64)
    except UnicodeEncodeError:  # half of a pair of surrogates; other words keep their checksums
        plain = [word.encode("utf-8", "replace").decode("utf-8") for word in words.tolist()]
        return np.asarray(hashed(np.array(plain, dtype=object)), dtype=np.uint64)
