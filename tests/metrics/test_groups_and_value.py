"""Lists within groups, the value of a list, and the table of everything."""

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.metrics import METRICS, auc, best_k, f_skew, precision_at, register, summary, value_at
from toprank.metrics.lists import Lists

GROUPED = [name for name, metric in METRICS.items() if metric.takes_k] + ["top_is_positive"]


@st.composite
def grouped_rows(draw):
    n = draw(st.integers(2, 14))
    column = lambda values: np.array(draw(st.lists(values, min_size=n, max_size=n)))  # noqa: E731
    y, s = column(st.integers(0, 1)), column(st.integers(1, 4)).astype(float)
    y[:2] = [0, 1]
    weight = column(st.integers(0, 3))
    weight[:2] = np.maximum(weight[:2], 1)
    return y, s, weight, column(st.sampled_from(["a", "b", "c", "d"]))


def one_list(metric, y, s, w, **parameters):
    """The metric of one group, where a list of positives only has nothing to find out."""
    rows = np.repeat(y, w), np.repeat(s, w)
    if isinstance(parameters.get("k"), int):
        parameters["k"] = min(parameters["k"], len(rows[0]))
    if len(set(rows[0])) == 2:
        return metric(*rows, **parameters)
    assert set(rows[0]) == {1}
    return 1.0


@pytest.mark.parametrize("name", [name for name in GROUPED if name != "value_at"])
@given(rows=grouped_rows(), k=st.integers(1, 3) | st.sampled_from([0.3, 0.5, 1.0]))
def test_groups_give_the_mean_over_the_groups_that_have_a_positive(name, rows, k):
    y, s, w, groups = rows
    metric = METRICS[name].function
    parameters = {"k": k} if METRICS[name].takes_k else {}
    lists = [groups == g for g in np.unique(groups) if np.sum(w[(groups == g) & (y == 1)])]
    longest = max(w[groups == g].sum() for g in np.unique(groups))
    if isinstance(k, int) and k > longest:
        return
    if name == "enrichment_factor" and isinstance(k, float):
        return  # its fractions are checked below
    if name == "recall_at":  # the recall of a list of positives is the share of it taken
        full = [m for m in lists if np.all(y[m & (w > 0)] == 1)]
        lists = [m for m in lists if not any(m is f for f in full)]
        if full or not lists:
            return
    wanted = np.mean([one_list(metric, y[m], s[m], w[m], **parameters) for m in lists])
    got = metric(y, s, groups=groups, sample_weight=w, **parameters)
    assert got == pytest.approx(wanted, rel=1e-12)


def test_enrichment_of_groups_divides_by_the_fraction_asked_for():
    enrichment_factor = METRICS["enrichment_factor"].function
    y, s = [1, 0, 0, 1, 0, 0, 0, 0], [3.0, 2, 1, 5, 4, 3, 2, 1]
    groups = [1, 1, 1, 2, 2, 2, 2, 2]
    # 0.4 of 3 rows is 1 whole row, 0.4 of 5 rows is 2: each finds its only positive
    assert enrichment_factor(y, s, 0.4, groups=groups) == pytest.approx(1 / 0.4)


@pytest.mark.parametrize("name", GROUPED)
def test_bad_groups_are_refused(name):
    y, s = [0, 1, 0, 1], [1.0, 2, 3, 4]
    metric, parameters = METRICS[name].function, METRICS[name].settings
    with pytest.raises(ValueError, match="groups has 3 entries, expected one per row: 4"):
        metric(y, s, groups=[1, 1, 2], **parameters)
    with pytest.raises(ValueError, match="groups contains NaN"):
        metric(y, s, groups=[1, 1, 2, np.nan], **parameters)


def test_many_groups_are_ranked_together():
    rng = np.random.default_rng(0)
    n = 200_000
    y, s, groups = rng.integers(0, 2, n), rng.normal(size=n), rng.integers(0, n // 10, n)
    assert METRICS["precision_at"].function(y, s, 3, groups=groups) == pytest.approx(0.5, abs=0.01)


# ---- value -------------------------------------------------------------------------------------


@given(grouped_rows(), st.data())
def test_value_with_amounts_of_each_row_is_the_mean_over_orders_of_the_ties(rows, data):
    y, s, _, _ = rows
    amounts = st.lists(st.integers(-3, 9), min_size=len(y), max_size=len(y))
    benefit, cost = np.array(data.draw(amounts)), np.array(data.draw(amounts))
    k = data.draw(st.integers(1, len(y)))
    row_value = np.where(y == 1, benefit, 0) - cost
    kept = [np.clip((k - np.sum(s > a)) / np.sum(s == a), 0, 1) for a in s]
    wanted = np.dot(kept, row_value)
    assert value_at(y, s, k, benefit=benefit, cost=cost) == pytest.approx(wanted, abs=1e-12)


@given(grouped_rows(), st.data())
def test_best_k_is_the_smallest_count_of_the_largest_value(rows, data):
    y, s, w, _ = rows
    amounts = st.lists(st.integers(0, 9), min_size=len(y), max_size=len(y))
    given_ = {"benefit": data.draw(amounts), "cost": data.draw(amounts), "sample_weight": w}
    values = [0.0] + [value_at(y, s, k, **given_) for k in range(1, int(w.sum()) + 1)]
    best = best_k(y, s, **given_)
    assert isinstance(best, int)
    assert values[best] == pytest.approx(max(values), abs=1e-9)
    assert all(value < max(values) - 1e-9 for value in values[:best])


@given(grouped_rows(), st.data())
def test_best_k_of_groups_is_the_smallest_count_of_the_largest_mean_value(rows, data):
    y, s, w, groups = rows
    amounts = st.lists(st.integers(0, 9), min_size=len(y), max_size=len(y))
    given_ = {"benefit": data.draw(amounts), "cost": data.draw(amounts), "sample_weight": w}
    longest = int(max(w[groups == g].sum() for g in np.unique(groups)))
    values = [value_at(y, s, k, groups=groups, **given_) for k in range(1, longest + 1)]
    values = [0.0, *values]
    best = best_k(y, s, groups=groups, **given_)
    assert isinstance(best, int)
    assert values[best] == pytest.approx(max(values), abs=1e-9)
    assert all(value < max(values) - 1e-9 for value in values[:best])


def test_best_k_of_one_group_is_that_of_the_list():
    rng = np.random.default_rng(0)
    y, s, w = rng.integers(0, 2, 200), rng.integers(0, 50, 200), rng.random(200)
    given_ = {"cost": rng.random(200), "sample_weight": w}
    wanted = best_k(y, s, **given_)
    assert best_k(y, s, groups=np.zeros(200), **given_) == wanted
    order = np.argsort(-s, kind="stable")
    by_depth = np.cumsum((w * (y - given_["cost"]))[order])
    last = np.append(np.diff(s[order]) != 0, True)
    depths, values = np.cumsum(w[order])[last], by_depth[last]
    assert wanted == pytest.approx(depths[np.argmax(values)])


def test_value_of_groups_counts_those_without_positives():
    y, s, groups = [1, 0, 0, 0], [4.0, 3, 2, 1], ["a", "a", "b", "b"]
    assert value_at(y, s, 1, benefit=10, cost=4, groups=groups) == ((10 - 4) - 4) / 2


@pytest.mark.parametrize("name", ["benefit", "cost"])
def test_amounts_must_be_one_finite_number_a_row(name):
    with pytest.raises(ValueError, match=rf"{name} has shape \(3,\), expected one number"):
        value_at([0, 1], [1.0, 2.0], 1, **{name: [1, 2, 3]})
    with pytest.raises(ValueError, match=f"{name} contains NaN"):
        best_k([0, 1], [1.0, 2.0], **{name: np.nan})


# ---- summary -----------------------------------------------------------------------------------


@given(grouped_rows(), st.sampled_from([0.0, 0.5, -1.0]), st.booleans())
def test_summary_holds_what_each_function_returns(rows, theta, weighted):
    y, s, w, _ = rows
    w = w if weighted else None
    result = summary(y, s, top=[1, 0.5], theta=theta, sample_weight=w)
    for entry in result:
        function = f_skew if entry.name == "f_skew" else METRICS[entry.name].function
        wanted = function(y, s, sample_weight=w, **entry.settings)
        assert entry.value == pytest.approx(wanted, rel=1e-12, abs=1e-14), entry.label
        assert result[entry.label] == result.as_dict()[entry.label] == entry.value
    left_out = set(METRICS) - {entry.name for entry in result}
    assert left_out == {"push_risk", "value_at"}


@given(grouped_rows())
def test_summary_of_groups_holds_what_each_function_returns(rows):
    y, s, w, groups = rows
    result = summary(y, s, top=[1, 0.5], groups=groups, sample_weight=w)
    for entry in result:
        function = f_skew if entry.name == "f_skew" else METRICS[entry.name].function
        grouped = {"groups": groups} if entry.name in GROUPED else {}
        wanted = function(y, s, sample_weight=w, **grouped, **entry.settings)
        assert entry.value == pytest.approx(wanted, rel=1e-12, abs=1e-14), entry.label


def test_summary_hands_the_list_of_all_ties_to_a_metric_from_outside():
    seen = []

    def distinct_scores(y_true, y_score, sample_weight=None):
        return float(len(np.unique(y_score)))

    def of_list(ranked):
        seen.append(len(ranked.scores))
        return float(len(ranked.scores))

    register(distinct_scores, higher_is_better=True, of_list=of_list)
    try:
        assert summary([0, 0, 0, 1, 0, 0], [6.0, 5, 4, 3, 2, 1], top=1)["distinct_scores"] == 6
    finally:
        del METRICS["distinct_scores"]
    assert seen == [6]


@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 1.0, 0.5]])
def test_summary_takes_scores_as_large_as_floats_are(weight):
    y, s = [1, 0, 0, 1], [-1e308, 1e308, -1e308, 1e308]
    result = summary(y, s, top=1, sample_weight=weight)
    assert result["f_skew"] == f_skew(y, s, sample_weight=weight) == 0.0
    assert result["auc"] == auc(y, s, sample_weight=weight)


def test_summary_says_how_many_groups_have_a_positive():
    y, s, groups = [0, 1, 0, 1, 0], [1.0, 2, 3, 4, 5], [1, 1, 2, 2, 3]
    result = summary(y, s, top=1, groups=groups)
    assert result.groups == 2
    first = str(result).splitlines()[0]
    assert first == "2 positives, 3 negatives; first rows: mean over 2 groups with a positive"
    with pytest.raises(TypeError, match="pnorm_risk is not a mean over lists"):
        METRICS["pnorm_risk"].each([0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1], p=2.0)
    with pytest.raises(ValueError, match="groups has 3 entries"):
        summary(y, s, groups=[1, 2, 3])


def test_the_functions_that_take_groups_are_those_that_summary_groups():
    takes = {
        name
        for name, metric in METRICS.items()
        if "groups" in inspect.signature(metric.function).parameters
    }
    assert takes == set(GROUPED)


def test_summary_prints_a_line_for_each_metric():
    y, s = [0, 1, 0, 1, 1], [1.0, 2, 3, 4, 5]
    result = summary(y, s, top=2)
    lines = str(result).splitlines()
    assert lines[0] == "3 positives, 2 negatives"
    assert len(lines) == len(result) + 1
    assert lines[1].split() == ["auc", f"{auc(y, s):.6g}"]
    assert any(line.startswith("precision_at(k=2) ") for line in lines)


@pytest.mark.parametrize("light", [1e-3, 1.0])
@pytest.mark.parametrize("heavy", [1e15, 2.0**54])
def test_a_light_list_after_a_heavy_one_keeps_its_digits(heavy, light):
    y = np.array([1, 0, 0, 1, 0, 1, 1, 0])
    s = np.array([4.0, 3.0, 2.0, 1.0, 4.0, 3.0, 2.0, 1.0])
    groups = np.repeat([0, 1], 4)
    weight = np.repeat([heavy, light], 4) * [1, 2, 3, 4, 1, 2, 3, 4]
    found = Lists.of(y, s, sample_weight=weight, groups=groups)
    assert found.above[:4].tolist() == [0, heavy, 3 * heavy, 6 * heavy]
    assert found.above[4:] == pytest.approx(np.array([0, 1, 3, 6]) * light, rel=1e-12)
    alone = [precision_at(y[part], s[part], 0.5, sample_weight=weight[part])
             for part in (groups == 0, groups == 1)]  # fmt: skip
    both = precision_at(y, s, 0.5, sample_weight=weight, groups=groups)
    assert both == pytest.approx(np.mean(alone))
