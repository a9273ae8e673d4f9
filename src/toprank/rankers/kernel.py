"""Feature maps of kernels, so that the linear engine minimises over a ball of their RKHS.

With landmarks z, their Gram matrix G = U D U' and features phi(x) = K(x, z) U D^{-1/2}, a linear
score phi(x)' b is f = sum_j a_j K(z_j, .), a = U D^{-1/2} b, and |b|^2 is the squared norm of f.
With every row a landmark this is the exact solution (the representer theorem); with fewer it is
Nyström's approximation, and the memory is rows times landmarks.

A kernel on pairs, f(x, x'), and the ranking it induces (Clémençon et al., Section 7):
from a kernel K on items, with A = 1 + K, the kernel on pairs is

    k((x, x'), (z, z')) = A(x, z) A(x', z') - A(x, z') A(x', z)
                        = K(x, z) + K(x', z') - K(x, z') - K(x', z)  +  (the same of products)

so f(x, x') = -f(x', x) is a difference of scores plus what no score can express: preferences
that go round in circles. An item's score is the mean of f(x, x_j) over the training items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils import check_random_state

from toprank._arrays import Frame, Matrix, TableLike
from toprank._numerics import FloatArray
from toprank.pairs import Explicit, IntArray, Relation

#: The kernels known by name: scikit-learn's that are positive definite on all data.
KERNELS = ("linear", "poly", "rbf", "laplacian", "cosine")
#: Without a choice of the user: rows up to which the solution is exact, and landmarks beyond.
EXACT_UP_TO, LANDMARKS = 1_000, 300
#: Directions of a smaller share of the largest eigenvalue are rounding, or too small to matter:
#: the gradient along them, and with it their part of any penalised solution, is as small.
_LEAST_SHARE = 1e-12
#: Entries of a Gram matrix held at once (16 MB).
_BLOCK_ENTRIES = 1 << 21
#: Pairs that are listed at most: with the default landmarks their features take 480 MB.
MOST_PAIRS = 200_000
_PAIRS_PER_BLOCK = 4096


@dataclass(frozen=True)
class Kernel:
    """K(x, z) with its parameters, as scikit-learn's `pairwise_kernels` takes them.

    ``centre`` is taken from the rows of a kernel that does not notice: |x - z|^2 comes from
    squares, and columns at 1e6 with a spread of one would leave no digit of it.
    """

    name: str | Callable[..., float]
    parameters: dict[str, object]
    centre: FloatArray | None = None

    @classmethod
    def resolve(
        cls,
        name: str | Callable[..., float],
        X: Matrix | Frame,
        weight: FloatArray,
        gamma: object,
        degree: float,
        coef0: float,
    ) -> Kernel:
        """Fix gamma by the data: "scale" is 1 / (d variance of X), "auto" is 1 / d."""
        if callable(name):
            return cls(name, {})
        wanted = {
            "poly": ("gamma", "degree", "coef0"),
            "rbf": ("gamma",),
            "laplacian": ("gamma",),
        }.get(name, ())
        share = weight / np.sum(weight)
        with np.errstate(over="ignore", invalid="ignore"):
            centre = share @ X if name == "rbf" and not sparse.issparse(X) else None
            spread = _variance(X, share)
        if gamma == "scale":
            gamma = 1.0 / (X.shape[1] * spread) if spread > 0 else 1.0
        elif gamma == "auto":
            gamma = 1.0 / X.shape[1]
        known = {"gamma": gamma, "degree": degree, "coef0": coef0}
        return cls(name, {key: known[key] for key in wanted}, centre)

    def subtract_centre(self, X: Matrix) -> Matrix:
        """Return the rows less the centre."""
        return X if self.centre is None else X - self.centre

    def gram(self, X: TableLike, Z: Matrix) -> FloatArray:
        """Return K(x, z) for all rows of X and Z."""
        rows, others = self.subtract_centre(X), self.subtract_centre(Z)
        with np.errstate(over="ignore", invalid="ignore"):
            gram = pairwise_kernels(rows, others, metric=self.name, **self.parameters)
        if not np.all(np.isfinite(gram)):
            raise ValueError(_too_large(X))
        return np.asarray(gram, dtype=np.float64)

    def blocks(self, X: Matrix, Z: Matrix) -> Iterator[tuple[slice, FloatArray]]:
        """Yield (rows, K(rows, Z)), some rows at a time."""
        step = max(1, _BLOCK_ENTRIES // max(1, Z.shape[0]))
        for start in range(0, X.shape[0], step):
            rows = slice(start, min(start + step, X.shape[0]))
            yield rows, self.gram(X[rows], Z)


def _variance(X: Any, share: FloatArray) -> float:
    """Variance of the entries of X, each row counted as often as its share says."""
    d = X.shape[1]
    mean = float(np.sum(share @ X)) / d
    if not sparse.issparse(X):
        apart = np.subtract(X, mean, dtype=np.float64)
        return float(np.sum(share @ np.square(apart))) / d
    squared = X.astype(np.float64)
    squared.data = np.square(squared.data - mean)
    stored = sparse.csr_array((np.ones_like(squared.data), X.indices, X.indptr), shape=X.shape)
    empty = d - float(np.sum(share @ stored))
    return (float(np.sum(share @ squared)) + empty * mean**2) / d


def _too_large(X: Matrix) -> str:
    largest = float(np.max(np.abs(X.data if sparse.issparse(X) else X), initial=0.0))
    return (
        f"The kernel is not a finite number on rows with entries of up to {largest:.3g}. Scale the "
        "columns, for example with StandardScaler, or rank by a linear score (kernel=None)."
    )


@dataclass(frozen=True)
class Landmarks:
    """Features K(x, landmarks) @ basis."""

    kernel: Kernel
    points: Matrix
    basis: FloatArray

    def features(self, X: Matrix) -> FloatArray:
        out = np.empty((X.shape[0], self.basis.shape[1]))
        for rows, gram in self.kernel.blocks(X, self.points):
            np.dot(gram, self.basis, out=out[rows])
        return out

    def dual(self, coef: FloatArray) -> FloatArray:
        """From coefficients of the features to those of K(landmark, .)."""
        return self.basis @ coef


def expansion(kernel: Kernel, X: Matrix, points: Matrix, dual: FloatArray) -> FloatArray:
    """Return f(x) = sum_j dual_j K(x, points_j) for each row of X."""
    scores = np.empty(X.shape[0])
    for rows, gram in kernel.blocks(X, points):
        np.dot(gram, dual, out=scores[rows])
    return scores


def landmarks(
    kernel: Kernel,
    X: Matrix,
    n_components: int | None,
    random_state: int | np.random.Generator | np.random.RandomState | None,
) -> Landmarks:
    """Choose the landmarks: every row where they are few, else those of Nystroem."""
    n = X.shape[0]
    if n <= (n_components or EXACT_UP_TO):
        return Landmarks(kernel, X, root_basis(kernel.gram(X, X)))
    nystroem = Nystroem(
        kernel=kernel.name,
        **kernel.parameters,
        n_components=min(n, n_components or LANDMARKS),
        random_state=random_state,
    ).fit(kernel.subtract_centre(X))
    return Landmarks(kernel, X[nystroem.component_indices_], nystroem.normalization_.T)


def root_basis(gram: FloatArray) -> FloatArray:
    """Return U D^{-1/2} of a Gram matrix, without the directions that are rounding alone."""
    values, vectors = linalg.eigh(gram)
    kept = values > _LEAST_SHARE * max(float(values[-1]), 0.0)
    if not np.any(kept):
        raise ValueError(
            "The kernel is zero on the training rows: no score can tell them apart. Use another "
            "kernel, or other parameters of it."
        )
    _refuse_indefinite(values)
    basis: FloatArray = vectors[:, kept] / np.sqrt(values[kept])
    return basis


def _refuse_indefinite(values: FloatArray) -> None:
    if values[0] < -1e-6 * values[-1]:
        raise ValueError(
            f"The kernel is not positive semi-definite: its Gram matrix has an eigenvalue of "
            f"{values[0]:.3g} beside a largest one of {values[-1]:.3g}. Use a kernel that is an "
            'inner product, such as "rbf".'
        )


class PairFeatures:
    """Features of the pairs of a relation, with landmarks among the pairs themselves."""

    def __init__(
        self,
        kernel: Kernel,
        X: Matrix,
        relation: Relation,
        n_components: int | None,
        random_state: int | np.random.RandomState | None,
    ):
        if relation.n_pairs > MOST_PAIRS:
            raise ValueError(
                f"kernel_on='pairs' lists every pair, and there are {relation.n_pairs}; the most "
                f"it takes is {MOST_PAIRS}. Use kernel_on='items', or give the pairs that matter "
                "as pairs=."
            )
        inner, outer = relation.pairs_at(np.arange(relation.n_pairs))
        self.winner, self.loser = relation.inner[inner], relation.outer[outer]
        self.kernel, self.X, self._pair_weight = kernel, X, relation.pair_weight
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
        of_pairs = weight[self.winner]
        if self._pair_weight is not None:
            of_pairs = of_pairs * self._pair_weight
        return np.concatenate([of_pairs, weight[np.unique(self.loser)]])

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
    items: Matrix
    interaction: FloatArray
    dual: FloatArray

    def compare(self, first: Matrix, second: Matrix) -> FloatArray:
        """Return f(x, x') for each row x of the first and x' of the second."""
        left = (1.0 + self.kernel.gram(first, self.items)) @ self.interaction
        right = 1.0 + self.kernel.gram(second, self.items)
        return np.einsum("ij,ij->i", left, right)
