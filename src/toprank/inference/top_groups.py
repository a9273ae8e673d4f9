"""Groups in the first k rows: the share of the list, the precision and the recall of each."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

from toprank._arrays import BoolArray, IntArray, JsonObject
from toprank._html import table_html
from toprank._numerics import FloatArray
from toprank._text import visible
from toprank.inference.result import check_resamples
from toprank.inference.shares import check_level, clopper_pearson
from toprank.metrics.lists import Lists
from toprank.metrics.order import RankedList
from toprank.pairs import check_labels, check_scores, group_labels, split_classes

#: What is measured of each group, and what the share is of.
MEASURES = {
    "selected": "its rows that are in the list",
    "precision": "its rows in the list that are positive",
    "recall": "its positives that are in the list",
}
#: Groups that are compared at most.
_MOST_GROUPS = 1000


@dataclass(frozen=True)
class GroupAtTop:
    """One group in the first k rows.

    Attributes
    ----------
    name
        The group.
    rows, positives : int
        How many it has in all.
    listed, found : float
        How many of its rows, and of its positives, are in the list; rows that tie at the cut count
        by their share of the places left.
    share_of_list, share_of_rows : float
        Its share of the list, and of all rows.
    selected, precision, recall : tuple of three floats
        The estimate and the ends of its interval: the share of its rows that is in the list, the
        share of positives among those, and the share of its positives that is in the list. NaN
        where there is no row to count.
    """

    name: object
    rows: int
    positives: int
    listed: float
    found: float
    share_of_list: float
    share_of_rows: float
    selected: tuple[float, float, float]
    precision: tuple[float, float, float]
    recall: tuple[float, float, float]


@dataclass(frozen=True)
class TopGroups:
    """The groups in the first k rows, and whether they differ by more than chance; print it.

    Attributes
    ----------
    groups : tuple of GroupAtTop
        The largest first.
    p_values : dict
        For "selected", "precision" and "recall": the p-value of the hypothesis that it is the same
        in all groups.
    adjusted_p_values : dict
        The same after Holm's correction for the three of them.
    list_length : int or float
        The length of the list, as it was given.
    level : float
        Confidence level of the intervals, each for itself.
    """

    groups: tuple[GroupAtTop, ...]
    p_values: dict[str, float]
    adjusted_p_values: dict[str, float]
    list_length: int | float
    level: float

    def as_dict(self) -> JsonObject:
        """Return the attributes as a dictionary."""
        return asdict(self)

    def lines(self) -> list[list[str]]:
        """The cells of the printed table: a line of names, then one line per group."""
        head = ["group", "rows", "in the list", *MEASURES]
        return [
            head,
            *(
                [
                    visible(one.name),
                    str(one.rows),
                    f"{one.listed:.4g}",
                    *(_cell(getattr(one, measure)) for measure in MEASURES),
                ]
                for one in self.groups
            ),
            ["same in all? p", "", "", *(f"{self.p_values[name]:.3g}" for name in MEASURES)],
        ]

    def __str__(self) -> str:
        table = self.lines()
        widths = [max(len(row[j]) for row in table) for j in range(len(table[0]))]
        shown = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
            for row in table
        ]
        return "\n".join([f"First {self.list_length:g}, {100 * self.level:g}% intervals", *shown])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, *body = self.lines()
        caption = f"First {self.list_length:g}, {100 * self.level:g}% intervals"
        return table_html(body, head=head, caption=caption)


def _cell(values: tuple[float, float, float]) -> str:
    estimate, low, high = values
    return "" if np.isnan(estimate) else f"{estimate:.3g} [{low:.3g}, {high:.3g}]"


def top_groups(
    y: ArrayLike,
    s: ArrayLike,
    groups: ArrayLike,
    k: int | float,
    *,
    level: float = 0.95,
    pos_label: object = None,
    n_resamples: int = 9999,
    random_state: int | np.random.Generator | None = 0,
) -> TopGroups:
    """Share, precision and recall of each group in the first k rows, with intervals and a test.

    Parameters
    ----------
    y, s : array-like of shape (n,)
        Labels and scores.
    groups : array-like of shape (n,)
        The group of each row.
    k : int or float
        Length of the list: a count, or a share of the rows.
    level : float, default=0.95
        Confidence level of each interval.
    pos_label : label, optional
        The positive class; by default the larger of the two labels.
    n_resamples : int, default=9999
        Draws of the tests.
    random_state : int, Generator or None, default=0

    Returns
    -------
    TopGroups
        ``.groups .p_values``; prints as a table.

    Notes
    -----
    The intervals are exact (Clopper-Pearson) for rows of one group that are independent, given the
    score of the cut. The tests give the rows of the list (for "selected" and "recall") or its
    positives (for "precision") to the groups at random, as often as they have rows, and compare
    the sum of squared deviations over expected counts. A difference between groups is a fact
    about this list. Whether it is right is another question, and no number here answers it.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.inference import top_groups
    >>> rng = np.random.default_rng(0)
    >>> region = rng.choice(["north", "south"], 2000, p=[0.3, 0.7])
    >>> y = rng.random(2000) < 0.1
    >>> s = rng.normal(size=2000) + y + 0.5 * (region == "north")
    >>> found = top_groups(y, s, region, 200)
    >>> [(one.name, one.rows, one.listed) for one in found.groups]
    [('south', 1396, 97.0), ('north', 604, 103.0)]
    >>> found.p_values["selected"] < 0.001, round(found.p_values["precision"], 3)
    (True, 0.118)
    """
    check_level(level)
    check_resamples(n_resamples)
    labels, scores = check_labels(y), check_scores(s, name="s")
    n = len(scores)
    if len(labels) != n:
        raise ValueError(f"y has {len(labels)} entries, expected one per row: {n}.")
    positive = split_classes(labels, pos_label=pos_label)[1]
    names = group_labels(groups, n)
    if names is None:
        raise ValueError("groups is None; expected the group of each row.")
    distinct, codes = np.unique(
        names.astype(str) if names.dtype == object else names, return_inverse=True
    )
    if not 2 <= len(distinct) <= _MOST_GROUPS:
        raise ValueError(
            f"groups has {len(distinct)} different values, expected from 2 to {_MOST_GROUPS}."
        )
    inside = share_listed(positive, scores, k)
    counts = _Counts.of(codes, positive, inside, len(distinct))
    found = [counts.describe(code, name, level) for code, name in enumerate(distinct.tolist())]
    rng = np.random.default_rng(random_state)
    p_values = {
        "selected": _same_share(counts.rows, counts.listed, n_resamples, rng),
        "precision": _same_share(counts.listed, counts.found, n_resamples, rng),
        "recall": _same_share(counts.positives, counts.found, n_resamples, rng),
    }
    found.sort(key=lambda one: -one.rows)
    return TopGroups(tuple(found), p_values, _holm(p_values), k, level)


def share_listed(positive: BoolArray, scores: FloatArray, k: int | float) -> FloatArray:
    """How much of each row is in the first k: 1, 0, or a share where rows tie at the cut."""
    ranked = RankedList.rank(positive, scores)
    depth = float(Lists.of_one(ranked).sizes(k)[0])
    before = np.concatenate(([0.0], ranked.places[1:]))[:-1] if len(ranked.scores) else np.empty(0)
    held = ranked.places[1:] - before
    kept = np.clip((depth - before) / held, 0.0, 1.0)
    tie = np.searchsorted(-ranked.scores, -scores)
    return kept[tie]


@dataclass(frozen=True)
class _Counts:
    """Rows, positives, rows in the list and positives in it, by group."""

    rows: FloatArray
    positives: FloatArray
    listed: FloatArray
    found: FloatArray

    @classmethod
    def of(cls, codes: IntArray, positive: BoolArray, inside: FloatArray, count: int) -> _Counts:
        weights = (None, positive, inside, inside * positive)
        return cls(*(np.bincount(codes, one, count).astype(np.float64) for one in weights))

    def describe(self, code: int, name: object, level: float) -> GroupAtTop:
        rows, positives, listed, found = (
            float(one[code]) for one in (self.rows, self.positives, self.listed, self.found)
        )
        return GroupAtTop(
            name,
            int(rows),
            int(positives),
            listed,
            found,
            listed / float(np.sum(self.listed)),
            rows / float(np.sum(self.rows)),
            _share(listed, rows, level),
            _share(found, listed, level),
            _share(found, positives, level),
        )


def _share(hits: float, trials: float, level: float) -> tuple[float, float, float]:
    if trials <= 0:
        return np.nan, np.nan, np.nan
    share = min(1.0, hits / trials)
    low, high = clopper_pearson(share, trials, level)
    return share, float(low), float(high)


def _same_share(
    trials: FloatArray, hits: FloatArray, n_resamples: int, rng: np.random.Generator
) -> float:
    """p-value of the hypothesis that hits fall on the trials of all groups alike."""
    whole = np.rint(trials).astype(np.int64)
    drawn = min(round(float(np.sum(hits))), int(np.sum(whole)))
    if drawn == 0 or drawn == int(np.sum(whole)) or np.count_nonzero(whole) < 2:
        return 1.0
    expected = whole * (drawn / np.sum(whole))
    there = expected > 0

    def deviation(counts: FloatArray) -> FloatArray:
        return np.sum((counts[..., there] - expected[there]) ** 2 / expected[there], axis=-1)

    draws = rng.multivariate_hypergeometric(whole, drawn, size=n_resamples, method="marginals")
    seen = float(deviation(np.asarray(hits)))
    as_far = np.count_nonzero(deviation(draws.astype(np.float64)) >= seen - 1e-9)
    return float((1 + as_far) / (1 + n_resamples))


def _holm(p_values: dict[str, float]) -> dict[str, float]:
    adjusted, largest = {}, 0.0
    for place, name in enumerate(sorted(p_values, key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[name]))
        adjusted[name] = largest
    return {name: adjusted[name] for name in p_values}
