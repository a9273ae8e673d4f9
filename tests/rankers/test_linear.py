"""What may change a linear ranking, and what may not."""

import numpy as np
import pytest
from scipy import sparse

from toprank import IRPush, PNormPush, PushRanker

#: One of each kind of objective, solved far enough that six digits can be compared.
RANKERS = [
    PNormPush(p=4, tol=1e-10),
    PNormPush(p=64, tol=1e-10),
    PNormPush(p=1, solver="lbfgs", tol=1e-8),
    PNormPush(p=4, loss="logistic", tol=1e-10),
    PNormPush(p=2, loss="squared_hinge", tol=1e-10),
    PNormPush(p=4, loss="hinge", alpha=0.01),
    PNormPush(p=np.inf, alpha=0.01),
    IRPush(tol=1e-11),
    PushRanker(price="exponential", tol=1e-11),
    PushRanker(p=4, end="bottom", tol=1e-10),
    PushRanker(p=4, end="both", balance=2.0, tol=1e-10),
    PushRanker(price="identity", tol=1e-10),
]
HOMOGENEOUS = [r for r in RANKERS if not isinstance(r, IRPush) and "expon" not in str(r)]


def each(rankers):
    return pytest.mark.parametrize("ranker", rankers, ids=repr)


@each(RANKERS)
def test_a_weight_is_a_repetition_count(ranker, overlapping):
    X, y = overlapping
    count = np.random.default_rng(0).integers(0, 4, size=len(y))
    repeated = ranker.fit(np.repeat(X, count, axis=0), np.repeat(y, count))
    coef, intercept, objective = repeated.coef_, repeated.intercept_, repeated.objective_
    weighted = ranker.fit(X, y, sample_weight=count)
    np.testing.assert_allclose(weighted.coef_, coef, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(weighted.intercept_, intercept, rtol=1e-6, atol=1e-6)
    assert weighted.objective_ == pytest.approx(objective, rel=1e-9)


@each(RANKERS)
def test_permuting_the_rows_changes_nothing(ranker, overlapping):
    X, y = overlapping
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=len(y))
    coef, intercept = (lambda fit: (fit.coef_, fit.intercept_))(ranker.fit(X, y, weight))
    order = np.random.default_rng(2).permutation(len(y))
    again = ranker.fit(X[order], y[order], weight[order])
    np.testing.assert_allclose(again.coef_, coef, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(again.intercept_, intercept, rtol=1e-6, atol=1e-6)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("constant", [0.0, 1.0, -1e6])
@each(RANKERS)
def test_a_constant_feature_gets_no_weight_and_changes_no_other(ranker, constant, overlapping):
    X, y = overlapping
    coef = ranker.fit(X, y).coef_
    wider = ranker.fit(np.column_stack([X, np.full(len(y), constant)]), y)
    np.testing.assert_allclose(wider.coef_[:, :-1], coef, rtol=1e-6, atol=1e-8)
    assert abs(wider.coef_[0, -1]) <= 1e-8


@each(RANKERS)
def test_moving_a_feature_changes_no_score(ranker, overlapping):
    X, y = overlapping
    scores = ranker.fit(X, y).decision_function(X)
    moved = ranker.fit(X + 1e6, y).decision_function(X + 1e6)
    np.testing.assert_allclose(moved, scores, atol=1e-5 * np.ptp(scores))


@each(RANKERS)
def test_a_duplicate_column_shares_the_weight(ranker, overlapping):
    X, y = overlapping
    fit = ranker.fit(np.column_stack([X, X[:, 0]]), y)
    assert np.isfinite(fit.coef_).all()
    assert fit.coef_[0, 0] == pytest.approx(fit.coef_[0, -1], rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("loss", ["exponential", "logistic", "squared_hinge"])
@pytest.mark.parametrize("p", [1.0, 4.0])
def test_pulling_up_from_the_bottom_mirrors_pushing_down_from_the_top(p, loss, overlapping):
    X, y = overlapping
    top = PushRanker(p=p, loss=loss, end="top", tol=1e-10).fit(X, y)
    bottom = PushRanker(p=p, loss=loss, end="bottom", tol=1e-10).fit(X, 1 - y)
    np.testing.assert_allclose(bottom.coef_, -top.coef_, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("price", ["exponential", "log1p", "max"])
def test_the_mirror_holds_for_every_price(price, overlapping):
    X, y = overlapping
    top = PushRanker(price, end="top", alpha=0.1, tol=1e-10).fit(X, y)
    bottom = PushRanker(price, end="bottom", alpha=0.1, tol=1e-10).fit(X, 1 - y)
    np.testing.assert_allclose(bottom.coef_, -top.coef_, rtol=1e-6, atol=1e-8)


def test_with_p_of_one_both_ends_are_the_same(overlapping):
    fits = [PushRanker(p=1, end=end, tol=1e-10).fit(*overlapping) for end in ("top", "bottom")]
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-7)


def test_the_named_rankers_are_special_push_rankers(overlapping):
    pairs = [
        (PNormPush(p=3), PushRanker("power", 3.0)),
        (PNormPush(p=1), PushRanker("identity")),
        (PNormPush(p=np.inf), PushRanker("max")),
        (IRPush(), PushRanker("log1p")),
    ]
    for named, general in pairs:
        np.testing.assert_array_equal(
            named.fit(*overlapping).coef_, general.fit(*overlapping).coef_
        )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0, 1: 7.0}])
@each(HOMOGENEOUS)
def test_class_weights_move_the_intercept_but_not_the_ranking(ranker, class_weight, overlapping):
    X, y = overlapping
    coef, intercept = (lambda fit: (fit.coef_, fit.intercept_))(ranker.fit(X, y))
    balance = ranker.set_params(class_weight=class_weight)
    try:
        weighted = balance.fit(X, y)
    finally:
        balance.set_params(class_weight=None)
    np.testing.assert_allclose(weighted.coef_, coef, rtol=1e-6, atol=1e-8)
    assert abs(weighted.intercept_[0] - intercept[0]) > 1e-3 * np.std(X @ coef[0])


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_a_warm_start_at_the_solution_takes_almost_no_iterations(solver, overlapping):
    ranker = PNormPush(p=16, solver=solver, warm_start=True).fit(*overlapping)
    first, coef = ranker.n_iter_, ranker.coef_.copy()
    ranker.fit(*overlapping)
    assert ranker.n_iter_ <= 1 < first
    np.testing.assert_allclose(ranker.coef_, coef, atol=1e-5)


def test_a_warm_start_follows_a_change_of_p(overlapping):
    ranker = PNormPush(p=4, warm_start=True, tol=1e-10).fit(*overlapping)
    warm = ranker.set_params(p=6).fit(*overlapping)
    cold = PNormPush(p=6, tol=1e-10).fit(*overlapping)
    np.testing.assert_allclose(warm.coef_, cold.coef_, rtol=1e-6)


def test_a_warm_start_with_other_columns_starts_anew(overlapping):
    X, y = overlapping
    ranker = PNormPush(warm_start=True).fit(X, y).fit(X[:, :2], y)
    np.testing.assert_allclose(ranker.coef_, PNormPush().fit(X[:, :2], y).coef_)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "ranker",
    [
        PNormPush(),
        PNormPush(solver="lbfgs"),
        PNormPush(loss="logistic", max_iter=8),
        IRPush(),
        PushRanker(end="both"),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_any_number_of_threads_gives_the_same_bits(ranker):
    rng = np.random.default_rng(0)
    y = rng.random(30_000) < 0.3
    X = rng.normal(size=(30_000, 8)) + 0.5 * y[:, None]
    one, two, three = (ranker.set_params(n_jobs=n).fit(X, y).coef_.copy() for n in (1, 2, 3))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "coordinate"])
def test_verbose_prints_a_line_an_iteration(solver, overlapping, capsys):
    fit = PNormPush(solver=solver, verbose=1, max_iter=1000).fit(*overlapping)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == fit.n_iter_
    assert all("PNormPush" in line and "objective" in line for line in lines)


def test_silence_is_the_default(overlapping, capsys):
    PNormPush().fit(*overlapping)
    assert capsys.readouterr() == ("", "")


@pytest.mark.sampled(5)
@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array, sparse.csc_array])
@each(RANKERS)
def test_sparse_and_dense_features_give_the_same_ranking(ranker, container, overlapping):
    X, y = overlapping
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    dense = ranker.fit(X, y)
    coef, scores = dense.coef_, dense.decision_function(X)
    fit = ranker.fit(container(X), y)
    np.testing.assert_allclose(fit.coef_, coef, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(fit.decision_function(container(X)), scores, atol=1e-5)


def test_single_precision_features_are_summed_in_double(overlapping):
    X, y = overlapping
    single = X.astype(np.float32)
    exact = PNormPush(tol=1e-10).fit(single.astype(np.float64), y)
    fit = PNormPush(tol=1e-10).fit(single, y)
    np.testing.assert_allclose(fit.coef_, exact.coef_, rtol=1e-7)
    assert fit.coef_.dtype == fit.decision_function(single).dtype == np.float64


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int8, np.int64, np.float16])
@each([PNormPush(), PNormPush(loss="logistic"), PNormPush(solver="coordinate")])
def test_small_integers_and_booleans_count_as_numbers(ranker, dtype, overlapping):
    X, y = overlapping
    X = (X > 0.3).astype(dtype)
    exact = ranker.fit(X.astype(np.float64), y).coef_
    np.testing.assert_allclose(ranker.fit(X, y).coef_, exact, rtol=1e-9)
    if dtype is not np.float16:  # which SciPy does not store
        np.testing.assert_allclose(ranker.fit(sparse.csr_array(X), y).coef_, exact, rtol=1e-5)


@pytest.mark.parametrize("loss", ["exponential", "squared_hinge"])
def test_where_the_maximum_scores_all_rows_alike_a_finite_p_does_not(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = X[:, 0] + 2 * rng.normal(size=400) > 2.0  # positives amid the negatives (Menon 2019)
    assert np.ptp(PNormPush(np.inf, loss=loss).fit(X, y).decision_function(X)) < 1e-3
    assert np.ptp(PNormPush(64, loss=loss).fit(X, y).decision_function(X)) > 1e-2
