"""Which p the report speaks of first: chosen on other rows than those it is measured on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toprank._numerics import FloatArray
from toprank.report.held_out import HeldOut, merge
from toprank.report.measures import LEVEL, Figure, in_folds
from toprank.report.text import number
from toprank.tuning import Candidate, PChoice
from toprank.tuning.support import Support


@dataclass(frozen=True)
class Chosen:
    """The choice of p.

    Attributes
    ----------
    index : int
        Place of the chosen p among those tried.
    scores : array
        For every row the score of the p that the other folds speak for: what choosing p costs is
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


def choose(held: HeldOut, figure: Figure, support: Support | None, test_to_train: float) -> Chosen:
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
        allowed[whole.chosen_index], merged, tuple(used), _verdict(whole, figure, support)
    )


def _is_supported(p: float, support: Support | None) -> bool:
    return support is None or (support.p is not None and p <= support.p)


def _pick(held: HeldOut, allowed: list[int], by_fold: FloatArray, test_to_train: float) -> PChoice:
    candidates = tuple(Candidate(f"p = {number(held.ps[j])}", held.ps[j]) for j in allowed)
    return PChoice(candidates, by_fold, "", "best", test_to_train, LEVEL)


def _verdict(choice: PChoice, figure: Figure, support: Support | None) -> str:
    best = choice.chosen_index
    if support is not None and support.p is None:
        return "The data supports none of the p that were tried; this is the gentlest of them."
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
        f"Of the p that the data supports it does best: {what}, is "
        f"{figure.format(choice.mean[best])}, against {figure.format(choice.mean[0])} for "
        f"{choice.candidates[0].name}."
    )
    if gap.p_value > 1 - choice.level:
        said += " The folds alone cannot tell the two apart."
    return said
