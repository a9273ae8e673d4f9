"""The margin bounds of Rudin & Schapire 2009, against the formulas written out."""

import math
from itertools import product
from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.bounds import (
    ConvexCombinations,
    FiniteClass,
    LinearClass,
    SloppyClass,
    margin,
    margin_cover,
    margin_sample_size,
)
from toprank.metrics import margin_error

# every decimal below was worked to 30 digits from the printed formula, apart from this code

EQUATION_2 = [
    # sqrt(4/62500 [147.36... ln(62500/ln 100) + 2 ln 40])
    (dict(n=10**6, pair_fraction=0.25, theta=0.5, n_weak=100, delta=0.05), 0.300364509566171503),
    (dict(n=10**7, pair_fraction=0.1, theta=0.8, n_weak=2, delta=0.01), 0.0697620720132287061),
    (
        dict(n=64 * 10**6, pair_fraction=0.5, theta=0.25, n_weak=1000, delta=0.001),
        0.0541933945547418,
    ),
]
# 2 exp[8 ln|H| ln(16/eps) / theta^2 - m (eps E)^2 / 8]
COROLLARY_4 = [
    (dict(n=10**6, pair_fraction=0.25, theta=0.5, n_weak=100, epsilon=0.3), 2.7394293702103013e-51),
    (dict(n=200_000, pair_fraction=0.25, theta=0.8, n_weak=10, epsilon=0.4), 6.892911401158440e-63),
    (dict(n=100_000, pair_fraction=0.5, theta=0.5, n_weak=4, epsilon=0.25), 4.00494557081464708e-5),
]
# 2 |F| exp[-m (eps E)^2 / 8], and the epsilon that solves it for delta
COROLLARY_5 = [
    (dict(n=10_000, pair_fraction=0.25, functions=5, epsilon=0.3), 0.00883826306935049925),
    (dict(n=20_000, pair_fraction=0.2, functions=100, epsilon=0.25), 0.386090827245541848),
    (dict(n=2_000, pair_fraction=0.5, functions=1, epsilon=0.2), 0.164169997247797590),
]
COROLLARY_5_SOLVED = [
    (dict(n=10_000, pair_fraction=0.25, functions=5, probability=0.05), 0.260419780914996681),
    (dict(n=20_000, pair_fraction=0.2, functions=100, probability=0.01), 0.314698070418871937),
    (dict(n=2_000, pair_fraction=0.5, functions=1, probability=0.1), 0.218933132204478945),
]


@pytest.mark.parametrize(("arguments", "expected"), EQUATION_2)
def test_equation_2(arguments, expected):
    bound = margin(**arguments)
    assert bound.value == pytest.approx(expected, rel=1e-12)
    assert not bound.vacuous


@pytest.mark.parametrize(("arguments", "expected"), COROLLARY_4)
def test_corollary_4_is_theorem_2_with_lemma_3(arguments, expected):
    arguments = dict(arguments)
    cover = ConvexCombinations(arguments.pop("n_weak"))
    bound = margin_cover(log_covering_number=cover, **arguments)
    assert bound.value == pytest.approx(expected, rel=1e-10)
    assert not bound.vacuous and "Corollary 4" in bound.statement


@pytest.mark.parametrize(("arguments", "expected"), COROLLARY_5 + COROLLARY_5_SOLVED)
def test_corollary_5_for_finite_classes(arguments, expected):
    arguments = dict(arguments)
    cover = FiniteClass(arguments.pop("functions"))
    bound = margin_cover(theta=0.1, log_covering_number=cover, **arguments)
    assert bound.value == pytest.approx(expected, rel=1e-12)
    assert "Corollary 5" in bound.statement


@pytest.mark.parametrize(
    ("n_weak", "theta", "epsilon", "expected"),
    # ln|H| ln(2/eps) / (2 theta^2)
    [
        (100, 0.5, 0.02, 2 * log(100) * log(100)),
        (math.e**3, 1.0, 2 / math.e, 1.5),
        (16, 0.1, 1.0, 50 * log(16) * log(2)),
        (16, 0.1, 5.0, 0.0),  # one function is a cover when everything may fail
    ],
)
def test_lemma_3(n_weak, theta, epsilon, expected):
    assert ConvexCombinations(n_weak)(theta, epsilon) == pytest.approx(expected)


def test_theorem_2_takes_the_sloppy_number_at_a_quarter_of_theta_and_an_eighth_of_epsilon():
    seen = []

    class Mine(SloppyClass):
        def __call__(self, theta, epsilon):
            seen.append((theta, epsilon))
            return 2.0

    bound = margin_cover(
        epsilon=0.4, theta=0.2, n=10_000, pair_fraction=0.25, log_covering_number=Mine()
    )
    assert seen == [(0.05, 0.05)]
    assert bound.value == pytest.approx(2 * exp(2.0 - 10_000 * 0.1**2 / 8))


def test_corollary_5_takes_the_number_at_a_quarter_of_theta():
    linear = LinearClass(2, coef_norm=1.0, row_norm=1.0)  # ln N(theta/4) = 2 ln(1 + 8/theta)
    bound = margin_cover(
        epsilon=0.4, theta=0.5, n=20_000, pair_fraction=0.25, log_covering_number=linear
    )
    assert bound.value == pytest.approx(2 * 17**2 * exp(-20_000 * 0.1**2 / 8))


# ---- what the formulas imply -------------------------------------------------------------------

CASES = st.fixed_dictionaries(
    {
        "theta": st.floats(0.01, 1.0),
        "n": st.floats(1.0, 1e12),
        "pair_fraction": st.floats(1e-3, 0.5),
    }
)
DELTAS = st.floats(1e-200, 0.999)
WEAK = st.floats(1.0, 1e9)


@given(CASES, DELTAS, WEAK)
def test_equation_2_implies_corollary_4_and_is_never_tighter(arguments, delta, n_weak):
    bound = margin(delta=delta, n_weak=n_weak, **arguments)
    cover = ConvexCombinations(n_weak)
    exact = margin_cover(probability=delta, log_covering_number=cover, **arguments)
    assert exact.value <= bound.value * (1 + 1e-12)
    if bound.value == math.inf:  # where the condition fails nothing is lost
        assert exact.vacuous
    else:
        kept = margin_cover(epsilon=bound.value, log_covering_number=cover, **arguments)
        assert kept.value <= delta * (1 + 1e-9)


@given(CASES, DELTAS, WEAK, st.floats(1.0, 10.0))
def test_more_rows_more_margin_more_pairs_and_fewer_weak_rankers_help(arguments, delta, weak, more):
    here = margin(delta=delta, n_weak=weak, **arguments).value * (1 + 1e-12)
    assert (
        margin(delta=delta, n_weak=weak, **arguments | {"n": arguments["n"] * more}).value <= here
    )
    wider = {"theta": min(1.0, arguments["theta"] * more)}
    assert margin(delta=delta, n_weak=weak, **arguments | wider).value <= here
    pairs = {"pair_fraction": min(0.5, arguments["pair_fraction"] * more)}
    assert margin(delta=delta, n_weak=weak, **arguments | pairs).value <= here
    assert margin(delta=delta, n_weak=max(1.0, weak / more), **arguments).value <= here
    assert margin(delta=min(0.999, delta * more), n_weak=weak, **arguments).value <= here


@given(CASES, st.floats(0.0, 1e6), st.floats(1e-3, 5.0))
def test_epsilon_of_the_probability_of_epsilon_is_epsilon(arguments, log_number, epsilon):
    bound = margin_cover(epsilon=epsilon, log_covering_number=log_number, **arguments)
    back = margin_cover(probability=bound.value, log_covering_number=log_number, **arguments)
    if 1e-300 < bound.value < 1.0:  # below, floats lose digits
        assert back.value == pytest.approx(epsilon, rel=1e-6)
    assert bound.vacuous == (bound.value >= 1.0 or epsilon >= 1.0)


def test_the_condition_of_equation_2_is_where_the_paper_puts_it():
    # m theta^2 >= 64 ln|H| / E^2 with |H| = e^2, E = 1/2, theta = 1/2: m >= 2048
    case = dict(delta=0.05, theta=0.5, pair_fraction=0.5, n_weak=math.e**2)
    assert math.isfinite(margin(n=2049, **case).value)
    missed = margin(n=2047, **case)
    assert missed.value == math.inf and missed.vacuous
    assert "2048 rows" in missed.statement and "2047" in missed.statement


def test_a_single_weak_ranker_leaves_only_the_confidence_term():
    bound = margin(delta=0.1, theta=0.3, n=4000, pair_fraction=0.5, n_weak=1)
    assert bound.value == pytest.approx(sqrt(8 / (4000 * 0.25) * log(20)))


@pytest.mark.parametrize("cover", [3.0, FiniteClass(7), ConvexCombinations(50)])
def test_one_row_fewer_would_not_be_enough(cover):
    wish = dict(theta=0.4, pair_fraction=0.2, log_covering_number=cover)
    n = margin_sample_size(epsilon=0.3, probability=0.05, **wish).value
    assert margin_cover(epsilon=0.3, n=n, **wish).value <= 0.05
    assert margin_cover(epsilon=0.3, n=n - 1, **wish).value > 0.05


def test_the_rows_needed_follow_by_hand():
    # 8 / (0.3 · 0.2)^2 [ln 2 + 3 + ln 20]
    size = margin_sample_size(
        epsilon=0.3, probability=0.05, theta=0.4, pair_fraction=0.2, log_covering_number=3.0
    )
    assert size.value == math.ceil(8 / 0.06**2 * (log(2) + 3 + log(20)))


def test_ugly_sizes_neither_overflow_nor_divide_by_zero():
    case = dict(delta=0.05, n=1e300)
    assert margin(theta=1e-200, pair_fraction=0.5, n_weak=9, **case).value == math.inf
    assert margin(theta=0.5, pair_fraction=1e-200, n_weak=1, **case).vacuous
    many = margin(theta=1.0, pair_fraction=0.5, n_weak=2**10_000, **case)
    assert 0 < many.value < 1e-100
    wish = dict(probability=0.05, n=1e6, pair_fraction=0.5)
    assert margin_cover(theta=0.1, log_covering_number=FiniteClass(2**10_000), **wish).value > 0
    assert margin_cover(
        theta=5e-324, log_covering_number=LinearClass(3, 1.0, 1.0), **wish
    ).value == pytest.approx(sqrt(32 / 1e6 * (log(40) + 3 * (log(2) - log(5e-324)))), rel=1e-3)
    tiny = dict(theta=0.1, n=10, pair_fraction=1e-300, log_covering_number=0.0)
    assert margin_cover(probability=0.05, **tiny).vacuous
    assert (
        margin_sample_size(
            epsilon=0.1, probability=0.05, theta=0.1, pair_fraction=1e-200, log_covering_number=0.0
        ).value
        == math.inf
    )


# ---- simulation --------------------------------------------------------------------------------

# Two weak rankers with values 0 and 1; the chances of a 1 for positives and for negatives.
CHANCES = {1: (0.8, 0.6), 0: (0.3, 0.4)}
MIXTURES = [(share, 1 - share) for share in np.linspace(0, 1, 5)]


def test_the_event_is_no_more_frequent_than_the_bound():
    theta, draws, n = 0.25, 20, 40_000
    case = dict(theta=theta, n=n, pair_fraction=0.25)
    weak = margin(delta=0.05, n_weak=2, **case)
    finite = margin_cover(probability=0.05, log_covering_number=FiniteClass(5), **case)
    assert not weak.vacuous and not finite.vacuous
    truth = np.array([_true_misranking(mixture) for mixture in MIXTURES])
    rng, gaps = np.random.default_rng(0), []
    for _ in range(draws):
        y = rng.integers(0, 2, n)
        h = rng.random((n, 2)) < np.array([CHANCES[0], CHANCES[1]])[y]
        sample = [margin_error(y, h @ np.array(mixture), theta) for mixture in MIXTURES]
        gaps.append(np.max(truth - sample))
    gaps = np.array(gaps)
    assert np.max(gaps) > -0.5  # the margins up to theta are a near miss, not all of the pairs
    assert np.mean(gaps > weak.value) <= 0.05
    assert np.mean(gaps > finite.value) <= 0.05


def _true_misranking(mixture):
    def chances(label):
        one = CHANCES[label]
        for h in product((0, 1), repeat=2):
            chance = math.prod(c if bit else 1 - c for c, bit in zip(one, h, strict=True))
            yield chance, float(np.dot(h, mixture))

    pairs = product(chances(1), chances(0))
    return sum(a * b for (a, high), (b, low) in pairs if high <= low)


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"delta": 0.0}, "delta=0.0"),
        ({"theta": 1.5}, r"theta=1.5 .* in \(0, 1\]"),
        ({"n": 0}, "n=0"),
        ({"pair_fraction": 0.6}, r"pair_fraction=0.6 .* in \(0, 0.5\]"),
        ({"n_weak": 0}, "n_weak=0"),
        ({"n_weak": True}, "n_weak=True"),
    ],
)
def test_bad_arguments_are_named(changes, message):
    case = dict(delta=0.05, theta=0.5, n=10_000, pair_fraction=0.25, n_weak=10)
    with pytest.raises(ValueError, match=message):
        margin(**case | changes)


def test_one_of_epsilon_and_probability_is_asked_for():
    with pytest.raises(ValueError, match="exactly one of epsilon, probability"):
        margin_cover(theta=0.1, n=10, pair_fraction=0.2, log_covering_number=0.0)
