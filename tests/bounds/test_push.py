"""Theorems 2 and 3 of Rudin 2009 and the form of 2006, against the formulas written out."""

import math
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.bounds import (
    ConvexCombinations,
    FiniteClass,
    LinearClass,
    pnorm_push,
    pnorm_push_2006,
    pnorm_push_fixed,
    pnorm_push_sample_size,
)
from toprank.metrics import auc, max_height, pnorm_risk

# ---- the printed formulas, in plain arithmetic ------------------------------------------------


def theorem_3(epsilon, n_pos, n_neg, p, number, r_min):
    """2 N (exp[-2 K max{(eps^2/16) R_min^(2(p-1)), (eps/4)^(2p)}] + exp[-eps^2/8 I + ln K])."""
    rate = max(epsilon**2 / 16 * r_min ** (2 * (p - 1)), (epsilon / 4) ** (2 * p))
    return 2 * number * (exp(-2 * n_neg * rate) + exp(-(epsilon**2) / 8 * n_pos + log(n_neg)))


def case(**changes):
    settings = dict(theta=0.1, n_pos=2000, n_neg=3000, p=2, log_covering_number=0.0)
    return settings | changes


# worked to 30 digits from the printed theorem, independently of this code
THEOREM_2 = [
    # 2 (e^-20 + 1000 e^-40)
    (dict(epsilon=0.4, p=1, n_neg=1000, n_pos=2000, functions=1), 4.12231574158562623911e-9),
    # 6 (e^-12.8 + 4000 e^-40)
    (dict(epsilon=0.8, p=2, n_neg=4000, n_pos=500, functions=3), 1.65646355341837068849e-5),
    # 2 (exp[-2 · 10^8 / 8^8] + 10^8 e^-31.25)
    (dict(epsilon=0.5, p=4, n_neg=10**8, n_pos=1000, functions=1), 1.86615388951319234722e-5),
]
THEOREM_3 = [
    # 2 (e^-20 + 4000 e^-20): the rate is 0.01 · 0.5^2, not 0.1^4
    (dict(epsilon=0.4, p=2, n_neg=4000, n_pos=1000, functions=1, r_min=0.5), 1.649335128675334e-5),
    # 20 (e^-10 + 2000 e^-24): the rate is 0.04 · 0.5^4
    (
        dict(epsilon=0.8, p=3, n_neg=2000, n_pos=300, functions=10, r_min=0.5),
        9.09508649067408670e-4,
    ),
    # 2 (e^-6.4 + 50000 e^-24): r_min is so small that Theorem 2's rate, 0.2^6, is larger
    (dict(epsilon=0.8, p=3, n_neg=50000, n_pos=300, functions=1, r_min=0.1), 3.326889680892148e-3),
]
FORM_OF_2006 = [4.12230725337382416652e-9, 1.65646354322486948834e-5, 1.32995312131883943835e-5]


@pytest.mark.parametrize(("arguments", "expected"), THEOREM_2 + THEOREM_3)
def test_the_probability_is_the_theorems(arguments, expected):
    arguments = dict(arguments)
    cover = FiniteClass(arguments.pop("functions"))
    bound = pnorm_push(theta=0.25, log_covering_number=cover, **arguments)
    assert bound.value == pytest.approx(expected, rel=1e-11)
    assert not bound.vacuous
    assert ("Theorem 3" if "r_min" in arguments else "Theorem 2") in bound.statement


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [(arguments, form) for (arguments, _), form in zip(THEOREM_2, FORM_OF_2006, strict=True)],
)
def test_the_form_of_2006_lacks_the_logarithm_of_the_negatives(arguments, expected):
    arguments = dict(arguments)
    cover = FiniteClass(arguments.pop("functions"))
    bound = pnorm_push_2006(theta=0.25, log_covering_number=cover, **arguments)
    assert bound.value == pytest.approx(expected, rel=1e-11)
    assert "superseded" in bound.statement
    assert any("superseded" in assumption for assumption in bound.assumes)


def test_the_covering_number_is_taken_at_an_eighth_of_epsilon_theta():
    radii = []

    def cover(radius):
        radii.append(radius)
        return 1.5

    bound = pnorm_push(epsilon=0.4, **case(theta=0.2, p=1, n_pos=9000, log_covering_number=cover))
    assert radii == [pytest.approx(0.4 * 0.2 / 8)]
    assert bound.value == pytest.approx(theorem_3(0.4, 9000, 3000, 1, exp(1.5), 0.0))


def test_a_linear_class_enters_by_its_dimension():
    # ln N = 3 ln(1 + 2 · 2 · 5 / (0.5 · 0.1 / 8)) = 3 ln 3201
    linear = LinearClass(3, coef_norm=2.0, row_norm=5.0)
    bound = pnorm_push(epsilon=0.5, **case(p=1, n_pos=4000, log_covering_number=linear))
    expected = theorem_3(0.5, 4000, 3000, 1, 3201.0**3, 0.0)
    assert bound.value == pytest.approx(expected, rel=1e-10)


# ---- what the formula implies -------------------------------------------------------------------

SIZES = st.floats(1.0, 1e9)
CASES = st.fixed_dictionaries(
    {
        "theta": st.floats(1e-3, 10.0),
        "n_pos": SIZES,
        "n_neg": SIZES,
        "p": st.floats(1.0, 100.0) | st.sampled_from([1.0, math.inf]),
        "log_covering_number": st.floats(0.0, 1e6) | st.builds(LinearClass, SIZES, SIZES, SIZES),
    }
)
EPSILONS = st.floats(1e-6, 0.999)
RISKS = st.floats(0.0, 1.0)


@given(CASES, EPSILONS, RISKS)
def test_theorem_3_is_never_looser_than_theorem_2(arguments, epsilon, r_min):
    second = pnorm_push(epsilon=epsilon, **arguments)
    third = pnorm_push(epsilon=epsilon, r_min=r_min, **arguments)
    assert third.value <= second.value
    assert second.vacuous or not third.vacuous


@given(CASES, st.floats(1e-300, 1.0), RISKS)
def test_theorem_3_never_asks_for_a_larger_epsilon(arguments, probability, r_min):
    second = pnorm_push(probability=probability, **arguments)
    third = pnorm_push(probability=probability, r_min=r_min, **arguments)
    assert third.value <= second.value


@given(CASES, EPSILONS, RISKS, st.floats(1.0, 4.0))
def test_a_larger_epsilon_or_more_positives_or_a_smaller_p_never_hurt(arguments, epsilon, r, more):
    here = pnorm_push(epsilon=epsilon, r_min=r, **arguments).value
    assert pnorm_push(epsilon=epsilon * more, r_min=r, **arguments).value <= here
    positives = arguments | {"n_pos": arguments["n_pos"] * more}
    assert pnorm_push(epsilon=epsilon, r_min=r, **positives).value <= here
    gentler = arguments | {"p": max(1.0, arguments["p"] / more)}
    assert pnorm_push(epsilon=epsilon, r_min=r, **gentler).value <= here


def test_more_negatives_can_help_and_can_hurt():
    values = [
        pnorm_push(epsilon=0.4, **case(p=1, n_pos=700, n_neg=n)).value for n in (300, 900, 100_000)
    ]
    assert values[0] > values[1] < values[2]


@given(CASES, st.floats(1e-4, 10.0), RISKS)
def test_epsilon_of_the_probability_of_epsilon_is_epsilon(arguments, epsilon, r_min):
    bound = pnorm_push(epsilon=epsilon, r_min=r_min, **arguments)
    back = pnorm_push(probability=bound.value, r_min=r_min, **arguments)
    if 1e-300 < bound.value < 1.0:  # below, floats lose digits
        assert back.value == pytest.approx(epsilon, rel=1e-6)
    elif bound.value == 1.0:  # the probability was cut at 1, so less cannot be promised
        assert back.value >= epsilon * (1 - 1e-9)


@given(CASES, st.floats(1e-300, 1.0), RISKS)
def test_the_epsilon_returned_keeps_the_probability_in_spite_of_rounding(arguments, chance, r_min):
    bound = pnorm_push(probability=chance, r_min=r_min, **arguments)
    assert pnorm_push(epsilon=bound.value, r_min=r_min, **arguments).value <= chance * (1 + 1e-12)


def test_a_covering_number_that_jumps_still_gives_an_epsilon_that_holds():
    def steps(radius):
        return 5.0 * math.ceil(math.log2(1.0 + 1.0 / radius))

    arguments = case(p=1, n_pos=20_000, n_neg=20_000, log_covering_number=steps)
    epsilon = pnorm_push(probability=0.01, **arguments).value
    assert pnorm_push(epsilon=epsilon, **arguments).value <= 0.01
    assert pnorm_push(epsilon=epsilon * (1 - 1e-9), **arguments).value > 0.01


def test_nothing_overflows_at_a_million_nats():
    huge = pnorm_push(epsilon=0.1, **case(p=1000, log_covering_number=1e6))
    assert huge.value == 1.0 and huge.vacuous and "10^4.343e+05" in huge.statement
    tiny = pnorm_push(epsilon=0.9, **case(p=1, n_pos=1e12, n_neg=1e12, log_covering_number=1e6))
    assert tiny.value == 5e-324 and not tiny.vacuous and "10^-" in tiny.statement
    assert pnorm_push(probability=0.05, **case(p=1000, log_covering_number=1e6)).vacuous
    assert pnorm_push(epsilon=5e-324, **case(log_covering_number=LinearClass(5, 1e9, 1e9))).vacuous


def test_an_infinite_p_is_vacuous_at_any_sample_size():
    assert pnorm_push(epsilon=0.9, **case(p=math.inf, n_pos=1.7e308, n_neg=1.7e308)).vacuous
    assert not pnorm_push(epsilon=0.9, **case(p=math.inf), r_min=1.0).vacuous


def test_an_excess_of_one_is_vacuous_because_risks_end_at_one():
    bound = pnorm_push(epsilon=1.0, **case(n_pos=1e6, n_neg=1e6, p=1))
    assert bound.vacuous and "says nothing" in bound.statement
    few = pnorm_push(probability=0.05, **case(n_pos=20, n_neg=20, p=1))
    assert few.value > 1.0 and few.vacuous and "says nothing" in few.statement


# ---- sample sizes ------------------------------------------------------------------------------

WISH = dict(epsilon=0.3, probability=0.05, theta=0.1)


@pytest.mark.parametrize("r_min", [0.0, 0.4])
@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("cover", [0.0, FiniteClass(50), LinearClass(4, 1.0, 1.0)])
def test_one_row_fewer_would_not_be_enough(p, r_min, cover):
    wish = dict(p=p, r_min=r_min, log_covering_number=cover)
    known = dict(theta=0.1, epsilon=0.3, **wish)

    def probability(n_pos, n_neg):
        return pnorm_push(n_pos=n_pos, n_neg=n_neg, **known).value

    n_neg = 10.0**9
    n_pos = pnorm_push_sample_size(n_neg=n_neg, **WISH, **wish).value
    assert probability(n_pos, n_neg) <= 0.05 < probability(n_pos - 1, n_neg)
    n_neg = pnorm_push_sample_size(n_pos=2 * n_pos, **WISH, **wish).value
    assert probability(2 * n_pos, n_neg) <= 0.05 < probability(2 * n_pos, n_neg - 1)
    n = pnorm_push_sample_size(prevalence=0.25, **WISH, **wish).value
    assert probability(n / 4, 3 * n / 4) <= 0.05 < probability((n - 1) / 4, 3 * (n - 1) / 4)


def test_the_positives_needed_follow_by_hand():
    # K = 1000, p = 1, eps = 0.4: I = ceil(50 (ln 1000 - ln(0.05 / 2 - e^-20)))
    size = pnorm_push_sample_size(
        epsilon=0.4, probability=0.05, theta=1.0, p=1, log_covering_number=0.0, n_neg=1000
    )
    assert size.value == math.ceil(50 * (log(1000) - log(0.025 - exp(-20))))
    assert "530 positives beside 1000 negatives" in size.statement


def test_the_fewest_negatives_are_found_however_few_numbers_of_them_will_do():
    numbers = np.arange(1.0, 9000.0)
    stretches = []
    for n_pos in range(2100, 2400, 3):
        # 2 (exp[-2 K eps^2/16] + exp[-eps^2 I/8 + ln K]) at p = 1, for every K
        chance = 2 * (np.exp(-numbers * 0.04 / 8) + numbers * np.exp(-0.04 * n_pos / 8))
        good = numbers[chance <= 0.05]
        stretches.append(len(good))
        wish = WISH | {"epsilon": 0.2}
        size = pnorm_push_sample_size(p=1, n_pos=n_pos, log_covering_number=0.0, **wish)
        assert size.value == (good[0] if len(good) else math.inf)
    assert stretches[0] == 0 and any(0 < n < 200 for n in stretches) and stretches[-1] > 1000


def test_a_larger_push_asks_for_more_rows():
    sizes = [
        pnorm_push_sample_size(p=p, prevalence=0.5, log_covering_number=2.0, **WISH).value
        for p in (1, 2, 4, 8)
    ]
    assert sizes == sorted(sizes) and sizes[3] > 1e12


@pytest.mark.parametrize(
    ("p", "known"),
    [
        (1, {"n_pos": 50}),  # too few positives for any number of negatives
        (4, {"n_neg": 1000}),  # too few negatives for any number of positives
        (1000, {"prevalence": 0.5}),  # finite in principle, but beyond every float
        (math.inf, {"prevalence": 0.5}),
        (math.inf, {"n_pos": 1e9}),
    ],
)
def test_no_finite_sample_is_said_plainly(p, known):
    size = pnorm_push_sample_size(p=p, log_covering_number=0.0, **WISH, **known)
    assert size.value == math.inf and size.vacuous
    assert "no number (up to 1.8e308) of" in size.statement


# ---- simulation --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "n_pos", "n_neg", "epsilon"), [(1, 900, 400, 0.4), (2, 500, 900, 0.6)]
)
def test_the_event_is_no_more_frequent_than_the_bound(p, n_pos, n_neg, epsilon):
    # Both classes uniform on [0, 1]: a negative at x stands above a share x of the positives,
    # so f(x) = x and f(x) = -x both have the true risk (E x^p)^(1/p) = (p + 1)^(-1/p).
    theta, true_risk, draws = 0.01, (p + 1.0) ** (-1.0 / p), 200
    bound = pnorm_push(
        epsilon=epsilon, theta=theta, n_pos=n_pos, n_neg=n_neg, p=p,
        log_covering_number=FiniteClass(2), r_min=true_risk,
    )  # fmt: skip
    assert not bound.vacuous
    rng, events, gaps = np.random.default_rng(0), 0, []
    y = np.repeat([1, 0], [n_pos, n_neg])
    for _ in range(draws):
        x = rng.random(n_pos + n_neg)
        risks = [pnorm_risk(y, sign * x, p, normalize=True, margin=theta) for sign in (1, -1)]
        gaps.append(true_risk - min(risks))
        events += gaps[-1] >= epsilon
    assert max(gaps) > 0  # the simulation does see the sample fall below the truth
    assert events / draws <= bound.value


def test_the_one_dimensional_illustration_of_section_10_1():
    # Nearly half the mass is negatives on [-1, 0], nearly half positives on [0, 1]; a share e/2
    # is positives on [-2, -1] and a share e/2 negatives on [1, 2].
    share, m, draws = 0.02, 30, 400
    rng = np.random.default_rng(0)
    misled = 0
    for _ in range(draws):
        y, x = _illustration(rng, m, share)
        if len(set(y)) < 2:
            continue
        if max_height(y, x) <= max_height(y, -x):  # the increasing function looks better
            misled += 1
    # with probability (1 - e)^m nothing outside [-1, 1] is seen, and the choice is wrong
    assert misled / draws >= (1 - share) ** m - 0.06
    y, x = _illustration(rng, 20_000, share)
    assert max_height(y, x) == np.sum(y == 1) > max_height(y, -x) * 1.001
    assert auc(y, x) > 0.95


def _illustration(rng, m, share):
    part = rng.choice(4, size=m, p=[0.5 - share / 2, 0.5 - share / 2, share / 2, share / 2])
    low, label = np.array([-1.0, 0.0, -2.0, 1.0]), np.array([0, 1, 1, 0])
    return label[part], low[part] + rng.random(m)


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "exactly one of epsilon, probability; got none"),
        ({"epsilon": 0.1, "probability": 0.1}, "got epsilon and probability"),
        ({"epsilon": 0.0}, "epsilon=0.0 is out of range"),
        ({"epsilon": float("nan")}, "epsilon=nan"),
        ({"epsilon": "0.1"}, "epsilon='0.1'"),
        ({"probability": 0.0}, r"probability=0.0 .* in \(0, 1\]"),
        ({"probability": 1.5}, "probability=1.5"),
        ({"epsilon": 0.1, "theta": 0.0}, "theta=0.0"),
        ({"epsilon": 0.1, "n_pos": 0}, "n_pos=0"),
        ({"epsilon": 0.1, "n_neg": math.inf}, "n_neg=inf"),
        ({"epsilon": 0.1, "p": 0.5}, "p=0.5 is not a power"),
        ({"epsilon": 0.1, "r_min": 1.1}, "r_min=1.1 .* <= 1"),
        ({"epsilon": 0.1, "r_min": -0.1}, "r_min=-0.1"),
        ({"epsilon": 0.1, "log_covering_number": -1.0}, "gave -1.0, expected ln N"),
        ({"epsilon": 0.1, "log_covering_number": math.inf}, "gave inf"),
        ({"epsilon": 0.1, "log_covering_number": lambda radius: float("nan")}, "gave nan"),
        ({"epsilon": 0.1, "log_covering_number": None}, "gave None"),
    ],
)
def test_bad_arguments_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        pnorm_push(**case(**changes))


def test_sloppy_covering_numbers_are_refused():
    with pytest.raises(TypeError, match="sloppy covering number"):
        pnorm_push(epsilon=0.1, **case(log_covering_number=ConvexCombinations(10)))


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({}, "exactly one of n_pos, n_neg, prevalence"),
        ({"n_pos": 5, "n_neg": 5}, "got n_pos and n_neg"),
        ({"prevalence": 1.0}, r"prevalence=1.0 .* in \(0, 1\)"),
        ({"prevalence": 0.0}, "prevalence=0.0"),
        ({"n_pos": 0}, "n_pos=0"),
    ],
)
def test_bad_sample_sizes_are_named(known, message):
    with pytest.raises(ValueError, match=message):
        pnorm_push_sample_size(p=1, log_covering_number=0.0, **WISH, **known)


@pytest.mark.parametrize("cls", [FiniteClass, LinearClass, ConvexCombinations])
def test_an_empty_class_is_refused(cls):
    arguments = (0, 1.0, 1.0) if cls is LinearClass else (0,)
    with pytest.raises(ValueError, match="=0 is out of range"):
        cls(*arguments)


@given(st.integers(1, 3), st.floats(0.05, 2.0), st.integers(0, 2**31 - 1))
def test_a_linear_class_is_covered_by_that_many_balls(d, radius, seed):
    # the balls around a largest set of scores that lie a radius apart are a cover
    rng = np.random.default_rng(seed)
    coefs = rng.uniform(-1.0, 1.0, size=(300, d))  # largest-entry norm <= 1, rows of l1 norm <= 2
    kept = np.empty((0, d))
    for coef in coefs:
        if np.all(2.0 * np.max(np.abs(kept - coef), axis=1, initial=0.0) >= radius):
            kept = np.vstack([kept, coef])
    assert log(len(kept)) <= LinearClass(d, coef_norm=1.0, row_norm=2.0)(radius)


def test_one_ball_covers_a_linear_class_when_it_reaches_every_score():
    assert LinearClass(5, coef_norm=2.0, row_norm=3.0)(6.5) == 0.0
    assert LinearClass(5, coef_norm=2.0, row_norm=3.0)(6.0) == pytest.approx(5 * log(3.0))


@pytest.mark.parametrize("p", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("r_true", [0.0, 0.3])
def test_a_fixed_ranker_takes_half_the_epsilon_of_a_class_of_one(p, r_true):
    """Lemma 9, term by term, and beside Theorem 3 with a covering number of one."""
    sample = {"n_pos": 4000, "n_neg": 90_000, "p": p}
    for epsilon in (0.11, 0.4, 0.9):
        got = pnorm_push_fixed(epsilon=epsilon, r_true=r_true, **sample).value
        rate = max(epsilon**2 / 4 * r_true ** (2 * (p - 1)), (epsilon / 2) ** (2 * p))
        printed = 2 * np.exp(-2 * 90_000 * rate)
        printed += 2 * np.exp(-(epsilon**2) / 2 * 4000 + np.log(90_000))
        assert got == pytest.approx(min(1.0, printed), rel=1e-9)
    fixed = pnorm_push_fixed(probability=0.05, r_true=r_true, **sample).value
    of_class = pnorm_push(
        probability=0.05, theta=1.0, log_covering_number=0.0, r_min=r_true, **sample
    ).value
    assert fixed == pytest.approx(of_class / 2)


@pytest.mark.parametrize(("p", "n_neg", "epsilon"), [(1, 60, 0.2), (1, 30, 0.27), (2, 60, 0.235)])
def test_the_bound_of_a_fixed_ranker_holds_where_its_event_occurs(p, n_neg, epsilon):
    """Heights of nothing or all are the hardest case: the event is seen, and the bound is not 1."""
    n_pos, draws = 1_000_000, 3_000_000 if p > 1 else 100_000
    true = 0.5 ** (1 / p)  # a negative stands above all positives or below them, evenly
    above = np.random.default_rng(0).binomial(n_neg, 0.5, draws)
    seen = np.mean(true - (above / n_neg) ** (1 / p) >= epsilon)
    bound = pnorm_push_fixed(epsilon=epsilon, r_true=true, n_pos=n_pos, n_neg=n_neg, p=p)
    assert not bound.vacuous
    assert 0 < seen <= bound.value < 0.9
    y, scores = np.repeat([1, 0], [50, n_neg]), np.repeat([0.5, 1.0, 0.0], [50, 20, n_neg - 20])
    assert pnorm_risk(y, scores, p, normalize=True) == pytest.approx((20 / n_neg) ** (1 / p))


def test_a_sample_for_an_excess_of_one_says_that_it_says_nothing():
    settings = {"probability": 0.95, "theta": 0.5, "p": 2.0, "n_neg": 100}
    found = pnorm_push_sample_size(epsilon=1.0, log_covering_number=FiniteClass(3), **settings)
    assert found.vacuous and "this says nothing, because no risk exceeds another" in str(found)
    assert float(found) == found.value
