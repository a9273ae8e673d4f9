"""How hard the trees of a table push: chosen as `PushTrees` chooses, on folds that follow roles."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from toprank import PushTrees
from toprank.models import TableRanker, fit_table
from toprank.models.ranker_kinds import RANKER_KINDS, RankerRequest
from toprank.models.rows import TrainingRows
from toprank.rankers.trees import auto
from toprank.tuning import Scoring

pytest.importorskip("lightgbm", reason="trees need LightGBM")

UNCOMPARED = "p = 4 was taken without a comparison"


@pytest.mark.parametrize("metric", ["auc", "precision_at"])
def test_the_model_is_the_one_that_the_trees_make_of_its_numbers_by_themselves(table, metric):
    X, y = table.drop(columns=["customer", "bought"]), table["bought"]
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    model = TableRanker("auto", model="trees", metric=metric, k=None).fit(X, y, weight).model_
    Z = model.preparation.transform(model.schema.read(X)[0])
    own = clone(model.ranker).set_params(p="auto").fit(Z, y == "yes", weight)
    assert model.card["choice"] == str(own.choice_)
    assert model.card["p"] == model.ranker.p == own.p_
    np.testing.assert_array_equal(model.ranker.decision_function(Z), own.decision_function(Z))


def test_a_card_shows_the_powers_compared_and_the_verdict(table):
    model = fit_table(table, "bought", id="customer", model="trees", k=20)
    first, *compared, verdict = model.card["choice"].splitlines()
    assert first == "average_precision, mean ± standard error over 3 folds"  # k rows are too few
    powers = [f"p = {p:g}" for p in PushTrees().ps]
    assert [line.split("  ")[0].strip() for line in compared] == powers
    assert verdict.startswith(f"Push with p = {model.ranker.p:g}. ")
    assert model.card["chosen_by"] == "precision_at(k=20)"
    assert not [note for note in model.card["warnings"] if UNCOMPARED in note]


def numbers(n=300, **roles):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return TrainingRows(X, X[:, 0] + rng.logistic(size=n) > 1, **roles)


@pytest.mark.parametrize("roles", [("groups",), ("time",), ("groups", "time"), ()])
def test_the_folds_keep_groups_whole_and_the_order_of_time(roles, monkeypatch):
    seen, rng = [], np.random.default_rng(1)
    given = {"groups": rng.integers(0, 70, 300), "time": rng.permutation(300) // 2}
    rows = numbers(**{name: given[name] for name in roles})
    monkeypatch.setattr(auto, "tested_over_trained", lambda folds: seen.append(folds) or 0.5)
    request = RankerRequest("auto", None, Scoring("average_precision"), 0)
    ranker, choice = RANKER_KINDS["trees"].choose(request, rows, [])
    (folds,) = seen
    assert len(folds) == PushTrees().cv and ranker.p == choice.p
    for train, test in folds:
        if "groups" in roles:
            assert not set(given["groups"][train]) & set(given["groups"][test])
        if "time" in roles:
            assert max(given["time"][train]) < min(given["time"][test])
    if "time" not in roles:
        assert sorted(np.concatenate([test for _, test in folds])) == list(range(300))


@pytest.mark.parametrize("few", ["positives", "groups", "times"])
def test_rows_too_few_to_compare_push_by_4_and_the_card_says_so(few):
    n = 120
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(size=n), "place": np.arange(n)})
    roles = {}
    if few == "positives":
        frame["y"] = frame.x > np.sort(frame.x)[-10]  # nine, of which two are held out
    elif few == "groups":
        frame["y"], roles = frame.place < 20, {"groups": "home"}
        frame["home"] = np.where(frame.y, 0, frame.place)
    else:
        frame["y"], roles = frame.place >= 100, {"time": "place"}
    frame = frame.drop(columns="place" if few != "times" else [])
    model = fit_table(frame, "y", model="trees", **roles)
    assert model.card["p"] == model.ranker.p == 4 and model.card["choice"] == ""
    assert [note for note in model.card["warnings"] if note.startswith(UNCOMPARED)]
    given = fit_table(frame, "y", model="trees", p=4, **roles)
    np.testing.assert_array_equal(given.score(frame), model.score(frame))
    again = fit_table(frame, "y", from_model=model)
    for other in (given, again):
        assert not [note for note in other.card["warnings"] if UNCOMPARED in note]


def test_trees_that_no_rows_were_held_out_for_say_so_too():
    frame = pd.DataFrame({"x": np.arange(40.0)})
    model = TableRanker("auto", model="trees").fit(frame, frame.x > 33).model_
    assert [note[: len(UNCOMPARED)] for note in model.card["warnings"]] == [UNCOMPARED]
