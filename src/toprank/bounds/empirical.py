"""The empirical minimiser of the ranking risk over finitely many rankers, with its guarantees.

Clémençon, Lugosi & Vayatis (2006, Section 3): r_n minimises the ranking risk of the sample over a
class R. Here R is a list of rankers that were fixed before these rows were seen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from toprank._arrays import TableLike
from toprank._numerics import FloatArray
from toprank.bounds.bound import Bound
from toprank.bounds.excess_risk import excess_ranking_risk
from toprank.bounds.fast_rates import fast_rate
from toprank.metrics import ranking_risk

_METHODS = ("decision_function", "predict_proba", "predict")


class EmpiricalRanker:
    r"""The best of several fitted rankers, by the ranking risk of rows that none of them has seen.

    Labels may be of two classes or real. Choosing by rows that are new makes the choice honest:
    ``excess_risk`` says how much worse than the best of the candidates the chosen one may be.

    Parameters
    ----------
    candidates : sequence
        Fitted rankers (anything with ``decision_function``, ``predict_proba`` of two classes or
        ``predict``), functions from X to scores, arrays with a score for each row that ``fit``
        will see; or pairs (name, candidate) of them.

    Attributes
    ----------
    risks_ : dict
        The ranking risk of each candidate, by its name.
    best_ : str
        The name of the candidate of least risk, the first of several.
    n_rows_ : int
        How many rows it was chosen by.

    Examples
    --------
    >>> from toprank import EmpiricalRanker, PNormPush
    >>> from toprank.datasets import load_wdbc
    >>> X, y = load_wdbc(return_X_y=True)
    >>> rankers = [(f"p={p}", PNormPush(p=p).fit(X[:300], y[:300])) for p in (1, 4, 16)]
    >>> chosen = EmpiricalRanker(rankers).fit(X[300:], y[300:])
    >>> chosen.best_ in chosen.risks_
    True
    >>> chosen.decision_function(X[:2]).shape
    (2,)
    """

    def __init__(self, candidates: Sequence[object]):
        self.candidates = candidates

    def fit(
        self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> EmpiricalRanker:
        """Choose the candidate of least ranking risk on these rows.

        Parameters
        ----------
        X : array, data frame or None
            Rows that no candidate was fitted to; None if all candidates are scores.
        y : array-like of shape (n,)
            Real labels, or of two classes; larger belongs nearer the top.
        sample_weight : array-like of shape (n,), optional
            Repetition counts.
        """
        named = _name_candidates(self.candidates)
        labels = _real_labels(y)
        risks = {
            name: ranking_risk(
                labels, _score(name, candidate, X, len(labels)), sample_weight=sample_weight
            )
            for name, candidate in named.items()
        }
        self.risks_ = risks
        self.best_ = min(risks, key=lambda name: risks[name])
        self.n_rows_ = len(labels)
        self._chosen = named[self.best_]
        return self

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return the scores of the candidate that was chosen."""
        self._check_fitted()
        if isinstance(self._chosen, np.ndarray):
            raise TypeError(
                f"The candidate {self.best_!r} is an array of scores: it has none for other rows. "
                "Give a fitted ranker or a function of X."
            )
        return _score(self.best_, self._chosen, X, None)

    def excess_risk(self, delta: float = 0.05) -> Bound:
        r"""How much worse than the best candidate the chosen one may be (Corollary 3).

        The Rademacher average of N rankers is at most :math:`\sqrt{2 \ln(2N) / \lfloor n/2
        \rfloor}` (Massart's lemma).
        """
        self._check_fitted()
        pairs = self.n_rows_ // 2
        average = math.sqrt(2.0 * math.log(2.0 * len(self.risks_)) / pairs)
        return excess_ranking_risk(delta=delta, n=self.n_rows_, rademacher=average)

    def fast_rate(
        self, *, alpha: float, constant: float, delta: float = 0.05, approximation: float = 0.0
    ) -> Bound:
        """How much worse than the best ranking there is, under Assumption 4 (Corollary 6).

        A class of N rankers has VC dimension at most log2 N. For ``alpha``, ``constant`` and
        ``approximation`` see `toprank.bounds.fast_rate` and `toprank.bounds.noise_condition`.
        """
        self._check_fitted()
        dimension = max(1.0, math.log2(len(self.risks_)))
        return fast_rate(
            delta=delta,
            n=self.n_rows_,
            vc_dimension=dimension,
            alpha=alpha,
            constant=constant,
            approximation=approximation,
        )

    def _check_fitted(self) -> None:
        if not hasattr(self, "risks_"):
            raise ValueError("EmpiricalRanker has chosen none yet: call fit with rows and labels.")


def _name_candidates(candidates: Sequence[object]) -> dict[str, object]:
    """Return the candidates by name; a number names one that came without."""
    try:
        given = list(candidates)
    except TypeError as error:
        raise TypeError(
            f"candidates must be a list of rankers or scores; got {type(candidates).__name__}."
        ) from error
    if not given:
        raise ValueError("candidates is empty: there is nothing to choose from.")
    named: dict[str, object] = {}
    for place, item in enumerate(given):
        name, candidate = str(place), item
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
            name, candidate = item
        if name in named:
            raise ValueError(f"Two candidates are called {name!r}; give each its own name.")
        named[name] = candidate
    return named


def _score(name: str, candidate: object, X: TableLike, n: int | None) -> FloatArray:
    """Return the scores of one candidate, a number for each row."""
    method = next((m for m in _METHODS if hasattr(candidate, m)), None)
    function = candidate if method is None else getattr(candidate, method)
    if callable(function) and X is None:
        raise ValueError(f"The candidate {name!r} scores rows, and X is None: give the rows.")
    found = np.asarray(function(X) if callable(function) else function)
    if method == "predict_proba" and found.ndim == 2:
        found = found[:, 1]
    try:
        scores = found.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The candidate {name!r} gave scores of type {found.dtype}: expected numbers."
        ) from error
    if np.any(np.isnan(scores)):
        raise ValueError(
            f"The candidate {name!r} gave NaN as a score: expected a number for every row."
        )
    if scores.ndim != 1 or (n is not None and len(scores) != n):
        expected = "one number per row" if n is None else f"{n} numbers, one per row"
        raise ValueError(
            f"The candidate {name!r} gave scores of shape {scores.shape}: expected {expected}."
        )
    return scores


def _real_labels(y: ArrayLike) -> FloatArray:
    """Return labels as numbers: those of two classes that are words by their order."""
    labels = np.asarray(y)
    if labels.dtype.kind in "OUS":
        classes, labels = np.unique(labels, return_inverse=True)
        if len(classes) != 2:
            raise ValueError(
                f"y has {len(classes)} classes of words: expected two, or numbers to rank by."
            )
    return labels.astype(np.float64)
