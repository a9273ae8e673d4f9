"""Metrics over blocks are those of all rows at once, or say how far off they may be."""

import numpy as np
import pandas as pd
import pytest
from block_sources import Pieces
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from toprank import IRPush, PNormPush, ProperRanker, blocks
from toprank.inference import interval
from toprank.metrics import METRICS, auc, block_list, f_skew, register


def data(n=900, seed=0, tied=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = (X @ [0.8, -0.4, 0.5] + rng.logistic(size=n) > 1.0).astype(int)
    if tied:
        X = np.round(X)
    return X, y, rng.integers(0, 4, size=n).astype(float)


RANKER = PNormPush(p=2.0).fit(*data(500, seed=7)[:2])


@pytest.fixture
def few_kept(monkeypatch):
    """As if there were too many rows to keep every score."""
    monkeypatch.setattr(block_list, "EXACT_UP_TO", 10)


def settings_of(name):
    return {**METRICS[name].settings, **({"k": 40} if METRICS[name].takes_k else {})}


def in_memory(name, X, y, weight, **how):
    scores = RANKER.decision_function(X)
    return METRICS[name].function(y, scores, sample_weight=weight, **how)


@pytest.mark.parametrize("name", METRICS)
class TestEveryMetric:
    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
    def test_is_that_of_all_rows_where_all_scores_are_kept(self, name, weighted):
        X, y, weight = data(tied=True)
        weight = weight if weighted else None
        found = RANKER.evaluate_blocks(blocks.from_arrays(X, y, weight, block_rows=70))
        metric = found.metric(name, **settings_of(name))
        assert found.exact and metric.exact and metric.bound == 0.0
        truth = in_memory(name, X, y, weight, **settings_of(name))
        assert metric.value == pytest.approx(truth, rel=1e-12)
        assert str(metric).endswith("(exact)")

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("bins", [1, 7, 100])
    @pytest.mark.parametrize("tied", [False, True], ids=["distinct", "tied"])
    def test_lies_within_its_bound_where_they_are_not(self, name, tied, bins, few_kept):
        X, y, weight = data(tied=tied)
        source = blocks.from_arrays(X, y, weight, block_rows=70)
        found = RANKER.evaluate_blocks(source, keep_top=30, bins=bins)
        metric = found.metric(name, **settings_of(name))
        truth = in_memory(name, X, y, weight, **settings_of(name))
        rounding = 1e-12 * abs(truth)
        assert metric.low - rounding <= truth <= metric.high + rounding
        assert abs(metric.value - truth) <= metric.bound + rounding
        assert not found.exact and len(found.bins.low) <= bins


def test_rows_below_the_cut_of_which_none_was_drawn_are_one_bin(few_kept):
    X, y, _ = data()
    source = blocks.from_arrays(X, y, block_rows=70)
    found = RANKER.evaluate_blocks(source, keep_top=len(y) - 1, bins=2)
    truth = auc(y, RANKER.decision_function(X))
    assert len(found.bins.low) == 1 and found.metric("auc").value == pytest.approx(truth)


class TestTheTop:
    @pytest.mark.parametrize("name", ["precision_at", "recall_at", "ndcg_at", "lift_at"])
    @pytest.mark.parametrize("tied", [False, True], ids=["distinct", "tied"])
    def test_is_exact_down_to_the_cut_and_says_so(self, name, tied, few_kept):
        X, y, _ = data(tied=tied)
        found = RANKER.evaluate_blocks(blocks.from_arrays(X, y, block_rows=70), keep_top=60, bins=9)
        for k in (1, 17, 60):
            metric = found.metric(name, k=k)
            assert metric.exact
            assert metric.value == pytest.approx(in_memory(name, X, y, None, k=k), rel=1e-12)

    def test_is_not_exact_beyond_the_cut_and_says_that(self, few_kept):
        X, y, _ = data()
        found = RANKER.evaluate_blocks(blocks.from_arrays(X, y), keep_top=60, bins=5)
        metric = found.metric("precision_at", k=200)
        assert not metric.exact and metric.bound > 0.001
        assert "within" in str(metric)

    def test_keeps_every_row_that_ties_with_the_last_one(self, few_kept):
        X, y, weight = data()
        X[:] = 0.0
        found = RANKER.evaluate_blocks(
            blocks.from_arrays(X, y, weight, block_rows=70), keep_top=2, bins=5
        )
        assert found.exact and found.top.shape == (3, 1)
        assert float(found.metric("auc")) == 0.5


class TestTheBound:
    def test_of_the_auc_is_half_the_pairs_that_share_a_bin(self, few_kept):
        X, y, _ = data()
        found = RANKER.evaluate_blocks(blocks.from_arrays(X, y), keep_top=30, bins=11)
        assert found.metric("auc").bound == pytest.approx(found.bound, rel=1e-9)

    def test_is_about_half_over_the_bins(self, few_kept):
        X, y, _ = data(20_000)
        found = RANKER.evaluate_blocks(blocks.from_arrays(X, y), keep_top=100, bins=500)
        assert found.bound < 0.6 / 500
        assert "bins" in found.note and not found.exact

    def test_vanishes_where_each_bin_has_one_score(self, few_kept):
        X, y, _ = data(5_000, tied=True)
        X[:, 1:] = 0.0
        found = RANKER.evaluate_blocks(blocks.from_arrays(X, y), keep_top=2, bins=1000)
        assert not found.exact and found.metric("auc").exact
        assert found.metric("auc").value == pytest.approx(in_memory("auc", X, y, None), rel=1e-12)


class TestTheSameList:
    @given(st.data())
    def test_however_rows_are_placed_and_merged(self, choose):
        X, y, weight = data(150, tied=choose.draw(st.booleans()))
        order = np.array(choose.draw(st.permutations(range(150))))
        if choose.draw(st.booleans()):
            order = order[np.argsort(y[order], kind="stable")]  # blocks of one class
        cuts = sorted(choose.draw(st.lists(st.integers(0, 150), max_size=9)))
        pieces = [(X[rows], y[rows], weight[rows]) for rows in np.split(order, cuts)]
        keep = choose.draw(st.integers(1, 40))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(block_list, "EXACT_UP_TO", 10)
            ours, theirs = (
                RANKER.evaluate_blocks(
                    Pieces(pieces, seed=choose.draw(st.integers(0, 99))), keep_top=keep
                )
                for _ in range(2)
            )
            whole = RANKER.evaluate_blocks(Pieces([(X, y, weight)]), keep_top=keep)
        np.testing.assert_array_equal(ours.top, theirs.top)
        np.testing.assert_allclose(ours.top, whole.top, rtol=1e-12)
        for part in ("positive", "negative", "low", "high"):
            np.testing.assert_array_equal(getattr(ours.bins, part), getattr(theirs.bins, part))
        assert np.sum(ours.weight) == np.sum(weight)

    def test_of_sparse_rows_and_of_every_linear_ranker(self):
        X, y, weight = data(tied=True)
        for model in (IRPush(), ProperRanker(), PNormPush(class_weight="balanced")):
            model.fit(X, y)
            for rows in (X, sparse.csr_array(X), X.astype(np.float32)):
                # whole fours of rows: some BLAS round those that are left over in another way
                found = model.evaluate_blocks(blocks.from_arrays(rows, y, weight, block_rows=100))
                truth = auc(y, model.decision_function(rows), sample_weight=weight)
                assert float(found.metric("auc")) == pytest.approx(truth, rel=1e-12)

    def test_of_rows_in_tensors(self):
        torch = pytest.importorskip("torch", reason="torch is not installed")
        X, y, weight = data()
        source = blocks.from_torch(*(torch.asarray(part) for part in (X, y, weight)))
        found = RANKER.evaluate_blocks(source).metric("auc")
        assert found.value == pytest.approx(in_memory("auc", X, y, weight), rel=1e-12)

    def test_of_rows_in_files(self, tmp_path):
        X, y, _ = data()
        table = pd.DataFrame(X, columns=list("abc")).assign(y=y)
        table.iloc[:400].to_parquet(tmp_path / "1.parquet")
        table.iloc[400:].to_parquet(tmp_path / "2.parquet")
        found = RANKER.evaluate_blocks(blocks.from_parquet(tmp_path, target="y")).metric("auc")
        assert found.value == pytest.approx(in_memory("auc", X, y, None), rel=1e-12)

    def test_with_labels_of_any_kind(self):
        X, y, _ = data()
        names = np.array(["bad", "good"])[y]
        found = PNormPush().fit(X, names).evaluate_blocks(blocks.from_arrays(X, names))
        assert set(found.y) == {"bad", "good"}
        assert f_skew(found.y, found.scores, sample_weight=found.weight) == pytest.approx(
            f_skew(y, PNormPush().fit(X, y).decision_function(X)), rel=1e-9
        )


class TestIntervals:
    @pytest.mark.parametrize(
        "name, how",
        [
            ("auc", {}),
            ("precision_at", {"k": 30}),
            ("average_precision", {}),
            ("recall_at", {"k": 0.1}),
        ],
    )
    def test_are_those_of_all_rows_where_all_scores_are_kept(self, name, how):
        X, y, weight = data(tied=True)
        found = RANKER.evaluate_blocks(blocks.from_arrays(X, y, weight, block_rows=70))
        ours = found.interval(name, level=0.9, **how)
        scores = RANKER.decision_function(X)
        theirs = interval(name, y, scores, level=0.9, sample_weight=weight, **how)
        for part in ("estimate", "low", "high", "standard_error"):
            assert getattr(ours, part) == pytest.approx(getattr(theirs, part), rel=1e-9)
        assert ours.note == theirs.note

    @pytest.mark.more
    def test_resample_rows_not_ties(self):
        X, y, weight = data(tied=True)
        found = RANKER.evaluate_blocks(blocks.from_arrays(X, y, weight, block_rows=70))
        theirs = interval("bedroc", y, RANKER.decision_function(X), sample_weight=weight)
        assert found.interval("bedroc").standard_error == pytest.approx(
            theirs.standard_error, rel=0.15
        )

    def test_say_what_the_bins_may_have_done(self, few_kept):
        X, y, _ = data()
        found = RANKER.evaluate_blocks(blocks.from_arrays(X, y), keep_top=60, bins=40)
        binned, top = found.interval("auc"), found.interval("precision_at", k=50)
        assert f"within {found.bound:.2g}" in binned.note
        assert "no part" in top.note
        whole = interval("auc", y, RANKER.decision_function(X))
        assert binned.estimate == pytest.approx(whole.estimate, abs=found.bound)
        assert binned.standard_error == pytest.approx(whole.standard_error, rel=0.05)
        assert "no bound" in found.interval("f_skew", n_resamples=30).note

    def test_refuse_what_belongs_to_single_rows(self):
        X, y, _ = data()
        found = RANKER.evaluate_blocks(blocks.from_arrays(X, y))
        with pytest.raises(TypeError, match="groups belongs to single rows"):
            found.interval("auc", groups=y)
        with pytest.raises(TypeError, match="no parameter 'groups'"):
            found.metric("precision_at", k=3, groups=y)


class TestRefuses:
    def test_rows_of_other_labels_or_of_one_class(self):
        X, y, _ = data()
        for labels in (y + 1, np.zeros_like(y), y * np.arange(len(y))):
            with pytest.raises(ValueError, match="fitted to"):
                RANKER.evaluate_blocks(blocks.from_arrays(X, labels))

    def test_rows_without_labels_and_without_rows(self):
        X, y, _ = data()
        with pytest.raises(ValueError, match="no labels"):
            RANKER.evaluate_blocks(blocks.from_arrays(X))
        with pytest.raises(ValueError, match="both classes"):
            RANKER.evaluate_blocks(Pieces([(X[:0], y[:0])]))

    def test_scores_that_are_no_numbers_and_says_where(self):
        X, y, _ = data()
        X[100, 1] = np.nan
        with pytest.raises(ValueError, match="block 1 is not a finite number"):
            RANKER.evaluate_blocks(Pieces([(X[:90], y[:90]), (X[90:], y[90:])]))

    def test_negative_weights(self):
        X, y, weight = data()
        weight[3] = -1.0
        with pytest.raises(ValueError, match="negative"):
            RANKER.evaluate_blocks(Pieces([(X, y, weight)]))

    @pytest.mark.parametrize("how", [{"keep_top": 0}, {"bins": 2.5}, {"keep_top": True}])
    def test_numbers_that_are_no_counts(self, how):
        X, y, _ = data()
        with pytest.raises(ValueError, match="whole number"):
            RANKER.evaluate_blocks(blocks.from_arrays(X, y), **how)

    def test_a_metric_that_takes_no_weights(self):
        X, y, _ = data()
        register(lambda y, s: 1.0, name="plain", higher_is_better=True)
        try:
            with pytest.raises(TypeError, match="plain takes no sample_weight"):
                RANKER.evaluate_blocks(blocks.from_arrays(X, y)).metric("plain")
        finally:
            del METRICS["plain"]

    def test_an_unknown_metric(self):
        X, y, _ = data()
        with pytest.raises(ValueError, match="Unknown metric"):
            RANKER.evaluate_blocks(blocks.from_arrays(X, y)).metric("accuracy")
