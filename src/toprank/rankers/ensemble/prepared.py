"""A linear ranker of tables with gaps and categories."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted

from toprank._arrays import TableLike
from toprank._numerics import FloatArray
from toprank.pairs import check_rows, check_table
from toprank.rankers.common import Probabilities, fits
from toprank.rankers.ensemble.columns import LinearColumns
from toprank.rankers.trees.columns import Categories

if TYPE_CHECKING:
    from sklearn.utils import Tags


class PreparedRanker(Probabilities, ClassifierMixin, BaseEstimator):
    """A linear ranker behind `LinearColumns`: it takes gaps and categories as trees do.

    Parameters
    ----------
    ranker : estimator
        A linear ranker of this library.
    categorical_features : "from_dtype", sequence or None, default="from_dtype"
        As in `PushTrees`.
    clip_tails : bool, default=True
        Whether numbers of long tails count as no more than where their tails begin.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank import PNormPush
    >>> from toprank.rankers.ensemble.prepared import PreparedRanker
    >>> X = np.array([[1.0, 0], [2.0, 1], [np.nan, 1], [4.0, 0]])
    >>> ranker = PreparedRanker(PNormPush(), [1]).fit(X, [0, 1, 1, 0])
    >>> ranker.explain(X).shape
    (4, 3)
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "ranker": [HasMethods(["fit", "decision_function"])],
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", None],
        "clip_tails": ["boolean"],
    }

    clip_tails = False  # of files that were saved before there was such a parameter

    def __init__(
        self,
        ranker: object,
        categorical_features: object = "from_dtype",
        *,
        clip_tails: bool = True,
    ):
        self.ranker = ranker
        self.categorical_features = categorical_features
        self.clip_tails = clip_tails

    @fits
    def fit(
        self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> PreparedRanker:
        """Learn the columns, then the ranker of them."""
        rows, classes = check_rows(self, X, y, sample_weight, missing=True, frames=True)
        rows = rows.present()
        self.classes_ = classes
        self._columns = Categories.learn(rows.X, self.categorical_features)
        numbers = self._columns.numbers(rows.X)
        self._made = LinearColumns.learn(
            numbers, self._columns.categories, rows.weight, self.clip_tails
        )
        self.ranker_ = clone(self.ranker).fit(self._made.make(numbers), rows.y, rows.weight)
        self._slope = float(getattr(self.ranker_, "_slope", 1.0))
        return self

    def _table(self, X: TableLike) -> FloatArray:
        check_is_fitted(self)
        table = check_table(X, estimator=self, reset=False, missing=True, frames=True)
        return self._made.make(self._columns.numbers(table))

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return the ranking score of each row; zero is a probability of one half."""
        return np.asarray(self.ranker_.decision_function(self._table(X)))

    def explain(self, X: TableLike) -> FloatArray:
        """Return what each column adds to the score, exactly; the last column is the rest.

        Each row sums to its score.
        """
        table = self._table(X)
        terms = table * self.ranker_.coef_.reshape(-1)
        parts = np.zeros((len(table), self.n_features_in_ + 1))
        for j, place in enumerate(self._made.owner):
            parts[:, place] += terms[:, j]
        parts[:, -1] = self.ranker_.decision_function(table) - terms.sum(axis=1)
        return parts

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        return tags
