"""How sure is a place in the list? Chances and ranks under refits of the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._arrays import TableLike
from toprank._numerics import FloatArray, is_number
from toprank.select.calibration import score_rows
from toprank.select.refits import Progress, Refits, fit_if_needed

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

#: Scores of refits that are held at a time.
_AT_ONCE = 10_000_000
#: Rows up to which sets of ranks are found, and refits that they are found from.
_MOST_RANKED, _FOR_RANKS = 100_000, 200


@dataclass(frozen=True, eq=False)
class Membership:
    """How sure the places of a list are; `membership` makes one.

    Attributes
    ----------
    probability : array of shape (m,)
        Chance that each new row is among the first k under a refit, in the order of the rows.
    rows : array of shape (k,)
        The rows that are among the first k now, the highest score first.
    k, level, method, n_refits
        What was asked for, and how it was found.
    """

    probability: FloatArray
    rows: NDArray[np.intp]
    k: int
    level: float
    method: str
    n_refits: int
    _rank_sets: Callable[[], tuple[NDArray[np.intp], NDArray[np.intp]]] = field(repr=False)

    @cached_property
    def _ends(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        return self._rank_sets()

    @property
    def low(self) -> NDArray[np.intp]:
        """The best rank in the confidence set of each of the first k rows."""
        return self._ends[0]

    @property
    def high(self) -> NDArray[np.intp]:
        """The worst rank in the confidence set of each of the first k rows."""
        return self._ends[1]

    def __str__(self) -> str:
        sure = int(np.count_nonzero(self.probability[self.rows] >= self.level))
        others = np.delete(self.probability, self.rows)
        close = int(np.count_nonzero(others > 1 - self.level))
        return (
            f"Of the first {self.k} rows, {sure} are there in at least {100 * self.level:g}% of "
            f"refits; {close} other rows are there in more than {100 * (1 - self.level):.3g}%.\n"
            f"{self.n_refits} refits by the {self.method}."
        )

    __repr__ = __str__


def membership(
    estimator: BaseEstimator,
    X: TableLike,
    y: ArrayLike,
    X_new: TableLike,
    k: int,
    *,
    n_refits: int | None = None,
    level: float = 0.9,
    method: str = "auto",
    sample_weight: ArrayLike | None = None,
    label_propensity: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = 0,
    progress: Progress | None = None,
) -> Membership:
    """Probability that a row belongs to the first k, had the model seen other rows like its own.

    Parameters
    ----------
    estimator : estimator
        The ranker; fitted to `X` and `y`, or not yet.
    X, y : rows and labels
        The training rows.
    X_new : rows
        The rows of the list.
    k : int
        How long the top of the list is.
    n_refits : int, optional
        By default 400 for the jackknife, which needs no fits, 32 for single steps and 50 for fits.
    level : float, default=0.9
        Confidence of the sets of ranks, each for its own row.
    method : {"auto", "jackknife", "bootstrap"}, default="auto"
        "jackknife": to first order, for `PNormPush` with the exponential loss. "bootstrap": fits
        to rows with random weights. "auto" is the first where it is good enough, one Newton step
        per draw of weights for linear rankers with other smooth losses, and fits for the rest.
    sample_weight : array-like, optional
        Repetition counts of the training rows.
    label_propensity : float or array-like, optional
        Probability that the label of each training row was seen, as `estimator` was fitted with.
    random_state : int or Generator, default=0
    progress : callable, optional
        Called as ``progress(step, done, total)`` after each fit.

    Returns
    -------
    Membership

    Notes
    -----
    Refits tell how far the list depends on which rows were in the training table, and nothing of
    whether the model is right: a row can be surely in the list and surely no positive.
    The set of a row's rank holds the ranks that no simultaneous test of its difference from the
    other rows rules out (Mogstad, Romano, Shaikh & Wilhelm 2024, "Inference for ranks").

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import PNormPush
    >>> from toprank.select import membership
    >>> X, y = make_classification(1200, weights=[0.8], random_state=0)
    >>> found = membership(PNormPush(p=2), X[:1000], y[:1000], X[1000:], k=20)
    >>> found.method, found.probability.shape, bool(found.probability.sum().round() == 20)
    ('jackknife', (200,), True)
    >>> bool((found.low <= found.high).all())
    True
    """
    if not (is_number(level) and 0 < level < 1):
        raise ValueError(f"level={level!r}: expected a probability, such as 0.9.")
    fitted = fit_if_needed(estimator, X, y, sample_weight, label_propensity)
    now = score_rows(fitted, X_new)
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= len(now):
        raise ValueError(f"k={k!r}: expected a count from 1 to the {len(now)} new rows.")
    refits = Refits.of(
        fitted,
        X,
        y,
        sample_weight=sample_weight,
        label_propensity=label_propensity,
        n_refits=n_refits,
        method=method,
        random_state=random_state,
        progress=progress,
    )
    rows = np.argsort(-now, kind="stable")[:k]
    at_once = max(1, _AT_ONCE // len(now))
    total = np.zeros(len(now))
    for first in range(0, refits.n, at_once):
        total += count_in_top(refits.scores(X_new, slice(first, first + at_once)), k)

    def find_rank_sets() -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        if len(now) > _MOST_RANKED:
            raise ValueError(
                f"Sets of ranks compare each row with all {len(now)} others; that is done for up "
                f"to {_MOST_RANKED} rows. Give the upper part of the list as X_new."
            )
        return rank_sets(now, refits.scores(X_new, slice(_FOR_RANKS)), rows, level)

    shares = total / refits.n
    return Membership(shares, rows, int(k), float(level), refits.method, refits.n, find_rank_sets)


def count_in_top(scores: FloatArray, k: int) -> FloatArray:
    """In how many refits each row is among the first k; ties share the last places."""
    total = np.zeros(scores.shape[1])
    for one in scores:
        cut = np.partition(one, -k)[-k]
        above, level = one > cut, one == cut
        total += above
        total[level] += (k - np.count_nonzero(above)) / np.count_nonzero(level)
    return total


def rank_sets(
    now: FloatArray, scores: FloatArray, rows: NDArray[np.intp], level: float
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Confidence sets for the ranks of some rows: those above, and below, beyond doubt are counted.

    Parameters
    ----------
    now : array of shape (m,)
        The scores of the model.
    scores : array of shape (refits, m)
    rows : array of int
        The rows whose ranks are wanted.
    level : float
    """
    moves = scores - np.mean(scores, axis=0)
    low, high = np.empty(len(rows), dtype=np.intp), np.empty(len(rows), dtype=np.intp)
    for place, row in enumerate(rows):
        lead, in_doubt = now - now[row], np.ones(len(now), dtype=bool)
        while True:  # rows beyond doubt are not compared any more, which rules out more of them
            widest, spread = _furthest(moves[:, in_doubt] - moves[:, [row]])
            reach = np.quantile(widest, level, method="higher") * spread
            beyond = np.abs(lead[in_doubt]) > reach
            if not np.any(beyond):
                break
            in_doubt[np.flatnonzero(in_doubt)[beyond]] = False
        low[place] = 1 + np.count_nonzero(lead[~in_doubt] > 0)
        high[place] = len(now) - np.count_nonzero(lead[~in_doubt] < 0)
    return low, high


def _furthest(apart: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The largest studentised move in each refit, and the spread of each move.

    `apart` holds how far each row moves against one of them, one line per refit.
    """
    spread = np.std(apart, axis=0, ddof=1)
    size = np.abs(apart) / np.where(spread > 0, spread, np.inf)
    return np.max(size, axis=1), spread
