"""Text from strangers, made fit to be shown."""

from __future__ import annotations

from typing import Any


def visible(value: Any) -> str:
    r"""Return a value as text that can steer neither a terminal nor the letters around it.

    Control characters, line breaks, marks that turn the direction of writing and lone surrogates
    are shown as their escapes.

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
