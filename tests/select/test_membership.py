"""Chances to be in the first k, and sets of ranks, under refits."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import PNormPush, ProperRanker
from toprank.pairs import Rows
from toprank.select import membership
from toprank.select.membership import count_in_top, rank_sets
from toprank.select.refits import Refits, _spread_of_coefficients, influences

SLOPES = np.array([1.0, 0.3, 1.0, 0.0])


def rows(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1, 2, 0.5, 1] + [0, 5, 0, 0]
    return X, X @ SLOPES + rng.logistic(size=n) > 3


@pytest.mark.parametrize("p", [pytest.param(1, marks=pytest.mark.more), 4])
def test_the_jackknife_spreads_coefficients_as_refits_do(p):
    X, y = rows()
    ranker = PNormPush(p=p).fit(X, y)
    spread = _spread_of_coefficients(ranker, X, y, None)
    refits = Refits.of(ranker, X, y, method="bootstrap", n_refits=40)
    drawn = refits.scores(np.eye(4)).std(axis=0)
    assert np.sqrt(np.sum(spread**2, axis=0)) == pytest.approx(drawn, rel=0.35)


@pytest.mark.parametrize("row", [0, 1, 7])
def test_the_influence_of_a_row_is_that_of_a_little_more_weight(row):
    X, y = rows(400)
    fits = {"p": 2, "tol": 1e-11}
    ranker = PNormPush(**fits).fit(X, y)
    weight = np.ones(400)
    weight[row] += 1e-4
    moved = PNormPush(**fits).fit(X, y, weight).coef_[0] - ranker.coef_[0]
    found, _ = influences(Rows(X, y), ranker.coef_[0], 2.0, ranker.alpha)
    np.testing.assert_allclose(found[row], 1e4 * moved, rtol=1e-3, atol=1e-6)


def test_a_count_is_a_repetition():
    X, y = rows(900)
    counts = np.random.default_rng(1).integers(0, 3, 900)
    many, labels = np.repeat(X, counts, axis=0), np.repeat(y, counts)
    once = _spread_of_coefficients(PNormPush(p=2).fit(X, y, counts), X, y, counts)
    again = _spread_of_coefficients(PNormPush(p=2).fit(many, labels), many, labels, None)
    np.testing.assert_allclose(once.T @ once, again.T @ again, rtol=1e-4, atol=1e-12)


def test_probabilities_add_up_to_the_length_of_the_top():
    X, y = rows()
    found = membership(PNormPush(p=2), X[:1000], y[:1000], X[1000:], 25)
    assert found.method == "jackknife" and found.n_refits == 400
    assert found.probability.sum() == pytest.approx(25)
    first = found.probability[found.rows]
    assert first[0] > 0.9 > first[-1]
    assert np.all((found.low <= np.arange(1, 26)) & (np.arange(1, 26) <= found.high))
    assert "Of the first 25 rows" in str(found)


def test_more_training_rows_make_places_surer():
    X, y = rows(8200)
    new = X[8000:]
    few, many = (membership(PNormPush(p=2), X[:n], y[:n], new, 20) for n in (500, 8000))
    assert few.probability[few.rows].mean() < many.probability[many.rows].mean()
    assert (few.high - few.low).mean() > 1.5 * (many.high - many.low).mean()


@pytest.mark.parametrize(
    ("estimator", "method"),
    [
        (LogisticRegression(), "bootstrap"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "bootstrap"),
        (PNormPush(p=4, loss="logistic"), "one-step bootstrap"),
        (ProperRanker(), "one-step bootstrap"),
        (PNormPush(p=4, loss="hinge"), "bootstrap"),
        (PNormPush(p=np.inf), "bootstrap"),
        (PNormPush(p=2, positive=True), "bootstrap"),
    ],
    ids=["logistic", "pipeline", "another loss", "proper", "hinge", "p = inf", "bounds"],
)
def test_any_model_that_takes_weights_can_be_refitted(estimator, method):
    X, y = rows(400)
    found = membership(estimator, X[:300], y[:300], X[300:], 10, n_refits=5)
    assert found.method == method and found.n_refits == 5
    assert found.probability.sum() == pytest.approx(10)


def test_sparse_rows_are_refitted():
    X, y = rows(300)
    found = membership(
        PNormPush(p=2), sparse.csr_array(X), y, sparse.csr_array(X[:50]), 5, n_refits=4
    )
    assert found.method == "one-step bootstrap" and found.probability.sum() == pytest.approx(5)


def test_one_step_spreads_coefficients_as_fits_do():
    X, y = rows(3000)
    weight = np.random.default_rng(0).integers(0, 3, 3000)
    for ranker in (PNormPush(p=4, loss="logistic"), ProperRanker()):
        ranker.fit(X, y, weight)
        options = {"sample_weight": weight, "n_refits": 30}
        steps = Refits.of(ranker, X, y, **options)
        fits = Refits.of(ranker, X, y, method="bootstrap", **options)  # of the same weights
        assert steps.method == "one-step bootstrap"
        moves = [one.scores(np.eye(4)) - ranker.coef_[0] for one in (steps, fits)]
        assert np.linalg.norm(moves[0] - moves[1]) < 0.15 * np.linalg.norm(moves[1])


def test_what_the_jackknife_cannot_do_is_refused():
    X, y = rows(300)
    for estimator, why in (
        (LogisticRegression(), "fitted linear rankers"),
        (PNormPush(p=4, loss="logistic"), "exponential loss"),
    ):
        with pytest.raises(ValueError, match=why):
            membership(estimator, X, y, X, 5, method="jackknife")
    with pytest.raises(ValueError, match="carry the weight"):
        few = np.arange(300) < 20
        membership(PNormPush(p=2), X + few[:, None], few, X, 5, method="jackknife")
    for wrong in ({"k": 0}, {"k": 301}, {"k": 5, "level": 2}, {"k": 5, "method": "guess"}):
        with pytest.raises(ValueError, match=f"{list(wrong)[-1]}="):
            membership(PNormPush(p=2), X, y, X, **wrong)


@pytest.mark.parametrize("seen", [None, np.where(np.arange(300) % 3, 1.0, 0.5)])
@pytest.mark.parametrize("labels", [("no", "yes"), (0, 1)], ids=str)
def test_a_model_that_is_not_fitted_yet_is_fitted_with_the_weights(labels, seen):
    X, y = rows(300)
    y = np.array(labels)[y.astype(int)]
    weight = np.random.default_rng(0).integers(1, 4, 300)
    given = {"sample_weight": weight, "label_propensity": seen, "k": 5}
    fitted = PNormPush(p=2).fit(X, y, sample_weight=weight, label_propensity=seen)
    found = membership(PNormPush(p=2), X, y, X, **given)
    again = membership(fitted, X, y, X, **given)
    assert found.rows.tolist() == again.rows.tolist()
    np.testing.assert_allclose(found.probability, again.probability, atol=0.02)


def test_steps_tell_how_far_they_are_and_ranks_of_very_many_rows_are_refused(monkeypatch):
    X, y = rows(600)
    told = []
    estimator = PNormPush(p=1, loss="logistic").fit(X, y)
    found = membership(estimator, X, y, X, 5, n_refits=3, progress=lambda *said: told.append(said))
    assert found.method == "one-step bootstrap"
    assert told == [("Fitting again", done, 3) for done in (1, 2, 3)]
    monkeypatch.setitem(membership.__globals__, "_MOST_RANKED", 599)
    with pytest.raises(ValueError, match="with all 600 others; that is done for up to 599"):
        _ = found.low


def test_tied_rows_share_the_last_places():
    assert count_in_top(np.array([[3.0, 1.0, 1.0, 0.0]]), 2).tolist() == [1.0, 0.5, 0.5, 0.0]


def test_sets_of_ranks_hold_the_ranks_of_the_truth():
    rng = np.random.default_rng(0)
    truth = np.sort(rng.normal(size=40))[::-1]
    covered = np.zeros(10)
    for _ in range(100):
        now = truth + 0.2 * rng.normal(size=40)
        scores = now + 0.2 * rng.normal(size=(100, 40))
        low, high = rank_sets(now, scores, np.arange(10), 0.9)
        covered += (low <= np.arange(1, 11)) & (np.arange(1, 11) <= high)
    assert np.all(covered / 100 >= 0.85)


@pytest.mark.more
def test_sets_of_ranks_hold_the_ranks_of_a_fit_to_very_many_rows():
    X, y = rows(200_000, seed=9)
    best = PNormPush(p=2).fit(X, y).coef_[0]
    new = rows(150, seed=10)[0]
    truth = np.argsort(np.argsort(-(new @ best))) + 1
    covered = []
    for seed in range(60):
        found = membership(PNormPush(p=2), *rows(600, seed), new, 15, n_refits=200)
        covered.append(
            np.mean((found.low <= truth[found.rows]) & (truth[found.rows] <= found.high))
        )
    assert np.mean(covered) >= 0.88
