"""Growing trees from a block source on one machine, by XGBoost's external memory."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from toprank._arrays import BoolArray
from toprank._numerics import FloatArray
from toprank.blocks import BlockSource
from toprank.blocks.checkpoint import KeptPasses, check_resume
from toprank.pairs import Rows, check_weights, split_classes
from toprank.rankers.blockwise import BlockScorer, check_source
from toprank.rankers.common import fits
from toprank.rankers.trees.auto import choose_on_sample
from toprank.rankers.trees.block_table import BlockTable, block_numbers, read_labels
from toprank.rankers.trees.columns import Categories
from toprank.rankers.trees.kept_rounds import KeptRounds, TreeCheckpoint, draws_can_be_repeated
from toprank.rankers.trees.libraries import check_weight_reach, warn_all
from toprank.rankers.trees.plan import TreeRows, Trees

if TYPE_CHECKING:
    from os import PathLike

    from toprank._arrays import Matrix


@dataclass(frozen=True)
class TreeBlockScore:
    """The score of every row of a block: it can travel to the blocks."""

    trees: Trees
    offset: float

    def __call__(self, X: Matrix, out: FloatArray | None = None) -> FloatArray:
        """Return the scores of the rows of one block, or write them into ``out``."""
        scores = self.trees.scores(block_numbers(X, np.arange(X.shape[0]))) + self.offset
        if out is None:
            return scores
        out[:] = scores
        return out


class OnBlocks(BlockScorer):
    """Fits from files, queries and anything else that hands over rows block by block."""

    @fits
    def fit_blocks(
        self,
        source: BlockSource,
        *,
        cache_dir: str | PathLike[str] | None = None,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Grow the trees from a block source that this machine reads, without holding its rows.

        XGBoost keeps the bins of the columns in files (its external memory, a byte or two per
        entry) and reads them in every round; the push sees the scores of all rows, so that the
        trees are those of ``fit`` where columns have at most ``max_bins`` values, and otherwise
        differ by where XGBoost's sketch puts the bins. The driver holds labels, weights, scores and
        gradients, some 40 bytes per row. With p = "auto", p is chosen in memory on at most 100,000
        rows, drawn by a hash of the row or of its group.

        Parameters
        ----------
        source : BlockSource
            ``blocks.from_parquet``, ``from_csv``, ``from_query``, ``from_batches``,
            ``from_memmap`` or ``from_arrays``; columns of numbers. For rows on a cluster there are
            ``fit_dask`` and ``fit_spark``.
        cache_dir : path, optional
            Where the bins go, and are removed in the end; by default the folder for temporary
            files.
        checkpoint : str or path, optional
            A folder that keeps the trees while they grow, and the choice of p; it needs a number
            as ``random_state``, and XGBoost 3.2 or newer. Every round then draws its rows and
            columns by a seed of its own.
        resume : bool, default=False
            Go on with the trees in that folder: with the same ``n_jobs`` those of a fit with a
            checkpoint and without a break.

        Returns
        -------
        self

        Examples
        --------
        >>> from toprank import PushTrees, blocks
        >>> from toprank.datasets import load_wdbc
        >>> X, y = load_wdbc(return_X_y=True)
        >>> trees = PushTrees(p=4, backend="xgboost", n_estimators=10)
        >>> trees.fit_blocks(blocks.from_arrays(X, y, block_rows=200)).n_iter_
        10
        """
        trees: Any = self
        if isinstance(source, KeptPasses):
            if draws_can_be_repeated():  # otherwise the trees are grown again
                checkpoint, resume = source.passes.folder, True
            source = source.source
        check_resume(checkpoint, resume)
        _refuse(trees, source)
        trees._check_link()
        trees.init_model_, trees._starts = None, False
        _keep_columns(trees, source)
        labels, weight = read_labels(source)
        trees.classes_, positive = split_classes(labels)
        weight = check_weights(positive, weight)
        check_weight_reach(weight)
        kept = None
        if checkpoint is not None:
            kept = TreeCheckpoint(trees, checkpoint, resume, source)
            kept.check_rows(labels, weight)
        choose = partial(choose_on_sample, trees, source)
        trees._settle_power(choose if kept is None else partial(kept.choose, choose))
        with tempfile.TemporaryDirectory(prefix="toprank-trees-", dir=cache_dir) as folder:
            rounds = None if kept is None else kept.rounds(trees.p_)
            _grow_from(trees, _Shelf(source, positive, weight, folder), rounds)
        return self

    def block_score(self) -> TreeBlockScore:
        """Return the ranking score as a picklable function of the ``X`` of a block."""
        check_is_fitted(self)
        trees: Any = self
        if trees._columns.places or trees.init_model_ is not None or trees._starts:
            raise ValueError(
                "Blocks are columns of numbers, and these trees split by categories or start from "
                "the scores of another model. Score such rows with decision_function, some at a "
                "time."
            )
        return TreeBlockScore(trees._trees, trees._offset)


@dataclass(frozen=True)
class _Shelf:
    """The rows of a source, of which some are taken for the library; it keeps pages in a folder."""

    source: BlockSource
    positive: BoolArray
    weight: FloatArray | None
    folder: str

    def take(self, chosen: BoolArray) -> TreeRows:
        """Return the rows for which ``chosen`` is true."""
        held = None if self.weight is None else self.weight[chosen]
        if held is not None and np.all(held == 1.0):
            held = None
        return TreeRows(BlockTable(self.source, chosen, self.folder), self.positive[chosen], held)


def _grow_from(trees: BaseEstimator, shelf: _Shelf, rounds: KeptRounds | None) -> None:
    """Grow the trees of the rows of positive weight, some of which are held out to stop by."""
    chosen = np.ones(len(shelf.positive), dtype=bool) if shelf.weight is None else shelf.weight > 0
    watch, there = None, np.flatnonzero(chosen)
    parts = trees._held_out(Rows(there, shelf.positive[there]), trees.random_state)
    if parts is not None:
        train, test = parts
        chosen, out = np.zeros_like(chosen), np.zeros_like(chosen)
        chosen[there[train]], out[there[test]] = True, True
        watch = trees._watch(shelf.take(out))
    warn_all(trees._grow(shelf.take(chosen), watch, kept=rounds))
    if watch is not None:
        trees._record(watch, [])


def _refuse(trees: Any, source: object) -> None:
    check_source(source)
    if not hasattr(source, "read"):
        raise TypeError(
            f"{type(source).__name__} holds its rows elsewhere than on this machine. Use fit_dask "
            "or fit_spark, which grow the trees there."
        )
    if trees.backend != "xgboost":
        raise ValueError(
            f"backend={trees.backend!r} needs all rows in memory; XGBoost reads them from files in "
            "every round. Use backend='xgboost', or fit."
        )
    if trees.categorical_features is not None and not isinstance(trees.categorical_features, str):
        raise ValueError(
            "categorical_features were given, and the rows of blocks are numbers without "
            "categories. Encode them as columns of 0 and 1, or use fit."
        )


def _keep_columns(trees: Any, source: BlockSource) -> None:
    """What scikit-learn's validation keeps of an array."""
    trees.n_features_in_ = source.n_features
    trees._columns = Categories({})
    if source.feature_names is not None:
        trees.feature_names_in_ = np.asarray(source.feature_names, dtype=object)
    elif hasattr(trees, "feature_names_in_"):
        del trees.feature_names_in_
