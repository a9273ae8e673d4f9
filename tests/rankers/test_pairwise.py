"""PairRanker: labels and groups against explicit pairs, and against solutions known elsewhere."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from toprank import PairRanker, Pairs, PNormPush, simulate
from toprank.bounds import exact_ranking_regret

LOSSES = ("squared_hinge", "hinge", "logistic", "exponential")


@pytest.mark.sampled(17)
@parametrize_with_checks(
    [
        *(PairRanker(loss=loss) for loss in LOSSES[1:]),
        PairRanker(price="power", p=2.0),
        PairRanker(solver="lbfgs"),
        PairRanker(kernel="rbf"),
        PairRanker(kernel="linear", kernel_on="pairs", alpha=1.0, tol=1e-9),
    ]
)
def test_scikit_learn_finds_nothing_to_say(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def graded():
    """(X, y, groups): 300 rows, five grades, uneven groups."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5)) * [1.0, 2.0, 0.5, 1.0, 1.0]
    y = np.digitize(X @ [1.0, -0.3, 0.5, 0.0, 0.2] + rng.normal(size=300), [-1.5, -0.5, 0.5, 1.5])
    return X, y, rng.choice(8, size=300, p=np.arange(1, 9) / 36)


def explicit(y, groups=None):
    wins = y[:, None] > y[None, :]
    if groups is not None:
        wins &= groups[:, None] == groups[None, :]
    return np.argwhere(wins)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("price", ["identity", "power"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_coefficients_from_labels_equal_those_from_explicit_pairs(
    loss, grouped, price, graded, monkeypatch
):
    X, y, groups = graded
    groups = groups if grouped else None
    monkeypatch.setattr("toprank.pair_sums.LISTED_UP_TO", 0)  # the fast ways, however few
    ranker = PairRanker(price, loss, alpha=1e-2, p=3.0, tol=1e-9)
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    for w in (None, weight):
        from_labels = clone(ranker).fit(X, y, groups=groups, sample_weight=w)
        from_pairs = clone(ranker).fit(X, pairs=explicit(y, groups), sample_weight=w)
        # the corners of the hinge are rounded: two ways may end on neighbouring levels of that
        atol, rel = (1e-3, 1e-7) if loss == "hinge" else (1e-6, 1e-9)
        np.testing.assert_allclose(from_labels.coef_, from_pairs.coef_, rtol=0, atol=atol)
        assert from_labels.objective_ == pytest.approx(from_pairs.objective_, rel=rel)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("loss", LOSSES)
def test_coefficients_from_real_labels_equal_those_from_explicit_pairs(loss):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 4))
    y = X @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=400)
    ranker = PairRanker(loss=loss, alpha=1e-2, tol=1e-9)
    from_labels = clone(ranker).fit(X, y)
    from_pairs = clone(ranker).fit(X, pairs=explicit(y))
    np.testing.assert_allclose(from_labels.coef_, from_pairs.coef_, rtol=0, atol=1e-6)


@pytest.mark.parametrize("alpha", [1e-3, 1e-1])
def test_hinge_with_two_classes_is_the_svm_of_difference_vectors(alpha):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3 == 0
    X = rng.normal(size=(60, 3)) + y[:, None] * [0.8, -0.4, 0.0]
    ours = PairRanker(loss="hinge", alpha=alpha).fit(X, y)
    pairs = explicit(y.astype(int))
    apart = X[pairs[:, 0]] - X[pairs[:, 1]]
    sign = np.where(np.arange(len(apart)) % 2, 1.0, -1.0)  # LinearSVC wants two classes
    svm = LinearSVC(
        loss="hinge", C=1 / (alpha * len(apart)), fit_intercept=False, tol=1e-8, max_iter=10**6
    )
    svm.fit(sign[:, None] * apart, sign)

    def objective(coef):
        return np.mean(np.maximum(0, 1 - apart @ coef)) + alpha / 2 * coef @ coef

    assert ours.objective_ == pytest.approx(objective(ours.coef_), rel=1e-10)
    assert objective(ours.coef_) == pytest.approx(objective(svm.coef_[0]), rel=1e-4)
    assert ours.optimality_gap_ < 1e-3


def test_logistic_is_the_logistic_regression_of_difference_vectors(graded):
    X, y, groups = graded
    ours = PairRanker(loss="logistic", alpha=1e-2, tol=1e-9).fit(X, y, groups=groups)
    pairs = explicit(y, groups)
    apart = X[pairs[:, 0]] - X[pairs[:, 1]]
    sign = np.where(np.arange(len(apart)) % 2, 1.0, -1.0)
    other = LogisticRegression(C=1 / (1e-2 * len(apart)), fit_intercept=False, tol=1e-10)
    other.fit(sign[:, None] * apart, sign)
    np.testing.assert_allclose(ours.coef_, other.coef_[0], atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_two_classes_with_a_power_price_are_the_p_norm_push(loss, graded):
    X, y, _ = graded
    settings = {"loss": loss, "alpha": 1e-2, "p": 3.0, "tol": 1e-8}
    pairs = PairRanker("power", **settings).fit(X, y > 2)
    push = PNormPush(**settings).fit(X, y > 2)
    # the hinge is minimised to a certified gap, not to a point
    np.testing.assert_allclose(pairs.coef_, push.coef_[0], atol=1e-3 if loss == "hinge" else 1e-6)
    assert pairs.objective_ == pytest.approx(push.objective_, rel=1e-4 if loss == "hinge" else 1e-9)


def test_a_larger_power_pushes_the_worst_losers_down(graded):
    X, y, _ = graded
    pairs = explicit(y)
    worst = []
    for p in (1.0, 16.0):
        scores = PairRanker("power", p=p, alpha=1e-3).fit(X, y).predict(X)
        wrong = scores[pairs[:, 0]] <= scores[pairs[:, 1]]
        worst.append(np.max(np.bincount(pairs[wrong, 1])))
    assert worst[1] < worst[0]


@pytest.mark.parametrize("loss", LOSSES)
def test_a_weight_is_a_repetition_count(loss, graded):
    X, y, groups = graded
    count = np.random.default_rng(2).integers(0, 3, len(y))
    ranker = PairRanker(loss=loss, alpha=1e-2, tol=1e-9)
    weighted = clone(ranker).fit(X, y, groups=groups, sample_weight=count)
    repeated = clone(ranker).fit(
        np.repeat(X, count, axis=0), np.repeat(y, count), groups=np.repeat(groups, count)
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-5)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)


def test_a_pair_weighs_the_product_of_its_rows(graded):
    X, _, _ = graded
    weight = np.where(np.arange(300) < 10, 2.0, 1.0)
    pairs = np.array([[0, 1], [2, 50], [60, 3], [70, 80], [90, 5]])
    repeats = (weight[pairs[:, 0]] * weight[pairs[:, 1]]).astype(int)
    weighted = PairRanker().fit(X, pairs=pairs, sample_weight=weight)
    repeated = PairRanker().fit(X, pairs=np.repeat(pairs, repeats, axis=0))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)


def test_the_ranking_depends_on_the_order_of_the_labels_alone(graded):
    X, y, _ = graded
    plain = PairRanker().fit(X, y)
    stretched = PairRanker().fit(X, np.exp(3.0 * y))
    np.testing.assert_array_equal(plain.coef_, stretched.coef_)


def test_preferences_without_labels_are_enough(graded):
    X, y, _ = graded
    pairs = explicit(y)[::7]
    by_array = PairRanker().fit(X, pairs=pairs)
    by_object = PairRanker().fit(X, y, pairs=Pairs(pairs, len(X)))  # y is then not looked at
    np.testing.assert_array_equal(by_array.coef_, by_object.coef_)
    assert by_array.n_pairs_ == len(pairs)
    assert by_array.score(X, y) > 0.75


def test_contradictory_and_cyclic_pairs_balance_out():
    X = np.eye(3)
    pairs = [[0, 1], [1, 2], [2, 0], [0, 1], [1, 0]]
    ranker = PairRanker(loss="logistic", alpha=0.1).fit(X, pairs=pairs)
    np.testing.assert_allclose(ranker.coef_, 0.0, atol=1e-7)
    assert ranker.score(X, pairs=pairs) == 0.5


def test_the_score_is_the_concordance_with_ties_one_half():
    X = np.array([[0.0], [1.0], [1.0], [2.0], [3.0]])
    y = np.array([0, 1, 2, 1, 3])
    ranker = PairRanker().fit(X, y)
    # nine pairs differ in label: the rows 1 and 2 tie, the rows 2 and 3 are the wrong way round
    assert ranker.score(X, y) == pytest.approx((9 - 1 - 0.5) / 9)
    groups = [0, 0, 1, 1, 1]
    assert ranker.score(X, y, groups=groups) == pytest.approx(3 / 4)
    assert ranker.score(X, pairs=[[2, 1], [4, 0]]) == pytest.approx(1.5 / 2)
    weight = np.array([1.0, 1.0, 3.0, 1.0, 0.0])
    # pairs 1>0, 2>0, 3>0, 2>1 (tie), 2>3 (wrong), with products 1, 3, 1, 3, 3
    assert ranker.score(X, y, sample_weight=weight) == pytest.approx((1 + 3 + 1 + 1.5) / 11)


def test_many_labels_are_scored_like_their_pairs(graded):
    X, y, groups = graded
    ranker = PairRanker().fit(X, y)
    coarse = np.round(ranker.coef_, 1)
    ranker.coef_ = coarse  # ties among the scores
    scores, pairs = ranker.predict(np.round(X)), explicit(y, groups)
    apart = scores[pairs[:, 0]] - scores[pairs[:, 1]]
    expected = np.mean(np.where(apart > 0, 1.0, np.where(apart == 0, 0.5, 0.0)))
    assert ranker.score(np.round(X), y, groups=groups) == pytest.approx(expected, rel=1e-12)


def test_compare_is_the_difference_of_scores(graded):
    X, y, _ = graded
    ranker = PairRanker().fit(X, y)
    expected = ranker.predict(X[:9]) - ranker.predict(X[9:18])
    np.testing.assert_array_equal(ranker.compare(X[:9], X[9:18]), expected)
    with pytest.raises(ValueError, match="9 rows and second 8"):
        ranker.compare(X[:9], X[:8])


def test_scores_are_linear_and_their_constant_is_told(graded):
    X, y, _ = graded
    for shift in (0.0, 1e9):  # far from zero the columns are read from a centre
        ranker = PairRanker().fit(X + shift, y)
        scores = ranker.predict(X + shift)
        expected = (X + shift) @ ranker.coef_ + ranker.intercept_
        np.testing.assert_allclose(scores, expected, atol=1e-5 if shift else 1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_and_float32_rows_give_the_model_of_dense_ones(loss, graded):
    X, y, groups = graded
    X = np.where(np.abs(X) > 0.5, X, 0.0).astype(np.float32)
    ranker = PairRanker(loss=loss, alpha=1e-2)
    dense = clone(ranker).fit(X.astype(float), y, groups=groups)
    for other in (X, sparse.csr_matrix(X), sparse.coo_array(X)):
        fitted = clone(ranker).fit(other, y, groups=groups)
        np.testing.assert_allclose(fitted.coef_, dense.coef_, atol=1e-6)
        np.testing.assert_allclose(fitted.predict(other), dense.predict(X), atol=1e-5)


def test_it_lives_in_pipelines_and_searches(graded):
    X, y, _ = graded
    pipeline = make_pipeline(StandardScaler(), PairRanker())
    search = GridSearchCV(pipeline, {"pairranker__alpha": [1e-3, 1.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.75
    assert np.all(cross_val_score(PairRanker(loss="logistic"), X, y, cv=3) > 0.75)
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(X), search.predict(X))


def test_warm_start_goes_on_from_the_last_fit(graded):
    X, y, _ = graded
    ranker = PairRanker(loss="logistic", warm_start=True).fit(X, y)
    cold = ranker.coef_
    ranker.fit(X, y)
    assert ranker.n_iter_ == 1
    np.testing.assert_allclose(ranker.coef_, cold, atol=1e-7)


def test_threads_change_no_bit(graded):
    X, y, groups = graded
    one, two = (PairRanker(n_jobs=n).fit(X, y, groups=groups) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)


def regret_curve(model, ranker, sizes, excess, repeats=6):
    fresh, _ = model.sample(1500, random_state=999)
    curve = []
    for n in sizes:
        regrets = []
        for seed in range(repeats):
            X, y = model.sample(n, random_state=seed)
            scores = clone(ranker).fit(X, y).predict(fresh)
            regrets.append(excess(fresh, scores))
        curve.append(float(np.mean(regrets)))
    return np.array(curve)


def rate(sizes, curve):
    """The exponent b of regret = c n^b."""
    return float(np.polyfit(np.log(sizes), np.log(curve), 1)[0])


SIZES = (50, 200, 800)


@pytest.mark.more
def test_without_noise_the_risk_falls_faster_than_one_over_root_n():
    model = simulate.regression(5)  # Section 5.2: the best risk is zero
    ranker = PairRanker(alpha=1e-6)
    curve = regret_curve(model, ranker, SIZES, model.excess_risk)
    assert np.all(np.diff(curve) < 0)
    assert rate(SIZES, curve) < -0.75


@pytest.mark.more
def test_with_noise_that_varies_the_excess_risk_falls():
    model = simulate.heteroscedastic(5)  # Section 5.3
    curve = regret_curve(model, PairRanker(alpha=1e-4), SIZES, model.excess_risk)
    assert np.all(np.diff(curve) < 0)
    assert rate(SIZES, curve) < -0.5


def test_the_excess_risk_of_two_classes_falls():
    model = simulate.linear_bipartite()  # Section 5.1: eta(X) has a bounded density

    def excess(X, scores):
        return exact_ranking_regret(model.eta(X), scores)

    curve = regret_curve(model, PairRanker(loss="logistic", alpha=1e-4), SIZES, excess)
    assert np.all(np.diff(curve) < 0)
    assert rate(SIZES, curve) < -0.5
