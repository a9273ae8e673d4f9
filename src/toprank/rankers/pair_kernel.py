"""A kernel on pairs, f(x, x'), and the ranking it induces (Clémençon et al., Section 7).

From a kernel K on items, with A = 1 + K, the kernel on pairs is

    k((x, x'), (z, z')) = A(x, z) A(x', z') - A(x, z') A(x', z)
                        = K(x, z) + K(x', z') - K(x, z') - K(x', z)  +  (the same of products)

so f(x, x') = -f(x', x) is a difference of scores plus what no score can express: preferences
that go round in circles. An item's score is the mean of f(x, x_j) over the training items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from toprank._numerics import FloatArray
from toprank.pairs import Explicit, IntArray, Relation
from toprank.rankers.kernel import EXACT_UP_TO, LANDMARKS, Kernel, root_basis

#: Pairs that are listed at most: with the default landmarks their features take 480 MB.
MOST_PAIRS = 200_000
_PAIRS_PER_BLOCK = 4096


class PairFeatures:
    """Features of the pairs of a relation, with landmarks among the pairs themselves."""

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        relation: Relation,
        n_components: int | None,
        random_state: Any,
    ):
        if relation.n_pairs > MOST_PAIRS:
            raise ValueError(
                f"kernel_on='pairs' lists every pair, and there are {relation.n_pairs}; the most "
                f"it takes is {MOST_PAIRS}. Use kernel_on='items', or give the pairs that matter "
                "as pairs=."
            )
        inner, outer = relation.pairs_at(np.arange(relation.n_pairs))
        self.winner, self.loser = relation.inner[inner], relation.outer[outer]
        self.kernel, self.X = kernel, X
        n = relation.n_pairs
        chosen = np.arange(n)
        if n > (n_components or EXACT_UP_TO):
            rng = check_random_state(random_state)
            chosen = np.sort(rng.permutation(n)[: min(n, n_components or LANDMARKS)])
        self.items, place = np.unique(
            np.concatenate([self.winner[chosen], self.loser[chosen]]), return_inverse=True
        )
        self.above, self.below = place[: len(chosen)], place[len(chosen) :]
        among = self._affinity(self.items)
        self.basis = root_basis(self._pair_gram(among[self.above], among[self.below]))

    def _affinity(self, rows: IntArray) -> FloatArray:
        return 1.0 + self.kernel.gram(self.X[rows], self.X[self.items])

    def _pair_gram(self, of_first: FloatArray, of_second: FloatArray) -> FloatArray:
        """The kernel of pairs with the landmark pairs, from the affinities of their two items."""
        above, below = self.above, self.below
        gram: FloatArray = of_first[:, above] * of_second[:, below]
        gram -= of_first[:, below] * of_second[:, above]
        return gram

    def design(self) -> FloatArray:
        """A row of features for each pair, then a row of zeros for each loser.

        The margin of a pair is the score of its row less that of its loser's zeros, so that
        the engine for scores fits f(x, x') and prices the losers' heights.
        """
        n = len(self.winner)
        losers = len(np.unique(self.loser))
        features = np.zeros((n + losers, self.basis.shape[1]))
        for start in range(0, n, _PAIRS_PER_BLOCK):
            rows = slice(start, min(start + _PAIRS_PER_BLOCK, n))
            first, second = self._affinity(self.winner[rows]), self._affinity(self.loser[rows])
            features[rows] = self._pair_gram(first, second) @ self.basis
        return features

    def relation(self) -> Explicit:
        """Each pair's row against its loser's row of zeros."""
        _, place = np.unique(self.loser, return_inverse=True)
        n = len(self.winner)
        return Explicit(np.arange(n), n + place)

    def weight(self, weight: FloatArray) -> FloatArray:
        """Weights of the rows of the design."""
        return np.concatenate([weight[self.winner], weight[np.unique(self.loser)]])

    def rule(self, coef: FloatArray, weight: FloatArray) -> PairRule:
        """Return f for coefficients of the features; the weighted rows give the items' scores."""
        interaction = np.zeros((len(self.items), len(self.items)))
        np.add.at(interaction, (self.above, self.below), self.basis @ coef)
        interaction -= interaction.T
        present = np.flatnonzero(weight > 0)
        total = np.zeros(len(self.items))
        for start in range(0, len(present), _PAIRS_PER_BLOCK):
            rows = present[start : start + _PAIRS_PER_BLOCK]
            total += weight[rows] @ self._affinity(rows)
        mean = total / np.sum(weight)
        return PairRule(self.kernel, self.X[self.items], interaction, interaction @ mean)


@dataclass(frozen=True)
class PairRule:
    """f(x, x') = A(x, items) C A(items, x'), C antisymmetric, and its mean over x'."""

    kernel: Kernel
    items: Any
    interaction: FloatArray
    dual: FloatArray

    def compare(self, first: Any, second: Any) -> FloatArray:
        """Return f(x, x') for each row x of the first and x' of the second."""
        left = (1.0 + self.kernel.gram(first, self.items)) @ self.interaction
        right = 1.0 + self.kernel.gram(second, self.items)
        return np.einsum("ij,ij->i", left, right)
