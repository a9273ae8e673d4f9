"""Every setting of a grid on folds of a block source: fits, scores and the choice, in few passes.

All folds and all settings read the rows together (`toprank.blocks.shared`). The fits to a fold
start from the fits to all rows, as in memory; the rows that a fold tests are scored where they lie.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from toprank._arrays import AnyArray, BoolArray, FloatArray
from toprank.blocks import Block, BlockSource
from toprank.blocks.design import design_of
from toprank.blocks.parts import Folds, PartOfRows
from toprank.blocks.shared import share_passes
from toprank.blocks.source import join_pieces
from toprank.folds import Candidate, PChoice, Scoring
from toprank.inference import Interval
from toprank.inference.intervals import BlockScores
from toprank.metrics.block_list import EXACT_UP_TO
from toprank.objective import LabelledData, count_labels
from toprank.rankers.base import LinearRanker
from toprank.rankers.blockwise import BlockScore, look
from toprank.rankers.proper import ProperRanker
from toprank.tuning.grid import GridFit, fit_grid_to
from toprank.tuning.search import choice_line

if TYPE_CHECKING:
    from toprank.blocks.statistics import LabelCounts, Units

#: Bytes of scores out of fold that the driver holds at once.
_SCORE_BYTES = 1 << 28
#: Lists of the highest rows and bins that the driver holds at once, and their sizes.
_LISTS, _KEEP_TOP, _BINS = 40, 100_000, 65_536

#: Of each fold: labels, weights, a line of scores per setting, and groups.
_FoldPieces = list[tuple[BoolArray, FloatArray, FloatArray, AnyArray | None]]


@dataclass(frozen=True)
class _FoldScores:
    """Scores of the rows that each fold tests, by the coefficients of that fold.

    The state holds the coefficients, one matrix per fold. Each piece is, for each fold, (which rows
    are positive, their weights, their scores: one line per setting).
    """

    folds: Folds
    part: str
    classes: np.ndarray
    units: Units

    def local(self, block: Block, coefs: list[FloatArray]) -> dict[int, _FoldPieces]:
        design = design_of(block.X, self.units)
        counts = np.ones(block.n_rows) if block.weight is None else np.asarray(block.weight, float)
        positive = np.asarray(np.asarray(block.y) == self.classes[1])
        pieces = []
        inside = [self.folds.holds(block, self.part, k) & (counts > 0) for k in range(len(coefs))]
        scores = [
            np.empty((len(coef), int(np.sum(rows))))
            for coef, rows in zip(coefs, inside, strict=True)
        ]
        ends = [np.concatenate([[0], np.cumsum(rows)]) for rows in inside]
        for part, tile in design.tiles():
            for k, coef in enumerate(coefs):
                mine = inside[k][part]
                if mine.any():
                    first, last = ends[k][part.start], ends[k][min(part.stop, block.n_rows)]
                    scores[k][:, first:last] = tile.scores(coef)[:, mine]
        for rows, line in zip(inside, scores, strict=True):
            groups = None if block.groups is None else np.asarray(block.groups)[rows]
            pieces.append((positive[rows], counts[rows], line, groups))
        return {block.index: pieces}

    def merge(
        self, left: dict[int, _FoldPieces], right: dict[int, _FoldPieces]
    ) -> dict[int, _FoldPieces]:
        return join_pieces(left, right)


@dataclass
class BlockSearch:
    """What is tried on the folds of a source, what it is scored by, and how it is chosen.

    Attributes
    ----------
    source : BlockSource
    folds : Folds
    candidates, templates, score, rule, level
        As in `toprank.tuning.search.SettingSearch`.
    class_weight : as in the rankers
    passes : Counter
        The passes that were made, by kind.
    """

    source: BlockSource
    folds: Folds
    candidates: tuple[Candidate, ...]
    templates: Sequence[LinearRanker]
    score: Scoring
    rule: str
    level: float
    class_weight: object
    passes: Counter[str] = field(default_factory=Counter)

    def look(self) -> LabelledData:
        """Look at the rows to choose on."""
        self.passes.update(labels=1, describe=1)
        inner = PartOfRows(self.source, self.folds, "inner")
        self.data = look(inner, self.class_weight, intercepts=1)
        return self.data

    def choose(self, tell: Callable[[str], None] | None = None) -> PChoice:
        """Fit every setting to every fold, score the rows that it tests, and choose.

        ``tell`` is called after every step with a line about it.
        """
        tell = tell or (lambda text: None)
        self.whole = self._fit_whole()
        tell(f"{len(self.templates)} settings are fitted to all rows")
        fitted = self._fit_folds()
        tell(f"and without each of {self.folds.n_folds} folds")
        scores, overlap = self._score_folds(fitted)
        label = self.score.steadier.label
        choice = PChoice(self.candidates, scores, label, self.rule, overlap, self.level)
        tell(f"all folds are scored: {choice_line(choice)}")
        return choice

    @property
    def _grids(self) -> tuple[tuple[Sequence[LinearRanker], int], ...]:
        """The baselines and the pushes, and the settings of a line."""
        width = sum(isinstance(template, ProperRanker) for template in self.templates)
        return (self.templates[:width], width), (self.templates[width:], width)

    def _fit_whole(self) -> list[GridFit]:
        inner = self.data.source

        def fit_one(
            templates: Sequence[LinearRanker], width: int
        ) -> Callable[[BlockSource], GridFit]:
            return lambda member: fit_grid_to(templates, width, self.data.through(member))

        return share_passes(inner, [fit_one(*grid) for grid in self._grids], self.passes)

    def _fit_folds(self) -> list[list[GridFit]]:
        """Fit both grids to the rows that each fold trains on, all in the same passes."""

        def fit_one(grid: int, fold: int) -> Callable[[BlockSource], GridFit]:
            templates, width = self._grids[grid]
            near = self.whole[grid]

            def fit(member: BlockSource) -> GridFit:
                part = PartOfRows(member, self.folds, "train", fold)
                counts = count_labels(part)
                self._check_classes(counts, fold, "to train on")
                like = self.data
                data = LabelledData(part, counts, like.classes, like.class_weight, like.size, like)
                return fit_grid_to(templates, width, data, near)

            return fit

        each = range(self.folds.n_folds)
        works = [fit_one(grid, fold) for fold in each for grid in (0, 1)]
        fitted = share_passes(self.source, works, self.passes)
        return [fitted[2 * fold : 2 * fold + 2] for fold in each]

    def _check_classes(self, counts: LabelCounts, fold: int, role: str) -> None:
        there = {
            label for label, weight in zip(counts.labels, counts.weight, strict=True) if weight
        }
        if not set(self.data.classes) <= there:
            raise ValueError(
                f"Fold {fold} has rows of one class only {role}: take fewer folds, or other groups."
            )

    def _coefs(self, fitted: list[GridFit]) -> FloatArray:
        """Coefficients of all settings, one line each, without intercepts."""
        d = self.source.n_features
        return np.array([coef[:d] for grid in fitted for coef in grid.coefs])

    def _score_folds(self, fitted: list[list[GridFit]]) -> tuple[FloatArray, float]:
        """Scores of all settings on all folds, and rows tested over rows trained on."""
        coefs = [self._coefs(grids) for grids in fitted]
        rows = self.data.counts.n_present
        trained = np.array([grids[0].data.counts.n_present for grids in fitted])
        if rows <= EXACT_UP_TO:
            scores, tested = self._exact_scores(coefs, rows)
        else:
            scores, tested = self._listed_scores(coefs)
        return scores, float(np.mean(tested / trained))

    def _gather(
        self, part: str, coefs: list[FloatArray]
    ) -> list[tuple[BoolArray, FloatArray | None, FloatArray, AnyArray | None]]:
        """Labels, weights, scores and groups of a part of each fold, in the order of the blocks."""
        self.passes["scores"] += 1
        sweep = _FoldScores(self.folds, part, self.data.classes, self.data.units)
        pieces = self.source.map_reduce(sweep, coefs)
        found = []
        for fold in range(len(coefs)):
            parts = [pieces[index][fold] for index in sorted(pieces)]
            y, weight, scores, groups = zip(*parts, strict=True)
            found.append(
                (
                    np.concatenate(y),
                    np.concatenate(weight) if self.data.counts.weighted else None,
                    np.concatenate(scores, axis=1),
                    None if groups[0] is None else np.concatenate(groups),
                )
            )
        return found

    def _exact_scores(self, coefs: list[FloatArray], rows: int) -> tuple[FloatArray, FloatArray]:
        settings = len(coefs[0])
        at_once = max(1, _SCORE_BYTES // (8 * max(1, rows)))
        table, tested = np.empty((settings, len(coefs))), np.zeros(len(coefs))
        for first in range(0, settings, at_once):
            some = slice(first, first + at_once)
            for fold, found in enumerate(self._gather("test", [coef[some] for coef in coefs])):
                positive, weight, scores, _ = found
                if positive.all() or not positive.any():
                    raise ValueError(
                        f"Fold {fold} has rows of one class only to test: take fewer folds."
                    )
                tested[fold] = len(positive)
                table[some, fold] = [
                    self.score.steadier.of_scores(positive, line, weight) for line in scores
                ]
        return table, tested

    def _listed_scores(self, coefs: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
        """The same by the highest rows and bins: scores of so many rows stay where they lie."""
        metric = self.score.metric
        if metric is None:
            raise ValueError(
                f"scoring={self.score.name!r} needs the scores of all rows in one place, and there "
                f"are more than {EXACT_UP_TO:,}: take a metric of toprank.metrics."
            )
        classes, units = self.data.classes, self.data.units
        places = [(one, fold) for one in range(len(coefs[0])) for fold in range(len(coefs))]
        table, tested = np.empty((len(coefs[0]), len(coefs))), np.zeros(len(coefs))

        def rank_one(one: int, fold: int) -> Callable[[BlockSource], BlockScores]:
            def rank(member: BlockSource) -> BlockScores:
                part = PartOfRows(member, self.folds, "test", fold)
                counts = count_labels(part)
                self._check_classes(counts, fold, "to test")
                score = BlockScore(units, coefs[fold][one], 0.0)
                return BlockScores.of(part, score, classes, counts.n_present, _KEEP_TOP, _BINS)

            return rank

        for first in range(0, len(places), _LISTS):
            some = places[first : first + _LISTS]
            found = share_passes(self.source, [rank_one(*place) for place in some], self.passes)
            for (one, fold), ranked in zip(some, found, strict=True):
                value = ranked.metric(metric.name, **self.score.steadier.kwargs).value
                table[one, fold], tested[fold] = self.score.sign * value, ranked.n_rows
        return table, tested

    def interval_aside(self, chosen: int) -> Interval:
        """Interval of the metric on the rows kept aside, by the choice fitted to the others."""
        coef = self._coefs(self.whole)[chosen : chosen + 1]
        ((positive, weight, scores, groups),) = self._gather("aside", [coef])
        clusters = groups if getattr(self.folds, "by_group", False) else None
        return self.score.interval(positive, scores[0], weight, clusters, self.level)
