"""Agarwal (2012): strongly proper losses."""

from toprank.reproduce.glance.entry import Entry, Paper

_LOSS = "losses/test_proper.py"
_VERDICT = "losses/test_verdicts.py"
_REGRET = "bounds/test_regret.py"

PAPER = Paper(
    "S. Agarwal (2012), Surrogate Regret Bounds for Bipartite Ranking via Strongly Proper Losses",
    (
        Entry(
            "Equations (1)-(3)",
            "ranking error and its least value",
            "bounds.ranking_error bounds.bayes_ranking_error",
            f"{_REGRET}::test_the_ranking_error_is_its_double_sum "
            f"{_REGRET}::test_the_bayes_error_is_equation_3",
        ),
        Entry(
            "Lemma 1",
            "H is concave",
            "losses.proper.ProperLoss",
            f"{_LOSS}::test_the_bayes_risk_is_the_infimum_of_the_conditional_risk",
        ),
        Entry(
            "Lemma 2",
            "partial losses of a proper loss are monotone",
            "losses.verdicts.is_proper",
            f"{_VERDICT}::test_a_witness_shows_that_a_loss_is_not_proper",
        ),
        Entry(
            "Theorem 3",
            "partial losses from H (Savage)",
            "losses.proper.from_bayes_risk",
            f"{_LOSS}::test_the_partial_losses_come_from_the_bayes_risk_by_equations_31_and_32",
        ),
        Entry(
            "Theorem 4",
            "strictly proper means H strictly concave",
            "losses.verdicts.is_proper",
            f"{_VERDICT}::test_a_loss_with_straight_pieces_is_proper_but_not_strictly",
        ),
        Entry(
            "Equations (15)-(17), (24)",
            "the reduction to pairs",
            "bounds.pairwise_distribution",
            f"{_REGRET}::test_the_distribution_of_pairs_is_equations_15_to_17",
        ),
        Entry(
            "Theorem 5, (25)-(27)",
            "pairwise margin losses, calibration",
            "bounds.pairwise_regret losses.verdicts.is_calibrated",
            f"{_REGRET}::test_the_pairwise_reduction_is_never_violated "
            f"{_VERDICT}::test_margin_losses_are_calibrated_and_the_perceptron_s_is_not",
        ),
        Entry(
            "Theorem 6",
            "pairwise from balanced regret",
            "bounds.balanced_pairwise_regret",
            "bounds/test_ranking_rules.py::"
            "test_theorem_6_is_false_as_printed_for_the_exponential_loss "
            "bounds/test_ranking_rules.py::"
            "test_theorem_6_corrected_and_its_constants_where_they_hold",
            "False as printed for the exponential loss: 9/4 holds for a balanced regret z of at "
            "most 1/4; (2 + z) z always does.",
        ),
        Entry(
            "Equations (28)-(30)",
            "balanced losses",
            "losses.proper.balanced bounds.balanced_regret",
            f"{_LOSS}::test_a_balanced_loss_weighs_the_classes_by_equation_28 "
            f"{_REGRET}::test_the_balanced_bounds_29_and_30_are_never_violated",
            "(29) survives: beyond a balanced regret of 1/4 it says nothing.",
        ),
        Entry(
            "Definition 7",
            "strongly proper losses",
            "losses.proper.ProperLoss.strong_properness",
            f"{_LOSS}::test_definition_7_holds_for_lambda "
            f"{_LOSS}::test_definition_7_fails_for_a_lambda_one_percent_larger",
        ),
        Entry(
            "Lemmas 8 and 9, Theorem 10",
            "strongly proper means H strongly concave",
            "losses.proper.from_bayes_risk",
            f"{_LOSS}::test_any_loss_can_be_rebuilt_from_its_bayes_risk",
        ),
        Entry(
            "Examples 1 to 6, Table 1",
            "exponential, logistic, squared, spherical, canonical",
            "losses.proper.Exponential losses.proper.Logistic losses.proper.Squared "
            "losses.proper.Spherical losses.proper.CanonicalExponential "
            "losses.proper.CanonicalSquared losses.proper.CanonicalSpherical ProperRanker",
            f"{_LOSS}::test_table_1_is_what_is_implemented "
            f"{_LOSS}::test_the_text_of_the_paper_gives_a_lambda_that_definition_7_refutes",
            "The text gives λ = 4 where Definition 7 gives 8 (squared) and 2 (canonical squared).",
        ),
        Entry(
            "Section 5: links",
            "a loss from any link, any loss behind any link",
            "losses.links",
            f"{_VERDICT}::test_any_increasing_link_gives_a_proper_loss_with_that_link",
        ),
        Entry(
            "Theorem 11",
            "ranking regret as a double sum",
            "bounds.exact_ranking_regret",
            f"{_REGRET}::test_the_regret_is_theorem_11",
        ),
        Entry(
            "Corollary 12",
            "plug-in rankings",
            "bounds.plug_in_regret",
            f"{_REGRET}::test_corollary_12_is_never_violated",
        ),
        Entry(
            "Theorem 13",
            "the surrogate regret bound",
            "bounds.ranking_regret ProperRanker",
            f"{_REGRET}::test_theorem_13_is_never_violated "
            "reproduce/test_experiments.py::test_no_regret_exceeds_its_bound",
        ),
        Entry(
            "Assumption NA(α), Theorems 14 and 15",
            "low noise",
            "bounds.ranking_regret bounds.low_noise_constant simulate.power_eta",
            f"{_REGRET}::"
            "test_theorems_14_and_15_hold_with_the_constant_derived_from_the_assumption "
            "reproduce/test_experiments.py::test_the_theorems_hold_in_small_runs",
            "The constant is not given; ours is derived, and allows the exponent (1 + α)/2.",
        ),
        Entry(
            "Section 7",
            "pairs or rows?",
            "reproduce.regret_theorems",
            "reproduce/test_experiments.py::test_the_equivalences_hold_in_quick_runs",
            "An open question; in our two models the two differ by little.",
        ),
    ),
)
