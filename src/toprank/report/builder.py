"""From a table to its report."""

from __future__ import annotations

import os
import platform
import time as clock
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

from toprank._files import replace_file
from toprank._text import clean_text, format_p, plain
from toprank._version import __version__
from toprank.folds import Fold, check_powers
from toprank.models.errors import ModelError, catch_warnings
from toprank.models.preparation import Preparation
from toprank.report.held_out import ALPHA, HeldOut, score_held_out
from toprank.report.page import page
from toprank.report.results import results
from toprank.report.table import Table
from toprank.tuning import supported_p
from toprank.tuning.support import Support

#: Called as progress(step, done, total).
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Report:
    """A report: its results, and the page that shows them.

    Attributes
    ----------
    html : str
        The page, complete in itself.
    """

    _data: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain values, ready for JSON."""
        return self._data

    @cached_property
    def html(self) -> str:
        return page(self._data)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page; a file that is there is replaced when all is written, or not at all."""
        where = Path(path)
        with replace_file(where) as file:
            file.write(self.html.encode("utf-8"))
        return where

    def _repr_html_(self) -> str:
        return f"<p>{escape(self._data['verdict']['headline'])}</p>"

    def __repr__(self) -> str:
        return f"Report: {self._data['verdict']['headline']}"


def build(
    frame: Any,
    target: str,
    *,
    positive: Any = None,
    id: str | None = None,
    time: str | None = None,
    drop: Sequence[str] = (),
    k: int = 50,
    ps: Sequence[float] = (1, 2, 4, 8, 16, 64),
    cv: int = 5,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Report:
    """Find out how good the top of a table's list is, and write it down.

    The linear push is fitted for every p, with logistic regression and boosted trees beside it,
    on the same folds. Everything in the report is about rows that the ranker had not seen.

    Parameters
    ----------
    frame : data frame of pandas or polars, or pyarrow Table
        Numbers, booleans, dates, categories and text, with missing values.
    target : str
        Column of the labels, of any two values.
    positive : value, optional
        The label that belongs at the top. Needed where it is not plain.
    id : str, optional
        Column that names the rows; not a feature.
    time : str, optional
        Column of dates or numbers; not a feature. The folds then train on the past.
    drop : sequence of str
        Columns to leave out.
    k : int, default=50
        How many rows the top of the list has; at most half of the rows.
    ps : sequence of float
        How hard to push: the values of p of the slider, from 1 to infinity.
    cv : int, default=5
        Folds; fewer where a class has fewer rows.
    random_state : int, default=0
        Seed of the folds and of the trees.
    progress : callable, optional
        Called as ``progress(step, done, total)``.

    Returns
    -------
    Report
        ``.save(path)``, ``.html``, ``.to_dict()``.

    Raises
    ------
    ValueError
        If the table cannot be used; the message says what to do.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from toprank.report import build
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame(rng.normal(size=(300, 2)), columns=["age", "income"])
    >>> frame["bought"] = np.where(frame.age + rng.normal(size=300) > 1.5, "yes", "no")
    >>> report = build(frame, "bought", k=20, ps=(1, 4), cv=3)
    >>> sorted(report.to_dict()["chosen"]["figures"])
    ['auc', 'clean', 'lift', 'partial', 'precision', 'recall']
    >>> len(report.html) < 6_000_000
    True
    """
    started = clock.perf_counter()
    powers = check_powers(ps)
    _check_count("k", k, 1)
    _check_count("cv", cv, 2)
    tell = _Teller(progress, 3 + cv * (len(powers) + 2) + 2)
    tell("reading the table")
    table = Table.read(frame, target, positive, id, time, drop)
    folds = table.folds(cv, random_state)
    with catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        held = score_held_out(table, powers, folds, random_state, tell)
        tell("what p the data supports")
        support, unsupported = _measure_support(table, powers, folds, random_state)
        tell("measuring")
        data = results(table, held, support, k, cv)
    notes = [*data["notes"], *unsupported, *_list_warnings(caught)]
    data["notes"] = [clean_text(note, 400) for note in notes]
    data["made"] = _describe_run(table, held, k, cv, random_state, clock.perf_counter() - started)
    tell.finish()
    return Report(plain(data, digits=6, infinities=False))


def _list_warnings(caught: list[warnings.WarningMessage]) -> list[str]:
    """What the fits warned of, each said once: the reader of the page should know it too."""
    said = (str(one.message).split("\n")[0] for one in caught)
    return [f"A fit warned: {text}" for text in dict.fromkeys(said)]


class _Teller:
    """Counts the steps for the caller's progress bar."""

    def __init__(self, progress: Progress | None, total: int):
        self.progress, self.total, self.done = progress, total, 0

    def __call__(self, step: str) -> None:
        if self.progress is not None:
            self.progress(step, min(self.done, self.total), self.total)
        self.done += 1

    def finish(self) -> None:
        self.done = self.total
        self("done")


def _check_count(name: str, value: Any, least: int) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < least:
        raise ModelError(f"{name}={value!r}: expected a whole number from {least} on.")


def _measure_support(
    table: Table, powers: tuple[float, ...], folds: list[Fold], random_state: int
) -> tuple[Support | None, list[str]]:
    """What the sample supports, on the prepared columns; or why it cannot be determined."""
    finite = [p for p in powers if np.isfinite(p)]
    if not finite:
        return None, ["p = ∞ rests on the highest negative alone; give finite values of p too."]
    Z = Preparation("linear", random_state).fit_transform(table.schema, table.rows.X)
    try:
        return supported_p(Z, table.rows.y, ps=finite, alpha=ALPHA, cv=folds), []
    except ValueError as error:
        return None, [f"What p the data supports cannot be determined: {error}"]


def _describe_run(
    table: Table, held: HeldOut, k: int, cv: int, random_state: int, seconds: float
) -> dict[str, Any]:
    kind = "in the order of time" if table.rows.time is not None else "stratified, shuffled"
    return {
        "toprank": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "made": clock.strftime("%Y-%m-%d %H:%M UTC", clock.gmtime()),
        "took": f"{seconds:.1f} seconds",
        "folds": f"{len(held.folds)}, {kind}",
        "random_state": random_state,
        "k": k,
        "cv": cv,
        "push": f"PNormPush, exponential loss, alpha = {ALPHA:g}, p = "
        + ", ".join(format_p(p) for p in held.ps),
        "logistic regression": "scikit-learn's LogisticRegression, C = 1, on the same columns",
        "boosted trees": "scikit-learn's HistGradientBoostingClassifier, default settings",
    }
