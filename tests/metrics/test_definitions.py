"""Every metric against its definition, written out slowly, row by row and order by order.

A weight is a repetition count, so the reference sees each row repeated and knows no weights.
"""

from itertools import combinations, pairwise, product
from math import ceil, cosh, exp, floor, log, sinh

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.metrics import METRICS, f_skew, ranking_risk, ranks, sorted_classes, summary
from toprank.metrics.order import RankedList
from toprank.metrics.sorted_classes import SortedClasses

EXTREMES = (-1e300, -2.0, -1e-300, 0.0, 5e-324, 1.0, 1.25, 1e300)


@st.composite
def repeated_rows(draw, max_rows=7, max_units=9, levels=EXTREMES):
    """Labels, scores with many ties, and repetition counts, some of them zero."""
    n = draw(st.integers(2, max_rows))
    y = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    y[:2] = draw(st.permutations([0, 1]))
    scores = np.array(draw(st.lists(st.sampled_from(levels), min_size=n, max_size=n)))
    weight = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    weight[:2] = np.maximum(1, weight[:2])
    while weight.sum() > max_units:
        weight[np.argmax(weight[::-1] > 0) * -1 - 1] -= 1
        weight[:2] = np.maximum(1, weight[:2])
    return y, scores, weight


# ---- the definitions ---------------------------------------------------------------------------


def pairs(y, s):
    return [(a, b) for a, label in zip(s, y, strict=True) if label for b in s[y == 0]]


def orders(y, s):
    """The labels down the list, for every way in which random tie-breaking can arrange them."""
    choices = []
    for score in sorted(set(s.tolist()), reverse=True):
        labels = y[s == score]
        spots = combinations(range(len(labels)), int(labels.sum()))
        choices.append([[int(j in chosen) for j in range(len(labels))] for chosen in spots])
    for choice in product(*choices):
        yield [label for tie in choice for label in tie]


def expected(y, s, of_order):
    return float(np.mean([of_order(labels) for labels in orders(y, s)]))


def count(k, n):
    return k if isinstance(k, int) else max(1, ceil(k * n - 1e-9))


def auc(y, s):
    return np.mean([(a > b) + 0.5 * (a == b) for a, b in pairs(y, s)])


def misranking_error(y, s, ties="half"):
    tie = {"half": 0.5, "error": 1.0}[ties]
    return np.mean([(a < b) + tie * (a == b) for a, b in pairs(y, s)])


def curve(y, s):
    """The vertices of the ROC polygon."""
    yield 0.0, 0.0
    for score in sorted(set(s.tolist()), reverse=True):
        yield np.mean(s[y == 0] >= score), np.mean(s[y == 1] >= score)


def tpr_at_fpr(y, s, fpr):
    points = list(curve(y, s))
    best = 0.0
    for (x0, y0), (x1, y1) in pairwise(points):
        if x0 - 1e-12 <= fpr <= x1 + 1e-12:
            best = max(best, y1 if x1 - x0 < 1e-9 else y0 + (y1 - y0) * (fpr - x0) / (x1 - x0))
    return best


def thresholds(y, s):
    """(precision, recall) of each threshold."""
    for score in set(s.tolist()):
        yield np.mean(y[s >= score]), np.mean(s[y == 1] >= score)


def precision_at_recall(y, s, recall):
    return max(p for p, r in thresholds(y, s) if r >= recall - 1e-12)


def recall_at_precision(y, s, precision):
    return max((r for p, r in thresholds(y, s) if p >= precision - 1e-12), default=0.0)


def partial_auc(y, s, max_fpr=None, min_fpr=0.0, min_tpr=None, standardize=True):
    stop, low = max_fpr or 1.0, min_tpr or 0.0

    def area(points):
        """Cut [start, stop] where the polygon bends or meets the floor; midpoints are exact."""
        cuts = {min_fpr, stop, *(x for x, _ in points)}
        for (x0, y0), (x1, y1) in pairwise(points):
            if y0 < low < y1:
                cuts.add(x0 + (x1 - x0) * (low - y0) / (y1 - y0))
        cuts = sorted(x for x in cuts if min_fpr <= x <= stop)
        total = 0.0
        for left, right in pairwise(cuts):
            middle = (left + right) / 2
            for (x0, y0), (x1, y1) in pairwise(points):
                if x0 < middle < x1:
                    height = y0 + (y1 - y0) * (middle - x0) / (x1 - x0)
                    total += (right - left) * max(height - low, 0.0)
        return total

    raw = area(list(curve(y, s)))
    if not standardize:
        return raw
    chance, best = area([(0.0, 0.0), (1.0, 1.0)]), (stop - min_fpr) * (1 - low)
    return 0.5 * (1 + (raw - chance) / (best - chance))


def two_class_ranking_risk(y, s):
    n, total = len(y), 0.0
    for i in range(n):
        for j in range(n):
            wrong = (s[i] < s[j] and y[i] > y[j]) or (s[i] > s[j] and y[i] < y[j])
            total += wrong + 0.5 * (s[i] == s[j] and y[i] != y[j])
    return total / (n * (n - 1))


def heights(y, s, margin=0.0):
    return [sum(a <= b + margin for a in s[y == 1]) for b in s[y == 0]]


def pnorm_risk(y, s, p, normalize=False, margin=0.0, log=False):
    tall = np.array(heights(y, s, margin), dtype=float)
    if normalize:
        tall /= np.sum(y == 1)
        value = np.max(tall) if p == np.inf else np.mean(tall**p) ** (1 / p)
    else:
        value = np.max(tall) if p == np.inf else np.sum(tall**p)
    with np.errstate(divide="ignore"):
        return np.log(value) if log else value


def max_height(y, s, normalize=False):
    return max(heights(y, s)) / (np.sum(y == 1) if normalize else 1)


def positives_at_top(y, s, normalize=True):
    leading = sum(a > max(s[y == 0]) for a in s[y == 1])
    return leading / np.sum(y == 1) if normalize else leading


def top_is_positive(y, s):
    return expected(y, s, lambda labels: labels[0])


def precision_at(y, s, k):
    k = count(k, len(y))
    return expected(y, s, lambda labels: sum(labels[:k]) / k)


def recall_at(y, s, k):
    k = count(k, len(y))
    return expected(y, s, lambda labels: sum(labels[:k]) / sum(labels))


def lift_at(y, s, k):
    return precision_at(y, s, k) / np.mean(y == 1)


def enrichment_factor(y, s, k):
    chi = k / len(y) if isinstance(k, int) else k
    rows = floor(chi * len(y) + 1e-9)
    return expected(y, s, lambda labels: sum(labels[:rows]) / (chi * sum(labels)))


def ndcg_at(y, s, k):
    k = count(k, len(y))

    def gain(labels):
        return sum(label / log(1 + r) for r, label in enumerate(labels[:k], start=1))

    return expected(y, s, gain) / gain(sorted(y.tolist(), reverse=True))


def worst_ranks(y, s):
    return [sum(s >= a) for a in s[y == 1]]


def dcg(y, s):
    return sum(1 / log(1 + r) for r in worst_ranks(y, s))


def aver(y, s):
    return sum(1 / r for r in worst_ranks(y, s))


def average_precision(y, s):
    return np.mean([np.mean(y[s >= a] == 1) for a in s[y == 1]])


def bedroc(y, s, alpha=20.0):
    """Truchon & Bayly (2007), as they print it."""
    n, actives = len(y), int(np.sum(y == 1))
    ratio = actives / n

    def published(labels):
        ranks = [r for r, label in enumerate(labels, start=1) if label]
        rie = np.mean([exp(-alpha * r / n) for r in ranks])
        rie /= (1 / n) * (1 - exp(-alpha)) / (exp(alpha / n) - 1)
        scale = ratio * sinh(alpha / 2) / (cosh(alpha / 2) - cosh(alpha / 2 - alpha * ratio))
        return rie * scale + 1 / (1 - exp(alpha * (1 - ratio)))

    return expected(y, s, published)


def ranking_margin(y, s, norm=1.0):
    return min(a - b for a, b in pairs(y, s)) / norm


def margin_error(y, s, theta):
    return np.mean([a <= b + theta for a, b in pairs(y, s)])


def value_at(y, s, k, benefit=1.0, cost=0.0):
    k = count(k, len(y))
    return expected(y, s, lambda labels: benefit * sum(labels[:k]) - cost * k)


# ---- the comparison ----------------------------------------------------------------------------

fractions = st.sampled_from([0.1, 0.25, 1 / 3, 0.5, 0.9, 1.0])
ks = st.fixed_dictionaries({"k": st.integers(1, 2) | fractions})
nothing = st.just({})
PARAMETERS = {
    "partial_auc": st.fixed_dictionaries(
        {},
        optional={
            "max_fpr": st.sampled_from([0.3, 0.5, 0.77, 1.0]),
            "min_fpr": st.sampled_from([0.0, 0.1, 0.25]),
            "min_tpr": st.sampled_from([0.0, 0.3, 0.5, 0.95]),
            "standardize": st.booleans(),
        },
    ),
    "misranking_error": st.fixed_dictionaries({"ties": st.sampled_from(["half", "error"])}),
    "tpr_at_fpr": st.fixed_dictionaries({"fpr": st.sampled_from([0.0, 0.2, 1 / 3, 0.5, 0.6, 1.0])}),
    "precision_at_recall": st.fixed_dictionaries(
        {"recall": st.sampled_from([0.1, 1 / 3, 0.5, 0.75, 1.0])}
    ),
    "recall_at_precision": st.fixed_dictionaries(
        {"precision": st.sampled_from([0.1, 1 / 3, 0.5, 0.75, 1.0])}
    ),
    "pnorm_risk": st.fixed_dictionaries(
        {"p": st.sampled_from([1.0, 2, 3.5, 64.0, np.inf])},
        optional={
            "normalize": st.booleans(),
            "margin": st.sampled_from([0.0, 0.25, 1.0, -1.0]),
            "log": st.booleans(),
        },
    ),
    "max_height": st.fixed_dictionaries({"normalize": st.booleans()}),
    "positives_at_top": st.fixed_dictionaries({"normalize": st.booleans()}),
    "precision_at": ks,
    "recall_at": ks,
    "lift_at": ks,
    "enrichment_factor": ks,
    "ndcg_at": ks,
    "bedroc": st.fixed_dictionaries({"alpha": st.sampled_from([0.5, 20.0, 80.5])}),
    "ranking_margin": st.fixed_dictionaries({"norm": st.sampled_from([1.0, 4.0])}),
    "margin_error": st.fixed_dictionaries({"theta": st.sampled_from([-1.0, 0.0, 0.25, 1.0])}),
    "value_at": st.builds(
        lambda k, benefit, cost: {**k, "benefit": benefit, "cost": cost},
        ks,
        st.sampled_from([1.0, 3.0]),
        st.sampled_from([0.0, 0.5]),
    ),
}
DEFINITIONS = {
    function.__name__: function
    for function in (
        *(auc, partial_auc, misranking_error, tpr_at_fpr, pnorm_risk, max_height),
        *(positives_at_top, top_is_positive, precision_at, recall_at, lift_at),
        *(enrichment_factor, ndcg_at, average_precision, bedroc, dcg, aver),
        *(ranking_margin, margin_error, value_at, precision_at_recall, recall_at_precision),
    )
} | {"ranking_risk": two_class_ranking_risk}


def test_every_registered_metric_has_a_definition_here():
    # push_risk is held to the double loop in test_push_risk.py
    assert set(METRICS) - {"push_risk"} == set(DEFINITIONS)


@pytest.mark.parametrize("name", DEFINITIONS)
@given(st.data())
def test_metric_is_its_definition_with_weights_as_repetitions(name, data):
    y, s, w = data.draw(repeated_rows())
    parameters = data.draw(PARAMETERS.get(name, nothing))
    wanted = DEFINITIONS[name](np.repeat(y, w), np.repeat(s, w), **parameters)
    got = METRICS[name].function(y, s, sample_weight=w, **parameters)
    assert isinstance(got, float)
    assert got == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    unweighted = METRICS[name].function(np.repeat(y, w), np.repeat(s, w), **parameters)
    assert unweighted == pytest.approx(wanted, rel=1e-9, abs=1e-12)


@given(repeated_rows(levels=(-1.0, 0.0, 0.5, 2.0)))
def test_f_skew_is_its_definition(rows):
    y, s, w = rows
    wanted = np.sum((w * np.exp(-s))[y == 1]) - np.sum((w * np.exp(s))[y == 0])
    assert f_skew(y, s, sample_weight=w) == pytest.approx(wanted, rel=1e-12, abs=1e-12)


def test_f_skew_is_infinite_with_its_sign_where_it_overflows():
    assert f_skew([1, 0], [-1e4, 0.0]) == np.inf
    assert f_skew([1, 0], [0.0, 1e4]) == -np.inf
    assert f_skew([1, 0], [-1e4, 1e4]) == 0.0


@given(repeated_rows())
def test_ranks_count_the_rows_at_or_above(rows):
    y, s, w = rows
    wanted = [np.sum(w[s >= a]) for a in s[y == 1]]
    np.testing.assert_allclose(ranks(y, s, sample_weight=w), wanted, rtol=1e-14)
    assert ranks(y, s).tolist() == [np.sum(s >= a) for a in s[y == 1]]


@given(repeated_rows(max_rows=9), st.data())
def test_ranking_risk_of_real_labels_is_its_double_sum(rows, data):
    _, s, w = rows
    label = st.sampled_from([-1e300, 0.5, 1.0, 2.0, 7.0])
    y = np.array(data.draw(st.lists(label, min_size=len(s), max_size=len(s))))
    y[:2] = [0.25, 3.0]
    wanted = two_class_ranking_risk(np.repeat(y, w), np.repeat(s, w))
    assert ranking_risk(y, s, sample_weight=w) == pytest.approx(wanted, abs=1e-14)


@given(repeated_rows(max_rows=12, max_units=30))
def test_the_ranked_list_holds_the_counts_of_every_distinct_score(rows):
    y, s, w = rows
    ranked = RankedList.of(y, s, w)
    distinct = sorted(set(s[w > 0].tolist()), reverse=True)
    assert ranked.scores.tolist() == distinct
    for label, sums in ((1, ranked.found), (0, ranked.passed)):
        assert sums.tolist() == [0, *(w[(y == label) & (s >= t)].sum() for t in distinct)]
    classes = SortedClasses.of(y == 1, s, w.astype(float))
    assert classes.share_in_order() == pytest.approx(auc(np.repeat(y, w), np.repeat(s, w)))


@pytest.mark.parametrize("close", [0, 2])  # 0: look every positive up
@pytest.mark.parametrize("block", [1, 3, 1 << 14])
@given(repeated_rows(max_rows=12, max_units=30), st.booleans())
def test_the_joined_list_has_one_tie_for_the_negatives_between_two_positives(
    block, close, rows, weighted
):
    y, s, w = rows
    w = w if weighted else np.ones_like(w)
    full = RankedList.of(y, s, w)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_classes, "_BLOCK", block)
        patch.setattr(sorted_classes, "_CLOSE", close)
        joined = RankedList.joined(
            SortedClasses.of(y == 1, s, w.astype(float) if weighted else None)
        )
    alone = full.positive == 0
    ends = np.flatnonzero(~(alone & np.append(alone[1:], False)))
    assert len(joined.scores) == len(ends)
    assert joined.edges == (full.scores[full.last_positive], full.scores[full.first_negative])
    assert joined.found[1:].tolist() == full.found[ends + 1].tolist()
    assert joined.passed[1:].tolist() == full.passed[ends + 1].tolist()
    assert joined.positive.tolist() == np.diff(joined.found).tolist()
    assert joined.negative.tolist() == np.diff(joined.passed).tolist()


@pytest.mark.more  # compiles a kernel
@pytest.mark.parametrize("join", [False, True])
@given(repeated_rows(max_rows=12, max_units=30))
def test_the_compiled_merge_makes_the_same_list(join, rows):
    y, s, _ = rows
    classes = SortedClasses.of(y == 1, s)
    full, found = RankedList.from_sorted(classes), RankedList._merged(classes, join=join)
    alone = full.positive == 0
    ends = np.flatnonzero(~(join & alone & np.append(alone[1:], False)))
    assert found.scores.tolist() == ([] if join else full.scores.tolist())
    assert found.found.tolist() == [0.0, *full.found[ends + 1]]
    assert found.passed.tolist() == [0.0, *full.passed[ends + 1]]
    assert found.positive.tolist() == np.diff(found.found).tolist()
    assert found.negative.tolist() == np.diff(found.passed).tolist()


@pytest.mark.more  # compiles a kernel
@pytest.mark.parametrize("share", [0.02, 0.5, 0.98])
@pytest.mark.parametrize("digits", [1, 9])
def test_a_summary_is_the_same_where_a_compiled_loop_merges(monkeypatch, share, digits):
    rng = np.random.default_rng(0)
    y = rng.random(3000) < share
    s = np.round(rng.normal(size=3000) + y, digits)
    wanted = summary(y, s)
    monkeypatch.setattr(SortedClasses, "is_long", True)
    assert summary(y, s).as_dict() == pytest.approx(wanted.as_dict(), rel=1e-13)


@pytest.mark.parametrize("unit", [1.0, 1 / 7])
@given(repeated_rows(max_rows=12, max_units=30))
def test_a_summary_is_the_same_block_by_block(unit, rows):
    y, s, w = rows
    weight = unit * w + (unit < 1) * (w > 0)
    given_ = {"top": [1, 0.3], "sample_weight": weight}
    wanted = summary(y, s, **given_).as_dict()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_classes, "_BLOCK", 2)
        assert summary(y, s, **given_).as_dict() == pytest.approx(wanted, rel=1e-12, abs=1e-14)


@given(repeated_rows(max_rows=12, max_units=30))
def test_sums_from_the_bottom_are_those_of_the_weights(rows):
    y, s, w = rows
    for weight in (w.astype(float), w / 7):
        ranked = RankedList.of(y, s, weight)
        for k in range(len(ranked.scores)):
            assert ranked.heights[k] == pytest.approx(ranked.positive[k:].sum(), rel=1e-14)
            below = ranked.negative[k + 1 :].sum()
            assert ranked.negatives_below[k] == pytest.approx(below, rel=1e-14)
        assert ranked.last_positive == np.flatnonzero(ranked.positive)[-1]


def read_order(name):
    metric = METRICS[name]
    settings = [metric.settings]
    if name == "margin_error":
        settings = [{"theta": 0.0}]
    if metric.takes_k:
        settings = [{"k": k} for k in (1, 2, 0.3, 0.5, 1.0)]
    if name == "pnorm_risk":
        settings = [{"p": p, "normalize": norm} for p in (1.0, 4.0, 1e6, np.inf) for norm in (0, 1)]
    if name == "positives_at_top":
        settings = [{"negatives": m} for m in (1, 2, 5)]
    return [each for each in settings if metric.reads_order_only(each)]


@pytest.mark.parametrize("name", [name for name in METRICS if read_order(name)])
@given(repeated_rows(max_rows=12, max_units=30), st.sampled_from([1.0, 1 / 7]))
def test_a_metric_of_the_order_alone_is_the_same_for_the_joined_list(name, rows, unit):
    y, s, w = rows
    weight = unit * w + (unit < 1) * (w > 0)
    full = RankedList.of(y, s, weight)
    joined = RankedList.joined(SortedClasses.of(y == 1, s, weight), full.whole)
    for settings in read_order(name):
        wanted = METRICS[name].of(full, **settings)
        assert METRICS[name].of(joined, **settings) == pytest.approx(wanted, rel=1e-12, abs=1e-14)


def test_a_metric_that_reads_scores_is_not_said_to_read_the_order_alone():
    assert METRICS["margin_error"].reads_order_only({"theta": 0.0})
    assert not METRICS["margin_error"].reads_order_only({"theta": 0.5})


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", DEFINITIONS)
@given(rows=repeated_rows(), random=st.randoms(use_true_random=False))
def test_order_of_the_rows_changes_nothing(name, rows, random):
    y, s, w = rows
    order = random.sample(range(len(y)), len(y))
    metric, given_ = METRICS[name].function, METRICS[name].settings
    weight = w / 7
    if weight.sum() <= 1:
        weight = weight + (w > 0)
    after = metric(y[order], s[order], sample_weight=weight[order], **given_)
    assert after == pytest.approx(metric(y, s, sample_weight=weight, **given_), rel=1e-12)
