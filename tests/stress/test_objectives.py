"""Every objective is the exact value and gradient of its formula, whatever scores and weights."""

import itertools

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from toprank.losses import TRAINABLE_LOSSES
from toprank.losses.proper import PROPER_LOSSES, canonical, get_proper_loss
from toprank.objective import (
    LabelledData,
    PointwiseTask,
    Task,
    build_objective,
    grad_curvature,
    primal_dual_gap,
    problem_of,
)
from toprank.prices import PRICES as REGISTERED

LONG = np.longdouble
POSITIVE = np.array([1, 0, 0, 1, 0, 1, 0], dtype=bool)
N = len(POSITIVE)
BALANCE = 0.7
PRICES = [("power", p) for p in (1.0, 1.0000001, 4.0, 1000.0, 1e6, np.inf)] + [
    ("exponential", 1.0),
    ("log1p", 1.0),
]
FORMULAS = [
    (price, p, loss, end)
    for (price, p), loss, end in itertools.product(
        PRICES, TRAINABLE_LOSSES, ("top", "bottom", "both")
    )
    if price != "log1p" or loss == "exponential"
]


def score_sets():
    rng = np.random.default_rng(7)
    sizes = (1.0, 30.0, 1e4, 1e8, 1e100, 1e-150, 1e-300)
    made = {f"times {size:g}": size * rng.normal(size=N) for size in sizes}
    made["all equal"] = np.full(N, 0.3)
    made["ties"] = rng.integers(0, 3, N).astype(float)
    made["near 1e9"] = 1e9 + rng.normal(size=N)
    made["one far above"] = np.r_[1e6, rng.normal(size=N - 1)]
    made["one far below"] = np.r_[rng.normal(size=N - 1), -1e6]
    made["subnormal"] = 5e-324 * rng.integers(-3, 4, N)
    return made


def weight_sets():
    rng = np.random.default_rng(11)
    return {
        "none": None,
        "over 24 orders": 10.0 ** rng.uniform(-12, 12, N),
        "subnormal": 5e-324 * rng.integers(1, 9, N),
        "1e-300": np.full(N, 1e-300),
        "as large as can be": np.full(N, 1.7e308),
        "some absent": np.r_[0.0, 0.0, np.ones(N - 2)],
    }


def log_loss(loss, r):
    """Logarithms of the loss and of minus its slope, at a margin."""
    if loss == "exponential":
        return -r, -r
    if loss == "logistic":
        slope = -np.logaddexp(LONG(0), r)
        return (slope if r > 40 else np.log(np.logaddexp(LONG(0), -r))), slope
    gap = LONG(1) - r
    if gap <= 0:
        return LONG(-np.inf), LONG(-np.inf)
    if loss == "hinge":
        return np.log(gap), LONG(0)
    return 2 * np.log(gap), np.log(2 * gap)


def log_sum(terms):
    top = max(terms, default=LONG(-np.inf))
    if not np.isfinite(top):
        return top
    return top + np.log(sum(np.exp(term - top) for term in terms))


def log_weights(weight, rows, normalised):
    logs = {i: np.log(LONG(weight[i])) for i in rows}
    total = log_sum(list(logs.values())) if normalised else LONG(0)
    return {i: value - total for i, value in logs.items()}


def double_loop(weight, scores, price, p, loss, end):
    """F and its gradient by the definition, a pair at a time, in logarithms of long doubles."""
    weight = np.ones(N) if weight is None else weight
    f = scores.astype(LONG)
    sides = [np.flatnonzero(side & (weight > 0)) for side in (POSITIVE, ~POSITIVE)]
    homogeneous = price == "power"
    heights = []  # (log weight of the row, log height, {(winner, loser): log of the pair's pull})
    for part in {"top": ["top"], "bottom": ["bottom"], "both": ["top", "bottom"]}[end]:
        of_losers = (part == "top") == (price != "log1p")
        inner, outer = sides if of_losers else sides[::-1]
        w_in, w_out = (log_weights(weight, rows, homogeneous) for rows in (inner, outer))
        share = np.log(LONG(BALANCE)) if end == "both" and part == "bottom" else LONG(0)
        for o in outer:
            pairs = {(i, o) if of_losers else (o, i): i for i in inner}
            found = {pair: log_loss(loss, f[pair[0]] - f[pair[1]]) for pair in pairs}
            log_s = log_sum([w_in[i] + found[pair][0] for pair, i in pairs.items()])
            pull = {pair: w_in[i] + found[pair][1] for pair, i in pairs.items()}
            heights.append((w_out[o] + share, log_s, pull))
    value, log_price = priced(heights, price, p, root=loss != "exponential")
    gradient = np.zeros(N, dtype=LONG)
    for c, (_, log_s, pull) in zip(log_price, heights, strict=True):
        for (winner, loser), log_pull in pull.items():
            if np.isfinite(log_s) and np.isfinite(log_pull):
                gradient[winner] -= np.exp(c + log_pull - log_s)
                gradient[loser] += np.exp(c + log_pull - log_s)
    return value, gradient


def priced(heights, price, p, *, root):
    """F, and the logarithm of dF/dlog S of each height."""
    w, s = (np.array([height[k] for height in heights]) for k in (0, 1))
    if price == "power" and np.isinf(p):
        top, first = np.max(s), s == np.max(s)
        slope = np.where(first, -np.log(LONG(np.count_nonzero(first))), -np.inf)
        return (np.exp(top), slope + top) if root else (top, slope)
    if price == "power":
        total = log_sum(list(w + LONG(p) * s))
        norm = total / LONG(p)
        slope = w + LONG(p) * s - total
        return (np.exp(norm), slope + norm) if root else (norm, slope)
    if price == "exponential":
        total = log_sum(list(w + np.exp(s)))
        return total, w + np.exp(s) - total + s
    return np.sum(np.exp(w) * np.logaddexp(LONG(0), s)), w - np.logaddexp(LONG(0), -s)


def rounding(weight, price, p):
    """Digits that may be lost: those of log weights, and of p times them."""
    logs = 1.0 if weight is None else 745.0
    steep = p if price == "power" and np.isfinite(p) else 1.0
    return 1e-15 * (10.0 + logs + steep * (1.0 + min(logs, 10.0)))


ATTACKS = list(itertools.product(FORMULAS, weight_sets()))
#: One in so many is tried by default, others for every kind of scores.
ONE_IN = 11


def attack(name, attacks):
    """Compare objectives with the double loop; return how many."""
    if np.finfo(LONG).eps > 1e-18:
        pytest.skip("long doubles have no more digits than doubles here")
    scores, cases = score_sets()[name], 0
    for (price, p, loss, end), of_weights in attacks:
        if price != "power" and of_weights == "as large as can be":
            continue  # these prices see the weights as they are: infinity is their value
        cases += 1
        compare(scores, weight_sets()[of_weights], price, p, loss, end)
    return cases


def compare(scores, weight, price, p, loss, end):
    objective = build_objective(
        POSITIVE, weight, price=price, p=p, loss=loss, end=end, balance=BALANCE
    )
    value, gradient = objective.value_grad(scores)
    with np.errstate(all="ignore"):
        exact, slope = double_loop(weight, scores, price, p, loss, end)
    assert objective.value(scores) == value
    if float(abs(exact)) > 1e308:
        assert value == np.inf
        assert not np.any(gradient)
        return
    lost = rounding(weight, price, p) + 1e-15 * abs(float(np.log(max(1.0, abs(exact)))))
    assert abs(value - exact) <= lost * max(1.0, abs(exact))
    # p times a score that differs in its last digit
    blur = float(np.max(np.abs(scores - np.median(scores)))) * (p if price == "power" else 1.0)
    if price == "exponential":  # it weighs heights by e^height: the last digit of one counts
        blur += float(exact)
    blur *= 2.0**-51
    if blur < 1e-3:  # the slope of a maximum is one of several
        largest = float(np.max(np.abs(slope)))
        error = float(np.max(np.abs(gradient - slope)))
        assert error <= (10 * lost + 4 * blur) * largest + 1e-321


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("turn", "name"), list(enumerate(score_sets())))
def test_objectives_are_their_formula_in_extended_precision(turn, name, record_property):
    cases = attack(name, ATTACKS[turn % ONE_IN :: ONE_IN])
    record_property("cases", cases)
    assert cases > 30


@pytest.mark.slow
@pytest.mark.parametrize("name", score_sets())
def test_all_objectives_are_their_formula_in_extended_precision(name, record_property):
    cases = attack(name, ATTACKS)
    record_property("cases", cases)
    assert cases > 400


@pytest.mark.parametrize("end", ["top", "bottom"])
@pytest.mark.parametrize("size", [1e-150, 1.0, 1e3])
def test_derivatives_for_boosters_are_those_of_the_objective(size, end):
    scores = size * np.random.default_rng(3).normal(size=N)
    objective = build_objective(POSITIVE, None, p=8.0, end=end)
    gradient, curvature = grad_curvature(objective, scores)
    np.testing.assert_allclose(gradient, objective.value_grad(scores)[1], rtol=1e-12, atol=1e-300)
    assert np.all(np.isfinite(curvature))
    assert np.all(curvature >= 0)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [1e-100, 1e-12, 1.0, 1e12, 1e100])
@pytest.mark.parametrize("loss", TRAINABLE_LOSSES)
def test_a_column_in_other_units_has_the_same_objective_and_a_gradient_in_those_units(size, loss):
    rng = np.random.default_rng(5)
    X, coef = rng.normal(size=(40, 3)), rng.normal(size=3)
    positive = np.arange(40) % 3 == 0
    plain, scaled = (
        problem_of(LabelledData.of_arrays(Z, positive), Task.build(loss=loss, p=4.0))
        for Z in (X, X * [1.0, size, 1.0])
    )
    units = np.array([1.0, size, 1.0])
    value, gradient = plain.value_grad(coef)
    other, moved = scaled.value_grad(coef / units)
    assert other == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(moved / units, gradient, rtol=1e-9, atol=1e-13)
    sizes = scaled.gradient_sizes(coef / units)
    assert np.all(np.abs(moved) <= sizes * (1 + 1e-12))


@pytest.mark.parametrize("loss", sorted(PROPER_LOSSES))
def test_pointwise_objectives_have_the_gradient_of_their_values(loss):
    rng = np.random.default_rng(6)
    X, positive = rng.normal(size=(30, 2)), np.arange(30) % 4 == 0
    chosen = get_proper_loss(loss)
    chosen = chosen if chosen.convex else canonical(chosen)
    data = LabelledData.of_arrays(X, positive, intercepts=1)
    problem = problem_of(data, PointwiseTask(chosen, 1e-3))
    at = np.array([0.1, -0.2, 0.05])
    numeric = approx_fprime(at, lambda z: problem.value_grad(z)[0], 1e-7)
    np.testing.assert_allclose(problem.value_grad(at)[1], numeric, atol=1e-5)
    assert np.all(np.isfinite(problem.gradient_sizes(at)))


def test_a_gap_is_never_negative_nor_nan_far_from_the_minimum():
    rng = np.random.default_rng(8)
    X, positive = rng.normal(size=(30, 2)), np.arange(30) % 2 == 0
    for alpha, size in itertools.product((0.0, 1e-3), (1e-150, 1.0, 1e3)):
        data = LabelledData.of_arrays(X, positive)
        problem = problem_of(data, Task.build(p=4.0, alpha=alpha))
        with np.errstate(all="ignore"):  # as solvers call it
            gap = primal_dual_gap(problem, size * np.ones(2))
        assert gap >= 0


def test_every_price_and_loss_is_attacked_here():
    assert {price for price, *_ in FORMULAS} | {"identity", "max"} == set(REGISTERED)
    assert {loss for _, _, loss, _ in FORMULAS} == set(TRAINABLE_LOSSES)
