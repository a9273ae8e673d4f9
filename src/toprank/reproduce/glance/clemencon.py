"""Clémençon, Lugosi & Vayatis (2006): ranking and U-statistics."""

from toprank.reproduce.glance.entry import Entry, Paper

_EXCESS = "bounds/test_excess_risk.py"
_FAST = "bounds/test_fast_rates.py"
_U = "inference/test_u_statistics.py"
_RADEMACHER = "bounds/test_rademacher.py"
_MODELS = "simulate/test_simulated_models.py"
_PROOF = "A step of the proof; nothing computes it."

PAPER = Paper(
    "S. Clémençon, G. Lugosi and N. Vayatis (2006), Ranking and Empirical Minimization of "
    "U-statistics",
    (
        Entry(
            "Proposition 1",
            "the best ranking rule, for any ρ±",
            "bounds.best_ranking_rule bounds.ranking_rule_risk",
            "bounds/test_ranking_rules.py::test_no_rule_is_better_than_proposition_1s",
            "It need not be the order of a score.",
        ),
        Entry(
            "L_n, Section 2",
            "the empirical ranking risk",
            "metrics.ranking_risk inference.u_statistic",
            "metrics/test_definitions.py::test_ranking_risk_of_real_labels_is_its_double_sum",
        ),
        Entry(
            "Remark 2",
            "ranking m rows at once",
            "inference.permutation_risk inference.u_statistic_of_order",
            "inference/test_order_m.py::test_the_share_of_pairs_is_the_ranking_risk_whatever_m",
        ),
        Entry(
            "Examples 1 and 2, Remark 3",
            "two classes and regression: scores suffice",
            "simulate.BipartiteModel simulate.RegressionModel bounds.gini_mean_difference",
            f"{_MODELS}::test_no_scores_beat_eta "
            "bounds/test_regret.py::"
            "test_gini_reaches_twice_p_one_minus_p_when_labels_are_certain",
            "Gini's mean difference reaches 2p(1 - p).",
        ),
        Entry(
            "Hoeffding and Bernstein for U-statistics",
            "Section 3",
            "bounds.u_statistic",
            f"{_EXCESS}::test_deviations_are_no_more_frequent_than_the_bounds",
        ),
        Entry(
            "Proposition 2, Lemma 14",
            "means of independent pairs, Rademacher averages",
            "bounds.rademacher_average bounds.separate_pair_errors",
            f"{_RADEMACHER}::test_separate_pairs_are_row_i_with_row_m_plus_i",
        ),
        Entry(
            "Corollary 3",
            "excess risk of the minimiser",
            "bounds.excess_ranking_risk EmpiricalRanker",
            f"{_EXCESS}::test_the_minimiser_of_the_ranking_risk_keeps_corollary_3 "
            f"{_FAST}::test_corollary_3_holds_over_many_samples",
        ),
        Entry(
            "Hoeffding's decomposition",
            "Section 4",
            "inference.UStatistic",
            f"{_U}::test_the_decomposition_adds_up_and_its_parts_are_orthogonal",
        ),
        Entry(
            "Assumption 4",
            "a small variance of h",
            "bounds.projection_variance_bound bounds.projection_variance",
            f"{_FAST}::test_proposition_7_holds_for_every_ranker",
        ),
        Entry(
            "Theorem 5",
            "fast rates",
            "bounds.fast_excess_risk bounds.local_radius bounds.Chaos",
            f"{_FAST}::test_the_local_radius_solves_its_equation",
            "Constants that the paper leaves open are arguments.",
        ),
        Entry(
            "Corollary 6",
            "fast rates for VC classes",
            "bounds.fast_rate",
            f"{_FAST}::test_the_rate_is_that_of_the_corollary",
        ),
        Entry(
            "Condition (2), Proposition 7",
            "noise of two classes",
            "bounds.noise_condition",
            f"{_FAST}::test_proposition_7_holds_for_every_ranker",
        ),
        Entry(
            "Corollary 8",
            "η with a bounded density",
            "bounds.bounded_density_constant",
            f"{_FAST}::test_corollary_8_bounds_the_condition",
        ),
        Entry(
            "Remark 4, Sections 5.1 to 5.3",
            "rates in the three models",
            "PairRanker simulate.power_eta simulate.regression simulate.heteroscedastic",
            "reproduce/test_experiments.py::test_the_excess_risk_falls_faster_than_the_slow_rate",
        ),
        Entry(
            "Section 5.2",
            "without noise",
            "bounds.projection_variance_bound",
            f"{_MODELS}::test_without_noise_the_risk_is_the_share_of_pairs_in_the_wrong_order",
        ),
        Entry(
            "Condition (4), Proposition 9",
            "noise of real labels",
            "bounds.regression_noise_condition bounds.projection_variance_bound",
            f"{_FAST}::test_proposition_9_is_false_as_printed_and_holds_as_corrected",
            "False as printed: Var(h) is .112 against .043 for m(x) = x, σ = 100, s = -m, α = 1/2. "
            "Ours has another constant.",
        ),
        Entry(
            "Corollary 10, Remark 5",
            "bounded density of m(X); errors that are not normal",
            "bounds.regression_noise_condition simulate.error_laws",
            "simulate/test_error_laws.py::test_the_best_ranking_is_by_m_and_its_risk_is_met",
        ),
        Entry(
            "Theorem 11, Remark 6",
            "moments of degenerate U-processes",
            "bounds.degenerate_process bounds.degenerate_moment bounds.degenerate_kernel",
            f"{_FAST}::test_theorem_11_bounds_moments_and_tails_of_a_degenerate_process",
            "With the constants of the proof.",
        ),
        Entry(
            "Section 7: convex risk, ψ",
            "from A(f) to L(f)",
            "bounds.psi_transform bounds.ranking_risk_from_convex PairRanker",
            f"{_EXCESS}::test_psi_is_the_definition "
            f"{_EXCESS}::test_the_ranking_regret_never_exceeds_the_bound",
            "The psi printed must be H^-((1 + x)/2) - H((1 + x)/2).",
        ),
        Entry(
            "Proposition 12",
            "the minimiser of a convex risk",
            "bounds.excess_convex_risk",
            f"{_EXCESS}::test_proposition_12_as_corrected",
            "Should bound by the range φ(B) of the cost, with a factor 2 restored.",
        ),
        Entry(
            "F_B, kernels",
            "R_n of combinations and of balls",
            "bounds.combination_rademacher bounds.rkhs_rademacher bounds.vc_rademacher",
            f"{_RADEMACHER}::test_the_ball_of_a_kernel",
            "Section 7 prints const·B·V/√n where Section 3 gives √(V/n).",
        ),
        Entry(
            "Corollary 13",
            "consistency; the bound assembled",
            "bounds.convex_excess_ranking_risk",
            f"{_FAST}::test_the_assembled_bound_is_psi_inverse_of_both_errors",
            "The bound for a given n stands in for the limit.",
        ),
        Entry(
            "Propositions 15 and 16, Remark 7",
            "ROC curves: η is best; the AUC is a chance",
            "metrics.auc bounds.exact_ranking_regret",
            f"{_MODELS}::test_no_scores_beat_eta "
            "metrics/test_definitions.py::"
            "test_metric_is_its_definition_with_weights_as_repetitions",
        ),
    ),
)
