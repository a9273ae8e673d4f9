"""The choice of p: every candidate's scores on the same folds, and which one is best on them.

Differences between two candidates over the folds get an honest standard error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from toprank._arrays import JsonObject
from toprank._html import table_html
from toprank._numerics import FloatArray, is_number


@dataclass(frozen=True)
class Difference:
    """A mean difference of scores over folds.

    Attributes
    ----------
    mean : float
        Mean over the folds.
    standard_error : float
        Corrected for the rows that the training sets share.
    low, high : float
        Ends of the confidence interval.
    p_value : float
        Two-sided p-value of the hypothesis that the mean is zero.
    level : float
        Confidence level.
    """

    mean: float
    standard_error: float
    low: float
    high: float
    p_value: float
    level: float

    def __str__(self) -> str:
        return (
            f"{self.mean:+.4g}, {100 * self.level:g}% interval {self.low:+.4g} to "
            f"{self.high:+.4g}, p = {self.p_value:.2g}"
        )


def corrected_difference(
    differences: ArrayLike, test_to_train: float, *, level: float = 0.95
) -> Difference:
    r"""Corrected resampled t-test of Nadeau and Bengio (2003).

    The scores of J folds are not independent, because their training sets overlap. Their plain
    variance s²/J is too small; with n₂ rows tested and n₁ trained on in each fold,

    .. math::
        t = \bar d \Big/ \sqrt{\Big(\frac1J + \frac{n_2}{n_1}\Big) s^2}

    is compared with Student's distribution of J - 1 degrees of freedom.

    Parameters
    ----------
    differences : array-like of shape (J,)
        Score of one setting less the score of the other, on each fold.
    test_to_train : float
        n₂/n₁, rows tested over rows trained on.
    level : float, default=0.95
        Confidence level of the interval.

    Returns
    -------
    Difference
        ``.mean .standard_error .low .high .p_value``.

    Examples
    --------
    >>> from toprank.tuning import corrected_difference
    >>> print(corrected_difference([0.02, 0.01, 0.03, 0.02, 0.02], 0.25))
    +0.02, 95% interval +0.00683 to +0.03317, p = 0.014
    """
    d = np.asarray(differences, dtype=np.float64)
    if d.ndim != 1 or len(d) < 2 or not np.all(np.isfinite(d)):
        raise ValueError(
            f"differences has shape {d.shape}: expected at least two finite numbers, one per fold."
        )
    if not (is_number(level) and 0 < level < 1):
        raise ValueError(f"level={level!r}: expected a number between 0 and 1.")
    if not (is_number(test_to_train) and 0 < test_to_train < np.inf):
        raise ValueError(f"test_to_train={test_to_train!r}: expected a positive number.")
    d, exponent = scale_near_one(d)
    apart = d - d[0]  # exactly zero where every fold says the same
    mean = float(d[0] + np.mean(apart))
    error = float(np.sqrt(1 / len(d) + test_to_train) * np.std(apart, ddof=1))
    freedom = len(d) - 1
    # the median of older SciPy's t is not quite zero
    half = max(0.0, float(stats.t.isf((1 - level) / 2, freedom))) * error
    if error > 0:
        p_value = float(2 * stats.t.sf(abs(mean) / error, freedom))
    else:
        p_value = 1.0 if mean == 0 else 0.0
    ends = np.array([mean, error, mean - half, mean + half])
    middle, spread, low, high = map(float, scale_back(ends, exponent))
    return Difference(middle, spread, low, high, p_value, float(level))


def scale_near_one(values: FloatArray) -> tuple[FloatArray, int]:
    """Values over a power of two, and its exponent: their squares neither overflow nor vanish."""
    exponent = int(np.frexp(np.max(np.abs(values)))[1])
    return np.ldexp(values, -exponent), exponent


def scale_back(value: FloatArray | float, exponent: int) -> FloatArray:
    """Undo `scale_near_one`; what is beyond the range of floats is infinite."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.ldexp(value, exponent))


RULES = ("best", "one_standard_error")


def check_powers(ps: Sequence[float]) -> tuple[float, ...]:
    """Return the powers, ascending and distinct, or raise ValueError."""
    values = np.atleast_1d(np.asarray(ps, dtype=np.float64))
    if values.ndim != 1 or len(values) == 0 or np.any(np.isnan(values)) or np.any(values < 1):
        raise ValueError(f"ps={ps!r}: expected one or more numbers from 1 to infinity.")
    return tuple(float(p) for p in np.unique(values))


@dataclass(frozen=True)
class Candidate:
    """One setting that was tried; p is None where there is none, as in the baseline."""

    name: str
    p: float | None
    alpha: float | None = None
    pushes: bool = True

    @property
    def push(self) -> tuple[bool, float | None]:
        """How hard it pushes: the same for all its settings of alpha."""
        return self.pushes, self.p


def _equal(score: float) -> float:
    """Scores that differ by less are the same number, added up in another order."""
    return 1e-12 * max(1.0, abs(score))


@dataclass(frozen=True)
class PChoice:
    """What cross-validation says about p.

    Attributes
    ----------
    candidates : tuple of Candidate
        What was tried, from the weakest push to the strongest, the baseline first.
    fold_scores : ndarray of shape (candidates, folds)
        The score of each on each fold; larger is better.
    metric : str
        What the score is.
    rule : {"best", "one_standard_error"}
        How the choice was made.
    test_to_train : float
        Rows tested over rows trained on, in the mean over the folds.
    level : float
        Confidence level of the intervals.
    chosen : Candidate
        The choice.
    p : float or None
        Its p; None if the answer is not to push.
    pushes : bool
        Whether the answer is to push at all.
    """

    candidates: tuple[Candidate, ...]
    fold_scores: FloatArray
    metric: str
    rule: str = "best"
    test_to_train: float = 0.25
    level: float = 0.95

    def __post_init__(self) -> None:
        for one, fold in np.argwhere(~np.isfinite(self.fold_scores)):
            raise ValueError(
                f"{self.metric} of {self.candidates[one].name} is {self.fold_scores[one, fold]} on "
                f"fold {fold}: expected finite scores, which have a mean. A risk that overflows "
                "has a finite logarithm, log=True; that of a perfect fold has none, log=False."
            )

    @cached_property
    def mean(self) -> FloatArray:
        """Mean score of each candidate over the folds."""
        scores, exponent = scale_near_one(self.fold_scores)
        return scale_back(np.mean(scores, axis=1), exponent)

    def deviation(self, ddof: int = 0) -> FloatArray:
        """Standard deviation of the scores of each candidate over the folds."""
        scores, exponent = scale_near_one(self.fold_scores)
        return scale_back(np.std(scores, axis=1, ddof=ddof), exponent)

    @cached_property
    def standard_error(self) -> FloatArray:
        """Standard error of each mean, as if the folds were independent."""
        return self.deviation(ddof=1) / np.sqrt(self.fold_scores.shape[1])

    @cached_property
    def best_index(self) -> int:
        """The candidate of highest mean; among equals the push that is weakest."""
        top = float(np.max(self.mean))
        first = int(np.argmax(self.mean >= top - _equal(top)))
        return self._best_alike(self.candidates[first])

    @cached_property
    def chosen_index(self) -> int:
        """The choice by the rule.

        "one_standard_error" takes the weakest push that is not worse than the best by more than
        one standard error (Breiman et al. 1984): that of the paired difference, since the folds
        are the same, corrected for their overlap. Of its settings it takes the best.
        """
        if self.rule == "best":
            return self.best_index
        return next(i for i in self.per_p if self._within_one_error(i))

    def _within_one_error(self, i: int) -> bool:
        behind = self.difference(self.best_index, i)
        return behind.mean <= behind.standard_error + _equal(behind.mean)

    def _best_alike(self, one: Candidate) -> int:
        """The best that pushes as hard; of several alphas that tie, the middle one."""
        same = self._alike(one)
        top = float(np.max(self.mean[same]))
        tied = same[self.mean[same] >= top - _equal(top)]
        return int(tied[len(tied) // 2])

    def _alike(self, one: Candidate) -> NDArray[np.intp]:
        """The candidates that push just as hard."""
        return np.flatnonzero([candidate.push == one.push for candidate in self.candidates])

    @property
    def chosen(self) -> Candidate:
        return self.candidates[self.chosen_index]

    @property
    def p(self) -> float | None:
        return self.chosen.p

    @property
    def pushes(self) -> bool:
        return self.chosen.pushes

    @property
    def best_score(self) -> float:
        """Mean score of the choice. It was chosen for it, so it flatters."""
        return float(self.mean[self.chosen_index])

    @cached_property
    def per_p(self) -> tuple[int, ...]:
        """The best candidate of each p, the baseline included, weakest push first."""
        kinds = {candidate.push: candidate for candidate in self.candidates}
        return tuple(map(self._best_alike, kinds.values()))

    def difference(self, one: int, other: int) -> Difference:
        """Score of one candidate less that of another over the folds, with a corrected t-test."""
        return corrected_difference(
            self.fold_scores[one] - self.fold_scores[other], self.test_to_train, level=self.level
        )

    @cached_property
    def rival_index(self) -> int | None:
        """What the choice is compared with: the best that does not push, or if it is, that does."""
        rivals = [i for i in self.per_p if self.candidates[i].pushes != self.pushes]
        if not rivals:  # no baseline: the gentlest push
            rivals = [i for i in self.per_p[:1] if i != self.chosen_index]
        return max(rivals, key=lambda i: self.mean[i], default=None)

    def table(self) -> list[JsonObject]:
        """One line per p: best setting, mean, standard error, difference from the first line."""
        lines = []
        for i in self.per_p:
            candidate = self.candidates[i]
            against = None if i == self.per_p[0] else self.difference(i, self.per_p[0])
            lines.append(
                {
                    "name": candidate.name,
                    "p": candidate.p,
                    "alpha": candidate.alpha,
                    "mean": float(self.mean[i]),
                    "standard_error": float(self.standard_error[i]),
                    "difference": None if against is None else against.mean,
                    "p_value": None if against is None else against.p_value,
                    "chosen": candidate.push == self.chosen.push,
                }
            )
        return lines

    def as_dict(self) -> JsonObject:
        """The choice in plain types, for JSON."""
        return {
            "metric": self.metric,
            "rule": self.rule,
            "p": self.p,
            "alpha": self.chosen.alpha,
            "push": self.pushes,
            "chosen": self.chosen.name,
            "score": self.best_score,
            "verdict": self.verdict,
            "folds": int(self.fold_scores.shape[1]),
            "table": self.table(),
        }

    @property
    def verdict(self) -> str:
        """The answer in words."""
        i, rival = self.chosen_index, self.rival_index
        name = self.chosen.name
        said = f"Push with {name}" if self.pushes else f"Do not push: take {name}"
        said += f". Its mean {self.metric} over {self.fold_scores.shape[1]} folds is "
        said += f"{self.mean[i]:.4g} ± {self.standard_error[i]:.2g}"
        if rival is None:
            return said + "."
        gap = self.difference(i, rival)
        said += f", against {self.mean[rival]:.4g} for {self.candidates[rival].name} "
        said += f"(difference {gap})."
        if gap.p_value > 1 - self.level:
            said += " The folds alone cannot tell the two apart."
        if self.rule == "one_standard_error" and i != self.best_index:
            best = self.candidates[self.best_index]
            said += (
                f" {best.name} has the highest mean, {self.mean[self.best_index]:.4g}, but not by "
                "more than one standard error."
            )
        return said

    def __str__(self) -> str:
        lines = self.table()
        width = max(len(line["name"]) for line in lines)
        text = [f"{self.metric}, mean ± standard error over {self.fold_scores.shape[1]} folds"]
        for line in lines:
            row = f"{line['name']:<{width}}  {line['mean']:.4f} ± {line['standard_error']:.4f}"
            if line["difference"] is not None:
                row += f"  {line['difference']:+.4f} (p = {line['p_value']:.2g})"
            text.append(row + ("  <- chosen" if line["chosen"] else ""))
        return "\n".join([*text, self.verdict])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = []
        for line in self.table():
            behind = "" if line["difference"] is None else f"{line['difference']:+.4f}"
            p = "" if line["p_value"] is None else f"{line['p_value']:.2g}"
            spread = f"{line['mean']:.4f} ± {line['standard_error']:.4f}"
            rows.append((line["name"], spread, behind, p, "chosen" if line["chosen"] else ""))
        folds = self.fold_scores.shape[1]
        head = ("setting", f"mean ± standard error over {folds} folds", "difference", "p", "")
        return table_html(rows, head=head, caption=self.metric, notes=[self.verdict])
