"""What tables of each library hold, read as numbers, dates and words; and what is refused."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from toprank.models import ModelError, fit_table, frames
from toprank.models.columns import Column, Unreadable, as_dates
from toprank.models.kinds import ColumnSummary, find_kind
from toprank.models.words import Words

LONG = 2**53 + 1  # floats do not tell it from its neighbour
EAST = timezone(timedelta(hours=2))


def test_whole_numbers_beside_gaps_keep_their_digits_in_every_library():
    arrow = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    for given in ([LONG, None], [7, None], [None, None]):
        tables = [
            pd.DataFrame({"n": pd.array(given, dtype="Int64")}),
            arrow.table({"n": arrow.array(given, arrow.int64())}),
            polars.DataFrame({"n": polars.Series(given, dtype=polars.Int64)}),
        ]
        for table in tables:
            found = frames.column(table, "n")
            assert pd.isna(found[1])
            assert found[0] == given[0] or (pd.isna(found[0]) and given[0] is None)


def test_polars_zones_decimals_and_categories_are_read_as_pandas_has_them():
    polars = pytest.importorskip("polars")
    noon = datetime(2024, 5, 1, 12, tzinfo=EAST)
    table = polars.DataFrame(
        {
            "when": polars.Series([noon]).dt.convert_time_zone("Europe/Rome"),
            "price": polars.Series([Decimal("1.50")]),
            "city": polars.Series(["Rome"], dtype=polars.Categorical),
        }
    )
    assert frames.column(table, "when")[0] == np.datetime64("2024-05-01T10:00")
    assert frames.column(table, "price").tolist() == [1.5]
    assert frames.column(table, "city").tolist() == ["Rome"]
    assert frames.declared_categories(table) == {"city"}


def test_an_arrow_column_that_python_cannot_hold_is_refused_by_name():
    arrow = pytest.importorskip("pyarrow")
    far = arrow.array([10**7], arrow.int32()).cast(arrow.date32())
    with pytest.raises(ModelError, match=r"The column 'far' \(date32\[day\]\) cannot be read"):
        frames.column(arrow.table({"far": far}), "far")


def test_moments_beyond_nanoseconds_and_with_zones_are_dates():
    moments = np.array([datetime(9999, 1, 1, tzinfo=EAST), None, date(2024, 5, 1)], dtype=object)
    moments[2] = datetime(2024, 5, 1, tzinfo=UTC)
    read = as_dates(moments)
    assert str(read[0]) == "9998-12-31T22:00:00.000000"
    assert np.isnat(read[1]) and read[2] == np.datetime64("2024-05-01")
    plain = as_dates(np.array([date(9999, 1, 1), date(1, 1, 1)], dtype=object))
    assert plain.astype("datetime64[D]").astype(str).tolist() == ["9999-01-01", "0001-01-01"]


DAYS = np.array(["2024-05-01"], dtype="datetime64[us]")


@pytest.mark.parametrize(
    "kind, more, values, message",
    [
        ("number", {}, DAYS, "expected numbers, got dates"),
        ("number", {"decimal": ","}, ["1,5", "n/a"], "decimal sign ',', got 'n/a'"),
        ("boolean", {}, np.array([0.0, 2.0]), r"true or false, got '2.0' \(1 such rows\)"),
        ("boolean", {}, DAYS, "true or false, got dates or times"),
        ("category", {}, DAYS, "expected words, got dates or times"),
        ("text", {}, DAYS - DAYS, "expected words, got dates or times"),
        ("date", {}, ["May"], r"dates like 2026-01-25 \(year-month-day\), got 'May'"),
        (
            "date",
            {"date_format": "%m/%d/%Y"},
            ["25/01/2026"],
            r"dates like 01/25/2026 \(month/day/year\), got '25/01/2026'",
        ),
        (
            "date",
            {"date_format": "%d.%m.%Y %H:%M"},
            ["01/25/2026"],
            r"dates like 25.01.2026 13:45 \(day.month.year\), got '01/25/2026'",
        ),
    ],
)
def test_a_column_of_another_kind_than_in_training_is_named(kind, more, values, message):
    if isinstance(values, list):
        values = np.array(values, dtype=object)
    with pytest.raises(Unreadable, match=message):
        Column("x", kind, **more).read(values)


def test_numbers_stand_for_words_that_had_signs_in_training():
    column = Column("price", "number", decimal=",")
    assert column.read(np.array([1.5, 2.0])).tolist() == [1.5, 2.0]
    assert column.read(np.array(["1.234,50 €"], dtype=object)).tolist() == [1234.5]


def test_numbers_beyond_floating_point_leave_their_column_out():
    found = find_kind(np.array([10**400, 3], dtype=object))
    assert found.left_out == "it holds numbers too large for floating point"


def test_dates_and_numbers_in_one_column_leave_it_out_however_it_is_cut():
    numbers, days = np.array([1.0, 2.0]), DAYS
    whole = ColumnSummary.of(np.array([*numbers, *days.tolist()], dtype=object))
    for merged in (
        whole,
        ColumnSummary.of(numbers).merge(ColumnSummary.of(days)),
        ColumnSummary.of(days).merge(ColumnSummary.of(numbers)),
    ):
        assert merged.find().left_out == "it holds values of type date"
        assert merged.dtype == "object"


@pytest.mark.more
def test_a_word_that_is_no_date_is_found_beyond_the_words_that_are_kept(monkeypatch):
    monkeypatch.setattr("toprank.models.words.MOST_WORDS", 40)
    days = pd.date_range("2020-01-01", periods=200).strftime("%Y-%m-%d").to_numpy(dtype=object)
    assert find_kind(days).kind == "date"
    kept = Words.of(days).counts
    days[next(place for place in range(200) if days[place] not in kept)] = "not yet"
    assert find_kind(days).kind == "text"


def test_days_that_no_calendar_has_are_words():
    assert find_kind(np.array(["31.02.2024", "30.02.2024"], dtype=object)).kind == "category"


def test_half_of_a_pair_of_surrogates_is_a_word_among_many(monkeypatch):
    monkeypatch.setattr("toprank.models.words.MOST_WORDS", 3)
    plain = [f"w{place}" for place in range(6)]
    kept = Words.of(np.array(plain, dtype=object)).counts
    odd = Words.of(np.array([*plain, "\ud800"], dtype=object))
    assert len(odd.counts) == 3 and set(odd.counts) <= {*kept, "\ud800"}


@pytest.mark.parametrize(
    "given, message",
    [
        ({"alpha": -1.0, "model": "pnorm"}, r"alpha=-1.0: expected a positive number"),
        ({"max_seconds": 0}, "max_seconds=0: expected a positive number of seconds"),
        ({"propensity": "city"}, "propensity='city': expected numbers, got"),
        ({"groups": "age"}, r"groups='age' is missing in \d+ rows?: leave these rows out"),
    ],
)
def test_settings_and_roles_that_cannot_be_are_refused_by_name(table, given, message):
    with pytest.raises(ModelError, match=message):
        fit_table(table, "bought", **given)


def test_a_refit_reads_as_the_model_does_and_needs_both_classes(fitted, table):
    old = fitted("pnorm")
    with pytest.raises(ModelError, match="tidy: columns are read as the model to start from"):
        fit_table(table, "bought", from_model=old, tidy=("city",))
    with pytest.raises(ModelError, match="Only one class has rows of positive weight"):
        fit_table(table[table.bought == "yes"], "bought", from_model=old)


@pytest.mark.more
def test_rows_that_cannot_be_held_out_leave_the_model_unmeasured(table):
    """Two homes, or two days, are too few to keep some for a test."""
    for change, role in (
        ({"home": np.arange(len(table)) % 2}, {"groups": "home"}),
        ({"home": (table.bought == "yes").astype(int)}, {"groups": "home"}),
        ({"day": np.arange(len(table)) % 2}, {"time": "day"}),
    ):
        model = fit_table(table.assign(**change), "bought", p=2, model="pnorm", **role)
        assert model.card["metrics"]["rows"] == 0
        assert np.all(np.isfinite(model.score(table.assign(**change))))


@pytest.mark.more
def test_many_rows_held_out_stand_for_all_scores(table, monkeypatch):
    monkeypatch.setattr("toprank.models.unseen._ENOUGH", 20)
    model = fit_table(table, "bought", id="customer", p=2, model="pnorm")
    assert "held out" in str(model.card["reference"])


def test_words_with_signs_that_hold_no_number_leave_the_column_out(table):
    nothing = table.assign(price=np.where(np.arange(len(table)) % 2, "nan", "NaN"))
    model = fit_table(nothing, "bought", p=2, model="pnorm", as_number=("price",))
    assert model.schema.left_out["price"] == "every value is missing"


def test_labels_that_are_lists_are_no_target_where_some_rows_have_none(table):
    odd = table.assign(bought=[[1] if i % 3 else None for i in range(len(table))])
    with pytest.raises(ModelError, match="'bought' cannot be the target: expected words"):
        fit_table(odd, "bought", unlabelled="missing")


def test_dates_that_pandas_2_cannot_count_are_read_one_by_one(monkeypatch):
    whole = pd.to_datetime

    def in_nanoseconds(words, **how):
        read = whole(words, **how)
        return read.where(read.dt.year < 2262)

    monkeypatch.setattr(pd, "to_datetime", in_nanoseconds)
    given = [datetime(2999, 1, 2, 3, tzinfo=EAST), None, datetime(2026, 1, 1), date(9999, 12, 31)]
    found = as_dates(np.array(given, dtype=object))
    assert found.astype(str).tolist() == [
        *("2999-01-02T01:00:00.000000", "NaT"),
        *("2026-01-01T00:00:00.000000", "9999-12-31T00:00:00.000000"),
    ]
    with pytest.raises(Unreadable, match="dates"):
        as_dates(np.array([datetime(2999, 1, 1), "3000-01-01"], dtype=object))


def test_forms_of_dates_are_guessed_where_pandas_keeps_its_guess_to_itself(monkeypatch):
    words = np.array(["31/12/2025", "01/02/2026", "28/02/2026"] * 20, dtype=object)
    want = find_kind(words)
    monkeypatch.delattr("pandas.tseries.api.guess_datetime_format", raising=False)
    assert find_kind(words) == want and want.date_format == "%d/%m/%Y"


def test_arrow_types_of_ones_own_are_read_as_what_they_store():
    arrow = pytest.importorskip("pyarrow")

    class Metres(arrow.ExtensionType):  # defines no hash
        def __init__(self):
            super().__init__(arrow.float64(), "demo.metres")

        def __arrow_ext_serialize__(self):
            return b""

        @classmethod
        def __arrow_ext_deserialize__(cls, storage_type, serialized):
            return cls()

    stored = arrow.array([1.5, None, 3.0])
    table = arrow.table({"x": arrow.ExtensionArray.from_storage(Metres(), stored)})
    np.testing.assert_array_equal(frames.column(table, "x"), [1.5, np.nan, 3.0])
