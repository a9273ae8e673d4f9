"""Smooth margin ranking: boosting that converges to the largest margin."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from toprank._numerics import FloatArray
from toprank.pairs import RelatedRows
from toprank.rankers.boosting.base import PairBooster
from toprank.rankers.boosting.rounds import Descent, Ensemble, SmoothAscent
from toprank.rankers.common import Link, p_classification, warn_caller


class SmoothMarginRanker(PairBooster):
    r"""Smooth margin ranking (Rudin & Schapire 2009, Section 4.2).

    Coordinate ascent on the smooth margin

    .. math::
        \tilde G(\lambda) = \frac{-\ln \tilde F(\lambda)}{|\lambda|_1} < \mu(\lambda) \le \rho

    which lies below the margin and, unlike RankBoost, takes it to the largest one, rho
    (Theorem 8). It begins with coordinate descent RankBoost until the smooth margin is positive,
    then takes the steps of equation (12), or the line search of equation (10) for real-valued
    weak rankers. On pairs that are not separated within the rounds it is RankBoost, and warns.

    Parameters
    ----------
    n_estimators : int, default=1000
        Rounds.
    weak_rankers, target, n_thresholds, max_bins, link, n_iter_no_change, validation_fraction
        As in :class:`RankBoost`.
    scoring, random_state, n_jobs, verbose
        As in :class:`RankBoost`.

    Attributes
    ----------
    smooth_margin_ : array
        The smooth margin after each round.
    margin_ : float
        The margin of the ranking on the training pairs.
    rho_ : float
        The smallest edge of any round: no combination of the weak rankers has a larger margin.
    theorem_7_ : bool array
        Per round, whether d0 was so small that the smooth margin had to grow (Theorem 7).
    separated_ : bool
        Whether the smooth margin became positive.
    coef_, stumps_, intercept_, classes_, feature_importances_, history_, n_iter_, stop_reason_
        As in :class:`RankBoost`; the history also has rho, ascent (whether the round was one of
        smooth margin ranking), theorem_7 and smooth_margin.

    Notes
    -----
    The inequality needs a loss that is not normalised, at least two pairs, and no pair lighter than
    one: with smaller sample weights the lightest pair is the unit.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank import SmoothMarginRanker
    >>> from toprank.datasets import load_wdbc
    >>> X, y = load_wdbc(return_X_y=True)
    >>> ranker = SmoothMarginRanker(2000).fit(X, y)
    >>> bool(0 < ranker.smooth_margin_[-1] < ranker.margin_ <= ranker.rho_)
    True
    """

    def __init__(
        self,
        n_estimators: int = 1000,
        *,
        weak_rankers: Any = "stumps",
        target: str = "binary",
        n_thresholds: int | None = None,
        max_bins: int = 255,
        link: str = "p_classification",
        n_iter_no_change: int | None = None,
        validation_fraction: float = 0.1,
        scoring: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.n_estimators = n_estimators
        self.weak_rankers = weak_rankers
        self.target = target
        self.n_thresholds = n_thresholds
        self.max_bins = max_bins
        self.link = link
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _rule(self) -> Descent:
        return SmoothAscent()

    def _natural_link(self, scores: FloatArray, rows: RelatedRows) -> Link:
        return p_classification(scores, rows.y, rows.weight, 1.0)

    def _after(self, ensemble: Ensemble) -> None:
        rounds = ensemble.history
        self.smooth_margin_ = np.array([r["smooth_margin"] for r in rounds])
        self.theorem_7_ = np.array([r["theorem_7"] for r in rounds], dtype=bool)
        self.rho_ = min((r["rho"] for r in rounds), default=np.inf)
        self.separated_ = bool(len(rounds) and self.smooth_margin_[-1] > 0)

    def _warn(self, ensemble: Ensemble) -> None:
        super()._warn(ensemble)
        if ensemble.history and not self.separated_:
            warn_caller(
                f"The pairs were not separated in {len(ensemble.history)} rounds, so the margin is "
                "not positive and there is none to enlarge: this is the solution of coordinate "
                "descent RankBoost. Raise n_estimators or allow more thresholds; if the pairs "
                "contradict each other, use RankBoost.",
                ConvergenceWarning,
            )
