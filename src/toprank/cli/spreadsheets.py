"""Cells that a spreadsheet shows and does not run.

A spreadsheet runs a cell that starts with a sign such as ``=``. A text can bring such a cell along
in its middle too: where a table with commas is opened with semicolons, as in half of Europe, the
quotes around a cell do not count, and ``a;=1+1`` is two cells.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

#: Signs that start a formula, also in the width of Chinese and Japanese letters.
_SIGNS = "=+\\-@\uff1d\uff0b\uff0d\uff20"
#: A place where a cell starts, then spaces and quotes, then a sign.
_FORMULA = re.compile(rf"(?:\A|(?<=[,;|\t\r\n]))(?=[ \"]*[{_SIGNS}])")
_START = re.compile(r"\A(?=[\x00-\x1f])")
_NUMBER = re.compile(r" *[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)? *", re.ASCII)


def without_formulas(value: Any) -> Any:
    r"""Return the value of a cell with an apostrophe before what would be run as a formula.

    Numbers stay numbers, also those that come as text.

    Examples
    --------
    >>> from toprank.cli.spreadsheets import without_formulas
    >>> without_formulas("=1+1"), without_formulas("a;@b"), without_formulas("-1.5")
    ("'=1+1", "a;'@b", '-1.5')
    """
    if value is None or isinstance(value, bool | int | float | Decimal):
        return value
    text = str(value)
    if _NUMBER.fullmatch(text):
        return text
    return _START.sub("'", _FORMULA.sub("'", text))
