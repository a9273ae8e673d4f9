"""Trees grown by several workers, each on its own rows: what every worker does.

The engine, Dask or Spark, brings the rows to the workers and opens a communicator; from there on
all workers run `grow_together` at once. What depends on all rows (classes, categories, weights,
the push, the metric to stop by, the link) is exchanged, so that the trees are those of one
process. A worker may have no rows, or rows of one class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from toprank._arrays import AnyArray, BoolArray, Frame, IntArray, Matrix
from toprank._numerics import FloatArray
from toprank.folds import PChoice
from toprank.interop.team import Team, team_weights
from toprank.pairs import Rows, check_labels, check_table, group_labels, two_classes
from toprank.rankers.held_out import TopMetric
from toprank.rankers.trees.columns import Categories
from toprank.rankers.trees.libraries import (
    check_largest,
    check_weight_reach,
    small_column_notes,
    warn_all,
)
from toprank.rankers.trees.model import check_start, model_scores
from toprank.rankers.trees.plan import TreeRows, Watch
from toprank.rankers.trees.stopping import StoppingRule

Result = TypeVar("Result")
#: Parts rows into those to grow from and those to stop by; None where none are held out.
Draw = Callable[[Rows], tuple[IntArray, IntArray] | None]

#: What is known of an estimator before its rows are looked at.
_SETTLED = ("n_features_in_", "feature_names_in_", "init_model_", "_starts", "p_", "init_scale_")


@dataclass(frozen=True)
class Part:
    """Rows as the engine hands them over, not checked yet; ``index`` is their place among all."""

    index: int
    rows: TreeRows

    @classmethod
    def of(cls, index: int, *columns: Any, **named: Any) -> Part:
        """Make a part of X, y, weights, groups and starting scores, in this order or by name."""
        return cls(index, TreeRows(*columns, **named))

    @property
    def n_rows(self) -> int:
        return int(self.rows.X.shape[0])


def prepare(
    trees: Any,
    init_model: object,
    has_start: bool,
    has_eval: bool,
    choose: Callable[[], PChoice | None],
) -> None:
    """Refuse what a cluster cannot do, and settle what the rows of a worker do not decide."""
    trees._check_link()
    if has_start and (init_model is not None or has_eval):
        raise ValueError(
            "init_score holds the scores of the training rows alone; with rows to stop by, or "
            "instead of init_model, give a model as init_model."
        )
    if trees.backend != "xgboost":
        raise ValueError(
            f"backend={trees.backend!r} does not train across workers: its objective sees the rows "
            "of one worker only, and would push against those alone. Use backend='xgboost'."
        )
    trees.init_model_ = init_model
    trees._starts = has_start
    trees._settle_power(choose)


def ready_to_ship(trees: Any) -> Any:
    """Return a copy of the estimator, not fitted, that draws the same numbers on every worker."""
    copy = type(trees)(**trees.get_params(deep=False))
    for name in _SETTLED:
        if hasattr(trees, name):
            setattr(copy, name, getattr(trees, name))
    if not isinstance(trees.random_state, int | np.integer):
        copy.random_state = int(check_random_state(trees.random_state).randint(2**31 - 1))
    return copy


@dataclass(frozen=True)
class Learned:
    """What was learned, without the parameters, and what the user should be told."""

    state: dict[str, object]
    notes: list[str]

    @classmethod
    def by(cls, trees: Any, notes: list[str]) -> Learned:
        """What an estimator learned on a worker."""
        parameters = trees.get_params(deep=False)
        state = {name: value for name, value in vars(trees).items() if name not in parameters}
        return cls(state, notes)

    def hand_to(self, trees: object) -> Any:
        """Return the estimator, fitted; warnings come from here, where somebody sees them."""
        vars(trees).update(self.state)
        warn_all(self.notes)
        return trees


def with_start(trees: Any, parts: Sequence[Part]) -> list[Part]:
    """Return the parts with the scores of ``init_model``, if there is one.

    Before the communicator opens: inside, every step of XGBoost waits for all workers. What goes
    wrong here is raised there, on all of them.
    """
    if trees.init_model_ is None:
        return list(parts)
    started = []
    for part in parts:
        start: Any = np.zeros(0)
        if part.n_rows:
            try:
                start = model_scores(trees.init_model_, part.rows.X)
            except (TypeError, ValueError) as problem:
                start = problem
        started.append(Part(part.index, replace(part.rows, start=start)))
    return started


def grow_together(
    trees: Any, parts: Sequence[Part], held: Sequence[Part] | None, team: Team
) -> Learned:
    """Fit the estimator to the rows of all workers; called by all of them at once.

    Parameters
    ----------
    trees : PushTrees
        Its parameters checked, its columns named.
    parts : sequence of Part
        The rows that lie here.
    held : sequence of Part or None
        The rows to stop by that lie here; None where they are to be held out.
    team : Team

    Returns
    -------
    Learned
        The same on every worker.
    """
    labels = _everywhere(team, lambda: [_part_labels(part) for part in parts])
    trees.classes_ = _classes(team, labels)
    trees._columns = _learn_columns(
        team, [part.rows.X for part in parts], trees.categorical_features
    )
    rows = _check_rows_of(trees, parts, team)
    check_weight_reach(rows.weight, team)
    notes = small_column_notes(trees.backend, rows, team)
    where = np.repeat([part.index for part in parts], [part.n_rows for part in parts])
    rows, where = rows.present(), where[rows.places_present]
    watch = None
    if held is not None:
        watch = _watch(trees, _check_rows_of(trees, held, team), team)
    elif trees._stops_early(int(team.sum(len(rows)))):
        seed = int(trees.random_state)
        out = held_out_together(team, rows, where, lambda table: trees._held_out(table, seed))
        if out is not None:
            watch, rows = _watch(trees, rows.take(out), team), rows.take(~out)
    for some in (rows, *(() if watch is None else (watch.rows,))):
        check_largest(trees.backend, some.X, team)  # here, where all workers stop together
    return Learned.by(trees, notes + trees._grow(rows, watch, team))


def _everywhere(team: Team, action: Callable[[], Result]) -> Result:
    """Do what may fail on one worker; if it does, it fails on all, and nobody waits for ever."""
    try:
        result, problem = action(), None
    except (TypeError, ValueError) as error:
        result, problem = None, error
    problems = [error for error in team.objects(problem) if error is not None]
    if problems:
        raise problems[0]
    return result  # type: ignore[return-value]


def _part_labels(part: Part) -> AnyArray:
    labels = check_labels(part.rows.y)
    if len(labels) != part.n_rows:
        raise ValueError(f"A part of X has {part.n_rows} rows, that of y {len(labels)}.")
    return labels


def _union(team: Team, arrays: Sequence[AnyArray]) -> AnyArray:
    """The distinct values of all workers' arrays."""
    mine = [np.unique(values) for values in arrays if len(values)]
    everyone = [values for part in team.objects(mine) for values in part]
    return np.unique(np.concatenate(everyone)) if everyone else np.zeros(0)


def _classes(team: Team, labels: Sequence[AnyArray]) -> AnyArray:
    distinct = _union(team, labels)
    if not len(distinct):
        raise ValueError("There are no rows: every part of X is empty.")
    return two_classes(distinct)[0]


def _learn_columns(team: Team, frames: Sequence[Matrix | Frame], chosen: object) -> Categories:
    """The columns of categories and their values on all workers."""
    learned = _everywhere(team, lambda: [Categories.learn(X, chosen) for X in frames])
    places = {j for part in team.objects(learned) for columns in part for j in columns.places}
    if not places:
        return Categories({})
    # a column of objects may hold numbers here and text elsewhere
    again = [Categories.learn(X, sorted(places)).categories for X in frames]
    return Categories({j: _union(team, [part[j] for part in again]) for j in sorted(places)})


def _check_rows_of(trees: object, parts: Sequence[Part], team: Team) -> TreeRows:
    """The rows that lie here, checked with those of all workers."""
    one = _join_parts(
        _everywhere(team, lambda: [_check_rows_of_part(trees, part) for part in parts])
    )
    weight = team_weights(team, one.y, one.weight)
    groups = one.groups
    if groups is not None:
        groups = np.searchsorted(_union(team, [groups]), groups)
    return replace(one, weight=weight, groups=groups)


def _check_rows_of_part(trees: Any, part: Part) -> TreeRows:
    labels, given = _part_labels(part), part.rows
    if not np.all(np.isin(labels, trees.classes_)):
        raise ValueError(f"eval_set has labels other than the classes fitted: {trees.classes_}.")
    if isinstance(given.start, Exception):
        raise given.start
    start = given.start
    if start is not None:
        start = check_start(start, part.n_rows) if part.n_rows else np.zeros(0)
    return TreeRows(
        _part_numbers(trees, part),
        np.asarray(labels == trees.classes_[1]),
        None if given.weight is None else np.asarray(given.weight, dtype=np.float64),
        group_labels(given.groups, part.n_rows),
        None if start is None else trees.init_scale_ * start,
    )


def _part_numbers(trees: Any, part: Part) -> FloatArray:
    X = part.rows.X
    if X.shape[1] != trees.n_features_in_:
        raise ValueError(f"eval_set has {X.shape[1]} columns, X has {trees.n_features_in_}.")
    if not part.n_rows:
        return np.empty((0, trees.n_features_in_))
    return trees._columns.numbers(check_table(X, missing=True, frames=True))


def _join_parts(parts: Sequence[TreeRows]) -> TreeRows:
    def column(name: str) -> np.ndarray | None:
        values = [getattr(part, name) for part in parts]
        return None if values[0] is None else np.concatenate(values)

    return TreeRows(*(column(field.name) for field in fields(TreeRows)))


class SharedMetric:
    """A metric of the held-out rows of all workers, exactly: their scores are gathered.

    Four bytes (XGBoost) or eight (LightGBM) per held-out row and round go over the network.
    """

    def __init__(self, metric: TopMetric, team: Team):
        self._metric = metric
        self._team = team

    def __call__(self, scores: FloatArray) -> float:
        return self._metric(self._team.gather(np.asarray(scores)))

    def standard_error(self, scores: FloatArray) -> float:
        """Return the standard error of the value, as the first worker knows it."""
        everyone = self._team.gather(scores)
        mine = self._metric.standard_error(everyone) if self._team.rank == 0 else None
        return self._team.first(mine)


def _watch(trees: Any, rows: TreeRows, team: Team) -> Watch:
    rule = StoppingRule.of(trees, grouped=rows.groups is not None)
    metric = SharedMetric(rule.measure(rows.of_all(team)), team)
    return Watch(rows, metric, trees.n_iter_no_change, rule.least, rule.name)


def held_out_together(
    team: Team, rows: TreeRows, where: NDArray[np.intp], draw: Draw
) -> NDArray[np.bool_] | None:
    """Return which of the rows here are held out: those that one process would hold out, if any.

    The first worker draws among the labels (or groups) of all rows, in the order of the parts, so
    that it does not matter which worker holds which part. They take a byte per row there (groups
    eight), and the draw sixteen.
    """
    mine = {
        int(j): (rows.y[where == j], None if rows.groups is None else rows.groups[where == j])
        for j in np.unique(where)
    }
    parts = {j: part for own in team.objects(mine) for j, part in own.items()}
    order = sorted(parts)
    drawn = _everywhere(
        team,
        lambda: _draw_held_out([parts[j] for j in order], draw) if team.rank == 0 else None,
    )
    drawn = team.first(drawn)
    if drawn is None:
        return None
    ends = np.cumsum([len(parts[j][0]) for j in order])
    of_part = dict(zip(order, np.split(drawn, ends[:-1]), strict=True))
    out = np.zeros(len(rows), dtype=bool)
    for j in mine:
        out[where == j] = of_part[j]
    return out


def _draw_held_out(
    parts: Sequence[tuple[BoolArray, IntArray | None]], draw: Draw
) -> NDArray[np.bool_] | None:
    labels = np.concatenate([y for y, _ in parts])
    groups = None if parts[0][1] is None else np.concatenate([groups for _, groups in parts])
    drawn = draw(Rows(labels, labels, None, groups))
    if drawn is None:
        return None
    out = np.zeros(len(labels), dtype=bool)
    out[drawn[1]] = True
    return out
