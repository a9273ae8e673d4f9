"""Do the rows of today look like those of the training? Drift, alerts and limits.

The training rows are remembered in bins (ten of about equal share for numbers and dates, one for
each frequent category, one for missing values). With shares a_b of the rows then and b_b of the
rows now, the population stability index is

    PSI = sum_b (b_b - a_b) log(b_b / a_b),

zero for equal shares. By custom 0.1 is a shift to look at, and 0.25 a large one. Where nothing has
changed, n N / (n + N) PSI of n rows now and N then is about chi-squared with (bins - 1) degrees of
freedom, which tells drift from the chance of few rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from toprank._numerics import FloatArray
from toprank.inference.shares import clopper_pearson
from toprank.models.card import reference
from toprank.models.errors import ModelError
from toprank.models.model import TableModel

#: Shares whose quantiles part the bins of numbers and dates.
_CUTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
#: Share below which a category is counted with the other rare ones.
_RARE = 0.01
SCORES = "score"


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

    def as_dict(self) -> dict[str, Any]:
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


class DriftWatch:
    """Counts rows into the bins of the training rows, some rows at a time.

    Parameters
    ----------
    model : TableModel
    frame : data frame or Table, optional
        Rows to compare with, in place of the training rows.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from toprank.models import DriftWatch, fit_table
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"age": rng.normal(40, 10, 400), "size": rng.normal(size=400)})
    >>> frame["bought"] = frame.age + rng.normal(0, 8, 400) > 52
    >>> watch = DriftWatch(fit_table(frame, "bought", p=4))
    >>> watch.add(frame.assign(age=frame.age + 15))
    >>> [one.name for one in watch.columns() if one.passes(0.25)]
    ['age']
    """

    def __init__(self, model: TableModel, frame: Any = None):
        self.model = model
        before = model.card.get("reference") if frame is None else _table_reference(model, frame)
        if not before or "rows" not in before:
            raise ModelError("The model's card does not say what the training rows looked like.")
        self.rows = 0
        self._before = before
        shares, scores = before["shares"], {"kind": "number", **before["scores"]}
        self._scores = _Bins.of(SCORES, scores, shares)
        self._columns = [_Bins.of(name, entry, shares) for name, entry in before["columns"].items()]

    def add(self, frame: Any, scores: FloatArray | None = None) -> None:
        """Count some rows; their scores are worked out unless they are given."""
        values, match = self.model.schema.read(frame)
        match.ensure_ok()
        given = self.model.score(frame) if scores is None else scores
        for bins in self._columns:
            bins.add(values[bins.name])
        self._scores.add(given)
        self.rows += len(given)

    def columns(self) -> list[Drift]:
        """The drift of every column, the largest first."""
        found = [bins.drift(self._before["rows"]) for bins in self._columns]
        return sorted(found, key=lambda one: -one.psi)

    def scores(self) -> Drift:
        """The drift of the scores."""
        return self._scores.drift(self._before["rows"])

    def cut_off(self, share: float) -> tuple[float, float]:
        """The score that this share of the training rows was above, and that share exactly.

        The two shares differ where many rows have the same score. Between the quantiles that the
        card holds, the cut-off is interpolated.
        """
        scores = self._before["scores"]
        cut = float(np.interp(1 - share, self._before["shares"], scores["quantiles"]))
        return cut, 1 - float(np.interp(cut, scores["quantiles"], scores["at_most"]))


def _table_reference(model: TableModel, frame: Any) -> dict[str, Any]:
    values, match = model.schema.read(frame)
    match.ensure_ok()
    return reference(model, values, model.numbers(frame))


class _Bins:
    """Rows of one column, counted; the last bin is that of missing values."""

    def __init__(self, name: str, kind: str, before: list[float], missing: float):
        self.name, self.kind, self.missing = name, kind, missing
        self.before = np.array([*before, missing])
        self.counts = np.zeros(len(self.before))

    @staticmethod
    def of(name: str, entry: Mapping[str, Any], shares: list[float]) -> _Bins:
        if entry["kind"] == "category":
            return _Categories(name, entry)
        if entry["kind"] == "text":
            return _Presence(name, entry)
        return _Ranges(name, entry, shares)

    def places(self, values: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """The bin of each value, and where it is missing."""
        raise NotImplementedError

    def add(self, values: NDArray[Any]) -> None:
        places, gaps = self.places(values)
        self.counts[:-1] += np.bincount(places[~gaps], minlength=len(self.counts) - 1)
        self.counts[-1] += np.count_nonzero(gaps)

    def drift(self, rows_before: int) -> Drift:
        rows = float(self.counts.sum())
        used = (self.before > 0) | (self.counts > 0)
        n_bins = int(np.count_nonzero(used))
        # half a row in every bin keeps the logarithms finite
        then = (self.before[used] * rows_before + 0.5) / (rows_before + 0.5 * n_bins)
        now = (self.counts[used] + 0.5) / (rows + 0.5 * n_bins)
        psi = float(np.sum((now - then) * np.log(now / then)))
        size = psi * rows * rows_before / (rows + rows_before)
        chance = float(chi2.sf(size, n_bins - 1)) if n_bins > 1 else 1.0
        share = float(self.counts[-1] / rows) if rows else 0.0
        return Drift(self.name, self.kind, psi, chance, share, self.missing)


class _Ranges(_Bins):
    """Numbers and dates, in ranges of about equal share; dates as seconds since 1970."""

    def __init__(self, name: str, entry: Mapping[str, Any], shares: list[float]):
        wanted = [j for j, share in enumerate(shares) if share in _CUTS]
        known = entry["quantiles"]
        pairs = {known[j]: entry["at_most"][j] for j in wanted} if known else {}
        self.edges = np.array(sorted(pairs))
        there = 1.0 - entry["missing"]
        parts = np.diff([0.0, *(pairs[edge] for edge in self.edges), 1.0]) * there
        super().__init__(name, entry["kind"], list(parts), entry["missing"])

    def places(self, values: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        if values.dtype.kind == "M":
            gaps = np.isnat(values)
            numbers = values.astype("datetime64[us]").astype(np.int64) / 1e6
        else:
            gaps, numbers = np.isnan(values), values
        return np.searchsorted(self.edges, numbers), gaps


class _Categories(_Bins):
    """Words: one bin per frequent word, one for all rare and new words."""

    def __init__(self, name: str, entry: Mapping[str, Any]):
        shares = {word: share for word, share in entry["shares"].items() if word}
        often = [word for word, share in shares.items() if share >= _RARE]
        self.place = {word: j for j, word in enumerate(often)}
        rest = sum(share for word, share in shares.items() if word not in self.place)
        missing = entry["shares"].get("", 0.0)
        super().__init__(name, "category", [*(shares[w] for w in often), rest], missing)

    def places(self, values: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        other = len(self.place)
        found = [self.place.get(word, other) for word in values.tolist()]
        return np.array(found, dtype=np.intp), np.asarray(values == "", dtype=bool)


class _Presence(_Bins):
    """Texts: only whether they are there."""

    def __init__(self, name: str, entry: Mapping[str, Any]):
        super().__init__(name, "text", [1.0 - entry["missing"]], entry["missing"])

    def places(self, values: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        return np.zeros(len(values), dtype=np.intp), np.asarray(values == "", dtype=bool)


@dataclass(frozen=True)
class Limits:
    """The largest drift and change of volume, and the smallest precision, without an alarm."""

    drift: float
    volume_change: float
    precision: float | None


@dataclass(frozen=True)
class Share:
    """A share of rows with its exact (Clopper-Pearson) interval."""

    estimate: float
    low: float
    high: float
    rows: int

    @classmethod
    def of(cls, hits: Any, level: float) -> Share:
        """The share of true values."""
        share = float(np.mean(hits))
        low, high = clopper_pearson(share, len(hits), level)
        return cls(share, float(low), float(high), len(hits))


@dataclass(frozen=True)
class Findings:
    """What was seen, and which limits are exceeded.

    Attributes
    ----------
    rows : int
    scores : Drift
    columns : list of Drift
    cut_off : float
        Rows above it raise an alert.
    share_before : float
        Share of the training rows that did.
    alerts : Share
        Share of these rows that do.
    precision : Share or None
        Share of positives among the alerts that have a label.
    labelled : int
        Rows with a label.
    alarms : list of str
        Limits that are passed, in words.
    """

    rows: int
    scores: Drift
    columns: list[Drift]
    cut_off: float
    share_before: float
    alerts: Share
    precision: Share | None
    labelled: int
    level: float
    alarms: list[str] = field(default_factory=list)


def monitor_model(
    model: TableModel,
    parts: Iterable[tuple[Any, FloatArray]],
    read_labels: Callable[[], Any],
    limits: Limits,
    *,
    reference: Any = None,
    top: float = 0.1,
    level: float = 0.95,
) -> Findings:
    """Count scored rows as they come, and look at the limits.

    Parameters
    ----------
    model : TableModel
    parts : iterable of (table, array)
        Rows and their scores, some rows at a time.
    read_labels : callable
        Returns a table of the same rows with the column of the target; None if there is none.
    limits : Limits
    reference : table, optional
        Rows to compare with, in place of the training rows.
    top : float, default=0.1
        Share of the training rows that raised an alert.
    level : float, default=0.95
        Confidence level of the intervals.
    """
    drift, scores = DriftWatch(model, reference), []
    for rows, of_rows in parts:
        drift.add(rows, of_rows)
        scores.append(of_rows)
    cut, before = drift.cut_off(top)
    above = np.concatenate(scores) > cut
    known, positive = _alert_labels(model, read_labels(), above)
    precision = Share.of(positive, level) if len(positive) else None
    seen = (drift.scores(), drift.columns(), cut, before, Share.of(above, level), precision)
    return Findings(drift.rows, *seen, known, level, list(_alarms(limits, *seen)))


def _alert_labels(model: TableModel, rows: Any, above: Any) -> tuple[int, Any]:
    """How many rows have a label, and the labels of the alerts among them."""
    if rows is None:
        return 0, np.empty(0, dtype=bool)
    known = model.labelled(rows)
    return int(np.count_nonzero(known)), model.labels(rows.take(np.flatnonzero(known & above)))


def _alarms(
    limits: Limits,
    scores: Drift,
    columns: list[Drift],
    cut: float,
    before: float,
    alerts: Share,
    precision: Share | None,
) -> Iterator[str]:
    """The limits that are passed by more than the chance of few rows."""
    for one in (scores, *columns):
        if one.passes(limits.drift, among=len(columns) + 1):
            yield f"the drift of {one.name} is {one.psi:.3g}, allowed is {limits.drift:g}."
    if alerts.low > before * limits.volume_change or alerts.high < before / limits.volume_change:
        yield (
            f"{100 * alerts.estimate:.3g}% of the rows raise an alert, {100 * before:.3g}% did in "
            f"training: the factor may be {limits.volume_change:g}."
        )
    if limits.precision is not None and precision and precision.high < limits.precision:
        yield (
            f"the precision is {precision.estimate:.3g} (at most {precision.high:.3g}), asked is "
            f"{limits.precision:g}."
        )
