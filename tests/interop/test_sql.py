"""SQL of rankers, run in SQLite against their scores, and how names and words are quoted."""

import sqlite3

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from toprank import AdaBoostRanker, IRPush, PNormPush, ProperRanker, RankBoost
from toprank.interop.additive import additive_form
from toprank.interop.sql import DIALECTS, to_sql


def rows_of(seed=0, n=120, d=4, gaps=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(2)
    y = X[:, 0] - X[:, 1] + rng.normal(size=n) > 0.7
    if gaps:
        X[rng.random(X.shape) < 0.2] = np.nan
    return X, y


def scores_by_sqlite(ranker, X, names):
    connection = sqlite3.connect(":memory:")
    quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    connection.execute(f'CREATE TABLE "my rows" ({quoted})')
    rows = [[None if np.isnan(v) else v for v in row] for row in X.tolist()]
    connection.executemany(f'INSERT INTO "my rows" VALUES ({",".join("?" * len(names))})', rows)
    query = to_sql(ranker, names, table="my rows", dialect="sqlite")
    return np.array([row[-1] for row in connection.execute(query)], dtype=np.float64)


NAMES = ['a"b', "select", "c;--", "d'e"]


@pytest.mark.parametrize(
    "ranker", [PNormPush(), IRPush(), ProperRanker(), LogisticRegression()], ids=str
)
def test_a_linear_score_is_the_same_in_sqlite_and_null_where_a_value_is(ranker):
    X, y = rows_of()
    ranker.fit(X, y)
    np.testing.assert_allclose(
        scores_by_sqlite(ranker, X, NAMES), ranker.decision_function(X), rtol=1e-12, atol=1e-12
    )
    holed = X.copy()
    holed[0, 0] = np.nan
    assert np.isnan(scores_by_sqlite(ranker, holed, NAMES)[0])


@pytest.mark.parametrize(
    "ranker",
    [RankBoost(40), RankBoost(40, p=4), AdaBoostRanker(40)],
    ids=str,
)
def test_a_sum_of_stumps_is_the_same_in_sqlite_missing_values_included(ranker):
    X, y = rows_of(gaps=True)
    ranker.fit(X, y)
    np.testing.assert_allclose(
        scores_by_sqlite(ranker, X, NAMES), ranker.decision_function(X), rtol=1e-12, atol=1e-12
    )


def test_values_at_a_threshold_are_not_above_it():
    X = np.array([[1.0], [2.0], [3.0], [4.0]])
    ranker = RankBoost(5).fit(X, [0, 0, 1, 1])
    at = np.sort(np.append(additive_form(ranker).terms[0].edges, X.ravel()))[:, None]
    np.testing.assert_allclose(
        scores_by_sqlite(ranker, at, ["x"]), ranker.decision_function(at), rtol=1e-12
    )


@pytest.mark.parametrize("ranker", [RankBoost(3, weak_rankers=[lambda X: X[:, 0] > 0])])
def test_rankers_that_are_no_formula_of_the_columns_are_refused(ranker):
    X, y = rows_of()
    with pytest.raises(ValueError, match="cannot be written as SQL"):
        to_sql(ranker.fit(X, y), NAMES)


def test_the_names_must_be_as_many_as_the_columns():
    X, y = rows_of()
    with pytest.raises(ValueError, match="columns has 2 names, expected 4"):
        to_sql(PNormPush().fit(X, y), ["a", "b"])


@given(st.text(max_size=12))
def test_sqlite_reads_any_name_and_word_back_as_it_was(text):
    said = DIALECTS["sqlite"]
    if "\0" in text:
        with pytest.raises(ValueError, match="zero byte"):
            said.word(text)
        return
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair is no text to any database
        return
    connection = sqlite3.connect(":memory:")
    assert connection.execute(f"SELECT {said.word(text)}").fetchone() == (text,)
    if text:
        connection.execute(f"CREATE TABLE t ({said.name(text)})")
        connection.execute("INSERT INTO t VALUES (7)")
        assert connection.execute(f"SELECT {said.name(text)} FROM t").fetchone() == (7,)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_sqlite_reads_any_number_back_as_it_was(value):
    number = DIALECTS["sqlite"].number(value)
    got = sqlite3.connect(":memory:").execute(f"SELECT {number}").fetchone()[0]
    assert got == pytest.approx(value, rel=1e-15)


def unquoted(literal, dialect):
    """Read a string literal by the rules of a dialect, or fail if it ends too early."""
    literal = literal.removeprefix(DIALECTS[dialect].letters)
    assert literal[0] == literal[-1] == "'"
    body, out, j = literal[1:-1], [], 0
    while j < len(body):
        if DIALECTS[dialect].escapes and body[j] == "\\":
            out.append({"n": "\n", "r": "\r"}.get(body[j + 1], body[j + 1]))
            j += 2
        elif body[j] == "'":
            assert DIALECTS[dialect].quote == "''" and body[j + 1] == "'", "the literal ends here"
            out.append("'")
            j += 2
        else:
            out.append(body[j])
            j += 1
    return "".join(out)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(word=st.text(alphabet="ab'\\\n\r\";-", max_size=10))
def test_no_word_leaves_its_quotes_in_any_dialect(dialect, word):
    assert unquoted(DIALECTS[dialect].word(word), dialect) == word


def read_name(quoted, dialect):
    """Read a quoted name by the rules of a dialect, or fail if it ends too early.

    BigQuery reads the escapes of strings in names too; the others double the closing sign.
    """
    left, right = DIALECTS[dialect].quotes
    assert quoted[0] == left and quoted[-1] == right
    body, out, j = quoted[1:-1], [], 0
    while j < len(body):
        if dialect == "bigquery" and body[j] == "\\":
            out.append({"n": "\n", "r": "\r"}.get(body[j + 1], body[j + 1]))
            j += 2
        elif body[j] == right:
            assert dialect != "bigquery" and body[j + 1 : j + 2] == right, "the name ends here"
            out.append(right)
            j += 2
        else:
            out.append(body[j])
            j += 1
    return "".join(out)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(name=st.text(alphabet="ab'\\\n\r\";-`[]", max_size=10))
def test_no_name_leaves_its_quotes_in_any_dialect(dialect, name):
    said = DIALECTS[dialect]
    left, right = said.quotes
    assert read_name(said.name(name), dialect) == name
    assert said.table("a.b") == f"{left}a{right}.{left}b{right}"


def test_a_backslash_at_the_end_of_a_name_does_not_open_it_in_bigquery():
    assert DIALECTS["bigquery"].name("x\\") == "`x\\\\`"
    assert DIALECTS["bigquery"].name("x` OR 1=1") == "`x\\` OR 1=1`"


def test_words_of_every_script_reach_sql_server_as_they_are():
    assert DIALECTS["sqlserver"].word("Жук") == "N'Жук'"


def test_an_unknown_dialect_is_named():
    X, y = rows_of()
    with pytest.raises(ValueError, match="dialect='cobol'"):
        to_sql(PNormPush().fit(X, y), NAMES, dialect="cobol")


def test_many_columns_do_not_nest_too_deep():
    d = 1900  # SQLite takes 2,000 columns, and expressions a thousand levels deep
    rng = np.random.default_rng(0)
    ranker = LogisticRegression()
    ranker.classes_, ranker.n_features_in_ = np.array([0, 1]), d
    ranker.coef_, ranker.intercept_ = rng.normal(size=(1, d)), np.array([0.5])
    X = rng.normal(size=(2, d))
    got = scores_by_sqlite(ranker, X, [f"x{j}" for j in range(d)])
    np.testing.assert_allclose(got, ranker.decision_function(X), rtol=1e-9)
