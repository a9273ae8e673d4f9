"""What a fitted linear ranker does with rows wherever they lie: score them, rank them."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from toprank._numerics import FloatArray
from toprank.blocks import BlockSource, Units
from toprank.inference.intervals import BlockScores
from toprank.objective import count_labels
from toprank.rankers.blockwise import BlockScore, check_columns, check_row_weights


class BlockScoring:
    """Scores of block sources, for rankers whose score is x' coef plus an offset."""

    classes_: NDArray[Any]
    coef_: FloatArray
    _units: Units
    _offset: float

    def score_blocks(self, source: BlockSource, to: Any = None, **how: Any) -> Any:
        """Score the rows of a block source where they lie, without collecting them.

        Parameters
        ----------
        source : BlockSource
            Rows with the columns of the fit; labels are not needed.
        to : path, optional
            Where scores go if they are written to files.
        **how
            What else the source's ``write_scores`` takes, such as ``keep=`` for Parquet files.

        Returns
        -------
        scores
            The engine's own: an array for arrays, the paths written for Parquet files, ...
        """
        check_is_fitted(self)
        check_columns(self, source)
        return source.write_scores(self.block_score(), to, **how)

    def evaluate_blocks(
        self, source: BlockSource, *, keep_top: int = 100_000, bins: int = 65_536
    ) -> BlockScores:
        """Rank the rows of a block source, for metrics and intervals.

        Up to 2,000,000 rows every score is kept, and every metric is exact. Beyond, the highest
        rows are kept one by one and the others counted in bins, in two passes; metrics of the
        rows kept are exact, the others come with a bound.

        Parameters
        ----------
        source : BlockSource
            Labelled rows with the columns of the fit.
        keep_top : int, default=100_000
            How many of the highest rows to keep, where there are too many to keep all.
        bins : int, default=65_536
            Bins for the others; the AUC is within about one half over the bins.

        Returns
        -------
        BlockScores
            With ``metric("precision_at", k=100)``, ``interval("auc")``, and the rows themselves.

        Examples
        --------
        >>> from toprank import PNormPush, blocks
        >>> from toprank.simulate import linear_bipartite
        >>> X, y = linear_bipartite().sample(10_000, random_state=0)
        >>> source = blocks.from_arrays(X, y)
        >>> found = PNormPush(p=4).fit_blocks(source).evaluate_blocks(source)
        >>> print(found.metric("average_precision"))
        average_precision = 0.8617 (exact)
        >>> print(found.interval("auc"))
        auc = 0.8624, 95% interval 0.8553 to 0.8693 (Hoeffding projection (DeLong), logit scale)
        """
        check_is_fitted(self)
        _check_sizes(keep_top, bins)
        check_columns(self, source)
        n_rows = _count_rows(source, self.classes_)
        return BlockScores.of(source, self.block_score(), self.classes_, n_rows, keep_top, bins)

    def block_score(self) -> BlockScore:
        """Return the ranking score as a picklable function of the ``X`` of a block."""
        check_is_fitted(self)
        return BlockScore(self._units, self.coef_[0], self._offset)


def _count_rows(source: BlockSource, classes: NDArray[Any]) -> int:
    """Count the rows of weight above zero, of a source whose labels are those of the fit."""
    counts = count_labels(source)
    if not np.array_equal(counts.labels, classes):
        raise ValueError(
            f"The source has the labels {counts.labels.tolist()[:5]}, but the ranker was fitted to "
            f"{classes.tolist()}; metrics need rows of both classes, and no others."
        )
    check_row_weights(counts)
    return sum(int(np.sum(block.present)) for block in counts.blocks.values())


def _check_sizes(keep_top: int, bins: int) -> None:
    """Raise ValueError unless both are whole numbers of at least 1."""
    for name, number in (("keep_top", keep_top), ("bins", bins)):
        if not isinstance(number, Integral) or isinstance(number, bool) or number < 1:
            raise ValueError(f"{name}={number!r}: expected a whole number of at least 1.")
