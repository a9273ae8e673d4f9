"""A fit to blocks is the fit to the whole array, however the rows are cut and placed."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from block_sources import Pieces
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from toprank import IRPush, PNormPush, PNormPushCV, ProperRanker, PushRanker, blocks


def data(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1.0, 2.0, 0.5, 1.0]
    y = (X @ [0.8, -0.4, 0.5, 0.0] + rng.logistic(size=n) > 1.0).astype(int)
    return X, y, rng.integers(0, 4, size=n).astype(float)


def same_fit(left, right, rtol=1e-10):
    # where nothing is learned, rounding leads to other coefficients near zero within the same gap
    nothing = np.abs(right.coef_).max() < 1e-4
    least = 1e-6 if nothing else 0.0
    for name in ("coef_", "intercept_", "objective_"):
        ours, theirs = np.asarray(getattr(left, name)), np.asarray(getattr(right, name))
        assert np.abs(ours - theirs).max() <= rtol * np.abs(theirs).max() + least, name
    if np.isfinite(right.optimality_gap_):  # sparse arrays have no certificate without a penalty
        rounding = 1e-11 * max(1.0, abs(right.objective_))
        assert left.optimality_gap_ == pytest.approx(
            right.optimality_gap_, rel=1e-6, abs=max(least, rounding)
        )
    if not nothing:
        assert left._slope == pytest.approx(right._slope, rel=1e-8)
    np.testing.assert_array_equal(left.classes_, right.classes_)
    assert left.n_features_in_ == right.n_features_in_


RANKERS = {
    "push": PNormPush(),
    "hard push": PNormPush(p=64.0),
    "largest height": PNormPush(p=np.inf, alpha=0.1),
    "unpenalised": PNormPush(p=2.0, alpha=0.0),
    "paper's link": PNormPush(link="p_classification"),
    "balanced": PNormPush(class_weight="balanced"),
    "quasi-Newton": PNormPush(solver="lbfgs"),
    "bottom": PushRanker(end="bottom"),
    "both ends": PushRanker(end="both", balance=0.5),
    "both ends, largest": PushRanker(price="max", end="both", alpha=0.1),
    "IR push": IRPush(),
    "IR push, bottom": PushRanker(price="log1p", end="bottom"),
    "IR push, both": PushRanker(price="log1p", end="both", balance=2.0),
    "exponential price": PushRanker(price="exponential", alpha=0.1),
    "exponential price, both": PushRanker(price="exponential", alpha=0.1, end="both"),
    "own price": PushRanker(price=(np.square, lambda s: 2 * s, lambda s: 2 + 0 * s), alpha=0.1),
    "own price, no curvature": PushRanker(price=(np.square, lambda s: 2 * s), alpha=0.1),
    "proper": ProperRanker(),
    "proper, weighed": ProperRanker("exponential", class_weight={0: 1.0, 1: 3.0}),
    "proper, squared": ProperRanker("squared", solver="lbfgs"),
    "logistic": PNormPush(p=2.0, loss="logistic"),
    "hinge": PNormPush(p=2.0, loss="hinge"),
    "TopPush": PushRanker(price="max", loss="squared_hinge"),
    "coordinate": PNormPush(solver="coordinate", max_iter=15),
}


@pytest.fixture(params=RANKERS, ids=lambda name: name.replace(" ", "-"))
def ranker(request):
    return clone(RANKERS[request.param])


class TestTheSameModel:
    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
    def test_as_the_fit_to_the_array(self, ranker, weighted):
        X, y, weight = data()
        weight = weight if weighted else None
        whole = clone(ranker).fit(X, y, weight)
        same_fit(ranker.fit_blocks(blocks.from_arrays(X, y, weight, block_rows=37)), whole)
        assert ranker.n_iter_ == whole.n_iter_
        assert len(ranker.history_) == len(whole.history_)

    @pytest.mark.sampled(5)
    def test_of_a_sparse_matrix(self, ranker):
        X, y, weight = data()
        X = sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
        whole = clone(ranker).fit(X, y, weight)
        same_fit(ranker.fit_blocks(blocks.from_arrays(X, y, weight, block_rows=37)), whole)

    @pytest.mark.sampled(5)
    def test_when_the_merge_runs_in_any_order_over_rebuilt_blocks(self, ranker):
        if isinstance(getattr(ranker, "price", None), tuple):
            pytest.skip("lambdas do not travel to other processes")
        X, y, weight = data()
        cuts = [0, 0, 11, 150, 151, 399]
        pieces = list(zip(*(np.split(part, cuts) for part in (X, y, weight)), strict=True))
        whole = clone(ranker).fit(X, y, weight)
        same_fit(ranker.fit_blocks(Pieces(pieces, order=[4, 0, 6, 2, 5, 1, 3])), whole)

    @pytest.mark.more
    @given(st.data())
    def test_however_rows_are_placed(self, choose):
        X, y, weight = data(120)
        order = np.array(choose.draw(st.permutations(range(120))))
        if choose.draw(st.booleans()):
            order = order[np.argsort(y[order], kind="stable")]  # blocks of one class
        cuts = sorted(choose.draw(st.lists(st.integers(0, 120), max_size=9)))
        pieces = [(X[rows], y[rows], weight[rows]) for rows in np.split(order, cuts)]
        merge_order = choose.draw(st.permutations(range(len(pieces))))
        for model in (PNormPush(p=8.0), IRPush(), ProperRanker()):
            whole = clone(model).fit(X, y, weight)
            same_fit(model.fit_blocks(Pieces(pieces, merge_order)), whole)

    @pytest.mark.parametrize(
        "model",
        [PNormPush(), PNormPush(p=32.0), PushRanker(end="both"), IRPush(), ProperRanker()],
        ids=["push", "hard", "both", "IR", "proper"],
    )
    def test_of_so_many_rows_that_a_sample_leads_the_way(self, model):
        X, y, weight = data(30_000)
        model.set_params(tol=1e-12)
        whole = clone(model).fit(X, y, weight)
        model.fit_blocks(blocks.from_arrays(X, y, weight, block_rows=4099))
        same_fit(model, whole)
        passes = model.passes_
        assert passes["labels"] == passes["describe"] == 1
        assert passes.get("evaluate", passes.get("pointwise", 0)) <= 10

    def test_of_the_same_path_where_the_hessian_is_exact(self):
        X, y, _ = data(30_000)
        whole = PushRanker(end="both").fit(X, y)
        same_fit(PushRanker(end="both").fit_blocks(blocks.from_arrays(X, y)), whole, rtol=1e-13)

    def test_of_features_beyond_the_limit_of_exact_hessians(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(30_000, 70))
        y = X[:, 0] + rng.logistic(size=len(X)) > 1
        for model in (PNormPush(tol=1e-11), ProperRanker(tol=1e-11)):
            whole = clone(model).fit(X, y)
            same_fit(model.fit_blocks(blocks.from_arrays(X, y)), whole, rtol=1e-9)

    @pytest.mark.more
    def test_of_wide_rows_from_a_file_in_few_passes(self, tmp_path):
        pytest.importorskip("pyarrow")
        rng = np.random.default_rng(0)
        X = rng.normal(size=(30_000, 70))
        y = (X @ np.linspace(-0.3, 0.3, 70) + rng.logistic(size=len(X)) > 3).astype(np.int8)
        table = pd.DataFrame(X, columns=[f"x{j}" for j in range(70)]).assign(y=y)
        table.to_parquet(tmp_path / "rows.parquet")
        source = blocks.from_parquet(tmp_path, target="y", block_rows=5000)
        model = PNormPush(p=4).fit_blocks(source)
        assert model.passes_["evaluate"] <= 6  # eight with a Hessian of evenly spaced rows
        whole = PNormPush(p=4, tol=1e-10).fit(X, y)
        np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-5)

    def test_with_scores_far_beyond_the_range_of_exponentials(self):
        X, y, _ = data()
        start = np.full((1, 4), 1e4)
        for p in (1.0, 4.0, 1000.0):
            model = PNormPush(p=p, warm_start=True, alpha=1.0)
            whole = clone(model)
            model.coef_, whole.coef_ = start.copy(), start.copy()
            whole.fit(X, y)
            same_fit(model.fit_blocks(blocks.from_arrays(X, y, block_rows=29)), whole)

    def test_of_columns_far_from_zero_or_huge(self):
        X, y, _ = data()
        X = X * [1.0, 1e98, 1.0, 1.0] + [1e9, 0.0, 0.0, 0.0]
        whole = PNormPush().fit(X, y)
        model = PNormPush().fit_blocks(blocks.from_arrays(X, y, block_rows=50))
        np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-9)
        scores = model.decision_function(X)
        np.testing.assert_allclose(scores, whole.decision_function(X), rtol=1e-7)

    @pytest.mark.parametrize("dtype", [np.float32, np.int8, bool])
    def test_of_other_types_of_numbers(self, dtype):
        X, y, _ = data()
        X = (10 * X).astype(dtype)
        whole = PNormPush().fit(X, y)
        same_fit(PNormPush().fit_blocks(blocks.from_arrays(X, y, block_rows=50)), whole)

    @pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
    def test_of_a_frame_with_its_names(self, frame):
        X, y, _ = data()
        X = frame({f"x{j}": X[:, j] for j in range(4)})
        model = PNormPush().fit_blocks(blocks.from_arrays(X, y))
        same_fit(model, PNormPush().fit(X, y))
        assert model.feature_names_in_.tolist() == ["x0", "x1", "x2", "x3"]
        model.fit_blocks(blocks.from_arrays(X.to_numpy(), y))
        assert not hasattr(model, "feature_names_in_")

    @pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [-1.0, 1.0], [3, 7]])
    def test_whatever_the_labels(self, labels):
        X, y, _ = data()
        y = np.array(labels)[y]
        same_fit(PNormPush().fit_blocks(blocks.from_arrays(X, y)), PNormPush().fit(X, y))

    def test_from_a_warm_start(self):
        X, y, _ = data()
        model = PNormPush(warm_start=True).fit(X, y)
        model.fit_blocks(blocks.from_arrays(X, y))
        assert model.passes_["evaluate"] == 1

    def test_for_any_number_of_threads_to_the_last_bit(self):
        X, y, weight = data(3000)
        one, four = (
            PNormPush().fit_blocks(blocks.from_arrays(X, y, weight, block_rows=100, n_jobs=n_jobs))
            for n_jobs in (1, 4)
        )
        np.testing.assert_array_equal(one.coef_, four.coef_)
        np.testing.assert_array_equal(one.intercept_, four.intercept_)

    def test_with_rows_of_weight_zero_left_out(self):
        X, y, weight = data()
        there = weight > 0
        whole = PNormPush().fit(X[there], y[there], weight[there])
        same_fit(PNormPush().fit_blocks(blocks.from_arrays(X, y, weight, block_rows=3)), whole)


class TestRefusals:
    def fit(self, X, y, weight=None, model=None):
        return (model or PNormPush()).fit_blocks(blocks.from_arrays(X, y, weight, block_rows=50))

    def test_of_one_class(self):
        X, y, _ = data()
        with pytest.raises(ValueError, match="one class only"):
            self.fit(X, np.zeros(len(y)))

    def test_of_many_classes_spread_over_blocks(self):
        X, _, _ = data()
        with pytest.raises(ValueError, match=r"Only binary.*4 classes"):
            self.fit(X, np.arange(len(X)) // 100)

    def test_of_a_target_that_is_a_quantity(self):
        X, _, _ = data()
        with pytest.raises(ValueError, match="continuous"):
            self.fit(X, X[:, 0])

    def test_of_labels_that_are_missing(self):
        X, y, _ = data()
        with pytest.raises(ValueError, match="NaN"):
            self.fit(X, np.where(np.arange(len(y)) == 70, np.nan, y))
        words = np.array(["no", "yes"], dtype=object)[y]
        words[70] = None
        with pytest.raises(ValueError, match="a missing value, in 1 of 400 rows, first in row 70"):
            self.fit(X, words)
        with pytest.raises(ValueError, match="no labels"):
            self.fit(X, None)

    @pytest.mark.parametrize(("wrong", "what"), [(np.nan, "NaN"), (-np.inf, "infinity")])
    def test_of_numbers_that_are_none_by_column_and_place(self, wrong, what):
        X, y, _ = data()
        X[120, 2] = wrong
        with pytest.raises(ValueError, match=f"{what}: column 2, in rows 100 to 149"):
            self.fit(X, y)

    @pytest.mark.parametrize(
        ("weight", "message"),
        [(-1.0, "negative values"), (np.nan, "NaN or infinity")],
    )
    def test_of_bad_weights(self, weight, message):
        X, y, weights = data()
        weights[33] = weight
        with pytest.raises(ValueError, match=message):
            self.fit(X, y, weights)

    def test_of_a_class_without_weight(self):
        X, y, _ = data()
        with pytest.raises(ValueError, match="Every positive row has sample_weight 0"):
            self.fit(X, y, np.where(y == 1, 0.0, 1.0))

    def test_of_arrays_where_a_source_is_expected(self):
        X, _, _ = data()
        with pytest.raises(TypeError, match=r"Expected a block source, got ndarray.*from_arrays"):
            PNormPush().fit_blocks(X)

    def test_of_folds_that_are_no_matter_of_single_rows(self):
        X, y, _ = data()
        with pytest.raises(TypeError, match="put into folds one by one"):
            PNormPushCV(cv=[([0], [1])]).fit_blocks(blocks.from_arrays(X, y))

    def test_of_a_link_that_does_not_fit(self):
        X, y, _ = data()
        with pytest.raises(ValueError, match="p_classification"):
            self.fit(X, y, model=PNormPush(p=np.inf, link="p_classification"))

    def test_separable_classes_without_a_penalty_are_named(self, separable):
        X, y = separable
        with pytest.warns(ConvergenceWarning, match="separable"):
            model = self.fit(X, y, model=PNormPush(alpha=0.0))
        assert np.all(np.isfinite(model.coef_))

    def test_a_solver_that_stops_early_is_named(self):
        X, y, _ = data()
        with pytest.warns(ConvergenceWarning, match="stopped early"):
            self.fit(X, y, model=PNormPush(max_iter=1))


class TestScores:
    def test_are_those_of_the_decision_function(self):
        X, y, _ = data()
        model = PNormPush().fit(X, y)
        scores = model.score_blocks(blocks.from_arrays(X, block_rows=37))
        np.testing.assert_allclose(scores, model.decision_function(X), rtol=1e-13)

    def test_of_a_sparse_matrix_and_of_pieces(self):
        X, y, _ = data()
        model = ProperRanker().fit(X, y)
        thin = model.score_blocks(blocks.from_arrays(sparse.csr_array(X), block_rows=37))
        pieces = model.score_blocks(Pieces([(X[:0],), (X[:100],), (X[100:],)]))
        np.testing.assert_allclose(thin, model.decision_function(X), atol=1e-13)
        np.testing.assert_allclose(pieces, model.decision_function(X), atol=1e-13)

    def test_need_the_columns_of_the_fit(self):
        X, y, _ = data()
        frame = pd.DataFrame(X, columns=list("abcd"))
        model = PNormPush().fit(frame, y)
        with pytest.raises(ValueError, match="has 3 features"):
            model.score_blocks(blocks.from_arrays(X[:, :3]))
        with pytest.raises(ValueError, match=r"feature 'b' where PNormPush was fitted with 'a'"):
            model.score_blocks(blocks.from_arrays(frame[list("bacd")]))
