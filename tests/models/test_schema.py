"""Another table against the schema, column by column."""

import warnings
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toprank.models import ModelError, ModelWarning, Schema, columns, fit_table, kinds


def test_every_mismatch_is_named(full_model, full_table):
    bad = full_table.drop(columns=["age", "spent"]).assign(
        member="perhaps", since="soon", other=1, city="Paris"
    )
    match = full_model.check(bad)
    assert not match.ok
    assert set(match.missing) == {"age", "spent"}
    assert set(match.unreadable) == {"member", "since"}
    assert match.extra == ("other",)
    assert match.new_categories["city"] == (len(bad), ("Paris",))
    with pytest.raises(ModelError) as caught:
        full_model.score(bad)
    for part in ("'age' (number) is missing", "'spent'", "'member': expected true or false"):
        assert part in str(caught.value)
    assert "240 such rows" in str(caught.value)


def test_new_categories_are_counted_in_a_warning_and_count_as_none(fitted, table):
    model = fitted("proper")
    new = table.assign(city="Paris")
    with pytest.warns(ModelWarning, match="240 rows hold 1 category never seen"):
        scores = model.score(new)
    zeros = model.numbers(table)
    names = [j for j, name in enumerate(model.preparation.names) if name.startswith("city = ")]
    zeros[:, names] = 0.0
    np.testing.assert_allclose(scores, model.ranker.decision_function(zeros))


def test_a_table_that_matches_says_so(fitted, table):
    match = fitted("pnorm").check(table)
    assert match.ok and str(match) == "every column matches"


def test_an_empty_table_has_no_scores(full_model, full_table):
    nothing = full_table.head(0)
    assert full_model.score(nothing).shape == (0,)
    assert full_model.predict_proba(nothing).shape == (0, 2)
    assert full_model.reasons(nothing) == []


def test_the_type_a_reader_gave_a_column_does_not_matter(full_model, full_table):
    words = full_table.assign(
        age=[None if np.isnan(x) else repr(x) for x in full_table.age],
        spent=full_table.spent.map(repr),
        member=full_table.member.map({True: "true", False: "FALSE"}),
        city=full_table.city.astype("category"),
        since=full_table.since.dt.strftime("%Y-%m-%d %H:%M:%S"),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(full_model.score(words), full_model.score(full_table))


def test_a_column_that_is_all_missing_is_read_whatever_its_type(full_model, full_table):
    for empty in (None, np.nan, pd.NaT, pd.NA):
        gone = full_table.assign(
            **dict.fromkeys(full_model.schema.names, pd.Series([empty] * len(full_table)))
        )
        assert np.all(np.isfinite(full_model.score(gone)))


def test_infinite_numbers_count_as_missing(fitted, table):
    model = fitted("rankboost")
    for value in (np.inf, -np.inf):
        given_ = model.score(table.assign(age=value))
        assert np.array_equal(given_, model.score(table.assign(age=np.nan)))


def test_duplicate_columns_are_refused_when_scoring(fitted, table):
    with pytest.raises(ModelError, match="several columns of the same name"):
        fitted("pnorm").score(pd.concat([table, table[["age"]]], axis=1))


def test_labels_ask_for_the_target_and_for_known_values(fitted, table):
    model = fitted("pnorm")
    with pytest.raises(ModelError, match="no column 'bought'"):
        model.labels(table.drop(columns="bought"))
    with pytest.raises(ModelError, match="'perhaps' in 1 row"):
        model.labels(table.assign(bought=["perhaps", *table.bought[1:]]))
    half = table.assign(bought=table.bought.where(table.index < 100))
    assert model.labelled(half).sum() == 100
    assert not model.labelled(table.drop(columns="bought")).any()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, None], "number"),
        ([Decimal("1.5"), Decimal("2"), None], "number"),
        (np.array([1, 2], dtype="timedelta64[D]"), "number"),
        ([True, None, False], "boolean"),
        ([date(2024, 1, 1), date(2024, 1, 2)], "date"),
        (["2024-01-01T10:00:00Z", "2024-01-02T11:00:00Z"], "date"),
        (["a", "b", None], "category"),
        (["1", "x", "2"], "category"),
        ([1, "x", 2.5], "category"),
    ],
)
def test_kinds_of_small_columns(values, kind):
    array = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)
    assert kinds.find_kind(array).kind == kind


def test_numbers_declared_as_categories_stay_categories():
    frame = pd.DataFrame({"zip": pd.Categorical([1, 2, 1, 2]), "x": [1.0, 2.0, 3.0, 5.0]})
    columns = {c.name: c for c in Schema.learn(frame).columns}
    assert columns["zip"].kind == "category"
    assert columns["zip"].categories == ("1", "2")
    assert (
        Schema.learn(frame).match(pd.DataFrame({"zip": [1.0, 2.0], "x": 0.0})).new_categories == {}
    )


def test_a_schema_survives_json():
    import json

    frame = pd.DataFrame({"a": [1, 2], "b<script>": ["x", "é"]})
    schema = Schema.learn(frame)
    assert Schema.from_dict(json.loads(json.dumps(schema.as_dict()))) == schema
    for wrong in ({}, {"columns": 3}, {"columns": [{"name": "a"}]}, {"columns": [], "evil": 1}):
        with pytest.raises(ModelError):
            Schema.from_dict(wrong)


anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.text(max_size=6),
    st.dates(),
    st.lists(st.integers(), max_size=2),
)


@given(st.lists(anything, min_size=1, max_size=8), st.lists(anything, min_size=1, max_size=8))
@example([False, 1.0000000000000002e100], [1.0])
def test_no_column_breaks_the_reader(train, later):
    old = np.fromiter(train, dtype=object, count=len(train))
    new = np.fromiter(later, dtype=object, count=len(later))
    finding = kinds.find_kind(old)
    assert finding.kind in columns.KINDS
    if finding.left_out is not None:
        return
    from toprank.models.schema import Column

    column = Column("x", finding.kind, date_format=finding.date_format)
    try:
        assert len(column.read(old)) == len(old)
    except columns.Unreadable as error:  # a fit refuses such a table by the column's name
        assert str(error).startswith("expected numbers of at most 1e+100")
    try:
        assert len(column.read(new)) == len(new)
    except columns.Unreadable as error:
        assert str(error).startswith("expected")


def test_numbers_among_the_words_of_a_date_column_are_words():
    words = np.array([20240131, "20240201"], dtype=object)
    read = columns.as_dates(words, "%Y%m%d")
    assert read.astype("datetime64[D]").astype(str).tolist() == ["2024-01-31", "2024-02-01"]
    with pytest.raises(columns.Unreadable, match="expected dates"):
        columns.as_dates(np.array([0, "0"], dtype=object))


def test_a_number_beyond_any_size_is_refused_by_the_name_of_its_column(table):
    frame = table.assign(spent=table.spent.where(np.arange(len(table)) != 5, 1e200))
    with pytest.raises(ModelError, match=r"cannot be used: column 'spent': .* at most 1e\+100"):
        fit_table(frame, "bought", p=2, id="customer")
    model = fit_table(table, "bought", p=2, id="customer")
    with pytest.raises(ModelError, match=r"does not match the model: column 'spent'.*1e\+200"):
        model.score(frame)
    assert np.all(np.isfinite(model.score(table.assign(spent=1e99))))


def test_words_without_figures_are_no_dates_and_need_no_reader_of_dates(monkeypatch):
    def refuse(words, day_first):
        raise AssertionError("formats were guessed")

    monkeypatch.setattr("toprank.models.kinds._guess_format", refuse)
    assert kinds.find_kind(np.array(["May", "June", "May"], dtype=object)).kind == "category"
    with pytest.raises(AssertionError, match="formats were guessed"):
        kinds.find_kind(np.array(["May 2020", "June 2021"], dtype=object))
