"""Which rows face which: the outer rows whose heights are priced, the inner rows they sum over.

Ends, the IR Push's swapped roles and sample weights are settled here, once. Everything behind
this door sees oriented scores a (inner) and b (outer) with margin r = a - b.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray, log_of

End = Literal["top", "bottom", "both"]
ENDS = ("top", "bottom", "both")


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
        return float(np.log(np.sum(np.exp(self.log_outer_weight))))

    def normalised(self) -> Sides:
        """Return the same sides with each side's weights divided by their total."""
        return Sides(
            self.outer,
            self.inner,
            self.sign,
            self.log_outer_weight - self.log_total_outer_weight,
            self.inner_weight / self.total_inner_weight,
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


def distinct_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct labels in order; numbers of two values are not sorted for it."""
    if labels.dtype.kind in "biuf" and labels.size:
        ends = np.array([labels.min(), labels.max()])
        if ends[0] != ends[1] and np.all((labels == ends[0]) | (labels == ends[1])):
            return ends
    return np.unique(labels)


def check_weights(positive: NDArray[np.bool_], sample_weight: object) -> FloatArray | None:
    """Return the sample weights as float64, or raise ValueError saying what is wrong.

    Weights are repetition counts: finite, not negative, and not all zero in either class.
    """
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != positive.shape:
        raise ValueError(
            f"sample_weight has shape {weight.shape}, expected {positive.shape}: one weight a row."
        )
    if not np.all(np.isfinite(weight)):
        raise ValueError("sample_weight contains NaN or infinity; weights must be finite.")
    if np.any(weight < 0):
        raise ValueError(
            f"sample_weight contains negative values (smallest {weight.min():g}); a weight is a "
            "repetition count. Use 0 to leave a row out."
        )
    if not np.any(weight > 0):
        raise ValueError(
            "Sample weights must contain at least one non-zero number: every row is absent."
        )
    for name, members in (("positive", positive), ("negative", ~positive)):
        if not np.any(weight[members] > 0):
            raise ValueError(
                f"Every {name} row has sample_weight 0, so there is no pair to rank. "
                "Give at least one row of each class a positive weight."
            )
    return weight
