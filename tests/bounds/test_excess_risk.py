"""Excess risks of Clémençon, Lugosi & Vayatis 2006 and the psi-transform, against the formulas."""

import math
from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.bounds import (
    excess_convex_risk,
    excess_ranking_risk,
    psi_transform,
    rademacher_average,
    ranking_risk_from_convex,
    separate_pair_errors,
    u_statistic,
)
from toprank.losses import TRAINABLE_LOSSES, Exponential, from_callable, get_loss

# every decimal below was worked to 30 digits from the printed formula, apart from this code

HOEFFDING = [  # 2 exp(-2 floor(n/2) t^2)
    (dict(n=100, deviation=0.2), 0.0366312777774683606),
    (dict(n=1000, deviation=0.05), 0.164169997247797590),
    (dict(n=15, deviation=0.5), 0.0603947668446370015),
]
BERNSTEIN = [  # 2 exp(-floor(n/2) t^2 / (2 sigma^2 + 2t/3))
    (dict(n=100, deviation=0.2, variance=0.02), 1.94957442870676723e-5),
    (dict(n=1000, deviation=0.05, variance=0.05), 1.69636470492938322e-4),
    (dict(n=15, deviation=0.5, variance=0.0), 0.0104950367983627686),
]
PROJECTION = [  # 4 exp(-n t^2 / (8 s^2 + c t))
    (dict(n=100, deviation=0.2, variance=0.01, constant=1.0), 2.49949980378523603e-6),
    (dict(n=1000, deviation=0.1, variance=0.05, constant=5.0), 5.97813540991257822e-5),
    (dict(n=50, deviation=0.5, variance=0.0, constant=2.0), 1.49066126883146840e-5),
]
ALL = [
    (dict(arguments, method=method), expected)
    for method, cases in (
        ("hoeffding", HOEFFDING),
        ("bernstein", BERNSTEIN),
        ("projection", PROJECTION),
    )
    for arguments, expected in cases
]


@pytest.mark.parametrize(("arguments", "expected"), ALL)
def test_the_probability_is_the_inequalitys(arguments, expected):
    bound = u_statistic(**arguments)
    assert bound.value == pytest.approx(expected, rel=1e-12)
    assert not bound.vacuous


@pytest.mark.parametrize(("arguments", "probability"), ALL)
def test_the_deviation_of_the_probability_is_the_deviation(arguments, probability):
    arguments = dict(arguments)
    deviation = arguments.pop("deviation")
    bound = u_statistic(probability=probability, **arguments)
    assert bound.value == pytest.approx(deviation, rel=1e-10)


@given(
    st.sampled_from(ALL),
    st.floats(1e-3, 1e3),
    st.floats(1e-3, 0.9),
    st.floats(1.0, 5.0),
)
def test_units_do_not_matter_and_more_rows_and_deviation_help(chosen, unit, t, more):
    arguments = dict(chosen[0])
    arguments.pop("deviation")
    here = u_statistic(deviation=t, **arguments)
    scaled = dict(arguments, kernel_range=unit)
    if "variance" in arguments:
        scaled["variance"] = arguments["variance"] * unit**2
    assert u_statistic(deviation=t * unit, **scaled).value == pytest.approx(here.value, rel=1e-9)
    assert u_statistic(deviation=t * more, **arguments).value <= here.value
    rows = arguments | {"n": math.ceil(arguments["n"] * more)}
    assert u_statistic(deviation=t, **rows).value <= here.value


def test_the_second_form_of_hoeffdings_inequality_is_weaker():
    for n in range(2, 30):  # 2 exp(-(n - 1) t^2)
        assert u_statistic(deviation=0.9, n=n).value <= 2 * exp(-(n - 1) * 0.81) * (1 + 1e-12)


def test_a_smaller_variance_beats_hoeffding_once_the_sample_is_large():
    case = dict(probability=0.05, n=10_000)
    hoeffding = u_statistic(**case).value
    bernstein = u_statistic(method="bernstein", variance=0.05, **case).value
    projection = u_statistic(method="projection", variance=0.01, constant=10.0, **case).value
    assert projection < bernstein < hoeffding


@pytest.mark.parametrize("few", [dict(n=2, probability=0.05), dict(n=2, deviation=0.1)])
def test_too_few_rows_say_nothing(few):
    bound = u_statistic(**few)
    assert bound.vacuous and "says nothing" in bound.statement


def test_tiny_probabilities_are_rounded_up_and_not_to_zero():
    assert u_statistic(deviation=0.9, n=10**9).value == 5e-324
    assert "10^-3.518e+08" in u_statistic(deviation=0.9, n=10**9).statement


@pytest.mark.parametrize("method", ["hoeffding", "bernstein"])
def test_absurd_units_give_no_nan(method):
    extra = {} if method == "hoeffding" else {"variance": 1.0}
    for deviation, unit in ((1e300, 1e-300), (1e-300, 1e300), (1e300, 1e300)):
        bound = u_statistic(deviation=deviation, n=10, kernel_range=unit, method=method, **extra)
        assert bound.vacuous and 0.0 < bound.value <= 1.0


@pytest.mark.parametrize("chance", [0.5, 0.05])
@pytest.mark.parametrize("n", [11, 40])
def test_deviations_are_no_more_frequent_than_the_bounds(chance, n):
    # the kernel (x + x')/2 of coin tosses: U_n is their mean, so the frequencies are binomial
    variance = chance * (1 - chance)
    weights = [math.comb(n, k) * chance**k * (1 - chance) ** (n - k) for k in range(n + 1)]
    informative = 0
    for t in np.arange(0.05, 0.95, 0.05):
        exceeds = [abs(k / n - chance) > t for k in range(n + 1)]
        frequency = math.fsum(w for w, far in zip(weights, exceeds, strict=True) if far)
        bounds = [
            u_statistic(deviation=t, n=n),
            u_statistic(deviation=t, n=n, method="bernstein", variance=variance / 2),
            # the kernel has no degenerate part, and Bernstein for means gives c = 2/3
            u_statistic(
                deviation=t, n=n, method="projection", variance=variance / 4, constant=2 / 3
            ),
        ]
        assert all(frequency <= bound.value for bound in bounds)
        informative += sum(not bound.vacuous and frequency > 0 for bound in bounds)
    assert informative >= 3


def test_a_degenerate_kernel_keeps_the_bounds_in_simulation():
    # q(x, x') = (1 + x x')/2 for random signs: the projection is constant
    rng, n, draws = np.random.default_rng(0), 12, 4000
    sums = rng.choice([-1.0, 1.0], size=(draws, n)).sum(axis=1)
    u = 0.5 + 0.5 * (sums**2 - n) / (n * (n - 1))
    seen = 0
    for t in (0.1, 0.2, 0.3, 0.4, 0.49):
        frequency = float(np.mean(np.abs(u - 0.5) > t))
        seen += frequency > 0
        assert frequency <= u_statistic(deviation=t, n=n).value
        assert frequency <= u_statistic(deviation=t, n=n, method="bernstein", variance=0.25).value
    assert seen >= 3


# ---- minimisers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [  # 4 E R_n + 4 sqrt(ln(1/delta) / (n - 1))
        (dict(rademacher=0.02, delta=0.05, n=10_000), 0.149236197200501013),
        (dict(rademacher=0.0, delta=0.5, n=101), 0.333021844463079103),
        (dict(rademacher=0.1, delta=0.001, n=500), 0.870628464109310076),
    ],
)
def test_corollary_3(arguments, expected):
    bound = excess_ranking_risk(**arguments)
    assert bound.value == pytest.approx(expected, rel=1e-13)
    assert not bound.vacuous


def test_corollary_3_says_when_it_says_nothing():
    bound = excess_ranking_risk(rademacher=0.2, delta=0.05, n=100)
    assert bound.vacuous and "says nothing" in bound.statement


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [  # 8 B phi'(B) R_n + 2 sqrt(2 phi(B)^2 ln(1/delta) / n)
        # 8 e R_n + 2 e sqrt(2 ln 20 / n)
        (
            dict(loss="exponential", score_bound=1, rademacher=0.001, delta=0.05, n=100_000),
            0.0638277316232983592,
        ),
        # 16 R_n + 6 sqrt(2 ln 100 / n)
        (
            dict(loss="hinge", score_bound=2, rademacher=0.002, delta=0.01, n=50_000),
            0.113433685092981,
        ),
        # 8 R_n / (1 + 1/e) + 2 ln(1 + e) sqrt(2 ln 10 / n)
        (
            dict(loss="logistic", score_bound=1, rademacher=0.001, delta=0.1, n=40_000),
            0.0340306182794552701,
        ),
        # below B = 1/2 the contraction's 4 stands for 8 B: 4 · 2.5 R_n + 2 · 1.25^2 sqrt(...)
        (
            dict(loss="squared_hinge", score_bound=0.25, rademacher=0.003, delta=0.1, n=40_000),
            0.0635307191607710506,
        ),
    ],
)
def test_proposition_12_as_corrected(arguments, expected):
    bound = excess_convex_risk(**arguments)
    assert bound.value == pytest.approx(expected, rel=1e-12)
    assert not bound.vacuous


def test_proposition_12_survives_costs_beyond_every_float():
    bound = excess_convex_risk(
        loss="exponential", score_bound=1e4, rademacher=0.0, delta=0.05, n=100
    )
    assert bound.value == math.inf and bound.vacuous and "says nothing" in bound.statement


def test_the_deviation_in_proposition_12_is_the_largest_cost_and_not_the_scores_bound():
    # printed: sqrt(2 B^2 ln(1/delta) / n); at B = 1 the exponential cost reaches e
    case = dict(loss="exponential", rademacher=0.0, delta=0.05, n=1000)
    printed = sqrt(2 * log(20) / 1000)
    assert excess_convex_risk(score_bound=1.0, **case).value == pytest.approx(2 * exp(1) * printed)


def test_the_minimiser_of_a_convex_risk_keeps_proposition_12():
    # f(x, x') = tanh of a linear score's difference, so |f| <= 1, under the hinge loss
    rng, n, draws, delta = np.random.default_rng(1), 400, 40, 0.5
    directions = np.array([[1.0, 0.6], [1.0, 0.0], [-0.5, 1.0]])
    truth = _hinge_risks(*_rows(rng, 3000), directions)
    excess, averages = [], []
    for _ in range(draws):
        x, y = _rows(rng, n)
        best = np.argmin(_hinge_risks(x, y, directions))
        excess.append(truth[best] - truth.min())
        if len(averages) < 10:
            pairs = np.tanh(directions @ (x[: n // 2] - x[n // 2 :]).T)
            drawn = rademacher_average(pairs, absolute=False, n_draws=200, random_state=0)
            averages.append(drawn.value)
    bound = excess_convex_risk(
        loss="hinge", score_bound=1.0, rademacher=float(np.mean(averages)), delta=delta, n=n
    )
    assert not bound.vacuous
    assert np.mean(np.array(excess) > bound.value) <= delta


def test_the_minimiser_of_the_ranking_risk_keeps_corollary_3():
    rng, n, draws, delta = np.random.default_rng(0), 400, 60, 0.5
    directions = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [-1.0, 0.2]])
    _, errors = _ranking_sample(rng, 3000, directions)
    truth = errors.mean(axis=(1, 2))
    excess, averages = [], []
    for _ in range(draws):
        (y, scores), errors = _ranking_sample(rng, n, directions)
        best = np.argmin(errors.mean(axis=(1, 2)))
        excess.append(truth[best] - truth.min())
        if len(averages) < 10:
            pairs = separate_pair_errors(y, scores)
            averages.append(rademacher_average(pairs, n_draws=200, random_state=0).value)
    bound = excess_ranking_risk(delta=delta, n=n, rademacher=float(np.mean(averages)))
    assert not bound.vacuous
    assert np.mean(np.array(excess) > bound.value) <= delta


def _rows(rng, n):
    x = rng.normal(size=(n, 2))
    return x, (x @ np.array([1.0, 0.6]) + rng.normal(size=n) > 0).astype(int)


def _ranking_sample(rng, n, directions):
    x, y = _rows(rng, n)
    scores = directions @ x.T
    order = scores[:, :, np.newaxis] - scores[:, np.newaxis, :]
    return (y, scores), (y[:, np.newaxis] - y) * order < 0


def _hinge_risks(x, y, directions):
    """Mean over ordered pairs of (1 - sgn(y - y') f(x, x'))+ for every direction."""
    better = np.sign(y[:, np.newaxis] - y)
    off_diagonal = ~np.eye(len(y), dtype=bool)
    risks = []
    for direction in directions:
        scores = x @ direction
        f = np.tanh(scores[:, np.newaxis] - scores)
        risks.append(np.mean(np.maximum(0.0, 1.0 - better * f)[off_diagonal]))
    return np.array(risks)


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(n=10), "exactly one of deviation, probability"),
        (dict(n=1, deviation=0.1), "n=1"),
        (dict(n=10, deviation=-0.1), "deviation=-0.1"),
        (dict(n=10, deviation=0.1, method="chernoff"), "method='chernoff' is unknown"),
        (dict(n=10, deviation=0.1, method="bernstein"), "method='bernstein' needs variance"),
        (dict(n=10, deviation=0.1, variance=0.1), "method='hoeffding' does not use variance"),
        (
            dict(n=10, deviation=0.1, method="projection", variance=0.1),
            "method='projection' needs constant",
        ),
        (
            dict(n=10, deviation=0.1, method="bernstein", variance=0.1, constant=1.0),
            "method='bernstein' does not use constant",
        ),
        (dict(n=10, deviation=0.1, method="bernstein", variance=-0.1), "variance=-0.1"),
        (dict(n=10, deviation=0.1, kernel_range=0.0), "kernel_range=0.0"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        u_statistic(**arguments)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rademacher": -0.1}, "rademacher=-0.1"),
        ({"loss": "zero_one"}, "is not convex"),
        ({"loss": "square"}, "Unknown loss"),
        ({"score_bound": 0.0}, "score_bound=0.0"),
        ({"delta": 2.0}, "delta=2.0"),
    ],
)
def test_bad_arguments_of_proposition_12_are_named(changes, message):
    case = dict(loss="hinge", score_bound=1.0, rademacher=0.1, delta=0.05, n=100)
    with pytest.raises(ValueError, match=message):
        excess_convex_risk(**case | changes)


CLOSED = {  # Bartlett, Jordan & McAuliffe 2006, Table 1, in the library's scale
    "exponential": lambda x: 1 - sqrt(1 - x**2),
    "hinge": abs,
    "squared_hinge": lambda x: x**2,
    "logistic": lambda x: log(2) + sum(q * log(q) for q in ((1 + x) / 2, (1 - x) / 2) if q > 0),
}


class NameKept(Exponential):
    """A user's loss that only borrows the name of a registered one."""

    def value(self, r):
        return 2.0 * super().value(r)


def test_every_trainable_loss_has_a_closed_form_here():
    assert set(CLOSED) == set(TRAINABLE_LOSSES)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("loss", TRAINABLE_LOSSES)
@pytest.mark.parametrize("x", [0.0, 1e-3, 0.3, 0.7, 0.99, 1.0])
def test_psi_is_the_definition(loss, x):
    alpha = np.linspace(-20, 20, 400_001)
    rho, l = (1 + x) / 2, get_loss(loss)  # noqa: E741
    risk = rho * l.value(alpha) + (1 - rho) * l.value(-alpha)
    wrong = np.min(risk[alpha * (2 * rho - 1) <= 0])
    assert psi_transform(loss, x) == pytest.approx(wrong - np.min(risk), abs=1e-8)
    assert psi_transform(loss, x) == pytest.approx(CLOSED[loss](x), abs=1e-12)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("loss", TRAINABLE_LOSSES)
@pytest.mark.parametrize("x", [0.0, 1e-6, 0.3, 0.9, 1.0])
def test_your_own_loss_is_minimised_numerically(loss, x):
    known = get_loss(loss)
    mine = from_callable(known.value, known.slope)
    assert psi_transform(mine, x) == pytest.approx(CLOSED[loss](x), abs=1e-9)


def test_a_loss_that_borrows_a_name_is_not_mistaken_for_it():
    assert psi_transform(NameKept(), 0.6) == pytest.approx(2 * 0.2)


@given(st.sampled_from(sorted(TRAINABLE_LOSSES)), st.floats(1e-100, 1.0))
def test_the_inverse_undoes_psi(loss, x):
    bound = ranking_risk_from_convex(loss=loss, excess=psi_transform(loss, x))
    assert bound.value == pytest.approx(x, rel=1e-7)


@given(st.sampled_from(sorted(TRAINABLE_LOSSES)), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_psi_is_convex_and_rises_from_zero(loss, a, b):
    psi = [psi_transform(loss, x) for x in (min(a, b), (a + b) / 2, max(a, b))]
    assert 0.0 <= psi[0] <= psi[1] <= psi[2]
    assert psi[1] <= (psi[0] + psi[2]) / 2 + 1e-12


@pytest.mark.parametrize(
    ("loss", "excess", "expected"),
    [
        ("exponential", 0.2, 0.6),  # sqrt(1 - 0.8^2)
        ("hinge", 0.25, 0.25),
        ("squared_hinge", 0.0625, 0.25),
        ("exponential", 0.0, 0.0),
    ],
)
def test_excess_ranking_risk_by_hand(loss, excess, expected):
    bound = ranking_risk_from_convex(loss=loss, excess=excess)
    assert bound.value == pytest.approx(expected, rel=1e-12, abs=0.0)
    assert not bound.vacuous


def test_a_large_excess_says_nothing():
    bound = ranking_risk_from_convex(loss="logistic", excess=log(2))
    assert bound.value == 1.0 and bound.vacuous and "says nothing" in bound.statement


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(-5, 5)), min_size=1, max_size=5))
def test_the_ranking_regret_never_exceeds_the_bound(pairs):
    # pairs with probability rho that the first row is better, and a function's value f
    rho, f = np.array(pairs).T
    regret = np.mean(np.abs(2 * rho - 1) * ((f > 0) != (rho > 0.5)))
    loss = get_loss("exponential")
    risk = np.mean(rho * loss.value(f) + (1 - rho) * loss.value(-f))
    excess = max(0.0, risk - np.mean(2 * np.sqrt(rho * (1 - rho))))
    bound = ranking_risk_from_convex(loss="exponential", excess=excess)
    assert regret <= bound.value + 1e-7


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: psi_transform("hinge", 1.5), "x=1.5"),
        (lambda: psi_transform("hinge", -0.5), "x=-0.5"),
        (lambda: psi_transform("zero_one", 0.5), "does not fall at 0"),
        (
            lambda: psi_transform(from_callable(lambda r: r**2, lambda r: 2 * r), 0.5),
            "does not fall at 0",
        ),
        (lambda: ranking_risk_from_convex(loss="hinge", excess=-1.0), "excess=-1.0"),
    ],
)
def test_bad_arguments_of_the_transform_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
