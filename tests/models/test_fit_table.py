"""From a table to a model: kinds, roles, targets, and messages that say what to do."""

import numpy as np
import pandas as pd
import pytest

from toprank.metrics import auc
from toprank.models import ModelError, fit_table
from toprank.models.model import rows_to_explain

MODELS = ("pnorm", "ir", "proper", "rankboost", "smooth-margin", "trees")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MODELS)
def test_every_model_ranks_the_mixed_table_better_than_chance(fitted, table, name):
    model = fitted(name)
    assert auc(model.labels(table), model.score(table)) > 0.75
    share = model.predict_proba(table)
    assert share.shape == (len(table), 2)
    np.testing.assert_allclose(share.sum(axis=1), 1.0)
    assert np.array_equal(share[:, 1] > 0.5, model.score(table) > 0)


def test_the_kinds_of_columns_are_found(full_model):
    kinds = {column.name: column.kind for column in full_model.schema.columns}
    assert kinds == {
        "age": "number",
        "member": "boolean",
        "city": "category",
        "spent": "number",
        "since": "date",
        "note": "text",
    }


def test_words_that_are_numbers_or_dates_are_read_as_such():
    rng = np.random.default_rng(0)
    n = 80
    frame = pd.DataFrame(
        {
            "words": [str(x) for x in rng.normal(size=n).round(3)],
            "day": [f"{d:02d}/{m:02d}/2024" for d, m in rng.integers(1, 13, (n, 2))],
            "y": rng.integers(0, 2, n),
        }
    )
    frame.loc[0, "day"] = "25/12/2024"
    model = fit_table(frame, "y", p=1)
    kinds = {c.name: (c.kind, c.date_format) for c in model.schema.columns}
    assert kinds == {"words": ("number", None), "day": ("date", "%d/%m/%Y")}


def test_what_carries_nothing_is_left_out_and_says_why():
    rng = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "same": 3,
            "empty": [None] * n,
            "code": [f"k{i}" for i in range(n)],
            "lists": [[1, 2]] * n,
            "not me": rng.normal(size=n),
            "y": rng.integers(0, 2, n),
        }
    )
    schema = fit_table(frame, "y", p=1, drop=["not me"]).schema
    assert schema.names == ["x"]
    assert set(schema.left_out) == {"same", "empty", "code", "lists", "not me"}
    assert "identifier" in schema.left_out["code"]
    assert "list" in schema.left_out["lists"]


def test_id_time_weight_groups_and_target_are_no_features(table):
    frame = table.assign(day=np.arange(len(table)), count=1.0, household=np.arange(len(table)) // 2)
    model = fit_table(
        frame,
        "bought",
        p=1,
        id="customer",
        time="day",
        weight="count",
        groups="household",
    )
    assert model.schema.names == ["age", "member", "city", "spent"]
    assert "last ones in time" in model.card["metrics"]["how"]


def test_rows_held_out_by_time_are_the_last(table):
    from toprank.models.rows import TrainingRows
    from toprank.models.schema import Schema, Target

    frame = table.assign(day=np.random.default_rng(0).permutation(len(table)))
    schema = Schema.learn(frame, target="bought", time="day", id="customer")
    rows = TrainingRows.read(frame, schema, Target.learn("bought", frame["bought"].to_numpy()))
    train, test = rows.held_out(0)
    assert frame.day.to_numpy()[train].max() < frame.day.to_numpy()[test].min()
    for inside, outside in rows.folds(3):
        assert frame.day.to_numpy()[inside].max() < frame.day.to_numpy()[outside].min()


@pytest.mark.parametrize("timed", [False, True])
def test_groups_are_never_parted(table, timed):
    from toprank.models.rows import TrainingRows
    from toprank.models.schema import Schema, Target

    rng = np.random.default_rng(0)
    frame = table.assign(home=rng.integers(0, 60, len(table)), day=np.arange(len(table)))
    roles = {"groups": "home", **({"time": "day"} if timed else {})}
    schema = Schema.learn(frame, target="bought", id="customer", **roles)
    rows = TrainingRows.read(frame, schema, Target.learn("bought", frame["bought"].to_numpy()))
    for train, test in [rows.held_out(0), *rows.folds(3)]:
        assert not set(rows.groups[train]) & set(rows.groups[test])


@pytest.mark.parametrize("name", ["pnorm", "rankboost"])
def test_a_weight_is_a_repetition_and_zero_is_absent(table, name):
    from toprank.models.preparation import Preparation
    from toprank.models.ranker_kinds import RANKER_KINDS
    from toprank.models.schema import Schema

    counts = np.random.default_rng(0).integers(0, 3, len(table))
    features = table.drop(columns=["customer", "bought"])
    repeated = features.iloc[np.repeat(np.arange(len(table)), counts)]
    present = features[counts > 0]
    schema = Schema.learn(present)
    kept = counts[counts > 0].astype(float)
    style = RANKER_KINDS[name].style
    once = Preparation(style)
    once.fit_transform(schema, schema.read(present)[0], kept)
    thrice = Preparation(style)
    thrice.fit_transform(schema, schema.read(repeated)[0])
    values = schema.read(features)[0]
    np.testing.assert_allclose(once.transform(values), thrice.transform(values), rtol=1e-12)


def test_rows_of_weight_zero_change_nothing(table):
    extra = table.assign(count=1.0)
    junk = table.head(40).assign(count=0.0, age=1e6, city="Nowhere")
    one = fit_table(extra, "bought", p=4, id="customer", weight="count")
    two = fit_table(pd.concat([extra, junk]), "bought", p=4, id="customer", weight="count", drop=[])
    seen = table.assign(city=table.city.where(table.city != "Nowhere"))
    assert two.card["training"]["rows"] == len(table)
    np.testing.assert_allclose(two.score(seen), one.score(seen), rtol=1e-6, atol=1e-8)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("values", "positive"),
    [
        ([0, 1], "1"),
        ([-1, 1], "1"),
        ([0.0, 1.0], "1"),
        ([False, True], "True"),
        (["no", "yes"], "yes"),
        (["N", "Y"], "Y"),
        (["False", "TRUE"], "TRUE"),
        (["neg", "pos"], "pos"),
        (["-", "+"], "+"),
    ],
)
def test_plain_targets_need_no_hint(table, values, positive):
    frame = table.assign(bought=np.where(table.bought == "yes", values[1], values[0]))
    model = fit_table(frame, "bought", p=1, id="customer")
    assert model.target.positive == positive
    assert np.array_equal(model.labels(frame), table.bought == "yes")


def test_targets_that_are_not_plain_ask_for_the_positive_value(table):
    frame = table.assign(bought=np.where(table.bought == "yes", "a", "b"))
    with pytest.raises(ModelError, match="positive='a' or positive='b'"):
        fit_table(frame, "bought", p=1, id="customer")
    model = fit_table(frame, "bought", positive="a", p=1, id="customer")
    assert np.array_equal(model.labels(frame), table.bought == "yes")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("given", [2, "2", 2.0, "2.0", np.int64(2)])
def test_the_positive_value_may_be_given_as_number_or_word(table, given):
    frame = table.assign(bought=np.where(table.bought == "yes", 2, 1))
    assert np.array_equal(
        fit_table(frame, "bought", positive=given, p=1, id="customer").labels(frame),
        table.bought == "yes",
    )


def test_with_more_than_two_values_the_others_are_negative(table):
    frame = table.assign(bought=table.bought.where(table.bought == "yes", table.city.fillna("?")))
    with pytest.raises(ModelError, match="different values"):
        fit_table(frame, "bought", p=1, id="customer")
    model = fit_table(frame, "bought", positive="yes", p=1, id="customer")
    assert np.array_equal(model.labels(frame), table.bought == "yes")


HOSTILE = {
    "no such target": (lambda f: f, {"target": "sold"}, "no such column"),
    "one class": (lambda f: f.assign(bought="yes"), {}, "one value only"),
    "no rows": (lambda f: f.head(0), {}, "no rows"),
    "missing labels": (
        lambda f: f.assign(bought=f.bought.where(f.bought == "yes")),
        {},
        "missing in .* rows",
    ),
    "no features": (lambda f: f[["customer", "bought"]], {}, "no column to rank by"),
    "duplicate names": (
        lambda f: pd.concat([f, f[["age"]]], axis=1),
        {},
        "several columns of the same name: 'age'",
    ),
    "a role twice": (lambda f: f, {"time": "bought"}, "is the target already"),
    "no such id": (lambda f: f, {"id": "nobody"}, "id='nobody'"),
    "no such drop": (lambda f: f, {"drop": ["nothing"]}, "drop='nothing'"),
    "negative weight": (lambda f: f.assign(w=-1.0), {"weight": "w"}, "negative"),
    "weight in words": (lambda f: f.assign(w="many"), {"weight": "w"}, "expected numbers"),
    "time in words": (lambda f: f.assign(t="noon or so"), {"time": "t"}, "dates or numbers"),
    "missing time": (lambda f: f.assign(t=f.age), {"time": "t"}, "missing in"),
    "one class of weight zero": (
        lambda f: f.assign(w=(f.bought == "yes").astype(float)),
        {"weight": "w"},
        "one value only",
    ),
    "all weight zero": (lambda f: f.assign(w=0), {"weight": "w"}, "no rows of positive weight"),
    "unknown model": (lambda f: f, {"model": "magic"}, "expected one of auto, pnorm"),
    "p too small": (lambda f: f, {"p": 0.5}, "from 1 on"),
    "p where there is none": (lambda f: f, {"model": "ir", "p": 4}, "has no p"),
    "alpha where there is none": (
        lambda f: f,
        {"model": "rankboost", "alpha": 1.0},
        "has no alpha",
    ),
    "unknown metric": (lambda f: f, {"metric": "luck"}, "metric='luck'"),
    "k where there is none": (lambda f: f, {"metric": "auc", "k": 5}, "has no k"),
    "k of nothing": (lambda f: f, {"k": 0}, "k"),
    "an array": (lambda f: f.to_numpy(), {}, "data frame"),
    "positive never seen": (lambda f: f, {"positive": "maybe"}, "never has that value"),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", HOSTILE)
def test_a_table_that_cannot_be_used_is_a_model_error_with_a_remedy(table, case):
    change, kwargs, message = HOSTILE[case]
    with pytest.raises(ModelError, match=message):
        fit_table(change(table), **{"target": "bought", "id": "customer", "p": None, **kwargs})


@pytest.mark.parametrize("positives", [1, 2, 3, 5])
def test_few_positives_still_give_a_model_that_says_what_it_could_not_measure(positives):
    rng = np.random.default_rng(0)
    y = np.zeros(40, dtype=int)
    y[:positives] = 1
    frame = pd.DataFrame({"x": rng.normal(size=40) + y, "y": y})
    model = fit_table(frame, "y", p=2)
    measured = model.card["metrics"]
    assert measured["intervals"] or "too few" in measured["notes"][0]
    assert np.all(np.isfinite(model.score(frame)))


def test_p_auto_says_what_it_chose_and_by_what(table):
    model = fit_table(table, "bought", id="customer", k=20)
    assert model.card["chosen_by"] == "precision_at(k=20)"
    assert "p = " in model.card["choice"]
    assert model.card["metrics"]["intervals"][0]["metric"] == "precision_at(k=20)"


def test_p_auto_with_too_few_rows_asks_for_p():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": [0, 0, 0, 1]})
    with pytest.raises(ModelError, match="Or give p"):
        fit_table(frame, "y")


def test_intervals_are_those_of_rows_that_the_first_fit_never_saw(table):
    noise = table.assign(bought=np.random.default_rng(5).permutation(table.bought))
    model = fit_table(noise, "bought", id="customer", model="rankboost", p=1)
    found = {entry["metric"]: entry for entry in model.card["metrics"]["intervals"]}
    assert auc(model.labels(noise), model.score(noise)) > 0.7  # on its own rows
    assert found["auc"]["low"] < 0.5 < found["auc"]["high"]


def test_progress_is_told_step_by_step(table):
    told = []
    fit_table(table, "bought", id="customer", p=1, progress=lambda *step: told.append(step))
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert told[-1][1] == told[-1][2]


def test_progress_names_the_choice_by_the_folds_so_far(table):
    told = []
    fit_table(table, "bought", id="customer", alpha=0.1, progress=lambda *step: told.append(step))
    choosing = [step for step in told if step[0].startswith("choosing p: ")]
    assert "choosing p: fold 1 of " in choosing[0][0] and "; so far " in choosing[0][0]
    assert {step[1:] for step in choosing} == {(1, 4)}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["pnorm", "ir", "proper"])
def test_a_warm_refit_on_the_same_rows_stays_where_it_is(fitted, table, name):
    old = fitted(name)
    new = fit_table(table, "bought", from_model=old)
    assert new.ranker.n_iter_ <= max(3, old.ranker.n_iter_ // 2)
    np.testing.assert_allclose(new.score(table), old.score(table), rtol=1e-4, atol=1e-4)
    assert new.schema.id == "customer"
    assert new.card["refitted_from"] == old.card["made"]


def test_a_warm_refit_keeps_p_and_preparation_and_takes_new_rows(fitted, table):
    old = fitted("pnorm")
    later = table.tail(150).reset_index(drop=True)
    new = fit_table(later, "bought", from_model=old)
    assert new.preparation is old.preparation
    assert new.ranker.p == 4
    assert new.card["training"]["rows"] == 150
    assert fit_table(later, "bought", from_model=old, p=2).ranker.p == 2


def test_warm_trees_are_added_to_those_before(fitted, table):
    old = fitted("trees")
    new = fit_table(table, "bought", from_model=old)
    assert new.ranker.init_model_ is old.ranker
    assert auc(new.labels(table), new.score(table)) >= auc(old.labels(table), old.score(table))


def test_a_warm_refit_of_another_kind_is_refused(fitted, table):
    with pytest.raises(ModelError, match="the model to start from is 'pnorm'"):
        fit_table(table, "bought", model="ir", from_model=fitted("pnorm"))
    with pytest.raises(ModelError, match="ranks 'yes' at the top"):
        fit_table(table, "bought", positive="no", from_model=fitted("pnorm"))


def test_one_long_text_does_not_blow_up_the_memory():
    import tracemalloc

    rng = np.random.default_rng(0)
    n = 2000
    words = [f"{a} {b}" for a, b in rng.integers(0, 50, (n, 2))]
    words[7] = "long " * 100_000  # as an array of fixed width: 4 GB
    column = np.array(words, dtype=object)
    from toprank.models import kinds

    tracemalloc.start()
    assert kinds.find_kind(column).kind == "text"
    assert tracemalloc.get_traced_memory()[1] < 200e6
    tracemalloc.stop()


def test_labels_apart_from_the_table_are_refused_with_a_way_out(table):
    for labels in (table["bought"], table["bought"].to_numpy(), table["bought"].tolist()):
        with pytest.raises(ModelError, match=r"target= is a \w+ of 240 values.*TableRanker"):
            fit_table(table.drop(columns="bought"), labels)


def test_of_many_rows_some_stand_for_all_where_walks_explain():
    class Walks:
        def explain(self, X):
            raise NotImplementedError

    class Sums:
        pass

    many = 100_000
    assert rows_to_explain(Sums(), many) == slice(None)
    assert rows_to_explain(Walks(), 100) == slice(None)
    some = rows_to_explain(Walks(), many)
    assert len(np.unique(some)) == len(some) < many // 4
    np.testing.assert_array_equal(some, rows_to_explain(Walks(), many))
