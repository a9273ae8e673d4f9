"""How often an interval holds the true value: samples drawn from a setting whose truth is known."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import BoolArray, JsonObject
from toprank._numerics import FloatArray, is_number
from toprank.inference import interval
from toprank.metrics.metric import ENDLESS, TWO_NEW_ROWS, Metric, call_label
from toprank.metrics.registry import as_metric

#: Laws of the scores, each with the distance between the classes it has by default.
LAWS = {"normal": 1.0, "t3": 2.0, "ties": 1.0, "near-perfect": 3.5, "random": 0.0}
#: Where a score moves from one of the five levels to the next.
_LEVELS = (-0.5, 0.3, 1.1, 1.9)
#: Share of the scores' variance that rows of one group have in common.
_IN_COMMON = 0.2
#: Rows of each class that stand for an endless list.
_ENDLESS = 500_000
_MOST_ATTEMPTS = 100


@dataclass(frozen=True)
class ScoreSetting:
    """A law of labels and scores to draw samples from.

    Parameters
    ----------
    positives : int, default=40
        Positives of a sample; with groups, their expected number.
    prevalence : float, default=0.1
        Share of positives among the rows.
    law : {"normal", "t3", "ties", "near-perfect", "random"}, default="normal"
        Noise of the scores. "t3": Student's t with three degrees of freedom, whose tails are long.
        "ties": normal, but only five levels are told apart. "near-perfect": normal classes far
        apart. "random": the scores know nothing of the labels.
    separation : float, optional
        Distance between the scores of the classes; by default what the law says.
    groups : int, optional
        Groups that are drawn whole; a fifth of the scores' variance is common to a group.
    unequal : bool, default=False
        Whether groups have sizes that are lognormal, and shares of positives that differ by the law
        Beta(1, 1 / prevalence - 1): nearly exponential where positives are rare.
    weighted : bool, default=False
        Whether rows stand for one to four others ("sampling" weights).
    """

    positives: int = 40
    prevalence: float = 0.1
    law: str = "normal"
    separation: float | None = None
    groups: int | None = None
    unequal: bool = False
    weighted: bool = False

    def __post_init__(self) -> None:
        if not (isinstance(self.positives, Integral) and self.positives >= 2):
            raise ValueError(f"positives={self.positives!r}: expected a whole number from 2.")
        if not (is_number(self.prevalence) and 0 < self.prevalence < 1):
            raise ValueError(f"prevalence={self.prevalence!r}: expected a share between 0 and 1.")
        if self.law not in LAWS:
            raise ValueError(f"Unknown law {self.law!r}: expected one of {list(LAWS)}.")
        if self.groups is not None and not (isinstance(self.groups, Integral) and self.groups >= 3):
            raise ValueError(f"groups={self.groups!r}: expected None or a whole number from 3.")

    @property
    def rows(self) -> int:
        """Rows of a sample; with groups, about so many."""
        return max(self.positives + 2, round(self.positives / self.prevalence))

    @property
    def distance(self) -> float:
        """Distance between the scores of the classes."""
        return LAWS[self.law] if self.separation is None else float(self.separation)

    def draw(
        self, rng: np.random.Generator
    ) -> tuple[NDArray[np.bool_], FloatArray, dict[str, Any]]:
        """Draw labels, scores, and what `toprank.inference.interval` should know of the rows."""
        if self.groups is None:
            positive = np.arange(self.rows) < self.positives
            common = rng.normal(size=self.rows)
            how: dict[str, Any] = {}
        else:
            groups, positive = self._draw_groups(rng)
            common = rng.normal(size=self.groups)[groups]
            how = {"groups": groups}
        if self.weighted:
            how |= {"sample_weight": rng.integers(1, 5, len(positive)), "weights": "sampling"}
        return positive, self._scores(positive, common, rng), how

    def draw_endless(self, rng: np.random.Generator) -> tuple[BoolArray, FloatArray, FloatArray]:
        """Draw labels and scores of very many rows, and the weights that give the prevalence."""
        positive = np.arange(2 * _ENDLESS) < _ENDLESS
        share = self.positives / self.rows
        weight = np.where(positive, share, 1 - share) * (self.rows / _ENDLESS)
        return positive, self._scores(positive, rng.normal(size=len(positive)), rng), weight

    def _draw_groups(self, rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        assert self.groups is not None
        for _ in range(_MOST_ATTEMPTS):
            times, shares = np.ones(self.groups), np.full(self.groups, self.prevalence)
            if self.unequal:
                times = rng.lognormal(-0.5, 1.0, self.groups)
                shares = rng.beta(1.0, 1 / self.prevalence - 1, self.groups)
            sizes = np.maximum(1, np.round(times * self.rows / self.groups)).astype(int)
            groups = np.repeat(np.arange(self.groups), sizes)
            positive = rng.random(len(groups)) < shares[groups]
            if 2 <= np.count_nonzero(positive) <= len(positive) - 2:
                return groups, positive
        raise ValueError(f"{self} hardly ever has two positives: expected more of them.")

    def _scores(
        self, positive: NDArray[np.bool_], common: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        n = len(positive)
        own = rng.standard_t(3, size=n) if self.law == "t3" else rng.normal(size=n)
        noise = np.sqrt(_IN_COMMON) * common + np.sqrt(1 - _IN_COMMON) * own
        scores = noise + self.distance * positive
        return np.searchsorted(_LEVELS, scores).astype(float) if self.law == "ties" else scores


@dataclass(frozen=True)
class Coverage:
    """How often an interval held the true value; print it.

    Attributes
    ----------
    metric : str
        The metric and its parameters.
    setting : ScoreSetting
        What the samples were drawn from.
    level : float
        Confidence level of the intervals.
    true_value : float
        What they should hold.
    covered : float
        Share of the intervals that hold it.
    above, below : float
        Share of the intervals that lie above it, and below it.
    width : float
        Mean width of the intervals.
    refused : float
        Share of the samples for which there is no interval, and the reason is said.
    draws : int
        Samples drawn.
    reason : str
        Why there was no interval, of the last one that was refused.
    noted : float
        Share of the intervals that carry a note.
    nearest : float
        The least coverage of 0.3 of the risk below the level or more (93.5% at a level of 95%) that
        any interval can have whose ends rise with the estimate. Estimates that are counts of a few
        rows have few values, and leave no choice between, say, 90% and 98%.
    nearest_by_halves : float
        The same, if each end may miss in no more than half of the risk.
    """

    metric: str
    setting: ScoreSetting
    level: float
    true_value: float
    covered: float
    above: float
    below: float
    width: float
    refused: float
    draws: int
    reason: str = field(default="", repr=False)
    noted: float = 0.0
    nearest: float = np.nan
    nearest_by_halves: float = np.nan

    @property
    def standard_error(self) -> float:
        """Standard error of the share that covers."""
        answered = max(1.0, self.draws * (1 - self.refused))
        return float(np.sqrt(max(self.covered * (1 - self.covered), 1 / answered) / answered))

    def as_dict(self) -> JsonObject:
        """Return the attributes as a dictionary."""
        return asdict(self)

    def __str__(self) -> str:
        text = (
            f"{self.metric}: {100 * self.covered:.1f}% of {100 * self.level:g}% intervals hold "
            f"{self.true_value:.4g} ({100 * self.above:.1f}% lie above, {100 * self.below:.1f}% "
            f"below), mean width {self.width:.3g}, {self.draws} samples"
        )
        if self.nearest > (1 + self.level) / 2:
            text += f"; none whose ends rise with the estimate covers less than {self.nearest:.1%}"
        if self.refused:
            text += f"; {100 * self.refused:.1f}% refused: {self.reason}"
        if self.noted:
            text += f"; {100 * self.noted:.1f}% carry a note"
        return text


def coverage(
    metric: str | Metric,
    setting: ScoreSetting | None = None,
    *,
    draws: int = 1000,
    level: float = 0.95,
    method: str = "auto",
    n_resamples: int = 200,
    random_state: int | np.random.Generator | None = 0,
    truth: float | None = None,
    **metric_kwargs: Any,
) -> Coverage:
    """Measure how often the interval of a metric holds the true value.

    Parameters
    ----------
    metric : str or Metric
        As in `toprank.inference.interval`.
    setting : ScoreSetting, optional
        Positives, prevalence, law of the scores, groups and weights; give those of your data.
    draws : int, default=1000
        Samples to draw. The standard error of the answer is about 0.007 at 1,000.
    level, method, n_resamples
        As in `toprank.inference.interval`.
    random_state : int, Generator or None, default=0
        Seed of the samples.
    truth : float, optional
        What the intervals should hold, where it is known; by default it is simulated.
    **metric_kwargs
        Parameters of the metric, such as ``k=100``.

    Returns
    -------
    Coverage
        ``.covered .above .below .width .refused .noted .true_value``.

    Notes
    -----
    The true value is that of an endless list for metrics that estimate such (1,000,000 rows stand
    for it), and otherwise the mean over other lists of this length.

    Examples
    --------
    >>> from toprank.simulate import ScoreSetting, coverage
    >>> ten = ScoreSetting(positives=10, prevalence=0.05, law="t3")
    >>> found = coverage("auc", ten, draws=200)
    >>> found.covered > 0.92, found.refused
    (True, 0.0)
    """
    known = as_metric(metric)
    if known.extreme_of(metric_kwargs) is not None:
        raise ValueError(
            f"{known.name} hangs on one extreme row, and its interval takes the negatives as "
            "given: there is no one true value to cover."
        )
    setting = ScoreSetting() if setting is None else setting
    rng = np.random.default_rng(random_state)
    if truth is None:
        truth = true_value(known, setting, rng, draws, **metric_kwargs)
    ends, estimates, notes, reason = [], [], 0, ""
    for _ in range(draws):
        y, s, how = setting.draw(rng)
        how |= {"level": level, "method": method, "n_resamples": n_resamples}
        try:
            found = interval(known, y, s, **how, **metric_kwargs)
        except ValueError as error:
            reason = str(error)
        else:
            ends.append((found.low, found.high))
            estimates.append(found.estimate)
            notes += bool(found.note)
    low, high = np.array(ends).reshape(-1, 2).T
    shares = (np.mean(part) if len(ends) else np.nan for part in (low > truth, high < truth))
    above, below = map(float, shares)
    width = float(np.mean(high - low)) if len(ends) else np.nan
    label, refused = call_label(known.name, metric_kwargs), 1 - len(ends) / draws
    numbers = (truth, 1 - above - below, above, below, width, refused)
    noted = notes / len(ends) if ends else 0.0
    nearest = nearest_coverage(np.array(estimates), level)
    return Coverage(label, setting, level, *numbers, draws, reason, noted, *nearest)


#: How far below the level a coverage may be that counts as near it, over the risk.
_SHORT_OF_LEVEL = 0.3


def nearest_coverage(estimates: FloatArray, level: float = 0.95) -> tuple[float, float]:
    """The least coverage near the level that the values of the estimates leave to an interval.

    If both ends of an interval rise with the estimate, those that hold the true value belong to
    estimates between two values, and the chance to be between them is the coverage. With one value
    of a chance of 0.9 and two others of 0.08 and 0.02 it is 0.9, 0.98 or 1, at whatever width.

    Parameters
    ----------
    estimates : array of shape (draws,)
        Estimates of samples from one law.
    level : float, default=0.95
        Confidence level.

    Returns
    -------
    tuple of two floats
        The least coverage of 0.3 of the risk below the level or more; and the least, if each end
        misses in at most half of the risk.
    """
    if len(estimates) == 0:
        return np.nan, np.nan
    counts = np.unique(np.round(estimates, 10), return_counts=True)[1]
    up_to = np.concatenate([[0], np.cumsum(counts)])
    draws, slack = int(up_to[-1]), 1e-9
    needed = up_to + (level - _SHORT_OF_LEVEL * (1 - level)) * draws
    last = np.searchsorted(up_to, needed - slack)
    there = last < len(up_to)
    nearest = np.min(up_to[last[there]] - up_to[there]) / draws
    tail = (1 - level) / 2 * draws + slack
    below = up_to[np.searchsorted(up_to, tail, side="right") - 1]
    above = draws - up_to[np.searchsorted(up_to, draws - tail)]
    return float(nearest), float(1 - (below + above) / draws)


def true_value(
    metric: Metric,
    setting: ScoreSetting,
    rng: np.random.Generator,
    lists: int,
    **metric_kwargs: object,
) -> float:
    """What the interval should hold: the endless list's value, or the mean over other lists."""
    if metric.estimand in (ENDLESS, TWO_NEW_ROWS):
        y, s, weight = setting.draw_endless(rng)
        return float(metric.function(y, s, sample_weight=weight, **metric_kwargs))
    values = []
    for _ in range(max(1000, 2 * lists)):
        y, s, how = setting.draw(rng)
        values.append(
            metric.function(y, s, sample_weight=how.get("sample_weight"), **metric_kwargs)
        )
    return float(np.mean(values))
