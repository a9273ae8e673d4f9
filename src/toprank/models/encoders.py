"""Numbers from dates and from text: encoders whose state is a few arrays.

A model's file holds the arrays and nothing that could run, and scoring a table loads no library for
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from toprank._arrays import AnyArray, Matrix
from toprank._extras import require
from toprank._numerics import FloatArray

#: Numbers that a column of text becomes, at most.
_TEXT_COMPONENTS = 30
#: Lengths of the runs of letters that texts are compared by.
_SHORTEST, _LONGEST = 3, 4
#: Letters of a text whose runs are remembered.
_SHORT = 100


class DateEncoder:
    """Dates as year, month, day, hour, seconds since 1970 and weekday (Monday is 1).

    Parameters
    ----------
    column : str
        Name of the column, which the names of the numbers begin with.
    with_times : bool
        Whether the dates have times of day; without them there is no hour.

    Attributes
    ----------
    names : list of str
        What each number is called.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.models.encoders import DateEncoder
    >>> encoder = DateEncoder("since", with_times=False)
    >>> encoder.names
    ['since_year', 'since_month', 'since_day', 'since_total_seconds', 'since_weekday']
    >>> encoder.transform(np.array(["2024-02-29", "NaT"], dtype="datetime64[us]")).tolist()[0][:3]
    [2024.0, 2.0, 29.0]
    """

    def __init__(self, column: str, with_times: bool):
        self.column = column
        self.with_times = with_times

    @property
    def names(self) -> list[str]:
        """What each number is called."""
        hour = ["hour"] if self.with_times else []
        parts = ["year", "month", "day", *hour, "total_seconds", "weekday"]
        return [f"{self.column}_{part}" for part in parts]

    def transform(self, values: AnyArray) -> FloatArray:
        """Return the numbers of some dates, NaN for a missing one: an array (n, len(names))."""
        moments = values.astype("datetime64[us]")
        days, months = moments.astype("datetime64[D]"), moments.astype("datetime64[M]")
        parts = [
            moments.astype("datetime64[Y]").astype(np.int64) + 1970,
            months.astype(np.int64) % 12 + 1,
            (days - months.astype("datetime64[D]")).astype(np.int64) + 1,
        ]
        if self.with_times:
            parts.append((moments - days).astype("timedelta64[h]").astype(np.int64))
        parts.append(moments.astype(np.int64) / 1e6)
        parts.append((days.astype(np.int64) + 3) % 7 + 1)
        # in the precision that trees split by, and that older models were fitted with
        numbers = np.column_stack(parts).astype(np.float32)
        numbers[np.isnat(moments)] = np.nan
        return numbers.astype(np.float64)


class TextEncoder:
    """Texts as directions of their runs of three and four letters (TF-IDF, then an SVD).

    Parameters
    ----------
    column : str
        Name of the column, which the names of the numbers begin with.

    Attributes
    ----------
    runs : array of str
        The runs of letters that training had, in order.
    rarity : array
        Weight of each: its inverse document frequency.
    axes : array of shape (runs, components)
        The directions; the first runs themselves where there are too few texts for an SVD.
    scale : float
        What the numbers are divided by, so that together they vary by one.
    names : list of str
        What each number is called.

    Examples
    --------
    >>> from toprank.models.encoders import TextEncoder
    >>> encoder = TextEncoder("note").fit(["moved house", "asked twice"])
    >>> encoder.transform(["moved", "zzz"]).shape
    (2, 30)
    >>> float(abs(encoder.transform(["zzz"])).max())
    0.0
    """

    def __init__(self, column: str):
        self.column = column

    def fit(self, texts: Iterable[str], random_state: int = 0) -> TextEncoder:
        """Learn the directions from different texts."""
        counts = [_count_runs(text) for text in texts]
        frequency: Counter[str] = Counter()
        for one in counts:
            frequency.update(one.keys())
        runs = sorted(frequency)
        self.runs = np.array(runs, dtype=np.str_)
        times = np.array([frequency[run] for run in runs], dtype=np.float64)
        self.rarity = np.log((1 + len(counts)) / (1 + times)) + 1
        weighed = self._weigh(counts)
        width = min(_TEXT_COMPONENTS, len(runs))
        if min(weighed.shape) > _TEXT_COMPONENTS:
            from sklearn.decomposition import TruncatedSVD  # scoring needs none of it

            search = TruncatedSVD(_TEXT_COMPONENTS, random_state=random_state).fit(weighed)
            self.axes = search.components_.T
        else:
            self.axes = np.eye(len(runs), width, dtype=np.float32)
        spread = np.sqrt(np.sum(np.var(weighed @ self.axes, axis=0)))
        self.scale = float(spread) if spread >= 10 * np.finfo(np.float32).eps else 1.0
        return self

    @property
    def names(self) -> list[str]:
        """What each number is called."""
        width = self.axes.shape[1]
        figures = len(str(width - 1))
        return [f"{self.column}_{str(j).zfill(figures)}" for j in range(width)]

    def transform(self, texts: AnyArray | list[str]) -> FloatArray:
        """Return the numbers of some texts: an array of shape (n, len(names))."""
        # a column repeats its texts: each is taken apart once
        texts = np.asarray(texts, dtype=object)
        codes, distinct = require("pandas", "models").factorize(texts)
        found = self._weigh([_count_runs(text) for text in distinct.tolist()]) @ self.axes
        return np.asarray(found / np.float32(self.scale), dtype=np.float64)[codes]

    def _weigh(self, counts: list[Counter[str]]) -> Matrix:
        """The weight of each run of letters in each text, of length one: a sparse matrix."""
        place = {run: j for j, run in enumerate(self.runs.tolist())}
        ends, columns, times = [0], [], []
        for one in counts:
            known = sorted((place[run], n) for run, n in one.items() if run in place)
            columns += [j for j, _ in known]
            times += [n for _, n in known]
            ends.append(len(columns))
        at = np.array(columns, dtype=np.int32)
        weights = np.array(times, dtype=np.float64) * self.rarity[at]
        rows = np.repeat(np.arange(len(counts)), np.diff(ends))
        lengths = np.sqrt(np.bincount(rows, weights**2, minlength=len(counts)))
        weights /= lengths[rows]
        shape = (len(counts), len(self.runs))
        return csr_array((weights.astype(np.float32), at, np.array(ends)), shape=shape)


def _count_runs(text: str) -> Counter[str]:
    """How often each run of letters occurs in a text."""
    return _remember_runs(text) if len(text) <= _SHORT else Counter(_runs(text))


@lru_cache(maxsize=10_000)
def _remember_runs(text: str) -> Counter[str]:
    # folds and kinds of models take the same texts apart again and again
    return Counter(_runs(text))


def _runs(text: str) -> Iterator[str]:
    """The runs of letters of each word with a blank around it; a short word counts once."""
    # an array of words drops zeros at their ends
    for word in text.lower().replace("\0", " ").split():
        padded = f" {word} "
        for length in range(_SHORTEST, _LONGEST + 1):
            last = max(0, len(padded) - length)
            yield from (padded[start : start + length] for start in range(last + 1))
            if not last:
                break


def from_older_encoder(state: dict[str, Any], column: str) -> DateEncoder | TextEncoder:
    """The encoder that does what one of a file of an older format did; of its attributes."""
    if "extracted_features_" in state:
        return DateEncoder(column, "hour" in state["extracted_features_"])
    words = state["vectorizer_"]
    found = TextEncoder(column)
    found.runs = np.array(sorted(words.vocabulary_, key=words.vocabulary_.__getitem__), np.str_)
    found.rarity = np.asarray(words.idf_, dtype=np.float64)
    width = int(state["n_components_"])
    if "tsvd_" in state:
        found.axes = np.asarray(state["tsvd_"].components_.T)
    else:
        found.axes = np.eye(len(found.runs), width, dtype=np.float32)
    found.scale = float(state["scaling_factor_"])
    return found
