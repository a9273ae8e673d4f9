"""Fewer negatives for a faster fit: all that matter at the top, and some that stand for the rest.

Where negatives are many, most lie far below the positives and weigh next to nothing in a push. A
ranker that is good enough to tell which those are (fitted to a sample, say) scores every row.
Positives are kept, and so are the negatives of highest score; of the others each is drawn with the
same probability, the rate, and counts 1/rate times. So the sums over all rows are unbiased, and
exact where they are large. ``certify_blocks`` of a ranker fitted to the sample tells its cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from toprank._arrays import Matrix
from toprank._numerics import FloatArray
from toprank.blocks.memory import ArraySource
from toprank.blocks.source import Block, BlockSource, join_pieces

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

Score = Callable[..., FloatArray]
#: Rows of a block, their labels and how often each counts.
Kept: TypeAlias = "tuple[Matrix, np.ndarray, FloatArray]"


def _negative(block: Block, positive: object) -> NDArray[np.bool_]:
    present = np.asarray(block.y) != positive
    return present if block.weight is None else present & (np.asarray(block.weight) > 0)


@dataclass(frozen=True)
class _Count:
    """How many negatives there are."""

    positive: object
    needs_features = False

    def local(self, block: Block, state: None) -> int:
        return int(np.count_nonzero(_negative(block, self.positive)))

    def merge(self, left: int, right: int) -> int:
        return left + right


@dataclass(frozen=True)
class _Highest:
    """The highest scores of negatives, so many of them: exact, however blocks are merged."""

    score: Score
    positive: object
    count: int

    def local(self, block: Block, state: None) -> FloatArray:
        if block.n_rows == 0:
            return np.empty(0)
        return _largest(self.score(block.X)[_negative(block, self.positive)], self.count)

    def merge(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return _largest(np.concatenate([left, right]), self.count)


def _largest(values: FloatArray, count: int) -> FloatArray:
    return values if len(values) <= count else np.partition(values, -count)[-count:]


@dataclass(frozen=True)
class _Keep:
    """The rows that are kept, and how often each counts; the state is the lowest high score."""

    score: Score
    positive: object
    rate: float
    seed: int

    def local(self, block: Block, bar: float) -> dict[int, Kept]:
        if block.n_rows == 0:
            return {}
        y = np.asarray(block.y)
        weight = np.ones(len(y)) if block.weight is None else np.asarray(block.weight, np.float64)
        rest = (y != self.positive) & (self.score(block.X) < bar)
        # a stream of its own for every block: the same rows for any number of workers
        drawn = np.random.default_rng([self.seed, block.index]).random(len(y)) < self.rate
        rows = np.flatnonzero((~rest | drawn) & (weight > 0))
        counts = weight / np.where(rest, self.rate, 1.0)
        return {block.index: (block.X[rows], y[rows], counts[rows])}

    def merge(self, left: dict[int, Kept], right: dict[int, Kept]) -> dict[int, Kept]:
        return join_pieces(left, right)


def sample_negatives(
    source: BlockSource,
    ranker: BaseEstimator,
    *,
    keep_top: int | float = 0.01,
    rate: float = 0.1,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> ArraySource:
    """Keep the positives and the hard negatives of a source, and weighted ones for the rest.

    Parameters
    ----------
    source : BlockSource
        Labelled rows; it is passed over three times, once for labels alone.
    ranker : fitted linear ranker
        Tells the hard negatives by their scores: one fitted to a sample of the rows, or with
        another p.
    keep_top : int or float, default=0.01
        How many negatives of highest score to keep, or what share of all negatives.
    rate : float, default=0.1
        The probability with which each other negative is drawn; it then counts 1/rate times.
    random_state : int, default=0
        Seed of the draw.
    n_jobs : int, optional
        Threads of the source that is returned.

    Returns
    -------
    ArraySource
        The rows kept, in memory, for ``fit_blocks``. ``certify_blocks`` of the ranker fitted to
        it tells how far it is from the fit to all rows.

    Examples
    --------
    >>> from toprank import PNormPush, blocks
    >>> from toprank.simulate import linear_bipartite
    >>> X, y = linear_bipartite(prevalence=0.02).sample(50_000, random_state=0)
    >>> source = blocks.from_arrays(X, y)
    >>> first = PNormPush(p=4).fit(X[:5000], y[:5000])
    >>> sample = blocks.sample_negatives(source, first, keep_top=0.02, rate=0.1)
    >>> ranker = PNormPush(p=4).fit_blocks(sample)
    >>> error = ranker.certify_blocks(source)
    >>> sample.n_rows < 10_000, error.excess < 1e-3, error.coef_error < 0.1
    (True, True, True)
    """
    if not 0.0 < rate <= 1.0:
        raise ValueError(f"rate={rate!r}: expected a probability above 0, at most 1.")
    score, positive = ranker.block_score(), ranker.classes_[1]
    negatives = source.map_reduce(_Count(positive), None)
    count = _how_many(keep_top, negatives)
    bar = np.inf
    if count:
        highest = source.map_reduce(_Highest(score, positive, count), None)
        bar = float(np.min(highest, initial=np.inf))
    kept = source.map_reduce(_Keep(score, positive, rate, random_state), bar)
    parts = [kept[index] for index in sorted(kept)]
    if not parts:
        raise ValueError("The source has no rows to sample from.")
    matrices = [part[0] for part in parts]
    thin = sparse.issparse(matrices[0])
    X = sparse.csr_array(sparse.vstack(matrices)) if thin else np.concatenate(matrices)
    y, weight = (np.concatenate([part[place] for part in parts]) for place in (1, 2))
    return ArraySource(X, y, weight, None, n_jobs, source.feature_names)


def _how_many(keep_top: int | float, negatives: int) -> int:
    if isinstance(keep_top, Integral) and not isinstance(keep_top, bool) and keep_top >= 0:
        return min(int(keep_top), negatives)
    if isinstance(keep_top, float) and 0.0 <= keep_top <= 1.0:
        return int(np.ceil(keep_top * negatives))
    raise ValueError(f"keep_top={keep_top!r}: expected a count (int) or a share (float, 0 to 1).")
