"""Two lists, such as yesterday's and today's: who enters, who leaves, and how alike they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, ndtri

from toprank._arrays import JsonObject
from toprank._columns import labels_column, to_numpy
from toprank._html import table_html
from toprank._numerics import is_number
from toprank._text import visible

#: Names that a printed difference shows of those who enter, and of those who leave.
_MOST_SHOWN = 10

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class ListDifference:
    """What has changed between two lists; print it.

    Attributes
    ----------
    top : int
        How many rows of each list count as its top.
    entered, left, stayed : list
        Who is among the first k of the new list only, of the old one only, and of both, in the
        order of the list.
    turnover : float
        Share of the old list's top that left it.
    overlap : float
        Rank-biased overlap of both whole lists, from 0 to 1: the mean agreement of their first d
        rows over the depths d that a reader reaches who goes on from each row with probability
        `persistence`. Below the end of the lists the agreement is taken to stay as it is there.
    overlap_low, overlap_high : float
        The least and the most that it can be, whatever stands below the end of the lists.
    persistence : float
    overlap_interval : tuple of two floats
        Interval of the overlap for tables of other rows like these: the spread over resampled rows,
        on the scale of the log odds.
    level : float
        Its confidence level.
    """

    top: int
    entered: list[Hashable]
    left: list[Hashable]
    stayed: list[Hashable]
    turnover: float
    overlap: float
    overlap_low: float
    overlap_high: float
    persistence: float
    overlap_interval: tuple[float, float] = (0.0, 1.0)
    level: float = 0.95

    def as_dict(self) -> JsonObject:
        """Return the attributes as a dictionary."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _lines(self) -> list[str]:
        return [
            f"Of the first {self.top}: {len(self.left)} left, {len(self.entered)} entered, "
            f"{len(self.stayed)} stayed; turnover {100 * self.turnover:.3g}%.",
            f"Rank-biased overlap {self.overlap:.3f}, between {self.overlap_low:.3f} and "
            f"{self.overlap_high:.3f} whatever stands below (persistence {self.persistence:g}).",
            f"Tables of other rows like these: {self.overlap_interval[0]:.3f} to "
            f"{self.overlap_interval[1]:.3f} ({100 * self.level:g}% interval).",
            f"entered: {_names(self.entered)}",
            f"left:    {_names(self.left)}",
        ]

    def _repr_html_(self) -> str:
        rows: list[tuple[object, ...]] = [
            (f"turnover of the first {self.top}", f"{100 * self.turnover:.3g}%"),
            (
                "rank-biased overlap",
                f"{self.overlap:.3f}, between {self.overlap_low:.3f} and {self.overlap_high:.3f} "
                f"whatever stands below (persistence {self.persistence:g})",
            ),
            (
                "with other rows like these",
                f"{self.overlap_interval[0]:.3f} to {self.overlap_interval[1]:.3f} "
                f"({100 * self.level:g}% interval)",
            ),
            (f"entered ({len(self.entered)})", _names(self.entered)),
            (f"left ({len(self.left)})", _names(self.left)),
            ("stayed", len(self.stayed)),
        ]
        return table_html(rows)


def _names(values: Sequence[object]) -> str:
    shown = ", ".join(visible(value) for value in values[:_MOST_SHOWN])
    more = f", and {len(values) - _MOST_SHOWN} more" if len(values) > _MOST_SHOWN else ""
    return f"{shown}{more}" if values else "nobody"


def compare_lists(
    old: ArrayLike,
    new: ArrayLike,
    k: int | None = None,
    *,
    persistence: float | None = None,
    level: float = 0.95,
    n_resamples: int = 200,
    random_state: int | np.random.Generator | None = 0,
) -> ListDifference:
    r"""Compare two ranked lists of names: turnover at k, and rank-biased overlap.

    With :math:`A_d` the share that the first d rows of both lists have in common and p the
    persistence, the overlap is :math:`(1 - p) \sum_{d \ge 1} p^{d-1} A_d` (Webber, Moffat & Zobel
    2010).

    Parameters
    ----------
    old, new : array-like
        The names of the rows (ids), the first row of the list first; each name once. The lists may
        be of different lengths.
    k : int, optional
        How many rows are the top; by default the length of the shorter list.
    persistence : float, optional
        Probability that a reader goes on to the next row; by default 1 - 1/k, so that k rows
        are read on average.
    level : float, default=0.95
        Confidence level of the interval of the overlap.
    n_resamples : int, default=200
        How often rows are drawn anew for it.
    random_state : int, Generator or None, default=0

    Returns
    -------
    ListDifference
        ``.entered .left .stayed .turnover .overlap``; prints as a few lines.

    Examples
    --------
    >>> from toprank.select import compare_lists
    >>> print(compare_lists(["a", "b", "c", "d"], ["b", "a", "e", "c"], k=3))
    Of the first 3: 1 left, 1 entered, 2 stayed; turnover 33.3%.
    Rank-biased overlap 0.543, between 0.487 and 0.593 whatever stands below (persistence 0.666667).
    Tables of other rows like these: 0.197 to 0.852 (95% interval).
    entered: e
    left:    c
    """
    before, after = (_read_names(name, given) for name, given in (("old", old), ("new", new)))
    shorter = min(len(before), len(after))
    size = shorter if k is None else k
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
        raise ValueError(f"k={k!r}: expected a number of rows, at least 1.")
    if persistence is None:
        persistence = max(0.5, 1 - 1 / int(size))
    if not (is_number(persistence) and 0 < persistence < 1):
        raise ValueError(f"persistence={persistence!r}: expected a probability between 0 and 1.")
    if not (is_number(level) and 0 < level < 1):
        raise ValueError(f"level={level!r}: expected a probability, such as 0.95.")
    if isinstance(n_resamples, bool) or not is_number(n_resamples) or n_resamples < 2:
        raise ValueError(f"n_resamples={n_resamples!r}: expected a number of resamples from 2.")
    first, then = before[:size], after[:size]
    in_first, in_then = set(first), set(then)
    left = [name for name in first if name not in in_then]
    overlap = _rank_biased_overlap(before, after, float(persistence))
    spread = _spread_of_overlap(
        before, after, float(persistence), int(n_resamples), np.random.default_rng(random_state)
    )
    return ListDifference(
        int(size),
        [name for name in then if name not in in_first],
        left,
        [name for name in then if name in in_first],
        len(left) / len(first),
        *overlap,
        float(persistence),
        _around(overlap[0], spread, level),
        float(level),
    )


def _read_names(name: str, given: ArrayLike) -> list[Hashable]:
    values = labels_column(name, to_numpy(given), "every row must have a name").tolist()
    if not values:
        raise ValueError(f"{name} is empty; expected a list of names.")
    if len(set(values)) < len(values):
        twice = next(value for value, count in Counter(values).items() if count > 1)
        raise ValueError(f"{name} holds {visible(twice)!r} twice; each row must have its own name.")
    return values


def _rank_biased_overlap(
    old: list[Hashable], new: list[Hashable], p: float
) -> tuple[float, float, float]:
    """The overlap if agreement goes on as at the end, and its least and largest values."""
    depth = min(len(old), len(new))
    seen_old: set[Hashable] = set()
    seen_new: set[Hashable] = set()
    common, weight, least = 0, 1 - p, 0.0
    for d in range(1, depth + 1):
        one, other = old[d - 1], new[d - 1]
        seen_old.add(one)
        seen_new.add(other)
        if one == other:
            common += 1
        else:
            common += (one in seen_new) + (other in seen_old)
        least += weight * common / d
        weight *= p
    # below the end of the shorter list: nothing more in common, as before, or everything
    beyond = weight / (1 - p)
    rest_least = _least_beyond(common, depth, p)
    return (
        min(1.0, least + beyond * common / depth),
        least + rest_least,
        min(1.0, least + beyond * (1 - _not_yet(common, depth, p))),
    )


def _spread_of_overlap(
    old: list[Hashable], new: list[Hashable], p: float, resamples: int, draw: np.random.Generator
) -> float:
    """Standard deviation of the overlap over tables whose rows are drawn from these."""
    place = {name: row for row, name in enumerate(dict.fromkeys([*old, *new]))}
    at_old, at_new = (np.array([place[name] for name in one]) for one in (old, new))
    even = np.full(len(place), 1 / len(place))
    drawn = (draw.multinomial(len(place), even) for _ in range(resamples))
    found = [_overlap_of_counts(at_old, at_new, counts, p) for counts in drawn]
    return float(np.std(found, ddof=1))


def _overlap_of_counts(old: IntArray, new: IntArray, counts: IntArray, p: float) -> float:
    """The overlap of two lists in which row i stands counts[i] times, one copy below the other."""
    in_old, in_new = (_depths_of_copies(order, counts) for order in (old, new))
    depth = int(min(np.sum(counts[order]) for order in (old, new)))
    if depth == 0:
        return 0.0
    # copies meet one to one, at the deeper of their two places
    met = np.maximum(in_old, in_new)[(in_old > 0) & (in_new > 0)]
    common = np.cumsum(np.bincount(met[met <= depth], minlength=depth + 1)[1:])
    steps = np.arange(1, depth + 1)
    inside = float(np.sum((1 - p) * p ** (steps - 1) * common / steps))
    return inside + float(p**depth * common[-1] / depth)


def _depths_of_copies(order: IntArray, counts: IntArray) -> IntArray:
    """At which depth each copy of each row stands in a list; 0 where the list does not have it."""
    size, first_copy = counts[order], np.cumsum(counts) - counts
    number = np.arange(np.sum(size)) - np.repeat(np.cumsum(size) - size, size)
    depths = np.zeros(int(np.sum(counts)), dtype=np.int64)
    depths[np.repeat(first_copy[order], size) + number] = np.arange(1, len(number) + 1)
    return depths


def _around(estimate: float, spread: float, level: float) -> tuple[float, float]:
    """An interval on the scale of the log odds, which stays between 0 and 1."""
    inner = min(max(estimate, 1e-9), 1 - 1e-9)
    half = float(ndtri(0.5 + level / 2)) * spread / (inner * (1 - inner))
    odds = float(logit(inner))
    low, high = expit(odds - half), expit(odds + half)
    return min(float(low), estimate), max(float(high), estimate)


def _least_beyond(common: int, depth: int, p: float) -> float:
    """Weight of the depths beyond the end where only what is common already is common.

    (1 - p) p^(d-1) common / d summed over d > depth, by the series of log(1 - p).
    """
    if common == 0:
        return 0.0
    inside = float(np.sum(p ** np.arange(1, depth + 1) / np.arange(1, depth + 1)))
    return max(0.0, (1 - p) / p * common * (-np.log1p(-p) - inside))


def _not_yet(common: int, depth: int, p: float) -> float:
    """Mean disagreement beyond the end where each new row is common as soon as it can be.

    With m = depth - common rows of each list without a match, the next m depths can match them:
    two more in common with each depth d, so that min(1, (common + 2 (d - depth)) / d) is agreed.
    """
    missing = depth - common
    steps = np.arange(1, missing + 1)
    agreed = (common + 2 * steps) / (depth + steps)
    return float(np.sum((1 - p) * p ** (steps - 1) * (1 - np.minimum(1.0, agreed))))
