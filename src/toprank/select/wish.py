"""What is wanted of a shortlist, and the shortlist that answers it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray, is_number
from toprank.select.calibration import Calibration
from toprank.select.shortlist import Shortlist

if TYPE_CHECKING:
    from toprank._arrays import JsonObject


DRAWN_ALIKE = "calibration rows and new rows are drawn in the same way"


@dataclass(frozen=True)
class Wish:
    """What is wanted of the list: one kind of guarantee, its value, and its probability."""

    kind: str
    value: float
    confidence: float

    @property
    def chance(self) -> float:
        """The chance that the guarantee fails."""
        return 1 - self.confidence

    @property
    def settings(self) -> JsonObject:
        """What was asked for, by the names of `select`."""
        if self.kind == "fdr":
            return {"fdr": self.value}
        return {self.kind: self.value, "confidence": self.confidence}


def read_wish(
    fdr: object, precision: object, recall: object, positives: object, confidence: object
) -> Wish:
    """Return the one guarantee that was asked for; ValueError for none, several, or no share."""
    given = {
        "fdr": fdr,
        "precision_at_least": precision,
        "recall_at_least": recall,
        "positives_at_least": positives,
    }
    wanted = {name: value for name, value in given.items() if value is not None}
    if len(wanted) != 1:
        came = " and ".join(wanted) or "none"
        raise ValueError(f"give exactly one of {', '.join(given)}; {came} came.")
    (kind, value), *_ = wanted.items()
    if kind == "positives_at_least":
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{kind}={value!r}: expected a whole number of at least 1.")
        value = int(value)
    elif not (is_number(value) and 0 < value < 1):
        raise ValueError(f"{kind}={value!r}: expected a share between 0 and 1, such as 0.1.")
    if not (is_number(confidence) and 0 < confidence < 1):
        raise ValueError(f"confidence={confidence!r}: expected a probability, such as 0.95.")
    return Wish(kind, value, float(confidence))


def make_shortlist(
    known: Calibration,
    new: FloatArray,
    wish: Wish,
    rows: NDArray[np.intp],
    guarantee: str,
    notes: tuple[str, ...] = (),
    *,
    drawn: str = DRAWN_ALIKE,
    order_by: FloatArray | None = None,
    p_values: Callable[[], FloatArray] | None = None,
) -> Shortlist:
    """The chosen rows in the order of their scores, or of `order_by`, with what is promised."""
    order = np.argsort(-(new if order_by is None else order_by)[rows], kind="stable")
    rows = rows[order]
    return Shortlist(
        rows,
        new[rows],
        guarantee,
        f"{drawn}, and {known.source}.",
        wish.settings,
        len(new),
        known.n_rows,
        known.n_positives,
        notes,
        p_values,
    )
