"""Do the rows of today look like those of the training? Drift, alerts and limits.

Columns are compared with the training rows. Scores are compared with those that rows got from a
model that had not seen them (`toprank.models.unseen`): a model's scores of its own training rows
are too far apart, and every new table would look like drift.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from toprank._arrays import BoolArray, Frame, JsonObject
from toprank._numerics import FloatArray
from toprank.inference.shares import clopper_pearson
from toprank.models.bins import Bins, Drift, just_below
from toprank.models.card import reference
from toprank.models.errors import ModelError
from toprank.models.expected import ExpectedPrecision, LabelShares, PrecisionError
from toprank.models.model import TableModel
from toprank.models.unseen import UnseenScores

SCORES = "score"
#: Chance that any limit is passed where nothing has changed; shared among columns, scores, alerts.
RISK = 0.01
#: Fewer positives than expected are a reason to retrain where they fall short by this part.
_SHORTFALL = 0.1


class DriftWatch:
    """Counts rows into the bins of the training rows, some rows at a time.

    Parameters
    ----------
    model : TableModel
    frame : data frame or Table, optional
        Rows to compare with, in place of the training rows. Rows that the model was fitted to
        have scores which new rows cannot fairly be compared with; take others.

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

    def __init__(self, model: TableModel, frame: object = None):
        self.model = model
        before = model.card.get("reference") if frame is None else _table_reference(model, frame)
        if not before or "rows" not in before:
            raise ModelError("The model's card does not say what the training rows looked like.")
        self.rows = 0
        self._before = before
        shares, scores = before["shares"], {"kind": "number", **before["scores"]}
        self._scores = Bins.of(SCORES, scores, shares)
        self._columns = [Bins.of(name, entry, shares) for name, entry in before["columns"].items()]
        self._score_rows = int(before.get("scores_rows", before["rows"]))
        self._score_spread = float(before.get("scores_spread", 0.0))
        own = model.card.get("reference") or {}
        self.label_shares = LabelShares.from_card(own.get("scores") or {})

    def add(self, frame: object, scores: FloatArray | None = None) -> None:
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
        """The drift of the scores, against those of rows that the model had not seen."""
        return self._scores.drift(self._score_rows, self._score_spread)

    @property
    def scores_from(self) -> str:
        """Where the scores come from that those of today are compared with.

        "out of fold", "held out", "table" (the one that was given), or "training", in files of
        earlier versions and of models with too few rows of a class: scores of rows that the model
        was fitted to, with which no comparison is fair.
        """
        return str(self._before.get("scores_from", "training"))

    def volume_change(self, alerts: int, share: float, level: float) -> tuple[float, float]:
        """Interval of the share of alerts now over that before; both are of so many rows.

        Given the alerts of both together, those now are binomial. The variance of the scores'
        shares beyond that, as for their drift, makes them count as fewer.

        Parameters
        ----------
        alerts : int
            Alerts among the rows counted.
        share : float
            Share of alerts before.
        level : float
            Confidence level.
        """
        before, rows = self._score_rows, self.rows
        hits = before * share + alerts
        if hits == 0 or rows == 0 or before == 0:
            return 0.0, float("inf")
        counted = hits / (1 + self._score_spread * rows * before / (rows + before))
        ends = clopper_pearson(alerts / hits, counted, level)
        low, high = (float(end) / max(1 - float(end), 1e-300) * before / rows for end in ends)
        return low, high

    def cut_off(self, share: float) -> tuple[float, float]:
        """The score that this share of unseen rows was above in training, and that share exactly.

        The two shares differ where many rows have the same score. Between the quantiles that the
        card holds, the cut-off is interpolated.
        """
        scores = self._before["scores"]
        ends, up_to = scores["quantiles"], scores["at_most"]
        cut = float(np.interp(1 - share, self._before["shares"], ends))
        if "below" in scores:
            ends = [*just_below(ends, scores.get("tie", 0.0)), *ends]
            up_to = [*scores["below"], *up_to]
        order = np.argsort(ends, kind="stable")
        return cut, 1 - float(np.interp(cut, np.array(ends)[order], np.array(up_to)[order]))


def _table_reference(model: TableModel, frame: object) -> JsonObject:
    values, match = model.schema.read(frame)
    match.ensure_ok()
    scores = model.score(frame)
    return reference(model, values, len(scores), UnseenScores(scores, "table"))


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
    def of(cls, hits: BoolArray, level: float) -> Share:
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
        Share of the rows of the training that did, scored by a model that had not seen them.
    alerts : Share
        Share of these rows that do.
    precision : Share or None
        Share of positives among the alerts that have a label.
    labelled : int
        Rows with a label.
    expected : ExpectedPrecision or None
        The precision of the alerts that is to be expected before their labels are there; None
        where there are no alerts.
    off_by : PrecisionError or None
        The same for the alerts that have labels, and what they show.
    retrain : list of str
        Reasons to fit the model again, in words; empty if there is none.
    alarms : list of str
        Limits that are passed, in words.
    notes : list of str
        What could not be compared, and why.
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
    expected: ExpectedPrecision | None = None
    off_by: PrecisionError | None = None
    retrain: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def monitor_model(
    model: TableModel,
    parts: Iterable[tuple[object, FloatArray]],
    read_labels: Callable[[], object],
    limits: Limits,
    *,
    reference: object = None,
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
        Rows to compare with, in place of the training rows; rows that the model was not fitted to.
    top : float, default=0.1
        Share of the rows of the training that raised an alert, scored by a model that had not
        seen them.
    level : float, default=0.95
        Confidence level of the intervals.
    """
    drift, scores = DriftWatch(model, reference), []
    cut, before = drift.cut_off(top)
    expects = _Expectation(model, drift.label_shares, top, level)
    for rows, of_rows in parts:
        drift.add(rows, of_rows)
        scores.append(of_rows)
        expects.add(rows, of_rows, cut)
    above = np.concatenate(scores) > cut
    known, labelled, positive = _alert_labels(model, read_labels(), above)
    # where only some positives have a label, those labels say nothing of the other alerts
    one_sided = expects.open_labels and bool(np.all(positive))
    precision = Share.of(positive, level) if len(positive) and not one_sided else None
    found = Findings(
        drift.rows,
        drift.scores(),
        drift.columns(),
        cut,
        before,
        Share.of(above, level),
        precision,
        known,
        level,
        expects.of_alerts(),
        None,
    )
    on_labelled = expects.of_alerts(labelled)
    if precision is not None and on_labelled is not None:
        found = replace(found, off_by=PrecisionError.of(on_labelled, positive))
    if one_sided:
        found.notes.append(_ONE_SIDED)
    fair = drift.scores_from != "training"
    found.alarms.extend(_alarms(limits, found, drift if fair else None))
    if not fair:
        found.notes.append(_UNFAIR)
    if drift.label_shares is None and found.expected is not None:
        found.notes.append(_BY_OWN_PROBABILITIES)
    found.retrain.extend(_retrain_reasons(limits, found, fair))
    return found


class _Expectation:
    """Collects what the precision of alerts is expected from: their scores, or probabilities."""

    def __init__(self, model: TableModel, shares: LabelShares | None, top: float, level: float):
        self._model, self._shares, self._level = model, shares, level
        self._training_alerts = top * float(model.card["training"]["rows"])
        # shares of labelled positives are not those of positives
        self.open_labels = bool(model.card["training"].get("unlabelled"))
        self._parts: list[FloatArray] = []

    def add(self, rows: Frame, scores: FloatArray, cut: float) -> None:
        above = np.flatnonzero(scores > cut)
        if self._shares is not None or not len(above):
            self._parts.append(scores[above])
        else:
            self._parts.append(self._model.predict_proba(rows.take(above))[:, 1])

    def of_alerts(self, which: BoolArray | None = None) -> ExpectedPrecision | None:
        """The precision to expect of the alerts, or of some of them; None where there are none."""
        values = np.concatenate(self._parts) if self._parts else np.empty(0)
        values = values if which is None else values[which]
        if not len(values) or self.open_labels:
            return None
        if self._shares is not None:
            return self._shares.expect(values, self._level)
        return ExpectedPrecision.of_probabilities(values, self._training_alerts, self._level)


def _alert_labels(
    model: TableModel, rows: Frame | None, above: BoolArray
) -> tuple[int, BoolArray, BoolArray]:
    """How many rows have a label, which alerts do, and their labels."""
    if rows is None:
        return 0, np.zeros(np.count_nonzero(above), dtype=bool), np.empty(0, dtype=bool)
    known = model.labelled(rows)
    positive = model.labels(rows.take(np.flatnonzero(known & above)))
    return int(np.count_nonzero(known)), known[above], positive


#: Why scores raise no alarm.
_UNFAIR = (
    "the model knows only the scores of the rows that it was fitted to, which new rows cannot be "
    "compared with: the drift of the scores and the number of alerts raise no alarm. Give a "
    "reference table of other rows, or fit the model again to more rows."
)


#: Why there is no precision where the model was fitted to positives and rows without a label.
_ONE_SIDED = (
    "only positives have a label here, as in the training: their share among labelled alerts is "
    "not the precision. Measure with `toprank evaluate --unlabelled`."
)


#: Where the expected precision comes from if the card has no counts of labels.
_BY_OWN_PROBABILITIES = (
    "the precision to expect comes from the model's own probabilities, since the model does not "
    "remember labels of rows that it had not seen."
)


def _retrain_reasons(limits: Limits, found: Findings, fair: bool) -> Iterator[str]:
    """Why to fit the model again: labels that say so, or rows that have moved away from it."""
    off, least = found.off_by, limits.precision
    if off is not None and off.chance < RISK and off.found < (1 - _SHORTFALL) * off.expected:
        yield (
            f"of {off.rows} alerts with labels {100 * off.found:.3g}% are positive, "
            f"{100 * off.expected:.3g}% were expected: a score no longer means what it did."
        )
    elif least is not None and found.precision is not None and found.precision.high < least:
        yield f"the precision is below the {least:g} that is asked for."
    expected = found.expected
    if found.precision is None and least is not None and expected and expected.high < least:
        yield (
            f"without labels, a precision of {expected.estimate:.3g} is expected (at most "
            f"{expected.high:.3g}), asked is {least:g}."
        )
    if fair and found.scores.passes(limits.drift, len(found.columns) + 2, RISK):
        yield "the scores have drifted beyond the limit: these rows are not those of the training."


def _alarms(limits: Limits, found: Findings, drift: DriftWatch | None) -> Iterator[str]:
    """The limits that are passed by more than the chance of few rows.

    The scores and the number of alerts are looked at where `drift` is given. Where nothing has
    changed, all limits of drift and volume together are passed with a chance of at most `RISK`.
    """
    among = len(found.columns) + 2
    for one in (*([] if drift is None else [found.scores]), *found.columns):
        if one.passes(limits.drift, among, RISK):
            yield f"the drift of {one.name} is {one.psi:.3g}, allowed is {limits.drift:g}."
    if drift is not None and _volume_moved(limits.volume_change, found, drift, RISK / among):
        yield (
            f"{100 * found.alerts.estimate:.3g}% of the rows raise an alert, "
            f"{100 * found.share_before:.3g}% did in training: the factor may be "
            f"{limits.volume_change:g}."
        )
    precision = found.precision
    if limits.precision is not None and precision and precision.high < limits.precision:
        yield (
            f"the precision is {precision.estimate:.3g} (at most {precision.high:.3g}), asked is "
            f"{limits.precision:g}."
        )


def _volume_moved(limit: float, found: Findings, drift: DriftWatch, risk: float) -> bool:
    """Whether alerts are more, or fewer, by a factor beyond the limit, and not by chance."""
    alerts = round(found.alerts.estimate * found.alerts.rows)
    low, high = drift.volume_change(alerts, found.share_before, 1 - risk)
    more = found.alerts.estimate > limit * found.share_before and low > 1
    fewer = found.alerts.estimate < found.share_before / limit and high < 1
    return more or fewer
