"""Margins: where RankBoost and smooth margin ranking go, and what the theorems promise."""

import json

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from toprank import RankBoost, SmoothMarginRanker
from toprank.metrics import max_margin, ranking_margin


@pytest.fixture(scope="module")
def game(shared):
    """The 8 x 8 matrix as eight crucial pairs of sixteen rows, M = h(winner) - h(loser)."""
    M = np.array(json.loads((shared / "golden" / "margin_8x8.json").read_text())["M"])
    X = np.vstack([(1 + M) // 2, (1 - M) // 2])
    return M, X, np.repeat([1, 0], 8), np.column_stack([np.arange(8), np.arange(8) + 8])


@pytest.fixture(scope="module")
def smooth(game):
    """Smooth margin ranking of the 8 x 8 game."""
    _, X, y, pairs = game
    return SmoothMarginRanker(3000, weak_rankers="binary").fit(X, y, pairs=pairs)


def random_game(seed, pairs=12, rankers=6):
    """Pairs that some positive combination ranks rightly, weak rankers in {0, 1}."""
    rng = np.random.default_rng(seed)
    while True:
        X = rng.integers(0, 2, (2 * pairs, rankers))
        M = X[:pairs] - X[pairs:]
        if max_margin(M, signed=True) > 0.05:
            return M, X, np.column_stack([np.arange(pairs), np.arange(pairs) + pairs])


@pytest.mark.parametrize("selection", ["loss", "slope"])
def test_rankboost_goes_to_a_margin_of_one_third(game, selection):
    M, X, y, pairs = game
    fit = RankBoost(1500, weak_rankers="binary", selection=selection).fit(X, y, pairs=pairs)
    assert fit.margin_ == pytest.approx(1 / 3, abs=1e-3)
    assert np.min(M @ fit.coef_[0]) / np.abs(fit.coef_).sum() == pytest.approx(fit.margin_)


def test_smooth_margin_ranking_goes_to_three_eighths(game, smooth):
    fit, best = smooth, max_margin(game[0])
    assert best == pytest.approx(0.375, abs=1e-9)
    assert 0.37 < fit.margin_ <= best + 1e-9
    assert fit.smooth_margin_[-1] < fit.margin_ <= fit.rho_
    assert best <= fit.rho_ + 1e-9
    assert fit.separated_


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(8))
def test_the_smooth_margin_stays_below_the_margin_and_that_below_rho(seed):
    M, X, pairs = random_game(seed)
    fit = SmoothMarginRanker(300, weak_rankers="binary", target="graded")
    fit.fit(X, None, pairs=pairs)
    best = max_margin(M, signed=True)
    coef = np.zeros(X.shape[1])
    for record, smooth in zip(fit.history_, fit.smooth_margin_, strict=True):
        coef[record["feature"]] += record["step"]
        margin = np.min(M @ coef) / np.abs(coef).sum()
        assert smooth < margin <= best + 1e-9
        assert best <= record["rho"] + 1e-9
    assert fit.rho_ == min(record["rho"] for record in fit.history_)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(8))
def test_the_smooth_margin_grows_by_theorem_7_where_its_condition_holds(seed):
    _, X, pairs = random_game(seed)
    fit = SmoothMarginRanker(400, weak_rankers="binary", target="graded")
    fit.fit(X, None, pairs=pairs)
    _check_theorem_7(fit)


def _check_theorem_7(fit):
    g, norm, held = fit.smooth_margin_, 0.0, 0
    for t, record in enumerate(fit.history_):
        norm += abs(record["step"])  # at least the norm of the coefficients
        if record["theorem_7"]:
            held += 1
            r, g_before = abs(record["edge"]), g[t - 1]
            promised = 0.5 * abs(record["step"]) * (r - g_before) / norm
            assert g[t] - g_before >= promised - 1e-12
    return held


def test_theorem_7_holds_all_along_where_no_pair_is_left_undecided(smooth):
    fit = smooth
    ascents = sum(record["ascent"] for record in fit.history_)
    assert ascents > 2900
    assert _check_theorem_7(fit) == ascents
    assert np.all(np.diff(fit.smooth_margin_[fit.smooth_margin_ > 0]) > 0)


def test_steps_become_small_beside_the_norm(smooth):
    steps = np.array([record["step"] for record in smooth.history_])
    ratio = steps / np.cumsum(np.abs(steps))
    assert np.max(ratio[-100:]) < 1e-3  # Lemma 9
    assert np.max(ratio[-100:]) < 0.2 * np.max(ratio[300:400])


def test_real_valued_weak_rankers_maximise_the_smooth_margin_by_a_line_search(game):
    M, X, y, pairs = game
    fit = SmoothMarginRanker(500, weak_rankers="features").fit(X, y, pairs=pairs)
    assert np.all(np.diff(fit.smooth_margin_[fit.smooth_margin_ > 0]) >= -1e-12)
    assert 0.36 < fit.margin_ <= 0.375 + 1e-9
    for t in (50, 200):
        column = fit.history_[t]["feature"]
        coef = np.bincount(
            [r["feature"] for r in fit.history_[: t + 1]],
            [r["step"] for r in fit.history_[: t + 1]],
            minlength=8,
        )

        def smooth(step, coef=coef, column=column):
            moved = coef + step * np.eye(8)[column]
            return -np.log(np.sum(np.exp(-M @ moved))) / np.abs(moved).sum()

        assert smooth(0.0) >= max(smooth(-1e-3), smooth(1e-3))


def test_a_graded_fit_knows_its_margin():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    fit = SmoothMarginRanker(400, target="graded").fit(X, [0, 1, 2, 3])
    assert fit.margin_ == pytest.approx(1 / 3, abs=0.02)  # three thresholds, one a neighbour
    assert fit.margin_ <= fit.rho_


def test_the_margin_is_the_metric_of_the_scores(separable):
    X, y = separable
    fit = RankBoost(20).fit(X, y)
    norm = float(np.abs(fit.coef_).sum())
    assert fit.margin_ == pytest.approx(ranking_margin(y, fit.decision_function(X), norm=norm))


def test_data_that_never_separate_are_said_so_and_ranked_by_rankboost(overlapping):
    X, y = overlapping
    with pytest.warns(ConvergenceWarning, match="not separated in 40 rounds"):
        fit = SmoothMarginRanker(40, n_thresholds=3).fit(X, y)
    plain = RankBoost(40, selection="slope", n_thresholds=3).fit(X, y)
    assert not fit.separated_
    assert fit.margin_ < 0
    np.testing.assert_array_equal(fit.decision_function(X), plain.decision_function(X))


def test_one_perfect_weak_ranker_has_margin_one(separable):
    X, y = separable
    fit = SmoothMarginRanker(30).fit(X, y)
    assert fit.margin_ == pytest.approx(1.0)
    assert np.isfinite(fit.decision_function(X)).all()


@pytest.mark.parametrize("kind", ["stumps", "binary"])
def test_the_exact_step_is_the_maximum_along_the_weak_ranker(game, kind):
    """Equation (10), solved; the closed step (12) leaves some of it."""
    _, X, _, pairs = game
    exact = SmoothMarginRanker(40, step="exact", weak_rankers=kind, target="graded")
    exact.fit(X, None, pairs=pairs)
    norm, log_f, coef = 0.0, np.log(len(pairs)), {}
    for record in exact.history_:
        d, step = [record[name] for name in ("d_plus", "d_minus", "d_zero")], record["step"]

        def log_loss(a, d=d, log_f=log_f):
            return log_f + np.log(d[0] * np.exp(-a) + d[1] * np.exp(a) + d[2])

        before = coef.get(record["feature"], 0.0)
        if record["ascent"] and before * step >= 0:
            steps = step * np.linspace(0.0, 2.0, 41)[1:]
            margins = -log_loss(steps) / (norm + np.abs(steps))
            assert np.argmax(margins) == 19  # the step itself
            assert record["smooth_margin"] == pytest.approx(margins[19])
        coef[record["feature"]] = before + step
        norm += abs(before + step) - abs(before)
        log_f = log_loss(step)
    assert exact.smooth_margin_[-1] < exact.margin_ <= exact.rho_
