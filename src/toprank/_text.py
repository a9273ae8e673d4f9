"""Text from data and files, made safe to show."""

from __future__ import annotations

from typing import Any


def visible(value: Any) -> str:
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
