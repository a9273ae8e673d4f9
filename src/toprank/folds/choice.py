"""The choice of p: every candidate's scores on the same folds, and which one they speak for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.folds.corrected import Difference, corrected_difference, near_one, scaled_back

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
        scores, exponent = near_one(self.fold_scores)
        return scaled_back(np.mean(scores, axis=1), exponent)

    def deviation(self, ddof: int = 0) -> FloatArray:
        """Standard deviation of the scores of each candidate over the folds."""
        scores, exponent = near_one(self.fold_scores)
        return scaled_back(np.std(scores, axis=1, ddof=ddof), exponent)

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

    def table(self) -> list[dict[str, Any]]:
        """One line a p: its best setting, mean, standard error, difference from the first line."""
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

    def as_dict(self) -> dict[str, Any]:
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
