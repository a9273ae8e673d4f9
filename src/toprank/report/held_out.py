"""Scores of rows that the ranker has not seen, and the p that is best on them.

Every p and the baselines are fitted on the same folds. Which p the report shows first is chosen on
other rows than those it is measured on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from joblib import cpu_count
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from toprank._numerics import FloatArray
from toprank._text import format_p
from toprank.folds import Fold
from toprank.models.model import contributions, per_column
from toprank.models.preparation import Preparation
from toprank.models.rows import ScoredRows, TrainingRows
from toprank.rankers import PNormPush
from toprank.report.measures import LEVEL, Figure, in_folds
from toprank.report.pushes import Pushes, fit_pushes
from toprank.report.table import Table
from toprank.tuning import Candidate, PChoice
from toprank.tuning.support import FoldScores, Support

PUSH, LOGISTIC, TREES = "the push at every strength", "logistic regression", "boosted trees"
#: Bins of all columns of boosted trees together, within 63 to 255 of each: with many columns the
#: search over bins takes most of the time.
_BINS = 6_000

Tell = Callable[[str], None]


def strength(p: float) -> str:
    """Return how hard a push is, in the page's word for p."""
    return f"strength {format_p(p)}"


@dataclass(frozen=True)
class FoldModels:
    """What was fitted in a fold, kept to explain the rows that it scored."""

    preparation: Preparation
    rankers: list[PNormPush]
    centre: list[FloatArray]  # mean contribution of each column over the rows tested, one per p
    scores: FoldScores  # of the rows trained on and tested

    def explain(self, Z: FloatArray, which: int) -> FloatArray:
        """What each column adds to the scores of prepared rows, against the fold's mean row."""
        return _by_column(self.rankers[which], Z, self.preparation) - self.centre[which]


@dataclass(frozen=True)
class HeldOut:
    """Scores from rankers that have not seen the row.

    Attributes
    ----------
    ps : tuple of float
    folds : list
        Pairs (rows trained on, rows tested).
    rows : array of int
        The rows that were tested, ascending; everything below is about them.
    positive : array of bool
        Their labels.
    fold : array of int
        The fold that each was tested in.
    pushes : list of arrays
        Scores of each p.
    baselines : dict
        Scores of logistic regression and of boosted trees.
    models : list of FoldModels
    """

    ps: tuple[float, ...]
    folds: list[Fold]
    rows: NDArray[np.intp]
    positive: NDArray[np.bool_]
    fold: NDArray[np.intp]
    pushes: list[FloatArray]
    baselines: dict[str, FloatArray]
    models: list[FoldModels]
    weight: FloatArray | None = None
    groups: NDArray[np.intp] | None = None

    def scored(self, scores: FloatArray) -> ScoredRows:
        """Return the rows tested with the scores of a ranker."""
        return ScoredRows(None, self.positive, self.weight, self.groups, scores=scores)

    def explain(self, table: Table, shown: Sequence[NDArray[np.intp]]) -> list[FloatArray]:
        """For each p, what each column of the table adds to the scores of some of the rows.

        A row is prepared once for all p: for few rows that takes as long as for many.
        """
        parts = [np.zeros((len(places), len(table.schema.columns))) for places in shown]
        every = np.unique(np.concatenate(shown))
        for number_, model in enumerate(self.models):
            mine = every[self.fold[every] == number_]
            if len(mine) == 0:
                continue
            rows = table.rows.take(self.rows[mine])
            Z = model.preparation.transform(table.for_lines(rows))
            for which, places in enumerate(shown):
                here = np.flatnonzero(self.fold[places] == number_)
                parts[which][here] = model.explain(Z[np.searchsorted(mine, places[here])], which)
        return parts


def score_held_out(
    table: Table,
    ps: Sequence[float],
    folds: list[Fold],
    random_state: int,
    tell: Tell,
    whole: Pushes | None = None,
) -> HeldOut:
    """Fit every ranker in every fold, and score the rows left out of it; merge the folds' lists.

    A row tested in several folds keeps its last score. ``whole`` are the pushes fitted to all rows,
    which those of the folds start from.
    """
    n = len(table.rows)
    names = [*(strength(p) for p in ps), LOGISTIC, TREES]
    scores = np.full((len(names), n), np.nan)
    tested_in = np.full(n, -1)
    models = []
    for j, (train, test) in enumerate(folds):
        trained, tested = table.rows.take(train), table.rows.take(test)
        tested_in[test] = j
        model, of_fold = _score_linear(table, ps, trained, tested, random_state, tell, whole)
        tell(TREES)
        of_fold.append(_score_trees(table, trained, tested, random_state, model.preparation))
        scores[:, test] = of_fold
        models.append(model)
    rows = np.flatnonzero(tested_in >= 0)
    fold = tested_in[rows]
    merged = [merge(line, fold) for line in scores[:, rows]]
    pushes, baselines = merged[: len(ps)], merged[len(ps) :]
    return HeldOut(
        tuple(ps),
        folds,
        rows,
        table.rows.y[rows],
        fold,
        pushes,
        dict(zip((LOGISTIC, TREES), baselines, strict=True)),
        models,
        _part_of_folds(table.rows.weight, rows),
        _part_of_folds(table.rows.groups, rows),
    )


def _part_of_folds(values: np.ndarray | None, rows: NDArray[np.intp]) -> np.ndarray | None:
    return None if values is None else values[rows]


def merge(scores: FloatArray, fold: NDArray[np.intp]) -> FloatArray:
    """Merge the lists of the folds into one, place by place.

    Scores of different fits are not on one scale, least of all at the very top. So a row keeps
    the place it has in its fold: the first hundredth of the whole list is the first hundredth of
    each fold. Rows at the same place are ordered by their scores, and rows that tie in a fold
    still tie. The scores returned are the mean of the folds' quantiles.
    """
    place = np.empty(len(scores))
    for j in np.unique(fold):
        mine = fold == j
        place[mine] = (rankdata(scores[mine]) - 0.5) / np.count_nonzero(mine)
    # complex numbers sort by the place, then by the score
    _, group, size = np.unique(place + 1j * scores, return_inverse=True, return_counts=True)
    middle = (np.cumsum(size) - size / 2) / len(scores)
    quantiles = [_score_quantiles(scores[fold == j], middle) for j in np.unique(fold)]
    return np.asarray(np.mean(quantiles, axis=0)[group.reshape(-1)])


def _score_quantiles(values: FloatArray, shares: FloatArray) -> FloatArray:
    """What `np.quantile` answers, by one sort: it takes minutes for as many shares as values."""
    last = len(values) - 1
    return np.interp(shares * last, np.arange(len(values)), np.sort(values))


def _score_linear(
    table: Table,
    ps: Sequence[float],
    trained: TrainingRows,
    tested: TrainingRows,
    random_state: int,
    tell: Tell,
    whole: Pushes | None,
) -> tuple[FoldModels, list[FloatArray]]:
    """Every p, and logistic regression."""
    tell(PUSH)
    pushes = fit_pushes(table, ps, trained, random_state, whole)
    preparation, Z = pushes.preparation, pushes.Z
    Z_tested = preparation.transform(table.for_lines(tested))
    scores = pushes.scores(Z_tested)
    # contributions are linear in Z: that of the mean row is their mean
    mean = Z_tested.mean(axis=0, keepdims=True)
    centres = [_by_column(ranker, mean, preparation)[0] for ranker in pushes.rankers]
    tell(LOGISTIC)
    logistic = LogisticRegression(max_iter=1000).fit(Z, trained.y, trained.weight)
    model = FoldModels(preparation, pushes.rankers, centres, (pushes.scores(Z), scores))
    return model, [*scores, logistic.decision_function(Z_tested)]


def _by_column(ranker: PNormPush, Z: FloatArray, preparation: Preparation) -> FloatArray:
    columns = int(preparation.owner.max(initial=-1)) + 1
    return per_column(contributions(ranker, Z), preparation.owner, columns)


def _score_trees(
    table: Table,
    trained: TrainingRows,
    tested: TrainingRows,
    random_state: int,
    texts_of: Preparation,
) -> FloatArray:
    preparation = Preparation("trees", random_state)
    Z = preparation.fit_transform(table.schema, trained.X, trained.weight, texts_of=texts_of)
    trees = HistGradientBoostingClassifier(
        categorical_features=preparation.categorical or None,
        random_state=random_state,
        max_bins=_bins_of_columns(preparation),
    )
    # threads that wait for a busy core spin: on a shared machine all cores are slower than half
    with threadpool_limits(max(1, cpu_count() // 2), user_api="openmp"):
        trees.fit(Z, trained.y, trained.weight)
        return np.asarray(trees.decision_function(preparation.transform(tested.X)))


def _bins_of_columns(preparation: Preparation) -> int:
    """Bins of each column; every category needs one."""
    levels = [] if preparation.encoder is None else preparation.encoder.categories_
    least = max([63, *(len(words) + 1 for words in levels)])
    return min(255, max(least, _BINS // max(1, len(preparation.names))))


@dataclass(frozen=True)
class Chosen:
    """The choice of p.

    Attributes
    ----------
    index : int
        Place of the chosen p among those tried.
    scores : array
        For every row the score of the p that is best on the other folds: what choosing p costs is
        in it.
    by_fold : tuple of float
        The p that was used in each fold.
    verdict : str
        Why, in words.
    """

    index: int
    scores: FloatArray
    by_fold: tuple[float, ...]
    verdict: str


def choose_first_p(
    held: HeldOut, figure: Figure, support: Support | None, test_to_train: float
) -> Chosen:
    """Choose the best of the p that the data supports; among equals the gentlest.

    The rows of a fold are scored with the p that is best on the other folds, so that the figures
    of these scores do not flatter.
    """
    allowed = [j for j, p in enumerate(held.ps) if _is_supported(p, support)] or [0]
    by_fold = np.array(
        [in_folds(figure, held.positive, held.pushes[j], held.fold) for j in allowed]
    )
    n_folds = by_fold.shape[1]
    scores, used = np.empty(len(held.rows)), []
    for fold in range(n_folds):
        others = np.delete(by_fold, fold, axis=1)
        j = allowed[_pick(held, allowed, others, test_to_train).chosen_index]
        mine = held.fold == fold
        scores[mine] = held.pushes[j][mine]
        used.append(held.ps[j])
    whole = _pick(held, allowed, by_fold, test_to_train)
    merged = merge(scores, held.fold)  # folds of different p are not on one scale
    return Chosen(
        allowed[whole.chosen_index], merged, tuple(used), _explain_choice(whole, figure, support)
    )


def _is_supported(p: float, support: Support | None) -> bool:
    return support is None or (support.p is not None and p <= support.p)


def _pick(held: HeldOut, allowed: list[int], by_fold: FloatArray, test_to_train: float) -> PChoice:
    candidates = tuple(Candidate(strength(held.ps[j]), held.ps[j]) for j in allowed)
    return PChoice(candidates, by_fold, "", "best", test_to_train, LEVEL)


def _explain_choice(choice: PChoice, figure: Figure, support: Support | None) -> str:
    best = choice.chosen_index
    if support is not None and support.p is None:
        return (
            "The data supports none of the strengths that were tried; this is the gentlest of them."
        )
    if len(choice.candidates) == 1:
        return f"{choice.chosen.name} is the only one of those tried that the data supports."
    what = (
        f"the share of {figure.label.lower()}, in the mean over {choice.fold_scores.shape[1]} folds"
    )
    if best == 0:
        return (
            f"No harder push that the data supports does better: {what}, is "
            f"{figure.format(choice.mean[0])}."
        )
    gap = choice.difference(best, 0)
    said = (
        f"Of the strengths that the data supports it does best: {what}, is "
        f"{figure.format(choice.mean[best])}, against {figure.format(choice.mean[0])} for "
        f"{choice.candidates[0].name}."
    )
    if gap.p_value > 1 - choice.level:
        said += " The folds alone cannot tell the two apart."
    return said
