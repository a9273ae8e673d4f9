r"""The score to expect of a choice, from folds within folds.

The rows are cut into K folds. The choice is made, and fitted, without each fold, and scored on it.
The mean of these scores is known better than the spread over the folds says, or worse: their
training sets overlap, and a choice is not stable. How well, nested cross-validation shows (Bates,
Hastie & Tibshirani 2023): without fold i the same is done with the K - 1 folds that are left, and

.. math::
    \widehat{\mathrm{MSE}} = \mathrm{mean}_i \big[ (\bar e_{-i} - e_i)^2 - s_i^2 \big]

where e_i is the score on fold i, s_i its standard error and the first term the mean of the scores
that the other folds get without i. A standard error is all that is asked of a metric: it
comes from the influence of the rows, or from the share at a cut, where the metric has one, and
otherwise from the bootstrap.

The folds of a choice are the other outer folds. So every subset of the folds is fitted once: with
K = 5, those with one, two and three folds missing, 5 + 10 + 10 grids for each drawing of the folds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import t as student
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from toprank._numerics import FloatArray
from toprank.blocks import Workers
from toprank.folds import Scoring, folds_of
from toprank.inference import Interval
from toprank.inference.shares import clopper_pearson
from toprank.metrics.at_cut import smooth_share
from toprank.tuning.rows import TuningRows

#: Outer folds.
FOLDS = 5

#: Scores of every setting on rows, one line per setting, after a fit to other rows.
GridScores = Callable[[TuningRows, Sequence[TuningRows]], list[FloatArray]]
#: The setting to take, from the scores of all on some folds.
Chooser = Callable[[FloatArray], int]
Missing = tuple[int, ...]


@dataclass(frozen=True)
class NestedScores:
    """The metric of a choice on the folds that it never saw.

    Attributes
    ----------
    outer, error : ndarray of shape (repeats, folds)
        The metric on each fold, chosen and fitted without it, and its standard error.
    inner : ndarray of shape (repeats, folds)
        Mean metric on the other folds, chosen and fitted without either.
    """

    outer: FloatArray
    error: FloatArray
    inner: FloatArray

    @property
    def estimate(self) -> float:
        """Mean over the outer folds."""
        return float(np.mean(self.outer))

    @property
    def bias(self) -> float:
        """How far the estimate is from that of a choice fitted to all rows.

        Errors that shrink as 1/n are extrapolated from K - 2 and K - 1 folds to all K.
        """
        folds = self.outer.shape[1]
        return (folds - 2) / folds * float(np.mean(self.inner) - np.mean(self.outer))

    @property
    def variance(self) -> float:
        """Mean squared error of the estimate.

        At least that of as many independent tests, and at most that of a single fold; brought from
        K - 1 folds to K.
        """
        folds = self.outer.shape[1]
        test = float(np.mean(self.error**2))
        apart = float(np.mean((self.inner - self.outer) ** 2))
        nested = (folds - 1) / folds * (apart - test)
        return float(np.clip(nested, test / folds, test))

    def interval(self, score: Scoring, estimand: str, level: float, rows: int) -> Interval:
        """Confidence interval; `rows` are those of the smaller class."""
        lowest, highest = (-np.inf, np.inf)
        if score.metric is not None:
            lowest, highest = score.metric.bounds(score.kwargs)
        error = float(np.sqrt(self.variance))
        if not np.isfinite(error):
            raise ValueError(
                f"The standard error of {score.label} is {error} on some fold: expected a finite "
                "one. Take more rows, or another metric."
            )
        value = float(np.clip(self.estimate - self.bias, lowest, highest))
        if np.isfinite(highest - lowest) and error > 0:
            wide = highest - lowest
            ends = _share_ends((value - lowest) / wide, (error / wide) ** 2, level)
            low, high = (lowest + wide * end for end in ends)
        else:
            reach = float(student.isf((1 - level) / 2, max(1, rows - 1))) * error
            low, high = max(lowest, value - reach), min(highest, value + reach)
        bias, repeats = self.estimate - value, len(self.outer)
        often = "" if repeats == 1 else f" drawn {repeats} times"
        method = f"nested cross-validation, {FOLDS} folds{often}"
        return Interval(score.label, self.estimate, low, high, error, level, method, estimand, bias)


def _share_ends(share: float, variance: float, level: float) -> tuple[float, float]:
    """Clopper-Pearson with the trials whose smoothed share has this variance."""
    share, trials = float(np.clip(share, 0.0, 1.0)), 1.0
    for _ in range(100):
        inner = smooth_share(share * trials, trials)
        trials = np.sqrt(trials * max(1.0, inner * (1 - inner) / variance))
    low, high = clopper_pearson(share, trials, level)
    return float(low), float(high)


def smaller_class(rows: TuningRows) -> int:
    """Rows of the class that has fewer."""
    positives = int(np.count_nonzero(rows.y))
    return min(positives, len(rows) - positives)


def has_quick_interval(score: Scoring) -> bool:
    """Whether the score is a metric of ours, which no single row decides."""
    return score.metric is not None and score.metric.extreme_of(score.kwargs) is None


def interval_of_choice(
    rows: TuningRows,
    score: Scoring,
    grid_scores: GridScores,
    choose: Chooser,
    *,
    groups: np.ndarray | None,
    level: float,
    repeats: int,
    seed: int,
    workers: Workers,
) -> Interval:
    """Confidence interval of the score of a choice, from folds within folds.

    Parameters
    ----------
    rows : TuningRows
        All rows, each with a weight that is not zero.
    score : Scoring
        What is measured.
    grid_scores : callable
        ``grid_scores(train, tests)``: fit every setting to rows, and score others.
    choose : callable
        From scores of shape (settings, folds) to the number of the setting to take.
    groups : array, optional
        Groups whose rows depend on each other.
    level : float
        Confidence level.
    repeats : int
        How often the folds are drawn.
    seed : int
        Seed of the first drawing.
    workers : Workers
        Threads.
    """
    few = smaller_class(rows)
    if few < FOLDS:
        raise ValueError(
            f"One class has {few} row(s), expected at least {FOLDS}, one for each outer fold."
        )
    drawn = [_draw_folds(rows, seed + repeat) for repeat in range(repeats)]
    missing = [part for size in (1, 2, 3) for part in combinations(range(FOLDS), size)]

    def of_part(item: tuple[NDArray[np.intp], Missing]) -> list[FloatArray]:
        fold, part = item
        train = np.flatnonzero(~np.isin(fold, part))
        tests = [rows.take(np.flatnonzero(fold == one)) for one in part]
        lines = grid_scores(rows.take(train), tests)
        return lines if len(part) == 1 else [*map(partial(_scores, score), tests, lines)]

    found = list(workers.map(of_part, [(fold, part) for fold in drawn for part in missing]))
    outer, error, inner = np.empty((3, repeats, FOLDS))
    for repeat, fold in enumerate(drawn):
        first = repeat * len(missing)
        known = dict(zip(missing, found[first : first + len(missing)], strict=True))
        for one in range(FOLDS):
            line = known[one,][0][choose(_scores_without(known, (one,)))]
            test = np.flatnonzero(fold == one)
            part, within = rows.take(test), None if groups is None else groups[test]
            seen = score.interval(part.y, line, part.weight, within, level)
            outer[repeat, one], error[repeat, one] = seen.estimate, _standard_error(seen)
        inner[repeat] = score.sign * _inner_means(known, choose)
    return NestedScores(outer, error, inner).interval(score, seen.estimand, level, few)


def _scores(score: Scoring, test: TuningRows, lines: FloatArray) -> FloatArray:
    """Score of every setting on one fold."""
    return np.array([score.of_scores(test.y, line, test.weight) for line in lines])


def _draw_folds(rows: TuningRows, seed: int) -> NDArray[np.intp]:
    """The fold of each row, drawn at random."""
    kind = StratifiedKFold if rows.groups is None else StratifiedGroupKFold
    cutter = kind(FOLDS, shuffle=True, random_state=seed % 2**32)
    fold = np.empty(len(rows), dtype=np.intp)
    for number, (_, test) in enumerate(folds_of(cutter, rows.y, groups=rows.groups)):
        fold[test] = number
    return fold


def _scores_without(known: dict[Missing, list[FloatArray]], missing: Missing) -> FloatArray:
    """Scores of every setting on each fold that is left, fitted without it and the missing ones."""
    columns = []
    for one in range(FOLDS):
        if one not in missing:
            part = tuple(sorted((*missing, one)))
            columns.append(known[part][part.index(one)])
    return np.column_stack(columns)


def _inner_means(known: dict[Missing, list[FloatArray]], choose: Chooser) -> FloatArray:
    """For each fold, the mean score on the others of choices that saw neither."""
    sums = np.zeros(FOLDS)
    for pair in combinations(range(FOLDS), 2):
        chosen = choose(_scores_without(known, pair))
        for place, one in enumerate(pair):
            sums[one] += known[pair][1 - place][chosen]
    return sums / (FOLDS - 1)


def _standard_error(seen: Interval) -> float:
    """That of the metric; of rows that all agree, what their interval leaves possible."""
    if seen.standard_error > 0:
        return seen.standard_error
    return float((seen.high - seen.low) / (-2 * ndtri((1 - seen.level) / 2)))
