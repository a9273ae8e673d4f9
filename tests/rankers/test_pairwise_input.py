"""PairRanker meets ugly users: every refusal says what came and what to do."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from toprank import PairRanker, Pairs

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.digitize(X[:, 0] + 0.5 * RNG.normal(size=40), [-0.5, 0.5])


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("y", "keywords", "words"),
    [
        (None, {}, "requires y to be passed, but the target y is None"),
        (np.full(40, 3.0), {}, "every label in y is 3"),
        (np.where(np.arange(40) == 7, np.nan, Y), {}, "y contains NaN"),
        (np.where(Y > 1, "good", "bad"), {}, "grades must be numbers, larger is better"),
        (np.where(Y > 1, "10", "9"), {}, "grades must be numbers, larger is better"),
        (Y[:-1], {}, "inconsistent numbers of samples"),
        (Y, {"groups": np.arange(40)}, "in every group all labels are equal"),
        (Y, {"groups": np.arange(39)}, "groups has 39 entries, expected one per row: 40"),
        (
            Y,
            {"groups": np.where(np.arange(40) == 3, np.nan, 1.0)},
            "every row must be in a known group",
        ),
        (Y, {"groups": [None] + ["a"] * 39}, "every row must be in a known group"),
        (Y, {"groups": np.zeros(40), "pairs": [[0, 1]]}, "groups or pairs, not both"),
        (None, {"pairs": np.empty((0, 2))}, "no pair to rank: pairs is empty"),
        (None, {"pairs": [[0, 40]]}, "rows 0 to 39 only"),
        (None, {"pairs": [[3, 3]]}, "against itself"),
        (None, {"pairs": Pairs([[0, 1]], 41)}, "table of 41 rows, but X has 40"),
        (None, {"pairs": [[0, 1]], "sample_weight": np.arange(40.0)}, "names a row that has"),
        (Y, {"sample_weight": np.zeros(40)}, "at least one non-zero"),
        (Y, {"sample_weight": -np.ones(40)}, "negative"),
        (Y, {"sample_weight": np.full(40, np.nan)}, "NaN"),
        (Y, {"sample_weight": (Y == 1).astype(float)}, "every label in y is 1"),
    ],
)
def test_bad_input_is_refused_in_words_that_help(y, keywords, words):
    with pytest.raises(ValueError, match=words):
        PairRanker().fit(X, y, **keywords)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"loss": "zero_one"}, "'loss' parameter"),
        ({"kernel": "sigmoid"}, "'kernel' parameter"),
        ({"alpha": -1.0}, "'alpha' parameter"),
        ({"gamma": 0.0}, "'gamma' parameter"),
        ({"kernel_on": "rows"}, "'kernel_on' parameter"),
        ({"price": "log1p"}, "convex with the exponential loss only"),
    ],
)
def test_bad_settings_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        PairRanker(**settings).fit(X, Y)


@pytest.mark.parametrize(
    "y",
    [Y > 0, Y.astype(np.int8), Y.astype(np.float32), list(Y), pd.Series(Y, index=range(40, 0, -1))],
    ids=["bool", "int8", "float32", "list", "series"],
)
def test_labels_of_any_numeric_type_are_taken_in_their_order(y):
    reference = PairRanker().fit(X, np.asarray(y, dtype=float))
    np.testing.assert_array_equal(PairRanker().fit(X, y).coef_, reference.coef_)


def test_frames_of_either_kind_are_taken_with_their_columns():
    reference = PairRanker().fit(X, Y, groups=np.arange(40) % 4)
    names = ["a", "b", "c"]
    strings = [f"query {g}" for g in np.arange(40) % 4]
    for frame, group in (
        (pd.DataFrame(X, columns=names), pd.Series(strings)),
        (pl.DataFrame(X, schema=names), pl.Series(strings)),
    ):
        fitted = PairRanker().fit(frame, Y, groups=group)
        np.testing.assert_allclose(fitted.coef_, reference.coef_, atol=1e-12)
        assert fitted.feature_names_in_.tolist() == names


def test_groups_without_a_pair_do_no_harm():
    groups = np.where(np.arange(40) < 30, 0, np.arange(40))
    lonely = PairRanker().fit(X, Y, groups=groups)
    without = PairRanker().fit(X[:30], Y[:30])
    np.testing.assert_allclose(lonely.coef_, without.coef_, atol=1e-9)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "logistic", "exponential"])
@pytest.mark.parametrize("scale", [1e-8, 1e8, 1e98])
def test_features_of_any_scale_are_survived(loss, scale):
    ranker = PairRanker(loss=loss, alpha=1e-3)
    fitted = ranker.fit(X * [scale, 1.0, 1.0], Y)
    assert np.all(np.isfinite(fitted.coef_))
    assert fitted.score(X * [scale, 1.0, 1.0], Y) >= 0.45


def test_features_beyond_the_largest_size_are_refused():
    with pytest.raises(ValueError, match=r"in size, expected at most 1e\+100"):
        PairRanker().fit(X * [1e200, 1.0, 1.0], Y)


def test_a_column_far_from_zero_is_ranked_as_well_as_one_near_it():
    near = PairRanker().fit(X, Y)
    far = PairRanker().fit(X + np.array([1e9, 0.0, 0.0]), Y)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-5)


@pytest.mark.parametrize("loss", ["logistic", "exponential", "squared_hinge"])
def test_separable_pairs_without_a_penalty_are_told_of(loss):
    y = X @ [1.0, 2.0, -1.0]
    with pytest.warns(ConvergenceWarning, match="The pairs are separable"):
        ranker = PairRanker(loss=loss, alpha=0.0).fit(X, y)
    assert ranker.score(X, y) == 1.0


def test_too_few_iterations_are_told_of():
    with pytest.warns(ConvergenceWarning, match="stopped early"):
        PairRanker(loss="logistic", max_iter=1, tol=1e-12).fit(X, Y)


def test_constant_columns_get_no_weight():
    with_constant = np.column_stack([X, np.full(40, 5.0)])
    assert PairRanker().fit(with_constant, Y).coef_[-1] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "exponential"])
def test_a_hundred_thousand_rows_of_one_group_take_no_list_of_pairs(loss):
    rng = np.random.default_rng(0)
    large = rng.normal(size=(100_000, 3))
    y = large @ [1.0, -1.0, 0.0] + rng.normal(size=100_000)
    if loss == "logistic":
        y = np.round(y)  # heavy ties
    ranker = PairRanker(loss=loss, tol=1e-5).fit(large, y)
    assert ranker.n_pairs_ > 4 * 10**9
    assert abs(ranker.coef_[0] / ranker.coef_[1] + 1) < 0.02


@pytest.mark.sampled(3)
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "exponential"])
def test_a_hundred_thousand_groups_of_two_are_as_easy_as_their_pairs(loss):
    rng = np.random.default_rng(0)
    large = rng.normal(size=(200_000, 2))
    y = large @ [1.0, -1.0] + rng.normal(size=200_000)
    groups = np.repeat(np.arange(100_000), 2)
    grouped = PairRanker(loss=loss).fit(large, y, groups=groups)
    first = np.where(y[::2] > y[1::2], 0, 1) + 2 * np.arange(100_000)
    pairs = np.column_stack([first, first ^ 1])
    listed = PairRanker(loss=loss).fit(large, pairs=pairs)
    np.testing.assert_allclose(grouped.coef_, listed.coef_, atol=1e-5)


def test_sparse_rows_with_pairs_stay_sparse():
    thin = sparse.random(500, 2000, density=0.01, format="csr", random_state=0)
    weight = np.random.default_rng(0).normal(size=2000)
    ranker = PairRanker(alpha=1e-2).fit(thin, thin @ weight)
    assert ranker.score(thin, thin @ weight) > 0.95
