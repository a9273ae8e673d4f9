"""A list within limits: against all subsets of few rows, and what is said where limits clash."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.metrics import precision_at
from toprank.select import cut, list_search
from toprank.select import greedy as greedy_module
from toprank.select import limits as limits_module
from toprank.select.explore import draw_below
from toprank.select.limits import CutRows, Limits


def keeps(rows, k, entity, per_entity, group, most, least, cost, budget, include, exclude):
    """Whether a set of rows keeps all limits, each checked by counting."""
    chosen = set(rows)
    if len(rows) > k or not include <= chosen or chosen & exclude:
        return False
    if any(sum(entity[i] == e for i in rows) > per_entity for e in set(entity)):
        return False
    of_group = [sum(group[i] == g for i in rows) for g in range(len(most))]
    if any(c > m or c < s for c, m, s in zip(of_group, most, least, strict=True)):
        return False
    return sum(cost[i] for i in rows) <= budget + 1e-9


def best_of_all(chance, value, *limits):
    n = len(chance)
    lists = (rows for size in range(n + 1) for rows in itertools.combinations(range(n), size))
    worth = [sum(chance[i] * value[i] for i in rows) for rows in lists if keeps(rows, *limits)]
    return max(worth, default=None)


@st.composite
def problems(draw):
    n = draw(st.integers(2, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    groups = draw(st.integers(1, 3))
    k = draw(st.integers(1, n))
    return {
        "chance": rng.random(n).round(2),
        "value": rng.integers(0, 5, n).astype(float),
        "entity": rng.integers(0, draw(st.integers(1, n)), n),
        "per_entity": draw(st.integers(1, 3)),
        "group": np.concatenate((np.arange(min(groups, n)), rng.integers(0, groups, n)))[:n],
        "most": rng.integers(1, n + 1, min(groups, n)),
        "least": rng.integers(0, 3, min(groups, n)),
        "cost": rng.integers(0, 4, n).astype(float),
        "budget": float(draw(st.integers(0, 2 * n))),
        "include": set(rng.choice(n, draw(st.integers(0, 1)), replace=False).tolist()),
        "exclude": set(rng.choice(n, draw(st.integers(0, 1)), replace=False).tolist()),
        "k": k,
    }


def cut_problem(p, method, **others):
    return cut(
        p["chance"],
        p["k"],
        probability=p["chance"],
        value=p["value"],
        entities=p["entity"],
        per_entity=p["per_entity"],
        groups=p["group"],
        at_most=dict(enumerate(p["most"].tolist())),
        at_least=dict(enumerate(p["least"].tolist())),
        cost=p["cost"],
        budget=p["budget"],
        include=np.array(sorted(p["include"]), dtype=int),
        exclude=np.array(sorted(p["exclude"]), dtype=int),
        method=method,
        **others,
    )


ORDER = (
    *("k", "entity", "per_entity", "group", "most", "least"),
    *("cost", "budget", "include", "exclude"),
)


@given(problems())
def test_every_list_keeps_its_limits_and_the_exact_one_is_the_best_of_all_subsets(p):
    limits = [p[name] for name in ORDER]
    best = best_of_all(p["chance"], p["value"], *limits)
    if best is None:
        for method in ("greedy", "exact"):
            with pytest.raises(ValueError, match=r"clash|cannot be"):
                cut_problem(p, method)
        return
    exact, greedy, auto = (cut_problem(p, method) for method in ("exact", "greedy", "auto"))
    for found in (exact, greedy, auto):
        assert keeps(found.rows.tolist(), *limits)
        assert found.worth == pytest.approx(np.sum((p["chance"] * p["value"])[found.rows]))
        assert found.bound >= best - 1e-6
    assert exact.worth == pytest.approx(best, abs=1e-6)
    assert auto.worth == pytest.approx(best, abs=1e-6)


@given(problems())
def test_greedy_is_best_without_a_budget_and_with_limits_of_one_kind(p):
    p |= {"budget": 1e9, "per_entity": 99}
    best = best_of_all(p["chance"], p["value"], *[p[name] for name in ORDER])
    if best is not None:
        found = cut_problem(p, "greedy")
        assert found.worth == pytest.approx(best, abs=1e-9)
        assert found.bound == pytest.approx(best, abs=1e-6)


def test_the_price_of_a_limit_is_what_the_list_gains_without_it():
    rng = np.random.default_rng(1)
    chance, card = rng.beta(1, 5, 500), rng.integers(0, 80, 500)
    found = cut(chance, 40, probability=chance, entities=card, groups=card % 2, at_most={0: 5})
    by_limit = {price.limit: price for price in found.prices}
    free = cut(chance, 40, probability=chance, groups=card % 2, at_most={0: 5})
    price = by_limit["at most 1 row per entity"]
    assert price.positives == pytest.approx(free.positives - found.positives)
    assert price.rows == len(set(free.rows) - set(found.rows)) > 0
    free = cut(chance, 40, probability=chance, entities=card)
    lost = by_limit["at most 5 rows of '0'"].positives
    assert lost == pytest.approx(free.positives - found.positives)
    text = str(found)
    assert "positives lost" in text and "by the probabilities given" in text
    assert "<table>" in found._repr_html_() and "value lost" in found._repr_html_()


def test_scores_alone_cut_the_list_and_calibration_prices_it():
    rng = np.random.default_rng(2)
    scores = rng.normal(size=300)
    labels = rng.random(1000) < 1 / (1 + np.exp(2 - (old := rng.normal(size=1000))))
    found = cut(scores, 10, exclude=np.argsort(-scores)[:2])
    assert found.rows.tolist() == np.argsort(-scores)[2:12].tolist()
    assert found.positives is None and "scores alone" in found.note
    priced = cut(scores, 10, calibration=(labels, old), exclude=np.argsort(-scores)[:2])
    assert priced.chances == "scores calibrated on 1000 labelled rows"
    assert sorted(priced.rows) == sorted(found.rows) and priced.prices[0].positives > 0


def test_rows_without_an_entity_are_entities_of_their_own():
    scores = np.arange(6.0)
    entities = np.array(["a", "a", None, "", None, "a"], dtype=object)
    assert cut(scores, 6, entities=entities).rows.tolist() == [5, 4, 3, 2]
    assert cut(scores, 6, entities=entities, per_entity=2).rows.tolist() == [5, 4, 3, 2, 1]
    assert cut(scores, 6, entities=[1.0, np.nan, np.nan, 1.0, 2.0, 2.0]).rows.tolist() == [
        *(5, 3, 2, 1)
    ]


def test_shares_are_shares_of_the_list():
    region = np.array(["n"] * 10 + ["s"] * 90)
    found = cut(np.arange(100.0), 20, groups=region, at_least={"n": 0.25}, at_most=0.75)
    assert np.count_nonzero(region[found.rows] == "n") == 5
    assert np.count_nonzero(region[found.rows] == "s") == 15


SCORES, REGION = np.arange(10.0), np.array(["n"] * 3 + ["s"] * 7)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (
            {"k": 4, "at_least": {"n": 2, "s": 3}},
            "at least 2 rows of 'n', at least 3 rows of 's' and at most 4 rows cannot all hold",
        ),
        ({"at_least": {"n": 4}}, "At least 4 rows of 'n' cannot be: there are only 3"),
        (
            {"at_least": {"n": 3}, "at_most": {"n": 2}},
            "at least 3 rows of 'n' and at most 2 rows of 'n' cannot all hold",
        ),
        (
            {"at_least": {"n": 2}, "exclude": [0, 1]},
            "at least 2 rows of 'n' and 2 of its 3 rows that must be out cannot all hold",
        ),
        ({"include": [1, 2], "exclude": [2]}, "row 2 must be in and row 2 must be out"),
        ({"include": [0, 1, 2, 3, 4, 5]}, "at most 5 rows and 6 rows that must be in"),
        (
            {"include": [0, 1], "entities": [7] * 10},
            "at most 1 row per entity and 2 rows that must be in",
        ),
        (
            {"include": [0, 1], "at_most": {"n": 1}},
            "at most 1 row of 'n' and 2 rows of 'n' that must be in",
        ),
        (
            {"at_least": {"n": 2}, "entities": [7] * 10},
            "at most 1 row per entity and at least 2 rows of 'n' cannot all hold",
        ),
        (
            {"at_least": 1, "entities": [7] * 10},
            "at most 1 row per entity, at least 1 row of 'n' and at least 1 row of 's' cannot",
        ),
        (
            {"at_least": {"n": 2}, "cost": 3.0, "budget": 5, "probability": SCORES / 10},
            "a budget of 5 and at least 2 rows of 'n' cannot all hold",
        ),
        (
            {"include": [0, 1], "cost": 3.0, "budget": 5},
            "a budget of 5 and 2 rows that must be in cannot all hold",
        ),
    ],
)
@pytest.mark.parametrize("method", ["greedy", "exact"])
def test_limits_that_clash_are_named(limits, said, method):
    given = {"k": 5, "groups": REGION, "probability": SCORES / 10, "method": method, **limits}
    with pytest.raises(ValueError) as refused:
        cut(SCORES, **given)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "Give k, how long the list may be, or a budget"),
        ({"k": 2.5}, "a share is a number in"),
        ({"k": 2, "at_most": 3}, "needs groups="),
        ({"k": 2, "groups": REGION, "at_most": {"w": 3}}, "names the group 'w', which no row is"),
        ({"k": 2, "cost": 1.0}, "cost without budget"),
        ({"budget": 3}, "budget needs cost"),
        ({"budget": 3, "cost": 1.0}, "scores do not say what a row is worth"),
        ({"k": 2, "value": 3.0}, "value needs to know how probable positives are"),
        ({"k": 2, "method": "exact"}, "give probability or calibration"),
        ({"k": 2, "probability": SCORES}, "outside of 0 to 1"),
        ({"k": 2, "explore": 1.0}, "expected a share of the list"),
        ({"k": 2, "include": [10]}, "names rows outside of 0 to 9"),
        ({"k": 2, "entities": [1, 2]}, "expected one entity per row"),
        ({"k": "ten"}, "k='ten': expected a count or a share"),
        ({"k": 0}, "k=0: expected at least 1"),
        ({"k": 2, "per_entity": 1.5}, "per_entity=1.5: expected a whole number"),
        ({"k": 2, "per_entity": 0}, "per_entity=0: expected at least 1"),
        ({"k": 2, "method": "guess"}, "method='guess': expected one of"),
        ({"budget": -1, "cost": 1.0, "probability": SCORES / 10}, "expected an amount from 0"),
        ({"budget": 9, "cost": [1.0, 2.0], "probability": SCORES / 10}, "or one number per row"),
        ({"budget": 9, "cost": -1.0, "probability": SCORES / 10}, "cost has negative entries"),
        (
            {"budget": 9, "cost": 1.0, "probability": SCORES / 10, "groups": REGION}
            | {"at_most": 0.5},
            "at_most=0.5 is a share of k rows: give k",
        ),
        ({"k": 2, "groups": REGION, "at_most": -2}, "at_most=-2: expected a number of rows"),
        ({"k": 2, "groups": ["n", "s"]}, "groups has 2 entries, expected one per row: 10"),
        ({"k": 2, "include": [True, False]}, "include has shape (2,), expected one entry per row"),
        ({"k": 2, "exclude": ["first"]}, "exclude: expected places of rows"),
        ({"k": 2, "probability": [0.5]}, "probability has shape (1,), expected one per row"),
        (
            {"k": 2, "probability": SCORES / 10, "calibration": ([0, 1], [0.0, 1.0])},
            "Give probability or calibration, not both",
        ),
        ({"k": 2, "calibration": 3}, "calibration: expected a pair (labels, scores)"),
        (
            {"k": 2, "calibration": ([0, 1] * 3, np.arange(6.0))},
            "calibration has 3 positive rows of 6; expected at least 5 of each class",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_way_out(given, said):
    with pytest.raises(ValueError) as refused:
        cut(SCORES, **given)
    assert said in str(refused.value)


@pytest.mark.parametrize("method", ["greedy", "exact"])
def test_floors_that_the_first_rows_cannot_meet_are_met_by_others(method):
    # card A is in both regions: its better row in 'n' would leave 's' without one
    found = cut(
        [9.0, 8.0, 7.0, 1.0],
        2,
        probability=[0.9, 0.8, 0.7, 0.1],
        entities=["A", "A", "B", "B"],
        groups=["n", "s", "n", "n"],
        at_least=1,
        method=method,
    )
    assert found.rows.tolist() == [1, 2] and found.positives == pytest.approx(1.5)


def test_limits_of_many_groups_are_named_together():
    scores = np.arange(60.0)
    chance, region, card = scores / 60, np.arange(60) % 15, np.arange(60) // 2
    found = cut(scores, 30, probability=chance, groups=region, at_most=2, at_least=1)
    assert [price.limit for price in found.prices] == [
        *("at most 2 rows per group", "at least 1 row per group")
    ]
    some = {group: 2 for group in range(14)}
    found = cut(scores, 30, probability=chance, groups=region, at_most=some, method="greedy")
    assert [price.limit for price in found.prices] == ["the caps of 14 groups"]
    # sixty groups of one row each, two rows to a card
    with pytest.raises(ValueError, match="1 row per entity and the floors of 60 groups cannot"):
        cut(scores, 60, groups=np.arange(60), at_least=1, entities=card)


def test_where_the_exact_search_runs_out_of_time_the_list_is_that_of_greedy(monkeypatch):
    given = {"probability": SCORES / 10, "cost": SCORES + 1, "budget": 12.0}
    greedy = cut(SCORES, method="greedy", **given)
    monkeypatch.setattr(list_search, "best_list", lambda rows, limits: None)
    for method in ("exact", "auto"):
        found = cut(SCORES, method=method, **given)
        assert found.method == "greedy" and found.rows.tolist() == greedy.rows.tolist()
        assert found.bound == greedy.bound >= found.worth


def test_without_rows_to_choose_from_the_list_is_refused_or_empty():
    with pytest.raises(ValueError, match="Found 0 rows"):
        cut([], 3)
    found = cut(SCORES, 3, exclude=np.ones(10, dtype=bool))
    assert len(found) == 0 and "3 rows fewer than k fit the limits" in found.note


def test_a_list_that_nothing_limits_has_no_prices_to_show():
    found = cut(SCORES, 3)
    assert found.as_dict()["rows"].tolist() == [9, 8, 7]
    page = found._repr_html_()
    assert "3 of 10 rows" in page and "scores alone" in page and "<table" not in page


def test_truth_values_are_entities_and_a_missing_pandas_changes_nothing(monkeypatch):
    flag = np.arange(10) % 2 == 0
    assert cut(SCORES, 10, entities=flag).rows.tolist() == [9, 8]
    given = {"entities": ["a", None, "b", "a", "", "b", "", None, "c", "c"], "groups": REGION}
    with_pandas = cut(SCORES, 6, at_least={"n": 2}, **given)
    monkeypatch.setattr(limits_module, "find_spec", lambda name: None)
    without = cut(SCORES, 6, at_least={"n": 2}, **given)
    assert without.rows.tolist() == with_pandas.rows.tolist() == [9, 7, 6, 4, 2, 1]


def test_what_could_not_be_drawn_at_random_is_said():
    nowhere = cut(SCORES, 2, explore=0.5, exclude=range(9), entities=SCORES, per_entity=3)
    assert nowhere.rows.tolist() == [9] and "1 row fewer than asked for were" in nowhere.note
    short = cut(SCORES, 4, exclude=range(7), explore=0.0, entities=SCORES)
    assert len(short) == 3 and "1 row fewer than k fit the limits" in short.note
    # nothing chosen, nothing to draw from
    assert len(cut(SCORES, 1, explore=0.5, exclude=range(10), entities=SCORES)) == 0
    scores = np.arange(20.0)
    given = {"cost": np.where(scores < 1, 100.0, 1.0), "budget": 8.0, "explore": 0.5}
    found = cut(scores, probability=scores / 20, **given)
    assert found.explored.tolist() == [False] * 4 + [True] * 4 and found.cost == 8.0
    assert "1 row below the cut costs too much to be drawn" in found.note
    assert found.propensity[4:] == pytest.approx(4 / 15)


def test_rows_far_down_are_tried_where_the_first_do_not_fit():
    scores = -np.arange(2500.0)
    card = np.maximum(0, np.arange(2500) - 2200)  # the first 2201 rows are of one card
    assert cut(scores, 3, entities=card).rows.tolist() == [0, 2201, 2202]


@pytest.mark.more
def test_a_draw_below_the_cut_has_the_propensity_that_is_written_down():
    rng = np.random.default_rng(3)
    n = 60
    scores, card = rng.normal(size=n), rng.integers(0, 25, n)
    region, cost = rng.integers(0, 3, n), rng.uniform(1, 2, n)
    limits = {"entities": card, "groups": region, "at_most": 6, "cost": cost, "budget": 30.0}
    found = cut(scores, 12, probability=np.full(n, 0.2), explore=0.4, random_state=7, **limits)
    assert len(set(card[found.rows])) == len(found.rows) <= 12
    assert np.bincount(region[found.rows]).max() <= 6 and found.cost <= 30
    assert found.explored.sum() > 0 and np.all(found.propensity[~found.explored] == 1)
    listed = found.rows[~found.explored]
    rows = CutRows(scores, cost=cost, entities=card, group=region, group_names=(0, 1, 2))
    inside = Limits(12, 1, np.full(3, 6))
    draws = [
        draw_below(rows, inside, listed, 5, 12.0, np.random.default_rng(seed))
        for seed in range(1500)
    ]
    reached = set(np.concatenate([drawn.rows for drawn in draws]))
    assert not set(listed) & reached
    # the sum over the rows below the cut that can be drawn, from the draws
    amount = rng.uniform(1, 3, n)
    sums = [np.sum(amount[drawn.rows] / drawn.propensity) for drawn in draws]
    truth = np.sum(amount[list(reached)])
    assert abs(np.mean(sums) - truth) < 4 * np.std(sums) / np.sqrt(len(sums))


def test_precision_from_the_drawn_rows_is_not_off_where_that_of_the_list_is():
    rng = np.random.default_rng(4)
    naive, weighted = [], []
    for seed in range(60):
        scores = rng.normal(size=2000)
        y = rng.random(2000) < 1 / (1 + np.exp(3 - scores))
        found = cut(scores, 300, explore=0.5, random_state=seed)
        listed = found.rows
        truth = precision_at(y, scores, 0.5)
        if len(set(y[listed])) < 2:
            continue
        naive.append(precision_at(y[listed], scores[listed], 0.5) - truth)
        corrected = precision_at(y[listed], scores[listed], 0.5, label_propensity=found.propensity)
        weighted.append(corrected - truth)
    error = np.std(weighted) / np.sqrt(len(weighted))
    assert abs(np.mean(weighted)) < 4 * error
    assert np.mean(naive) > 5 * np.std(naive) / np.sqrt(len(naive))


@pytest.mark.more
def test_the_compiled_loop_takes_the_same_rows(monkeypatch):
    rng = np.random.default_rng(5)
    n = 3000
    chance, card, region = rng.random(n), rng.integers(0, 700, n), rng.integers(0, 9, n)
    given = {"entities": card, "groups": region, "at_most": 90, "at_least": {3: 60}}
    given |= {"cost": rng.uniform(1, 4, n), "budget": 900.0, "method": "greedy"}
    plain = cut(chance, 500, probability=chance, **given)
    monkeypatch.setattr(greedy_module, "_COMPILED_FROM", 1)
    compiled = cut(chance, 500, probability=chance, **given)
    assert compiled.rows.tolist() == plain.rows.tolist() and compiled.bound == plain.bound


def test_only_as_many_rows_are_sorted_as_are_needed():
    rng = np.random.default_rng(6)
    key = rng.integers(0, 1000, 50_000).astype(float)
    prefix = greedy_module.SortedPrefix(key, key)
    assert len(prefix.first(100)) < 300
    whole = np.argsort(-key, kind="stable")
    for count in (10, 500, 40_000, 50_000):
        assert prefix.first(count)[:count].tolist() == whole[:count].tolist()
    assert len(CutRows(key).take(np.arange(5))) == 5


@pytest.mark.slow
def test_a_million_rows_take_at_most_five_sorts_and_eight_with_a_draw():
    rng = np.random.default_rng(8)
    n = 1_000_000
    chance, card = rng.beta(0.3, 9, n), rng.integers(0, 300_000, n)
    region, cost = rng.choice(np.array(["n", "s", "w", "e"]), n), rng.gamma(2, size=n)
    in_groups = {"groups": region, "at_most": 4000, "at_least": {"n": 3000}}
    cases = [
        {"k": 1000, "entities": card},
        {"k": 10_000, "entities": card, **in_groups},
        {"k": 1000, "entities": card, "cost": cost, "budget": 900.0},
        {"k": 1000, "entities": card, "explore": 0.05},
    ]

    def seconds(call):
        times = []
        for _ in range(3):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        return min(times)

    for case in cases:
        asked = {"probability": chance, "method": "greedy", **case}
        cut(chance, **asked)  # compiles the loop, where it is compiled
        one_sort = seconds(lambda: np.sort(chance))
        taken = seconds(lambda asked=asked: cut(chance, **asked))
        # rows to draw from are put into an order that their place in the table has no part in
        most = 8 if "explore" in case else 5
        assert taken <= most * one_sort, (list(case), taken / one_sort)
