"""Block sources and linear rankers: what a fit checks of them, how they are scored and ranked.

Labels, weights and columns of a source are checked as `fit` checks arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg
from sklearn.utils import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from toprank._arrays import AnyArray
from toprank._numerics import FloatArray
from toprank.blocks import BlockSource, Units
from toprank.blocks.design import design_of
from toprank.blocks.statistics import LabelCounts
from toprank.inference.intervals import BlockScores
from toprank.objective import LabelledData, TwoClassProblem, count_labels
from toprank.pairs import check_weights, split_classes
from toprank.solvers import Result

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from torch import Tensor

#: Features up to which the error of a fit is estimated with a Hessian.
_HESSIAN_UP_TO = 500
_SECOND_IS_POSITIVE = np.array([False, True])


def check_repeatable(random_state: object) -> None:
    """Refuse to keep a fit that would draw other numbers when it is started again."""
    if not isinstance(random_state, Integral):
        raise ValueError(
            f"random_state={random_state!r}: a fit with checkpoint= can be resumed "
            "only if it draws the same rows again. Give a number, such as random_state=0."
        )


@dataclass(frozen=True)
class BlockScore:
    """The score of every row of a block: picklable, so that it can travel to the blocks."""

    units: Units
    coef: FloatArray
    offset: float

    def __call__(self, X: object, out: FloatArray | None = None) -> FloatArray:
        """Return the scores of the rows of one block, or write them into ``out``."""
        with np.errstate(over="ignore", invalid="ignore"):
            scores: FloatArray = design_of(X, self.units).scores(self.coef, out)
            scores += self.offset
        return scores


@dataclass(frozen=True)
class Certificate:
    """How far coefficients are from those of a fit to all rows of a source.

    Attributes
    ----------
    objective : float
        The objective on these rows, penalty included.
    gradient : float
        The largest entry of its gradient.
    gap : float
        Upper bound on the objective minus its minimum, |gradient|^2 / (2 alpha): safe, and loose
        where alpha is small; infinite without a penalty.
    excess : float
        The same difference to second order, g' H^-1 g / 2: an estimate, good near the minimum.
    coef_error : float
        To the same order, the distance to the coefficients of a fit to all rows, relative to them.
    """

    objective: float
    gradient: float
    gap: float
    excess: float
    coef_error: float

    @classmethod
    def of(cls, problem: TwoClassProblem, result: Result) -> Certificate:
        """Look at a problem where a solver, or another fit, has ended."""
        step = np.full(problem.size, np.nan)
        if problem.has_curvature and problem.size <= _HESSIAN_UP_TO:
            free = np.flatnonzero((result.coef != 0) | (result.gradient != 0))
            hessian = problem.hessian(result.coef)[np.ix_(free, free)]
            # what a bound holds at zero stays there
            step = np.zeros(problem.size)
            step[free] = linalg.lstsq(hessian, result.gradient[free], check_finite=False)[0]
        d = problem.data.n_features
        size = float(np.linalg.norm(result.coef[:d] - step[:d]))
        return cls(
            result.value,
            result.gradient_norm,
            result.gap,
            0.5 * float(result.gradient @ step),
            float(np.linalg.norm(step[:d])) / size if size > 0 else np.inf,
        )


def check_source(source: object) -> None:
    """Refuse what is no block source."""
    if not isinstance(source, BlockSource):
        raise TypeError(
            f"Expected a block source, got {type(source).__name__}. Make one with "
            "toprank.blocks.from_arrays, from_memmap, from_parquet, from_dask, from_spark or "
            "from_torch; or pass arrays to fit and decision_function."
        )


def check_columns(ranker: BaseEstimator, source: BlockSource) -> None:
    """Refuse rows with other columns than the ranker was fitted to."""
    check_source(source)
    if source.n_features != ranker.n_features_in_:
        raise ValueError(
            f"The source has {source.n_features} features, but {type(ranker).__name__} was fitted "
            f"to {ranker.n_features_in_}. Name them with columns=."
        )
    fitted = getattr(ranker, "feature_names_in_", None)
    names = source.feature_names
    if fitted is None or names is None or np.array_equal(fitted, names):
        return
    here, there = next((a, b) for a, b in zip(names, fitted, strict=True) if a != b)
    raise ValueError(
        f"The source has the feature {here!r} where {type(ranker).__name__} was fitted with "
        f"{there!r}. Give the columns in the order of the fit with columns=."
    )


def look(
    source: BlockSource, class_weight: object, intercepts: int, classes: np.ndarray | None = None
) -> LabelledData:
    """Look at a block source once: its classes, weights, columns, and a sample of its rows.

    ``classes`` are the user's labels where those of the source are truth values.
    """
    check_source(source)
    if source.n_features == 0:
        raise ValueError("The source has no feature columns; a ranking needs at least one.")
    source.expect_passes()
    counts = count_labels(source)
    if counts.n_rows == 0:
        raise ValueError("The source has no rows; a ranking needs rows of two classes.")
    labels, _ = split_classes(counts.labels)
    _check_part(source, counts)
    of_class = _class_weights(class_weight, labels if classes is None else classes, counts)
    size = source.n_features + intercepts
    return LabelledData(source, counts, labels, of_class, size)


def _check_part(source: BlockSource, counts: LabelCounts) -> None:
    """Refuse a part of a source that lacks a class: there the rows left out weigh nothing."""
    if source.part is not None and not np.all(counts.weight > 0):
        raise ValueError(
            f"There are rows of one class only {source.part}: take fewer folds, other groups, or "
            "more rows of the rarer class."
        )


def _class_weights(
    class_weight: object, classes: AnyArray, counts: LabelCounts
) -> tuple[float, float] | None:
    """Check the weights of the rows, and return the classes' own."""
    check_row_weights(counts)
    if class_weight is None:
        return None
    totals = counts.weight
    of_class = compute_class_weight(class_weight, classes=classes, y=classes, sample_weight=totals)
    check_weights(_SECOND_IS_POSITIVE, of_class * totals)
    return float(of_class[0]), float(of_class[1])


def check_row_weights(counts: LabelCounts) -> None:
    """Refuse weights that are no repetition counts, or that leave a class of two without any."""
    if not counts.weighted:
        return
    if not counts.finite:
        raise ValueError("sample_weight contains NaN or infinity; weights must be finite.")
    if counts.smallest < 0:
        raise ValueError(
            f"sample_weight contains negative values (smallest {counts.smallest:g}); a weight is "
            "a repetition count. Use 0 to leave a row out."
        )
    check_weights(_SECOND_IS_POSITIVE, counts.weight)


class BlockScorer(ABC):
    """Scores of block sources, for rankers with a `block_score`."""

    classes_: np.ndarray

    @abstractmethod
    def block_score(self) -> Callable[..., FloatArray]:
        """Return the score of a block of rows, as something that travels to where they lie."""

    def score_blocks(
        self, source: BlockSource, to: str | PathLike[str] | None = None, **how: object
    ) -> FloatArray | Path | Tensor | list[Path]:
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
        auc = 0.8624, 95% interval 0.8553 to 0.8693 (score interval, Hoeffding projection (DeLong))
        """
        check_is_fitted(self)
        _check_sizes(keep_top, bins)
        check_columns(self, source)
        n_rows = _count_rows(source, self.classes_)
        return BlockScores.of(source, self.block_score(), self.classes_, n_rows, keep_top, bins)


class BlockScoring(BlockScorer):
    """Scores of block sources, for rankers whose score is x' coef plus an offset."""

    #: Whether a fit to blocks is made of passes, which several fits can make together.
    shares_passes = True

    coef_: FloatArray
    _units: Units
    _offset: float

    def block_score(self) -> BlockScore:
        """Return the ranking score as a picklable function of the ``X`` of a block."""
        check_is_fitted(self)
        return BlockScore(self._units, self.coef_[0], self._offset)


def _count_rows(source: BlockSource, classes: AnyArray) -> int:
    """Count the rows of weight above zero, of a source whose labels are those of the fit."""
    counts = count_labels(source)
    if not np.array_equal(counts.labels, classes):
        raise ValueError(
            f"The source has the labels {counts.labels.tolist()[:5]}, but the ranker was fitted to "
            f"{classes.tolist()}; metrics need rows of both classes, and no others."
        )
    check_row_weights(counts)
    return counts.n_present


def _check_sizes(keep_top: int, bins: int) -> None:
    """Raise ValueError unless both are whole numbers of at least 1."""
    for name, number in (("keep_top", keep_top), ("bins", bins)):
        if not isinstance(number, Integral) or isinstance(number, bool) or number < 1:
            raise ValueError(f"{name}={number!r}: expected a whole number of at least 1.")
