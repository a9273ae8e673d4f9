"""How hard a push the sample can support."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from toprank._arrays import JsonObject, TableLike
from toprank._numerics import FloatArray
from toprank.blocks import Workers
from toprank.blocks.row_keys import hash_rows
from toprank.folds import Fold, check_powers, folds_of
from toprank.inference import interval
from toprank.metrics import pnorm_risk
from toprank.pairs import Rows, check_rows
from toprank.rankers.linear import PNormPush
from toprank.tuning.grid import fit_grid
from toprank.tuning.rows import TuningRows

if TYPE_CHECKING:
    from toprank.losses import Loss


#: Random orders that a push is compared with, and the share of them that it has to be better than.
_ORDERS, _RISK = 1000, 0.003
#: Rows of a random order that are drawn.
_MOST_DRAWN = 1000

#: Scores of the rows trained on and of those held out, a line per p.
FoldScores = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class SupportOfP:
    """What the sample says about one p.

    Attributes
    ----------
    p : float
        How hard the push is.
    effective_negatives : float
        Negatives that carry it: 1 / sum of their squared shares of the gradient.
    train_risk, test_risk : float
        Normalised R_p on the rows trained on and on the rows held out, means over the folds.
    gap : float
        How much larger the risk is on the rows held out.
    gap_error : float
        Standard error of the gap over the folds.
    standard_error : float
        Standard error of ``test_risk`` from `toprank.inference.interval`; infinite where a fold
        has too few rows of a class to have one.
    random_risk : float
        What ``test_risk`` falls below about three times in a thousand if the rows held out come
        in a random order.
    supported : bool
        Whether enough negatives carry the push, the risk held out is known well enough, and it is
        below ``random_risk``.
    reason : str
        Why not; empty if it is supported.
    """

    p: float
    effective_negatives: float
    train_risk: float
    test_risk: float
    gap: float
    gap_error: float
    standard_error: float
    random_risk: float
    supported: bool
    reason: str


@dataclass(frozen=True)
class Support:
    """What the sample can support; prints as a table and a verdict.

    Attributes
    ----------
    lines : tuple of SupportOfP
        One per p, ascending.
    n_positives, n_negatives : float
        Size of the sample.
    n_folds : int
        Folds of the cross-validation.
    min_negatives, max_relative_error : float
        The limits that were applied.
    p : float or None
        The largest p up to which every p is supported; None if none is.
    """

    lines: tuple[SupportOfP, ...]
    n_positives: float
    n_negatives: float
    n_folds: int
    min_negatives: float
    max_relative_error: float

    @property
    def p(self) -> float | None:
        best = None
        for line in self.lines:
            if not line.supported:
                break
            best = line.p
        return best

    @property
    def verdict(self) -> str:
        """The advice in words."""
        sample = f"With {self.n_positives:g} positives and {self.n_negatives:g} negatives"
        if self.p is None:
            return f"{sample} no push is supported: p = {self.lines[0].p:g} {self.lines[0].reason}."
        if self.p == self.lines[-1].p:
            last = self.lines[-1]
            return (
                f"{sample} every p up to {last.p:g} is supported; p = {last.p:g} rests on "
                f"{_format_count(last.effective_negatives)} negatives."
            )
        beyond = next(line for line in self.lines if line.p > self.p)
        return f"{sample} p up to {self.p:g} is supported; p = {beyond.p:g} {beyond.reason}."

    @property
    def caution(self) -> str:
        """Where the risk held out is clearly larger than the risk trained on; empty if nowhere."""
        worse = [line for line in self.lines if line.gap > 2 * line.gap_error]
        if not worse:
            return ""
        worst = max(worse, key=lambda line: line.gap)
        return (
            f"The fit does not carry over whole: at p = {worst.p:g} R_p is {worst.train_risk:.3g} "
            f"on the rows trained on and {worst.test_risk:.3g} on rows held out."
        )

    def as_dict(self) -> JsonObject:
        """The advice in plain types, for JSON."""
        said = {"p": self.p, "verdict": self.verdict, "caution": self.caution}
        return asdict(self) | said

    def __str__(self) -> str:
        text = [
            "     p  negatives that carry it  R_p trained on  R_p held out (standard error)"
            "      gap  supported"
        ]
        for line in self.lines:
            text.append(
                f"{line.p:6g}  {line.effective_negatives:23.1f}  {line.train_risk:14.4f}  "
                f"{line.test_risk:12.4f} ({line.standard_error:.4f})        "
                f"{line.gap:+9.4f}  {'yes' if line.supported else 'no'}"
            )
        return "\n".join([*text, self.verdict, *([self.caution] if self.caution else [])])

    __repr__ = __str__


def supported_p(
    X: TableLike,
    y: ArrayLike,
    *,
    ps: Sequence[float] = (1, 2, 4, 8, 16, 64),
    alpha: float = 1e-3,
    loss: str | Loss | tuple[object, ...] = "exponential",
    cv: object = 5,
    groups: ArrayLike | None = None,
    time: ArrayLike | None = None,
    gap: object = 0,
    sample_weight: ArrayLike | None = None,
    min_negatives: float = 10.0,
    max_relative_error: float = 0.3,
    n_jobs: int | None = None,
) -> Support:
    r"""Practical advice on how hard a push the sample at hand can support.

    Most of R_p comes from a small part of the distribution, so larger p needs more rows (Rudin
    2009, Section 10.1). The bounds of Theorems 2 and 3 say so for every distribution, and are
    vacuous at usual sizes; this function looks at the sample instead. For each p the linear push
    is fitted, on all rows and in folds, and four numbers are taken:

    * the negatives that carry it, :math:`1 / \sum_k q_k^2`, where
      :math:`q = \mathrm{softmax}(p f)` are the shares of the negatives in the gradient;
    * the standard error of the normalised R_p on rows held out;
    * the generalisation gap, R_p held out less R_p on the rows trained on;
    * the R_p that rows in a random order would have, in the best three of a thousand: a
      push that does no better has learnt nothing that could be pushed.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n, d)
        Features, scaled as for :class:`toprank.PNormPush`.
    y : array-like of shape (n,)
        Labels of two classes; the larger one is positive.
    ps : sequence of float
        The values of p to look at; finite.
    alpha, loss
        As in :class:`toprank.PNormPush`.
    cv, groups, time, gap
        Folds, as in `toprank.tuning.choose_p`. A number of folds keeps copies of a row in one fold
        where copies always have the same label; give `groups` where rows are of the same thing but
        not alike.
    sample_weight : array-like of shape (n,), optional
        Repetition counts.
    min_negatives : float, default=10
        A p is not supported if fewer negatives than this carry it: each of them then moves the
        model by a tenth.
    max_relative_error : float, default=0.3
        Nor is it if the standard error of R_p held out exceeds this share of it.
    n_jobs : int, optional
        Folds at a time, in threads.

    Returns
    -------
    Support
        ``.p`` (None: none is supported), ``.lines``, ``.verdict``; prints as a table.

    Examples
    --------
    >>> from toprank.tuning import supported_p
    >>> from toprank.datasets import load_magic
    >>> X, y = load_magic(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> supported_p(X[::400], y[::400]).p is None  # 48 rows
    True
    >>> supported_p(X[::4], y[::4]).p
    64.0
    """
    rows, _ = check_rows(None, X, y, sample_weight, sparse=True)
    powers = check_powers(ps)
    if not np.isfinite(powers[-1]):
        raise ValueError("p = inf rests on the highest negative alone; take finite values of ps.")
    if groups is None and time is None and isinstance(cv, (int, np.integer)):
        groups = _groups_of_copies(rows, int(cv))
    folds = folds_of(cv, rows.y, groups=groups, time=time, gap=gap, weight=rows.weight)
    templates = [PNormPush(p, alpha=alpha, loss=loss, tol=1e-5) for p in powers]
    light = TuningRows(rows.X, rows.y, rows.weight).in_lighter_form()
    workers = Workers(n_jobs)
    with workers.start_threads():
        whole = fit_grid(templates, 1, light.X, light.y, light.weight)

        def of_fold(fold: Fold) -> FoldScores:
            train, test = (light.take(part) for part in fold)
            fitted = fit_grid(templates, 1, train.X, train.y, train.weight, whole)
            return fitted.scores(train.X), fitted.scores(test.X)

        scores = list(workers.map(of_fold, folds))
    of_all = whole.scores(light.X)
    limits = (min_negatives, max_relative_error)
    return support_of_scores(powers, light, of_all, folds, scores, *limits)


def _groups_of_copies(rows: Rows, n_folds: int) -> NDArray[np.uint64] | None:
    """A number for each row that its copies share; None where rows are not copied.

    Rows that are alike without being copies, such as those of a few categories, have both labels
    somewhere, or are few that differ.
    """
    keys = hash_rows(rows.X, 0)
    distinct, place = np.unique(keys, return_inverse=True)
    positive, negative = (
        np.bincount(place[side], minlength=len(distinct)) for side in (rows.y, ~rows.y)
    )
    pure = not np.any((positive > 0) & (negative > 0))
    fewest = min(np.count_nonzero(positive), np.count_nonzero(negative))
    copied = len(distinct) < len(keys) and pure and fewest >= 2 * n_folds
    return keys if copied else None


def support_of_scores(
    powers: Sequence[float],
    rows: Rows,
    whole: FloatArray,
    folds: Sequence[Fold],
    scores: Sequence[FoldScores],
    min_negatives: float = 10.0,
    max_relative_error: float = 0.3,
) -> Support:
    """Judge pushes that have been fitted, one per p, by the scores that they give.

    Parameters
    ----------
    powers : sequence of float
        The values of p; finite.
    rows : Rows
        The labels and weights of the sample; X is not read.
    whole : array of shape (n_powers, n)
        Scores of the sample by the fits to all of it.
    folds : sequence of (rows trained on, rows held out)
    scores : sequence of (array, array)
        For each fold the scores of both parts by the fits to the first, a line per p.
    min_negatives, max_relative_error : float
        As in `supported_p`.
    """
    rows = Rows(None, rows.y, rows.weight)
    parts = [(rows.take(train), rows.take(test)) for train, test in folds]
    carried = [
        _effective_negatives(p, line[~rows.y], rows.counts[~rows.y])
        for p, line in zip(powers, whole, strict=True)
    ]
    risks = np.array(
        [_risks(powers, *part, *lines) for part, lines in zip(parts, scores, strict=True)]
    )
    random = _random_risks(powers, [test for _, test in parts])
    return Support(
        tuple(
            _line_of_p(p, negatives, risks[:, j], random[j], min_negatives, max_relative_error)
            for j, (p, negatives) in enumerate(zip(powers, carried, strict=True))
        ),
        float(np.sum(rows.counts, where=rows.y)),
        float(np.sum(rows.counts, where=~rows.y)),
        len(folds),
        min_negatives,
        max_relative_error,
    )


def _format_count(negatives: float) -> str:
    return f"{negatives:.1f}" if negatives < 20 else f"{negatives:.0f}"


def _effective_negatives(p: float, scores: FloatArray, count: FloatArray) -> float:
    """1 / sum of squared softmax weights; a row counts as often as it is repeated."""
    top = np.max(scores[count > 0])
    share = np.where(count > 0, np.exp(np.minimum(p * (scores - top), 0.0)), 0.0)
    return float(np.dot(count, share) ** 2 / np.dot(count, share**2))


def _risks(
    powers: Sequence[float], train: Rows, test: Rows, of_train: FloatArray, of_test: FloatArray
) -> FloatArray:
    """For each p: normalised R_p on the rows trained on, held out, and the error there."""
    found = []
    for p, on_train, on_test in zip(powers, of_train, of_test, strict=True):
        trained = pnorm_risk(train.y, on_train, p, normalize=True, sample_weight=train.weight)
        held_out = interval(
            "pnorm_risk", test.y, on_test, p=p, normalize=True, sample_weight=test.weight
        )
        found.append((trained, held_out.estimate, held_out.standard_error))
    return np.array(found)


def _random_risks(powers: Sequence[float], tests: Sequence[Rows]) -> FloatArray:
    """For each p: the mean R_p of the folds that random orders hardly ever fall below.

    The orders of large folds are drawn from fewer rows of each class, and their spread is scaled to
    the rows there are.
    """
    rng = np.random.default_rng(0)
    total, shrink = np.zeros((_ORDERS, len(powers))), []
    for test in tests:
        sizes = [
            max(1, round(float(np.sum(test.counts, where=side)))) for side in (test.y, ~test.y)
        ]
        rate = min(1.0, _MOST_DRAWN / sum(sizes))
        positives, negatives = (max(1, round(rate * size)) for size in sizes)
        # a negative's height in a random order: the positives among the rows below it
        order = rng.permuted(np.tile(np.arange(positives + negatives), (_ORDERS, 1)), axis=1)
        below = np.cumsum(order < positives, axis=1) / positives
        heights = below[order >= positives].reshape(_ORDERS, negatives)
        for j, p in enumerate(powers):
            total[:, j] += np.mean(heights**p, axis=1) ** (1 / p) / len(tests)
        shrink.append(np.sqrt(min(1.0, (positives + negatives) / sum(sizes))))
    reach = float(ndtri(_RISK)) * np.std(total, axis=0) * float(np.mean(shrink))
    return np.asarray(np.mean(total, axis=0) + reach)


def _line_of_p(
    p: float,
    negatives: float,
    risks: FloatArray,
    random: float,
    min_negatives: float,
    max_relative_error: float,
) -> SupportOfP:
    train, test = float(np.mean(risks[:, 0])), float(np.mean(risks[:, 1]))
    gaps = risks[:, 1] - risks[:, 0]
    errors = np.where(np.isnan(risks[:, 2]), np.inf, risks[:, 2])
    error = float(np.sqrt(np.sum(errors**2)) / len(risks))
    reason = ""
    if negatives < min_negatives:
        reason = f"rests on {_format_count(negatives)} negatives"
    elif not error <= max_relative_error * test:
        reason = f"leaves R_p held out at {test:.3g} ± {error:.2g}, too uncertain to judge by"
    elif test >= random:
        reason = f"leaves R_p held out at {test:.3g}, where a random order may have {random:.3g}"
    return SupportOfP(
        p,
        negatives,
        train,
        test,
        float(np.mean(gaps)),
        float(np.std(gaps, ddof=1) / np.sqrt(len(gaps))),
        error,
        float(random),
        not reason,
        reason,
    )
