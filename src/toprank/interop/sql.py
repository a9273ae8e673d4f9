"""Scores as SQL: one expression of the columns, for every ranker that SQL can compute."""

from __future__ import annotations

from collections.abc import Sequence

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from toprank.interop.additive import additive_form, is_additive
from toprank.interop.sql_dialects import (
    DIALECTS,
    Dialect,
    bracketed_sum,
    finish,
    get_dialect,
)
from toprank.interop.sql_rankers import score_sql
from toprank.interop.sql_steps import SqlColumns, SqlSteps, term_sql

__all__ = ["DIALECTS", "Dialect", "to_sql"]


def to_sql(
    ranker: BaseEstimator,
    columns: Sequence[str],
    *,
    table: str | None = None,
    dialect: str = "ansi",
) -> str:
    """Return the score of a fitted ranker as SQL over columns of numbers.

    Parameters
    ----------
    ranker : estimator
        A linear ranker, a sum of stumps (`RankBoost`, `SmoothMarginRanker`, `AdaBoostRanker`),
        `PushTrees` of LightGBM or XGBoost, or a `PushEnsemble` of such; scikit-learn's linear
        classifiers of two classes too; or a pipeline of scikit-learn's scalers before one.
    columns : sequence of str
        The names of the columns of X, in order. They are quoted. Categories of trees may be words.
    table : str, optional
        Name of a table: the answer is then a query, ``SELECT *, ... AS score FROM ...``.
    dialect : str, default="ansi"
        One of ``DIALECTS``.

    Returns
    -------
    str
        An expression, or a query. NULL goes where a ranker sends missing values; for a linear
        ranker, which takes none, the score is NULL. Trees are a subquery of the row's own columns.

    Raises
    ------
    ValueError
        If the ranker is of another kind, or its trees are too many for one query.

    Examples
    --------
    >>> from toprank import RankBoost
    >>> from toprank.interop.sql import to_sql
    >>> ranker = RankBoost(1).fit([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> ranker.coef_[:], ranker.intercept_[:] = 2.0, -1.0
    >>> print(to_sql(ranker, ["size"]))
    (-1.0e0) + CASE WHEN "size" IS NULL THEN 0.0e0 WHEN "size" > 2.5e0 THEN 2.0e0 ELSE 0.0e0 END
    """
    check_is_fitted(ranker)
    syntax, d = get_dialect(dialect), int(ranker.n_features_in_)
    if len(columns) != d:
        raise ValueError(f"columns has {len(columns)} names, expected {d}.")
    if is_additive(ranker):
        form = additive_form(ranker)
        terms = [syntax.number(form.intercept)]
        for j, term in form.terms.items():
            terms.append(term_sql(term, syntax.name(columns[j]), syntax))
        return finish(bracketed_sum(terms), table, syntax)
    steps = SqlSteps(columns, syntax)
    score = score_sql(ranker, SqlColumns.from_names(columns, syntax), steps)
    return finish(steps.finish(score), table, syntax)
