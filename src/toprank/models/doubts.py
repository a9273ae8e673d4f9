"""Columns that their owner may have meant otherwise: ids, names in figures, words, dates, tails."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._arrays import AnyArray
from toprank._extras import require
from toprank._numerics import FloatArray, LongTail, find_long_tail, scramble_bits
from toprank._text import counted, number_text
from toprank.models import frames
from toprank.models.columns import Column, Unreadable, as_words, number_signs, tidy_word
from toprank.models.concern import BETTER, NOTE, WRONG, Concern, Values
from toprank.models.date_forms import FIRST, first_part, swap_day_and_month
from toprank.models.words import is_number_text

#: From so many rows on a run of whole numbers is not chance.
_FEWEST_COUNTED = 50
#: Different words of a column that are looked at.
_LOOKED_AT = 2_000
#: Columns that one sentence names.
_NAMED = 5
#: Share of the rows that copies of other rows are, from which on they are told.
_FEWEST_COPIES = 0.01
#: Whole numbers beyond it cannot be told apart by floats.
_EXACT = 2.0**53
_NAMES_OF_NAMES = re.compile(
    r"(^|[\W_])(zip|zip_?code|postal|postal_?code|post_?code|plz|cap|fips|phone|telephone|tel|fax|"
    r"iban|sku|ean|isbn|icd|naics|area_?code|branch_?code|store_?nr|code_?postal)($|[\W_])",
    re.IGNORECASE,
)
_NAMES_OF_IDS = re.compile(r"(^|[\W_])(id|uuid|guid|key|nr|no|number|index)$", re.IGNORECASE)
_ENDS_IN_ID = re.compile(r"[a-z]I[Dd]$")


def find_ids(columns: tuple[Column, ...], values: Values) -> Iterator[Concern]:
    """Yield the numbers that count or name the rows."""
    for column in columns:
        if column.kind != "number":
            continue
        numbers, name = values[column.name], column.name
        if _counts_rows(numbers):
            yield Concern(
                WRONG,
                f"column {name!r} counts the rows and is used as a feature: if it names them, make "
                "it the id",
                (name,),
                "id",
            )
        elif len(numbers) and np.nanmax(np.abs(numbers)) > _EXACT and _are_whole(numbers):
            yield Concern(
                WRONG,
                f"column {name!r} holds whole numbers of so many figures that they are names, and "
                "is read as a number: make it the id, or leave it out",
                (name,),
                "id",
            )
        elif (_NAMES_OF_IDS.search(name) or _ENDS_IN_ID.search(name)) and _all_differ(numbers):
            yield Concern(
                WRONG,
                f"column {name!r} has another whole number in every row and is used as a feature: "
                "if it names them, make it the id",
                (name,),
                "id",
            )


def _counts_rows(numbers: FloatArray) -> bool:
    """Whether whole numbers run without a gap and without one of them twice."""
    if len(numbers) < _FEWEST_COUNTED or not np.all(np.isfinite(numbers)):
        return False
    if np.max(numbers) - np.min(numbers) != len(numbers) - 1:
        return False
    return bool(np.all(np.diff(np.sort(numbers)) == 1))


def _all_differ(numbers: FloatArray) -> bool:
    if len(numbers) < _FEWEST_COUNTED or not _are_whole(numbers):
        return False
    return len(np.unique(numbers)) == len(numbers)


def _are_whole(numbers: FloatArray) -> bool:
    there = numbers[np.isfinite(numbers)]
    return bool(len(there) and np.all(there == np.floor(there)))


def find_names_in_figures(columns: tuple[Column, ...], values: Values) -> Iterator[Concern]:
    """Yield zip codes and the like: numbers that are names, of which half makes no sense."""
    for column in columns:
        if column.kind != "number" or not _NAMES_OF_NAMES.search(column.name):
            continue
        numbers = values[column.name]
        if _are_whole(numbers) and np.nanmax(np.abs(numbers)) >= 100:
            yield Concern(
                WRONG,
                f"column {column.name!r} holds names that are written in figures, and is read as a "
                "number",
                (column.name,),
                "as_text",
            )


def find_words(
    columns: tuple[Column, ...], values: Values, left_out: dict[str, str], frame: object
) -> Iterator[Concern]:
    """Yield columns of words that are numbers in fact, or several spellings of one word."""
    read = {c.name: values[c.name] for c in columns if c.kind in ("category", "text")}
    like_ids = [name for name, why in left_out.items() if "identifier" in why]
    for name in (*read, *like_ids):
        words = read[name] if name in read else as_words(frames.column(frame, name))
        counts = Counter(words.tolist())
        counts.pop("", None)
        found = _numbers_in_words(name, counts)
        if found is None and name in read:
            found = _spellings(name, counts)
        if found is not None:
            yield found


def _numbers_in_words(name: str, counts: Counter[str]) -> Concern | None:
    seen = [word for word, _ in counts.most_common(_LOOKED_AT)]
    if not seen:
        return None
    if number_signs(seen) is not None:
        return Concern(
            BETTER,
            f"column {name!r} holds words such as {seen[0]!r}: to have them read as numbers, write "
            "them without signs, or ask for it",
            (name,),
            "as_number",
        )
    strange = [word for word in seen if not is_number_text(word)]
    if len(seen) >= 10 and 0 < len(strange) <= max(1, len(seen) // 20):
        rows = sum(counts[word] for word in strange)
        return Concern(
            WRONG,
            f"column {name!r} holds numbers, but {strange[0]!r} in some rows "
            f"({counted(rows, 'row is', 'rows are')} no numbers), and is read as words; if "
            "that stands for a missing value, say so",
            (name,),
            "missing",
            (strange[0],),
        )
    return None


def _spellings(name: str, counts: Counter[str]) -> Concern | None:
    """Words that differ in small letters, capitals and spaces only."""
    if len(counts) > _LOOKED_AT:
        return None
    alike: dict[str, list[str]] = {}
    for word in counts:
        alike.setdefault(tidy_word(word), []).append(word)
    several = [words for words in alike.values() if len(words) > 1]
    if not several:
        return None
    shown = " / ".join(map(repr, sorted(several[0])[:3]))
    others = len(several) - 1
    more = f", and {others} more {'word' if others == 1 else 'words'}" if others else ""
    return Concern(
        BETTER,
        f"column {name!r} has several spellings of one word ({shown}{more}), each read as a word "
        "of its own",
        (name,),
        "tidy",
    )


def find_ambiguous_dates(columns: Iterable[Column], frame: object) -> Iterator[Concern]:
    """Yield columns of dates whose every word is a date with day and month exchanged, another one.

    How they are read was then a custom, not found in the words.
    """
    for column in columns:
        if column.kind != "date" or column.date_format is None:
            continue
        first = first_part(column.date_format)
        if first is None:
            continue
        words = sorted({*as_words(frames.column(frame, column.name)).tolist()} - {""})
        held = np.array(words, dtype=object)
        form = swap_day_and_month(column.date_format)
        try:
            mine, others = column.read(held), replace(column, date_format=form).read(held)
        except Unreadable:  # some word tells which way it is
            continue
        places = np.flatnonzero((mine != others) & ~np.isnat(mine))
        if len(places):
            yield _in_two_ways(column.name, first, *(a[places[0]] for a in (held, mine, others)))


def _in_two_ways(
    name: str, first: str, word: str, mine: np.datetime64, other: np.datetime64
) -> Concern:
    second = FIRST[swap_day_and_month(first)]
    mine, other = mine.astype("datetime64[D]"), other.astype("datetime64[D]")
    return Concern(
        WRONG,
        f"column {name!r} holds dates such as {word!r} that can be read in two ways: they are read "
        f"{FIRST[first]} ({mine}), and {second} ({other}) fits every row too. If {second} is "
        "meant, write them as 2026-01-25, or convert the column first, here and in later tables",
        (name,),
    )


def long_tails(columns: tuple[Column, ...], values: Values) -> dict[str, LongTail]:
    """Return the columns of numbers with long tails that are not clipped yet."""
    numbers = [c.name for c in columns if c.kind == "number" and c.clip is None]
    found = {name: find_long_tail(values[name]) for name in numbers}
    return {name: tail for name, tail in found.items() if tail is not None}


def describe_long_tails(found: dict[str, LongTail], keep: bool) -> Iterator[Concern]:
    """Yield what to say of long tails; `keep` where they count in linear models as they are."""
    if not found:
        return
    name = max(found, key=lambda one: found[one].away)
    tail = found[name]
    said = (
        f"{_columns(list(found))} a long tail: {name!r} = {number_text(tail.farthest)} lies "
        f"{tail.away:.0f} standard deviations from the mean, and would head the list of a linear "
        "model by itself"
    )
    if keep:
        yield Concern(BETTER, said, tuple(found), "clip", tuple(found))
        return
    yield Concern(
        BETTER,
        f"{said}; so linear models, and the linear parts of an ensemble, count what is below "
        f"{number_text(tail.low)} or above {number_text(tail.high)} as no more than that, and "
        "likewise in every such column. To let tails count in full",
        tuple(found),
        "keep_tails",
    )


def _columns(names: list[str]) -> str:
    """The subject of a sentence, with its verb."""
    shown = ", ".join(map(repr, names[:_NAMED])) + (", ..." if len(names) > _NAMED else "")
    return f"column {shown} has" if len(names) == 1 else f"{len(names)} columns ({shown}) have"


def find_copies_of_columns(columns: tuple[Column, ...], values: Values) -> Iterator[Concern]:
    """Yield columns that hold the same as an earlier one."""
    seen: dict[tuple[str, int], str] = {}
    copies: dict[str, str] = {}
    for column in columns:
        key = (column.kind, int(np.sum(_hashes(values[column.name]), dtype=np.uint64)))
        first = seen.setdefault(key, column.name)
        if first != column.name and _are_equal_columns(values[first], values[column.name]):
            copies[column.name] = first
    if copies:
        pairs = [f"{name!r} = {first!r}" for name, first in copies.items()]
        shown = ", ".join(pairs[:_NAMED]) + (", ..." if len(pairs) > _NAMED else "")
        yield Concern(
            NOTE,
            f"{'1 column holds' if len(pairs) == 1 else f'{len(pairs)} columns hold'} the same as "
            f"another ({shown}); they share what one of them would be given",
            tuple(copies),
            "drop",
            tuple(copies),
        )


def _hashes(values: AnyArray) -> NDArray[np.uint64]:
    if values.dtype == np.float64:
        # one zero for both signs, and one NaN
        one_of_each = np.where(np.isnan(values), np.nan, np.add(values, 0.0))
        return scramble_bits(one_of_each.view(np.uint64))
    hashed = require("pandas", "models").util.hash_array(values)
    return np.asarray(hashed, dtype=np.uint64)


def _are_equal_columns(a: AnyArray, b: AnyArray) -> bool:
    same = a == b
    if a.dtype.kind == "f":
        same |= np.isnan(a) & np.isnan(b)
    elif a.dtype.kind == "M":
        same |= np.isnat(a) & np.isnat(b)
    return bool(np.all(same))


def find_copies_of_rows(
    columns: tuple[Column, ...],
    values: Values,
    y: NDArray[np.bool_],
    groups: ArrayLike | None,
) -> Iterator[Concern]:
    """Yield a note where many rows are copies: such rows stand on both sides of a split."""
    place = None if groups is not None else copied_rows([values[c.name] for c in columns])
    if place is None:
        return
    counts = np.bincount(place)
    copies = int(len(y) - len(counts))
    positive = np.bincount(place, weights=y)
    torn = int(np.count_nonzero((positive > 0) & (positive < counts)))
    labels = f", {torn} of them with both labels" if torn else ""
    yield Concern(
        NOTE,
        f"{copies} of {len(y)} rows are copies of others{labels}: copies on both sides of a split "
        "make a model look better than it is; leave them out, or name what they share with groups",
    )


def copied_rows(columns: Sequence[AnyArray]) -> NDArray[np.intp] | None:
    """Return a number for each row that its copies share; None where few rows are copies.

    Rows of a few codes agree by chance, and are not taken for copies.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.models.doubts import copied_rows
    >>> shared = copied_rows([np.repeat(np.arange(30.0), 2)])
    >>> bool(shared[0] == shared[1]), len(np.unique(shared))
    (True, 30)
    """
    if not any(_is_fine(values) for values in columns):
        return None
    total = np.zeros(len(columns[0]), dtype=np.uint64)
    for values in columns:
        total = total * np.uint64(1_000_003) + _hashes(values)
    found, place = np.unique(total, return_inverse=True)
    copies = len(total) - len(found)
    return None if copies < _FEWEST_COPIES * len(total) else place.reshape(-1)


def _is_fine(values: AnyArray) -> bool:
    """Whether equal values in two rows are no chance."""
    sample = values[:: -(-len(values) // 5000)]
    codes = require("pandas", "models").factorize(sample)[0]  # -1 for what is missing
    return int(np.max(codes, initial=-1)) + 1 > 0.2 * len(sample) > 10
