"""U-statistics against their definition: sums over pairs, triples and quadruples of rows."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from toprank.inference import hoeffding
from toprank.inference.u_statistics import ranking_kernel, ranking_projection, u_statistic
from toprank.metrics import ranking_risk


def half_square(a, b):
    return (a - b) ** 2 / 2


def distance(a, b):
    return np.sqrt(np.sum((a - b) ** 2, axis=-1))


def first_less_second(a, b):
    return a - 2 * b


SMALL = st.integers(-3, 3).map(float)
SAMPLES = st.lists(SMALL, min_size=4, max_size=7).map(np.array)


@st.composite
def ranked_rows(draw, smallest=2, largest=12):
    n = draw(st.integers(smallest, largest))
    column = lambda values: np.array(draw(st.lists(values, min_size=n, max_size=n)))  # noqa: E731
    y = column(st.integers(0, 4)).astype(float)
    s = column(st.integers(0, 4)).astype(float)
    weight = column(st.integers(0, 3)).astype(float)
    y[:2], weight[:2] = (0, 1), np.maximum(weight[:2], 1)
    return y, s, weight


def matrix(kernel, rows):
    """The kernel at every pair, by a double loop over single rows."""
    n = len(rows)
    return np.array([[float(kernel(rows[i], rows[j])) for j in range(n)] for i in range(n)])


def definition(q):
    """Value, projection, zeta_1, zeta_2 and variance as sums over distinct rows."""
    n = len(q)
    mean = lambda terms: float(np.mean(list(terms)))  # noqa: E731
    value = mean(q[i, j] for i, j in permutations(range(n), 2))
    projection = np.array([mean(q[i, j] for j in range(n) if j != i) for i in range(n)])
    apart = mean(q[i, j] * q[k, m] for i, j, k, m in permutations(range(n), 4))
    sharing = mean(q[i, j] * q[i, k] for i, j, k in permutations(range(n), 3))
    same = mean(q[i, j] ** 2 for i, j in permutations(range(n), 2))
    return value, projection, sharing - apart, same - apart


def assert_same(one, other):
    for name in ("value", "projection", "zeta_1", "zeta_2", "variance"):
        close = pytest.approx(getattr(other, name), rel=1e-9, abs=1e-12)
        assert getattr(one, name) == close, name


# ---- the definition ----------------------------------------------------------------------------


@given(SAMPLES)
def test_every_part_is_the_mean_over_distinct_rows(x):
    result = u_statistic(half_square, x)
    value, projection, zeta_1, zeta_2 = definition(matrix(half_square, x))
    n = len(x)
    assert result.value == pytest.approx(value, abs=1e-12)
    assert result.value == pytest.approx(np.var(x, ddof=1), abs=1e-12)
    np.testing.assert_allclose(result.projection, projection, atol=1e-12)
    assert result.zeta_1 == pytest.approx(zeta_1, abs=1e-10)
    assert result.zeta_2 == pytest.approx(zeta_2, abs=1e-10)
    unbiased = (4 * (n - 2) * zeta_1 + 2 * zeta_2) / (n * (n - 1))
    assert result.linear_variance + result.remainder_variance == pytest.approx(unbiased, abs=1e-10)
    if zeta_1 >= 0:
        assert result.variance == pytest.approx(unbiased, abs=1e-10)
    else:
        assert result.variance == pytest.approx(result.remainder_variance, abs=1e-10)


@given(ranked_rows(smallest=4, largest=7))
def test_the_ranking_kernel_is_summed_as_its_definition_says(rows):
    y, s, _ = rows
    data = np.column_stack((y, s))
    result = u_statistic("ranking", data)
    value, projection, zeta_1, zeta_2 = definition(matrix(ranking_kernel, data))
    assert result.value == pytest.approx(value, abs=1e-12)
    np.testing.assert_allclose(result.projection, projection, atol=1e-12)
    assert result.zeta_1 == pytest.approx(zeta_1, abs=1e-12)
    assert result.zeta_2 == pytest.approx(zeta_2, abs=1e-12)


@given(ranked_rows())
def test_the_ranking_projection_is_the_double_loop(rows):
    y, s, weight = rows
    q = matrix(ranking_kernel, np.column_stack((y, s)))
    total = weight.sum()
    by_row = q @ weight / (total - 1)
    value, projection = ranking_projection(y, s, weight)
    assert value == pytest.approx(weight @ by_row / total, abs=1e-12)
    assert value == pytest.approx(ranking_risk(y, s, sample_weight=weight), abs=1e-12)
    present = weight > 0
    np.testing.assert_allclose(projection[present], by_row[present], atol=1e-12)
    assert np.all(projection[~present] == value)


@given(ranked_rows(smallest=4))
def test_the_fast_path_equals_the_blocks_of_pairs(rows):
    y, s, weight = rows
    if weight.sum() <= 3:
        return
    data = np.column_stack((y, s))
    blocks = u_statistic(lambda a, b: ranking_kernel(a, b), data, sample_weight=weight)
    assert_same(u_statistic("ranking", data, sample_weight=weight), blocks)


def test_the_function_of_the_ranking_kernel_takes_the_fast_path():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(200_000, 2))
    assert u_statistic(ranking_kernel, data).value == ranking_risk(*data.T)


@given(ranked_rows(smallest=4), st.sampled_from([half_square, distance, "ranking"]))
def test_a_weight_is_a_repetition_count(rows, kernel):
    y, s, weight = rows
    if weight.sum() <= 3:
        return
    data = y if kernel is half_square else np.column_stack((y, s))
    copied = u_statistic(kernel, np.repeat(data, weight.astype(int), axis=0))
    weighted = u_statistic(kernel, data, sample_weight=weight)
    for name in ("value", "zeta_1", "zeta_2", "variance", "rows"):
        close = pytest.approx(getattr(copied, name), rel=1e-9, abs=1e-10)
        assert getattr(weighted, name) == close, name
    spread = np.repeat(weighted.projection, weight.astype(int))
    np.testing.assert_allclose(spread, copied.projection, atol=1e-12)


# ---- the decomposition -------------------------------------------------------------------------


@given(SAMPLES)
def test_the_decomposition_adds_up_and_its_parts_are_orthogonal(x):
    result = u_statistic(half_square, x)
    n = len(x)
    i, j = np.nonzero(~np.eye(n, dtype=bool))
    remainder = np.zeros((n, n))
    remainder[i, j] = result.remainder(i, j)
    effect = (n - 1) / (n - 2) * (result.projection - result.value)
    rebuilt = result.value + effect[i] + effect[j] + remainder[i, j]
    np.testing.assert_allclose(rebuilt, half_square(x[i], x[j]), atol=1e-12)
    np.testing.assert_allclose(remainder.sum(axis=1), 0, atol=1e-10)
    assert np.sum(effect) == pytest.approx(0, abs=1e-10)
    spread = np.sum(remainder**2) / (n * (n - 3)) if n > 3 else 0.0
    assert result.zeta_2 - 2 * result.zeta_1 == pytest.approx(spread, abs=1e-10)


def test_a_sum_of_two_functions_has_no_remainder():
    x = np.random.default_rng(0).normal(size=50)
    result = u_statistic(lambda a, b: np.sin(a) + np.sin(b), x)
    np.testing.assert_allclose(result.remainder(0, np.arange(1, 50)), 0, atol=1e-12)
    assert result.remainder_variance == pytest.approx(0, abs=1e-15)
    assert result.variance == pytest.approx(4 * np.var(np.sin(x), ddof=1) / 50)


def test_a_product_of_centred_values_is_degenerate():
    signs = np.tile([-1.0, 1.0], 500)
    result = u_statistic(lambda a, b: a * b, signs)
    assert result.zeta_1 == pytest.approx(0, abs=5e-3)
    assert result.zeta_2 == pytest.approx(1, abs=5e-3)
    assert result.variance == pytest.approx(2 / (1000 * 999), rel=5e-3)


def test_the_remainder_of_a_row_with_itself_is_refused():
    with pytest.raises(ValueError, match="the same row"):
        u_statistic(half_square, np.arange(5.0)).remainder([1, 2], 2)


# ---- kernels -----------------------------------------------------------------------------------


def test_blocks_of_any_size_give_the_same_answer(monkeypatch):
    data = np.random.default_rng(0).normal(size=(100, 3))
    weight = np.arange(100) % 3 + 0.5
    whole = u_statistic(distance, data, sample_weight=weight)
    monkeypatch.setattr(hoeffding, "_ELEMENTS", 1)
    assert_same(u_statistic(distance, data, sample_weight=weight), whole)


def test_blocks_never_hold_all_pairs():
    largest = 0

    def kernel(a, b):
        nonlocal largest
        largest = max(largest, np.broadcast(a, b).size)
        return np.abs(a - b)

    n = 4000
    u_statistic(kernel, np.random.default_rng(0).normal(size=n))
    assert largest <= hoeffding._ELEMENTS < n * n / 4


@given(SAMPLES)
def test_an_asymmetric_kernel_is_refused_or_symmetrised(x):
    if len(set(x)) > 1:
        with pytest.raises(ValueError, match=r"not symmetric.* symmetrize=True"):
            u_statistic(first_less_second, x)
    got = u_statistic(first_less_second, x, symmetrize=True)
    assert_same(got, u_statistic(lambda a, b: -(a + b) / 2, x))


def test_a_kernel_need_not_be_defined_where_a_row_meets_itself():
    x = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    result = u_statistic(lambda a, b: 1 / np.abs(a - b), x)
    wanted = [1 / abs(a - b) for a, b in permutations(x, 2)]
    assert result.value == pytest.approx(np.mean(wanted))
    with pytest.raises(ValueError, match="NaN or infinity for some pair"):
        u_statistic(lambda a, b: 1 / np.abs(a - b), x, sample_weight=[1, 1, 2, 1, 1])


def test_a_large_mean_costs_no_digits_of_the_variance():
    x = np.random.default_rng(0).normal(size=40)
    near = u_statistic(half_square, x)
    far = u_statistic(lambda a, b: half_square(a, b) + 2.0**30, x)
    assert far.variance == pytest.approx(near.variance, rel=1e-6)


def test_one_row_with_copies_is_a_sample():
    result = u_statistic(half_square, [2.0, 7.0], sample_weight=[5, 0])
    assert (result.value, result.variance) == (0.0, 0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool, object])
def test_any_type_of_row_will_do(dtype):
    x = np.array([0, 1, 1, 0, 1], dtype=dtype)
    result = u_statistic(lambda a, b: a != b, x)
    assert result.value == pytest.approx(0.6)


BAD = [
    ("rank", np.arange(5.0), {}, "Unknown kernel 'rank': expected 'ranking' or a function"),
    (half_square, 3.0, {}, "Z is one number"),
    (half_square, np.arange(3.0), {}, r"Z has 3 row\(s\), expected at least 4"),
    (half_square, [1.0, 2.0, np.nan, 4.0], {}, "Z contains NaN"),
    (half_square, np.ones((5, 2)), {}, r"returned shape \(5, 5, 2\) for 5 by 5 pairs"),
    (half_square, np.arange(5.0), {"sample_weight": [1, 1, 1]}, "one weight per row"),
    (half_square, np.arange(5.0), {"sample_weight": -np.ones(5)}, "negative values"),
    (half_square, np.arange(5.0), {"groups": [1, 1, 1, 1]}, "groups has 4 entries"),
    (half_square, np.arange(5.0), {"groups": np.ones(5)}, "one group only"),
    (half_square, np.arange(5.0), {"support": (0, 1)}, "does not hold the statistic"),
    (half_square, [0.0, 1e100, 0.0, 1.0], {}, "larger than 1e.140"),
    ("ranking", np.arange(5.0), {}, r"Z has shape \(5,\), expected \(n, 2\)"),
    ("ranking", np.ones((5, 2)), {}, "one value only"),
]


@pytest.mark.parametrize(("kernel", "data", "keywords", "complaint"), BAD)
def test_bad_input_is_refused_with_a_sentence_that_helps(kernel, data, keywords, complaint):
    with pytest.raises(ValueError, match=complaint):
        u_statistic(kernel, data, **keywords)


# ---- variance and intervals --------------------------------------------------------------------


def test_rows_that_are_groups_of_their_own_give_the_jackknife():
    x = np.random.default_rng(0).normal(size=20)
    result = u_statistic(half_square, x, groups=np.arange(20))
    without = np.array([np.var(np.delete(x, i), ddof=1) for i in range(20)])
    jackknife = 19 / 20 * np.sum((without - without.mean()) ** 2)
    assert result.variance == pytest.approx(jackknife)
    assert result.groups == 20


def test_copies_in_a_group_leave_the_variance_of_the_originals():
    rng = np.random.default_rng(0)
    y = rng.normal(size=400)
    rows = np.column_stack((y, y + rng.normal(size=400)))
    alone = u_statistic("ranking", rows)
    copied = u_statistic("ranking", np.repeat(rows, 5, axis=0), groups=np.repeat(np.arange(400), 5))
    assert copied.standard_error == pytest.approx(alone.standard_error, rel=0.02)
    assert u_statistic("ranking", np.repeat(rows, 5, axis=0)).standard_error < copied.standard_error


@pytest.mark.more
@pytest.mark.sampled(2)
@pytest.mark.parametrize("correlation", [0.0, 0.7])
def test_the_variance_is_right_on_average_and_the_interval_covers(correlation):
    rng = np.random.default_rng(1)
    truth = np.arccos(correlation) / np.pi  # Sheppard: the share of discordant normal pairs
    results = []
    for _ in range(1500):
        y = rng.normal(size=60)
        s = correlation * y + np.sqrt(1 - correlation**2) * rng.normal(size=60)
        results.append(u_statistic("ranking", np.column_stack((y, s))))
    values = np.array([result.value for result in results])
    variances = np.array([result.variance for result in results])
    assert np.mean(values) == pytest.approx(truth, abs=4 * np.std(values) / np.sqrt(1500))
    assert np.mean(variances) == pytest.approx(np.var(values), rel=0.12)
    covered = [low <= truth <= high for low, high in (r.interval(0.95) for r in results)]
    assert 0.935 <= np.mean(covered) <= 0.97


@pytest.mark.more
def test_the_interval_of_a_good_ranker_covers_although_few_rows_are_misranked():
    rng = np.random.default_rng(3)
    truth = 2 * 0.2 * 0.8 * ndtr(-3 / np.sqrt(2))
    covered = []
    for _ in range(1500):
        y = (rng.random(200) < 0.2) * 1.0
        rows = np.column_stack((y, rng.normal(size=200) + 3 * y))
        low, high = u_statistic("ranking", rows).interval(0.95)
        covered.append(low <= truth <= high)
    assert 0.935 <= np.mean(covered) <= 0.97


@given(ranked_rows(smallest=4))
def test_the_degrees_of_freedom_are_at_most_those_of_a_normal_sample(rows):
    y, s, weight = rows
    if weight.sum() <= 3:
        return
    result = u_statistic("ranking", np.column_stack((y, s)), sample_weight=weight)
    assert 1 <= result.freedom <= result.rows - 1 + 1e-9


@pytest.mark.more
def test_clustered_rows_have_a_variance_that_covers_them():
    rng = np.random.default_rng(2)
    values, variances = [], []
    for _ in range(400):
        shared = np.repeat(rng.normal(size=(40, 2)), 6, axis=0)
        rows = shared + 0.5 * rng.normal(size=shared.shape)
        result = u_statistic("ranking", rows, groups=np.repeat(np.arange(40), 6))
        values.append(result.value)
        variances.append(result.variance)
    assert np.mean(variances) == pytest.approx(np.var(values), rel=0.25)


def test_a_perfect_ranking_has_an_interval_of_some_width():
    y = np.arange(20.0)
    low, high = u_statistic("ranking", np.column_stack((y, y))).interval(0.9)
    assert low == 0
    # ten independent pairs, none of them wrong, have probability 0.05 at the upper end
    assert (1 - high) ** 10 == pytest.approx(0.05)
    low, high = u_statistic("ranking", np.column_stack((y, -y))).interval(0.9)
    assert high == 1
    assert low**10 == pytest.approx(0.05)


def test_the_end_of_the_support_is_known_through_fractional_weights():
    y = np.arange(20.0)
    weight = np.random.default_rng(0).random(20) + 0.1
    result = u_statistic("ranking", np.column_stack((y, -y)), sample_weight=weight)
    assert result.interval()[1] == pytest.approx(1)
    assert result.interval()[0] < 1


def test_a_constant_kernel_has_an_interval_only_inside_a_known_support():
    def constant(a, b):
        return 0 * (a - b) + 0.3

    with pytest.raises(ValueError, match="Every pair has the same value"):
        u_statistic(constant, np.arange(9.0)).interval()
    low, high = u_statistic(constant, np.arange(9.0), support=(0, 1)).interval()
    # four independent pairs: at most this share of all pairs may be 0, or 1, instead
    others = 1 - 0.025**0.25
    assert low == pytest.approx(0.3 * (1 - others))
    assert high == pytest.approx(0.3 * (1 - others) + others)


def test_intervals_grow_with_their_level_and_stay_in_the_support():
    x = np.random.default_rng(3).normal(size=12)
    result = u_statistic(lambda a, b: (a * b > 0) * 1.0, x, support=(0, 1))
    ends = [result.interval(level) for level in (0.5, 0.9, 0.999999)]
    lows, highs = zip(*ends, strict=True)
    assert 0 <= lows[2] < lows[1] < lows[0] < result.value < highs[0] < highs[1] < highs[2] <= 1
    for level in (0, 1, 1.5, "0.9", True, np.nan):
        with pytest.raises(ValueError, match="not a confidence level"):
            result.interval(level)


def test_the_result_prints_its_parts():
    text = str(u_statistic("ranking", np.random.default_rng(0).normal(size=(30, 2))))
    assert text.splitlines()[0] == "U-statistic of degree two, 30 rows"
    assert "zeta_1" in text
    assert "variance of the remainder" in text


def test_skewed_kernels_have_a_note():
    """The variance of exponential data: 95% intervals of 10 rows cover two times of three."""

    def variance(a, b):
        return (a - b) ** 2 / 2

    rng = np.random.default_rng(0)
    noted = {}
    for name, draw, sizes in (
        ("few", rng.uniform, (10, 30)),
        ("exponential", rng.exponential, (60, 100)),
        ("uniform", rng.uniform, (60, 100)),
    ):
        found = [u_statistic(variance, draw(size=n)).note for n in sizes for _ in range(40)]
        noted[name] = np.mean([bool(note) for note in found])
    assert noted["few"] == 1 and noted["exponential"] > 0.8 and noted["uniform"] < 0.2
    skewed = u_statistic(variance, rng.exponential(size=30) ** 2)
    assert "needs more" in skewed.note and skewed.note in str(skewed)
    signed = u_statistic(lambda a, b: a + b - 2, rng.exponential(size=30) ** 2)
    assert "covers less than it says" in signed.note
    bounded = u_statistic(variance, rng.exponential(size=30) ** 2, support=(0.0, 1e6))
    assert bounded.note == ""
    assert u_statistic(variance, np.arange(200.0)).note == ""


def test_the_variance_of_a_sample_has_the_influences_and_the_interval_of_its_kernel():
    Z = np.random.default_rng(0).normal(size=40)[:, None]
    found = u_statistic(lambda a, b: (a[..., 0] - b[..., 0]) ** 2 / 2, Z)
    assert found.value == pytest.approx(np.var(Z, ddof=1))
    assert found.influence.sum() == pytest.approx(0.0, abs=1e-9)
    furthest = np.argmax(np.abs(Z[:, 0] - Z.mean()))
    assert np.argmax(found.influence) == furthest  # the row that the variance leans on most
    low, high = found.interval(0.9)
    assert 0 < low < found.value < high
    wider = found.interval(0.99)
    assert wider[0] < low < high < wider[1]


def test_the_variance_of_a_few_rows_with_a_long_tail_is_covered():
    """Exponential rows: 95% intervals of 30 covered 81% to 84% around the value, 66% of 10."""

    def variance(a, b):
        return (a - b) ** 2 / 2

    rng = np.random.default_rng(3)
    for rows, least in ((10, 0.8), (30, 0.88)):
        found = (u_statistic(variance, rng.exponential(size=rows)) for _ in range(150))
        low, high = np.array([one.interval() for one in found]).T
        assert np.mean((low <= 1) & (1 <= high)) > least


def test_a_kernel_that_is_never_negative_has_an_interval_of_positive_values():
    """Counts are copies of rows, and a statistic that one row makes still has an end."""
    x, weight = np.array([0.0, 1.0, 4.0, 9.0, 30.0]), np.array([1, 2, 1, 3, 1])
    counted = u_statistic(lambda a, b: np.abs(a - b), x, sample_weight=weight)
    copied = u_statistic(lambda a, b: np.abs(a - b), np.repeat(x, weight))
    assert counted.interval() == pytest.approx(copied.interval())
    assert counted.lowest == 0 < counted.interval()[0] < counted.value
    single = u_statistic(lambda a, b: np.abs(a - b), [0.0, 0.0, 0.0, 0.0, 1.0])
    low, high = single.interval(0.9999)
    assert 0 < low < single.value < high < np.inf
    signed = u_statistic(lambda a, b: a + b - 20, x)
    assert signed.value == pytest.approx(np.mean(signed.interval()))
