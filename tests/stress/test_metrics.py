"""Every metric of ugly scores and weights is the exact value of its definition, or refuses."""

from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise
from math import ceil, floor, inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toprank.metrics import (
    METRICS,
    best_k,
    f_skew,
    heights,
    margin_distribution,
    ranks,
    reverse_heights,
    summary,
)
from toprank.metrics import (
    auc as auc_metric,
)
from toprank.metrics import (
    bedroc as bedroc_metric,
)
from toprank.metrics import (
    ndcg_at as ndcg_metric,
)
from toprank.metrics import (
    precision_at as precision_metric,
)
from toprank.metrics import (
    push_risk as push_risk_metric,
)
from toprank.metrics import (
    recall_at as recall_metric,
)
from toprank.metrics import (
    value_at as value_metric,
)

TINY, HUGE = 5e-324, float(np.finfo(np.float64).max)
SCORES = {
    "one value": (3.0,),
    "zeros of both signs": (0.0, -0.0),
    "subnormal": (0.0, TINY, 2 * TINY, -TINY, 1e-320, 2e-320),
    "neighbours of one": (1.0, 1 + 2.0**-52, 1 - 2.0**-53),
    "around zero": (-1.0, -0.5, 0.0, 0.25, 2.0),
    "exponents end here": (-746.0, -709.0, 0.0, 709.0, 746.0),
    "large": (-1e8, 1.0, 1e8),
    "as large as can be": (-HUGE, -1e308, 0.0, 1e308, HUGE),
}
WEIGHTS = {
    "counts": st.sampled_from([0.0, 1.0, 1.0, 2.0, 7.0]),
    "over 24 orders": st.integers(-12, 12).map(lambda e: 10.0**e),
    "over 198 orders": st.sampled_from([1e-99, 1.0, 1e98]),
    "subnormal": st.sampled_from([0.0, TINY, 1e-310, 1.0, 3.0]),
    "fractions": st.floats(0.01, 2.0),
    "large and equal": st.just(1e16),
}


@dataclass
class Rows:
    """Rows of positive weight, as exact fractions, from the top; `k` counts as `precision_at`."""

    label: list
    score: list
    weight: list

    @classmethod
    def of(cls, y, s, w):
        kept = sorted(
            ((float(b), int(a), Fraction(c)) for a, b, c in zip(y, s, w, strict=True) if c > 0),
            reverse=True,
        )
        return cls(*([row[i] for row in kept] for i in (1, 0, 2)))

    def __iter__(self):
        return zip(self.label, self.score, self.weight, strict=True)

    @property
    def positives(self):
        return [(f, w) for a, f, w in self if a == 1]

    @property
    def negatives(self):
        return [(f, w) for a, f, w in self if a == 0]

    @property
    def totals(self):
        return sum(w for _, w in self.positives), sum(w for _, w in self.negatives)

    @property
    def ties(self):
        """(weight above, positive weight, negative weight) of each score from the top."""
        above = Fraction(0)
        for score in sorted(set(self.score), reverse=True):
            high = sum((w for f, w in self.positives if f == score), Fraction(0))
            low = sum((w for f, w in self.negatives if f == score), Fraction(0))
            yield above, high, low
            above += high + low

    def units(self, k, rounding=ceil):
        total = sum(self.totals)
        if isinstance(k, int):
            return Fraction(k)
        if any(w.denominator > 1 for w in self.weight):
            return Fraction(k) * total
        size = Fraction(k) * total
        if abs(size - round(size)) <= Fraction(1, 10**9) * max(1, size):
            size = Fraction(round(size))
        return Fraction(rounding(size)) if rounding is floor else max(1, Fraction(ceil(size)))


# ---- the definitions, in fractions; with logarithms, in decimals of 80 digits ------------------


def share_of_pairs(rows, counts):
    high, low = rows.totals
    return sum(v * w * counts(f, g) for f, v in rows.positives for g, w in rows.negatives) / (
        high * low
    )


def auc(rows):
    return share_of_pairs(rows, lambda f, g: Fraction(1 + (f > g) - (f < g), 2))


def misranking_error(rows, ties="half"):
    tie = Fraction(1, 2) if ties == "half" else Fraction(1)
    return share_of_pairs(rows, lambda f, g: Fraction(f < g) + tie * (f == g))


def margin_error(rows, theta):
    return share_of_pairs(rows, lambda f, g: Fraction(bool(f <= g + theta)))


def ranking_risk(rows):
    high, low = rows.totals
    total = high + low
    return 2 * misranking_error(rows) * high * low / (total * (total - 1))


def ranking_margin_(rows, norm=1.0):
    smallest = min(Fraction(f) for f, _ in rows.positives)
    return (smallest - max(Fraction(g) for g, _ in rows.negatives)) / Fraction(norm)


def polygon(rows):
    high, low = rows.totals
    points = [(Fraction(0), Fraction(0))]
    for _, m, n in rows.ties:
        x, y = points[-1]
        points.append((x + n / low, y + m / high))
    return points


def tpr_at_fpr(rows, fpr):
    fpr = Fraction(fpr)
    best = Fraction(0)
    for (x0, y0), (x1, y1) in pairwise(polygon(rows)):
        if x0 <= fpr <= x1:
            best = max(best, y1 if x1 == x0 else y0 + (y1 - y0) * (fpr - x0) / (x1 - x0))
    return best


def precision_at_recall(rows, recall):
    high, _ = rows.totals
    found, best = Fraction(0), Fraction(0)
    for above, m, n in rows.ties:
        found += m
        if found >= Fraction(recall) * high:
            best = max(best, found / (above + m + n))
    return best


def recall_at_precision(rows, precision):
    high, _ = rows.totals
    found, best = Fraction(0), Fraction(0)
    for above, m, n in rows.ties:
        found += m
        if found >= Fraction(precision) * (above + m + n):
            best = max(best, found / high)
    return best


def area(points, start, stop, low):
    total = Fraction(0)
    for (x0, y0), (x1, y1) in pairwise(points):
        left, right = max(x0, start), min(x1, stop)
        if right <= left:
            continue
        at = [y0 + (y1 - y0) * (x - x0) / (x1 - x0) - low for x in (left, right)]
        if at[0] < 0 < at[1]:
            left += (right - left) * -at[0] / (at[1] - at[0])
            at[0] = Fraction(0)
        total += (right - left) * max(at[0] + at[1], Fraction(0)) / 2
    return total


def partial_auc(rows, max_fpr=1.0, min_fpr=0.0, min_tpr=0.0, standardize=True):
    start, stop, low = Fraction(min_fpr), Fraction(max_fpr), Fraction(min_tpr)
    raw = area(polygon(rows), start, stop, low)
    if not standardize:
        return raw
    chance = area([(Fraction(0), Fraction(0)), (Fraction(1), Fraction(1))], start, stop, low)
    return (1 + (raw - chance) / ((stop - start) * (1 - low) - chance)) / 2


def heights_of(rows, margin=0.0):
    return [
        (sum((v for f, v in rows.positives if f <= g + margin), Fraction(0)), w)
        for g, w in rows.negatives
    ]


def decimal(fraction):
    return Decimal(fraction.numerator) / Decimal(fraction.denominator)


def pnorm_risk(rows, p, normalize=False, margin=0.0, log=False):
    high, low = rows.totals
    tall = heights_of(rows, margin)
    if p == inf:
        top = max(h for h, _ in tall)
        value = decimal(top / high if normalize else top)
    else:
        value = sum(decimal(w) * decimal(h) ** p for h, w in tall)
        value = value / (decimal(low) * decimal(high) ** p) if normalize else value
        value = value ** (1 / Decimal(p)) if normalize and value else value
    if log:
        return value.ln() if value else -inf
    return value


def max_height(rows, normalize=False):
    return pnorm_risk(rows, inf, normalize)


def positives_at_top(rows, normalize=True):
    best = max(g for g, _ in rows.negatives)
    leading = sum((w for f, w in rows.positives if f > best), Fraction(0))
    return leading / rows.totals[0] if normalize else leading


def top_is_positive(rows):
    _, high, low = next(iter(rows.ties))
    return high / (high + low)


def hits(rows, units):
    return sum(
        m / (m + n) * min(max(units - above, Fraction(0)), m + n) for above, m, n in rows.ties
    )


def precision_at(rows, k):
    return hits(rows, rows.units(k)) / rows.units(k)


def recall_at(rows, k):
    return hits(rows, rows.units(k)) / rows.totals[0]


def lift_at(rows, k):
    return precision_at(rows, k) * sum(rows.totals) / rows.totals[0]


def enrichment_factor(rows, k):
    total = sum(rows.totals)
    units = rows.units(k, floor)
    asked = units if isinstance(k, int) else Fraction(k) * total
    return hits(rows, units) * total / (asked * rows.totals[0])


def value_at(rows, k, benefit=1.0, cost=0.0):
    units = rows.units(k)
    return Fraction(benefit) * hits(rows, units) - Fraction(cost) * min(units, sum(rows.totals))


def dcg(rows):
    return sum(decimal(m) / decimal(1 + above + m + n).ln() for above, m, n in rows.ties)


@cache
def discounts_of_the_first_places(count=200):
    return [Decimal(0), *accumulate(1 / Decimal(1 + r).ln() for r in range(1, count + 1))]


def logarithmic_integral(log):
    """li(e^log) less Euler's constant: ln ln x + sum of (ln x)^k / (k k!)."""
    total, term, k = log.ln(), Decimal(1), 0
    while k < log or term > Decimal("1e-210"):
        k += 1
        term *= log / k
        total += term / k
    return total


def euler_maclaurin(place):
    """Sum of the discounts down to a whole place, up to a constant."""
    x = Decimal(1 + place)
    log = x.ln()
    slope = -1 / (x * log**2)
    third = -(2 / log**2 + 6 / log**3 + 6 / log**4) / x**3
    return logarithmic_integral(log) + 1 / (2 * log) + slope / 12 - third / 720


@cache
def discounts_to(place):
    table = discounts_of_the_first_places()
    if place < len(table):
        return table[place]
    return table[-1] + euler_maclaurin(place) - euler_maclaurin(len(table) - 1)


def summed_discounts(depth):
    whole = floor(depth)
    return discounts_to(whole) + decimal(depth - whole) / Decimal(2 + whole).ln()


def ndcg_at(rows, k):
    units = rows.units(k)
    gained = sum(
        decimal(m / (m + n))
        * (summed_discounts(min(above + m + n, units)) - summed_discounts(min(above, units)))
        for above, m, n in rows.ties
    )
    return gained / summed_discounts(min(units, rows.totals[0]))


def aver(rows):
    return sum(m / (above + m + n) for above, m, n in rows.ties)


def average_precision(rows):
    found = total = Fraction(0)
    for above, m, n in rows.ties:
        found += m
        total += m * found / (above + m + n)
    return total / rows.totals[0]


def bedroc(rows, alpha=20.0):
    """Geometric sums over the places of each tie; of the best and worst lists likewise."""
    rate = Fraction(alpha) / sum(rows.totals)
    high, low = rows.totals

    def discounts(start, length):
        return (-decimal(rate * start)).exp() - (-decimal(rate * (start + length))).exp()

    score = sum(decimal(m / (m + n)) * discounts(above, m + n) for above, m, n in rows.ties)
    best, worst = discounts(Fraction(0), high), discounts(low, high)
    return (score - worst) / (best - worst)


def push_risk(rows, p=1, loss="exponential", log=True):
    def of(r):
        if loss in ("exponential", "logistic"):
            grown = (-decimal(r)).exp()
            if loss == "exponential":
                return grown
            # the series where one plus a small number would be one
            return (1 + grown).ln() if r < 60 else grown - grown**2 / 2
        gap = max(Fraction(0), 1 - r)
        return decimal(gap if loss == "hinge" else gap**2)

    tall = [
        (sum(decimal(v) * of(Fraction(f) - Fraction(g)) for f, v in rows.positives), w)
        for g, w in rows.negatives
    ]
    value = sum(decimal(w) * h**p for h, w in tall)
    return value.ln() if value else -inf


def f_skew_(rows):
    """The skew, and the size of what it is the difference of."""
    plus = sum(decimal(w) * (-decimal(Fraction(f))).exp() for f, w in rows.positives)
    minus = sum(decimal(w) * decimal(Fraction(g)).exp() for g, w in rows.negatives)
    return plus - minus, plus + minus


# ---- the attack --------------------------------------------------------------------------------

KS = ({"k": 1}, {"k": 0.3}, {"k": 1.0}, {"k": 1e-9})
CASES = {
    "auc": (auc, ({},)),
    "misranking_error": (misranking_error, ({}, {"ties": "error"})),
    "margin_error": (margin_error, tuple({"theta": t} for t in (0.0, 1.0, -1.0, 1e308, 1e-320))),
    "ranking_risk": (ranking_risk, ({},)),
    "ranking_margin": (ranking_margin_, ({}, {"norm": 4.0}, {"norm": 1e300})),
    "tpr_at_fpr": (tpr_at_fpr, tuple({"fpr": u} for u in (0.0, 0.1, 0.5, 1.0))),
    "precision_at_recall": (precision_at_recall, tuple({"recall": u} for u in (0.1, 0.5, 1.0))),
    "recall_at_precision": (
        recall_at_precision,
        tuple({"precision": u} for u in (0.1, 0.5, 1.0)),
    ),
    "partial_auc": (
        partial_auc,
        (
            {},
            {"max_fpr": 0.1},
            {"max_fpr": 1e-300},
            {"min_fpr": 0.3, "max_fpr": 0.3 + 1e-15},
            {"min_fpr": 0.99},
            {"min_tpr": 0.9},
            {"min_tpr": 0.5, "max_fpr": 0.7, "standardize": False},
        ),
    ),
    "pnorm_risk": (
        pnorm_risk,
        (
            {"p": 1},
            {"p": 4, "log": True},
            {"p": 64, "normalize": True},
            {"p": 1000, "normalize": True, "log": True},
            {"p": inf},
            {"p": 3, "margin": 1e308, "log": True},
            {"p": 2, "margin": -0.5, "normalize": True},
        ),
    ),
    "max_height": (max_height, ({}, {"normalize": True})),
    "positives_at_top": (positives_at_top, ({}, {"normalize": False})),
    "top_is_positive": (top_is_positive, ({},)),
    "precision_at": (precision_at, KS),
    "recall_at": (recall_at, KS),
    "lift_at": (lift_at, KS),
    "enrichment_factor": (enrichment_factor, KS),
    "value_at": (value_at, tuple({**k, "benefit": 3.0, "cost": 0.5} for k in KS)),
    "ndcg_at": (ndcg_at, KS),
    "dcg": (dcg, ({},)),
    "aver": (aver, ({},)),
    "average_precision": (average_precision, ({},)),
    "bedroc": (bedroc, tuple({"alpha": a} for a in (20.0, 1e-8, 0.3, 400.0))),
    "push_risk": (
        push_risk,
        (
            {"log": True},
            {"p": 4, "log": True},
            {"loss": "logistic", "log": True},
            {"loss": "logistic", "p": 3, "log": True},
            {"loss": "hinge", "log": True},
            {"loss": "squared_hinge", "p": 2, "log": True},
        ),
    ),
}
#: Where k, or a rate, falls within rounding error of an end of a tie, either side is right.
SNAPS = {
    "tpr_at_fpr": "fpr",
    "precision_at_recall": "recall",
    "recall_at_precision": "precision",
    "precision_at": "k",
    "recall_at": "k",
    "lift_at": "k",
    "enrichment_factor": "k",
    "ndcg_at": "k",
    "value_at": "k",
}


@st.composite
def ugly_rows(draw, max_rows=7):
    """Labels, scores of one family and weights of one, with rows of both classes."""
    n = draw(st.integers(2, max_rows))
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    y[:2] = draw(st.permutations([0, 1]))
    levels = st.sampled_from(SCORES[draw(st.sampled_from(sorted(SCORES)))])
    weights = WEIGHTS[draw(st.sampled_from(sorted(WEIGHTS)))]
    s = draw(st.lists(levels, min_size=n, max_size=n))
    w = draw(st.lists(weights, min_size=n, max_size=n))
    w[:2] = (max(1.0, w[0]), max(1.0, w[1]))
    return np.array(y), np.array(s), np.array(w)


def acceptable(name, rows, parameters):
    """The exact value; two where k, or a rate, may fall on either side of an end of a tie."""
    of, _ = CASES[name]
    with localcontext() as context:
        context.prec = {"bedroc": 450, "dcg": 450, "ndcg_at": 220}.get(name, 120)  # most cancels
        context.Emax, context.Emin = MAX_EMAX, MIN_EMIN
        snap = SNAPS.get(name)
        if snap is None or isinstance(parameters[snap], int):
            return [of(rows, **parameters)]
        value = parameters[snap]
        around = (value * (1 - 4e-12), value, min(1.0, value * (1 + 4e-12)))
        return [of(rows, **{**parameters, snap: x}) for x in around]


def largest_score(loss="exponential", **_):
    return 1e12 if "hinge" in loss else 1e100


def check(name, y, s, w):
    rows = Rows.of(y, s, w)
    for parameters in CASES[name][1]:
        if parameters.get("k") == 1 and sum(rows.totals) < 1:
            continue
        if name == "push_risk" and np.max(np.abs(s)) > largest_score(**parameters):
            with pytest.raises(ValueError, match="expected scores up to 1e"):
                METRICS[name].function(y, s, sample_weight=w, **parameters)
            continue
        got = METRICS[name].function(y, s, sample_weight=w, **parameters)
        values = [
            v if v in (inf, -inf) else Fraction(v) for v in acceptable(name, rows, parameters)
        ]
        if isinstance(values[0], float):
            assert got == values[0], (name, parameters)
            continue
        if abs(values[0]) > Fraction(HUGE):
            assert got == (inf if values[0] > 0 else -inf)
            continue
        low, high = min(values), max(values)
        slack = Fraction(1, 10**11) * max(1, abs(low), abs(high))
        assert np.isfinite(got), (name, parameters, got)
        assert low - slack <= Fraction(got) <= high + slack, (name, parameters, got, float(low))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", CASES)
@given(drawn=ugly_rows())
def test_the_metric_is_the_exact_value_of_its_definition(name, drawn):
    check(name, *drawn)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@settings(max_examples=600)
@given(drawn=ugly_rows(max_rows=10))
def test_the_metric_is_exact_in_many_cases(name, drawn):
    check(name, *drawn)


@given(drawn=ugly_rows())
def test_heights_ranks_and_f_skew_are_exact(drawn):
    y, s, w = drawn
    rows = Rows.of(y, s, w)
    exact = dict(zip((g for g, _ in rows.negatives), (h for h, _ in heights_of(rows)), strict=True))
    for score, height in zip(s[y == 0], heights(y, s, sample_weight=w), strict=True):
        if score in exact:
            assert height == pytest.approx(float(exact[score]), rel=1e-12)
    facing = [sum(v for g, v in rows.negatives if f <= g) for f in s[y == 1]]
    np.testing.assert_allclose(
        reverse_heights(y, s, sample_weight=w), [float(h) for h in facing], rtol=1e-12
    )
    placed = [sum(v for _, g, v in rows if f <= g) for f in s[y == 1]]
    np.testing.assert_allclose(ranks(y, s, sample_weight=w), [float(r) for r in placed], rtol=1e-12)
    if np.max(np.abs(s)) <= 1e8:
        with localcontext() as context:
            context.prec, context.Emax, context.Emin = 120, MAX_EMAX, MIN_EMIN
            skew, size = f_skew_(rows)
            got = f_skew(y, s, sample_weight=w)
            lost = size * Decimal("1e-12") + 1  # of both sums, where they nearly cancel
            if abs(skew) - lost > Decimal(HUGE):
                assert got == (inf if skew > 0 else -inf)
            else:
                assert abs(skew) + lost > Decimal(HUGE) or abs(Decimal(got) - skew) <= lost


LISTED = {name: metric for name, metric in METRICS.items() if name != "push_risk"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("family", SCORES)
def test_no_warning_of_numpy_and_no_nan_comes_out_of_extreme_scores(family, record_property):
    rng, cases = np.random.default_rng(0), 0
    for n in (2, 3, 8, 40):
        for weights in (None, 10.0 ** rng.uniform(-12, 12, n), np.full(n, 1e-12)):
            y = rng.permutation(np.arange(n) % 2)
            s = rng.choice(SCORES[family], n)
            for name, metric in LISTED.items():
                if name == "ranking_risk" and weights is not None and np.sum(weights) <= 1:
                    continue
                got = metric.function(y, s, sample_weight=weights, **metric.settings)
                assert not np.isnan(got), name
                cases += 1
            if weights is None:
                assert not any(np.isnan(entry.value) for entry in summary(y, s))
                assert 0 <= best_k(y, s, cost=0.5) <= n
    record_property("cases", cases)


# ---- what went wrong ---------------------------------------------------------------------------


def test_a_light_list_after_heavy_ones_keeps_its_own_places():
    y, s = [1, 0, 0, 1, 0, 1], [3.0, 2.0, 1.0, 3.0, 2.0, 1.0]
    y, s = np.array(y), np.array(s)
    weight = np.array([1e15, 3e15, 7e15, 0.3, 0.1, 0.2])
    groups = ["heavy"] * 3 + ["light"] * 3
    both = precision_metric(y, s, 0.5, sample_weight=weight, groups=groups)
    each = [
        precision_metric(y[part], s[part], 0.5, sample_weight=weight[part])
        for part in (slice(0, 3), slice(3, 6))
    ]
    assert both == pytest.approx(np.mean(each), rel=1e-12)


def test_a_heavy_tie_at_the_bottom_does_not_swallow_the_rows_above_it():
    weight = [1.0, 1.0, 1e98]
    got = value_metric([0, 1, 0], [-1.0, -0.5, -1.0], 1, benefit=3, cost=0.5, sample_weight=weight)
    assert got == 2.5


def test_of_a_list_taken_whole_nothing_is_left_over():
    assert recall_metric([0, 1], [0.0, -1.0], 1.0, sample_weight=[1e99, 1.0]) == 1.0


def test_a_share_is_never_more_than_one():
    y, s = [0, 0, 0, 1, 0, 1, 1], [1e-323, 0.0, 0.0, -5e-324, 1e-323, -5e-324, 5e-324]
    weight = np.array([1e-99, 1e-99, 1e-99, 1e99, 1e-99, 1e-99, 1e-99])
    for k in (1, 10**6, 0.5, 1.0):
        assert 0 <= precision_metric(y, s, k, sample_weight=weight) <= 1


@pytest.mark.parametrize(("heavy", "light"), [(1e12, 1.0), (1e98, 1.0), (1e12, 1e-12)])
def test_a_light_positive_below_a_heavy_tie_keeps_its_gain(heavy, light):
    got = ndcg_metric([0, 1], [2.0, 1.0], 1.0, sample_weight=[heavy, light])
    assert got == pytest.approx(np.log(2) / np.log1p(heavy + 1), rel=1e-12)


def test_a_part_of_a_place_beyond_the_table_has_the_discount_of_that_place():
    weight = [5000.25, 0.5]
    got = ndcg_metric([0, 1], [2.0, 1.0], 1.0, sample_weight=weight)
    assert got == pytest.approx(np.log(2) / np.log(5002), rel=1e-13)


@pytest.mark.parametrize("alpha", [1e-300, 1e-30, 1e-12])
def test_bedroc_of_a_gentle_decay_is_the_auc(alpha):
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 2, 50), rng.integers(0, 9, 50)
    assert bedroc_metric(y, s, alpha) == pytest.approx(auc_metric(y, s), abs=1e-11)


def test_bedroc_of_a_steep_decay_is_whether_the_top_is_positive():
    assert bedroc_metric([1, 0, 0], [3, 2, 1], 1e308) == 1.0
    assert bedroc_metric([0, 1, 0], [3, 2, 1], 1e308) == 0.0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_scores_that_swallow_the_margin_of_a_hinge_are_refused(loss):
    with pytest.raises(ValueError, match=r"as large as 1e\+100, expected scores up to 1e\+12"):
        push_risk_metric([0, 1], [-1e100, -1e100], loss=loss)
    assert push_risk_metric([0, 1], [-1e12, -1e12], loss=loss) == pytest.approx(1.0)


@pytest.mark.parametrize("p", [1e4, 1e16, 1e308])
def test_a_normalised_norm_of_any_power_is_a_share_near_the_highest_height(p):
    y, s = [0, 1, 0, 1, 1], [1, 2, 3, 4, 0]
    got = METRICS["pnorm_risk"].function(y, s, p, normalize=True)
    assert got == pytest.approx(2 / 3, rel=1e-3)


def test_margins_beyond_the_largest_float_are_refused_or_infinite():
    y, s = [0, 1, 0, 1], [-HUGE, HUGE, HUGE, -HUGE]
    assert METRICS["ranking_margin"].function(y, s) == -inf
    assert METRICS["ranking_margin"].function(y, s, norm=HUGE) == -2.0
    with pytest.raises(ValueError, match="beyond the range of floats"):
        margin_distribution(y, s)
    with pytest.raises(ValueError, match="beyond the range of floats"):
        margin_distribution(y, s, norm=1e10)


@pytest.mark.parametrize("name", ["benefit", "cost"])
def test_amounts_whose_sums_are_no_floats_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} is as large as 1e\\+308, expected amounts up"):
        value_metric([0, 1], [1.0, 2.0], 1, **{name: 1e308})


def test_weights_that_add_up_to_infinity_are_refused_without_a_warning():
    for metric in METRICS.values():
        with pytest.raises(ValueError, match=r"too far from a repetition|adds up to more than any"):
            metric.function([0, 1], [1.0, 2.0], sample_weight=[1e308, 1.7e308], **metric.settings)


@pytest.mark.parametrize("parameter", ["min_fpr", "min_tpr"])
def test_a_part_of_the_curve_that_rounding_would_swallow_is_refused(parameter):
    with pytest.raises(ValueError, match="too small to compute"):
        METRICS["partial_auc"].function([0, 1], [1.0, 2.0], **{parameter: 1 - 1e-16})


def test_one_row_is_no_ranking():
    for metric in METRICS.values():
        with pytest.raises(ValueError, match=r"expected two|one value only"):
            metric.function([1], [0.5], **metric.settings)


@pytest.mark.slow
@pytest.mark.parametrize("place", [1, 1000, 10**6 + 1])
def test_one_positive_among_a_million_negatives_is_measured_exactly(place):
    n = 10**6 + 1
    s = np.arange(n, 0.0, -1.0)
    y = np.zeros(n, dtype=bool)
    y[place - 1] = True
    rng = np.random.default_rng(0)
    mixed = rng.permutation(n)
    got = {
        name: metric.function(y[mixed], s[mixed], **metric.settings)
        for name, metric in METRICS.items()
        if name != "push_risk"
    }
    above = place - 1
    assert got["auc"] == pytest.approx(1 - above / 10**6, abs=1e-12)
    assert got["misranking_error"] == pytest.approx(above / 10**6, rel=1e-12, abs=1e-300)
    assert got["average_precision"] == got["aver"] == pytest.approx(1 / place, rel=1e-12)
    assert got["dcg"] == pytest.approx(1 / np.log1p(place), rel=1e-12)
    assert got["recall_at"] == float(place <= 100_001)
    assert got["max_height"] == float(above > 0)
    assert got["positives_at_top"] == got["top_is_positive"] == float(place == 1)
    assert got["ranking_risk"] == pytest.approx(2 * above / (n * (n - 1.0)), rel=1e-9, abs=1e-300)
    assert all(np.isfinite(value) for value in got.values())
