"""Nothing depends on the order of the rows in the table.

Ties are averaged, counted half, or broken at random with the seed by what the rows are, never by
where they stand. Lists are the one exception, and say so: rows of equal score stay in the order
they came in.
"""

import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, is_classifier

import toprank
from toprank.inference import (
    compare,
    hidden_share,
    interval,
    lift_band,
    period_interval,
    permutation_risk,
    precision_recall_band,
    roc_band,
    top_groups,
    u_statistic,
    unlabelled_interval,
)
from toprank.metrics import METRICS
from toprank.select import cut, keep_rows, select
from toprank.tuning import capacity_threshold

SETTINGS = {
    "partial_auc": {"max_fpr": 0.1},
    "tpr_at_fpr": {"fpr": 0.1},
    "precision_at_recall": {"recall": 0.5},
    "recall_at_precision": {"precision": 0.3},
    "pnorm_risk": {"p": 4, "normalize": True},
    "precision_at": {"k": 15},
    "recall_at": {"k": 0.1},
    "lift_at": {"k": 15},
    "enrichment_factor": {"k": 0.1},
    "ndcg_at": {"k": 15},
    "margin_error": {"theta": 0.25},
    "value_at": {"k": 15},
}
WITHOUT_INTERVAL = ("ranking_margin",)
NOT_COMPARED = ("ranking_margin", "max_height", "positives_at_top")
ORDERS = ("positives first", "negatives first", "reversed", "shuffled")


def order_of(name, y):
    return {
        "positives first": np.argsort(~y, kind="stable"),
        "negatives first": np.argsort(y, kind="stable"),
        "reversed": np.arange(len(y))[::-1],
        "shuffled": np.random.default_rng(5).permutation(len(y)),
    }[name]


def rows(n=160):
    """Labels at random places, two scores of five levels, weights, groups."""
    rng = np.random.default_rng(12)
    y = rng.random(n) < 0.25
    a, b = (np.clip(np.round(rng.normal(size=n) + y), -2, 2) for _ in range(2))
    return y, a, b, rng.integers(1, 4, n).astype(float), rng.integers(0, 12, n)


def same(one, other):
    """Whether two results agree in every number, up to rounding."""
    for name, value in one.as_dict().items():
        if isinstance(value, (float, tuple)) and not isinstance(value, str):
            numbers = [v for v in np.atleast_1d(value) if not isinstance(v, str)]
            others = [v for v in np.atleast_1d(getattr(other, name)) if not isinstance(v, str)]
            assert others == pytest.approx(numbers, rel=1e-8, abs=1e-10, nan_ok=True), name


@pytest.mark.sampled(5)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", METRICS)
def test_no_metric_depends_on_the_order_of_the_rows(name, order):
    y, s, _, weight, _ = rows()
    settings, moved = SETTINGS.get(name, {}), order_of(order, y)
    function = METRICS[name].function
    for weights in (None, weight):
        one = function(y, s, sample_weight=weights, **settings)
        there = None if weights is None else weights[moved]
        other = function(y[moved], s[moved], sample_weight=there, **settings)
        assert other == pytest.approx(one, rel=1e-10)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("how", ["rows", "weights", "groups"])
@pytest.mark.parametrize("name", [name for name in METRICS if name not in WITHOUT_INTERVAL])
def test_no_interval_depends_on_the_order_of_the_rows(name, how):
    y, s, _, weight, groups = rows()
    given = {"rows": {}, "weights": {"sample_weight": weight}, "groups": {"groups": groups}}[how]
    settings = {**SETTINGS.get(name, {}), "n_resamples": 30}
    one = interval(name, y, s, **given, **settings)
    for order in ORDERS:
        moved = order_of(order, y)
        there = {key: column[moved] for key, column in given.items()}
        same(one, interval(name, y[moved], s[moved], **there, **settings))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("how", ["rows", "weights", "groups"])
@pytest.mark.parametrize("name", [name for name in METRICS if name not in NOT_COMPARED])
def test_no_comparison_depends_on_the_order_of_the_rows(name, how):
    y, a, b, weight, groups = rows()
    given = {"rows": {}, "weights": {"sample_weight": weight}, "groups": {"groups": groups}}[how]
    settings = {**SETTINGS.get(name, {}), "n_resamples": 50}
    one = compare(name, y, a, b, **given, **settings)
    for order in ORDERS:
        moved = order_of(order, y)
        there = {key: column[moved] for key, column in given.items()}
        same(one, compare(name, y[moved], a[moved], b[moved], **there, **settings))


def test_ties_are_not_broken_by_the_place_of_the_row_in_a_comparison():
    rng = np.random.default_rng(12)
    y = np.arange(200) < 40
    a, b = (np.clip(np.round(rng.normal(size=200) + y), -1, 3) for _ in range(2))
    there, back = (
        compare("partial_auc", y[way], a[way], b[way], max_fpr=0.1).p_value
        for way in (slice(None), slice(None, None, -1))
    )
    assert there == back


def test_functions_of_ones_own_and_amounts_per_row_keep_their_rows():
    y, s, _, _, _ = rows()
    benefit = np.random.default_rng(1).random(len(y))

    def gap(labels, scores):
        return scores[labels == 1].mean() - scores[labels == 0].mean()

    moved = order_of("shuffled", y)
    same(interval(gap, y, s), interval(gap, y[moved], s[moved]))
    settings = {"k": 15, "n_resamples": 50}
    one = interval("value_at", y, s, benefit=benefit, **settings)
    same(one, interval("value_at", y[moved], s[moved], benefit=benefit[moved], **settings))


def ends(found):
    """The numbers of an interval or a comparison."""
    centre = found.difference if hasattr(found, "difference") else found.estimate
    return [centre, found.low, found.high, getattr(found, "p_value", 0.0)]


def columns(n=160):
    """The columns of `rows`, a third score, lists, and real-valued labels."""
    y, a, b, weight, groups = rows(n)
    rng = np.random.default_rng(3)
    c = np.clip(np.round(rng.normal(size=n) + y), -2, 2)
    table = {"y": y, "a": a, "b": b, "c": c, "weight": weight, "groups": groups}
    return pd.DataFrame(
        table
        | {"list": rng.integers(0, 8, n), "entity": rng.integers(0, 60, n)}
        | {"real": np.round(rng.normal(size=n) + a, 1), "fine": rng.normal(size=n) + y}
    )


def sampling(t):
    return {"sample_weight": t.weight, "weights": "sampling"}


def groups_at_top(t):
    found = top_groups(t.y, t.a, t.groups % 3, 20, n_resamples=99)
    return [*found.p_values.values(), *(one.listed for one in found.groups)]


#: Each answers with numbers from the columns of a table.
ANSWERS = {
    "sampling weights": lambda t: ends(interval("average_precision", t.y, t.a, **sampling(t))),
    "sampling weights at a cut": lambda t: ends(
        interval("precision_at", t.y, t.a, k=15, **sampling(t))
    ),
    "sampling weights of groups": lambda t: ends(
        interval("auc", t.y, t.a, groups=t.groups, **sampling(t))
    ),
    "propensities": lambda t: ends(interval("auc", t.y, t.a, label_propensity=1 / t.weight)),
    "lists": lambda t: ends(interval("precision_at", t.y, t.a, lists=t.list, k=5)),
    "bootstrap": lambda t: ends(interval("auc", t.y, t.a, method="bootstrap", n_resamples=50)),
    "ranking risk": lambda t: ends(interval("ranking_risk", t.real, t.a)),
    "comparison over lists": lambda t: ends(
        compare("precision_at", t.y, t.a, t.b, lists=t.list, k=5)
    ),
    "comparison with weights": lambda t: ends(compare("auc", t.y, t.a, t.b, **sampling(t))),
    "three rankers": lambda t: [
        pair.p_value
        for pair in compare(
            "average_precision", t.y, {"a": t.a, "b": t.b, "c": t.c}, n_resamples=50
        ).pairs
    ],
    "periods": lambda t: ends(
        period_interval("precision_at", t.y, t.a, t.list, entities=t.entity, k=5)
    ),
    "hidden share": lambda t: ends(hidden_share(t.y, t.a)),
    "unlabelled rows": lambda t: ends(
        unlabelled_interval("precision_at", t.y, t.a, hidden=0.1, k=15, n_resamples=50)
    ),
    "u-statistic": lambda t: u_statistic(lambda z, x: (z - x) ** 2 / 2, t.real).interval(),
    "drawn tuples": lambda t: [permutation_risk(t.real, t.a, 3, most_tuples=500).value],
    "groups at the top": groups_at_top,
    "capacity": lambda t: [capacity_threshold(t.a, 5, t.list, y=t.y).high],
}


@pytest.mark.parametrize("order", ["negatives first", "shuffled"])
@pytest.mark.parametrize("what", ANSWERS)
def test_no_answer_depends_on_the_order_of_the_rows(what, order):
    table = columns()
    moved = table.iloc[order_of(order, table.y.to_numpy())].reset_index(drop=True)
    one, other = (np.asarray(ANSWERS[what](t), dtype=float) for t in (table, moved))
    assert other == pytest.approx(one, rel=1e-8, abs=1e-10)


LISTS = {
    "cut": lambda t: cut(t.fine, 10, groups=t.groups % 3, at_most=5),
    "rows drawn below the cut": lambda t: cut(t.fine, 30, explore=0.5),
    "rows drawn within limits": lambda t: cut(
        t.fine, 30, explore=0.5, entities=t.entity, groups=t.groups % 3, at_most=12
    ),
    "rows drawn within a budget": lambda t: cut(
        t.fine, probability=1 / (1 + np.exp(-t.fine)), cost=t.weight, budget=40, explore=0.5
    ),
    "guarantee": lambda t: select(t.fine, calibration=(t.y, t.fine), fdr=0.5),
    "guarantee with ties": lambda t: select(
        t.a, calibration=(t.y, t.a), recall_at_least=0.3, confidence=0.8
    ),
    "rows that stay": lambda t: keep_rows(t.fine, 10, np.flatnonzero(t.entity < 2), noise=0.1),
}


@pytest.mark.parametrize("what", LISTS)
def test_no_list_of_distinct_scores_depends_on_the_order_of_the_rows(what):
    table = columns()
    moved = table.iloc[order_of("shuffled", table.y.to_numpy())]
    one, other = LISTS[what](table), LISTS[what](moved.reset_index(drop=True))
    assert sorted(moved.index[np.asarray(other.rows)]) == sorted(np.asarray(one.rows))


@pytest.mark.parametrize("band", [roc_band, lift_band, precision_recall_band])
@pytest.mark.parametrize("kind", ["pointwise", "simultaneous"])
def test_no_band_depends_on_the_order_of_the_rows(band, kind):
    y, s, _, weight, _ = rows()
    one = band(y, s, kind=kind, sample_weight=weight)
    for order in ORDERS:
        moved = order_of(order, y)
        other = band(y[moved], s[moved], kind=kind, sample_weight=weight[moved])
        for part in ("x", "estimate", "low", "high"):
            assert getattr(other, part) == pytest.approx(getattr(one, part), abs=1e-12)


RANKERS = [
    thing
    for thing in (getattr(toprank, name) for name in sorted(toprank.__all__))
    if inspect.isclass(thing) and issubclass(thing, BaseEstimator) and is_classifier(thing())
]
# smooth margin ranking must warn where classes overlap, and here they do
NOT_SEPARATED = "ignore:The pairs were not separated:sklearn.exceptions.ConvergenceWarning"
#: These choose by folds, or draw rows, at random with the seed: other rows in other folds.
DRAW_ROWS = ("PNormPushCV", "PushEnsemble", "PushTrees")


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings(NOT_SEPARATED)
@pytest.mark.parametrize("ranker", [one for one in RANKERS if one.__name__ not in DRAW_ROWS])
@pytest.mark.parametrize("order", ["reversed", "shuffled"])
def test_no_ranker_depends_on_the_order_of_the_rows_it_is_fitted_to(ranker, order):
    rng = np.random.default_rng(0)
    y = rng.random(120) < 0.4
    X = rng.normal(size=(120, 3)) + y[:, None] * [1.0, 0.5, 0.0]
    moved = order_of(order, y)
    few = {"n_estimators": 20} if "n_estimators" in ranker().get_params() else {}
    one, other = (ranker(**few).fit(X[rows], y[rows]) for rows in (slice(None), moved))
    scores, others = one.decision_function(X), other.decision_function(X)
    assert others == pytest.approx(scores, rel=1e-4, abs=1e-4 * np.ptp(scores))


def test_a_list_of_distinct_scores_does_not_depend_on_the_order_of_the_table():
    rng = np.random.default_rng(0)
    y = rng.random(80) < 0.4
    frame = pd.DataFrame(rng.normal(size=(80, 3)) + y[:, None], columns=["a", "b", "c"])
    frame["id"] = [f"row {number}" for number in range(80)]
    ranker = toprank.PNormPush(p=4).fit(frame[["a", "b", "c"]], y)
    one = toprank.top(ranker, frame, 10, id="id")
    other = toprank.top(ranker, frame.iloc[order_of("shuffled", y)], 10, id="id")
    assert list(other["id"]) == list(one["id"])
    assert list(other["rank"]) == list(one["rank"])
