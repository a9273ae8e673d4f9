"""Stumps of one label each, judged by AdaBoost.MH's or AdaBoost.MR's objective."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import JsonObject
from toprank._numerics import FloatArray, log_of, log_sum_exp, softmax
from toprank.blocks import Workers
from toprank.rankers.boosting.rounds import EQUAL
from toprank.rankers.boosting.stumps import Binned, Masses, Stump, best_stump


@dataclass(frozen=True)
class LabelStump:
    """A stump of one label; without a stump, the label's constant."""

    label: int
    stump: Stump | None
    gain: float

    @property
    def key(self) -> Hashable:
        """What makes two of them the same weak ranker."""
        return self.label, None if self.stump is None else self.stump.key

    def facts(self) -> JsonObject:
        """What the history says about it."""
        of_stump = {"feature": None} if self.stump is None else self.stump.facts()
        return {"label": self.label, **of_stump}


class LabelObjective:
    r"""The loss of label scores f and the weights of the entries (label, example).

    "mh": sum over entries of e^{-y f}. "mr": for each example the mean over its pairs of a label it
    has and one it has not of e^{-(f - f')}, summed over examples (Schapire & Singer 1999).
    "mr_pooled": the product of the sums over all entries of either kind (Rudin & Schapire 2009,
    Section 5.1, where a minus stands for the product).

    Parameters
    ----------
    method : {"mh", "mr", "mr_pooled"}
    members : bool array of shape (labels, n)
    weight : array of shape (n,) or None
        Repetition counts of the examples.
    """

    def __init__(self, method: str, members: NDArray[np.bool_], weight: FloatArray | None):
        self.method, self.members = method, members
        self.sign = np.where(members, 1.0, -1.0)
        logs = np.zeros(members.shape[1]) if weight is None else log_of(weight)
        lightest = min(0.0, float(np.min(logs)))
        if method == "mr":
            counts = members.sum(axis=0) * (~members).sum(axis=0).astype(np.float64)
            logs = logs - log_of(np.maximum(counts, 1.0))
            logs = np.where(counts > 0, logs, -np.inf)
        self.log_weight = logs
        self.log_pairs = self.weights(np.zeros(members.shape))[0]
        self.log_n_pairs = self.log_pairs - (1 + (method == "mr_pooled")) * lightest

    def weights(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return the log loss and the weights of the entries."""
        terms = self.log_weight - self.sign * scores
        if self.method == "mh":
            value = log_sum_exp(terms.reshape(-1))
            return value, np.exp(terms - value)
        if self.method == "mr_pooled":
            out = np.empty_like(terms)
            for kind in (self.members, ~self.members):
                out[kind] = softmax(terms[kind])
            return self._pool(terms), out
        return self._by_example(scores)

    def _pool(self, terms: FloatArray) -> float:
        return log_sum_exp(terms[self.members]) + log_sum_exp(terms[~self.members])

    def _by_example(self, scores: FloatArray) -> tuple[float, FloatArray]:
        tilted = -self.sign * scores
        high = _column_sums(np.where(self.members, tilted, -np.inf))
        low = _column_sums(np.where(self.members, -np.inf, tilted))
        of_example = self.log_weight + high + low
        value = log_sum_exp(of_example[np.isfinite(of_example)])
        with np.errstate(invalid="ignore"):
            other = np.where(self.members, low, high)
            out = np.exp(
                np.where(np.isfinite(of_example), self.log_weight + other, -np.inf) + tilted - value
            )
        return value, out

    def skew(self, scores: FloatArray) -> float:
        """Return the shift of all scores at which members and others weigh the same."""
        terms = np.where(np.isfinite(self.log_weight), self.log_weight, 0.0) - self.sign * scores
        return 0.5 * (log_sum_exp(terms[self.members]) - log_sum_exp(terms[~self.members]))


def _column_sums(terms: FloatArray) -> FloatArray:
    top = np.max(terms, axis=0)
    safe = np.where(np.isfinite(top), top, 0.0)
    return safe + log_of(np.sum(np.exp(terms - safe), axis=0))


class LabelStumps:
    """Scores of all labels that move together, one label's stump per round."""

    def __init__(self, objective: LabelObjective, binned: Binned, workers: Workers):
        from toprank.rankers.boosting import kernels

        self.pairs, self.binned, self.workers = objective, binned, workers
        modes = {"mh": kernels.BY_ROW, "mr": kernels.BY_EXAMPLE, "mr_pooled": kernels.POOLED}
        self._mode = modes[objective.method]
        self.scores = np.zeros(objective.members.shape)
        self._kinds = objective.members.astype(np.uint8)
        self._refresh()

    def _refresh(self) -> None:
        self.log_loss, self._weights = self.pairs.weights(self.scores)
        self._totals = np.array(
            [
                [float(np.sum(w[kind])) for kind in (m, ~m)]
                for w, m in zip(self._weights, self.pairs.members, strict=True)
            ]
        )

    def best(self, selection: str) -> LabelStump:
        """Return what lowers the loss most: the first among equals, constants before stumps."""
        labels = range(len(self.scores))
        found = [c for pair in self.workers.map(self._best_of, labels) for c in pair]
        best = max(choice.gain for choice in found)
        return next(choice for choice in found if choice.gain >= best - EQUAL)

    def _best_of(self, label: int) -> list[LabelStump]:
        from toprank.rankers.boosting import kernels

        binned = self.binned
        masses = self.masses(LabelStump(label, None, 0.0))
        gain = float(abs(np.sqrt(masses.plus) - np.sqrt(masses.minus)))
        d = len(binned.n_edges)
        sums = np.zeros((2, d, 256))
        kernels.label_sums(binned.codes, self._kinds[label], self._weights[label], 0, d, sums)
        gains = binned.empty_gains()
        kernels.class_gains(
            sums, self._rest(label), binned.n_edges, binned.has_missing, self._mode, 1.0, gains
        )
        stump = best_stump(gains, binned)
        found = [LabelStump(label, None, gain)]
        return found if stump is None else [*found, LabelStump(label, stump, stump.gain)]

    def _rest(self, label: int) -> FloatArray:
        return np.sum(np.delete(self._totals, label, axis=0), axis=0)

    def masses(self, choice: LabelStump) -> Masses:
        """Return the weights that the choice ranks rightly, wrongly, not at all."""
        from toprank.rankers.boosting import kernels

        above = self._above(choice)
        weight, members = self._weights[choice.label], self.pairs.members[choice.label]
        p1, p0, n1, n0 = (
            float(np.sum(weight[kind & side]))
            for kind in (members, ~members)
            for side in (above, ~above)
        )
        right, wrong = kernels.label_masses(p1, p0, n1, n0, self._rest(choice.label), self._mode)
        return Masses(right, wrong, max(0.0, 1.0 - right - wrong))

    def _above(self, choice: LabelStump) -> NDArray[np.bool_]:
        if choice.stump is None:
            return np.full(len(self.pairs.log_weight), True)
        return choice.stump.table[self.binned.codes[choice.stump.column]] == 1

    def move(self, choice: LabelStump, step: float) -> None:
        """Add the step to the label's scores where h = 1; for MH take it off where h = 0."""
        above = self._above(choice)
        below = -step if self.pairs.method == "mh" else 0.0
        self.scores[choice.label] += np.where(above, step, below)
        self._refresh()
