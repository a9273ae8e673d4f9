"""p="auto": every p on the same folds, by trees of fewer and larger steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from toprank.blocks import BlockSource, go_on
from toprank.blocks.drawn import draw_rows
from toprank.folds import Candidate, PChoice, check_powers, folds_of
from toprank.folds.splits import CrossValidation, Fold, tested_over_trained
from toprank.objective import count_labels
from toprank.rankers.callbacks import without_callbacks
from toprank.rankers.trees.libraries import BACKENDS, bins_once
from toprank.rankers.trees.plan import TreePlan, TreeRows, plan_of
from toprank.rankers.trees.row_folds import about_so_many, fold_of_rows, have_pairs
from toprank.rankers.trees.stopping import StoppingRule

#: What is taken where the rows do not say: it leads in the mean over many tables.
USUAL_POWER = 4.0
#: Rows that p is chosen on, at most.
CHOSEN_ON = 100_000
#: Rounds of the trees that p is chosen by, at most, and the learning rate they may be raised to.
_ROUNDS, _RATE = 100, 0.1
#: Rows of each class that p is chosen on at least.
_FEWEST = 10


def choose_power(trees: Any, rows: TreeRows, groups: ArrayLike | None = None) -> PChoice | None:
    """Compare every p of ``trees.ps`` by cross-validation; None where there are too few rows.

    ``rows`` start from scores that have not been scaled, if from any; ``groups`` are as they were
    given, for a splitter of the user's.
    """
    candidates = candidates_of(trees.ps)
    folds = _folds_of(trees.cv, rows, groups)
    if folds is None:
        return None
    rule = StoppingRule.by_metric(trees, grouped=rows.groups is not None).steadied()
    plan = quick_plan(plan_of(trees))
    grow = BACKENDS[trees.backend].grow
    values = np.empty((len(candidates), len(folds)))
    with bins_once():
        for j, (train, test) in enumerate(folds):
            for i, candidate in enumerate(candidates):
                go_on()
                given = _started(trees, rows, candidate.p)
                grown = grow(given.take(train), plan, trees._push_of(candidate.p), None).trees
                unseen = given.take(test)
                scores = grown.scores(unseen.X)
                scores = scores if unseen.start is None else scores + unseen.start
                values[i, j] = rule.measure(unseen)(scores)
    overlap = tested_over_trained(folds)
    return PChoice(tuple(candidates), values, rule.label, trees.rule, overlap)


def choose_on_sample(trees: Any, source: BlockSource, init_model: object = None) -> PChoice | None:
    """Choose p on rows that are drawn from a source and brought here; None if they do not tell."""
    counts = count_labels(source)
    drawn = draw_rows(source, CHOSEN_ON, counts.n_present, seed=0, by_group=source.grouped)
    if len(np.unique(drawn.y)) < 2:  # the fit, which sees all rows, says what is wrong with them
        return None
    # a copy, because the columns that the fit sees are learned where the rows lie
    asked = without_callbacks(clone(trees))
    asked.init_model_ = init_model
    rows = asked._check_fit(drawn.X, drawn.y, drawn.weight, drawn.groups)
    if source.feature_names is not None:
        asked.feature_names_in_ = np.asarray(source.feature_names, dtype=object)
    start = asked._start_scores(drawn.X, None, len(rows))
    return choose_power(asked, replace(rows, start=start), drawn.groups)


def candidates_of(ps: Sequence[float | None]) -> list[Candidate]:
    """Return what is compared, the library's own objective first if None is among the powers."""
    powers = [p for p in ps if p is not None]
    candidates = [Candidate(f"p = {p:g}", p) for p in (check_powers(powers) if powers else ())]
    if len(powers) < len(ps):
        candidates.insert(0, Candidate("the binary objective", None, pushes=False))
    if not candidates:
        raise ValueError(f"ps={ps!r}: expected one or more numbers from 1 to infinity, or None.")
    return candidates


def usual_power(ps: Sequence[float | None]) -> float | None:
    """Return the p that is taken without a comparison: 4, or the nearest to it among these."""
    powers = [candidate.p for candidate in candidates_of(ps) if candidate.p is not None]
    return min(powers, key=lambda p: abs(np.log(p / USUAL_POWER)), default=None)


def quick_plan(plan: TreePlan) -> TreePlan:
    """Return the plan with a quarter of the rounds or less, and steps that make up for it."""
    rounds = min(plan.n_estimators, _ROUNDS)
    rate = min(_RATE, plan.learning_rate * plan.n_estimators / rounds)
    rate = max(rate, plan.learning_rate)
    return replace(
        plan, n_estimators=rounds, learning_rate=rate, callbacks=(), kept=None, verbose=0
    )


def _started(trees: Any, rows: TreeRows, p: float | None) -> TreeRows:
    if rows.start is None:
        return rows
    return replace(rows, start=trees._scale_for(p) * rows.start)


def _folds_of(cv: CrossValidation, rows: TreeRows, groups: ArrayLike | None) -> list[Fold] | None:
    """The folds, with pairs to rank on both sides; None where the rows are too few for it."""
    drawn = about_so_many(rows, CHOSEN_ON)
    count = int(cv) if isinstance(cv, Integral) else 2
    fewest = min(np.count_nonzero(rows.y[drawn]), np.count_nonzero(~rows.y[drawn]))
    if fewest < max(_FEWEST, count):
        return None
    if isinstance(cv, Integral):
        there = np.flatnonzero(drawn)
        fold = fold_of_rows(rows.take(there), count)
        folds = [(there[fold != j], there[fold == j]) for j in range(count)]
    else:
        given = folds_of(cv, rows.y, groups=groups, weight=rows.weight)
        folds = [(train[drawn[train]], test[drawn[test]]) for train, test in given]
    sides = (rows.take(side) for parts in folds for side in parts)
    return folds if all(map(have_pairs, sides)) else None
