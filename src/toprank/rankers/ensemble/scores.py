"""What a fitted ensemble says of rows: scores, members' scores, contributions of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from toprank._arrays import TableLike
from toprank._numerics import FloatArray
from toprank.blocks import Workers
from toprank.pairs import check_table
from toprank.rankers.common import Probabilities
from toprank.rankers.ensemble.combination import ScoreColumns
from toprank.rankers.ensemble.out_of_fold import MemberError, member_scores
from toprank.rankers.ensemble.plan import Member

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


#: Rows from which on threads are worth their start.
_MANY_ROWS = 5_000


class EnsembleScores(Probabilities):
    """Scores of members, weighed."""

    estimators: str | Sequence[Member]
    n_jobs: int | None
    n_features_in_: int
    members_: list[Member]
    weights_: dict[str, float]
    oof_members_: list[str]
    _scale: ScoreColumns
    _combiner: BaseEstimator
    _columns_used: tuple[int, ...]

    def _allows_missing(self) -> bool:
        if isinstance(self.estimators, str):
            return True
        pairs = [one for one in self.estimators if isinstance(one, (list, tuple)) and len(one) == 2]
        return any(_takes_missing(estimator) for _, estimator in pairs)

    def _score_columns(self, X: TableLike) -> FloatArray:
        """The standardised scores of the members; those without a weight stay at zero."""
        table = self._table(X)
        n = int(np.shape(table)[0])
        columns = np.zeros((n, len(self.oof_members_)))
        for (name, _), scores in zip(self.members_, self._scores_of_members(table, n), strict=True):
            j = self.oof_members_.index(name)
            columns[:, j] = (scores - self._scale.centre[j]) / self._scale.spread[j]
        return columns

    def _scores_of_members(self, table: TableLike, n: int) -> list[FloatArray]:
        """The scores of each member: of many rows in threads, where there are any to spare."""
        workers = Workers(self.n_jobs if n >= _MANY_ROWS else 1)
        if workers.n_jobs == 1:
            return [_scores_of(member, table) for member in self.members_]
        with workers.start_threads():
            return list(workers.map(lambda member: _scores_of(member, table), self.members_))

    def _table(self, X: TableLike) -> TableLike:
        check_is_fitted(self)
        missing = self._allows_missing()
        return check_table(X, estimator=self, reset=False, missing=missing, frames=True)

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return the ranking score of each row; zero is a probability of one half."""
        columns = self._score_columns(X)
        return np.asarray(self._combiner.decision_function(columns[:, self._columns_used]))

    def member_scores(self, X: TableLike) -> dict[str, FloatArray]:
        """Return the scores of rows by each member that has a weight, as they are weighed.

        In standard deviations from the mean; times ``weights_`` they add up to the score, less a
        constant.
        """
        columns = self._score_columns(X)
        return {name: columns[:, self.oof_members_.index(name)] for name, _ in self.members_}

    def explain(self, X: TableLike) -> FloatArray:
        """Return what each column adds to the score of each row, through all members.

        Exact for linear members, SHAP values for trees, each times the member's weight.

        Returns
        -------
        array of shape (n, d + 1)
            The last column is what does not depend on the columns. Each row sums to its score.
        """
        table = self._table(X)
        parts = np.zeros((int(np.shape(table)[0]), self.n_features_in_ + 1))
        for name, model in self.members_:
            if not hasattr(model, "explain"):
                raise ValueError(
                    f"The member {name!r} ({type(model).__name__}) has no explain(X), so that "
                    "columns cannot be told apart. Members of estimators='auto' have."
                )
            j = self.oof_members_.index(name)
            parts += self.weights_[name] / self._scale.spread[j] * model.explain(table)
        parts[:, -1] += self.decision_function(X) - parts.sum(axis=1)
        return parts


def _scores_of(member: Member, table: TableLike) -> FloatArray:
    name, model = member
    try:
        return member_scores(model, table)
    except MemberError as error:
        raise MemberError(f"The member {name!r} cannot rank these rows: {error}.") from None


def _takes_missing(estimator: object) -> bool:
    try:
        return bool(get_tags(estimator).input_tags.allow_nan)
    except Exception:  # a member that is no estimator is refused by name, later
        return False
