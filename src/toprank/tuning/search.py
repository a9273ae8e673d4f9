"""Every setting of a grid on the same folds: the choice, and the score to expect of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from toprank._numerics import FloatArray
from toprank.blocks import Workers
from toprank.folds import Candidate, Fold, PChoice, Scoring, tested_over_trained
from toprank.inference import Interval
from toprank.rankers.base import LinearRanker
from toprank.rankers.proper import ProperRanker
from toprank.tuning.grid import GridFit, fit_grid
from toprank.tuning.nested import interval_of_choice
from toprank.tuning.rows import TuningRows


def choice_line(choice: PChoice) -> str:
    """Return the setting that was chosen and its score, as one line."""
    chosen = choice.chosen
    return f"{chosen.name}, alpha = {chosen.alpha:g}, {choice.metric} {choice.best_score:.4g}"


@dataclass(frozen=True)
class FittedSettings:
    """The logistic baselines, one per alpha, and the pushes, fitted to the same rows."""

    baseline: GridFit
    push: GridFit

    def scores(self, rows: TuningRows) -> FloatArray:
        """Return the scores of rows, one line per setting."""
        return np.concatenate([self.baseline.scores(rows.X), self.push.scores(rows.X)])


@dataclass(frozen=True)
class SettingSearch:
    """What is tried, what it is scored by, and how it is chosen.

    Attributes
    ----------
    candidates : tuple of Candidate
        The settings, the weakest push first.
    templates : sequence of LinearRanker
        An unfitted ranker for each: the baselines, then the pushes.
    score : Scoring
        What they are compared by.
    rule, level
        As in `PChoice`.
    workers : Workers
        Threads for the folds.
    """

    candidates: tuple[Candidate, ...]
    templates: Sequence[LinearRanker]
    score: Scoring
    rule: str
    level: float
    workers: Workers

    def fit(self, rows: TuningRows, near: FittedSettings | None = None) -> FittedSettings:
        """Fit every setting, starting from fits to most of the same rows."""
        rows = rows.take(rows.by_class(np.arange(len(rows))))
        width = sum(isinstance(template, ProperRanker) for template in self.templates)
        data = (rows.X, rows.y, rows.fit_weight)
        of_baseline, of_push = (None, None) if near is None else (near.baseline, near.push)
        return FittedSettings(
            fit_grid(self.templates[:width], width, *data, of_baseline),
            fit_grid(self.templates[width:], width, *data, of_push),
        )

    def choose(
        self,
        rows: TuningRows,
        folds: Sequence[Fold],
        whole: FittedSettings,
        tell: Callable[[str], None] | None = None,
    ) -> PChoice:
        """Compare the settings on the folds; `whole` are their fits to all of the rows.

        ``tell`` is called after every fold with a line about the choice by those so far.
        """
        steadier = self.score.steadier

        def of_fold(fold: Fold) -> list[float]:
            test = rows.take(fold[1])
            lines = self.fit(rows.take(fold[0]), whole).scores(test)
            return [steadier.of_scores(test.y, line, test.weight) for line in lines]

        columns: list[list[float]] = []
        for column in self.workers.map(of_fold, folds):
            columns.append(column)
            if tell is not None:
                overlap = tested_over_trained(folds[: len(columns)])
                so_far = self._choice(np.column_stack(columns), overlap)
                tell(f"fold {len(columns)} of {len(folds)}; so far {choice_line(so_far)}")
        return self._choice(np.column_stack(columns), tested_over_trained(folds))

    def nested_interval(
        self, rows: TuningRows, cv: object, whole: FittedSettings, repeats: int, seed: int
    ) -> Interval:
        """Interval of the score of the choice, each row tested by one made without its fold."""

        def scores_of(train: TuningRows, tests: Sequence[TuningRows]) -> list[FloatArray]:
            fitted = self.fit(train, whole)
            return [fitted.scores(test) for test in tests]

        return interval_of_choice(
            rows,
            self.score,
            scores_of,
            lambda scores: self._choice(scores, 1 / (scores.shape[1] - 1)).chosen_index,
            groups=rows.clusters(cv),
            level=self.level,
            repeats=repeats,
            seed=seed,
            workers=self.workers,
        )

    def interval_aside(self, scores: FloatArray, aside: TuningRows, cv: object) -> Interval:
        """Interval of the score of rows kept aside, from their scores by the choice."""
        return self.score.interval(aside.y, scores, aside.weight, aside.clusters(cv), self.level)

    def _choice(self, scores: FloatArray, overlap: float) -> PChoice:
        label = self.score.steadier.label
        return PChoice(self.candidates, scores, label, self.rule, overlap, self.level)
