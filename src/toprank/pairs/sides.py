"""Which rows face which: the outer rows whose heights are priced, the inner rows they sum over.

Ends, the IR Push's swapped roles and sample weights are settled here, once. Everything behind
this sees oriented scores a (inner) and b (outer) with margin r = a - b.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray, log_of, log_sum_exp

End = Literal["top", "bottom", "both"]
ENDS = ("top", "bottom", "both")
#: What the weight of the bottom multiplies for end="both".
BALANCES = ("means", "sums")


@dataclass(frozen=True)
class Sides:
    """One end of the list: outer rows, inner rows, and the sign that orients the scores.

    With sign +1 (outer = negatives) a = f_pos and b = f_neg; with sign -1 (outer = positives)
    a = -f_neg and b = -f_pos. Either way r = a - b = f_pos - f_neg.
    """

    outer: NDArray[np.intp]
    inner: NDArray[np.intp]
    sign: float
    log_outer_weight: FloatArray
    inner_weight: FloatArray

    @property
    def total_inner_weight(self) -> float:
        return float(np.sum(self.inner_weight))

    @property
    def log_total_outer_weight(self) -> float:
        return log_sum_exp(self.log_outer_weight)

    def normalise(self) -> Sides:
        """Return the same sides with each side's weights divided by their total."""
        largest = float(np.max(self.inner_weight)) if len(self.inner_weight) else 1.0
        inner = self.inner_weight / largest  # no total of these overflows
        return Sides(
            self.outer,
            self.inner,
            self.sign,
            self.log_outer_weight - self.log_total_outer_weight,
            inner / np.sum(inner),
        )


def orient(
    positive: NDArray[np.bool_],
    sample_weight: FloatArray | None = None,
    *,
    end: str = "top",
    outer: str = "losers",
) -> tuple[Sides, ...]:
    """Return the sides for an end of the list; end="both" gives the top, then the bottom.

    Parameters
    ----------
    positive : bool array of shape (n,)
        Which rows should be ranked high.
    sample_weight : array of shape (n,), optional
        Repetition counts; a row of weight zero is absent.
    end : {"top", "bottom", "both"}
        "top" prices the negatives' heights, "bottom" the positives' reverse heights.
    outer : {"losers", "winners"}
        Which class the price sums over at the top; "winners" swaps the roles (IR Push).
    """
    present = np.ones(len(positive), dtype=bool) if sample_weight is None else sample_weight > 0
    winners = np.flatnonzero(positive & present)
    losers = np.flatnonzero(~positive & present)
    weight = np.ones(len(positive)) if sample_weight is None else sample_weight

    def build(outer_is_losers: bool) -> Sides:
        out, inn = (losers, winners) if outer_is_losers else (winners, losers)
        sign = 1.0 if outer_is_losers else -1.0
        return Sides(out, inn, sign, log_of(weight[out]), weight[inn])

    at_top = outer == "losers"
    which = {"top": (at_top,), "bottom": (not at_top,), "both": (at_top, not at_top)}
    if end not in which:
        raise ValueError(f"Unknown end {end!r}: expected one of {list(ENDS)}.")
    return tuple(build(outer_is_losers) for outer_is_losers in which[end])
