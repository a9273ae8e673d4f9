"""Coordinate descent is the paper's algorithm (Rudin 2009, Figure 2), round by round."""

import numpy as np
import pytest
from scipy.optimize import brentq

from toprank import PNormPush, PushRanker
from toprank.objective import build_objective

CASES = [
    {"p": 4.0},
    {"p": 64.0},
    {"p": 4.0, "loss": "squared_hinge"},
    {"price": "log1p"},
    {"price": "exponential"},
    {"p": 4.0, "end": "both"},
]


def figure_2(X, positive, p, rounds):
    """The pseudocode as printed, with the explicit matrix M and the absolute slope in 3(a)."""
    M = X[positive][:, None, :] - X[~positive][None, :, :]
    d = np.full(M.shape[:2], 1.0 / (M.shape[0] * M.shape[1]))
    for _ in range(rounds):
        tilted = d * d.sum(axis=0) ** (p - 1)
        j = int(np.argmax(np.abs(np.einsum("ik,ikj->j", tilted, M))))
        step = solution_of_equation_1(d, M[:, :, j], p)
        d = d * np.exp(-step * M[:, :, j])
        d /= d.sum()
        yield j, step


def solution_of_equation_1(d, m, p):
    def right_hand_side(step):
        moved = d * np.exp(-step * m)
        return np.sum(moved.sum(axis=0) ** (p - 1) * (m * moved).sum(axis=0))

    return brentq(right_hand_side, -5, 5, xtol=1e-14, rtol=1e-14)


@pytest.mark.parametrize("p", [1.0, 2.0, 4.0, 16.0])
def test_the_first_twenty_rounds_are_those_of_figure_2(p, small):
    X, positive = small
    fit = PNormPush(p=p, alpha=0.0, solver="coordinate", max_iter=20).fit(X, positive)
    assert len(fit.history_) == 20
    for (feature, step), record in zip(figure_2(X, positive, p, 20), fit.history_, strict=True):
        assert record["feature"] == feature
        assert record["step"] == pytest.approx(step, rel=1e-6, abs=1e-9)


def test_the_steps_add_up_to_the_coefficients(small):
    fit = PNormPush(alpha=0.0, solver="coordinate", max_iter=30).fit(*small)
    total = np.zeros(fit.coef_.shape[1])
    for record in fit.history_:
        total[record["feature"]] += record["step"]
    np.testing.assert_allclose(fit.coef_[0], total, atol=1e-12)


def test_steps_take_either_sign(small):
    fit = PNormPush(alpha=0.0, solver="coordinate").fit(*small)
    signs = {np.sign(record["step"]) for record in fit.history_}
    assert signs >= {-1.0, 1.0}


def test_a_feature_that_counts_against_an_item_is_used():
    positive = np.array([True, True, True, False, False, False])
    X = np.column_stack([[3.0, 1.0, 4.0, 2.0, 5.0, 6.0], np.zeros(6)])
    fit = PNormPush(alpha=0.0, solver="coordinate").fit(X, positive)
    assert fit.history_[0]["feature"] == 0
    assert fit.history_[0]["step"] < 0


@pytest.mark.more
def test_there_are_a_hundred_rounds_by_default(tasks):
    fit = PNormPush(alpha=0.0, solver="coordinate").fit(*tasks["magic"])
    assert fit.n_iter_ == len(fit.history_) == 100


@pytest.mark.sampled(10)
@pytest.mark.parametrize("settings", CASES, ids=lambda s: "-".join(str(v) for v in s.values()))
@pytest.mark.sampled(5)
@pytest.mark.parametrize("data", ["wdbc", "spambase", "ill_conditioned"])
def test_every_round_descends_and_stays_above_the_minimum(data, settings, tasks):
    X, positive = tasks[data]
    best = PushRanker(**settings, solver="newton").fit(X, positive)
    fit = PushRanker(**settings, solver="coordinate", max_iter=40).fit(X, positive)
    objective = np.array([record["objective"] for record in fit.history_])
    assert np.all(np.diff(objective) <= 0)
    assert objective[-1] == fit.objective_
    assert fit.objective_ >= best.objective_ - 1e-9 * abs(best.objective_)


@pytest.mark.more
def test_many_rounds_come_close_to_the_minimum(tasks):
    best = PNormPush(p=4, solver="newton").fit(*tasks["spambase"])
    few, many = (
        PNormPush(p=4, solver="coordinate", max_iter=rounds).fit(*tasks["spambase"])
        for rounds in (50, 200)
    )
    assert many.objective_ - best.objective_ < 0.25 * (few.objective_ - best.objective_)
    assert many.objective_ - best.objective_ < 5e-3


@pytest.mark.more
def test_an_infinite_push_is_not_left_at_a_small_p(tasks):
    X, positive = tasks["spambase"]
    highest = build_objective(positive, p=np.inf)
    pushed, mild = (
        PNormPush(p=p, solver="coordinate").fit(X, positive).coef_[0] for p in (np.inf, 1.0)
    )
    assert highest.value(X @ pushed) < highest.value(X @ mild) - 0.1


def test_without_overlap_the_rounds_stop_with_a_finite_step_and_a_warning():
    positive = np.arange(10) < 5
    X = np.where(positive, 1.0, 0.0)[:, None]
    ranker = PNormPush(alpha=0.0, solver="coordinate")
    with pytest.warns(match="separable"):
        ranker.fit(X, positive)
    assert np.isfinite(ranker.coef_).all()
    assert ranker.coef_[0, 0] > 0


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_the_other_solvers_record_objective_and_gradient(solver, small):
    fit = PNormPush(solver=solver, tol=1e-8).fit(*small)
    assert len(fit.history_) == fit.n_iter_
    assert all({"objective", "gradient"} <= set(record) for record in fit.history_)
    assert fit.history_[-1]["objective"] == pytest.approx(fit.objective_, abs=1e-12)


def test_coordinate_descent_records_feature_step_and_objective(small):
    fit = PNormPush(solver="coordinate", max_iter=5).fit(*small)
    assert all(set(record) == {"objective", "feature", "step"} for record in fit.history_)
