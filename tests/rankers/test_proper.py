"""ProperRanker minimises the penalised mean loss, and its probabilities are the loss's own."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from toprank import ProperRanker
from toprank.bounds import exact_ranking_regret, ranking_regret, surrogate_regret
from toprank.losses.proper import (
    PROPER_LOSSES,
    CanonicalSpherical,
    Logistic,
    Squared,
    balanced,
    canonical,
    from_bayes_risk,
    get_proper_loss,
)
from toprank.objective import LabelledData, PointwiseProblem, PointwiseTask
from toprank.rankers.proper import _settle
from toprank.simulate import linear_bipartite
from toprank.solvers import Result

LOSSES = sorted(PROPER_LOSSES)
#: Where columns may lie without spoiling a fit.
FAR = np.array([1e7, 0.0, -1e6, 0.0])
each_loss = pytest.mark.parametrize("loss", LOSSES)


def quartic_risk(q):
    return 1 - q**4 - (1 - q) ** 4


def quartic_slope(q):
    return 4 * (1 - q) ** 3 - 4 * q**3


def objective(ranker, X, y, weight=None):
    """The objective at the fitted coefficients, written out."""
    v = X @ ranker.coef_[0] + ranker.intercept_[0] + float(ranker.loss_.link(0.5))
    mean = np.average(ranker.loss_.loss(y, v), weights=weight)
    return mean + ranker.alpha / 2 * np.sum(ranker.coef_**2)


# The default loss is checked with every other ranker, in tests/contracts.
# scikit-learn takes the logarithm of probabilities, and a truncated score has one of zero.
@pytest.mark.sampled(23)
@pytest.mark.filterwarnings("ignore:divide by zero encountered in log:RuntimeWarning")
@parametrize_with_checks(
    [ProperRanker(loss=loss) for loss in LOSSES if loss != "logistic"]
    + [ProperRanker(solver="lbfgs"), ProperRanker(loss=balanced(Logistic(), 0.3))]
)
def test_scikit_learn_finds_nothing_to_say(estimator, check):
    check(estimator)


@pytest.mark.parametrize("alpha", [1e-3, 1.0])
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_the_logistic_loss_is_logistic_regression(alpha, solver, overlapping):
    X, y = overlapping
    ours = ProperRanker(alpha=alpha, solver=solver, tol=1e-9).fit(X, y)
    theirs = LogisticRegression(C=1 / (alpha * len(y)), tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("loss", ["squared", "canonical_squared"])
def test_the_squared_loss_is_ridge_regression_on_signs(loss, overlapping):
    X, y = overlapping
    alpha, size = 0.05, PROPER_LOSSES[loss]().bayes_risk(0.5)
    ours = ProperRanker(loss, alpha=alpha).fit(X, y)
    theirs = Ridge(alpha=alpha * len(y) / (2 * size)).fit(X, 2 * y - 1)
    np.testing.assert_allclose(ours.coef_[0], theirs.coef_, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_[0], theirs.intercept_, atol=1e-9)
    np.testing.assert_allclose(ours.decision_function(X), theirs.predict(X), atol=1e-9)


@each_loss
def test_the_objective_is_at_its_minimum(loss, overlapping):
    X, y = overlapping
    fit = ProperRanker(loss, alpha=0.01).fit(X, y)
    assert fit.objective_ == pytest.approx(objective(fit, X, y), rel=1e-12)

    def value(z):
        v = X @ z[:-1] + z[-1]
        return np.mean(fit.loss_.loss(y, v)) + 0.005 * np.sum(z[:-1] ** 2)

    start = np.append(fit.coef_[0], fit.intercept_[0])
    best = optimize.minimize(value, start + 0.1, method="BFGS", options={"gtol": 1e-7}).fun
    assert fit.objective_ <= best + 1e-8
    assert 0 <= fit.optimality_gap_ < 1e-7


@each_loss
def test_both_solvers_reach_the_same_minimum(loss, overlapping):
    X, y = overlapping
    newton, lbfgs = (
        ProperRanker(loss, solver=solver, tol=1e-9).fit(X, y) for solver in ("newton", "lbfgs")
    )
    np.testing.assert_allclose(newton.coef_, lbfgs.coef_, atol=1e-6)
    np.testing.assert_allclose(newton.intercept_, lbfgs.intercept_, atol=1e-6)


def test_the_certificate_bounds_the_distance_to_the_minimum(overlapping):
    X, y = overlapping
    best = ProperRanker("exponential", tol=1e-11).fit(X, y).objective_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for rounds in (1, 2, 3, 4):
            rough = ProperRanker("exponential", max_iter=rounds).fit(X, y)
            assert 0 <= rough.objective_ - best <= rough.optimality_gap_ + 1e-13


@each_loss
def test_a_weight_is_a_repetition_count(loss, overlapping):
    X, y = overlapping
    weight = np.arange(len(y)) % 4
    weighted = ProperRanker(loss, tol=1e-9).fit(X, y, sample_weight=weight)
    repeated = ProperRanker(loss, tol=1e-9).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-7)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, atol=1e-7)


def test_an_absent_row_does_no_harm_however_wild(overlapping):
    X, y = overlapping
    wild = np.vstack([X, np.full((1, X.shape[1]), 1e6)])
    fit = ProperRanker("exponential").fit(wild, np.append(y, 0), np.append(np.ones(len(y)), 0.0))
    np.testing.assert_allclose(fit.coef_, ProperRanker("exponential").fit(X, y).coef_, atol=1e-6)


@each_loss
def test_sparse_rows_give_the_fit_of_dense_ones(loss, overlapping):
    X, y = overlapping
    X = np.where(np.abs(X) < 0.7, 0.0, X)
    dense = ProperRanker(loss, tol=1e-9).fit(X, y)
    for matrix in (sparse.csr_matrix(X), sparse.csc_array(X)):
        fit = ProperRanker(loss, tol=1e-9).fit(matrix, y)
        np.testing.assert_allclose(fit.coef_, dense.coef_, atol=1e-7)
        np.testing.assert_allclose(fit.predict_proba(matrix), dense.predict_proba(X), atol=1e-7)


def test_float32_rows_give_the_fit_of_float64_ones(overlapping):
    X, y = overlapping
    single = X.astype(np.float32)
    np.testing.assert_allclose(
        ProperRanker().fit(single, y).coef_,
        ProperRanker().fit(single.astype(np.float64), y).coef_,
        atol=1e-12,
    )


@pytest.mark.parametrize("loss", ["logistic", "canonical_spherical"])
def test_the_number_of_threads_does_not_change_a_bit(loss):
    X, y = linear_bipartite(4).sample(40_000, random_state=0)
    one, two = (ProperRanker(loss, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)


def test_columns_far_from_zero_do_not_spoil_the_fit(overlapping):
    X, y = overlapping
    near = ProperRanker(tol=1e-9).fit(X, y)
    far = ProperRanker(tol=1e-9).fit(X + FAR, y)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-6)
    np.testing.assert_allclose(far.decision_function(X + FAR), near.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("loss", ["logistic", "exponential", "squared", "canonical_spherical"])
def test_columns_of_any_size_can_be_ranked_by(loss, overlapping):
    X, y = overlapping
    for size in (1e-8, 1e8, 1e98):
        fit = ProperRanker(loss, alpha=0.0).fit(X * [size, 1.0, 1.0, 1.0], y)
        scores = fit.decision_function(X * [size, 1.0, 1.0, 1.0])
        expected = ProperRanker(loss, alpha=0.0).fit(X, y).decision_function(X)
        np.testing.assert_allclose(scores, expected, atol=2e-4)


@pytest.mark.sampled(5)
@each_loss
@pytest.mark.parametrize("size", [1e6, 1e9, 1e12, 1e99])
def test_one_row_that_is_huge_leaves_finite_scores(loss, size):
    X, y = linear_bipartite(3).sample(5000, random_state=0)
    X[777, 1] = size
    with warnings.catch_warnings():
        if size > 1e9:  # the last digits of one row outweigh all others: it may say so
            warnings.simplefilter("ignore", ConvergenceWarning)
        fit = ProperRanker(loss).fit(X, y)
    assert np.all(np.isfinite(fit.coef_))
    assert not np.any(np.isnan(fit.predict_proba(X)))


@pytest.mark.parametrize("alpha", [0.0, 1e-3])
@each_loss
def test_columns_that_say_nothing_new_do_no_harm(loss, alpha, overlapping):
    X, y = overlapping
    more = np.column_stack([X, X[:, 0], np.full(len(y), 5.0)])
    fit = ProperRanker(loss, alpha=alpha).fit(more, y)
    assert np.all(np.isfinite(fit.coef_))
    if alpha == 0:
        alone = ProperRanker(loss, alpha=0).fit(X, y)
        np.testing.assert_allclose(
            fit.decision_function(more), alone.decision_function(X), atol=1e-3
        )


@each_loss
def test_a_decision_value_of_zero_is_a_probability_of_one_half(loss, overlapping):
    X, y = overlapping
    fit = ProperRanker(loss).fit(X, y)
    scores, probability = fit.decision_function(X), fit.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(scores > 0, probability > 0.5)
    np.testing.assert_array_equal(fit.predict(X), (scores > 0).astype(int))
    np.testing.assert_allclose(probability, fit.loss_.inverse_link(scores), atol=1e-12)


def test_zero_is_one_half_for_a_link_that_sends_one_half_elsewhere(overlapping):
    X, y = overlapping
    fit = ProperRanker(balanced(Logistic(), 0.2)).fit(X, y)
    assert abs(fit._half) > 1
    np.testing.assert_array_equal(fit.decision_function(X) > 0, fit.predict_proba(X)[:, 1] > 0.5)
    # weighing the classes in the loss and in the rows is the same fit, up to the prior odds
    rows = ProperRanker(class_weight={0: 0.5 / 0.8, 1: 0.5 / 0.2}, alpha=1e-3)
    total = np.mean(np.where(y, 0.5 / 0.2, 0.5 / 0.8))
    same = rows.set_params(alpha=1e-3 / total, tol=1e-9).fit(X, y)
    exact = ProperRanker(balanced(Logistic(), 0.2), tol=1e-9).fit(X, y)
    np.testing.assert_allclose(exact.coef_, same.coef_, atol=1e-6)
    shift = exact.decision_function(X) - same.decision_function(X)
    np.testing.assert_allclose(shift, np.log(0.2 / 0.8), atol=1e-6)


@pytest.mark.parametrize("loss", ["squared", "squared_hinge", "canonical_spherical"])
def test_truncation_ties_probabilities_but_not_scores(loss, separable):
    X, y = separable
    fit = ProperRanker(loss).fit(X, y)
    far = np.vstack([X[y == 1] * 10, X[y == 1] * 20])
    probability, scores = fit.predict_proba(far), fit.decision_function(far)
    assert np.all(probability[:, 1] == 1.0)
    assert len(np.unique(scores)) == len(scores)
    logs = fit.predict_log_proba(far)
    np.testing.assert_array_equal(logs[:, 1], 0.0)
    np.testing.assert_array_equal(logs[:, 0], -np.inf)


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_logarithms_of_probabilities_do_not_underflow(loss, overlapping):
    X, y = overlapping
    fit = ProperRanker(loss).fit(X, y)
    logs = fit.predict_log_proba(1e4 * X)
    assert np.all(np.isfinite(logs)) and logs.min() < -1000


@pytest.mark.parametrize(
    ("loss", "fitted"),
    [
        ("spherical", CanonicalSpherical),
        (from_bayes_risk(quartic_risk, quartic_slope), type(canonical(Squared()))),
    ],
)
def test_a_loss_that_is_not_convex_is_fitted_with_its_canonical_link(
    loss, fitted, overlapping, capsys
):
    X, y = overlapping
    fit = ProperRanker(loss, verbose=1).fit(X, y)
    assert isinstance(fit.loss_, fitted) and fit.loss_.convex
    assert "is not convex in the score" in capsys.readouterr().out
    assert fit.optimality_gap_ < 1e-6


def test_a_loss_of_ones_own_without_curvature_needs_lbfgs(overlapping):
    X, y = overlapping
    own = canonical(from_bayes_risk(quartic_risk, quartic_slope))
    fit = ProperRanker(own).fit(X, y)
    assert fit.objective_ == pytest.approx(objective(fit, X, y), rel=1e-12)
    with pytest.raises(ValueError, match="lbfgs"):
        ProperRanker(own, solver="newton").fit(X, y)
    again = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(again.predict_proba(X), fit.predict_proba(X))


def test_a_warm_start_is_at_the_minimum_already(overlapping):
    X, y = overlapping
    fit = ProperRanker("exponential", warm_start=True).fit(X + FAR, y)
    before = fit.coef_.copy()
    fit.fit(X + FAR, y)
    assert len(fit.history_) <= 1
    np.testing.assert_allclose(fit.coef_, before, atol=1e-5)


@pytest.mark.parametrize("loss", ["logistic", "exponential", "squared"])
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize("most", [False, True])
def test_a_warm_start_far_from_the_rows_is_no_worse_than_a_fresh_one(
    loss, solver, most, overlapping
):
    X, y = overlapping
    few = y * (np.arange(len(y)) % 3 == 0)
    y = 1 - few if most else few
    fresh = ProperRanker(loss, solver=solver).fit(X, y)
    for shift in (-60.0, 60.0, 1000.0):
        moved = ProperRanker(loss, solver=solver, warm_start=True).fit(X + shift, y).fit(X, y)
        assert moved.objective_ == pytest.approx(fresh.objective_, rel=1e-6)
        np.testing.assert_allclose(moved.coef_, fresh.coef_, atol=2e-3)


def test_an_intercept_that_a_step_would_make_worse_is_kept(overlapping):
    X, y = overlapping
    few = np.arange(len(y)) < len(y) // 5
    data = LabelledData.of_arrays(X, few, intercepts=1)
    problem = PointwiseProblem(data, PointwiseTask(get_proper_loss("logistic"), 1e-3))
    far = np.append(np.zeros(X.shape[1]), 30.0)  # from where Newton's step leads to -1e13
    assert problem.value(problem.settle_intercept(far)) > 1e6
    result = Result(far, *problem.value_grad(far), 1, False)
    _settle(problem, result, None)
    assert result.coef is far and result.value == problem.value(far)


def test_balanced_classes_are_weighed_alike():
    X, y = linear_bipartite(3, prevalence=0.05).sample(4000, random_state=0)
    fit = ProperRanker(class_weight="balanced", alpha=0).fit(X, y)
    probability = fit.predict_proba(X)[:, 1]
    assert np.mean(probability[y == 1]) + np.mean(probability[y == 0]) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("loss", ["logistic", "exponential", "canonical_exponential"])
def test_separable_classes_without_a_penalty_are_named_as_the_cause(loss, separable):
    with pytest.warns(ConvergenceWarning, match="separable"):
        fit = ProperRanker(loss, alpha=0).fit(*separable)
    assert np.all(np.isfinite(fit.coef_))
    assert fit.score(*separable) == 1.0


def test_least_squares_has_a_minimum_on_separable_classes(separable):
    fit = ProperRanker("squared", alpha=0).fit(*separable)  # a warning would be an error
    assert np.all(np.isfinite(fit.coef_))


@each_loss
def test_the_bound_of_theorem_13_holds_for_what_was_fitted(loss):
    model = linear_bipartite(4, prevalence=0.3)
    fit = ProperRanker(loss).fit(*model.sample(300, random_state=0))
    X, _ = model.sample(5000, random_state=1)
    eta, scores = model.eta(X), fit.decision_function(X)
    bound = ranking_regret(fit.loss_, surrogate_regret(fit.loss_, eta, scores), np.mean(eta))
    assert exact_ranking_regret(eta, scores) <= bound.value
    assert exact_ranking_regret(eta, fit.loss_.truncate(scores)) <= bound.value


@pytest.mark.more
@each_loss
def test_the_ranking_regret_falls_as_rows_are_added(loss):
    model = linear_bipartite(5, prevalence=0.3)
    X, _ = model.sample(5000, random_state=99)
    eta = model.eta(X)

    def regret(n):
        fits = (ProperRanker(loss).fit(*model.sample(n, random_state=seed)) for seed in range(8))
        return np.mean([exact_ranking_regret(eta, fit.decision_function(X)) for fit in fits])

    regrets = [regret(n) for n in (60, 600, 6000)]
    assert regrets[0] > 3 * regrets[1] > 9 * regrets[2]


def test_the_calibration_report_counts_what_is_in_each_band():
    model = linear_bipartite(3, prevalence=0.2)
    fit = ProperRanker().fit(*model.sample(2000, random_state=0))
    X, y = model.sample(1000, random_state=1)
    report = fit.calibration_report(X, y, cuts=(10, 0.1, 1.0))
    order = np.argsort(-fit.decision_function(X))
    probability = fit.predict_proba(X)[order, 1]
    for band, rows in zip(report.bands, (order[:10], order[10:100], order[100:]), strict=True):
        assert band.rows == len(rows)
        assert band.positives == y[rows].sum()
        assert band.observed == pytest.approx(y[rows].mean())
        assert band.low <= band.observed <= band.high
    assert report.bands[0].predicted == pytest.approx(probability[:10].mean())
    assert report.whole.predicted == pytest.approx(probability.mean())
    assert report.brier_score == pytest.approx(np.mean((probability - y[order]) ** 2))


def test_the_calibration_report_shares_out_ties_at_a_cut(overlapping):
    X, y = overlapping
    fit = ProperRanker().fit(X, y)
    same = np.repeat(X[:1], 10, axis=0)
    report = fit.calibration_report(same, [1, 1, 1, 0, 0, 0, 0, 0, 0, 0], cuts=(5, 10))
    assert [band.positives for band in report.bands] == pytest.approx([1.5, 1.5])


def test_the_calibration_report_takes_weights_as_repetitions(overlapping):
    X, y = overlapping
    fit = ProperRanker().fit(X, y)
    weight = np.arange(len(y)) % 3
    weighted = fit.calibration_report(X, y, sample_weight=weight)
    repeated = fit.calibration_report(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    for a, b in zip(weighted.bands, repeated.bands, strict=True):
        assert a.predicted == pytest.approx(b.predicted)
        assert (a.rows, a.observed) == pytest.approx((b.rows, b.observed))


def test_right_probabilities_are_reported_reliable_and_wrong_ones_are_not():
    model = linear_bipartite(3, prevalence=0.3)
    X, y = model.sample(20_000, random_state=0)
    fit = ProperRanker(alpha=0).fit(X, y)
    held_out = model.sample(5000, random_state=2)
    assert fit.calibration_report(*held_out, level=0.999).reliable
    fit._offset += 1.0  # every probability too high
    wrong = fit.calibration_report(*held_out)
    assert not wrong.reliable
    assert "too high" in str(wrong)


def test_the_calibration_report_prints_a_line_a_band(overlapping):
    X, y = overlapping
    table = str(ProperRanker().fit(X, y).calibration_report(X, y, cuts=(0.1, 1.0), level=0.9))
    lines = table.splitlines()
    assert "90% interval" in lines[0]
    assert [line.split()[0] for line in lines[1:3]] == ["1-15", "16-150"]
    assert lines[-1].startswith("Brier score")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"cuts": ()}, "cuts is empty"),
        ({"cuts": (0.0,)}, "fraction"),
        ({"cuts": (1000,)}, "count"),
        ({"level": 1.0}, "level"),
        ({"y": np.full(150, 7)}, "other than the classes"),
        ({"y": np.zeros(3)}, "inconsistent"),
        ({"sample_weight": np.full(150, -1.0)}, "egative"),
    ],
)
def test_a_calibration_report_refuses_what_makes_no_sense(arguments, says, overlapping):
    X, y = overlapping
    fit = ProperRanker().fit(X, y)
    with pytest.raises(ValueError, match=says):
        fit.calibration_report(X, **{"y": y, **arguments})


def test_a_report_may_be_asked_of_rows_of_one_class(overlapping):
    X, y = overlapping
    report = ProperRanker().fit(X, y).calibration_report(X[y == 0], y[y == 0], cuts=(1.0,))
    assert report.whole.observed == 0.0 and report.whole.low == 0.0


@pytest.mark.parametrize(
    "parameters", [{"loss": "hinge"}, {"loss": 3}, {"solver": "coordinate"}, {"alpha": -1.0}]
)
def test_wrong_parameters_are_refused(parameters, overlapping):
    with pytest.raises(ValueError, match="parameter of ProperRanker"):
        ProperRanker(**parameters).fit(*overlapping)
