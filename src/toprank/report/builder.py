"""From a table to its report."""

from __future__ import annotations

import platform
import time as clock
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy
import sklearn

from toprank._arrays import JsonObject, TableLike
from toprank._text import clean_text, count, format_p, plain
from toprank._version import __version__
from toprank.folds import check_powers
from toprank.models.concern import LEAK, NOTE, Concern
from toprank.models.errors import ModelError, catch_warnings
from toprank.models.fit import labelled_rows
from toprank.models.look import find_concerns
from toprank.report.decisions import Parts, promise_results
from toprank.report.front import front_results
from toprank.report.held_out import HeldOut, score_held_out
from toprank.report.pushes import ALPHA, Pushes, fit_pushes
from toprank.report.report import SMALLEST, Report
from toprank.report.results import results
from toprank.report.shipped import Shipped, fit_shipped
from toprank.report.subjects import subject_today
from toprank.report.table import Table
from toprank.tuning.support import Support, support_of_scores

#: Called as progress(step, done, total).
Progress = Callable[[str, int, int], None]


#: Rows at most that every strength of the push is fitted to, fold by fold; more are drawn from.
MOST_ROWS = 100_000


def build(
    frame: TableLike,
    target: str,
    *,
    positive: object = None,
    id: str | None = None,
    time: str | None = None,
    drop: Sequence[str] = (),
    k: int = 50,
    ps: Sequence[float] = (1, 2, 4, 8, 16, 64),
    cv: int = 5,
    random_state: int = 0,
    weight: str | None = None,
    groups: str | None = None,
    fit: Mapping[str, Any] | None = None,
    value_positive: float | None = None,
    cost: float | None = None,
    today: str | None = None,
    by_group: str | None = None,
    by: str | None = None,
    per_entity: str | None = None,
    as_text: Sequence[str] = (),
    as_number: Sequence[str] = (),
    clip: Sequence[str] = (),
    tidy: Sequence[str] = (),
    pool: Sequence[str] = (),
    skip_unlabelled: bool = False,
    keep_tails: bool = False,
    notes: Sequence[str] = (),
    progress: Progress | None = None,
) -> Report:
    """Find out how good the top of a table's list is, and write it down.

    The linear push is fitted for every p, with logistic regression and boosted trees beside it,
    on the same folds; of more than 100,000 rows so many are drawn. Everything in the report is
    about rows that the ranker had not seen. With ``fit`` the front page is about the model that
    `toprank.models.fit_table` makes of this table.

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
    weight : str, optional
        Column of repetition counts; not a feature.
    groups : str, optional
        Column of clusters, such as customers; not a feature. Rows of one group stay in one fold.
    fit : mapping, optional
        Options of `toprank.models.fit_table`, such as ``{"model": "trees"}``; an empty mapping
        leaves all to it. The front page is then about that model, fitted to some of the rows and
        measured on the others. Without, it is about the linear push.
    value_positive, cost : float, optional
        What a positive brings and what taking a row costs; the front page then says how many rows
        to take.
    today : str, optional
        Column of numbers that the rows are ordered by today, the highest first; not a feature.
        The model is compared with it.
    by_group, by, per_entity : str, optional
        With ``fit``: columns of groups, of periods and of entities, whose part in the list the
        front page shows, as in `toprank.report.describe`.
    as_text, as_number, clip, tidy, pool : sequence of str
        Columns that are read in another way than their values suggest, as in
        `toprank.models.fit_table`.
    skip_unlabelled : bool, default=False
        Whether to leave out the rows without a label; such rows are an error otherwise.
    keep_tails : bool, default=False
        Whether long tails count in full in linear models, as in `toprank.models.fit_table`.
    notes : sequence of str
        What else to say at the top, such as that the rows are a sample.
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
    tell = _Teller(progress, 4 + 3 * cv + (fit is not None))
    tell("reading the table")
    drop = (*drop, *([] if today is None else [today]))
    parts = Parts(by_group, by, per_entity)
    if fit is None and parts != Parts():
        raise ModelError("by_group= and by= are for the front page, which needs fit=.")
    roles: dict[str, Any] = {
        "id": id,
        "time": time,
        "weight": weight,
        "groups": groups,
        "drop": drop,
    }
    given = {"as_text": as_text, "as_number": as_number, "clip": clip, "tidy": tidy, "pool": pool}
    options = dict(fit or {})
    reading = {name: options.pop(name, columns) for name, columns in given.items()}
    frame = labelled_rows(frame, target, options.pop("skip_unlabelled", skip_unlabelled))
    keep_tails = options.setdefault("keep_tails", keep_tails)
    whole = Table.read(frame, target, positive, keep_tails=keep_tails, **roles, **reading)
    parts.refuse_weights(whole.rows.weight)
    table = whole.sample(MOST_ROWS, random_state)
    folds = table.folds(cv, random_state)
    concerns = find_concerns(frame, whole.schema, whole.target, whole.rows, keep_tails)
    with catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first = None
        if fit is not None:
            tell("fitting the model")
            shown = fit_shipped(frame, whole, options, random_state)
            first = None if shown is None else _front(shown, k, today, value_positive, cost, parts)
        tell("the push on all rows")
        pushes = fit_pushes(table, powers, table.rows, random_state)
        held = score_held_out(table, powers, folds, random_state, tell, pushes)
        tell("what strength the data supports")
        support, unsupported = _measure_support(table, held, pushes)
        tell("measuring")
        data = results(table, held, support, k, cv)
    said = [*notes, *_list_concerns(concerns), *_sampled(whole, table), *data["notes"]]
    said += [*unsupported, *_list_warnings(caught)]
    data["notes"] = [clean_text(note, 400) for note in said]
    if first is not None:
        data["front"] = first
        data["verdict"]["headline"] = first["said"]["headline"]
    data["made"] = _describe_run(table, held, k, cv, random_state, clock.perf_counter() - started)
    tell.finish()
    return Report(plain(data, digits=6, infinities=False, smallest=SMALLEST))


def _front(
    shown: Shipped,
    k: int,
    today: str | None,
    value: float | None,
    cost: float | None,
    parts: Parts,
) -> JsonObject:
    before = None if today is None else subject_today(shown.frame, today)
    found = front_results([shown.subject], shown.rows, k, value=value, cost=cost, today=before)
    found |= parts.measure(shown.subject.scores, shown.rows, shown.frame, found["k"])
    found["promises"] = promise_results(shown.subject.scores, shown.rows)
    return found | {"how": shown.how}


def _sampled(whole: Table, table: Table) -> list[str]:
    if len(table.rows) == len(whole.rows):
        return []
    return [
        f"Every strength of the push was fitted to {count(len(table.rows))} rows drawn from the "
        f"{count(len(whole.rows))}, class by class."
    ]


def _list_concerns(concerns: list[Concern]) -> list[str]:
    """What a look at the table found, the most dangerous first; the columns left out come later."""
    serious = [one for one in concerns if one.danger < NOTE]
    said = [f"careful: {one}" if one.danger == LEAK else str(one) for one in serious]
    return [text[:1].upper() + text[1:] for text in said]


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


def _check_count(name: str, value: object, least: int) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= least
    if not whole:
        raise ModelError(f"{name}={value!r}: expected a whole number from {least} on.")


def _measure_support(
    table: Table, held: HeldOut, pushes: Pushes
) -> tuple[Support | None, list[str]]:
    """What the sample supports, by the fits that there are; or why it cannot be determined."""
    finite = [j for j, p in enumerate(held.ps) if np.isfinite(p)]
    if not finite:
        return None, ["Strength ∞ rests on the highest negative alone; give finite strengths too."]
    pairs = [model.scores for model in held.models]
    of_folds = [(trained[finite], tested[finite]) for trained, tested in pairs]
    powers, of_all = [held.ps[j] for j in finite], pushes.scores(pushes.Z)[finite]
    return support_of_scores(powers, table.rows, of_all, held.folds, of_folds), []


def _describe_run(
    table: Table, held: HeldOut, k: int, cv: int, random_state: int, seconds: float
) -> JsonObject:
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
