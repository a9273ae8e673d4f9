"""Shortlists with a guarantee, from scores and from labelled rows that had no part in the fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from toprank._columns import finite_column
from toprank._numerics import FloatArray
from toprank.pairs import check_scores
from toprank.select.calibration import Calibration, read_calibration, score_rows
from toprank.select.fdr_list import list_by_fdr
from toprank.select.shortlist import Shortlist
from toprank.select.sure_lists import SURE_LISTS
from toprank.select.wish import read_wish


def select(
    model_or_scores: object,
    X_new: object = None,
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
    wish = read_wish(fdr, precision_at_least, recall_at_least, positives_at_least, confidence)
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
        return list_by_fdr(known, new, wish, ratios, ties == "random", draw)
    return SURE_LISTS[wish.kind](known, new, wish)


def _read_new(model_or_scores: Any, X_new: Any) -> tuple[Any, FloatArray]:
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
