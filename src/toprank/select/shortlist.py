"""The list that was chosen, what is guaranteed of it, and what is said where nothing can be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import JsonObject
from toprank._html import table_html
from toprank._numerics import FloatArray
from toprank._text import counted, plain

#: Rows of the list that are shown at most.
_SHOWN = 10


class TooFewLabels(ValueError):
    """The calibration rows cannot support the guarantee that was asked for.

    Attributes
    ----------
    needed : int or None
        How many labelled rows would do, with the same share of positives; None where no number
        would.

    Examples
    --------
    >>> from toprank.select import TooFewLabels
    >>> TooFewLabels("Nine rows would do.", 9).needed
    9
    """

    def __init__(self, message: str, needed: int | None = None):
        super().__init__(message)
        self.needed = needed


@dataclass(frozen=True, eq=False)
class Shortlist:
    """The rows that were chosen, and what is guaranteed of them; `select` makes one.

    Attributes
    ----------
    rows : array of int
        The places of the chosen rows among the new rows, the highest score first.
    scores : array
        Their scores, in the same order.
    guarantee : str
        What holds of the list, in one sentence.
    assumption : str
        What it rests on.
    settings : dict
        What was asked for, such as ``{"fdr": 0.1}``.
    n_new : int
        How many rows there were to choose from.
    n_calibration, n_positives : int
        How many labelled rows the guarantee comes from, and how many of them are positives.
    notes : tuple of str
        What else the reader should know.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank import select
    >>> rng = np.random.default_rng(2)
    >>> y = rng.random(2000) < 0.3
    >>> scores = rng.normal(size=2000) + 3 * y
    >>> chosen = select(scores[1000:], calibration=(y[:1000], scores[:1000]), fdr=0.1)
    >>> len(chosen), round(float(np.mean(y[1000:][chosen.rows])), 2)
    (312, 0.9)
    >>> print(chosen.guarantee)
    On average over lists made in this way, at most 10% of the chosen rows are negatives.
    """

    rows: NDArray[np.intp]
    scores: FloatArray
    guarantee: str
    assumption: str
    settings: JsonObject
    n_new: int
    n_calibration: int
    n_positives: int
    notes: tuple[str, ...] = ()
    _p_values: Callable[[], FloatArray] | None = field(default=None, repr=False)

    @property
    def threshold(self) -> float:
        """The lowest score of the list; infinity where no row was chosen."""
        return float(self.scores[-1]) if len(self.scores) else float("inf")

    @cached_property
    def p_values(self) -> FloatArray | None:
        """The conformal p-value of each new row, in the order of the new rows.

        Small where few negatives of the calibration part score as high. None unless the list was
        chosen by its false discovery rate.
        """
        return None if self._p_values is None else self._p_values()

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Whether each new row was chosen, in the order of the new rows."""
        chosen = np.zeros(self.n_new, dtype=bool)
        chosen[self.rows] = True
        return chosen

    def __len__(self) -> int:
        return len(self.rows)

    def as_dict(self) -> JsonObject:
        """Return the attributes as plain values, for JSON."""
        return plain(
            {
                **self.settings,
                "chosen": len(self),
                "new_rows": self.n_new,
                "threshold": self.threshold,
                "rows": self.rows,
                "scores": self.scores,
                "guarantee": self.guarantee,
                "assumption": self.assumption,
                "calibration_rows": self.n_calibration,
                "calibration_positives": self.n_positives,
                "notes": list(self.notes),
            }
        )

    @property
    def headline(self) -> str:
        """How many rows were chosen, and from which score on."""
        if not len(self):
            return f"No row of {self.n_new} could be chosen."
        rows = counted(len(self), "row")
        return f"{rows} of {self.n_new} chosen, with scores from {self.threshold:.6g}."

    @property
    def _lines(self) -> list[str]:
        support = f"Calibration: {self.n_calibration} rows, {self.n_positives} of them positives."
        notes = [f"Note: {text}" for text in self.notes]
        return [self.guarantee, f"Assumes that {self.assumption}", support, *notes]

    def __str__(self) -> str:
        return "\n".join([self.headline, *self._lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        shown = zip(self.rows[:_SHOWN].tolist(), self.scores[:_SHOWN].tolist(), strict=True)
        rows = [(rank, row, f"{score:.6g}") for rank, (row, score) in enumerate(shown, 1)]
        more = len(self) - _SHOWN
        notes = [f"and {more} more rows", *self._lines] if more > 0 else self._lines
        head = ("rank", "row", "score") if rows else ()
        return table_html(rows, head=head, caption=self.headline, notes=notes)
