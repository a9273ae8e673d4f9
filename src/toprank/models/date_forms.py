"""How dates are written: a form as people read it, and the other way to read the same words."""

from __future__ import annotations

import re

#: What each sign of a form stands for on 25 January 2026, a Sunday, at a quarter to two.
_SHOWN = {
    "%Y": "2026",
    "%y": "26",
    "%m": "01",
    "%d": "25",
    "%b": "Jan",
    "%B": "January",
    "%j": "025",
    "%a": "Sun",
    "%A": "Sunday",
    "%H": "13",
    "%I": "01",
    "%p": "PM",
    "%M": "45",
    "%S": "30",
    "%f": "000000",
    "%z": "+0000",
}
_NAMES = {"%Y": "year", "%y": "year", "%m": "month", "%b": "month", "%B": "month", "%d": "day"}
_SIGN = re.compile("%[A-Za-z]")
#: What is called the other of two ways to read a form, by the first of its signs.
FIRST = {"%m": "month first", "%d": "day first"}


def describe_form(form: str) -> str:
    """Return a date in this form, and the order of its parts.

    Examples
    --------
    >>> from toprank.models.date_forms import describe_form
    >>> describe_form("%m/%d/%Y"), describe_form("ISO8601")
    ('01/25/2026 (month/day/year)', '2026-01-25 (year-month-day)')
    """
    form = "%Y-%m-%d" if form == "ISO8601" else form
    # not by strftime: a form from a file may ask it for any width
    shown = _SIGN.sub(lambda sign: _SHOWN.get(sign[0], sign[0]), form)
    parts = [_NAMES[sign] for sign in _SIGN.findall(form) if sign in _NAMES]
    between = re.search("[-./]", form)
    order = ("/" if between is None else between[0]).join(parts)
    return f"{shown} ({order})" if len(parts) > 1 else shown


def first_part(form: str) -> str | None:
    """Return "%m" or "%d", with which a form in figures begins; None if with neither."""
    signs = [sign for sign in _SIGN.findall(form) if sign in _NAMES]
    both = {"%m", "%d"} <= set(signs)
    return signs[0] if both and signs[0] in FIRST else None


def swap_day_and_month(form: str) -> str:
    """Return the form with the day in the place of the month.

    Examples
    --------
    >>> from toprank.models.date_forms import swap_day_and_month
    >>> swap_day_and_month("%m/%d/%Y %H:%M")
    '%d/%m/%Y %H:%M'
    """
    other = {"%m": "%d", "%d": "%m"}
    return _SIGN.sub(lambda sign: other.get(sign[0], sign[0]), form)
