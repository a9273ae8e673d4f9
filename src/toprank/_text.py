"""Values as text that is safe to show, and results as JSON has them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, SupportsInt

#: Letters of a name or value that are shown; the rest becomes an ellipsis.
_LONGEST = 120


def visible(value: object) -> str:
    r"""Return a value as text with control characters escaped.

    Line breaks, marks that turn the direction of writing and lone surrogates are escaped too: the
    text can neither control a terminal nor change how its surroundings are shown.

    Examples
    --------
    >>> from toprank._text import visible
    >>> print(visible("red \x1b[31m name"))
    red \x1b[31m name
    """
    text = str(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def format_p(value: float) -> str:
    """Return p, or another number, as it is written: without needless zeros."""
    return "∞" if math.isinf(value) else f"{value:g}"


def clean_text(value: object, longest: int = _LONGEST) -> str:
    r"""Return a word without control characters or lone surrogates, and not too long.

    A control character becomes its visible sign, U+2400 and following. Markup is left as it is:
    it is escaped where the page is written.

    Examples
    --------
    >>> from toprank._text import clean_text
    >>> clean_text("a\x00b"), clean_text("x" * 300, longest=5)
    ('a␀b', 'xxxx…')
    """
    text = str(value).encode("utf-8", "replace").decode("utf-8")
    text = "".join(_visible_sign(letter) for letter in text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _visible_sign(letter: str) -> str:
    code = ord(letter)
    if code < 0x20:
        return chr(0x2400 + code)
    # the delete character, the C1 controls, and signs that turn the direction of all that follows
    hidden = 0x7F <= code <= 0x9F or 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069
    return "␡" if hidden or code in (0x2028, 0x2029, 0xFEFF) else letter


def count(value: float) -> str:
    """Return a whole number with thin spaces between the thousands."""
    return f"{round(value):,}".replace(",", "\u202f")


def about_share(share: float) -> str:
    """Return the beginning of a sentence about a share of rows: "All", or "About 12%"."""
    return "All" if share == 1 else f"About {100 * share:.0f}%"


def counted(n: SupportsInt, one: str, many: str | None = None) -> str:
    """Return a number with its noun, and the verb where the words hold one.

    Examples
    --------
    >>> from toprank._text import counted
    >>> counted(1, "row"), counted(3, "row"), counted(1, "row holds", "rows hold")
    ('1 row', '3 rows', '1 row holds')
    """
    number = int(n)
    return f"{number} {one if number == 1 else many or one + 's'}"


def format_figure(value: float, unit: str) -> str:
    """Return a figure in its unit: "share" (in percent), "times" or "area"."""
    if unit == "share":
        return percent(value)
    return f"{value:.3g}×" if unit == "times" else f"{value:.3f}"


def number_text(value: float, digits: int = 6) -> str:
    """Return a number of a table for people to read: 10000000, not 1e+07.

    Examples
    --------
    >>> from toprank._text import number_text
    >>> number_text(1e7), number_text(41.25), number_text(1 / 3, 4), number_text(1e-9)
    ('10000000', '41.25', '0.3333', '1e-09')
    """
    return f"{value:.0f}" if 10**digits <= abs(value) < 1e15 else f"{value:.{digits}g}"


def percent(share: float) -> str:
    """Return a share in percent: a decimal only below ten and above ninety-nine.

    Examples
    --------
    >>> from toprank._text import percent
    >>> percent(0.2345), percent(0.05), percent(0.0123), percent(0.99999)
    ('23%', '5%', '1.2%', '>99.9%')
    """
    value = 100 * share
    if 99.95 <= value < 100:
        return ">99.9%"
    if 0.05 <= value < 9.95 or 99 < value < 100:
        return f"{value:.1f}%".replace(".0%", "%")
    return f"{value:.0f}%" if value >= 9.95 or value == 0 else f"{value:.2g}%"


def plain(
    value: object, *, digits: int | None = None, infinities: bool = True, smallest: float = 0.0
) -> Any:
    """Return nested dictionaries and lists of numbers, texts, truth values and None.

    NaN becomes None; what JSON has no form for becomes its text.

    Parameters
    ----------
    value : object
        Mappings, sequences, arrays and scalars, nested in any way.
    digits : int, optional
        Significant digits that floats are rounded to.
    infinities : bool, default=True
        Whether the infinities become the texts "inf" and "-inf"; if not, they become None.
    smallest : float, default=0.0
        Floats nearer to zero become zero.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"p": np.inf, "shares": np.array([1 / 3, np.nan]), "n": np.int64(2)}, digits=3)
    {'p': 'inf', 'shares': [0.333, None], 'n': 2}
    >>> plain((-np.inf, 1.5), infinities=False)
    [None, 1.5]
    """
    again = partial(plain, digits=digits, infinities=infinities, smallest=smallest)
    if isinstance(value, Mapping):
        items = value.items()
        return {str(key): again(one) for key, one in items}
    if isinstance(value, list | tuple | set | frozenset):
        return [again(one) for one in value]
    if hasattr(value, "tolist"):
        return again(value.tolist())
    if isinstance(value, float):
        if abs(value) < smallest:
            return 0.0
        return _json_number(value, digits, infinities)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _json_number(value: float, digits: int | None, infinities: bool) -> float | str | None:
    if math.isfinite(value):
        return value if digits is None else float(f"{value:.{digits}g}")
    return str(value) if infinities and not math.isnan(value) else None
