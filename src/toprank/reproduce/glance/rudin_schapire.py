"""Rudin & Schapire (2009): margins, and AdaBoost against RankBoost."""

from toprank.reproduce.glance.entry import Entry, Paper

_MARGIN = "rankers/boosting/test_margin.py"
_BOUND = "bounds/test_margin.py"
_SAME = "rankers/boosting/test_equivalence.py"
_LEMMA = "bounds/test_smooth_margin.py"
_PROOF = "A step of the proof; nothing computes it."

PAPER = Paper(
    "C. Rudin and R. Schapire (2009), Margin-based Ranking and an Equivalence between AdaBoost and "
    "RankBoost, JMLR 10",
    (
        Entry(
            "Section 2: π, margins",
            "crucial pairs, the margin of a ranking",
            "Pairs metrics.ranking_margin metrics.margin_error",
            "pairs/test_pair_weights.py::test_boosting_counts_a_weighted_pair_as_often "
            f"{_MARGIN}::test_the_margin_is_the_metric_of_the_scores",
        ),
        Entry(
            "Definition 1",
            "sloppy covers",
            "bounds.SloppyClass",
            f"{_BOUND}::"
            "test_theorem_2_takes_the_sloppy_number_at_a_quarter_of_theta_and_an_eighth_of_epsilon",
        ),
        Entry(
            "Theorem 2",
            "margin bound",
            "bounds.margin_cover",
            f"{_BOUND}::test_the_event_is_no_more_frequent_than_the_bound "
            "reproduce/test_experiments.py::test_the_theorems_hold_in_small_runs",
            "It takes about a thousand rows to say anything about thirty rankers.",
        ),
        Entry(
            "Lemma 3",
            "covers of convex combinations",
            "bounds.ConvexCombinations",
            f"{_BOUND}::test_lemma_3",
        ),
        Entry(
            "Corollary 4, equation (2)",
            "the bound for weak rankers",
            "bounds.margin",
            f"{_BOUND}::test_equation_2 {_BOUND}::test_corollary_4_is_theorem_2_with_lemma_3",
        ),
        Entry(
            "Corollary 5",
            "with L∞ covers",
            "bounds.margin_cover",
            f"{_BOUND}::test_corollary_5_for_finite_classes",
        ),
        Entry(
            "Figure 1, (3)-(5)",
            "RankBoost and coordinate descent RankBoost",
            "RankBoost",
            "rankers/boosting/test_rounds.py::test_two_classes_by_histograms_are_the_double_loop",
        ),
        Entry(
            "Theorem 6",
            "RankBoost may miss the largest margin",
            "metrics.max_margin RankBoost",
            f"{_MARGIN}::test_rankboost_goes_to_a_margin_of_one_third",
        ),
        Entry(
            "Equation (6)",
            "smooth margin < margin <= ρ",
            "SmoothMarginRanker",
            f"{_MARGIN}::test_the_smooth_margin_stays_below_the_margin_and_that_below_rho",
            "Needs the loss not normalised, at least two pairs, and none lighter than one.",
        ),
        Entry(
            "Equations (7)-(9), (11), (12)",
            "smooth margin ranking",
            "SmoothMarginRanker bounds.smooth_margin_step",
            f"{_LEMMA}::test_the_step_is_that_of_the_ranker_and_solves_equation_11",
            "(12) divides by d-; a form that is stable at d- = 0 is used.",
        ),
        Entry(
            "Equation (10)",
            "the exact step",
            "SmoothMarginRanker",
            f"{_MARGIN}::test_the_exact_step_is_the_maximum_along_the_weak_ranker",
        ),
        Entry(
            "Theorem 7",
            "the smooth margin grows",
            "SmoothMarginRanker",
            f"{_MARGIN}::test_the_smooth_margin_grows_by_theorem_7_where_its_condition_holds",
            "On wdbc its condition holds in 699 of 1,937 ascents.",
        ),
        Entry(
            "Theorem 8",
            "convergence to the largest margin",
            "SmoothMarginRanker",
            f"{_MARGIN}::test_smooth_margin_ranking_goes_to_three_eighths",
            "Silent where the condition on d0 fails.",
        ),
        Entry(
            "Lemma 9",
            "steps become small",
            "SmoothMarginRanker",
            f"{_MARGIN}::test_steps_become_small_beside_the_norm",
        ),
        Entry(
            "Theorem 10",
            "AdaBoost minimises RankBoost's objective",
            "AdaBoostRanker",
            f"{_SAME}::test_on_pima",
        ),
        Entry(
            "Corollary 11",
            "the F-skew vanishes",
            "AdaBoostRanker metrics.f_skew",
            f"{_SAME}::test_with_the_constant_reset_the_skew_is_zero_in_every_round",
        ),
        Entry(
            "Theorem 12",
            "the same AUC",
            "AdaBoostRanker",
            "reproduce/test_experiments.py::test_adaboost_and_rankboost_meet",
        ),
        Entry(
            "Corollary 13",
            "RankBoost minimises AdaBoost's objective",
            "RankBoost",
            f"{_SAME}::test_the_intercept_is_that_of_corollary_13",
        ),
        Entry(
            "Theorem 14",
            "the same misclassification error",
            "AdaBoostRanker",
            "reproduce/test_experiments.py::test_adaboost_and_rankboost_meet",
        ),
        Entry(
            "Section 5.1",
            "AdaBoost.MH and AdaBoost.MR, weak classifiers h(x, label)",
            "LabelRanker",
            "rankers/test_labels.py::test_mh_and_pooled_mr_solve_each_others_problem "
            "rankers/test_labels.py::"
            "test_weak_classifiers_of_ones_own_go_to_the_minimum_along_the_best",
            "F_MR is printed as a difference; it is a product of sums.",
        ),
        Entry("Lemmas 15, 16, 17, 19, Theorem 18", "the proof of Theorem 2", "", "", _PROOF),
        Entry(
            "Lemma 20, Figure 2",
            "B(r, g, d0) > 1/2",
            "bounds.smooth_margin_progress",
            f"{_LEMMA}::test_lemma_20_holds_on_a_grid_of_its_whole_range "
            f"{_LEMMA}::test_figure_2_lies_above_one_half",
            "Sharp as g → r; a quarter of the points beyond the condition violate it.",
        ),
        Entry("Lemmas 21 to 24", "the proof of Lemma 20", "", "", _PROOF),
    ),
)
