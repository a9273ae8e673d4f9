"""Words that come from a table, made fit to be shown: everything of a report passes here."""

from __future__ import annotations

from typing import Any

#: Letters of a name or value that are shown; the rest becomes an ellipsis.
LONGEST = 120


def clean_text(value: Any, longest: int = LONGEST) -> str:
    r"""Return a word without control characters or lone surrogates, and not too long.

    A control character becomes its visible sign, U+2400 and following. Markup is left as it is:
    it is escaped where the page is written.

    Examples
    --------
    >>> from toprank.report.text import clean_text
    >>> clean_text("a\x00b"), clean_text("x" * 300, longest=5)
    ('a␀b', 'xxxx…')
    """
    text = str(value).encode("utf-8", "replace").decode("utf-8")
    text = "".join(_visible(letter) for letter in text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _visible(letter: str) -> str:
    code = ord(letter)
    if code < 0x20:
        return chr(0x2400 + code)
    # the delete character, the C1 controls, and signs that turn the direction of all that follows
    hidden = 0x7F <= code <= 0x9F or 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069
    return "␡" if hidden or code in (0x2028, 0x2029, 0xFEFF) else letter


def count(value: float) -> str:
    """Return a whole number with thin spaces between the thousands."""
    return f"{round(value):,}".replace(",", "\u202f")


def format_figure(value: float, unit: str) -> str:
    """Return a figure in its unit: "share" (in percent), "times" or "area"."""
    if unit == "share":
        return percent(value)
    return f"{value:.3g}×" if unit == "times" else f"{value:.3f}"


def percent(share: float) -> str:
    """Return a share in percent: a decimal only below ten and above ninety-nine.

    Examples
    --------
    >>> from toprank.report.text import percent
    >>> percent(0.2345), percent(0.05), percent(0.0123), percent(0.99999)
    ('23%', '5%', '1.2%', '>99.9%')
    """
    value = 100 * share
    if 99.95 <= value < 100:
        return ">99.9%"
    if 0.05 <= value < 9.95 or 99 < value < 100:
        return f"{value:.1f}%".replace(".0%", "%")
    return f"{value:.0f}%" if value >= 9.95 or value == 0 else f"{value:.2g}%"
