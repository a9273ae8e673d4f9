"""The top of a list: ids, scores, ranks and reasons.

`top` ranks a table that is in memory; `RunningTop` keeps the first rows of a list that never is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from toprank._arrays import Frame, TableLike
from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.models import frames
from toprank.models.columns import as_numbers
from toprank.models.errors import ModelError
from toprank.models.model import (
    TableModel,
    column_texts,
    contributions,
    explains,
    largest_reasons,
    per_column,
    rows_to_explain,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from toprank.models.model import Reason

#: Columns of a ranked list besides the one that names the rows.
LIST_COLUMNS = ("score", "rank", "reasons", "sure", "tied_at_the_cut")
#: Rows that wait together, so that short lists are not sorted all the time.
_FEWEST_SORTED = 100_000


def top(
    model: object, frame: Frame, k: int | float, id: str | None = None, *, n_reasons: int = 3
) -> Frame:
    """Rank the rows of a table and return the first k.

    Parameters
    ----------
    model : TableModel or fitted estimator
        A model of `toprank.models`, or any estimator with ``decision_function`` (or
        ``predict_proba``) that takes the table, a pipeline of scikit-learn among them; it is given
        the columns it was fitted to.
    frame : data frame of pandas or polars, pyarrow Table, or array
    k : int or float
        How many rows: a count, or a share of the table in (0, 1].
    id : str, optional
        Column that names the rows; by default the model's, else the number of the row.
    n_reasons : int, default=3
        How many columns are named as the reasons of a row's score.

    Returns
    -------
    table
        Of the caller's kind (pandas for an array), the highest score first; pandas' index is that
        of the rows. With columns

        - the id (``row``, counted from 0, where there is none),
        - ``score``,
        - ``rank``, from 1; rows of equal score are in the order of the table,
        - ``reasons``: what adds most to the score, in words; empty where the estimator has no
          answer. For estimators other than a TableModel the mean of this table is the standard,
        - ``tied_at_the_cut``: whether rows of the same score were left out.

    Examples
    --------
    >>> import pandas as pd, toprank
    >>> from toprank.datasets import load_wdbc
    >>> X, y = load_wdbc(return_X_y=True)
    >>> frame = pd.DataFrame(X[:, :3], columns=["radius", "texture", "perimeter"])
    >>> ranker = toprank.PNormPush(p=4).fit(frame, y)
    >>> first = toprank.top(ranker, frame, 5)
    >>> list(first.columns)
    ['row', 'score', 'rank', 'reasons', 'tied_at_the_cut']
    """
    model = getattr(model, "model_", model)  # a TableRanker holds its model
    is_array = isinstance(frame, np.ndarray)
    library = "pandas" if is_array else frames.library_of(frame)
    n = len(frame) if is_array else frames.n_rows(frame)
    size = _list_size(k, n)
    scores = _score_rows(model, frame)
    order = np.argsort(-scores, kind="stable")
    chosen = order[:size]
    part = frame[chosen] if is_array else frames.take(frame, chosen)
    name, names = _ids(model, part, id, chosen, is_array)
    listed = frames.make_frame(
        {
            name: names,
            "score": scores[chosen],
            "rank": np.arange(1, size + 1),
            "reasons": _reason_texts(model, frame, part, n_reasons),
            "tied_at_the_cut": _tied(scores, order, size),
        },
        library,
    )
    if library == "pandas" and not is_array:
        listed.index = part.index
    return listed


def _list_size(k: int | float, n: int) -> int:
    if isinstance(k, (bool, np.bool_)) or not isinstance(k, (int, float, np.number)):
        raise ModelError(f"k={k!r}: expected a count or a share in (0, 1].")
    if isinstance(k, (float, np.floating)):
        if not 0 < k <= 1:
            raise ModelError(f"k={k!r}: a share is a number in (0, 1]; for a count pass an int.")
        return int(np.ceil(k * n))
    if k < 1:
        raise ModelError(f"k={k!r}: expected at least 1.")
    return min(int(k), n)


def _features(model: object, frame: object) -> TableLike:
    """The columns that an estimator was fitted to, where it knows their names."""
    if isinstance(frame, np.ndarray):
        return frame
    known = getattr(model, "feature_names_in_", None)
    return frames.select(frame, frames.names_of(frame) if known is None else list(known))


def _score_rows(model: object, frame: object) -> FloatArray:
    if isinstance(model, TableModel):
        scores = model.score(frame)
    elif hasattr(model, "decision_function"):
        scores = model.decision_function(_features(model, frame))
    elif hasattr(model, "predict_proba"):
        scores = np.asarray(model.predict_proba(_features(model, frame)))[:, 1]
    else:
        raise ModelError(
            f"The model is a {type(model).__name__}; expected a TableModel or a fitted estimator "
            "with decision_function."
        )
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 1 or np.any(np.isnan(scores)):
        raise ModelError("The model's scores are not one number per row.")
    return scores


def _ids(
    model: object, part: object, id: str | None, chosen: NDArray[np.intp], is_array: bool
) -> tuple[str, Iterable[object]]:
    there = [] if is_array else frames.names_of(part)
    if id is not None and id not in there:
        raise ModelError(f"id={id!r}: the table has no such column.")
    if id is None and isinstance(model, TableModel) and model.schema.id in there:
        id = model.schema.id
    if id is None:
        return "row", chosen
    return id_name(id), frames.own_values(part, id)


def id_name(column: str) -> str:
    """What a list calls a column that names the rows; not as one of its own."""
    return f"{column} (id)" if column in LIST_COLUMNS else column


def _tied(scores: FloatArray, order: NDArray[np.intp], size: int) -> NDArray[np.bool_]:
    chosen = scores[order[:size]]
    if size == len(scores) or size == 0:
        return np.zeros(size, dtype=bool)
    return np.asarray(chosen == scores[order[size]])


def _reason_texts(model: object, frame: object, part: object, n: int) -> list[str]:
    if isinstance(model, TableModel):
        found = model.reasons(part, n)
    else:
        found = _estimator_reasons(model, frame, part, n)
    return ["; ".join(map(str, reasons)) for reasons in found]


def _estimator_reasons(model: object, frame: object, part: object, n: int) -> list[list[Reason]]:
    """Reasons of an estimator that ranks the columns as they are."""
    rows = len(part) if isinstance(part, np.ndarray) else frames.n_rows(part)
    if isinstance(model, Pipeline) and rows:
        return _pipeline_reasons(model, frame, part, n)
    if not explains(model) or not rows:
        return [[]] * rows
    frame, part = _features(model, frame), _features(model, part)
    # trees read tables for themselves
    numbers = (lambda X: X) if hasattr(model, "explain") else _as_matrix
    centre = np.mean(contributions(model, numbers(_rows_for_mean(model, frame))), axis=0)
    parts = contributions(model, numbers(part)) - centre
    if isinstance(part, np.ndarray):
        named = {f"column {j}": part[:, j] for j in range(part.shape[1])}
    else:
        named = frames.columns(part, frames.names_of(part))
    return largest_reasons(
        parts, list(named), [column_texts(column) for column in named.values()], n
    )


def _rows_for_mean(model: object, frame: Frame) -> TableLike:
    """The rows that the mean contribution is taken over: some of many, for trees."""
    whole = isinstance(frame, np.ndarray)
    some = rows_to_explain(model, len(frame) if whole else frames.n_rows(frame))
    if isinstance(some, slice):
        return frame
    return frame[some] if whole else frames.take(frame, some)


def _pipeline_reasons(pipeline: Pipeline, frame: object, part: Any, n: int) -> list[list[Reason]]:
    """Reasons of a pipeline: what each column adds by way of the numbers that its steps make of it.

    None where the last step does not explain itself, or the steps do not say what they make.
    """
    steps, last = pipeline[:-1], pipeline[-1]
    frame, part = _features(pipeline, frame), _features(pipeline, part)
    before, after = steps.transform(frame), steps.transform(part)
    if isinstance(getattr(last, "model_", None), TableModel):
        return last.reasons(after, n)
    rows = len(part)
    try:
        made = [str(name) for name in steps.get_feature_names_out()]
    except (AttributeError, ValueError):
        return [[]] * rows
    if not explains(last):
        return [[]] * rows
    numbers = (lambda X: X) if hasattr(last, "explain") else _dense
    parts = contributions(last, numbers(after)) - np.mean(
        contributions(last, numbers(before)), axis=0
    )
    named = _named_columns(part)
    owner = _owners(made, list(named))
    if owner is None:  # numbers of several columns, such as components: they speak for themselves
        values = [column_texts(column) for column in _dense(after).T]
        return largest_reasons(parts, made, values, n)
    parts = per_column(parts, owner, len(named))
    texts = [column_texts(column) for column in named.values()]
    is_array = isinstance(part, np.ndarray)
    shown = [f"column {place}" for place in range(len(named))] if is_array else list(named)
    return largest_reasons(parts, shown, texts, n)


def _dense(X: TableLike) -> FloatArray:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def _named_columns(part: object) -> dict[str, np.ndarray]:
    if isinstance(part, np.ndarray):
        return {f"x{place}": part[:, place] for place in range(part.shape[1])}
    return frames.columns(part, frames.names_of(part))


def _owners(made: list[str], columns: list[str]) -> NDArray[np.intp] | None:
    """The column that each number of a pipeline was made of, by its name; None if one is unknown.

    Numbers are called after their column, with the name of a step before it and a category behind.
    """
    found = []
    for name in made:
        bare = name.rpartition("__")[2]
        mine = [c for c in columns if bare == c or bare.startswith(f"{c}_") or name == c]
        if not mine:
            return None
        found.append(columns.index(max(mine, key=len)))
    return np.array(found, dtype=np.intp)


def _as_matrix(frame: object) -> FloatArray:
    if isinstance(frame, np.ndarray):
        return frame.astype(np.float64)
    values = frames.columns(frame, frames.names_of(frame))
    return np.column_stack([as_numbers(column) for column in values.values()])


class RunningTop:
    """Keeps the k highest scores and their rows; among equal scores the earlier rows stay.

    Parameters
    ----------
    k : int or None
        How many rows to keep; None for all.

    Attributes
    ----------
    scores : array
        The scores kept; after `settle`, the highest first.
    places : array of int
        Where their rows stand in the whole list, counted from 0.
    rows : pyarrow.Table
        The rows themselves, in the same order.
    tied_out : int
        How many rows have the last score that is kept, and were left out.
    n : int
        How many rows were offered.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa
    >>> top = RunningTop(2)
    >>> top.add(np.array([1.0, 3.0]), pa.table({"name": ["a", "b"]}))
    >>> top.add(np.array([1.0, 0.0]), pa.table({"name": ["c", "d"]}))
    >>> top.settle()
    >>> top.rows.column("name").to_pylist(), top.tied_out
    (['b', 'a'], 1)
    """

    def __init__(self, k: int | None) -> None:
        self.k = k
        self.scores: FloatArray = np.empty(0)
        self.places: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self.rows: pa.Table = None  # before any rows
        self.tied_out = self.n = 0
        self._waiting: list[tuple[FloatArray, NDArray[np.intp], pa.Table]] = []
        self._n_waiting = 0

    @property
    def cut(self) -> float:
        """The last score that is kept, once there are k rows; before, everything is kept."""
        full = self.k is not None and len(self.scores) == self.k
        return float(self.scores[-1]) if full else -np.inf

    @property
    def ranks(self) -> NDArray[np.intp]:
        """The ranks of the rows kept, from 1."""
        return np.arange(1, len(self.scores) + 1)

    @property
    def tied(self) -> NDArray[np.bool_]:
        """Which rows kept have the same score as rows that were left out."""
        return (self.scores == self.cut) & (self.tied_out > 0)

    def add(self, scores: FloatArray, rows: Frame) -> None:
        """Offer the next rows of the list and their scores."""
        cut = self.cut
        better = np.flatnonzero(scores > cut) if cut > -np.inf else np.arange(len(scores))
        self.tied_out += int(np.count_nonzero(scores == cut))
        if len(better):
            self._waiting.append((scores[better], self.n + better, rows.take(better)))
            self._n_waiting += len(better)
        self.n += len(scores)
        if self.k is not None and self._n_waiting >= max(self.k, _FEWEST_SORTED):
            self.settle()

    def settle(self) -> None:
        """Sort the waiting rows into the list, and drop those beyond k."""
        if not self._waiting:
            return
        before = self.cut
        kept = [] if self.rows is None else [(self.scores, self.places, self.rows)]
        scores, places, tables = zip(*kept, *self._waiting, strict=True)
        self._waiting, self._n_waiting = [], 0
        both = np.concatenate(scores)
        order = np.argsort(-both, kind="stable")  # what came first stays first
        chosen, left = order[: self.k], order[len(order) if self.k is None else self.k :]
        self.scores, self.places = both[chosen], np.concatenate(places)[chosen]
        merged = require("pyarrow", "frames").concat_tables(tables, promote_options="permissive")
        self.rows = merged.take(chosen)
        if self.cut != before:
            self.tied_out = 0
        self.tied_out += int(np.count_nonzero(both[left] == self.cut))
