"""The certificate of an unpenalised fit over blocks: the dual value in one more pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toprank._numerics import FloatArray, log_of
from toprank.blocks.source import Block
from toprank.objective.blockwise.rows import View, open_block
from toprank.objective.duality import Terms, merged_terms, moved_terms


@dataclass(frozen=True)
class DualState:
    """A point, a step, and of each class its tilt, log mass, log total and mean along the step."""

    coef: FloatArray
    step: FloatArray
    classes: tuple[tuple[float, float, float, float], tuple[float, float, float, float]]


@dataclass(frozen=True)
class Dual:
    """Terms of the dual value of `toprank.objective.duality`, for positives and negatives."""

    view: View

    def local(self, block: Block, state: DualState) -> Terms:
        opened = open_block(block, self.view)
        scores, along = opened.scores(state.coef), opened.scores(state.step)
        positive, weight = opened.labels()
        total: Terms = (np.inf, 0.0)
        for members, of_class in zip((positive, ~positive), state.classes, strict=True):
            tilt, log_mass, log_total, mean = of_class
            present = members if weight is None else members & (weight > 0)
            exponent = tilt * scores[present] - log_mass
            log_weight = 0.0 if weight is None else log_of(weight[present])
            terms = moved_terms(
                exponent + log_total, np.exp(log_weight + exponent), along[present], tilt, mean
            )
            total = merged_terms(total, terms)
        return total

    def merge(self, left: Terms, right: Terms) -> Terms:
        return merged_terms(left, right)
