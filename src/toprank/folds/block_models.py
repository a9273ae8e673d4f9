"""Rankers of any kind that fit blocks, compared on the folds of a block source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone

from toprank._arrays import BoolArray, FloatArray, Matrix
from toprank.blocks import Block, BlockSource
from toprank.blocks.parts import Folds, PartOfRows
from toprank.blocks.shared import share_passes
from toprank.blocks.source import join_pieces
from toprank.folds.choice import Candidate, PChoice
from toprank.folds.scoring import Scoring
from toprank.metrics.block_list import EXACT_UP_TO
from toprank.objective import count_labels
from toprank.objective.data import coarse_rows
from toprank.pairs import split_classes

if TYPE_CHECKING:
    from pathlib import Path

    from sklearn.base import BaseEstimator

#: Bytes that the samples of all fits that share their passes may take together.
_SAMPLE_BYTES = 1 << 29

#: From the X of a block to the scores of its rows.
Score = Callable[[Matrix], FloatArray]
#: Of each fold: labels, weights, and the scores of each model.
_Pieces = list[tuple[BoolArray, FloatArray, FloatArray]]


@dataclass(frozen=True)
class _ModelScores:
    """Labels, weights and scores of the rows that each fold tests; the state are its models."""

    folds: Folds
    positive: object

    def local(self, block: Block, models: list[list[Score]]) -> dict[int, _Pieces]:
        counts = np.ones(block.n_rows) if block.weight is None else np.asarray(block.weight, float)
        positive = np.asarray(np.asarray(block.y) == self.positive)
        pieces = []
        for fold, scores in enumerate(models):
            rows = np.flatnonzero(self.folds.holds(block, "test", fold) & (counts > 0))
            X = block.X[rows]
            lines = [np.asarray(score(X)) if len(rows) else np.empty(0) for score in scores]
            pieces.append((positive[rows], counts[rows], np.array(lines)))
        return {block.index: pieces}

    def merge(self, left: dict[int, _Pieces], right: dict[int, _Pieces]) -> dict[int, _Pieces]:
        return join_pieces(left, right)


def compare_on_blocks(
    candidates: Sequence[Candidate],
    models: Sequence[object],
    source: BlockSource,
    folds: Folds,
    score: Scoring,
    *,
    rule: str = "best",
    level: float = 0.95,
    checkpoint: Path | None = None,
) -> PChoice:
    """Fit and score every model on every fold of a source, and return the choice between them.

    Parameters
    ----------
    candidates : sequence of Candidate
        What is tried, from the weakest push to the strongest.
    models : sequence of rankers
        The unfitted ranker of each, with ``fit_blocks`` and ``block_score``. Those that are made of
        passes (``shares_passes``) read the rows together, the others one after the other.
    source : BlockSource
    folds : Folds
    score : Scoring
    rule, level
        As in `PChoice`.
    checkpoint : path, optional
        As in `fit_on_folds`.
    """
    counts = count_labels(source)
    if counts.n_present > EXACT_UP_TO:
        raise ValueError(
            f"The source has {counts.n_present:,} rows, and to compare any rankers the scores of "
            f"all rows come to one place: {EXACT_UP_TO:,} at the most. Choose on fewer rows, or "
            "with PNormPushCV(...).fit_blocks(source), which has no such limit."
        )
    score = score.steadier
    classes, _ = split_classes(counts.labels)
    fitted = fit_on_folds(models, source, folds, checkpoint)
    sweep = _ModelScores(folds, classes[1])
    pieces = source.map_reduce(sweep, [[one.block_score() for one in line] for line in fitted])
    columns, overlap = [], []
    for fold in range(folds.n_folds):
        parts = [pieces[index][fold] for index in sorted(pieces)]
        positive, weight, lines = zip(*parts, strict=True)
        y = np.concatenate(positive)
        if len(y) == 0 or y.all() or not y.any():
            raise ValueError(f"Fold {fold} has rows of one class only to test: take fewer folds.")
        held = np.concatenate(weight) if counts.weighted else None
        table = np.concatenate([part for part in lines if part.shape[-1]], axis=1)
        columns.append([score.of_scores(y, line, held) for line in table])
        overlap.append(len(y) / max(1, _trained(source, folds, fold, counts.n_present, len(y))))
    return PChoice(
        tuple(candidates), np.array(columns).T, score.label, rule, float(np.mean(overlap)), level
    )


def _trained(source: BlockSource, folds: Folds, fold: int, n: int, tested: int) -> int:
    """Rows that a fold trains on: all others, unless they lie after it or in a gap."""
    if getattr(folds, "folds", None) is None:
        return n - tested
    return count_labels(PartOfRows(source, folds, "train", fold)).n_present


def fit_on_folds(
    models: Sequence[BaseEstimator],
    source: BlockSource,
    folds: Folds,
    checkpoint: Path | None = None,
) -> list[list[BaseEstimator]]:
    """Every model fitted to what each fold trains on, fold by fold.

    Fits that are not made of passes are kept below ``checkpoint``, and resumed from there.
    """

    def fit_one(
        model: BaseEstimator, fold: int, **kept: object
    ) -> Callable[[BlockSource], BaseEstimator]:
        def fit(rows: BlockSource) -> BaseEstimator:
            return clone(model).fit_blocks(PartOfRows(rows, folds, "train", fold), **kept)

        return fit

    places = [(fold, j) for fold in range(folds.n_folds) for j in range(len(models))]
    fitted: dict[tuple[int, int], BaseEstimator] = {}
    linear = [(fold, j) for fold, j in places if getattr(models[j], "shares_passes", False)]
    at_once = _fits_at_once(source)
    for first in range(0, len(linear), at_once):
        some = linear[first : first + at_once]
        found = share_passes(source, [fit_one(models[j], fold) for fold, j in some])
        fitted.update(zip(some, found, strict=True))
    for fold, j in places:
        if (fold, j) not in fitted:
            kept: dict[str, object] = {}
            if checkpoint is not None:
                kept = {"checkpoint": checkpoint / f"fold-{fold}-model-{j}", "resume": True}
            fitted[fold, j] = fit_one(models[j], fold, **kept)(source)
    return [[fitted[fold, j] for j in range(len(models))] for fold in range(folds.n_folds)]


def _fits_at_once(source: BlockSource) -> int:
    n, d = count_labels(source).n_rows, source.n_features
    sample = (coarse_rows(n, d) or 0) * max(1, d) * 8
    return max(1, _SAMPLE_BYTES // max(1, sample))


def check_fits_blocks(models: Sequence[BaseEstimator]) -> None:
    """Refuse rankers that cannot be fitted to blocks."""
    for model in models:
        if not hasattr(model, "fit_blocks"):
            raise TypeError(
                f"{type(model).__name__} has no fit_blocks: p is chosen on a block source for "
                "rankers that fit one, such as PNormPush, PushRanker and "
                "PushTrees(backend='xgboost'). Choose for the others on a sample in memory."
            )
