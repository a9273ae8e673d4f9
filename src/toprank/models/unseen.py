"""Scores as a model gives them to rows that it has not seen, for `toprank.models.monitor`.

A model's scores of its own training rows are further apart than those of any new rows: trees
nearly remember the labels. So each row is scored by a fit to the other folds. Two fits
differ in scale and offset, more than their rankings do; both are taken from the rows that the fit
of the fold and the model itself have in common. What then is left of the differences between fits
shows in how the folds differ from each other, and is kept as `spread`. Rows that are copies of each
other stay on one side: a fit has seen a row whose copy it was fitted to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from toprank._arrays import AnyArray
from toprank._numerics import FloatArray
from toprank.folds import Fold, folds_of
from toprank.models.bins import population_stability_index
from toprank.models.doubts import copied_rows
from toprank.models.rows import TrainingRows

#: So many rows held out are enough, and spare the fits of the folds.
_ENOUGH = 2_000
_N_FOLDS = 5
#: Scores that differ by this part of their range are tied: sums of a few rows are rounded in other
#: places than those of many.
_TIE = 1e-9
#: With one fit only, the spread is at least this over the number of training rows. Over five folds
#: it was below that for every kind of ranker whose scores vary freely.
_USUAL_SPREAD = 2.0
#: The spread of the folds is estimated from few; this quantile of its error is allowed for.
_ERROR_QUANTILE = 0.1
#: Rows at most that two fits are compared on.
_COMPARED = 5_000
_CUTS = np.arange(1, 10) / 10

ScoreRows = Callable[[TrainingRows], FloatArray]
#: Fits a ranker to some rows, and returns what scores others, and the scores of these.
FitPart = Callable[[TrainingRows], tuple[ScoreRows, FloatArray]]


@dataclass(frozen=True)
class UnseenScores:
    """Scores that those of later rows can be compared with.

    Attributes
    ----------
    scores : ndarray
    source : {"out of fold", "held out", "table", "training"}
        Where they come from. "training" are scores of rows that the model was fitted to, which
        nothing can fairly be compared with.
    spread : float
        Variance of their shares beyond the chance of few rows, over that of a share of one row.
    rows : ndarray of int, optional
        The training rows that they are of, where the model has not seen those.
    """

    scores: FloatArray
    source: str
    spread: float = 0.0
    rows: NDArray[np.intp] | None = None


@dataclass(frozen=True)
class FirstScores:
    """What a first fit, to some of the training rows, says of the others and of some of its own.

    For rankers whose fits take too long for folds of their own.

    Attributes
    ----------
    scores : ndarray
        Scores of rows that the fit has not seen.
    rows : ndarray of int
        The training rows that those are of.
    known : TrainingRows
        Some of the rows that it was fitted to.
    known_scores : ndarray
        Its scores of them.
    """

    scores: FloatArray
    rows: NDArray[np.intp]
    known: TrainingRows
    known_scores: FloatArray

    @classmethod
    def of(
        cls, score: ScoreRows, scores: FloatArray, rows: NDArray[np.intp], known: TrainingRows
    ) -> FirstScores:
        """Keep scores of unseen rows, and score some of the rows that the fit has seen."""
        some = known.take(np.arange(0, len(known), 1 + len(known) // _COMPARED))
        return cls(scores, rows, some, score(some))

    def on_scale_of(self, score: ScoreRows, n: int) -> UnseenScores:
        """The scores as the model, fitted to all n rows, would give them to rows it has not seen.

        Parameters
        ----------
        score : callable
            What scores rows by the model.
        n : int
        """
        ours = score(self.known)
        spread = _spread_of_one_fit(self.known_scores, ours, n)
        return UnseenScores(
            _to_scale(self.scores, self.known_scores, ours), "held out", spread, self.rows
        )


def unseen_scores(
    rows: TrainingRows,
    own: FloatArray,
    fit_part: FitPart,
    held_out: Fold | None,
    random_state: int,
) -> UnseenScores:
    """Score the training rows by fits that have not seen them, on the scale of the model.

    Parameters
    ----------
    rows : TrainingRows
    own : ndarray of shape (n,)
        The model's own scores of the rows, which it was fitted to.
    fit_part : callable
        Fits a ranker with the model's settings.
    held_out : (rows to train on, rows held out), or None
        None where a class has too few rows to hold any out.
    random_state : int
        Seed of the folds.
    """
    if held_out is None:
        return UnseenScores(own, "training")
    alike = copied_rows(list(rows.X.values())) if rows.groups is None else rows.groups
    train, test = held_out
    test = test if alike is None else test[~np.isin(alike[test], alike[train])]
    if len(test) >= _ENOUGH:
        trained = rows.take(train)
        score, of_trained = fit_part(trained)
        first = FirstScores(score(rows.take(test)), test, trained, of_trained)
        return first.on_scale_of(lambda _: own[train], len(rows))
    try:
        folds = _folds(rows, alike, random_state)
    except ValueError:  # a class in one group only
        return UnseenScores(own, "training")
    scores, fold = np.empty(len(rows)), np.empty(len(rows), dtype=np.intp)
    for number, (train, test) in enumerate(folds):
        scores[test] = _aligned(rows, own, fit_part, (train, test))
        fold[test] = number
    spread = spread_between_folds(scores, fold)
    return UnseenScores(scores, "out of fold", spread, np.arange(len(rows)))


def _folds(rows: TrainingRows, groups: AnyArray | None, random_state: int) -> list[Fold]:
    """Folds of every row, or of whole groups, drawn at random: also where rows have times.

    The columns are compared with all training rows too.
    """
    units = np.arange(len(rows)) if groups is None else groups
    n_folds = min(_N_FOLDS, *(len(np.unique(units[rows.y == label])) for label in (False, True)))
    if n_folds < 2:
        raise ValueError("One class is in a single group.")
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    cv = kind(n_folds, shuffle=True, random_state=random_state)
    return folds_of(cv, rows.y, groups=groups)


def _aligned(rows: TrainingRows, own: FloatArray, fit_part: FitPart, fold: Fold) -> FloatArray:
    """Scores of the rows held out, with the model's mean and deviation over those trained on."""
    score, of_trained = fit_part(rows.take(fold[0]))
    return _to_scale(score(rows.take(fold[1])), of_trained, own[fold[0]])


def _to_scale(scores: FloatArray, theirs: FloatArray, ours: FloatArray) -> FloatArray:
    """Scores of one fit as another would give them; both have scored the same rows.

    The offset and scale of those rows do it where scores vary freely. Where a fit gives few values,
    they would lie beside those of the other: a row that ties with several of those rows gets one of
    their scores by the other fit, in shares as equal as can be.
    """
    deviation = float(np.std(theirs))
    scale = float(np.std(ours)) / deviation if deviation > 0 else 1.0
    found = (scores - np.mean(theirs)) * scale + np.mean(ours)
    order, hair = np.lexsort((ours, theirs)), width_of_a_tie(theirs)
    first = np.searchsorted(theirs[order], scores - hair)
    size = np.searchsorted(theirs[order], scores + hair, side="right") - first
    tied = np.random.default_rng(0).permutation(np.flatnonzero(size > 1))
    tied = tied[np.argsort(first[tied], kind="stable")]
    _, start, times = np.unique(first[tied], return_index=True, return_counts=True)
    part = (np.arange(len(tied)) - np.repeat(start, times) + 0.5) / np.repeat(times, times)
    found[tied] = ours[order[first[tied] + (part * size[tied]).astype(np.intp)]]
    return found


def width_of_a_tie(scores: FloatArray) -> float:
    """How far apart scores may be that differ by rounding alone.

    Examples
    --------
    >>> import numpy as np
    >>> width_of_a_tie(np.array([1.0, 3.0]))
    2e-09
    """
    return _TIE * float(np.ptp(scores))


def _spread_of_one_fit(theirs: FloatArray, ours: FloatArray, n: int) -> float:
    """How much the shares of the scores differ between two fits: the usual, or what rows show.

    Both have scored the same rows, so that these add no chance of their own.
    """
    edges = _tenths(ours)
    there, here = (
        np.bincount(np.searchsorted(edges, scores), minlength=len(edges) + 1)
        for scores in (_to_scale(theirs, theirs, ours), ours)
    )
    index = float(population_stability_index(there, here))
    return max(_USUAL_SPREAD / n, index / max(1, len(edges)))


def _tenths(scores: FloatArray) -> FloatArray:
    """The ends of bins of a tenth of the scores each, without the last."""
    return np.asarray(np.unique(np.quantile(scores, _CUTS)) + width_of_a_tie(scores))


def spread_between_folds(scores: FloatArray, fold: NDArray[np.intp]) -> float:
    """How much more the shares of the scores differ between folds than by the chance of few rows.

    Each fold is compared with the others over the tenths of all scores. Where fits do not differ,
    the statistic is chi-squared, and its mean over its degrees of freedom is one; beyond that is
    the variance between fits, taken at an upper confidence limit.

    Examples
    --------
    >>> import numpy as np
    >>> fold = np.repeat(np.arange(5), 100)
    >>> scores = np.random.default_rng(0).normal(size=500)
    >>> bool(spread_between_folds(scores, fold) < spread_between_folds(scores + fold, fold))
    True
    """
    edges = _tenths(scores)
    n, n_folds = len(scores), int(np.max(fold)) + 1
    counts = np.zeros((n_folds, len(edges) + 1))
    np.add.at(counts, (fold, np.searchsorted(edges, scores)), 1.0)
    counts = counts[:, np.any(counts > 0, axis=0)]
    size = np.sum(counts, axis=1)
    free = counts.shape[1] - 1
    if free < 1:
        return 0.0
    index = population_stability_index(np.sum(counts, axis=0) - counts, counts)
    ratio = float(np.mean(index * size * (n - size) / n)) / free
    freedom = (n_folds - 1) * free
    return max(0.0, ratio * freedom / float(chi2.ppf(_ERROR_QUANTILE, freedom)) - 1) * n_folds / n
