"""Keep yesterday's rows in the list unless a newcomer is ahead by more than noise."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from toprank._arrays import JsonObject
from toprank._numerics import FloatArray, is_number
from toprank.pairs import check_scores
from toprank.select.limits import CutRows, IntArray, read_rows

#: Rows whose scores of two days say how much scores move by themselves.
FEWEST_MOVES = 5


@dataclass(frozen=True)
class StayingList:
    """A list that yesterday's rows leave only if a newcomer is clearly ahead; print it.

    Attributes
    ----------
    rows : ndarray of int
        Places of the rows, the highest score first.
    kept : ndarray of int
        Rows that are in the list because they were in it before.
    waiting : ndarray of int
        Rows of the first k scores that wait for them.
    lead : float
        How far ahead a newcomer must be.
    """

    rows: IntArray
    kept: IntArray
    waiting: IntArray
    lead: float

    def as_dict(self) -> JsonObject:
        """Return the attributes as a dictionary."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{len(self.rows)} rows; {len(self.kept)} stay although newcomers score higher, by no "
            f"more than {self.lead:.4g}."
        )

    __repr__ = __str__


def keep_rows(
    scores: ArrayLike,
    k: int,
    previous: ArrayLike,
    *,
    noise: float | None = None,
    old_scores: ArrayLike | None = None,
    confidence: float = 0.95,
) -> StayingList:
    r"""The first k rows, in which those of before stay unless a newcomer leads by more than noise.

    The lowest newcomer and the highest row that would leave are compared. The newcomer comes in if
    its lead is more than :math:`z \sqrt 2\, \sigma`, with z the one-sided quantile of `confidence`
    and :math:`\sigma` the noise of one score; else the row stays, and the next two are compared.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Today's scores.
    k : int
        Length of the list.
    previous : array-like
        Rows that were in the list before: places, or one truth value per row.
    noise : float, optional
        Standard deviation of a score's noise, such as its spread over refits.
    old_scores : array-like, optional
        What the rows of `previous` scored before, in their order: the noise is then the spread of
        what the scores have moved by, about the median move (1.48 times the median absolute
        deviation, over :math:`\sqrt 2`). Give this or `noise`.
    confidence : float, default=0.95
        How sure it must be that the newcomer is ahead.

    Returns
    -------
    StayingList
        ``.rows .kept .waiting .lead``; prints as a sentence.

    Examples
    --------
    >>> from toprank.select import keep_rows
    >>> scores = [5.0, 4.0, 3.9, 1.0, 3.0]
    >>> print(keep_rows(scores, 2, previous=[2, 3], noise=0.1))
    2 rows; 1 stay although newcomers score higher, by no more than 0.2326.
    >>> keep_rows(scores, 2, previous=[2, 3], noise=0.1).rows.tolist()
    [0, 2]
    """
    values = check_scores(scores, name="scores")
    n = len(values)
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k:
        raise ValueError(f"k={k!r}: expected a number of rows, at least 1.")
    before, lead = find_lead(values, previous, noise, old_scores, confidence)
    order = np.argsort(-values, kind="stable")
    first, rest = order[:k], order[k:]
    was_in = np.zeros(n, dtype=bool)
    was_in[before] = True
    newcomers = first[~was_in[first]][::-1]  # the lowest first
    leaving = rest[was_in[rest]]  # the highest first
    pairs = min(len(newcomers), len(leaving))
    near = values[newcomers[:pairs]] - values[leaving[:pairs]] <= lead
    # leads only grow along the pairs
    kept = int(np.count_nonzero(np.logical_and.accumulate(near))) if pairs else 0
    rows = np.concatenate((first[~np.isin(first, newcomers[:kept])], leaving[:kept]))
    rows = rows[np.argsort(-values[rows], kind="stable")]
    return StayingList(rows, leaving[:kept], newcomers[:kept], lead)


def find_lead(
    scores: FloatArray,
    previous: ArrayLike,
    noise: float | None,
    old_scores: ArrayLike | None,
    confidence: float,
) -> tuple[IntArray, float]:
    """The rows that were in the list before, and how far ahead a newcomer must be of them."""
    if not (is_number(confidence) and 0.5 <= confidence < 1):
        raise ValueError(f"confidence={confidence!r}: expected a number from 0.5 to below 1.")
    before = read_rows("previous", previous, len(scores))
    if (noise is None) == (old_scores is None):
        raise ValueError("Give noise, or old_scores to estimate it from; one of them.")
    if old_scores is not None:
        noise = move_of_scores(scores[_in_order(previous, before, len(scores))], old_scores)
    if not (is_number(noise) and 0 <= noise < np.inf):
        raise ValueError(f"noise={noise!r}: expected a standard deviation from 0.")
    return before, float(ndtri(confidence)) * np.sqrt(2) * float(noise)


def raise_rows(rows: CutRows, before: IntArray, lead: float) -> CutRows:
    """The rows as they are chosen from where some stay: these count with the lead on their score.

    Their probability is that of a row which scores so much higher: scores and probabilities of
    all rows, each in order, say which that is.
    """
    scores = rows.scores.copy()
    scores[before] += lead
    if rows.probability is None:
        return replace(rows, scores=scores)
    steps, chances = np.sort(rows.scores), np.sort(rows.probability)
    chance = rows.probability.copy()
    chance[before] = np.maximum(chance[before], np.interp(scores[before], steps, chances))
    return replace(rows, scores=scores, probability=chance)


def _in_order(previous: ArrayLike, before: IntArray, n: int) -> IntArray:
    """The rows of before in the order in which they were given."""
    given = np.asarray(previous)
    return before if given.dtype.kind == "b" else given.astype(np.intp)


def move_of_scores(scores: FloatArray, old_scores: ArrayLike) -> float:
    """The noise of a score, from what the same rows scored on two days."""
    old = check_scores(old_scores, len(scores), "old_scores")
    if len(old) < FEWEST_MOVES:
        raise ValueError(
            f"{len(old)} rows have scores of both days: too few to see how much scores move; "
            f"expected at least {FEWEST_MOVES}. Give noise."
        )
    moves = scores - old
    return float(1.4826 * np.median(np.abs(moves - np.median(moves))) / np.sqrt(2))
