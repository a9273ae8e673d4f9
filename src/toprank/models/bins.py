"""Rows counted into bins, then and now, and how far they moved.

The training rows are remembered in bins (ten of about equal share for numbers and dates, one for
each frequent category, one for missing values). With shares a_b of the rows then and b_b of the
rows now, the population stability index is

    PSI = sum_b (b_b - a_b) log(b_b / a_b),

zero for equal shares. By custom 0.1 is a shift to look at, and 0.25 a large one.

Where nothing has changed, either table is a draw of rows from both together. n N / (n + N) PSI of
n rows now and N then is then about chi-squared with (bins - 1) degrees of freedom; where bins hold
few rows its mean and variance are others, and are found by drawing (`_chance`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2

from toprank._arrays import AnyArray, FloatArray, JsonObject

#: Shares whose quantiles part the bins of numbers and dates.
_CUTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
#: Share of all rows, then and now, below which a category is counted with the other rare ones.
_RARE = 0.01
#: New words of one column that are told apart; those beyond count with the rare ones.
_MOST_NEW = 10_000
#: Stands for the texts that are not told apart.
_OTHER_TEXTS = "\0others"
#: Draws that show how an index varies where nothing has changed.
_DRAWS = 1_000
#: Chances between these decide, and are found by so many draws; the last share of them is the tail.
_SURE, _NEAR, _MORE_DRAWS, _TAIL = 1e-8, 0.01, 100_000, 0.001
#: Rows from which on NumPy has no such draws.
_MANY = 900_000_000


@dataclass(frozen=True)
class Drift:
    """How far one column, or the scores, moved.

    Attributes
    ----------
    name : str
        The column; "score" for the scores.
    kind : str
    psi : float
        The population stability index.
    p_value : float
        How likely an index as large is where nothing has changed.
    missing : float
        Share of the rows in which the value is missing.
    missing_before : float
        The same in training.
    """

    name: str
    kind: str
    psi: float
    p_value: float
    missing: float
    missing_before: float

    def as_dict(self) -> JsonObject:
        """Return the attributes as a dictionary."""
        return asdict(self)

    def passes(self, limit: float, among: int = 1, risk: float = 0.01) -> bool:
        """Whether the index is above the limit, and not by the chance of few rows.

        Parameters
        ----------
        limit : float
            The largest index that is allowed.
        among : int, default=1
            How many columns are looked at; the risk is shared among them (Bonferroni).
        risk : float, default=0.01
            Chance of a false alarm where nothing has changed.
        """
        return self.psi > limit and self.p_value < risk / max(1, among)


class Bins(ABC):
    """Rows of one column, counted; the last bin is that of missing values."""

    def __init__(self, name: str, kind: str, before: list[float], missing: float):
        self.name, self.kind, self.missing = name, kind, missing
        self.before = np.array([*before, missing])
        self.counts = np.zeros(len(self.before))
        self.rows_before: int | None = None  # where fewer than all stand for the column

    @staticmethod
    def of(name: str, entry: JsonObject, shares: list[float]) -> Bins:
        if entry["kind"] == "category":
            return _Categories(name, entry)
        if entry["kind"] == "text":
            return _Texts(name, entry) if entry.get("texts") else _Presence(name, entry)
        return _Ranges(name, entry, shares)

    @abstractmethod
    def places(self, values: AnyArray) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """The bin of each value, and where it is missing."""

    def add(self, values: AnyArray) -> None:
        places, gaps = self.places(values)
        self.counts[:-1] += np.bincount(places[~gaps], minlength=len(self.counts) - 1)
        self.counts[-1] += np.count_nonzero(gaps)

    def tables(self, rows_before: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How many rows each bin held then, and holds now."""
        return np.asarray(self.before * rows_before), self.counts

    def drift(self, rows_before: int, spread: float = 0.0) -> Drift:
        """How far the column moved.

        Parameters
        ----------
        rows_before : int
        spread : float, default=0.0
            How much more the shares vary than by the chance of few rows: the variance of a share
            is 1 + rows times as large.
        """
        rows_before = rows_before if self.rows_before is None else self.rows_before
        then, now = self.tables(rows_before)
        used = (then > 0) | (now > 0)
        then, now = then[used], now[used]
        rows = float(now.sum())
        psi = float(population_stability_index(then, now))
        chance = _chance(then, now, psi, spread) if rows and rows_before else 1.0
        share = float(self.counts[-1] / rows) if rows else 0.0
        return Drift(self.name, self.kind, psi, chance, share, self.missing)


def population_stability_index(then: np.ndarray, now: np.ndarray) -> FloatArray | float:
    """Population stability index of counts, over the last axis.

    Half a row in every bin keeps the logarithms finite.
    """
    a, b = then + 0.5, now + 0.5
    a = a / a.sum(axis=-1, keepdims=True)
    b = b / b.sum(axis=-1, keepdims=True)
    return np.sum((b - a) * np.log(b / a), axis=-1)


def _chance(then: FloatArray, now: FloatArray, psi: float, spread: float) -> float:
    """How likely an index as large is where nothing has changed.

    The rows now are then a draw, without replacement, from the rows of both tables. The index of
    such draws has a mean and a variance; the law is a chi-squared one, scaled to have both.
    Where bins hold few rows its tail is too light, and a chance that decides takes more draws.
    `spread` is what shares vary by beyond that.
    """
    if len(then) < 2:
        return 1.0
    both, n, rows_before = then + now, float(now.sum()), float(then.sum())
    wider = 1 + spread * n * rows_before / (n + rows_before)
    fewest = float(np.min(both)) * min(n, rows_before) / (n + rows_before)
    if both.sum() < _MANY and fewest < 100:  # beyond that the limit is exact enough
        drawn = _draw(both, n, _DRAWS)
        mean, variance = float(np.mean(drawn)), float(np.var(drawn))
    else:
        scale = (n + rows_before) / n / rows_before
        mean, variance = scale * (len(then) - 1), 2 * scale**2 * (len(then) - 1)
        drawn = np.empty(0)
    if not mean > 0 or not variance > 0:
        return 1.0
    unit = variance / (2 * mean)
    chance = float(chi2.sf(psi / (unit * wider), mean / unit))
    if len(drawn) and _SURE < chance < _NEAR:
        return _tail(_draw(both, n, _MORE_DRAWS), psi / wider)
    return chance


def _draw(both: FloatArray, n: float, draws: int) -> FloatArray:
    """The index of so many draws of n rows from those of both tables."""
    whole = np.rint(both).astype(np.int64)
    drawn = np.random.default_rng(0).multivariate_hypergeometric(
        whole, min(round(n), int(whole.sum())), draws, method="marginals"
    )
    return np.asarray(population_stability_index(whole - drawn, drawn))


def _tail(drawn: FloatArray, psi: float) -> float:
    """The share of draws with an index as large; far out their tail is taken for exponential."""
    cut = float(np.quantile(drawn, 1 - _TAIL))
    beyond = drawn[drawn > cut] - cut
    if psi <= cut or not len(beyond):
        return float(np.mean(drawn >= psi * (1 - 1e-9)))
    return len(beyond) / len(drawn) * float(np.exp(-(psi - cut) / np.mean(beyond)))


def just_below(values: ArrayLike, tie: float = 0.0) -> FloatArray:
    """The largest numbers that do not count as equal to quantiles, which are the ends of ties."""
    ends = np.asarray(values, dtype=np.float64)
    return np.minimum(ends - 2 * tie, np.nextafter(ends, -np.inf))


class _Ranges(Bins):
    """Numbers and dates, in ranges of about equal share; dates as seconds since 1970.

    A value of a tenth of the rows has a bin of its own, which rows below it are told apart from.
    """

    def __init__(self, name: str, entry: JsonObject, shares: list[float]):
        wanted = [j for j, share in enumerate(shares) if share in _CUTS]
        known, at_most = entry["quantiles"], entry["at_most"]
        # models of earlier versions do not say it
        below = entry["below"] if "below" in entry else at_most
        pairs = {}
        for j in wanted if known else ():
            pairs[known[j]] = at_most[j]
            if at_most[j] - below[j] >= _CUTS[0]:
                pairs[float(just_below(known[j], entry.get("tie", 0.0)))] = below[j]
        self.edges = np.array(sorted(pairs))
        there = 1.0 - entry["missing"]
        parts = np.diff([0.0, *(pairs[edge] for edge in self.edges), 1.0]) * there
        super().__init__(name, entry["kind"], list(np.maximum(parts, 0.0)), entry["missing"])

    def places(self, values: np.ndarray) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        if values.dtype.kind == "M":
            gaps = np.isnat(values)
            numbers = values.astype("datetime64[us]").astype(np.int64) / 1e6
        else:
            gaps, numbers = np.isnan(values), values
        return np.searchsorted(self.edges, numbers), gaps


class _Categories(Bins):
    """Words: one bin per frequent word, one for all rare words.

    Which words are frequent is decided by the rows then and now together: words that were frequent
    then by chance are rarer now, although nothing has changed.
    """

    def __init__(self, name: str, entry: JsonObject):
        self.shares = {word: share for word, share in entry["shares"].items() if word}
        self.now: Counter[str] = Counter()
        missing = entry["shares"].get("", 0.0)
        super().__init__(name, "category", [1.0 - missing], missing)

    def add(self, values: AnyArray) -> None:
        super().add(values)
        for word, count in Counter(values.tolist()).items():
            if word in self.shares or word in self.now or len(self.now) < _MOST_NEW:
                self.now[word] += count

    def places(self, values: AnyArray) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        return np.zeros(len(values), dtype=np.intp), np.asarray(values == "", dtype=bool)

    def tables(self, rows_before: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        there, gaps = self.counts
        words = sorted({*self.shares, *self.now} - {""})
        then = np.array([self.shares.get(word, 0.0) for word in words]) * rows_before
        now = np.array([self.now[word] for word in words], dtype=np.float64)
        often = then + now >= _RARE * (rows_before + there + gaps)
        often |= np.array([word == _OTHER_TEXTS for word in words], dtype=bool)
        last = np.array([[self.missing * rows_before, gaps]])
        rare_then = max(0.0, (1 - self.missing) * rows_before - then[often].sum())
        rest = np.array([[rare_then, there - now[often].sum()]])
        both = np.vstack([np.column_stack([then, now])[often], rest, last])
        both[both < 1e-6] = 0.0  # what rounding leaves of no rows
        return both[:, 0], both[:, 1]


class _Texts(_Categories):
    """Texts some of which repeat: the frequent ones as categories, and all others as one more.

    Which are frequent was found on other rows than the shares: a text that half of the rows do not
    hold is as likely in the other half as in new ones.
    """

    def __init__(self, name: str, entry: JsonObject):
        others = max(0.0, 1.0 - sum(entry["texts"].values()))
        super().__init__(name, {"shares": {**entry["texts"], _OTHER_TEXTS: others}})
        self.kind, self.rows_before = "text", int(entry.get("rows", 0))

    def add(self, values: AnyArray) -> None:
        known = {**dict.fromkeys(self.shares, True), "": True}
        words = [word if word in known else _OTHER_TEXTS for word in values.tolist()]
        super().add(np.array(words, dtype=object))


class _Presence(Bins):
    """Texts none of which repeats: only whether they are there."""

    def __init__(self, name: str, entry: JsonObject):
        super().__init__(name, "text", [1.0 - entry["missing"]], entry["missing"])

    def places(self, values: AnyArray) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        return np.zeros(len(values), dtype=np.intp), np.asarray(values == "", dtype=bool)
