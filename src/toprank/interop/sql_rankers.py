"""Rankers as SQL that are no sum over columns: trees, forests, ensembles."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from toprank._arrays import AnyArray
from toprank.interop.additive import Line, additive_form, is_additive
from toprank.interop.pipelines import is_pipeline, scaling
from toprank.interop.sql_dialects import bracketed_sum
from toprank.interop.sql_steps import SqlColumns, SqlSteps, clip_sql, term_sql
from toprank.interop.tree_forms import (
    AT_MOST,
    MEMBER,
    Leaf,
    Split,
    forest_trees,
    library_trees,
)

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

#: Splits in one query, at most.
MOST_SPLITS = 50_000
#: CASEs inside one another, at most: the parser of SQLite before 3.46 has a hundred places.
_DEEPEST = 8


def score_sql(ranker: object, columns: SqlColumns, steps: SqlSteps) -> str:
    """Return the score of a fitted ranker as SQL over the names that `steps` keeps.

    ValueError, with the reason, if it cannot be written so.
    """
    if is_pipeline(ranker):
        slopes, offsets, last = scaling(ranker)
        return score_sql(last, columns.scaled(slopes, offsets, steps.dialect), steps)
    if hasattr(ranker, "members_"):
        return _ensemble_sql(ranker, columns, steps)
    if hasattr(ranker, "_made"):
        return _prepared_sql(ranker, columns, steps)
    if hasattr(ranker, "_forest"):
        return _forest_sql(ranker, columns, steps)
    if hasattr(ranker, "_trees"):
        return _trees_sql(ranker, columns, steps)
    if not is_additive(ranker):
        raise ValueError(
            f"{type(ranker).__name__} cannot be written as SQL: expected a ranker that is linear, "
            "a sum of stumps over columns, PushTrees, or a PushEnsemble of such. Score its rows "
            "where toprank is installed."
        )
    form = additive_form(ranker)
    terms = [steps.dialect.number(form.intercept)]
    for j, term in form.terms.items():
        terms.append(term_sql(term, steps.column(columns.number(j)), steps.dialect))
    return bracketed_sum(terms)


def _ensemble_sql(ensemble: BaseEstimator, columns: SqlColumns, steps: SqlSteps) -> str:
    """The members' scores, one step each, standardised and weighed."""
    form, sql = additive_form(ensemble._combiner), steps.dialect.number
    fitted, scale = dict(ensemble.members_), ensemble._scale
    intercept, terms = form.intercept, []
    for place, j in enumerate(ensemble._columns_used):
        weight, name = form.terms.get(place, Line(0.0)), ensemble.oof_members_[j]
        if name not in fitted or not isinstance(weight, Line):  # it has no weight
            continue
        slope = weight.slope / float(scale.spread[j])
        intercept -= slope * float(scale.centre[j])
        score = score_sql(fitted[name], columns, steps)
        terms.append(f"{sql(slope)} * {steps.step(score)}")
    return bracketed_sum([sql(intercept), *terms])


def _prepared_sql(ranker: BaseEstimator, columns: SqlColumns, steps: SqlSteps) -> str:
    """A linear ranker of standardised numbers, their gaps and categories."""
    made, sql = ranker._made, steps.dialect.number
    form = additive_form(ranker.ranker_)
    slopes = np.zeros(len(made.owner))
    for j, term in form.terms.items():
        assert isinstance(term, Line)  # only linear rankers are fitted to prepared columns
        slopes[j] = term.slope
    n, gaps = len(made.plain), len(made.gaps)
    lost = dict(zip(made.gaps.tolist(), slopes[n : n + gaps].tolist(), strict=True))
    terms = [sql(form.intercept)]
    for j, place in enumerate(made.plain.tolist()):
        if slopes[j] == 0 and not lost.get(j):
            continue
        x = steps.column(columns.number(place))
        value = x if made.low is None else clip_sql(x, made.low[j], made.high[j], steps.dialect)
        line = f"{sql(slopes[j])} * (({value} - {sql(made.centre[j])}) / {sql(made.spread[j])})"
        terms.append(f"CASE WHEN {x} IS NULL THEN {sql(lost.get(j, 0.0))} ELSE {line} END")
    known = ranker._columns.categories
    rest = zip(made.coded.tolist(), made.codes.tolist(), slopes[n + gaps :], strict=True)
    for place, code, slope in rest:
        if slope:
            x = steps.code(columns.value(place), known[place])
            terms.append(f"CASE WHEN {x} = {int(code)} THEN {sql(slope)} ELSE 0 END")
    return bracketed_sum(terms)


def _forest_sql(ranker: BaseEstimator, columns: SqlColumns, steps: SqlSteps) -> str:
    """The trees of a member that keeps them as arrays; of a forest, the log-odds of its shares."""
    sql = steps.dialect.number
    sums = _sum_of_trees(forest_trees(ranker._forest), ranker, columns, steps)
    total = f"{sql(float(ranker._base))} + {sums}"
    if not hasattr(ranker, "kind"):
        return total
    share, log = steps.step(total), steps.dialect.log
    share = steps.step(f"CASE WHEN {share} < 0 THEN 0e0 WHEN {share} > 1 THEN 1e0 ELSE {share} END")
    least = 0.1 * min(ranker._share, 1.0 - ranker._share)
    return f"{log}({share} + {sql(least)}) - {log}({sql(1.0 + least)} - {share})"


def _trees_sql(ranker: BaseEstimator, columns: SqlColumns, steps: SqlSteps) -> str:
    """The trees of LightGBM or XGBoost, on top of the scores they started from."""
    if ranker._starts:
        raise ValueError(
            "The trees were grown on top of init_score, which SQL would have to be given; fit "
            "with init_model= instead."
        )
    sql, single = steps.dialect.number, ranker._trees.library == "xgboost"
    start = float(ranker._offset) + (float(ranker._trees._base) if single else 0.0)
    terms = [sql(start), _sum_of_trees(library_trees(ranker), ranker, columns, steps, single)]
    if ranker.init_model_ is not None:
        before = score_sql(ranker.init_model_, columns, steps)
        terms.append(f"{sql(float(ranker.init_scale_))} * ({before})")
    return bracketed_sum(terms)


def _sum_of_trees(
    trees: Iterable[Split | Leaf],
    ranker: BaseEstimator,
    columns: SqlColumns,
    steps: SqlSteps,
    single: bool = False,
) -> str:
    writer = _TreeWriter(ranker._columns.categories, columns, steps, single)
    return f"({bracketed_sum(writer.tree(tree) for tree in trees)})"


class _TreeWriter:
    """Writes trees as nested CASEs; a missing value takes the way of ELSE."""

    def __init__(
        self, categories: dict[int, AnyArray], columns: SqlColumns, steps: SqlSteps, single: bool
    ):
        self.categories, self.columns, self.steps = categories, columns, steps
        self.single = single
        self.sql = steps.dialect.number

    def tree(self, node: Split | Leaf, depth: int = 0) -> str:
        """Return a tree, or the part of one below a node."""
        if isinstance(node, Leaf):
            return self.sql(node.value)
        if depth == _DEEPEST:
            return self._list(node)
        question, then, other = self._ways(node)
        ways = f"THEN {self.tree(then, depth + 1)} ELSE {self.tree(other, depth + 1)}"
        return f"CASE WHEN {question} {ways} END"

    def _list(self, node: Split) -> str:
        """A tree as one CASE of its leaves.

        A leaf is asked for by the questions on its way that had an answer: rows that take the
        other way at one of them were found by an earlier leaf.
        """
        cases, last = [], ""
        stack: list[tuple[Split | Leaf, tuple[str, ...]]] = [(node, ())]
        while stack:
            part, asked = stack.pop()
            if isinstance(part, Split):
                question, then, other = self._ways(part)
                stack += [(other, asked), (then, (*asked, question))]
            elif asked:
                cases.append(f"WHEN {' AND '.join(asked)} THEN {self.sql(part.value)}")
            else:
                last = self.sql(part.value)
        return f"CASE {' '.join(cases)} ELSE {last} END"

    def _ways(self, split: Split) -> tuple[str, Split | Leaf, Split | Leaf]:
        """A question, where a row goes if it is true, and where if it is false or NULL."""
        self.steps.count_split(MOST_SPLITS)
        if split.if_missing:
            return self._question(split, False), split.no, split.yes
        return self._question(split, True), split.yes, split.no

    def _question(self, split: Split, answer: bool) -> str:
        """The condition under which a value that is there gets the answer."""
        x = self._x(split.column)
        if split.mode == MEMBER:
            if not split.members:
                return "1 = 0" if answer else f"{x} IS NOT NULL"
            codes = [int(code) for code in split.members]
            return self.steps.dialect.is_member(x, codes, answer)
        at_most, edge = split.mode == AT_MOST, split.threshold
        if self.single:
            at_most, edge = double_edge(edge)
        signs = ("<=", ">") if at_most else ("<", ">=")
        return f"{x} {signs[0] if answer else signs[1]} {self.sql(edge)}"

    def _x(self, j: int) -> str:
        if j in self.categories:
            return self.steps.code(self.columns.value(j), self.categories[j])
        return self.steps.column(self.columns.number(j))


def double_edge(threshold: float) -> tuple[bool, float]:
    """Return the edge in double precision of a question asked in single precision.

    A number x, rounded to single precision, is less than the threshold t if x lies below the
    middle between t and the number before it; the middle itself is rounded to the even one.

    Returns
    -------
    at_most : bool
        Whether x may be equal to the edge.
    edge : float

    Examples
    --------
    >>> from toprank.interop.sql_rankers import double_edge
    >>> double_edge(1.0)
    (False, 0.9999999701976776)
    """
    with np.errstate(over="ignore"):
        above = np.float32(threshold)
        if not math.isfinite(above):
            raise ValueError(f"A tree asks whether a column is below {threshold}.")
        below = np.nextafter(above, np.float32(-np.inf), dtype=np.float32)
        # before the lowest number stands infinity, to which numbers round as if it were -2^128
        middle = (max(float(below), -(2.0**128)) + float(above)) / 2.0
        return bool(np.float32(middle) == below), middle
