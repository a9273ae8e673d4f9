"""The card of a model in a file: read and checked without the model, and told in words.

Only what the card itself needs is imported, so that `toprank show` answers at once.
"""

from __future__ import annotations

import json
import math
import platform
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from toprank import _version
from toprank.models.archive import MOST_BYTES, check_seal, read_members
from toprank.models.columns import are_words
from toprank.models.errors import ModelError, ModelWarning
from toprank.models.migration import to_present_format
from toprank.models.schema import Schema, Target

if TYPE_CHECKING:
    from toprank._arrays import JsonObject

#: Libraries whose versions a model depends on.
LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "skops")
#: All whose versions a card can name.
VERSIONED = ("python", "toprank", *LIBRARIES, "lightgbm", "xgboost")
#: Libraries on the cards of older models whose part is ours by now.
_REPLACED = ("skrub",)
#: How many libraries a warning names.
_NAMED = 12


def installed_version(name: str) -> str | None:
    """Return the version of a library, or of Python without its last number; None if not here."""
    if name == "python":
        return ".".join(platform.python_version_tuple()[:2])
    if name == "toprank":
        return _version.__version__
    for distribution in (name, f"{name}-cpu"):  # xgboost has two names
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return None


#: What users call the rankers.
_WORDS_OF = {
    "PNormPush": "a linear score, pushed to be right at the top",
    "IRPush": "a linear score under the IR push",
    "ProperRanker": "a linear model of the probability",
    "RankBoost": "boosted stumps (RankBoost)",
    "SmoothMarginRanker": "boosted stumps (smooth margin ranking)",
    "PushTrees": "boosted trees, pushed to be right at the top",
    "PushEnsemble": "a blend of several models, right at the top",
}


def describe_ranker(card: Mapping[str, object]) -> str:
    """Return in users' words what kind of ranker a card is about.

    Examples
    --------
    >>> describe_ranker({"ranker": "ProperRanker", "parameters": {"loss": "logistic"}})
    'logistic regression'
    """
    name, settings = str(card.get("ranker", "")), card.get("parameters") or {}
    if not isinstance(settings, dict):
        settings = {}
    if name == "ProperRanker" and settings.get("loss", "logistic") == "logistic":
        return "logistic regression"
    if name == "PushTrees" and settings.get("p", 4.0) is None:
        return "boosted trees for the two classes"
    return _WORDS_OF.get(name, name)


def readable_card(card: JsonObject) -> JsonObject:
    """Return a card for people and other programs: without the checksums of its rows."""
    training = {name: part for name, part in card["training"].items() if name != "sketch"}
    return {**card, "training": training}


@dataclass(frozen=True)
class CardFile:
    """What a file says of its model, without the model.

    Attributes
    ----------
    schema : Schema
    target : Target
    card : dict
    members : dict of str to bytes
        All that is in the file, as this version writes it.
    """

    schema: Schema
    target: Target
    card: JsonObject
    members: dict[str, bytes]


def read_card(path: str | PathLike[str], *, most_bytes: int = MOST_BYTES) -> CardFile:
    """Read the card of a model in a file, and nothing else of it.

    Parameters
    ----------
    path : str or path
    most_bytes : int
        The largest file, and the largest content once unpacked, that is accepted.

    Raises
    ------
    ModelError
        If the file is not a model, was cut short or changed, or is of a newer format.

    Warns
    -----
    ModelWarning
        If the model was made with other versions of the libraries; it names them.
    """
    data, made_with = read_model_bytes(path, most_bytes), MadeWith()
    with name_file(path), name_damage(made_with):
        found = open_archive(data, most_bytes, made_with)
    if made_with.other:
        warnings.warn(made_with.warning, ModelWarning, stacklevel=2)
    return found


def read_model_bytes(path: str | PathLike[str], most_bytes: int) -> bytes:
    """Return the bytes of a file; ModelError if it is too large or cannot be read."""
    source = Path(path)
    try:
        size = source.stat().st_size
        if size > most_bytes:
            raise ModelError(
                f"'{source}' has {size} bytes, more than the {most_bytes} allowed; pass "
                "most_bytes= if you trust it."
            )
        return source.read_bytes()
    except OSError as error:
        raise ModelError(f"'{source}' could not be read: {error.strerror or error}.") from error


@contextmanager
def name_file(path: str | PathLike[str]) -> Iterator[None]:
    """Let what is wrong with a file begin with its name."""
    try:
        yield
    except ModelError as error:
        raise ModelError(f"'{Path(path)}': {error}") from error


@dataclass
class MadeWith:
    """The versions that a model was made with where they are others here; empty until known."""

    other: str = ""

    @property
    def warning(self) -> str:
        """What to say of it where the model can be read all the same."""
        return f"The model was made with {self.other}; scores may differ. Refit it if they do."


@contextmanager
def name_damage(made_with: MadeWith) -> Iterator[None]:
    """Raise ModelError, with a remedy, for whatever a file brings its readers to raise."""
    try:
        yield
    except ModelError:
        raise
    except MemoryError as error:
        raise ModelError("What the file holds does not fit into memory.") from error
    except Exception as error:  # files made to mislead raise anything
        why = (str(error).splitlines() or [type(error).__name__])[0]
        other = made_with.other
        remedy = f" It says that it was made with {other}: try those versions." if other else ""
        raise ModelError(f"The file is damaged, or not a toprank model ({why}).{remedy}") from error


def open_archive(data: bytes, most_bytes: int, made_with: MadeWith) -> CardFile:
    """Return what the bytes of a file say of its model, checked; fills in ``made_with``."""
    check_seal(data)
    members, facts = to_present_format(read_members(data, most_bytes))
    made_with.other = _other_versions(facts["versions"])
    schema, target = _read_schema(json.loads(members["schema.json"]))
    card = check_card(json.loads(members["card.json"]))
    remembered = {name: entry["kind"] for name, entry in card["reference"]["columns"].items()}
    if remembered != {column.name: column.kind for column in schema.columns}:
        raise ModelError("The card in the file describes another model.")
    return CardFile(schema, target, card, members)


def _read_schema(given: object) -> tuple[Schema, Target]:
    if not isinstance(given, dict) or not isinstance(given.get("values"), dict):
        raise ModelError(
            "The schema in the file cannot be used: it is not a collection of named parts."
        )
    values = given.pop("values")
    schema = Schema.from_dict(given)
    positive, negative = values["positive"], values["negative"]
    if not isinstance(negative, list) or not are_words([positive, *negative]):
        raise ModelError("The target in the file cannot be used: its values are not texts.")
    return schema, Target(schema.target, positive, tuple(negative), values.get("tidy") is True)


def _other_versions(made: dict[str, str]) -> str:
    """The libraries, with their versions, that are others here; empty if none is."""
    # a name that no card has is not looked for: that would take time, or fail
    here = {name: installed_version(name) if name in VERSIONED else None for name in made}
    other = [
        f"{name} {was} (here {here[name] or 'none'})"
        for name, was in made.items()
        if was != here[name] and name not in _REPLACED
    ]
    return ", ".join(other[:_NAMED]) + (", ..." if len(other) > _NAMED else "")


_WORDS = ("inf", "-inf")  # what JSON has for the infinities
_COUNT, _TEXT, _NUMBER, _MAYBE = "count", "text", "number", "number or nothing"
_SHARE = "share"
_SPREAD_BEYOND = "number from 0 to 1e9"
_ANY_NAME = "*"
_SPREAD = {"missing": _SHARE, "quantiles": [_NUMBER], "at_most": [_SHARE]}
#: The parts of a card that are used. A list holds entries of one shape; "*" stands for any name.
_SHAPE: JsonObject = {
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
#: Parts of the reference that the cards of earlier versions lack.
_NEWER = {"scores_from": _TEXT, "scores_rows": _COUNT, "scores_spread": _SPREAD_BEYOND}
#: Parts of a column or the scores that they lack.
_MORE: JsonObject = {
    "below": [_SHARE],
    "tie": _SPREAD_BEYOND,
    "texts": {_ANY_NAME: _SHARE},
    "rows": _COUNT,
}
#: What the reference holds of a column, by its kind.
_OF_KIND: JsonObject = {
    "category": {"shares": {_ANY_NAME: _SHARE}},
    "text": {"missing": _SHARE},
}


def check_card(card: object) -> JsonObject:
    """Return a card that was read from a file; ModelError if a part of it cannot be used.

    Examples
    --------
    >>> check_card({"made": 3})
    Traceback (most recent call last):
    toprank.models.errors.ModelError: The card in the file cannot be used: 'made' is not a text.
    """
    _check_shape("", card, _SHAPE)
    assert isinstance(card, dict)  # the shape is one
    known = card["reference"]
    _check_parts("reference", known, {name: _NEWER[name] for name in _NEWER if name in known})
    entries = {"scores": {"kind": "number", **known["scores"]}, **known["columns"]}
    for name, entry in entries.items():
        _check_shape(f"reference.{name}", entry, _OF_KIND.get(entry["kind"], _SPREAD))
        _check_parts(
            f"reference.{name}", entry, {part: _MORE[part] for part in _MORE if part in entry}
        )
        spread = [entry[part] for part in ("quantiles", "at_most", "below") if part in entry]
        lengths = {len(part) for part in spread}
        if lengths - {0, len(known["shares"])} or len(lengths) > 1 or not _rise(*spread):
            raise _unusable(f"reference.{name}", "distribution")
    if not _rise(known["shares"]) or not known["scores"]["quantiles"]:
        raise _unusable("reference.shares", "distribution")
    return dict(card)


def _check_shape(place: str, value: object, shape: object) -> None:
    if isinstance(shape, dict):
        _check_parts(place, value, shape)
    elif isinstance(shape, list):
        if not isinstance(value, list):
            raise _unusable(place, "list")
        for entry in value:
            _check_shape(place, entry, shape[0])
    elif not _IS[str(shape)](value):
        raise _unusable(place, str(shape))


def _check_parts(place: str, value: object, shape: Mapping[str, object]) -> None:
    if not isinstance(value, dict):
        raise _unusable(place or "all of it", "collection of named parts")
    for name, inner in shape.items():
        if name == _ANY_NAME:
            for key, entry in value.items():
                _check_shape(f"{place}.{key}", entry, inner)
        elif name not in value:
            raise ModelError(f"The card in the file cannot be used: it lacks {_at(place, name)!r}.")
        else:
            _check_shape(_at(place, name), value[name], inner)


def _at(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _unusable(place: str, wanted: str) -> ModelError:
    return ModelError(f"The card in the file cannot be used: {place!r} is not a {wanted}.")


def _rise(*lists: list[float]) -> bool:
    return all(a <= b + 1e-9 * (1 + abs(b)) for values in lists for a, b in pairwise(values))


def _is_finite_number(value: object) -> TypeGuard[float]:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)  # JSON of strangers has NaN, and numbers of any length
    except OverflowError:
        return False


_IS: dict[str, Callable[[object], bool]] = {
    _COUNT: lambda value: (
        isinstance(value, int) and _is_finite_number(value) and 0 <= value < 2**63
    ),
    _SHARE: lambda value: _is_finite_number(value) and 0 <= value <= 1 + 1e-9,
    _SPREAD_BEYOND: lambda value: _is_finite_number(value) and 0 <= value <= 1e9,
    _TEXT: lambda value: isinstance(value, str),
    _NUMBER: _is_finite_number,
    _MAYBE: lambda value: value is None or _is_finite_number(value) or value in _WORDS,
}
