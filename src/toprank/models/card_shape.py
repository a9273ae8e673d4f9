"""What the card of a model must hold to be read, shown and watched; files may hold anything."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from toprank.models.errors import ModelError

_WORDS = ("inf", "-inf")  # what JSON has for the infinities
_COUNT, _TEXT, _NUMBER, _MAYBE = "count", "text", "number", "number or nothing"
_SHARE = "share"
_ANY_NAME = "*"
_SPREAD = {"missing": _SHARE, "quantiles": [_NUMBER], "at_most": [_SHARE]}
#: Parts that are read somewhere. A list holds entries of one shape; "*" stands for any name.
_SHAPE: dict[str, Any] = {
    "made": _TEXT,
    "versions": {_ANY_NAME: _TEXT},
    "model": _TEXT,
    "ranker": _TEXT,
    "p": _MAYBE,
    "choice": _TEXT,
    "training": {"rows": _COUNT, "positives": _COUNT, "columns": {_ANY_NAME: _COUNT}},
    "metrics": {
        "how": _TEXT,
        "rows": _COUNT,
        "positives": _COUNT,
        "intervals": [
            {
                "metric": _TEXT,
                "estimate": _MAYBE,
                "low": _MAYBE,
                "high": _MAYBE,
                "level": _NUMBER,
            }
        ],
        "notes": [_TEXT],
    },
    "importances": {_ANY_NAME: _NUMBER},
    "reference": {
        "rows": _COUNT,
        "shares": [_SHARE],
        "scores": _SPREAD,
        "columns": {_ANY_NAME: {"kind": _TEXT}},
    },
    "warnings": [_TEXT],
}
#: What the reference holds of a column, by its kind.
_OF_KIND: dict[str, Any] = {
    "category": {"shares": {_ANY_NAME: _SHARE}},
    "text": {"missing": _SHARE},
}


def check_card(card: Any) -> dict[str, Any]:
    """Return a card that was read from a file; ModelError if a part of it is not one.

    Examples
    --------
    >>> check_card({"made": 3})
    Traceback (most recent call last):
    toprank.models.errors.ModelError: The card in the file is not one: 'made' is no text.
    """
    _check("", card, _SHAPE)
    known = card["reference"]
    entries = {"scores": {"kind": "number", **known["scores"]}, **known["columns"]}
    for name, entry in entries.items():
        _check(f"reference.{name}", entry, _OF_KIND.get(entry["kind"], _SPREAD))
        spread = [entry[part] for part in ("quantiles", "at_most") if part in entry]
        lengths = {len(part) for part in spread}
        if lengths - {0, len(known["shares"])} or len(lengths) > 1 or not _rise(*spread):
            raise _not(f"reference.{name}", "distribution")
    if not _rise(known["shares"]) or not known["scores"]["quantiles"]:
        raise _not("reference.shares", "distribution")
    return dict(card)


def _check(place: str, value: Any, shape: Any) -> None:
    if isinstance(shape, dict):
        _check_parts(place, value, shape)
    elif isinstance(shape, list):
        if not isinstance(value, list):
            raise _not(place, "list")
        for entry in value:
            _check(place, entry, shape[0])
    elif not _IS[shape](value):
        raise _not(place, shape)


def _check_parts(place: str, value: Any, shape: dict[str, Any]) -> None:
    if not isinstance(value, dict):
        raise _not(place or "all of it", "collection of named parts")
    for name, inner in shape.items():
        if name == _ANY_NAME:
            for key, entry in value.items():
                _check(f"{place}.{key}", entry, inner)
        elif name not in value:
            raise ModelError(f"The card in the file is not one: it lacks {_at(place, name)!r}.")
        else:
            _check(_at(place, name), value[name], inner)


def _at(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _not(place: str, wanted: str) -> ModelError:
    return ModelError(f"The card in the file is not one: {place!r} is no {wanted}.")


def _rise(*lists: list[float]) -> bool:
    return all(a <= b + 1e-9 * (1 + abs(b)) for values in lists for a, b in pairwise(values))


def _is_number(value: Any) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)  # JSON of strangers has NaN, and numbers of any length
    except OverflowError:
        return False


_IS = {
    _COUNT: lambda value: isinstance(value, int) and _is_number(value) and 0 <= value < 2**63,
    _SHARE: lambda value: _is_number(value) and 0 <= value <= 1 + 1e-9,
    _TEXT: lambda value: isinstance(value, str),
    _NUMBER: _is_number,
    _MAYBE: lambda value: value is None or _is_number(value) or value in _WORDS,
}
