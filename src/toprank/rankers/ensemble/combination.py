"""The combination of members: a push with weights that are not negative, over their scores.

Out-of-fold scores, standardised, are columns (`ScoreColumns`). A candidate is a linear ranker of
some of them: the P-Norm Push, the logistic loss, or one member alone. The first candidate is taken
unless another beats it, by the user's metric over the folds, by more than one standard error of
their paired difference: the differences are small, and a choice that follows noise costs more
than it brings. Where positives are few, the first candidate has weights that follow noise less,
the means of those of fits to halves of the folds, and is taken unless another is ahead by two
standard errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations as choices
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from toprank._html import table_html
from toprank._numerics import FloatArray
from toprank.blocks import go_on
from toprank.folds import Fold, Scoring, corrected_difference, tested_over_trained
from toprank.pairs import Rows
from toprank.rankers.linear import PNormPush
from toprank.rankers.proper import ProperRanker

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

#: The push that was best in the mean over many sets: p and alpha.
_FIRST: tuple[float | None, float] = (4.0, 0.01)
#: The penalties that are tried for a p that was given.
_ALPHAS = (0.01, 0.1, 0.001)
#: Standard errors that another must be ahead by where positives are few.
_ERRORS_OF_FEW = 2.0
#: Of more parts than these not every half is taken.
_MANY_PARTS = 6
#: What a sum of weights is divided by where it is zero.
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class ScoreColumns:
    """Scores of members as columns of mean zero and standard deviation one."""

    centre: FloatArray
    spread: FloatArray

    @classmethod
    def learn(cls, scores: FloatArray, weight: FloatArray | None) -> ScoreColumns:
        """Learn means and spreads from out-of-fold scores."""
        centre = np.average(scores, axis=0, weights=weight)
        spread = np.sqrt(np.average((scores - centre) ** 2, axis=0, weights=weight))
        return cls(centre, np.where(spread > 0, spread, 1.0))

    def make(self, scores: FloatArray) -> FloatArray:
        """Return the columns of some rows."""
        return (scores - self.centre) / self.spread


@dataclass(frozen=True)
class CombinationCandidate:
    """A way to combine members: a linear ranker of the columns of some of them.

    Attributes
    ----------
    name : str
    ranker : estimator
        Unfitted, its coefficients not negative.
    columns : tuple of int
        The members that it may use.
    p : float or None
        The push; None for the logistic loss and for a member alone.
    alpha : float
        Its penalty.
    eligible : bool
        Whether it may be taken; others are measured for the table alone.
    averaged : bool
        Whether its weights are means over halves of the folds.
    """

    name: str
    ranker: BaseEstimator
    columns: tuple[int, ...]
    p: float | None
    alpha: float
    eligible: bool = True
    averaged: bool = False

    def fit(self, rows: Rows) -> BaseEstimator:
        """Fit the ranker to the columns it may use."""
        return clone(self.ranker).fit(rows.X[:, self.columns], rows.y, rows.weight)

    def scores(self, fitted: BaseEstimator, table: FloatArray) -> FloatArray:
        """Return the scores of rows."""
        return np.asarray(fitted.decision_function(table[:, self.columns]))

    def without(self, member: int) -> CombinationCandidate:
        """Return the same combination of one member less."""
        return replace(self, columns=tuple(j for j in self.columns if j != member))


def make_candidates(
    names: Sequence[str],
    combinations: Sequence[tuple[float | None, float]],
    p: float | None = None,
    averaged: bool = False,
) -> list[CombinationCandidate]:
    """Return the candidates: the usual push first, then others, then each member alone.

    Where ``p`` is given, only pushes of that p may be taken. The first may have weights that are
    ``averaged``; the others have those of a minimum.
    """
    everyone = tuple(range(len(names)))
    tried = [_FIRST, *combinations]
    if p is not None:
        tried = [(p, alpha) for alpha in _ALPHAS]
    candidates = [_push(power, alpha, everyone) for power, alpha in tried]
    if len(names) == 1:
        candidates = []
    elif averaged:
        name = f"{candidates[0].name}, mean over halves"
        candidates[0] = replace(candidates[0], name=name, averaged=True)
    alone = ProperRanker(alpha=1e-4, positive=True)
    candidates += [
        CombinationCandidate(f"{name} alone", alone, (j,), None, 1e-4, p is None or len(names) == 1)
        for j, name in enumerate(names)
    ]
    return candidates


def _push(p: float | None, alpha: float, columns: tuple[int, ...]) -> CombinationCandidate:
    if p is None:
        ranker: BaseEstimator = ProperRanker(alpha=alpha, positive=True)
        return CombinationCandidate(f"logistic, alpha = {alpha:g}", ranker, columns, p, alpha)
    ranker = PNormPush(p, alpha=alpha, positive=True)
    return CombinationCandidate(f"push, p = {p:g}, alpha = {alpha:g}", ranker, columns, p, alpha)


@dataclass(frozen=True)
class CombinationChoice:
    """Every candidate's score on every fold, and the one that was taken.

    Attributes
    ----------
    names : tuple of str
    fold_scores : ndarray of shape (candidates, folds)
        Larger is better; risks are negated.
    metric : str
    chosen_index : int
    """

    names: tuple[str, ...]
    fold_scores: FloatArray
    metric: str
    chosen_index: int

    @property
    def chosen(self) -> str:
        """The name of the combination that was taken."""
        return self.names[self.chosen_index]

    def __str__(self) -> str:
        width = max(map(len, self.names))
        lines = [f"{self.metric}, mean over {self.fold_scores.shape[1]} folds"]
        for i in np.argsort(-self.fold_scores.mean(axis=1), kind="stable"):
            sign = "  <- taken" if i == self.chosen_index else ""
            lines.append(f"{self.names[i]:<{width}}  {self.fold_scores[i].mean():.4f}{sign}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        means = self.fold_scores.mean(axis=1)
        rows = [
            (self.names[i], f"{means[i]:.4f}", "taken" if i == self.chosen_index else "")
            for i in np.argsort(-means, kind="stable").tolist()
        ]
        head = ("combination", f"mean over {self.fold_scores.shape[1]} folds", "")
        return table_html(rows, head=head, caption=self.metric)


def tested_parts(folds: Sequence[Fold], rows: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Return the places among the scored rows of those that each fold tests."""
    place = np.full(int(max(np.max(test) for _, test in folds)) + 1, -1)
    place[rows] = np.arange(len(rows))
    return [np.unique(place[test]) for _, test in folds]


def combination_folds(tests: Sequence[NDArray[np.intp]], ordered: bool) -> list[Fold]:
    """Return the folds of the scored rows: tested as the members were, trained on the others.

    In the order of time the combination is trained on earlier folds alone, and the first fold
    is never tested.
    """
    made = []
    for k, test in enumerate(tests):
        others = [*tests[:k]] if ordered else [*tests[:k], *tests[k + 1 :]]
        if others:
            made.append((np.setdiff1d(np.concatenate(others), test), test))
    return made


def halves_of(parts: Sequence[NDArray[np.intp]]) -> list[NDArray[np.intp]]:
    """Return the unions of half of the parts: every choice of them, each part in as many.

    Of more than six parts, each with those that follow it in a ring. Nothing is drawn, and rows
    that are in one part stay together.
    """
    many, size = len(parts), (len(parts) + 1) // 2
    chosen: Iterable[tuple[int, ...]] = choices(range(many), size)
    if many > _MANY_PARTS:
        chosen = [tuple((first + k) % many for k in range(size)) for first in range(many)]
    return [np.unique(np.concatenate([parts[k] for k in some])) for some in chosen if some]


def has_both_classes(rows: Rows, fold: Fold) -> bool:
    """Whether positives and negatives are on both sides of a fold."""
    return all(_has_both(rows.y[part]) for part in fold)


def _shares(weights: FloatArray) -> FloatArray:
    """Weights over their sum; zero where all are."""
    return np.asarray(weights / max(float(weights.sum()), _TINY))


def _has_both(y: NDArray[np.bool_]) -> bool:
    return bool(0 < np.count_nonzero(y) < len(y))


class Combiner:
    """Compares candidates on folds of the scored rows; ``parts`` are the rows each fold tests."""

    def __init__(
        self,
        rows: Rows,
        folds: Sequence[Fold],
        scoring: Scoring,
        parts: Sequence[NDArray[np.intp]] = (),
    ):
        self.rows, self.scoring, self.parts = rows, scoring.steadier, parts
        self.folds = [fold for fold in folds if has_both_classes(rows, fold)]

    def fit(
        self, candidate: CombinationCandidate, train: NDArray[np.intp] | None = None
    ) -> BaseEstimator:
        """Fit a candidate to some of the rows.

        Where its weights are averaged, it is the shares of members that are: a half whose classes
        a member parts has weights of any size. How far to go along their mean is then fitted to
        all of the rows.
        """
        rows = self.rows if train is None else self.rows.take(train)
        fitted = candidate.fit(rows)
        halves = self._halves(train) if candidate.averaged and len(candidate.columns) > 1 else []
        if not halves:
            return fitted
        shares = [_shares(candidate.fit(self.rows.take(half)).coef_[0]) for half in halves]
        mean = np.mean(shares, axis=0)
        ray = mean / max(float(np.linalg.norm(mean)), _TINY)
        table = rows.X[:, candidate.columns]
        along = clone(candidate.ranker).fit(table @ ray[:, None], rows.y, rows.weight)
        return fitted.moved_to(along.coef_[0] * ray, replace(rows, X=table))

    def _halves(self, train: NDArray[np.intp] | None) -> list[NDArray[np.intp]]:
        """Halves of the parts as far as they lie in the rows, those that have both classes."""
        parts = list(self.parts)
        if train is not None:
            parts = [part for part in (np.intersect1d(p, train) for p in parts) if len(part)]
        return [half for half in halves_of(parts) if _has_both(self.rows.y[half])]

    def fold_scores(self, candidate: CombinationCandidate) -> tuple[FloatArray, FloatArray]:
        """Return the metric on each fold, and the score of each row by a fit without its fold."""
        scores = np.full(len(self.rows), np.nan)
        values = []
        for train, test in self.folds:
            go_on()
            tested = self.rows.take(test)
            if len(candidate.columns) == 1:  # any weight above zero gives the same order
                scores[test] = tested.X[:, candidate.columns[0]]
            else:
                fitted = self.fit(candidate, train)
                scores[test] = candidate.scores(fitted, tested.X)
            values.append(self.scoring.of_scores(tested.y, scores[test], tested.weight))
        return np.array(values), scores

    def choose(
        self, candidates: Sequence[CombinationCandidate]
    ) -> tuple[CombinationChoice, FloatArray]:
        """Return the choice, and its score of each row; NaN where no fold tested it."""
        tried = [self.fold_scores(candidate) for candidate in candidates]
        table = np.array([values for values, _ in tried])
        names = tuple(candidate.name for candidate in candidates)
        may = np.array([candidate.eligible for candidate in candidates])
        chosen = self._best(table, may, _ERRORS_OF_FEW if candidates[0].averaged else 1.0)
        return CombinationChoice(names, table, self.scoring.label, chosen), tried[chosen][1]

    def _best(self, table: FloatArray, eligible: NDArray[np.bool_], errors: float) -> int:
        if table.shape[1] == 0:
            return 0
        best = int(np.argmax(np.where(eligible, table.mean(axis=1), -np.inf)))
        if best == 0 or table.shape[1] < 2:
            return 0
        overlap = tested_over_trained(self.folds)
        ahead = corrected_difference(table[best] - table[0], overlap)
        return best if ahead.mean > errors * ahead.standard_error else 0

    def losses_without(
        self, candidate: CombinationCandidate, members: Iterable[int]
    ) -> list[float]:
        """Return how much the mean metric falls without each member; NaN if none is left.

        By weights that are not averaged, which takes a fraction of the time.
        """
        candidate = replace(candidate, averaged=False)
        members = list(members)
        if len(candidate.columns) == 1 or not self.folds:
            return [float("nan")] * len(members)
        less = [self.fold_scores(candidate.without(member))[0] for member in members]
        whole = np.mean(self.fold_scores(candidate)[0])
        return [float(whole - np.mean(values)) for values in less]
