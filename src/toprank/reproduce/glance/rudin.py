"""Rudin (2009), the P-Norm Push, and its conference version of 2006."""

from toprank.reproduce.glance.entry import Entry, Paper

_PUSH = "metrics/test_push_risk.py"
_BOUND = "bounds/test_push.py"
_ENTROPY = "objective/test_pair_entropy.py"
_RUN = "reproduce/test_experiments.py"
_PAGE = "reproduce/test_runner.py::test_the_committed_page_comes_out_again"
_SLOW = f"{_PAGE}_slowly"
_PROOF = "A step of the proof; nothing computes it."

JOURNAL = Paper(
    "C. Rudin (2009), The P-Norm Push, JMLR 10",
    (
        Entry(
            "Section 2",
            "R_{g,l}, heights, R_max",
            "metrics.push_risk metrics.heights metrics.max_height PushRanker",
            f"{_PUSH}::test_power_risk_is_the_papers_sum "
            f"{_PUSH}::test_heights_are_counted_pair_by_pair_and_a_tie_is_a_misrank",
        ),
        Entry(
            "Theorem 1",
            "R_g lies between prices of R_max",
            "metrics.push_risk",
            f"{_PUSH}::test_theorem_1_holds",
        ),
        Entry(
            "Table 1",
            "a swap at the top costs more",
            "metrics.push_risk",
            f"{_PUSH}::test_table_1_comes_out_to_every_printed_digit",
            "The exponential and logistic columns come out with the scores halved only.",
        ),
        Entry(
            "Table 2",
            "reversal of polarity",
            "metrics.push_risk",
            f"{_PUSH}::test_table_2_comes_out_to_every_printed_digit",
            "The same; and 156,638 is printed as 1.56e5.",
        ),
        Entry(
            "Figure 1",
            "contribution of each pair",
            "plots.PairContributionDisplay",
            "plots/test_contributions.py::test_figure_1_shows_the_contribution_of_every_pair",
        ),
        Entry(
            "Theorem 2",
            "generalisation bound",
            "bounds.pnorm_push bounds.pnorm_push_sample_size",
            f"{_BOUND}::test_the_probability_is_the_theorems",
            "It says nothing at usual sizes for p > 2; the result says so.",
        ),
        Entry(
            "Theorem 3",
            "the bound with R_min, and by choice of centres",
            "bounds.pnorm_push bounds.choose_centres",
            f"{_BOUND}::test_theorem_3_is_never_looser_than_theorem_2 "
            "bounds/test_ranking_rules.py::test_centres_of_large_risk_tighten_theorem_3",
            "Needs centres that lie in the class, or their own least risk.",
        ),
        Entry(
            "Figure 2",
            "the P-Norm Push algorithm",
            "PNormPush RankBoost solvers.coordinate.coordinate",
            "solvers/test_coordinate.py::test_the_first_twenty_rounds_are_those_of_figure_2",
            "Step 3(a) needs the absolute slope, as the text has it.",
        ),
        Entry(
            "Figure 2, Step 3a",
            "a weak learner, fitted every round",
            "rankers.boosting.learners.LearnedRankers",
            "rankers/boosting/test_learners.py::test_a_learner_of_stumps_is_boosting_over_stumps",
        ),
        Entry(
            "Theorem 4",
            "the minimising pair weights are unique",
            "PNormPush.dual PairRanker.dual RankBoost.dual objective.PairDual",
            "objective/test_duality.py::"
            "test_the_pair_weights_are_unique_where_the_coefficients_are_not "
            "objective/test_related_dual.py::"
            "test_boosting_weighs_pairs_as_its_next_round_does "
            "objective/test_pair_dual.py::test_pair_weights_are_the_slopes_in_the_margins",
            "The pair weights are products of weights on positives and on negatives.",
        ),
        Entry(
            "Section 7: reverse heights, ranks",
            "R_g on ranks, AveR, DCG",
            "metrics.rank_risk metrics.ranks metrics.aver metrics.dcg",
            "metrics/test_rank_risk.py::test_named_discounts_are_the_named_metrics",
            "AveR is a sum, despite its name.",
        ),
        Entry(
            "Equation (2)",
            "the IR Push",
            "IRPush",
            f"{_PUSH}::test_ir_push_sums_over_the_positives",
            "The exponent is -(f_i - f_k); a sign is printed wrong.",
        ),
        Entry(
            "Section 7: bottom, both ends",
            "R of the bottom, and the sum of both",
            "PushRanker",
            "rankers/test_linear.py::"
            "test_pulling_up_from_the_bottom_mirrors_pushing_down_from_the_top",
            "The same sign.",
        ),
        Entry(
            "Section 7: crucial pairs",
            "a truth function in the place of labels",
            "PairRanker Pairs RankBoost",
            "pairs/test_pair_weights.py::"
            "test_the_push_over_weighted_pairs_is_its_definition_at_either_end "
            "rankers/boosting/test_push_of_pairs.py::"
            "test_the_push_over_any_pairs_is_the_double_loop",
        ),
        Entry(
            "Figure 3",
            "three discounts",
            "plots.discounts.DiscountDisplay",
            "plots/test_contributions.py::test_figure_3_has_the_discounts_from_the_top_down",
        ),
        Entry(
            "Figure 4",
            "contributions to the IR Push",
            "plots.PairContributionDisplay",
            "plots/test_contributions.py::"
            "test_figure_4_shares_the_price_of_each_positive_among_the_negatives",
        ),
        Entry(
            "Tables 3, 4, 5",
            "MAGIC, ionosphere, housing",
            "reproduce.push_tables",
            f"{_RUN}::test_table_3_has_the_order_of_the_paper_and_its_numbers_in_range {_SLOW}",
            "Table 4 has the bad returns as positives, not the good ones; R_2 on MAGIC is best at "
            "p = 64 in the mean, not at a medium p.",
        ),
        Entry(
            "Figures 5, 6, 7",
            "ROC curves of the three",
            "reproduce.roc_curves",
            _SLOW,
            "On housing's test rows R_max does not move.",
        ),
        Entry(
            "Section 9.3",
            "prices that are not convex",
            "prices.bend_in_price",
            "rankers/test_price_shapes.py::test_a_price_that_falls_is_named",
        ),
        Entry("Lemmas 5 and 6", "covering the class by balls", "", "", _PROOF),
        Entry(
            "Lemma 7, Figure 8",
            "the difference of two roots",
            "reproduce.push_examples",
            f"{_RUN}::test_the_figures_without_data_bear_the_paper_out {_PAGE}",
        ),
        Entry("Theorem 8", "McDiarmid's inequality", "", "", "Quoted; " + _PROOF.lower()),
        Entry(
            "Lemma 9",
            "one fixed ranker",
            "bounds.pnorm_push_fixed",
            f"{_BOUND}::test_the_bound_of_a_fixed_ranker_holds_where_its_event_occurs",
        ),
        Entry(
            "Section 10.1",
            "one-dimensional illustration",
            "simulate.rare_reversal",
            f"{_RUN}::test_the_wrong_function_is_chosen_as_often_as_no_negative_lies_beyond",
            "The wrong function is chosen with probability (1 - ε/2)^m, not (1 - ε)^m.",
        ),
        Entry(
            "Theorem 10",
            "Bregman projections are unique (Della Pietra et al.)",
            "objective.PairEntropy",
            f"{_ENTROPY}::test_theorem_10_at_the_minimiser_of_the_push",
        ),
        Entry(
            "Section 11: φ, B_φ, (10)-(12)",
            "the entropy of pair weights",
            "objective.PairEntropy",
            f"{_ENTROPY}::test_phi_is_the_papers_but_for_a_linear_term "
            f"{_ENTROPY}::test_the_projection_is_equation_12",
            "γ is printed with a sum over i', k' where (11) has one over i'. The same duality "
            "holds for the identity, exponential and IR prices.",
        ),
        Entry(
            "Lemmas 11, 12, 13",
            "φ is strictly convex and Legendre",
            "objective.PairEntropy",
            f"{_ENTROPY}::test_the_weights_are_the_slopes_of_the_risk_and_phi_is_its_conjugate",
        ),
    ),
)

COLT = Paper(
    "C. Rudin (2006), Ranking with a P-Norm Push, COLT",
    (
        Entry(
            "Theorem 1",
            "R_g and R_max, as in 2009",
            "metrics.push_risk",
            f"{_PUSH}::test_theorem_1_holds",
        ),
        Entry(
            "Theorem 2",
            "generalisation bound",
            "bounds.pnorm_push_2006",
            f"{_BOUND}::test_the_form_of_2006_lacks_the_logarithm_of_the_negatives",
            "It lacks the ln K of the journal version, which supersedes it.",
        ),
        Entry(
            "Theorems 3 and 4",
            "uniqueness, as in 2009",
            "objective.PairEntropy",
            f"{_ENTROPY}::test_theorem_10_at_the_minimiser_of_the_push",
        ),
        Entry(
            "Figure 1",
            "the algorithm, as Figure 2 of 2009",
            "PNormPush",
            f"{_RUN}::test_coordinate_descent_is_that_of_the_p_norm_push",
            "200 rounds.",
        ),
        Entry("Figure 2", "pima with thresholds", "reproduce.roc_curves", _SLOW),
        Entry(
            "Figure 3",
            "wdbc, either class as positives",
            "reproduce.roc_curves",
            _SLOW,
            "R_max grows with p on the training rows and falls on the test rows, both ways round.",
        ),
        Entry("Figure 4", "housing", "reproduce.roc_curves", _SLOW),
        Entry(
            "Figure 5",
            "50 rows are too few for a large p",
            "reproduce.roc_curves",
            f"{_RUN}::test_fifty_rows_are_too_few_for_a_large_p",
        ),
        Entry("Lemmas 1 to 4", "as Lemmas 5, 6, 7, 9 of 2009", "", "", "See there."),
    ),
)
