"""Shortlists with a guarantee, from scores and from labelled rows that had no part in the fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._columns import finite_column
from toprank._numerics import FloatArray, is_number
from toprank._text import percent
from toprank.pairs import check_scores
from toprank.select.calibration import Calibration, read_calibration, score_rows
from toprank.select.conformal import (
    break_ties,
    conformal_p_values,
    select_by_fdr,
    select_under_shift,
)
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

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from toprank._arrays import JsonObject, TableLike


_DRAWN_ALIKE = "calibration rows and new rows are drawn in the same way"
_DRAWN_BY_RATIO = (
    "new rows are drawn like calibration rows, but for the likelihood ratios given, which are right"
)
#: A list as short as this is what an empty one is compared with.
_SHORT_LIST = 10


def select(
    model_or_scores: object,
    X_new: TableLike | None = None,
    *,
    calibration: object,
    fdr: float | None = None,
    precision_at_least: float | None = None,
    recall_at_least: float | None = None,
    positives_at_least: int | None = None,
    confidence: float = 0.95,
    likelihood_ratio: tuple[ArrayLike, ArrayLike] | None = None,
    ties: str = "conservative",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    random_state: int | np.random.Generator | None = 0,
) -> Shortlist:
    """Choose rows from the top of a ranking so that a stated guarantee holds.

    Exactly one of ``fdr``, ``precision_at_least``, ``recall_at_least`` and ``positives_at_least``
    says what is wanted. All four hold for this very list, in finite samples, whatever the model
    and the distribution of the scores: what they need is that calibration rows and new rows are
    exchangeable, and that no calibration row had a part in the fit.

    Parameters
    ----------
    model_or_scores : fitted model, or array-like of shape (m,)
        A model with ``decision_function`` or ``predict_proba`` that scores `X_new`, or the scores
        of the new rows.
    X_new : array, data frame or sparse matrix, optional
        The new rows; with a model only.
    calibration : tuple, or what `held_out` or `out_of_fold` returns
        Labelled rows that had no part in the fit: ``(y, s)``, their labels and scores;
        ``held_out(X, y)`` for the model to score; or ``out_of_fold(estimator, X, y)``. A
        `toprank.models.TableModel` also takes ``(X, y)``, or a table with its target: its card
        knows which rows it has learned from.
    fdr : float, optional
        The share of negatives among the chosen rows is at most this on average.
    precision_at_least : float, optional
        The longest list with at least this share of positives, with probability `confidence`.
    recall_at_least : float, optional
        The shortest list that holds at least this share of the positives among the new rows, with
        probability `confidence`.
    positives_at_least : int, optional
        The shortest list that holds at least so many positives, with probability `confidence`.
    confidence : float, default=0.95
        The probability of the last three guarantees.
    likelihood_ratio : tuple of two array-likes, optional
        Where new rows are drawn otherwise than the calibration rows: the ratio of their densities
        at each calibration row and at each new row, up to a common factor. With ``fdr`` only.
    ties : {"conservative", "random"}, default="conservative"
        What becomes of rows with equal scores. "conservative": they are chosen or left together.
        "random": their order is drawn, so that a list may end inside a tie. With ``fdr`` only.
    sample_weight : array-like, optional
        How many rows each calibration row stands for: whole numbers.
    pos_label : label, optional
        The positive class; by default the larger of the two labels.
    random_state : int or Generator, default=0
        For ``ties="random"``, and for ``likelihood_ratio``, whose pruning draws one number: fix it
        beforehand, and do not draw until a list pleases.

    Returns
    -------
    Shortlist
        The chosen rows in order, what is guaranteed of them and what that rests on.

    Raises
    ------
    TooFewLabels
        If the calibration rows cannot support the guarantee, whatever the scores; says how many
        rows would.

    Notes
    -----
    ``fdr`` uses the conformal p-values of Jin & Candès (2023) and the rule of Benjamini &
    Hochberg. The other guarantees compare the places of calibration rows and new rows of one
    class, which are those of balls drawn from an urn; `docs/how_to/select.md` derives them.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank import select
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(4000) < 0.2
    >>> scores = rng.normal(size=4000) + 3 * y
    >>> known = (y[:2000], scores[:2000])
    >>> print(select(scores[2000:], calibration=known, precision_at_least=0.9))
    320 rows of 2000 chosen, with scores from 2.31519.
    With probability at least 95%, at least 90% of these rows are positives.
    Assumes that calibration rows and new rows are drawn in the same way, and none of the
    calibration rows had a part in the fit.
    Calibration: 2000 rows, 419 of them positives.
    """
    wish = _read_wish(fdr, precision_at_least, recall_at_least, positives_at_least, confidence)
    if ties not in ("conservative", "random"):
        raise ValueError(f"ties={ties!r}: expected 'conservative' or 'random'.")
    model, new = _read_new(model_or_scores, X_new)
    known = read_calibration(model, calibration, sample_weight, pos_label)
    if wish.kind != "fdr" and (likelihood_ratio is not None or ties == "random"):
        option = "likelihood_ratio" if likelihood_ratio is not None else "ties='random'"
        raise ValueError(f"{option} goes with fdr= only; {wish.kind}= came.")
    if not len(new):
        raise ValueError("there are no new rows to choose from.")
    if wish.kind == "fdr":
        ratios = _read_ratios(likelihood_ratio, known, new)
        draw = np.random.default_rng(random_state)
        return _by_fdr(known, new, wish, ratios, ties == "random", draw)
    return _MAKERS[wish.kind](known, new, wish)


@dataclass(frozen=True)
class Wish:
    """What is wanted of the list: one kind of guarantee, its value, and its probability."""

    kind: str
    value: float
    confidence: float

    @property
    def chance(self) -> float:
        """The chance that the guarantee fails."""
        return 1 - self.confidence

    @property
    def settings(self) -> JsonObject:
        """What was asked for, by the names of `select`."""
        if self.kind == "fdr":
            return {"fdr": self.value}
        return {self.kind: self.value, "confidence": self.confidence}


def _read_wish(
    fdr: object, precision: object, recall: object, positives: object, confidence: object
) -> Wish:
    given = {
        "fdr": fdr,
        "precision_at_least": precision,
        "recall_at_least": recall,
        "positives_at_least": positives,
    }
    wanted = {name: value for name, value in given.items() if value is not None}
    if len(wanted) != 1:
        came = " and ".join(wanted) or "none"
        raise ValueError(f"give exactly one of {', '.join(given)}; {came} came.")
    (kind, value), *_ = wanted.items()
    if kind == "positives_at_least":
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{kind}={value!r}: expected a whole number of at least 1.")
        value = int(value)
    elif not (is_number(value) and 0 < value < 1):
        raise ValueError(f"{kind}={value!r}: expected a share between 0 and 1, such as 0.1.")
    if not (is_number(confidence) and 0 < confidence < 1):
        raise ValueError(f"confidence={confidence!r}: expected a probability, such as 0.95.")
    return Wish(kind, value, float(confidence))


def _read_new(
    model_or_scores: BaseEstimator | ArrayLike, X_new: TableLike | None
) -> tuple[BaseEstimator | None, FloatArray]:
    """The model, None if scores came, and the scores of the new rows."""
    given = getattr(model_or_scores, "model_", model_or_scores)  # a TableRanker holds its model
    is_model = any(hasattr(given, name) for name in ("decision_function", "predict_proba"))
    if not is_model:
        if X_new is not None:
            raise ValueError(
                f"{type(given).__name__} is not a fitted model that could score X_new: give a "
                "model with decision_function, or the scores of the new rows alone."
            )
        return None, check_scores(given, name="the column of new scores")
    if X_new is None:
        raise ValueError(f"X_new is missing: the new rows that {type(given).__name__} is to score.")
    return given, score_rows(given, X_new)


def _read_ratios(
    likelihood_ratio: object, known: Calibration, new: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    if likelihood_ratio is None:
        return None
    if not (isinstance(likelihood_ratio, tuple | list) and len(likelihood_ratio) == 2):
        raise ValueError("likelihood_ratio: expected (ratios of calibration rows, of new rows).")
    ratios = []
    for values, n, whose in zip(
        likelihood_ratio, (len(known.scores), len(new)), ("calibration", "new"), strict=True
    ):
        name = f"likelihood_ratio of the {whose} rows"
        column = finite_column(name, values)
        if column.shape != (n,):
            raise ValueError(f"{name} has {len(column)} entries, expected one per row: {n}.")
        if np.any(column < 0) or not np.any(column > 0):
            raise ValueError(f"{name}: expected densities' ratios, not negative and not all zero.")
        ratios.append(column)
    return ratios[0], ratios[1]


def _by_fdr(
    known: Calibration,
    new: FloatArray,
    wish: Wish,
    ratios: tuple[FloatArray, FloatArray] | None,
    random_ties: bool,
    draw: np.random.Generator,
) -> Shortlist:
    fewest = int(np.ceil(1 / wish.value * (1 - 1e-12))) - 1
    if known.n_rows < fewest:
        raise TooFewLabels(
            f"{known.n_rows} calibration rows cannot support fdr={wish.value:g}, whatever the "
            f"scores: that takes at least {fewest} labelled rows.",
            fewest,
        )
    judged, places, of_judged = known, new, ratios
    if random_ties:
        judged, places, copies = break_ties(known, new, draw)
        of_judged = None if ratios is None else (ratios[0][copies], ratios[1])
    if of_judged is None:
        chosen = select_by_fdr(judged, places, wish.value)
        notes = () if np.any(chosen) else _why_empty(known.n_rows, len(new), wish.value)
    else:
        chosen, passed = select_under_shift(judged, places, wish.value, of_judged, draw)
        notes = () if np.any(chosen) or not passed else _why_pruned(passed)
    guarantee = (
        f"On average over lists made in this way, at most {percent(wish.value)} of the chosen rows "
        "are negatives."
    )
    return _shortlist(
        known,
        new,
        wish,
        np.flatnonzero(chosen),
        guarantee,
        notes,
        drawn=_DRAWN_ALIKE if ratios is None else _DRAWN_BY_RATIO,
        order_by=places,
        p_values=lambda: conformal_p_values(judged, places, of_judged),
    )


def _why_empty(n: int, m: int, fdr: float) -> tuple[str, ...]:
    shortest = int(np.ceil(m / (fdr * (n + 1)) * (1 - 1e-12)))
    text = f"{n} calibration rows can vouch for lists of {shortest} rows or more out of {m}"
    if shortest > _SHORT_LIST:
        needed = int(np.ceil(m / (fdr * _SHORT_LIST))) - 1
        text += f"; {needed} could for lists of {_SHORT_LIST}"
    return (f"{text}. The negatives among them score too high.",)


def _why_pruned(passed: int) -> tuple[str, ...]:
    return (
        f"{passed} rows passed, and fell to the pruning, which draws a number of random_state. "
        "More calibration rows make that rarer; drawing again until a list comes undoes the "
        "guarantee.",
    )


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
    return _shortlist(known, new, wish, rows, _with_probability(wish, guarantee), notes)


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
    return _shortlist(known, new, wish, rows, _with_probability(wish, guarantee))


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
    what = "positive" if wanted == 1 else "positives"
    guarantee = _with_probability(wish, f"these rows hold at least {wanted} {what}.")
    return _shortlist(known, new, wish, rows, guarantee)


_MAKERS: dict[str, Callable[[Calibration, FloatArray, Wish], Shortlist]] = {
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


def _shortlist(
    known: Calibration,
    new: FloatArray,
    wish: Wish,
    rows: NDArray[np.intp],
    guarantee: str,
    notes: tuple[str, ...] = (),
    *,
    drawn: str = _DRAWN_ALIKE,
    order_by: FloatArray | None = None,
    p_values: Callable[[], FloatArray] | None = None,
) -> Shortlist:
    order = np.argsort(-(new if order_by is None else order_by)[rows], kind="stable")
    rows = rows[order]
    return Shortlist(
        rows,
        new[rows],
        guarantee,
        f"{drawn}, and {known.source}.",
        wish.settings,
        len(new),
        known.n_rows,
        known.n_positives,
        notes,
        p_values,
    )
