"""How hard a push the sample can support, and the papers' experiments about it."""

from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.model_selection import StratifiedShuffleSplit

import toprank.bounds
from toprank import PNormPush, PNormPushCV
from toprank.metrics import auc, pnorm_risk, precision_at
from toprank.simulate import rare_reversal
from toprank.tuning import supported_p


@pytest.fixture(scope="module")
def support(rows):
    return supported_p(*rows)


def test_it_is_a_name_of_the_bounds_too():
    assert toprank.bounds.supported_p is supported_p


def test_the_negatives_that_carry_the_push_are_counted_by_their_softmax_weights(rows, support):
    X, y = rows
    for line in support.lines:
        fitted = PNormPush(line.p).fit(X, y)
        scores = (X @ fitted.coef_[0])[y == 0]
        share = np.exp(line.p * (scores - scores.max()))
        share /= share.sum()
        assert line.effective_negatives == pytest.approx(1 / np.sum(share**2), rel=1e-2)
    carried = [line.effective_negatives for line in support.lines]
    assert carried == sorted(carried, reverse=True) and carried[0] < support.n_negatives


def test_the_risks_are_those_of_the_folds(rows):
    X, y = rows
    folds = [(np.flatnonzero(np.arange(300) % 3 != i), np.arange(i, 300, 3)) for i in range(3)]
    (line,) = supported_p(X, y, ps=(4,), cv=folds).lines
    fits = [PNormPush(4, tol=1e-8).fit(X[train], y[train]) for train, _ in folds]
    for part, found in ((0, line.train_risk), (1, line.test_risk)):
        risks = [
            pnorm_risk(y[fold[part]], fit.decision_function(X[fold[part]]), 4, normalize=True)
            for fit, fold in zip(fits, folds, strict=True)
        ]
        assert found == pytest.approx(np.mean(risks), abs=5e-3)
    assert line.gap == pytest.approx(line.test_risk - line.train_risk)
    assert line.standard_error > 0


@pytest.mark.more
def test_the_standard_error_is_about_the_spread_of_the_risk_over_samples():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(40):
        y = np.arange(400) % 4 == 0
        X = rng.normal(size=(400, 1)) + y[:, None]
        (line,) = supported_p(X, y, ps=(4,)).lines
        found.append((line.test_risk, line.standard_error))
    risks, errors = np.array(found).T
    assert 0.6 < np.mean(errors) / np.std(risks, ddof=1) < 1.7


def test_weights_are_repetitions(rows):
    X, y = rows
    count = np.random.default_rng(1).integers(1, 3, size=len(y))
    again = np.repeat(np.arange(len(y)), count)
    place = np.arange(len(y)) % 3
    weighted, repeated = (
        supported_p(
            X[rows],
            y[rows],
            ps=(1, 8),
            sample_weight=weight,
            cv=[
                (np.flatnonzero(place[rows] != i), np.flatnonzero(place[rows] == i)) for i in (0, 1)
            ],
        )
        for rows, weight in ((np.arange(len(y)), count), (again, None))
    )
    assert weighted.n_positives == repeated.n_positives
    for one, other in zip(weighted.lines, repeated.lines, strict=True):
        assert one.effective_negatives == pytest.approx(other.effective_negatives, rel=1e-3)
        assert one.test_risk == pytest.approx(other.test_risk, abs=5e-3)


def test_rows_that_are_mostly_zero_are_judged_as_if_they_were_stored_sparsely():
    rng = np.random.default_rng(2)
    X = (rng.random((400, 20)) < 0.1).astype(float)
    y = X[:, :4].sum(axis=1) + rng.normal(size=400) > 1
    dense, stored = (supported_p(rows, y, ps=(1, 8)) for rows in (X, sparse.csr_array(X)))
    for one, other in zip(dense.lines, stored.lines, strict=True):
        ours, theirs = asdict(one), asdict(other)
        assert ours.pop("reason") == theirs.pop("reason")
        assert ours == pytest.approx(theirs, rel=1e-6)


def test_the_verdict_says_what_a_push_rests_on(rows, support):
    X, y = rows
    few = supported_p(X[:60], y[:60])
    assert few.p is None or few.p < 64
    assert "rests on" in few.verdict or "uncertain" in few.verdict
    assert few.verdict in str(few) and few.as_dict()["p"] == few.p
    none = supported_p(X, y, min_negatives=1e6)
    assert none.p is None and "no push is supported" in none.verdict
    every = supported_p(X, y, min_negatives=0.0, max_relative_error=np.inf)
    assert every.p == 64 and "every p up to 64" in every.verdict
    assert len(every.lines) == len(support.lines)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"ps": (1, np.inf)}, "highest negative alone"), ({"ps": (0,)}, "from 1"), ({"cv": 1}, "two")],
)
def test_what_makes_no_sense_is_refused(rows, options, message):
    with pytest.raises(ValueError, match=message):
        supported_p(*rows, **options)


def test_the_one_dimensional_illustration_behaves_as_the_paper_says():
    # Rudin 2009, Section 10.1: x ranks nearly all pairs right, yet a negative leads the list;
    # most of R_p comes from the ends, which a small sample misses
    epsilon = 0.05
    model = rare_reversal(epsilon)
    X, y = model.sample(20_000, random_state=0)
    x = X[:, 0]
    assert auc(y, x) == pytest.approx((1 - epsilon) ** 2, abs=0.01)
    assert precision_at(y, x, 100) == 0.0
    risks = [pnorm_risk(y, x, p, normalize=True) for p in (1, 4, 16)]
    assert risks[0] < 0.1 and risks[-1] > 0.75 and risks == sorted(risks)
    rng = np.random.default_rng(0)
    gaps = {}
    for n in (20, 2000):
        samples = [model.sample(n, rng) for _ in range(60)]
        both = [(a[:, 0], b) for a, b in samples if 0 < b.sum() < n]
        gaps[n] = {
            p: np.mean([abs(pnorm_risk(b, a, p, normalize=True) - risks[i]) for a, b in both])
            for i, p in enumerate((1, 4, 16))
        }
    assert gaps[20][16] > 3 * gaps[20][1]  # a small sample misses the push, not the AUC
    assert gaps[2000][16] < 0.2 * gaps[20][16]


def pima_splits(shared, size, n_splits):
    table = pd.read_csv(shared / "data" / "pima.csv.gz").to_numpy()
    X, y = table[:, :-1], table[:, -1].astype(int)
    splitter = StratifiedShuffleSplit(n_splits, train_size=size, random_state=0)
    for train, test in splitter.split(X, y):
        mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
        scaled = (X - mean) / np.where(spread > 0, spread, 1.0)
        yield scaled[train], y[train], scaled[test], y[test]


@pytest.mark.more
def test_fifty_pima_rows_support_less_push_than_three_hundred(shared):
    allowed = {
        size: [supported_p(X, y).p or 0.0 for X, y, *_ in pima_splits(shared, size, 6)]
        for size in (50, 300)
    }
    assert np.median(allowed[50]) <= 8 and max(allowed[50]) < 64
    assert np.median(allowed[300]) == 64


@pytest.mark.slow
def test_with_fifty_pima_rows_a_hard_push_does_not_generalise_and_with_three_hundred_it_does(
    shared,
):
    # Rudin 2006, Figure 5, over 60 splits; the effect is small, so paired means are compared
    change, best, cautious = {}, {}, {}
    for size in (50, 300):
        found, picks = [], []
        for X, y, X_test, y_test in pima_splits(shared, size, 60):
            soft, hard = (
                precision_at(y_test, PNormPush(p).fit(X, y).decision_function(X_test), 20)
                for p in (2, 64)
            )
            found.append(hard - soft)
            choice = PNormPushCV(test_size=None).fit(X, y).choice_
            rules = (choice, replace(choice, rule="one_standard_error"))
            picks.append([one.p or 0.5 for one in rules])  # one half stands for no push
        change[size] = np.array(found)
        best[size], cautious[size] = np.log2(picks).T
    error = {size: np.std(d, ddof=1) / np.sqrt(len(d)) for size, d in change.items()}
    assert np.mean(change[50]) < -error[50]
    assert np.mean(change[300]) > -error[300]
    assert np.mean(change[300] - change[50]) > 2 * np.hypot(*error.values())
    assert np.mean(best[50]) < np.mean(best[300])  # more rows, more push
    assert all(np.all(cautious[size] <= best[size]) for size in (50, 300))
    assert np.mean(cautious[50]) <= 0.0  # p = 1 or less


def test_nothing_is_supported_on_noise():
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        y = np.repeat([1, 0], [20, 80])
        found.append(supported_p(rng.normal(size=(100, 2)), y, ps=(1, 64)))
    assert sum(one.p is not None for one in found) <= 1
    noise = next(one for one in found if one.p is None and "random" in one.verdict)
    assert "no push is supported" in noise.verdict
    assert noise.lines[0].test_risk > noise.lines[0].random_risk


def test_copies_of_rows_are_not_held_out_from_each_other():
    y = np.repeat([1, 0], [20, 80])
    found = []
    for seed in range(6):
        X = np.random.default_rng(seed).normal(size=(100, 30))
        found.append(supported_p(np.repeat(X, 2, axis=0), np.repeat(y, 2), ps=(1, 64)))
    assert sum(one.p is not None for one in found) <= 1


def test_rows_of_a_few_categories_are_no_copies():
    category = np.arange(600) % 20
    X = np.eye(20)[category]
    y = np.random.default_rng(0).random(600) < np.where(category < 4, 0.9, 0.05)
    assert supported_p(X, y, ps=(1,)).p == 1
    assert supported_p(X, category < 4, ps=(1,)).p == 1


@pytest.mark.more
def test_random_orders_have_the_risk_that_theory_says():
    """Heights are uniform in a random order of many rows: R_p is (p + 1)^(-1/p)."""
    rng = np.random.default_rng(0)
    y = np.arange(4000) % 2 == 0
    for line in supported_p(rng.normal(size=(4000, 1)), y, ps=(1, 4)).lines:
        limit = (line.p + 1) ** (-1 / line.p)
        assert limit - 0.05 < line.random_risk < limit
