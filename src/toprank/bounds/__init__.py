"""What the papers' theorems say about a sample of this size, and whether they say anything.

Every bound returns a small result with ``value``, ``vacuous`` (True when it says nothing that was
not known before), ``statement`` and ``assumes``.
"""

from toprank.bounds.bound import Bound
from toprank.bounds.covering import ConvexCombinations, FiniteClass, LinearClass, SloppyClass
from toprank.bounds.excess_risk import (
    excess_convex_risk,
    excess_ranking_risk,
    psi_transform,
    ranking_risk_from_convex,
    u_statistic,
)
from toprank.bounds.known_eta import (
    bayes_ranking_error,
    exact_ranking_regret,
    gini_mean_difference,
    pairwise_distribution,
    ranking_error,
    surrogate_regret,
)
from toprank.bounds.margin import margin, margin_cover, margin_sample_size
from toprank.bounds.push import pnorm_push, pnorm_push_2006, pnorm_push_sample_size
from toprank.bounds.rademacher import (
    rademacher_average,
    rkhs_rademacher,
    separate_pair_errors,
    vc_rademacher,
)
from toprank.bounds.regret import (
    balanced_regret,
    low_noise_constant,
    pairwise_regret,
    plug_in_regret,
    ranking_regret,
)
from toprank.tuning.support import supported_p

__all__ = [
    "Bound",
    "ConvexCombinations",
    "FiniteClass",
    "LinearClass",
    "SloppyClass",
    "balanced_regret",
    "bayes_ranking_error",
    "exact_ranking_regret",
    "excess_convex_risk",
    "excess_ranking_risk",
    "gini_mean_difference",
    "low_noise_constant",
    "margin",
    "margin_cover",
    "margin_sample_size",
    "pairwise_distribution",
    "pairwise_regret",
    "plug_in_regret",
    "pnorm_push",
    "pnorm_push_2006",
    "pnorm_push_sample_size",
    "psi_transform",
    "rademacher_average",
    "ranking_error",
    "ranking_regret",
    "ranking_risk_from_convex",
    "rkhs_rademacher",
    "separate_pair_errors",
    "supported_p",
    "surrogate_regret",
    "u_statistic",
    "vc_rademacher",
]
