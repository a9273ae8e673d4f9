"""Dates and texts as numbers: as pandas and scikit-learn make them, from a few arrays."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from toprank.models import kinds
from toprank.models.encoders import DateEncoder, TextEncoder


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    words = ["quick", "Slow", "Red-x", "d\u00f6g", "a", "garden  gate", "\u0130stanbul"]
    return [" ".join(rng.choice(words, 4)) for _ in range(120)]


def test_texts_become_the_directions_of_their_letters(texts):
    encoder = TextEncoder("note").fit(texts)
    reader = TfidfVectorizer(ngram_range=(3, 4), analyzer="char_wb")
    weights = reader.fit_transform(texts).astype(np.float32)
    assert encoder.runs.tolist() == reader.get_feature_names_out().tolist()
    directions = TruncatedSVD(30, random_state=0).fit(weights)
    expected = directions.transform(weights)
    expected /= np.sqrt(np.var(expected, axis=0).sum())
    np.testing.assert_allclose(encoder.transform(texts), expected, rtol=1e-4, atol=1e-5)
    assert encoder.names[0] == "note_00" and len(encoder.names) == 30


def test_a_text_has_the_same_numbers_whatever_stands_beside_it(texts):
    encoder = TextEncoder("note").fit(texts)
    alone = np.vstack([encoder.transform([text]) for text in texts[:5]])
    np.testing.assert_array_equal(encoder.transform(texts)[:5], alone)
    assert not encoder.transform(["", "\0", "zzzz"]).any()


@pytest.mark.parametrize("few", [["one"], ["ab", "cd"], [""], ["a\0b", "c"]])
def test_few_texts_are_their_own_letters(few):
    encoder = TextEncoder("t").fit(few)
    numbers = encoder.transform([*few, "other"])
    assert numbers.shape == (len(few) + 1, len(encoder.names)) and np.all(np.isfinite(numbers))


@pytest.mark.parametrize("with_times", [False, True])
def test_dates_are_split_as_pandas_splits_them(with_times):
    rng = np.random.default_rng(1)
    moments = np.datetime64("1931-05-05", "us") + rng.integers(0, 4 * 10**15, 200)
    moments[3] = np.datetime64("NaT")
    days = pd.Series(moments).dt
    parts = [days.year, days.month, days.day, *([days.hour] if with_times else [])]
    seconds = (pd.Series(moments) - pd.Timestamp(0)) / pd.Timedelta("1s")
    expected = np.column_stack([*parts, seconds.astype(np.float32), days.day_of_week + 1])
    encoder = DateEncoder("at", with_times)
    np.testing.assert_array_equal(encoder.transform(moments), expected)
    assert len(encoder.names) == expected.shape[1]


@pytest.mark.parametrize(
    ("words", "form"),
    [
        (["2024-02-29", "2023-12-01"], "%Y-%m-%d"),
        (["31/12/2023", "01/02/2024"], "%d/%m/%Y"),
        (["12/31/2023", "01/02/2024"], "%m/%d/%Y"),
        (["31.12.2023 10:15", "01.02.2024 00:00"], "%d.%m.%Y %H:%M"),
        (["$12.50", "$3.00"], None),
        (["2024-02-29", "next year 5"], None),
        (["2024-02-30", "2024-01-01"], None),
    ],
)
def test_the_format_of_dates_is_found_or_there_is_none(words, form):
    assert kinds.find_kind(np.array(words * 3, dtype=object)).date_format == form


def test_day_first_is_found_where_only_a_rare_word_tells():
    words = [f"{1 + j % 12:02d}/{1 + j % 12:02d}/{1900 + j}" for j in range(300)]
    found = kinds.find_kind(np.array([*words, "31/01/2024"], dtype=object))
    assert found.date_format == "%d/%m/%Y"
