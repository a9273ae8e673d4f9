"""Trees of any library as plain arrays: scores, contributions, files and ONNX without it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import AnyArray
from toprank._numerics import FloatArray

NodeNumbers = NDArray[np.int64]
#: Walks of a row down a tree that are done sooner than a compiler is loaded, which takes half a
#: second: the first hundred rows of a list in five hundred trees.
_FEW_WALKS = 50_000
#: roots, left, right, feature, threshold, value
ForestArrays = tuple[NodeNumbers, NodeNumbers, NodeNumbers, NodeNumbers, FloatArray, FloatArray]


@dataclass(frozen=True)
class FlatForest:
    """Binary trees, one after the other; a row goes right where x > threshold.

    A missing value is above nothing and goes to the left.

    Attributes
    ----------
    roots : array of int
        Where each tree begins.
    left, right : array of int
        The children of each node, always further on; -1 at a leaf.
    feature : array of int
        The column that a split asks about.
    threshold : array of float
    value : array of float
        What a leaf adds to the score; at a split, the mean of the training rows that reach it.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.rankers.ensemble.flat_forest import FlatForest
    >>> ends = np.array([-1, -1])
    >>> tree = FlatForest(np.array([0]), np.array([1, -1, -1]), np.array([2, -1, -1]),
    ...                   np.zeros(3, int), np.array([0.5, 0, 0]), np.array([0.0, -1.0, 2.0]))
    >>> tree.sums(np.array([[0.0], [1.0], [np.nan]])).tolist()
    [-1.0, 2.0, -1.0]
    """

    roots: NodeNumbers
    left: NodeNumbers
    right: NodeNumbers
    feature: NodeNumbers
    threshold: FloatArray
    value: FloatArray

    @classmethod
    def join(cls, trees: Sequence[FlatForest]) -> FlatForest:
        """Return the trees of several forests as one."""
        starts = np.cumsum([0, *(len(tree.left) for tree in trees[:-1])])

        def shift(name: str) -> NodeNumbers:
            return np.concatenate(
                [
                    np.where(getattr(tree, name) >= 0, getattr(tree, name) + start, -1)
                    for tree, start in zip(trees, starts, strict=True)
                ]
            ).astype(np.int64)

        def whole(name: str) -> np.ndarray:
            return np.concatenate([getattr(tree, name) for tree in trees])

        return cls(
            shift("roots"),
            shift("left"),
            shift("right"),
            whole("feature").astype(np.int64),
            whole("threshold").astype(np.float64),
            whole("value").astype(np.float64),
        )

    @property
    def _arrays(self) -> ForestArrays:
        return self.roots, self.left, self.right, self.feature, self.threshold, self.value

    def sums(self, X: FloatArray) -> FloatArray:
        """Return the sum of the leaves of each row."""
        return self.sums_of(X, self.value.reshape(-1, 1))[:, 0]

    def sums_of(self, X: FloatArray, values: FloatArray) -> FloatArray:
        """Return the sums by several values of the leaves, one column per value, in one walk."""
        if self._are_few(X):
            return self._sums_of_few(np.asarray(X, dtype=np.float64), values)
        from toprank.rankers.ensemble.flat_kernels import add_leaves

        out = np.zeros((len(X), values.shape[1]))
        add_leaves(np.ascontiguousarray(X, dtype=np.float64), *self._arrays[:5], values, out)
        return out

    def shrink(self, n_rows: NDArray[np.int64], strengths: Sequence[float]) -> FloatArray:
        """Return the values of the nodes, drawn towards their parents', one column per strength.

        The step from a node that n training rows reach to its child counts n / (n + strength)
        times (hierarchical shrinkage): what few rows said counts for little.
        """
        strength = np.asarray(strengths, dtype=np.float64)
        value = np.repeat(self.value[:, None], len(strength), axis=1)
        nodes = self.roots
        while len(nodes := nodes[self.left[nodes] >= 0]):
            part = 1.0 / (1.0 + strength / n_rows[nodes, None])
            for children in (self.left[nodes], self.right[nodes]):
                step = self.value[children] - self.value[nodes]
                value[children] = value[nodes] + part * step[:, None]
            nodes = np.concatenate([self.left[nodes], self.right[nodes]])
        return value

    def contributions(self, X: FloatArray) -> FloatArray:
        """Return what the splits by each column change on each row's ways down.

        An array of shape (n, d + 1), the mean over the training rows last; rows sum to `sums`.
        """
        if self._are_few(X):
            return self._contributions_of_few(np.asarray(X, dtype=np.float64))
        from toprank.rankers.ensemble.flat_kernels import add_paths

        out = np.zeros((len(X), X.shape[1] + 1))
        add_paths(np.ascontiguousarray(X, dtype=np.float64), *self._arrays, out)
        return out

    def _are_few(self, X: FloatArray) -> bool:
        """Whether the rows are down the trees sooner than a compiler is loaded."""
        return len(X) * len(self.roots) <= _FEW_WALKS and "numba" not in sys.modules

    def _walk_levels(self, X: FloatArray) -> Iterator[tuple[NodeNumbers, NodeNumbers, NodeNumbers]]:
        """Walk all rows down all trees, a level at a time.

        A walk is a row in a tree, all rows of the first tree first. Yields the walks that go on,
        the nodes where they are and the children to which they go.
        """
        node = np.repeat(self.roots, len(X))
        walks = np.flatnonzero(self.left[node] >= 0)
        while len(walks):
            here = node[walks]
            above = X[walks % len(X), self.feature[here]] > self.threshold[here]
            child = np.where(above, self.right[here], self.left[here])
            yield walks, here, child
            node[walks] = child
            walks = walks[self.left[child] >= 0]

    def _sums_of_few(self, X: FloatArray, values: FloatArray) -> FloatArray:
        """The same, to the last bit, without loading what compiles."""
        leaves = np.repeat(self.roots, len(X))
        for walks, _, child in self._walk_levels(X):
            leaves[walks] = child
        out = np.zeros((len(X), values.shape[1]))
        for tree in leaves.reshape(len(self.roots), len(X)):  # in the order of the compiled walk
            out += values[tree]
        return out

    def _contributions_of_few(self, X: FloatArray) -> FloatArray:
        """The same, to the last bit, without loading what compiles."""
        n, d = X.shape
        walks, columns, changes = [np.arange(n * len(self.roots))], [], []
        columns.append(np.full(len(walks[0]), d))
        changes.append(np.repeat(self.value[self.roots], n))
        for going, here, child in self._walk_levels(X):
            walks.append(going)
            columns.append(self.feature[here])
            changes.append(self.value[child] - self.value[here])
        walk = np.concatenate(walks)
        order = np.argsort(walk, kind="stable")  # down one tree, then down the next
        out = np.zeros((n, d + 1))
        places = (walk[order] % max(n, 1), np.concatenate(columns)[order])
        np.add.at(out, places, np.concatenate(changes)[order])
        return out

    def find_fault(self, n_features: int) -> str:
        """Return what is wrong with the arrays, as the end of a sentence; empty if nothing is.

        Arrays that came from a file must not lead a walk in circles or out of memory.
        """
        n = len(self.left)
        if {array.shape for array in self._arrays[1:]} != {(n,)} or self.roots.ndim != 1:
            return "its arrays are not of one length"
        if any(array.dtype != np.int64 for array in self._arrays[:4]):
            return "its nodes are not whole numbers"
        if any(array.dtype != np.float64 for array in self._arrays[4:]):
            return "its values are not numbers"
        splits = self.left >= 0
        here = np.arange(n)
        for children in (self.left[splits], self.right[splits]):
            if np.any(children <= here[splits]) or np.any(children >= n):
                return "a node lies before its parent, or nowhere"
        if np.any(self.right[~splits] >= 0):
            return "a leaf has a child"
        if np.any(self.roots < 0) or np.any(self.roots >= n):
            return "a tree begins nowhere"
        if np.any(self.feature < 0) or np.any(self.feature >= n_features):
            return "a split names a column that does not exist"
        if not (np.all(np.isfinite(self.threshold)) and np.all(np.isfinite(self.value))):
            return "a number is not finite"
        return ""


def mean_values(
    left: np.ndarray, right: AnyArray, value: FloatArray, count: FloatArray
) -> FloatArray:
    """Return the values of a tree with those of splits replaced by the means of their leaves.

    The root comes first; ``count`` weighs the leaves.
    """
    value, count = value.copy(), count.astype(np.float64)
    levels = [np.zeros(1, dtype=np.int64)]
    while len(nodes := levels[-1][left[levels[-1]] >= 0]):
        levels[-1] = nodes
        levels.append(np.concatenate([left[nodes], right[nodes]]))
    for nodes in levels[-2::-1]:
        below = np.stack([left[nodes], right[nodes]])
        weight = count[below] + 1e-300
        value[nodes] = (value[below] * weight).sum(axis=0) / weight.sum(axis=0)
        count[nodes] = count[below].sum(axis=0)
    return value
