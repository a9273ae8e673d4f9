"""The strongly proper losses do what Agarwal (2012) says of them, and what Definition 7 says."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.losses.proper import (
    PROPER_LOSSES,
    CanonicalExponential,
    CanonicalSpherical,
    CanonicalSquared,
    Exponential,
    Logistic,
    ProperLoss,
    Spherical,
    Squared,
    balanced,
    canonical,
    from_bayes_risk,
    get_proper_loss,
)

TABLE_1 = {
    Exponential: (4, lambda y, v: np.exp(-y * v)),
    Logistic: (4, lambda y, v: np.log(1 + np.exp(-y * v))),
    Squared: (8, lambda y, v: (1 - y * v) ** 2),
    Spherical: (1, lambda y, v: 1 - np.where(y > 0, v, 1 - v) / np.sqrt(v**2 + (1 - v) ** 2)),
    CanonicalExponential: (4, lambda y, v: np.sqrt(1 + (v / 2) ** 2) - y * v / 2),
    CanonicalSquared: (2, lambda y, v: (1 - y * v) ** 2 / 4),
    CanonicalSpherical: (1, lambda y, v: 1 - (np.sqrt(2 - v**2) + y * v) / 2),
}
NAMED = [cls() for cls in PROPER_LOSSES.values()]
BUILT = [
    canonical(Squared()),
    canonical(
        from_bayes_risk(lambda q: 1 - q**4 - (1 - q) ** 4, lambda q: 4 * (1 - q) ** 3 - 4 * q**3)
    ),
    balanced(Logistic(), 0.1),
    balanced(Squared(), 0.8),
    balanced(CanonicalSpherical(), 0.3),
]
each_loss = pytest.mark.parametrize("loss", NAMED + BUILT, ids=repr)
each_convex = pytest.mark.parametrize(
    "loss", [loss for loss in NAMED + BUILT if loss.convex], ids=repr
)

#: Probabilities that reach to a thousandth of both ends, closer together there and in the middle.
GRID = np.unique(
    np.concatenate(
        [
            np.linspace(1e-3, 1 - 1e-3, 301),
            1e-3 + np.linspace(0, 2e-3, 21),
            1 - 1e-3 - np.linspace(0, 2e-3, 21),
            0.5 + np.linspace(-1e-2, 1e-2, 21),
        ]
    )
)


def scores_of(loss, n=201, beyond=3.0):
    """Scores over the prediction space and some way beyond it."""
    low, high = loss.prediction_space
    return np.linspace(max(low, -8.0) - beyond, min(high, 8.0) + beyond, n)


def definition_7_margin(loss, modulus):
    """The least of L - H - (modulus/2)(eta - q)^2 over the grid."""
    eta, q = GRID[:, None], GRID[None, :]
    return np.min(loss.plug_in_regret(eta, q) - modulus / 2 * (eta - q) ** 2)


@each_loss
def test_definition_7_holds_for_lambda(loss):
    assert loss.strong_properness > 0
    assert definition_7_margin(loss, loss.strong_properness) >= -1e-12


@pytest.mark.parametrize("loss", NAMED, ids=repr)
def test_definition_7_fails_for_a_lambda_one_percent_larger(loss):
    assert definition_7_margin(loss, 1.01 * loss.strong_properness) < -1e-12


@pytest.mark.parametrize("loss", BUILT, ids=repr)
def test_an_estimated_lambda_cannot_be_much_larger(loss):
    # the infimum may lie at 0 or 1, which the grid does not reach
    assert definition_7_margin(loss, 1.05 * loss.strong_properness) < -1e-12


def test_the_text_of_the_paper_gives_a_lambda_that_definition_7_refutes():
    assert definition_7_margin(CanonicalSquared(), 4.0) < -0.1  # Example 6: "4-strongly proper"
    assert definition_7_margin(Squared(), 8.0) >= -1e-12  # Example 6 says 4 of this one: too small


@pytest.mark.parametrize("cls", TABLE_1, ids=lambda cls: cls.__name__)
def test_table_1_is_what_is_implemented(cls):
    modulus, formula = TABLE_1[cls]
    loss = cls()
    assert loss.strong_properness == modulus
    low, high = loss.prediction_space
    v = np.linspace(max(low, -6.0), min(high, 6.0), 101)
    for y in (-1, 1):
        np.testing.assert_allclose(loss.loss(y, v), formula(y, v), rtol=1e-12, atol=1e-14)


@each_loss
def test_the_loss_of_a_score_is_the_partial_loss_of_its_probability(loss):
    for y in (-1, 1):
        np.testing.assert_allclose(
            loss.loss(y, loss.link(GRID)), loss.partial(y, GRID), rtol=1e-9, atol=1e-12
        )


@each_loss
def test_the_partial_losses_come_from_the_bayes_risk_by_equations_31_and_32(loss):
    risk, slope = loss.bayes_risk(GRID), loss.bayes_risk_slope(GRID)
    np.testing.assert_allclose(loss.partial(1, GRID), risk + (1 - GRID) * slope, atol=1e-11)
    np.testing.assert_allclose(loss.partial(-1, GRID), risk - GRID * slope, atol=1e-11)


@each_loss
def test_the_bayes_risk_is_the_infimum_of_the_conditional_risk(loss):
    eta = GRID[:, None]
    at_scores = loss.conditional_risk(eta, scores_of(loss))
    assert np.all(at_scores >= loss.bayes_risk(eta) - 1e-12)
    assert np.all(loss.plug_in_risk(eta, GRID) >= loss.bayes_risk(eta) - 1e-12)
    np.testing.assert_allclose(loss.plug_in_risk(GRID, GRID), loss.bayes_risk(GRID), atol=1e-12)
    np.testing.assert_allclose(
        loss.conditional_risk(GRID, loss.link(GRID)), loss.bayes_risk(GRID), atol=1e-10
    )


@each_loss
def test_the_link_and_its_inverse_are_inverse(loss):
    np.testing.assert_allclose(loss.inverse_link(loss.link(GRID)), GRID, rtol=0, atol=1e-12)
    low, high = loss.prediction_space
    v = np.linspace(max(low, -5.0), min(high, 5.0), 201)
    np.testing.assert_allclose(loss.link(loss.inverse_link(v)), v, rtol=1e-12, atol=1e-12)


@each_loss
def test_the_link_rises_and_probabilities_stay_probabilities(loss):
    assert np.all(np.diff(loss.link(GRID)) > 0)
    q = loss.inverse_link(scores_of(loss, beyond=100.0))
    assert np.all((q >= 0) & (q <= 1)) and np.all(np.diff(q) >= 0)


@each_loss
def test_the_limits_at_the_ends_are_right(loss):
    low, high = loss.prediction_space
    np.testing.assert_allclose(loss.link([0.0, 1.0]), [low, high])
    np.testing.assert_allclose(loss.inverse_link([low, high]), [0.0, 1.0])
    np.testing.assert_allclose(loss.bayes_risk([0.0, 1.0]), 0.0)
    np.testing.assert_allclose(loss.partial([1, -1], [1.0, 0.0]), 0.0)
    worst = loss.partial([1, -1], [0.0, 1.0])
    assert np.all(worst > 0) and not np.any(np.isnan(worst))
    np.testing.assert_allclose(loss.plug_in_risk([0.0, 1.0], [0.0, 1.0]), 0.0)
    np.testing.assert_allclose(loss.plug_in_risk([1.0, 0.0], [0.0, 1.0]), worst)


@pytest.mark.parametrize("cls", [Exponential, Logistic, CanonicalExponential])
def test_certainty_that_is_wrong_costs_infinitely_much(cls):
    assert np.all(np.isinf(cls().partial([1, -1], [0.0, 1.0])))
    np.testing.assert_array_equal(cls().loss([1, -1], [-np.inf, np.inf]), np.inf)
    np.testing.assert_array_equal(cls().loss([1, -1], [np.inf, -np.inf]), 0.0)


@each_loss
def test_derivatives_of_the_bayes_risk_match_finite_differences(loss):
    h = 1e-5
    q = GRID[(GRID > 0.01) & (GRID < 0.99)]
    slope = (loss.bayes_risk(q + h) - loss.bayes_risk(q - h)) / (2 * h)
    np.testing.assert_allclose(loss.bayes_risk_slope(q), slope, rtol=1e-5, atol=1e-7)
    if loss.has_risk_curvature:
        bend = (loss.bayes_risk_slope(q + h) - loss.bayes_risk_slope(q - h)) / (2 * h)
        np.testing.assert_allclose(loss.bayes_risk_curvature(q), bend, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("y", [-1, 1])
@each_loss
def test_derivatives_in_the_score_match_finite_differences(loss, y):
    h = 1e-6
    v = scores_of(loss, 240)  # an even number of points misses the ends of the space
    slope = (loss.loss(y, v + h) - loss.loss(y, v - h)) / (2 * h)
    np.testing.assert_allclose(loss.slope(y, v), slope, rtol=1e-6, atol=1e-7)
    if loss.has_curvature:
        bend = (loss.slope(y, v + h) - loss.slope(y, v - h)) / (2 * h)
        np.testing.assert_allclose(loss.curvature(y, v), bend, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("y", [-1, 1])
@each_convex
def test_a_convex_loss_goes_on_convexly_beyond_its_prediction_space(loss, y):
    slope = loss.slope(y, scores_of(loss, 2001))
    assert np.all(np.diff(slope) >= -1e-12)
    if loss.monotone:
        assert np.all(y * slope <= 1e-12)
    if loss.has_curvature:
        assert np.all(loss.curvature(y, scores_of(loss)) >= 0)


def test_the_spherical_loss_is_not_convex_with_the_identity_link():
    v = np.linspace(0, 1, 1001)
    assert not Spherical().convex
    assert np.min(np.diff(Spherical().slope(1, v))) < -1e-6


@given(
    name=st.sampled_from(sorted(PROPER_LOSSES)),
    eta=st.floats(0, 1),
    q=st.floats(0, 1),
)
def test_definition_7_holds_for_any_two_probabilities(name, eta, q):
    loss = get_proper_loss(name)
    regret = loss.plug_in_regret(eta, q)
    assert regret >= loss.strong_properness / 2 * (eta - q) ** 2 - 1e-12


@given(
    name=st.sampled_from(sorted(PROPER_LOSSES)),
    y=st.sampled_from([-1, 1]),
    v=st.floats(allow_nan=False),
)
def test_extreme_scores_give_numbers_and_no_warnings(name, y, v):
    loss = get_proper_loss(name)
    assert 0 <= loss.inverse_link(v) <= 1
    assert loss.loss(y, v) >= 0
    if np.isfinite(v):
        assert not np.isnan(loss.slope(y, v))
        assert not loss.has_curvature or loss.curvature(y, v) >= 0


@pytest.mark.parametrize("loss", NAMED, ids=repr)
def test_any_loss_can_be_rebuilt_from_its_bayes_risk(loss):
    again = from_bayes_risk(loss.bayes_risk, loss.bayes_risk_slope)
    assert again.strong_properness == pytest.approx(loss.strong_properness, rel=1e-4)
    for y in (-1, 1):
        np.testing.assert_allclose(again.partial(y, GRID), loss.partial(y, GRID), atol=1e-10)
        assert again.partial(y, (1 + y) / 2) == pytest.approx(0.0)
    given_curvature = from_bayes_risk(
        loss.bayes_risk, loss.bayes_risk_slope, loss.bayes_risk_curvature
    )
    assert given_curvature.strong_properness == pytest.approx(loss.strong_properness, rel=1e-9)


@pytest.mark.parametrize("loss", NAMED, ids=repr)
def test_the_canonical_link_is_the_difference_of_the_partial_losses(loss):
    own = canonical(loss)
    np.testing.assert_allclose(
        own.link(GRID), loss.partial(-1, GRID) - loss.partial(1, GRID), rtol=1e-10, atol=1e-12
    )
    assert own.strong_properness == loss.strong_properness
    assert own.convex and own.has_curvature


@pytest.mark.parametrize(
    "closed", [CanonicalExponential(), CanonicalSpherical(), Logistic()], ids=repr
)
def test_bisection_finds_the_closed_form_of_a_canonical_loss(closed):
    built = canonical(
        from_bayes_risk(closed.bayes_risk, closed.bayes_risk_slope, closed.bayes_risk_curvature)
    )
    v = scores_of(closed)
    np.testing.assert_allclose(built.inverse_link(v), closed.inverse_link(v), rtol=1e-12)
    for y in (-1, 1):
        np.testing.assert_allclose(built.loss(y, v), closed.loss(y, v), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(built.slope(y, v), closed.slope(y, v), atol=1e-12)
        np.testing.assert_allclose(built.curvature(y, v), closed.curvature(y, v), rtol=1e-8)


def test_the_canonical_squared_loss_of_example_6():
    own = canonical(Squared())
    v = np.linspace(-4, 4, 101)
    assert own.prediction_space == (-4.0, 4.0)
    for y in (-1, 1):
        np.testing.assert_allclose(own.loss(y, v), (1 - y * v / 4) ** 2, atol=1e-12)


def test_partial_losses_as_a_callable_get_their_canonical_link():
    own = canonical(lambda y, q: np.where(y > 0, (1 - q) ** 2, q**2))
    v = np.linspace(-1, 1, 101)
    np.testing.assert_allclose(own.loss(1, v), (1 - v) ** 2 / 4, atol=1e-12)
    assert own.strong_properness == pytest.approx(2.0)


@pytest.mark.parametrize("p", [0.02, 0.5, 0.9])
@pytest.mark.parametrize("loss", NAMED, ids=repr)
def test_a_balanced_loss_weighs_the_classes_by_equation_28(loss, p):
    even = balanced(loss, p)
    v = scores_of(loss)
    np.testing.assert_allclose(even.loss(1, v), loss.loss(1, v) / (2 * p))
    np.testing.assert_allclose(even.loss(-1, v), loss.loss(-1, v) / (2 * (1 - p)))
    # a row as likely positive as the prevalence says is worth one half once balanced
    np.testing.assert_allclose(even.link(p), loss.link(0.5), atol=1e-12)
    assert definition_7_margin(even, even.strong_properness) >= -1e-11


@pytest.mark.parametrize("p", [0.05, 0.3, 0.5, 0.8])
def test_the_modulus_of_the_balanced_squared_loss_has_a_closed_form(p):
    m = min(p, 1 - p)
    assert balanced(Squared(), p).strong_properness == pytest.approx(4 * m / (1 - m) ** 2)


def test_a_bayes_risk_with_a_kink_is_proper_but_not_strongly():
    cost = from_bayes_risk(lambda q: np.minimum(q, 1 - q), lambda q: np.where(q < 0.5, 1.0, -1.0))
    assert cost.strong_properness == 0.0
    np.testing.assert_array_equal(cost.partial(1, [0.2, 0.8]), [1.0, 0.0])
    with pytest.raises(ValueError, match="straight pieces"):
        canonical(cost)


@pytest.mark.parametrize(
    ("H", "dH", "says"),
    [
        (lambda q: q**2, lambda q: 2 * q, "not concave"),
        (lambda q: q * (1 - q), lambda q: 2 - 4 * q, "not its derivative"),
        (lambda q: q * (1 - q) - 1, lambda q: 1 - 2 * q, "negative"),
        (lambda q: -q * np.log(q), lambda q: -np.log(q) - 1, "limits at 0 and 1"),
        (lambda q: 0.25, lambda q: 0.0, "elementwise"),
    ],
)
def test_what_is_no_bayes_risk_is_refused_with_the_reason(H, dH, says):
    with pytest.raises(ValueError, match=says):
        from_bayes_risk(H, dH)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: Logistic().bayes_risk([0.2, 1.2]), r"1\.2"),
        (lambda: Logistic().bayes_risk(np.nan), "nan"),
        (lambda: Logistic().partial(2, 0.5), "Labels"),
        (lambda: Logistic().loss("yes", 0.5), "Labels"),
        (lambda: Logistic().loss(1, np.nan), "NaN"),
        (lambda: balanced(Logistic(), 1.0), "prevalence"),
        (lambda: get_proper_loss("hinge"), "canonical_exponential"),
    ],
)
def test_bad_input_is_refused_with_the_reason(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_labels_may_be_truth_values_or_zeros_and_ones():
    v = np.array([0.3, -2.0])
    expected = Logistic().loss([1, -1], v)
    np.testing.assert_array_equal(Logistic().loss([True, False], v), expected)
    np.testing.assert_array_equal(Logistic().loss([1, 0], v), expected)


def test_a_loss_given_as_h_alone_says_what_it_lacks():
    own = from_bayes_risk(lambda q: q * (1 - q), lambda q: 1 - 2 * q)
    assert not canonical(own).has_curvature
    with pytest.raises(TypeError, match="second derivative"):
        own.bayes_risk_curvature(0.5)
    with pytest.raises(TypeError, match="no curvature"):
        own.curvature(1, 0.5)


@pytest.mark.parametrize("loss", [*NAMED, *BUILT[2:]], ids=repr)
def test_losses_survive_pickling(loss):
    again = pickle.loads(pickle.dumps(loss))
    assert isinstance(again, ProperLoss) and repr(again) == repr(loss)
    np.testing.assert_array_equal(again.link(GRID), loss.link(GRID))


@pytest.mark.parametrize(
    ("slope", "curvature", "least"),
    [
        (lambda q: 1 - 2 * q, None, 2.0),
        (lambda q: 0.5 - q, None, 1.0),
        (lambda q: np.log1p(-q) - np.log(q), None, 4.0),
        (lambda q: (1 - 2 * q) / np.sqrt(q * (1 - q)), None, 4.0),
        # least at an end, and between the points of every grid
        (lambda q: -q - q**2, None, 1.0),
        (lambda q: -q - (q - 1 / np.pi) ** 3, None, 1.0),
        (lambda q: -q, lambda q: -1 - (q - 1 / np.pi) ** 2, 1.0),
    ],
)
def test_a_modulus_was_rounded_up_where_bounds_divide_by_it(slope, curvature, least):
    from toprank.losses.construct import modulus

    found = modulus(slope, curvature)
    assert least * (1 - 1e-5) <= found <= least
