"""Rows of a table: those that a model is trained on, and scored ones with their metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedShuffleSplit

from toprank._arrays import AnyArray, BoolArray, Frame
from toprank._numerics import FloatArray
from toprank._text import counted
from toprank.folds import Fold
from toprank.inference import Interval, interval
from toprank.metrics.metric import LOWER, LOWER_AT_RANDOM, SAME_AT_RANDOM, UPPER_AT_RANDOM
from toprank.metrics.registry import METRICS
from toprank.models import frames
from toprank.models.columns import Unreadable, as_dates, as_numbers, as_words, is_missing
from toprank.models.errors import ModelError
from toprank.models.kinds import find_kind
from toprank.models.schema import Schema, Target
from toprank.models.unlabelled import read_unlabelled
from toprank.pairs import Rows
from toprank.pairs.propensity import LabelWeights, label_weights
from toprank.pairs.row_columns import check_groups, repetition_counts
from toprank.tuning import TimeOrderedSplit, folds_of

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

#: What a metric is where rows without a label count as negatives.
_COUNTED_AS_NEGATIVES = {
    LOWER: "at most the true value",
    LOWER_AT_RANDOM: "at most the true value, up to chance",
    UPPER_AT_RANDOM: "at least the true value, up to chance",
    SAME_AT_RANDOM: "right on average where labels are at random",
}
#: Share of the rows held out, to say how good the ranking is.
_SHARE = 0.2
#: Rows of each class that a part must have at least.
_FEWEST = 2


@dataclass(frozen=True)
class TrainingRows(Rows):
    """Columns by name and, for each row, whether it is positive, its weight, group and time.

    ``propensity`` is the probability that the row's label was seen, where that is known;
    ``unlabelled`` says which rows have no label, where only some positives have one.
    """

    time: np.ndarray | None = None
    propensity: FloatArray | None = None
    unlabelled: NDArray[np.bool_] | None = None

    @classmethod
    def read(cls, frame: object, schema: Schema, target: Target) -> TrainingRows:
        """Read the rows of positive weight of a table; ModelError where they cannot be read."""
        columns, match = schema.read(frame)
        match.ensure_ok("The table cannot be used")
        rows = cls(
            columns,
            target.of(frames.column(frame, target.column)),
            read_weight(frame, schema.weight),
            read_groups(frame, schema.groups),
            _read_time(frame, schema.time),
            read_propensity(frame, schema.propensity),
            read_unlabelled(frame, target.column),
        )
        return rows.present()

    @property
    def label_weights(self) -> LabelWeights | None:
        """The weights by propensity, as fits take them; None where all labels were seen."""
        if self.propensity is None:
            return None
        return label_weights(self.propensity, self.weight)

    @property
    def fit_weight(self) -> FloatArray | None:
        """The weights that a ranker is fitted with: repetition counts, over the propensities."""
        found = self.label_weights
        return self.weight if found is None else found.weight

    @property
    def n_positive(self) -> int:
        """How many rows are positive."""
        return int(np.count_nonzero(self.y))

    def folds(self, n_folds: int = 5) -> list[Fold]:
        """Folds in the order of time, with whole groups, or stratified.

        With times and groups both, a fold follows time, and rows whose group is tested are not
        trained on.
        """
        groups = None if self.time is not None else self.groups
        folds = folds_of(n_folds, self.y, groups=groups, time=self.time)
        return [(self._without_groups_of(train, test), test) for train, test in folds]

    def held_out(self, random_state: int) -> Fold | None:
        """Rows to train on and rows held out: the last in time, whole groups, or at random.

        None if a class has too few rows for it.
        """
        parts = self._split(random_state)
        if parts is None:
            return None
        train, test = self._without_groups_of(*parts), parts[1]
        if any(self.take(rows)._rarest < _FEWEST for rows in (train, test)):
            return None
        return np.sort(train), np.sort(test)

    def _without_groups_of(self, train: AnyArray, test: AnyArray) -> np.ndarray:
        """The rows to train on that share no group with those tested."""
        if self.groups is None:
            return train
        return train[~np.isin(self.groups[train], self.groups[test])]

    @property
    def _rarest(self) -> int:
        """Rows of the rarer class."""
        return min(self.n_positive, len(self) - self.n_positive)

    def _split(self, random_state: int) -> Fold | None:
        size = max(1, round(_SHARE * len(self)))
        if self._rarest < 2 * _FEWEST:
            return None
        if self.time is not None:
            return self._last_in_time(self.time, size)
        if self.groups is not None:
            if len(np.unique(self.groups)) < 5:
                return None
            splitter: BaseEstimator = StratifiedGroupKFold(
                5, shuffle=True, random_state=random_state
            )
            return next(splitter.split(self.y, self.y, self.groups))
        splitter = StratifiedShuffleSplit(
            1, test_size=max(size, 2 * _FEWEST), random_state=random_state
        )
        return next(splitter.split(self.y, self.y))

    def _last_in_time(self, time: AnyArray, size: int) -> Fold | None:
        if len(np.unique(time)) < 3:
            return None
        try:
            *_, last = TimeOrderedSplit(2, test_size=size).split(self.y, groups=time)
        except ValueError:  # too few distinct times
            return None
        return last


def learn_table(
    frame: object,
    target: str,
    positive: object,
    drop: Sequence[str],
    roles: Mapping[str, str | None],
    **reading: Any,
) -> tuple[Schema, Target]:
    """Find out what the columns of a training table hold, and which label belongs at the top.

    Parameters
    ----------
    frame : data frame or Table
    target : str
        Column of the labels.
    positive : value, optional
        The label that belongs at the top, where that is not plain.
    drop : sequence of str
        Columns to leave out.
    roles : mapping
        Names of columns by what they are for: ``id``, ``time``, ``weight``, ``groups``,
        ``propensity``.
    **reading
        ``as_text``, ``as_number``, ``clip``, ``tidy``, ``pool``: as in `fit_table`.
    """
    kept = check_roles(frame, target, roles)
    reading = {name: (one,) if isinstance(one, str) else one for name, one in reading.items()}
    tidy = tuple(reading.pop("tidy", ()))
    known = Target.learn(target, frames.column(kept, target), positive, tidy=target in tidy)
    reading["tidy"] = tuple(name for name in tidy if name != target)
    given: dict[str, Any] = {**roles, **reading}
    schema = Schema.learn(kept, drop, target=target, **given)
    require_features(schema)
    return schema, known


def reuse_table(
    frame: object,
    target: str,
    positive: object,
    roles: Mapping[str, str | None],
    schema: Schema,
    known: Target,
) -> tuple[Schema, Target]:
    """Return the schema and the target of an earlier model, for another training table."""
    frame = check_roles(frame, target, roles)
    if positive is not None:
        values = frames.column(frame, target)
        named = Target.learn(target, values, positive, tidy=known.tidy).positive
        if named != known.positive:
            raise ModelError(
                f"positive={positive!r}: the model to start from ranks {known.positive!r} at the "
                "top."
            )
    return schema.with_roles(frame, target, roles), known.with_column(target)


def check_roles(frame: object, target: str, roles: Mapping[str, str | None]) -> Frame:
    """Return the rows of positive weight; ModelError if columns cannot have these roles."""
    frames.require_columns(frame, {"target": target, **roles})
    roles_by_column(target, roles)
    weight = roles.get("weight")
    kept = drop_zero_weight(frame, weight)
    if frames.n_rows(kept) == 0:
        raise ModelError(f"The table has no rows{' of positive weight' if weight else ''}.")
    return kept


def roles_by_column(target: str, roles: Mapping[str, str | None]) -> dict[str, str]:
    """Return the role of each column that has one; ModelError if a column has two."""
    role_of = {target: "target"}
    for role, name in roles.items():
        if name in role_of:
            raise ModelError(f"{role}={name!r}: that column is the {role_of[name]} already.")
        if name is not None:
            role_of[name] = role
    return role_of


def require_features(schema: Schema) -> None:
    """Refuse a schema without a column to rank by, and say why each was left out."""
    if not schema.columns:
        why = "; ".join(f"{name!r}: {reason}" for name, reason in schema.left_out.items())
        raise ModelError(f"There is no column to rank by. {why}".strip())


def drop_zero_weight(frame: object, weight: str | None) -> Frame:
    """Return the rows of a table whose weight is not zero."""
    if weight is None or weight not in frames.names_of(frame):
        return frame
    kept = read_weight(frame, weight)
    return frame if kept is None or np.all(kept > 0) else frames.take(frame, np.flatnonzero(kept))


def read_weight(frame: object, name: str | None) -> FloatArray | None:
    """Return a column of repetition counts; ModelError if they are not."""
    if name is None:
        return None
    try:
        weight = as_numbers(frames.column(frame, name))
        return repetition_counts(weight, len(weight))
    except Unreadable as error:
        raise ModelError(f"weight={name!r}: {error}.") from error
    except ValueError as error:
        reason = str(error).replace("sample_weight", f"the column {name!r}")
        raise ModelError(f"weight={name!r}: {reason}") from error


def read_propensity(frame: object, name: str | None) -> FloatArray | None:
    """Return a column of probabilities that labels were seen; ModelError if they are not."""
    if name is None:
        return None
    try:
        seen = as_numbers(frames.column(frame, name))
    except Unreadable as error:
        raise ModelError(f"propensity={name!r}: {error}.") from error
    strange = ~((seen > 0) & (seen <= 1))
    if np.any(strange):
        raise ModelError(
            f"propensity={name!r}: expected probabilities above 0, up to 1; "
            f"{counted(np.count_nonzero(strange), 'row holds', 'rows hold')} something else, such "
            f"as {float(seen[strange][0]):g}."
        )
    return seen


def read_groups(frame: object, name: str | None) -> NDArray[np.intp] | None:
    """Return the group of each row as a number; ModelError if some are missing."""
    if name is None:
        return None
    values = frames.column(frame, name)
    gaps = is_missing(values)
    if np.any(gaps):
        raise ModelError(
            f"groups={name!r} is missing in {counted(np.count_nonzero(gaps), 'row')}: leave these "
            "rows out, or give each a group of its own."
        )
    try:
        words = as_words(values)
    except Unreadable as error:
        raise ModelError(f"groups={name!r}: {error}.") from error
    return check_groups(words, len(words))


def _read_time(frame: object, name: str | None) -> AnyArray | None:
    if name is None:
        return None
    values = frames.column(frame, name)
    gaps = is_missing(values)
    if np.any(gaps):
        raise ModelError(
            f"time={name!r} is missing in {counted(np.count_nonzero(gaps), 'row')}: rows without a "
            "time have no place in the order, leave them out."
        )
    finding = find_kind(values)
    try:
        if finding.kind == "date":
            return as_dates(values, finding.date_format)
        return as_numbers(values)
    except Unreadable as error:
        raise ModelError(f"time={name!r}: expected dates or numbers; {error}.") from error


class OpenLabels(TypedDict, total=False):
    """What intervals are told of rows without labels."""

    unlabelled: BoolArray
    hidden: float | tuple[float, float] | None


class _MeasureOptions(OpenLabels, total=False):
    """What `measure` hands on to `toprank.inference.interval`."""

    level: float
    n_resamples: int
    label_propensity: FloatArray | None


class WeightAndGroups(TypedDict):
    """Weight and groups of rows, as the functions of `toprank.inference` take them."""

    sample_weight: FloatArray | None
    groups: AnyArray | None


@dataclass(frozen=True, kw_only=True)
class ScoredRows(Rows):
    """Labelled rows and their scores; the features may be left out."""

    scores: FloatArray

    @property
    def inference_options(self) -> WeightAndGroups:
        """Weight and groups, as the functions of `toprank.inference` take them."""
        return {"sample_weight": self.weight, "groups": self.groups}


@dataclass(frozen=True)
class Measurement:
    """One metric of a list.

    Attributes
    ----------
    name : str
        The metric's name in `toprank.metrics`.
    settings : mapping
        The parameters it was given.
    interval : Interval or None
        None where the rows allow no interval.
    why_not : str
        Why there is no interval; empty if there is one.
    """

    name: str
    settings: Mapping[str, object]
    interval: Interval | None
    why_not: str = ""


def metric_settings(name: str, k: int | float | None = None) -> dict[str, Any]:
    """The usual parameters of a metric, with this length of the top where it has one."""
    metric = METRICS[name]
    return {**metric.settings, **({"k": k} if k is not None and metric.takes_k else {})}


def measure(
    rows: ScoredRows,
    wanted: Iterable[tuple[str, Mapping[str, Any]]],
    **options: Unpack[_MeasureOptions],
) -> Iterator[Measurement]:
    """Measure a list by several metrics, one after the other.

    Parameters
    ----------
    rows : ScoredRows
    wanted : iterable of (str, mapping)
        Names of metrics, and their parameters.
    **options
        ``level``, ``n_resamples``, ``unlabelled`` and ``hidden`` of
        `toprank.inference.interval`. Metrics that have no correction for hidden positives count
        unlabelled rows as negatives, and their note says what that makes of them.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> positive = rng.random(200) < 0.3
    >>> rows = ScoredRows(None, positive, scores=positive + rng.normal(size=200))
    >>> [round(one.interval.estimate, 2) for one in measure(rows, [("auc", {})])]
    [0.8]
    """
    for name, settings in wanted:
        given, note = _without_correction(name, options)
        try:
            found = interval(
                name, rows.y, rows.scores, **rows.inference_options, **given, **settings
            )
            found = replace(found, note=f"{found.note} {note}".strip())
        except ValueError as error:  # a metric that has no interval on these rows
            yield Measurement(name, settings, None, str(error))
        else:
            yield Measurement(name, settings, found)


def _without_correction(name: str, options: _MeasureOptions) -> tuple[_MeasureOptions, str]:
    """The options for a metric, and what unlabelled rows make of it if it has no correction."""
    if options.get("unlabelled") is None or METRICS[name].hidden is not None:
        return options, ""
    kept = options.copy()
    kept.pop("unlabelled", None)
    kept.pop("hidden", None)
    meaning = _COUNTED_AS_NEGATIVES.get(METRICS[name].when_unlabelled, "it can err either way")
    return kept, f"Unlabelled rows count as negatives here: {meaning}."
