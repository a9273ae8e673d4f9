"""A list that was cut within limits, and what each of them costs, in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import JsonObject
from toprank._html import cell, notes_html, table_html
from toprank._numerics import FloatArray
from toprank.select.limits import IntArray


@dataclass(frozen=True)
class LimitPrice:
    """What one limit costs while the others hold.

    Attributes
    ----------
    limit : str
        The limit in words.
    rows : int
        Rows that the limit keeps out of the list.
    positives : float or None
        Expected positives lost to the limit; None where no probabilities are known.
    value : float or None
        Expected value lost; None where positives have no value given.
    """

    limit: str
    rows: int
    positives: float | None
    value: float | None = None


@dataclass(frozen=True)
class LimitedList:
    """A list that was cut within limits; print it.

    Attributes
    ----------
    rows : ndarray of int
        Places of the rows in the table, the first row of the list first; rows drawn at random come
        last.
    explored : ndarray of bool
        Which of them were drawn at random.
    propensity : ndarray of float
        Probability of each row to be in the list: 1 for the rows that were chosen.
    table_rows : int
        Rows of the table.
    positives : float or None
        Positives that the list is expected to hold.
    value : float or None
        Expected value, where positives have a value.
    cost : float or None
        What the rows cost together.
    bound : float or None
        What no list that keeps the limits is worth more than, in expected value, or in expected
        positives where no value is given; without the rows drawn at random.
    worth : float or None
        What the chosen rows are worth by the same measure.
    method : str
        How the list was found.
    chances : str
        Where the probabilities come from; empty if they are not known.
    prices : tuple of LimitPrice
        What each limit costs while the others hold; the prices do not add up.
    note : str
        What else the reader should know; empty if nothing.
    kept : ndarray of int
        Rows that are in the list because they were in it before; none without `previous`.
    lead : float or None
        How far ahead of them a newcomer must be.
    """

    rows: IntArray
    explored: NDArray[np.bool_]
    propensity: FloatArray
    table_rows: int
    positives: float | None
    value: float | None
    cost: float | None
    bound: float | None
    worth: float | None
    method: str
    chances: str
    prices: tuple[LimitPrice, ...]
    note: str = ""
    kept: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    lead: float | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def as_dict(self) -> JsonObject:
        """Return the attributes as a dictionary."""
        return asdict(self)

    def __str__(self) -> str:
        head, lines = self._summary()
        priced = [(one.limit, *_price_cells(one)) for one in self.prices]
        if priced:
            names = ("limit", "rows kept out", "positives lost", "value lost")
            used = [j for j in range(4) if j < 2 or any(row[j] for row in priced)]
            table = [tuple(row[j] for j in used) for row in (names, *priced)]
            widths = [max(len(row[j]) for row in table) for j in range(len(used))]
            for row in table:
                cells = [row[0].ljust(widths[0])]
                cells += [
                    cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)
                ]
                lines.append("  ".join(cells).rstrip())
        return "\n".join([head, *lines, *([f"Note: {self.note}"] if self.note else [])])

    __repr__ = __str__

    def _summary(self) -> tuple[str, list[str]]:
        head = f"{len(self)} of {self.table_rows} rows"
        drawn = int(np.count_nonzero(self.explored))
        if drawn:
            head += f", {drawn} of them drawn at random"
        if self.positives is not None:
            head += f"; {self.positives:.4g} positives expected, by {self.chances}"
        lines = []
        if self.value is not None:
            lines.append(f"Expected value {self.value:.6g}.")
        if self.cost is not None:
            lines.append(f"Cost {self.cost:.6g}.")
        if self.bound is not None and self.worth is not None:
            best = self.bound <= self.worth * (1 + 1e-9) + 1e-12
            what = "value" if self.value is not None else "positives"
            said = (
                "no list within the limits expects more"
                if best
                else (
                    f"no list within the limits expects more than {self.bound:.4g} in {what}, this "
                    f"one {self.worth:.4g}"
                )
            )
            lines.append(f"Found by {self.method}: {said}.")
        return head + ".", lines

    def _repr_html_(self) -> str:
        head, lines = self._summary()
        said = "".join(f"<p>{cell(line)}</p>" for line in [head, *lines])
        if not self.prices:
            return said + notes_html([self.note])
        rows = [(one.limit, *_price_cells(one)) for one in self.prices]
        names = ("limit", "rows kept out", "positives lost", "value lost")
        return said + table_html(rows, head=names, notes=[self.note])


def _price_cells(price: LimitPrice) -> tuple[str, str, str]:
    lost = ("" if one is None else f"{one:.3g}" for one in (price.positives, price.value))
    return (str(price.rows), *lost)  # type: ignore[return-value]
