"""A sample keeps what matters at the top, is unbiased for the rest, and is told its error."""

import numpy as np
import pandas as pd
import pytest
from block_sources import Pieces
from scipy import sparse

from toprank import IRPush, PNormPush, ProperRanker
from toprank.blocks import from_arrays, from_batches, sample_negatives

RNG = np.random.default_rng(0)
N = 12_000
X = RNG.normal(size=(N, 4))
Y = (X @ [1.0, -0.5, 0.3, 0.0] + RNG.logistic(size=N) > 3.5).astype(int)
FIRST = PNormPush(p=4).fit(X[:2000], Y[:2000])
SCORES = FIRST.decision_function(X)


def rows_of(source):
    parts = list(source.read())
    return tuple(np.concatenate([getattr(b, name) for b in parts]) for name in ("X", "y", "weight"))


@pytest.mark.parametrize("keep_top", [300, 0.05, 0, 1.0])
def test_positives_and_the_hardest_negatives_are_kept_whole(keep_top):
    sample = sample_negatives(from_arrays(X, Y), FIRST, keep_top=keep_top, rate=0.2)
    _, y, weight = rows_of(sample)
    negatives = np.sum(Y == 0)
    count = keep_top if isinstance(keep_top, int) else int(np.ceil(keep_top * negatives))
    assert np.sum(y == 1) == np.sum(Y == 1)
    assert np.all(weight[y == 1] == 1)
    assert np.sum((y == 0) & (weight == 1)) == count
    assert set(np.unique(weight)) <= {1.0, 5.0}


def test_the_hard_ones_are_those_of_highest_score():
    sample = sample_negatives(from_arrays(X, Y), FIRST, keep_top=200, rate=0.1)
    features, y, weight = rows_of(sample)
    kept = FIRST.decision_function(features[(y == 0) & (weight == 1)])
    expected = np.sort(SCORES[Y == 0])[-200:]
    np.testing.assert_allclose(np.sort(kept), expected, rtol=1e-12)


def test_blocks_without_rows_hold_no_hard_negatives():
    parts = [(X[:0], Y[:0]), (X[:4000], Y[:4000]), (X[:0], Y[:0]), (X[4000:], Y[4000:])]
    found = [
        rows_of(sample_negatives(source, FIRST, keep_top=200, rate=1.0))[0]
        for source in (Pieces(parts), Pieces(parts[1::2]))
    ]
    np.testing.assert_array_equal(*found)


def test_the_weights_stand_for_all_rows():
    totals = [
        rows_of(sample_negatives(from_arrays(X, Y), FIRST, rate=0.1, random_state=seed))[2].sum()
        for seed in range(20)
    ]
    error = np.std(totals) / np.sqrt(20)
    assert abs(np.mean(totals) - N) < 4 * error
    assert error > 0


def test_weights_of_the_rows_are_kept_and_absent_rows_left_out():
    weight = RNG.integers(0, 3, size=N).astype(float)
    source = from_arrays(X, Y, weight)
    sample = sample_negatives(source, FIRST, keep_top=1.0, rate=0.5)
    _, y, kept = rows_of(sample)
    assert len(y) == np.sum(weight > 0)
    assert kept.sum() == weight.sum()


def test_cuts_and_threads_do_not_change_which_negatives_are_hard():
    features = [
        rows_of(sample_negatives(from_arrays(X, Y, block_rows=b, n_jobs=j), FIRST, rate=1.0))[0]
        for b, j in ((500, 1), (500, 3), (7000, 1))
    ]
    np.testing.assert_array_equal(features[0], features[1])
    np.testing.assert_array_equal(features[0], features[2])


@pytest.mark.parametrize("kind", [PNormPush, IRPush, ProperRanker])
def test_the_certificate_tells_the_error_against_the_full_fit(kind):
    source = from_arrays(X, Y)
    fitted = kind().fit_blocks(sample_negatives(source, FIRST, keep_top=0.1, rate=0.3))
    full = kind(tol=1e-10).fit(X, Y)
    told = fitted.certify_blocks(source)
    excess = told.objective - full.objective_
    assert 0 < excess <= told.gap
    assert told.excess == pytest.approx(excess, rel=0.2)
    away = np.linalg.norm(fitted.coef_ - full.coef_) / np.linalg.norm(full.coef_)
    assert told.coef_error == pytest.approx(away, rel=0.2)
    of_full = full.certify_blocks(source)
    assert of_full.objective == pytest.approx(full.objective_, rel=1e-9)
    assert of_full.coef_error < 1e-6


def test_more_of_the_rest_brings_the_fit_nearer():
    source = from_arrays(X, Y)
    errors = [
        np.mean(
            [
                PNormPush()
                .fit_blocks(
                    sample_negatives(source, FIRST, keep_top=0.02, rate=rate, random_state=seed)
                )
                .certify_blocks(source)
                .excess
                for seed in range(5)
            ]
        )
        for rate in (0.02, 0.5)
    ]
    assert errors[1] < 0.5 * errors[0]


def test_sparse_rows_stay_sparse():
    thin = sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0))
    sample = sample_negatives(from_arrays(thin, Y), FIRST)
    assert all(sparse.issparse(block.X) for block in sample.read())


def test_refusals_name_what_came():
    source = from_arrays(X, Y)
    for wrong, message in (
        ({"rate": 0.0}, r"rate=0.0"),
        ({"rate": 1.5}, r"rate=1.5"),
        ({"keep_top": 1.5}, r"keep_top=1.5"),
        ({"keep_top": -3}, r"keep_top=-3"),
    ):
        with pytest.raises(ValueError, match=message):
            sample_negatives(source, FIRST, **wrong)
    with pytest.raises(ValueError, match="no rows to sample from"):
        names = [f"x{column}" for column in range(X.shape[1])]
        empty = pd.DataFrame(X[:0], columns=names).assign(y=Y[:0])
        sample_negatives(from_batches(lambda: [empty], "y"), FIRST)
    with pytest.raises(ValueError, match="corners"):
        PNormPush(p=np.inf, alpha=0.1).fit(X[:300], Y[:300]).certify_blocks(source)
