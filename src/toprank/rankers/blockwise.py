"""The door for block sources: labels, weights and columns checked, as `fit` checks arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.utils import compute_class_weight

from toprank._numerics import FloatArray
from toprank.blocks import BlockSource, Units
from toprank.blocks.design import design_of
from toprank.blocks.statistics import LabelCounts
from toprank.objective import LabelledData, TwoClassProblem, count_labels
from toprank.pairs import check_weights, split_classes
from toprank.solvers import Result

#: Features up to which the error of a fit is estimated with a Hessian.
_HESSIAN_UP_TO = 500
_SECOND_IS_POSITIVE = np.array([False, True])


@dataclass(frozen=True)
class BlockScore:
    """The score of every row of a block: picklable, so that it can travel to the blocks."""

    units: Units
    coef: FloatArray
    offset: float

    def __call__(self, X: Any) -> FloatArray:
        """Return the scores of the rows of one block."""
        with np.errstate(over="ignore", invalid="ignore"):
            scores: FloatArray = design_of(X, self.units).scores(self.coef)
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
            hessian = problem.hessian(result.coef)
            step = linalg.lstsq(hessian, result.gradient, check_finite=False)[0]
        d = problem.data.n_features
        size = float(np.linalg.norm(result.coef[:d] - step[:d]))
        return cls(
            result.value,
            result.gradient_norm,
            result.gap,
            0.5 * float(result.gradient @ step),
            float(np.linalg.norm(step[:d])) / size if size > 0 else np.inf,
        )


def check_source(source: Any) -> None:
    """Refuse what is no block source."""
    if not isinstance(source, BlockSource):
        raise TypeError(
            f"Expected a block source, got {type(source).__name__}. Make one with "
            "toprank.blocks.from_arrays, from_memmap, from_parquet, from_dask, from_spark or "
            "from_torch; or pass arrays to fit and decision_function."
        )


def check_columns(ranker: Any, source: Any) -> None:
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
    source: Any, class_weight: Any, intercepts: int, classes: NDArray[Any] | None = None
) -> LabelledData:
    """Look at a block source once: its classes, weights, columns, and a sample of its rows.

    ``classes`` are the user's labels where those of the source are truth values.
    """
    check_source(source)
    if source.n_features == 0:
        raise ValueError("The source has no feature columns; a ranking needs at least one.")
    counts = count_labels(source)
    if counts.n_rows == 0:
        raise ValueError("The source has no rows; a ranking needs rows of two classes.")
    labels, _ = split_classes(counts.labels)
    of_class = _class_weights(class_weight, labels if classes is None else classes, counts)
    size = source.n_features + intercepts
    return LabelledData(source, counts, labels, of_class, size)


def _class_weights(
    class_weight: Any, classes: NDArray[Any], counts: LabelCounts
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
    if not counts.finite:
        raise ValueError("sample_weight contains NaN or infinity; weights must be finite.")
    if counts.smallest < 0:
        raise ValueError(
            f"sample_weight contains negative values (smallest {counts.smallest:g}); a weight is "
            "a repetition count. Use 0 to leave a row out."
        )
    check_weights(_SECOND_IS_POSITIVE, counts.weight)
