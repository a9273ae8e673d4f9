"""Shortlists that keep a promise with a probability: precision, recall, a number of positives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from toprank._numerics import FloatArray
from toprank._text import counted, percent
from toprank.select.calibration import Calibration
from toprank.select.prefixes import (
    cut_by_precision,
    many_tied,
    planned_by_precision,
    positives_below,
    positives_to_pass,
    rows_needed,
    shortest_by_precision,
)
from toprank.select.shortlist import Shortlist, TooFewLabels
from toprank.select.wish import Wish, make_shortlist


def _by_precision(known: Calibration, new: FloatArray, wish: Wish) -> Shortlist:
    n, m = known.n_rows, len(new)
    tied = many_tied(known.scores, known.counts, new)
    shortest = shortest_by_precision(n, m, wish.value, wish.chance, tied)
    if shortest > m:
        needed = rows_needed(
            lambda rows: planned_by_precision(rows, m, wish.value, wish.chance) <= m, n
        )
        enough = "no number of labelled rows would" if needed is None else f"about {needed} would"
        raise TooFewLabels(
            f"{n} calibration rows cannot support precision_at_least={wish.value:g} with "
            f"confidence={wish.confidence:g} for any list out of {m} new rows; {enough}.",
            needed,
        )
    negatives, counts = known.of_class(False)
    cut = cut_by_precision(negatives, counts, new, n, wish.value, wish.chance, tied)
    rows = np.flatnonzero(new > cut)
    guarantee = f"at least {percent(wish.value)} of these rows are positives."
    notes: tuple[str, ...] = ()
    if not len(rows):
        notes = (
            f"{n} calibration rows can vouch for lists of {shortest} rows or more out of {m}. The "
            "negatives among them score too high.",
        )
    return make_shortlist(known, new, wish, rows, _with_probability(wish, guarantee), notes)


def _by_recall(known: Calibration, new: FloatArray, wish: Wish) -> Shortlist:
    n, m = known.n_rows, len(new)
    found = known.n_positives
    k = positives_below(found, n, m, wish.value, wish.chance)
    if k == 0:
        _refuse_positives(
            known,
            wish,
            f"for a list shorter than all {m} new rows",
            lambda rows: (
                positives_below(_in_proportion(known, rows), rows, m, wish.value, wish.chance) > 0
            ),
        )
    cut = _score_at(known, found - k + 1)
    guarantee = f"these rows hold at least {percent(wish.value)} of the positives among all {m}."
    rows = np.flatnonzero(new >= cut)
    return make_shortlist(known, new, wish, rows, _with_probability(wish, guarantee))


def _by_positives(known: Calibration, new: FloatArray, wish: Wish) -> Shortlist:
    n, m, wanted = known.n_rows, len(new), int(wish.value)
    if wanted > m:
        raise ValueError(f"positives_at_least={wanted}: there are only {m} new rows.")
    j = positives_to_pass(wanted, n, m, wish.chance)
    if j > known.n_positives:
        _refuse_positives(
            known,
            wish,
            f"for {m} new rows (about {m * known.n_positives / n:.3g} of them positives)",
            lambda rows: (
                positives_to_pass(wanted, rows, m, wish.chance) <= _in_proportion(known, rows)
            ),
        )
    rows = np.flatnonzero(new >= _score_at(known, j))
    what = counted(wanted, "positive")
    guarantee = _with_probability(wish, f"these rows hold at least {what}.")
    return make_shortlist(known, new, wish, rows, guarantee)


SURE_LISTS: dict[str, Callable[[Calibration, FloatArray, Wish], Shortlist]] = {
    "precision_at_least": _by_precision,
    "recall_at_least": _by_recall,
    "positives_at_least": _by_positives,
}


def _in_proportion(known: Calibration, rows: int) -> int:
    """How many of so many rows would be positives."""
    return int(known.n_positives * (rows / known.n_rows))


def _score_at(known: Calibration, place: int) -> float:
    """The score of the calibration positive at a place from the top, counted from 1."""
    scores, counts = known.of_class(True)
    return float(scores[np.searchsorted(np.cumsum(counts), place, side="left")])


def _refuse_positives(
    known: Calibration, wish: Wish, where: str, supports: Callable[[int], bool]
) -> None:
    needed = rows_needed(supports, known.n_rows)
    enough = "no number of labelled rows with that share would"
    if needed is not None:
        enough = f"about {needed} labelled rows with that share would"
    raise TooFewLabels(
        f"{known.n_rows} calibration rows, {known.n_positives} of them positives, cannot support "
        f"{wish.kind}={wish.value:g} with confidence={wish.confidence:g} {where}; {enough}.",
        needed,
    )


def _with_probability(wish: Wish, what: str) -> str:
    return f"With probability at least {percent(wish.confidence)}, {what}"
