"""What the papers' theorems say about a sample of this size, and whether they say anything.

Every bound returns a small result with ``value``, ``vacuous`` (True when it says nothing that was
not known before), ``statement`` and ``assumes``.
"""

from toprank.bounds.bound import Bound
from toprank.bounds.centres import choose_centres
from toprank.bounds.convex_costs import psi_transform, ranking_risk_from_convex
from toprank.bounds.covering import ConvexCombinations, FiniteClass, LinearClass, SloppyClass
from toprank.bounds.excess_risk import (
    excess_convex_risk,
    excess_ranking_risk,
    u_statistic,
)
from toprank.bounds.fast_rates import (
    Chaos,
    combination_rademacher,
    convex_excess_ranking_risk,
    degenerate_kernel,
    degenerate_moment,
    degenerate_process,
    fast_excess_risk,
    fast_rate,
    local_radius,
)
from toprank.bounds.known_eta import (
    bayes_ranking_error,
    exact_ranking_regret,
    gini_mean_difference,
    pairwise_distribution,
    pairwise_surrogate_regret,
    ranking_error,
    surrogate_regret,
)
from toprank.bounds.margin import margin, margin_cover, margin_sample_size
from toprank.bounds.noise import (
    NoiseCondition,
    bounded_density_constant,
    noise_condition,
    projection_variance,
    projection_variance_bound,
    regression_noise_condition,
)
from toprank.bounds.push import (
    pnorm_push,
    pnorm_push_2006,
    pnorm_push_fixed,
    pnorm_push_sample_size,
)
from toprank.bounds.rademacher import (
    rademacher_average,
    rkhs_rademacher,
    separate_pair_errors,
    vc_rademacher,
)
from toprank.bounds.ranking_rules import best_ranking_rule, ranking_rule_risk
from toprank.bounds.regret import (
    balanced_pairwise_regret,
    balanced_regret,
    low_noise_constant,
    pairwise_regret,
    plug_in_regret,
    ranking_regret,
)
from toprank.bounds.smooth_margin import smooth_margin_progress, smooth_margin_step
from toprank.tuning.support import supported_p

__all__ = [
    "Bound",
    "Chaos",
    "ConvexCombinations",
    "FiniteClass",
    "LinearClass",
    "NoiseCondition",
    "SloppyClass",
    "balanced_pairwise_regret",
    "balanced_regret",
    "bayes_ranking_error",
    "best_ranking_rule",
    "bounded_density_constant",
    "choose_centres",
    "combination_rademacher",
    "convex_excess_ranking_risk",
    "degenerate_kernel",
    "degenerate_moment",
    "degenerate_process",
    "exact_ranking_regret",
    "excess_convex_risk",
    "excess_ranking_risk",
    "fast_excess_risk",
    "fast_rate",
    "gini_mean_difference",
    "local_radius",
    "low_noise_constant",
    "margin",
    "margin_cover",
    "margin_sample_size",
    "noise_condition",
    "pairwise_distribution",
    "pairwise_regret",
    "pairwise_surrogate_regret",
    "plug_in_regret",
    "pnorm_push",
    "pnorm_push_2006",
    "pnorm_push_fixed",
    "pnorm_push_sample_size",
    "projection_variance",
    "projection_variance_bound",
    "psi_transform",
    "rademacher_average",
    "ranking_error",
    "ranking_regret",
    "ranking_risk_from_convex",
    "ranking_rule_risk",
    "regression_noise_condition",
    "rkhs_rademacher",
    "separate_pair_errors",
    "smooth_margin_progress",
    "smooth_margin_step",
    "supported_p",
    "surrogate_regret",
    "u_statistic",
    "vc_rademacher",
]
