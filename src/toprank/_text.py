"""Values as text that is safe to show, and results as JSON has them."""

from __future__ import annotations

import math
from collections.abc import Mapping
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


def short_number(value: float) -> str:
    """Return p, or another number, as it is written: without needless zeros."""
    return "∞" if math.isinf(value) else f"{value:g}"


def plain(value: Any, *, digits: int | None = None, infinities: bool = True) -> Any:
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

    Examples
    --------
    >>> import numpy as np
    >>> plain({"p": np.inf, "shares": np.array([1 / 3, np.nan]), "n": np.int64(2)}, digits=3)
    {'p': 'inf', 'shares': [0.333, None], 'n': 2}
    >>> plain((-np.inf, 1.5), infinities=False)
    [None, 1.5]
    """
    if isinstance(value, Mapping):
        items = value.items()
        return {str(key): plain(one, digits=digits, infinities=infinities) for key, one in items}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one, digits=digits, infinities=infinities) for one in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist(), digits=digits, infinities=infinities)
    if isinstance(value, float):
        return _json_number(value, digits, infinities)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _json_number(value: float, digits: int | None, infinities: bool) -> float | str | None:
    if math.isfinite(value):
        return value if digits is None else float(f"{value:.{digits}g}")
    return str(value) if infinities and not math.isnan(value) else None
