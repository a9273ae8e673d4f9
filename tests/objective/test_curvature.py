"""Gradient and curvature for boosted trees: against the engine, differences and the theory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.losses import TRAINABLE_LOSSES, Exponential
from toprank.objective import boostable, build_objective, grad_curvature
from toprank.objective.curvature import LARGEST_POWER, _is_factorised_power
from toprank.objective.pairwise import PairTask
from toprank.pairs import Graded
from toprank.prices import PRICES, Log1p, Power, Price, get_price

SETTINGS = [
    (price, loss, p)
    for price in PRICES
    for loss in TRAINABLE_LOSSES
    for p in (1.0, 4.0, 64.0)
    if (price != "log1p" or loss == "exponential") and (price == "power" or p == 4.0)
]


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    positive = rng.random(80) < 0.3
    weight = rng.integers(0, 4, 80).astype(float)
    return positive, weight, rng.normal(size=80)


class Unfused(Exponential):
    """The exponential loss without its shortcut."""

    factorises = False

    def log_value(self, r):
        return -r


@pytest.mark.parametrize(("price", "loss", "p"), SETTINGS)
def test_the_gradient_is_the_engines_own(rows, price, loss, p):
    positive, weight, scores = rows
    objective = boostable(build_objective(positive, weight, price=price, p=p, loss=loss))
    gradient, curvature = grad_curvature(objective, scores)
    np.testing.assert_allclose(gradient, objective.value_grad(scores)[1], rtol=1e-10, atol=1e-14)
    assert np.all(curvature >= 0)
    assert np.all(curvature[np.abs(gradient) > 0] > 0)
    assert np.all(curvature[weight == 0] == 0)


@pytest.mark.parametrize(("price", "loss", "p"), [s for s in SETTINGS if s[0] != "max"])
def test_the_gradient_matches_finite_differences(rows, price, loss, p):
    positive, weight, scores = rows
    objective = build_objective(positive, weight, price=price, p=p, loss=loss)
    gradient, _ = grad_curvature(objective, scores)
    step = 1e-6
    for row in range(0, 80, 7):
        ahead, behind = scores.copy(), scores.copy()
        ahead[row] += step
        behind[row] -= step
        chord = (objective.value(ahead) - objective.value(behind)) / (2 * step)
        assert gradient[row] == pytest.approx(chord, rel=1e-4, abs=1e-8 * objective.scale)


@pytest.mark.parametrize("p", [1.0, 4.0, 64.0])
def test_the_shortcut_of_the_exponential_loss_equals_the_sums_over_pairs(rows, p):
    positive, weight, scores = rows
    short = build_objective(positive, weight, p=p)
    sides, price = short.sides, Power(p)
    long = type(short)(sides, price, Unfused())
    assert _is_factorised_power(short)
    assert not _is_factorised_power(long)
    for ours, theirs in zip(
        grad_curvature(short, scores), grad_curvature(long, scores), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("end", ["top", "bottom"])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_the_shortcut_is_the_same_where_nearly_all_rows_are_of_one_class(end, share):
    rng = np.random.default_rng(5)
    positive, scores = rng.random(200) < share, 3.0 * rng.normal(size=200)
    scores[~positive] += 40.0  # the smaller class far above or below the other
    short = build_objective(positive, None, p=4.0, end=end)
    long = type(short)(short.sides, Power(4.0), Unfused())
    for ours, theirs in zip(
        grad_curvature(short, scores), grad_curvature(long, scores), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("p", [1.0, 4.0, 64.0])
def test_one_group_is_one_list(rows, p):
    positive, weight, scores = rows
    weight = weight + 1.0
    relation = Graded(positive.astype(int), None, np.arange(80))
    grouped = PairTask.build(relation, weight, price="power", p=p, loss="exponential").objective()
    whole = build_objective(positive, weight, p=p)
    for ours, theirs in zip(
        grad_curvature(grouped, scores), grad_curvature(whole, scores), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-13)


@given(
    s=st.floats(1e-6, 1.0),
    t=st.floats(1e-6, 1.0),
    p=st.floats(1.0, 64.0),
)
def test_a_leaf_never_passes_its_best_step(s, t, p):
    best = np.log(s / t) / (1 + p)
    ours = 2 / (1 + p) * (s - t) / (s + t)
    assert abs(ours) <= abs(best) * (1 + 1e-9)
    assert ours * best >= 0


@given(seed=st.integers(0, 10_000), p=st.sampled_from([1.0, 2.0, 8.0, 64.0]))
def test_a_round_of_leaf_steps_never_raises_the_objective(seed, p):
    rng = np.random.default_rng(seed)
    positive = np.arange(40) % 4 == 0
    objective = build_objective(positive, p=p)
    scores, leaf = rng.normal(size=40) / p, rng.integers(0, 6, 40)
    gradient, curvature = grad_curvature(objective, scores)
    step = -np.bincount(leaf, gradient, 6) / np.maximum(np.bincount(leaf, curvature, 6), 1e-300)
    moved = scores + step[leaf]
    assert objective.value(moved) <= objective.value(scores) + 1e-12


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_the_curvature_bounds_the_hessian_of_the_power_price_at_p_1_up_to_a_factor_of_two(
    rows, loss
):
    positive, _, scores = rows
    objective = build_objective(positive, p=1.0, loss=loss)
    _, curvature = grad_curvature(objective, scores)
    times = objective.hessian_map(scores)
    hessian = np.column_stack([times(unit) for unit in np.eye(80)])
    assert np.linalg.eigvalsh(2 * np.diag(curvature) - hessian).min() >= -1e-12


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("p", [1.0, 64.0])
def test_scores_of_any_size_have_finite_derivatives(rows, scale, p):
    positive, weight, scores = rows
    for loss in TRAINABLE_LOSSES:
        objective = build_objective(positive, weight, p=p, loss=loss)
        for part in grad_curvature(objective, scale * scores):
            assert np.all(np.isfinite(part))


def test_the_maximum_becomes_the_largest_power(rows):
    objective = boostable(build_objective(rows[0], price="max"))
    assert objective.price.p == LARGEST_POWER
    with pytest.raises(ValueError, match="no slope"):
        boostable(build_objective(rows[0], loss="zero_one"))


@pytest.mark.parametrize("name", ["power", "exponential", "log1p"])
def test_the_elasticity_bounds_the_bend_of_the_price(name):
    price = get_price(name, 3.0)
    rng = np.random.default_rng(0)
    log_s, log_w = rng.normal(size=12), np.log(np.full(12, 1 / 12))
    slope = price.value_slope(log_s, log_w)[1]
    change = price.slope_change(log_s, log_w)
    bend = np.array([change(unit)[k] for k, unit in enumerate(np.eye(12))])
    assert np.all(bend <= price.elasticity(log_s, log_w) * slope * (1 + 1e-12))


def test_a_price_without_curvature_counts_as_flat():
    class Plain(Log1p):
        has_curvature = False

    assert isinstance(Plain(), Price)
    np.testing.assert_array_equal(Plain().elasticity(np.zeros(3), np.zeros(3)), 1.0)
